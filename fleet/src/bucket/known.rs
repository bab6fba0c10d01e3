//! A store that answers how large an object is without asking, for objects of which that is known.
//!
//! The engine asks it of each object before each statement. That would be a request each time; and
//! of an object that is gone, the engine would take the key for the name of a folder that is empty,
//! and leave its rows out in silence. Now it reads the object, and fails.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use object_store::aws::AmazonS3;
use object_store::path::Path as Key;
use object_store::{
    Attributes, CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// A store, and what is known of its objects.
#[derive(Debug)]
pub struct KnownStore {
    inner: AmazonS3,
    objects: Mutex<HashMap<Key, ObjectMeta>>,
}

impl KnownStore {
    pub fn new(inner: AmazonS3) -> Self {
        Self {
            inner,
            objects: Mutex::default(),
        }
    }

    /// Remembers what an answer has said of an object. Objects are replaced by equal ones only.
    pub fn add(&self, meta: &ObjectMeta) {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.insert(meta.location.clone(), meta.clone());
    }

    fn known(&self, key: &Key) -> Option<ObjectMeta> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.get(key).cloned()
    }
}

impl fmt::Display for KnownStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for KnownStore {
    async fn get_opts(&self, key: &Key, options: GetOptions) -> Result<GetResult> {
        if options.head
            && let Some(meta) = self.known(key)
        {
            return Ok(GetResult {
                payload: GetResultPayload::Stream(stream::empty().boxed()),
                range: 0..meta.size,
                meta,
                attributes: Attributes::default(),
            });
        }
        self.inner.get_opts(key, options).await
    }

    async fn get_ranges(&self, key: &Key, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(key, ranges).await
    }

    async fn put_opts(
        &self,
        key: &Key,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.inner.put_opts(key, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        key: &Key,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(key, options).await
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, Result<Key>>,
    ) -> BoxStream<'static, Result<Key>> {
        self.inner.delete_stream(keys)
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Key, to: &Key, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
