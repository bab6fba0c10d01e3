//! The URL of a place in object storage: `s3://BUCKET` or `s3://BUCKET/PREFIX`.

use crate::failure::safe;
use object_store::path::Path as Key;
use std::fmt;
use std::path::Path;

const SCHEME: &str = "s3://";

/// Maximum length of a bucket's name, which old ones have.
const NAME_MAX: usize = 255;

/// A bucket, and the prefix of all keys in it that are ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketUrl {
    pub name: String,
    /// Without slashes at its ends; empty for the whole bucket.
    pub prefix: String,
}

impl BucketUrl {
    /// Whether a text or a path is meant as such a URL. A folder of that name is written `./s3:`.
    pub fn is_meant(path: &Path) -> bool {
        path.as_os_str()
            .as_encoded_bytes()
            .starts_with(SCHEME.as_bytes())
    }

    /// Parses a URL. The error is a sentence.
    pub fn read(text: &str) -> Result<Self, String> {
        let place = text
            .strip_prefix(SCHEME)
            .ok_or("a URL of object storage begins with s3://")?;
        let (name, prefix) = place.split_once('/').unwrap_or((place, ""));
        let is_letter = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.');
        if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(is_letter) {
            return Err(format!(
                "\"{}\" is no name of a bucket: write s3://BUCKET/PREFIX, without keys or passwords",
                safe(name)
            ));
        }
        let prefix = prefix.trim_matches('/');
        Key::parse(prefix).map_err(|_| {
            format!(
                "\"{}\" is no prefix of keys: it has empty parts, . or ..",
                safe(prefix)
            )
        })?;
        if prefix.chars().any(char::is_control) {
            return Err("a prefix of keys is one line".into());
        }
        Ok(Self {
            name: name.into(),
            prefix: prefix.into(),
        })
    }
}

impl fmt::Display for BucketUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.name)?;
        if !self.prefix.is_empty() {
            write!(f, "/{}", self.prefix)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_bucket_and_a_prefix() {
        let read = |text: &str| {
            let url = BucketUrl::read(text).unwrap();
            (url.to_string(), url.name, url.prefix)
        };
        let parts = |a: &str, b: &str, c: &str| (a.into(), b.into(), c.into());
        assert_eq!(read("s3://b"), parts("s3://b", "b", ""));
        assert_eq!(read("s3://b/"), parts("s3://b", "b", ""));
        assert_eq!(
            read("s3://b.x-1/a/v1/"),
            parts("s3://b.x-1/a/v1", "b.x-1", "a/v1")
        );
        for (text, expected) in [
            ("gs://b", "begins with s3://"),
            ("s3://", "no name of a bucket"),
            ("s3:///a", "no name of a bucket"),
            ("s3://key:secret@b", "no name of a bucket"),
            ("s3://b/a//c", "no prefix"),
            ("s3://b/../c", "no prefix"),
        ] {
            let mistake = BucketUrl::read(text).unwrap_err();
            assert!(mistake.contains(expected), "{text}: {mistake}");
        }
        assert!(BucketUrl::is_meant(Path::new("s3://b")));
        assert!(!BucketUrl::is_meant(Path::new("./s3://b")));
    }
}
