//! The configuration of the shipper: a TOML file. Each mistake is reported in one sentence.

/// Parses the file, and checks it.
mod written;

pub use written::is_this_machine;

use crate::bucket::BucketUrl;
use crate::failure::{Failure, shown};
use crate::schedule::Schedule;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The configuration of the shipper.
#[derive(Debug)]
pub struct Config {
    /// The folder into which the agent writes its windows.
    pub spool: PathBuf,
    /// The folder in which the shipper stores the position of each sink.
    pub state: PathBuf,
    pub labels: Labels,
    /// Which windows are sent.
    pub schedule: Schedule,
    /// How many windows that have waited are sent in the time in which one comes.
    pub catch_up: f64,
    pub sinks: Vec<Sink>,
}

/// The labels of all windows of this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    /// Empty if it was not given.
    pub namespace: String,
    /// Empty if it was not given.
    pub cluster: String,
    pub version: Version,
}

/// The source of a service's version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// This text, which may be empty.
    Text(String),
    /// The build-id of the program's file.
    BuildId,
}

impl Default for Version {
    fn default() -> Self {
        Version::Text(String::new())
    }
}

/// A destination of windows.
#[derive(Debug)]
pub struct Sink {
    /// The name of the sink in messages and of its state file: letters, digits, `-` and `_`.
    pub name: String,
    pub kind: Kind,
}

/// The protocol of a sink.
#[derive(Debug)]
pub enum Kind {
    /// Pyroscope's push API.
    Pyroscope(Server),
    /// OpenTelemetry's protocol over HTTP.
    Otlp(Server),
    /// Parquet files in a folder or in object storage.
    Parquet {
        to: Target,
        /// The time range of the windows in one file.
        roll: Duration,
    },
}

impl Kind {
    /// Returns its name in the configuration.
    pub fn word(&self) -> &'static str {
        match self {
            Kind::Pyroscope(_) => "pyroscope",
            Kind::Otlp(_) => "otlp",
            Kind::Parquet { .. } => "parquet",
        }
    }
}

/// Where files of Parquet are written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Folder(PathBuf),
    Bucket(BucketUrl),
}

/// A server that is accessed over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The URL, without a slash at its end.
    pub url: String,
    /// The value of the header `X-Scope-OrgID`; empty for none.
    pub tenant: String,
    /// The file with the token for the header `Authorization`.
    pub token_file: Option<PathBuf>,
    /// The certificates with which the server is verified, instead of those of the system.
    pub ca: Option<PathBuf>,
    /// The client certificate and its private key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Default of `catch_up`: with pauses that vary by a quarter, a server has three times its usual load at
/// most after an outage, and what waited in 30 minutes is sent within 25.
pub const CATCH_UP_DEFAULT: f64 = 2.5;

/// Maximum length of the file.
const BYTES_MAX: u64 = 1 << 20;

/// Reads and checks the file.
pub fn read(path: &Path) -> Result<Config, Failure> {
    let name = shown(path);
    let failed = |error: std::io::Error| Failure::usage(format!("cannot read {name}: {error}"));
    let length = std::fs::metadata(path).map_err(failed)?.len();
    if length > BYTES_MAX {
        return Err(Failure::usage(format!(
            "{name} is larger than 1 MB, and no configuration"
        )));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    written::check(&text).map_err(|mistake| Failure::usage(format!("{name}{mistake}")))
}

#[cfg(test)]
mod tests;
