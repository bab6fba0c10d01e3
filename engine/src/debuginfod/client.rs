//! Fetches debug files from debuginfod servers, only if the user has configured servers in
//! `DEBUGINFOD_URLS`.
//!
//! elfutils' own client communicates with the servers: it handles proxies, certificates and
//! passwords, a server's bytes are read by a process that is not ours, and a profiler needs no HTTP
//! client of its own. Its resources are limited here all the same, and its result is accepted only
//! if it is the debug file of the requested build: then it is moved to the client's cache, where
//! all tools find it.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use probe::privilege::{InvokingUser, UserRights};
use rustix::fs::OFlags;
use rustix::process::{Pid, Resource, Rlimit, Signal};
use symbolize::{FileSource, RemoteFiles, debuginfod};

const CLIENT: &str = "debuginfod-find";

/// How often the client is checked.
const NAP: Duration = Duration::from_millis(50);

/// Limits for fetching one file. `DEBUGINFOD_MAXSIZE` and `DEBUGINFOD_MAXTIME` take precedence if
/// they are set.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum size of the file.
    pub bytes: u64,
    /// Maximum time.
    pub time: Duration,
}

/// Why there is no debug file.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The client program is not installed.
    #[error("`{CLIENT}` is not installed (package debuginfod)")]
    NoClient,
    /// No server has the file.
    #[error("no server has it")]
    NotThere,
    /// The file is larger than this number of bytes.
    #[error("it is larger than {} MiB (DEBUGINFOD_MAXSIZE)", .0 >> 20)]
    TooLarge(u64),
    /// It did not arrive within this time.
    #[error("it took longer than {} s (DEBUGINFOD_MAXTIME)", .0.as_secs())]
    TooSlow(Duration),
    /// A server sent something else.
    #[error("what came is not the debug file of that build")]
    Wrong,
    /// proftop is ending.
    #[error("nobody waits for it any more")]
    Stopped,
    /// An operation on a local file or process failed.
    #[error("{what}: {source}")]
    Failed {
        /// What was attempted.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Whether servers are configured.
pub fn is_wanted() -> bool {
    std::env::var_os("DEBUGINFOD_URLS").is_some_and(|urls| !urls.is_empty())
}

/// Fetches the debug file of a build into the client's cache. Returns within the limits, or soon
/// after `stop` is set.
pub fn fetch(build_id: &[u8], limits: Limits, stop: &AtomicBool) -> Result<(), FetchError> {
    let cache = debuginfod::default_cache().ok_or(FetchError::Failed {
        what: "there is no place for it",
        source: io::ErrorKind::NotFound.into(),
    })?;
    let place = ClientCache {
        rights: rights_at(&cache),
        cache,
    };
    fetch_with(CLIENT, &place, build_id, limits.by_environment(), stop)
}

/// The client's cache, and the rights with which it is used.
struct ClientCache {
    cache: PathBuf,
    rights: UserRights,
}

/// Under sudo the environment may point to a directory of the user who called it: then everything
/// there, including the client, runs with that user's rights. In root's own home, which is sudo's
/// usual choice, root's rights are kept.
fn rights_at(cache: &Path) -> UserRights {
    let current = UserRights::current();
    let is_roots = || InvokingUser::find(0, None).is_some_and(|root| cache.starts_with(root.home));
    match current.user() {
        Some(_) if is_roots() => UserRights::own(),
        _ => current.clone(),
    }
}

impl Limits {
    fn by_environment(self) -> Limits {
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        let set = |name| number(name).filter(|&number| number > 0);
        Limits {
            bytes: set("DEBUGINFOD_MAXSIZE").unwrap_or(self.bytes),
            time: set("DEBUGINFOD_MAXTIME").map_or(self.time, Duration::from_secs),
        }
    }
}

/// Fetches with this client into this cache, in these steps, each of which may fail:
///
/// 1. creates a directory in the cache in which the client works
/// 2. starts the client, with its limits in the environment, and enforces them here
/// 3. waits for its end: by itself, at the time limit, or because the run ends
/// 4. looks for the file where the client would put it, and checks it
/// 5. moves it into the cache
fn fetch_with(
    client: &str,
    ClientCache { cache, rights }: &ClientCache,
    build_id: &[u8],
    limits: Limits,
    stop: &AtomicBool,
) -> Result<(), FetchError> {
    let failed = |what| move |source| FetchError::Failed { what, source };
    let desk =
        Desk::new(cache, rights).map_err(failed("cannot write to the cache of debuginfod"))?;
    let id: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut command = Command::new(client);
    command.args(["debuginfo", &id]);
    // The client gets what it needs from our environment, but must not write to the screen.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env("DEBUGINFOD_CACHE_PATH", &desk.path)
        .env("DEBUGINFOD_MAXSIZE", limits.bytes.to_string())
        .env("DEBUGINFOD_MAXTIME", limits.time.as_secs().to_string())
        .env_remove("DEBUGINFOD_PROGRESS")
        .env_remove("DEBUGINFOD_VERBOSE");
    rights.apply_to(&mut command);
    let child = command.spawn().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => FetchError::NoClient,
        _ => FetchError::Failed {
            what: "cannot run debuginfod-find",
            source,
        },
    })?;
    let status = Client { child }.wait(limits, stop)?;
    // The kernel ends a process that writes more than its `RLIMIT_FSIZE`.
    if status.signal() == Some(Signal::XFSZ.as_raw()) {
        return Err(FetchError::TooLarge(limits.bytes));
    }
    let came = debuginfod::debug_file(&desk.path, build_id);
    if !status.success() {
        return Err(FetchError::NotThere);
    }
    check(&came, rights, build_id, limits.bytes)?;
    let place = debuginfod::debug_file(cache, build_id);
    rights
        .run(|| put(&came, &place))
        .map_err(failed("cannot write to the cache of debuginfod"))
}

/// The directory in which the client works, so that no unfinished or wrong file is left where other
/// tools look.
struct Desk<'a> {
    path: PathBuf,
    rights: &'a UserRights,
}

impl<'a> Desk<'a> {
    fn new(cache: &Path, rights: &'a UserRights) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = cache.join(format!(".proftop-{}-{number}", std::process::id()));
        let mut make = fs::DirBuilder::new();
        make.mode(0o700);
        rights.run(|| {
            make.recursive(true).create(cache)?;
            make.recursive(false).create(&path)
        })?;
        Ok(Desk { path, rights })
    }
}

impl Drop for Desk<'_> {
    fn drop(&mut self) {
        _ = self.rights.run(|| fs::remove_dir_all(&self.path));
    }
}

/// The running client; it is killed when this is dropped.
struct Client {
    child: Child,
}

impl Client {
    /// Waits for the client to end, checking it every [`NAP`]. It is killed when `self` is dropped,
    /// so also on every error.
    fn wait(mut self, limits: Limits, stop: &AtomicBool) -> Result<ExitStatus, FetchError> {
        self.bound(limits.bytes);
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => {}
                Err(source) => {
                    let what = "cannot wait for debuginfod-find";
                    return Err(FetchError::Failed { what, source });
                }
            }
            if stop.load(Ordering::Relaxed) {
                return Err(FetchError::Stopped);
            }
            if began.elapsed() > limits.time {
                return Err(FetchError::TooSlow(limits.time));
            }
            thread::sleep(NAP);
        }
    }

    /// Limits the size of the file. The client asks a server for the size; a server need not
    /// answer, nor tell the truth, and compressed bytes may expand.
    fn bound(&self, bytes: u64) {
        let limit = Rlimit {
            current: Some(bytes),
            maximum: Some(bytes),
        };
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // An error means that it has already ended.
        _ = rustix::process::prlimit(pid, Resource::Fsize, limit);
        // Lowest priority, after everything that is being profiled.
        _ = rustix::process::setpriority_process(pid, 19);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Checks whether the file is the debug file of that build. It is opened as an untrusted file: no
/// link is followed, and a pipe does not block.
fn check(
    came: &Path,
    rights: &UserRights,
    build_id: &[u8],
    bytes_max: u64,
) -> Result<(), FetchError> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let open = || File::options().read(true).custom_flags(flags).open(came);
    let file = rights.run(open).map_err(|_| FetchError::Wrong)?;
    let len = file.metadata().map_or(u64::MAX, |metadata| metadata.len());
    if len > bytes_max {
        return Err(FetchError::TooLarge(bytes_max));
    }
    // A server may send anything, so a reader looks at it, with the rights of the user.
    let file = OwnedFd::from(file);
    let source = FileSource {
        file: Some(&file),
        ..FileSource::new(came)
    };
    let files = probe::files::of_user().with_remote(RemoteFiles::Open);
    let summary = files.open_summarized(&source).and_then(|(_, told)| told);
    if summary.is_ok_and(|summary| summary.build_id.as_deref() == Some(build_id)) {
        Ok(())
    } else {
        Err(FetchError::Wrong)
    }
}

/// Moves a checked file into the cache atomically.
fn put(came: &Path, place: &Path) -> io::Result<()> {
    if let Some(directory) = place.parent() {
        let mut make = fs::DirBuilder::new();
        make.mode(0o700).recursive(true).create(directory)?;
    }
    // Both paths are on one file system, so other processes see the whole file or nothing.
    fs::rename(came, place)
}

#[cfg(test)]
mod tests;
