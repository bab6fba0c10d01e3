//! Parses addresses: `pyroscope+https://HOST[:PORT][/PATH]?q=SELECTOR&type=TYPE&from=TIME&until=TIME`
//! and `parquet+DIR?since=TIME&host=NAME&function=NAME`, where DIR may be `s3://BUCKET/PREFIX`. Users write selectors as they are, with `{`,
//! `"` and `}`, which no URL has: so an address is not parsed as one.

use crate::bucket::BucketUrl;
use crate::config::is_this_machine;
use crate::dates;
use std::path::{Path, PathBuf};

/// The profile type that is asked for if none is given: CPU time.
const TYPE_DEFAULT: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

/// The time if none is given.
const FROM_DEFAULT: &str = "now-1h";
const UNTIL_DEFAULT: &str = "now";

/// Maximum length of the whole.
const BYTES_MAX: usize = 8192;

/// What to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Pyroscope(Pyroscope),
    Folder(Folder),
}

/// What is asked of which server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pyroscope {
    /// The URL of the server, without a slash at its end.
    pub url: String,
    /// The selector of labels, for example `{service_name="api"}`.
    pub selector: String,
    pub profile_type: String,
    /// The time, in ms since 1970.
    pub from_ms: i64,
    pub until_ms: i64,
}

/// What is asked of which folder of Parquet, or of which prefix in object storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    pub dir: PathBuf,
    /// Only stacks that have this function.
    pub function: Option<String>,
    /// Names of options, and their values.
    pub values: Vec<(String, String)>,
}

impl Address {
    /// Parses the text. The error is a sentence without the text.
    pub fn read(text: &str, now_ms: i64) -> Result<Self, String> {
        if text.len() > BYTES_MAX || text.chars().any(char::is_control) {
            return Err(format!("it is one line of {BYTES_MAX} bytes at most"));
        }
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        let values = || query.split('&').filter(|it| !it.is_empty()).map(value);
        if let Some(url) = place.strip_prefix("pyroscope+") {
            let values = values().collect::<Result<_, _>>()?;
            Pyroscope::read(url, values, now_ms).map(Self::Pyroscope)
        } else if let Some(dir) = place.strip_prefix("parquet+") {
            Folder::read(dir, values().collect::<Result<_, _>>()?).map(Self::Folder)
        } else {
            Err(
                "write pyroscope+https://HOST/?q={service_name=\"x\"}&from=now-1h or parquet+DIR, as \
                 nothing else is known"
                    .into(),
            )
        }
    }
}

/// Parses a part of what is behind the question mark.
fn value(part: &str) -> Result<(String, String), String> {
    let (key, value) = part
        .split_once('=')
        .ok_or_else(|| format!("{part:?} is no KEY=VALUE (an & in a value is %26)"))?;
    Ok((key.into(), decode(value)?))
}

impl Pyroscope {
    fn read(url: &str, values: Vec<(String, String)>, now_ms: i64) -> Result<Self, String> {
        let mut address = Self {
            url: server(url)?,
            selector: "{}".into(),
            profile_type: TYPE_DEFAULT.into(),
            from_ms: 0,
            until_ms: 0,
        };
        let (mut from, mut until) = (FROM_DEFAULT.to_string(), UNTIL_DEFAULT.to_string());
        for (key, value) in values {
            match &*key {
                "q" => address.selector = value,
                "type" => address.profile_type = value,
                "from" => from = value,
                "until" => until = value,
                other => {
                    return Err(format!(
                        "{other:?} is not one of q, type, from, until (an & in a value is %26)"
                    ));
                }
            }
        }
        if !(address.selector.starts_with('{') && address.selector.ends_with('}')) {
            return Err("q is a selector of labels in braces, such as {service_name=\"x\"}".into());
        }
        if address.profile_type.split(':').count() != 5 {
            return Err(format!(
                "type has five parts with colons, such as {TYPE_DEFAULT}"
            ));
        }
        address.from_ms = time(&from, now_ms)?;
        address.until_ms = time(&until, now_ms)?;
        if address.from_ms >= address.until_ms {
            return Err("it ends before it begins".into());
        }
        Ok(address)
    }
}

impl Folder {
    fn read(dir: &str, values: Vec<(String, String)>) -> Result<Self, String> {
        if BucketUrl::is_meant(Path::new(dir)) {
            BucketUrl::read(dir)?;
        } else if dir.contains("://") {
            return Err(
                "of object storage parquet+s3://BUCKET/PREFIX is read, and nothing else".into(),
            );
        }
        if dir.is_empty() {
            return Err("write parquet+DIR, the folder that the sink `parquet` writes into".into());
        }
        let (function, values): (Vec<_>, Vec<_>) =
            values.into_iter().partition(|(key, _)| key == "function");
        if function.len() > 1 {
            return Err("function stands once".into());
        }
        Ok(Self {
            dir: dir.into(),
            function: function.into_iter().next().map(|(_, name)| name),
            values,
        })
    }
}

/// Checks the address of the server.
fn server(url: &str) -> Result<String, String> {
    let uri: ureq::http::Uri = url.parse().map_err(|_| "it is no URL".to_string())?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err("write pyroscope+https://HOST".into());
    };
    if authority.as_str().contains('@') {
        return Err("it has a password in it: use --token-file".into());
    }
    match scheme {
        "https" => {}
        "http" if is_this_machine(authority.host()) => {}
        "http" => {
            return Err(
                "http:// is what everybody on the way can read and change: use https://, or a tunnel \
                 to this machine"
                    .into(),
            );
        }
        _ => return Err("write pyroscope+https:// or pyroscope+http://".into()),
    }
    Ok(url.trim_end_matches('/').into())
}

/// Parses a time as Grafana writes it, `now-1h`, or as all commands here take it.
fn time(text: &str, now_ms: i64) -> Result<i64, String> {
    dates::read(text.strip_prefix("now-").unwrap_or(text), now_ms)
}

/// Replaces `%26` and the like.
fn decode(text: &str) -> Result<String, String> {
    let mistake = || format!("{text:?} has a % without two digits of UTF-8 behind it");
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).ok_or_else(mistake)?;
        if !digits.bytes().all(|it| it.is_ascii_hexdigit()) {
            return Err(mistake());
        }
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| mistake())?);
        bytes.extend(rest.as_bytes());
    }
    let decoded = String::from_utf8(bytes).map_err(|_| mistake())?;
    if decoded.chars().any(char::is_control) {
        return Err(mistake());
    }
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_269_600_000;

    #[test]
    fn an_address_is_read_as_users_write_it() {
        let read = |text: &str| match Address::read(text, NOW).unwrap() {
            Address::Pyroscope(address) => address,
            Address::Folder(folder) => panic!("{folder:?}"),
        };
        let address = read(
            "pyroscope+https://p.example:4040/base/?q={service_name=\"a b\", x=~\"1|2%26\"}&from=now-2h&until=1h",
        );
        assert_eq!(address.url, "https://p.example:4040/base");
        assert_eq!(address.selector, "{service_name=\"a b\", x=~\"1|2&\"}");
        assert_eq!(address.profile_type, TYPE_DEFAULT);
        let hour = 3_600_000;
        assert_eq!(
            (address.from_ms, address.until_ms),
            (NOW - 2 * hour, NOW - hour)
        );
        let address = read("pyroscope+http://127.0.0.1:1?type=a:b:c:d:e");
        assert_eq!(
            (&*address.selector, &*address.profile_type),
            ("{}", "a:b:c:d:e")
        );
        assert_eq!((address.from_ms, address.until_ms), (NOW - hour, NOW));
    }

    #[test]
    fn an_address_of_a_folder_has_what_options_have() {
        let read = |text: &str| match Address::read(text, NOW).unwrap() {
            Address::Folder(folder) => folder,
            Address::Pyroscope(address) => panic!("{address:?}"),
        };
        let folder = read("parquet+/mnt/a=b & c?since=1h&host=a&host=b%26&function=f<a, b>::g");
        assert_eq!(folder.dir, PathBuf::from("/mnt/a=b & c"));
        assert_eq!(folder.function.as_deref(), Some("f<a, b>::g"));
        let values = [("since", "1h"), ("host", "a"), ("host", "b&")];
        assert_eq!(folder.values, values.map(|(a, b)| (a.into(), b.into())));
        assert_eq!(read("parquet+profiles").dir, PathBuf::from("profiles"));
        let bucket = read("parquet+s3://bucket/v1?since=1h");
        assert_eq!(bucket.dir, PathBuf::from("s3://bucket/v1"));
    }

    #[test]
    fn each_mistake_is_one_sentence() {
        for (text, expected) in [
            ("parquet+", "write parquet+DIR"),
            (
                "parquet+gs://bucket/x",
                "parquet+s3://BUCKET/PREFIX is read",
            ),
            ("parquet+s3://key:secret@bucket/x", "no name of a bucket"),
            ("parquet+/mnt?host", "no KEY=VALUE"),
            ("parquet+/mnt?function=a&function=b", "stands once"),
            ("https://p.example/", "write pyroscope+https://HOST"),
            ("pyroscope+ftp://p.example/", "write pyroscope+https://"),
            ("pyroscope+http://p.example/", "use https://"),
            ("pyroscope+https://u:p@p.example/", "--token-file"),
            ("pyroscope+https://", "no URL"),
            ("pyroscope+https://p/?q", "no KEY=VALUE"),
            ("pyroscope+https://p/?q=x", "in braces"),
            ("pyroscope+https://p/?q={a=\"1&2\"}", "%26"),
            ("pyroscope+https://p/?q={%2}", "two digits"),
            ("pyroscope+https://p/?q={%ff}", "two digits"),
            ("pyroscope+https://p/?q={%+1}", "two digits"),
            ("pyroscope+https://p/?type=cpu", "five parts"),
            ("pyroscope+https://p/?from=soon", "is no time"),
            (
                "pyroscope+https://p/?from=1h&until=2h",
                "ends before it begins",
            ),
        ] {
            let mistake = Address::read(text, NOW).unwrap_err();
            assert!(mistake.contains(expected), "{text}: {mistake}");
        }
    }
}
