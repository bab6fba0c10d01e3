//! A bucket of object storage (S3, or a store that speaks its protocol), for all who read and write
//! there. Each request has a time limit, and ^C ends it at once.
//!
//! Credentials, the region and the address come from the environment, as for other programs that
//! speak to S3, from the user's files, or from the machine that this runs on; see docs/fleet.md.

/// Keys and the region in the files of the user.
mod aws_files;
/// Which objects of a folder count after it was compacted.
mod compacted;
/// A store that knows how large objects are, also if they are gone.
mod known;
/// Why there is no answer.
mod trouble;
/// The URL of a bucket.
mod url;

pub use compacted::{Compacted, Look, file_of, is_replaced, new_run};
pub use known::{Asks, KnownStore};
pub use object_store::UpdateVersion as Version;
pub use trouble::Trouble;
pub use url::BucketUrl;

use crate::failure::{Failure, safe, shown};
use crate::interrupt;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::aws::AmazonS3Builder;
use object_store::path::Path as Key;
use object_store::{
    BackoffConfig, Certificate, ClientConfigKey, ClientOptions, GetOptions, GetRange, ObjectStore,
    ObjectStoreExt as _, PutMode, RetryConfig, WriteMultipart,
};
use std::fs::File;
use std::future::Future;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Maximum time of a request, and of connecting. `AWS_TIMEOUT` and `AWS_CONNECT_TIMEOUT` are others.
const TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How often, and how long, a question repeats a request that is not answered.
const RETRIES_MAX: usize = 5;
const RETRY_TIME: Duration = Duration::from_secs(30);

/// Size of the parts in which a large object is written, and how many of them at the same time. A
/// store takes 10,000 of them at most, which are 80 GB.
const PART_BYTES: usize = 8 << 20;
const PARTS_AT_ONCE: usize = 2;

/// Number of requests at the same time.
const AT_ONCE: usize = 32;

/// Who repeats requests that are not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retries {
    /// They are repeated here for a while: somebody waits for an answer.
    Here,
    /// The caller repeats them.
    ByCaller,
}

/// A bucket, and the prefix below which our keys are.
#[derive(Debug, Clone)]
pub struct Bucket {
    url: BucketUrl,
    store: Arc<KnownStore>,
    /// The threads that requests run on.
    runtime: Arc<Runtime>,
}

impl Bucket {
    /// Prepares the connection. Nothing is sent yet.
    pub fn open(url: &BucketUrl, retries: Retries) -> Result<Self, Failure> {
        let failed = |why: &str| Failure::failed(format!("{url}: {why}"));
        let (max_retries, retry_timeout) = match retries {
            Retries::Here => (RETRIES_MAX, RETRY_TIME),
            Retries::ByCaller => (0, Duration::ZERO),
        };
        let store = aws_files::apply(AmazonS3Builder::from_env())?
            .with_bucket_name(&url.name)
            .with_client_options(options()?)
            .with_retry(RetryConfig {
                backoff: BackoffConfig::default(),
                max_retries,
                retry_timeout,
            })
            .build()
            .map_err(|error| match &error {
                object_store::Error::Generic { source, .. } => failed(&safe(&source.to_string())),
                _ => failed(&safe(&error.to_string())),
            })?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| failed(&format!("cannot start a thread: {error}")))?;
        Ok(Self {
            url: url.clone(),
            store: Arc::new(KnownStore::new(store, Asks::Never)),
            runtime: Arc::new(runtime),
        })
    }

    /// Returns the bucket's name and the prefix.
    pub fn url(&self) -> &BucketUrl {
        &self.url
    }

    /// Returns the store, for an engine that reads from it.
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store) as _
    }

    /// Formats the place of a key, so that it can be printed.
    pub fn shown(&self, key: &Path) -> String {
        format!("s3://{}/{}", self.url.name, safe(&key.to_string_lossy()))
    }

    /// Writes an object, which is there as a whole or not at all, and replaces one of that key.
    pub fn put(&self, key: &Path, bytes: Vec<u8>) -> Result<(), Trouble> {
        let key = self.key(key)?;
        self.wait(async {
            let put = self.store.put(&key, bytes.into()).await;
            put.map(drop).map_err(|error| Trouble::of(&error))
        })
    }

    /// Writes an object if it has still this version, or is not there if it is `None`. `Changed` if
    /// another one was faster.
    pub fn put_if(
        &self,
        key: &Path,
        bytes: Vec<u8>,
        version: Option<Version>,
    ) -> Result<(), Trouble> {
        let key = self.key(key)?;
        let mode = version.map_or(PutMode::Create, PutMode::Update);
        self.wait(async {
            let put = self.store.put_opts(&key, bytes.into(), mode.into()).await;
            put.map(drop).map_err(|error| Trouble::of(&error))
        })
    }

    /// Writes an object from a file of any size, in parts if it is large. It is there as a whole or
    /// not at all.
    pub fn put_file(&self, key: &Path, file: &Path) -> Result<(), Trouble> {
        let unread =
            |error: io::Error| Trouble::Later(format!("cannot read {}: {error}", shown(file)));
        let key = self.key(key)?;
        let mut from = File::open(file).map_err(unread)?;
        let mut part = read_part(&mut from).map_err(unread)?;
        self.wait(async {
            if part.len() < PART_BYTES {
                let put = self.store.put(&key, part.into()).await;
                return put.map(drop).map_err(|error| Trouble::of(&error));
            }
            let upload = self.store.put_multipart(&key).await;
            let upload = upload.map_err(|error| Trouble::of(&error))?;
            let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
            while !part.is_empty() {
                let room = upload.wait_for_capacity(PARTS_AT_ONCE).await;
                if let Err(error) = room {
                    // The store would keep the parts, and count them.
                    let _ = upload.abort().await;
                    return Err(Trouble::of(&error));
                }
                upload.put(part.into());
                part = match read_part(&mut from) {
                    Ok(part) => part,
                    Err(error) => {
                        let _ = upload.abort().await;
                        return Err(unread(error));
                    }
                };
            }
            let finished = upload.finish().await;
            finished.map(drop).map_err(|error| Trouble::of(&error))
        })
    }

    /// Returns an object of at most `bytes_max`, and its version.
    pub fn get(&self, key: &Path, bytes_max: u64) -> Result<(Bytes, Version), Trouble> {
        let shown = self.shown(key);
        let key = self.key(key)?;
        self.wait(async {
            let got = self.store.get(&key).await;
            let got = got.map_err(|error| Trouble::of(&error))?;
            if got.meta.size > bytes_max {
                return Err(Trouble::NotAllowed(format!(
                    "{shown} is larger than {} MB",
                    bytes_max >> 20
                )));
            }
            let version = Version {
                e_tag: got.meta.e_tag.clone(),
                version: got.meta.version.clone(),
            };
            let bytes = got.bytes().await.map_err(|error| Trouble::of(&error))?;
            Ok((bytes, version))
        })
    }

    /// Removes objects. One that is not there is no error.
    pub fn remove(&self, keys: &[PathBuf]) -> Result<(), Trouble> {
        let keys = keys.iter().map(|key| self.key(key));
        let keys: Vec<Key> = keys.collect::<Result<_, _>>()?;
        self.wait(async {
            let keys = stream::iter(keys).map(Ok).boxed();
            let mut removed = self.store.delete_stream(keys);
            while let Some(one) = removed.next().await {
                match one.map_err(|error| Trouble::of(&error)) {
                    Err(Trouble::Missing) | Ok(_) => {}
                    Err(trouble) => return Err(trouble),
                }
            }
            Ok(())
        })
    }

    /// Whether there is an object of that key.
    pub fn has(&self, key: &Path) -> Result<bool, Trouble> {
        let key = self.key(key)?;
        let head = self.wait(async {
            let head = self.store.head(&key).await;
            head.map_err(|error| Trouble::of(&error))
        });
        match head {
            Ok(_) => Ok(true),
            Err(Trouble::Missing) => Ok(false),
            Err(trouble) => Err(trouble),
        }
    }

    /// Returns what is directly below a prefix: objects, and prefixes that go on. Empty if there is
    /// nothing.
    pub fn entries(&self, prefix: &Path) -> Result<Vec<PathBuf>, Trouble> {
        let prefix = self.key(prefix)?;
        let found = self.wait(async {
            let listed = self.store.list_with_delimiter(Some(&prefix)).await;
            listed.map_err(|error| Trouble::of(&error))
        })?;
        let objects = found.objects.into_iter().map(|it| it.location);
        let keys = found.common_prefixes.into_iter().chain(objects);
        Ok(keys.map(|key| PathBuf::from(key.as_ref())).collect())
    }

    /// Reads the ends of some objects, each at least `bytes` of it, and converts each of them: many
    /// requests run at the same time. `read` gets the end and the size of the object, and may ask
    /// for a longer end.
    pub fn ends<T>(
        &self,
        keys: &[PathBuf],
        bytes: u64,
        read: impl Fn(&Path, &Bytes, u64) -> Result<End<T>, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let read = &read;
        let one = |path: &PathBuf| {
            let path = path.clone();
            async move {
                let told = |trouble: Trouble| trouble.failure(&self.shown(&path));
                let key = self.key(&path).map_err(told)?;
                let mut length = bytes;
                loop {
                    let (end, size) = self.end(&key, length).await.map_err(told)?;
                    match read(&path, &end, size)? {
                        End::Read(made) => return Ok(made),
                        End::Longer(wanted) if wanted > length && length < size => length = wanted,
                        End::Longer(_) => {
                            return Err(Failure::failed(format!(
                                "{} is cut off: remove it, or write it again",
                                self.shown(&path)
                            )));
                        }
                    }
                }
            }
        };
        let all = stream::iter(keys.iter().map(one)).buffered(AT_ONCE);
        let work = async { Ok(all.try_collect::<Vec<T>>().await) };
        match self.wait(work) {
            Ok(made) => made,
            Err(trouble) => Err(trouble.failure(&self.url.to_string())),
        }
    }

    /// Returns the end of an object, and its size.
    async fn end(&self, key: &Key, bytes: u64) -> Result<(Bytes, u64), Trouble> {
        let options = GetOptions {
            range: Some(GetRange::Suffix(bytes)),
            ..GetOptions::default()
        };
        let got = match self.store.get_opts(key, options).await {
            Err(error) if trouble::is_empty(&error) => return Ok((Bytes::new(), 0)),
            got => got.map_err(|error| Trouble::of(&error))?,
        };
        let size = got.meta.size;
        self.store.add(&got.meta);
        let end = got.bytes().await.map_err(|error| Trouble::of(&error))?;
        Ok((end, size))
    }

    fn key(&self, path: &Path) -> Result<Key, Trouble> {
        let text = path.to_str().unwrap_or_default();
        Key::parse(text).map_err(|error| Trouble::NotAllowed(safe(&error.to_string())))
    }

    /// Waits for an answer, or for a signal.
    fn wait<T>(&self, answer: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
        self.runtime.block_on(async {
            tokio::select! {
                answer = answer => answer,
                failure = interrupt::wait() => Err(Trouble::Ended(failure)),
            }
        })
    }
}

/// Reads the next part of a file; less than a whole one only at its end.
fn read_part(file: &mut File) -> io::Result<Vec<u8>> {
    let mut part = Vec::new();
    file.take(PART_BYTES as u64).read_to_end(&mut part)?;
    Ok(part)
}

/// What was made of the end of an object.
pub enum End<T> {
    Read(T),
    /// That many bytes of the end are needed.
    Longer(u64),
}

/// Returns the settings of connections.
fn options() -> Result<ClientOptions, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|it| !it.is_empty());
    let mut options = ClientOptions::new()
        .with_allow_http(variable("AWS_ALLOW_HTTP").is_some_and(|it| it == "true" || it == "1"));
    options = match variable("AWS_TIMEOUT") {
        Some(time) => options.with_config(ClientConfigKey::Timeout, time),
        None => options.with_timeout(TIMEOUT),
    };
    options = match variable("AWS_CONNECT_TIMEOUT") {
        Some(time) => options.with_config(ClientConfigKey::ConnectTimeout, time),
        None => options.with_connect_timeout(CONNECT_TIMEOUT),
    };
    if let Some(file) = variable("AWS_CA_BUNDLE") {
        let mistake = |why: String| {
            Failure::usage(format!(
                "AWS_CA_BUNDLE: {} has no certificates in PEM: {why}",
                safe(&file)
            ))
        };
        let pem = std::fs::read(&file).map_err(|error| mistake(error.to_string()))?;
        let certificates = Certificate::from_pem_bundle(&pem)
            .map_err(|error| mistake(safe(&error.to_string())))?;
        for certificate in certificates {
            options = options.with_root_certificate(certificate);
        }
    }
    Ok(options)
}
