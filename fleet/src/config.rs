//! The configuration of the shipper: a file of TOML, of which each mistake is one sentence.

/// The file as it is written, before it is checked.
mod written;

pub use written::is_this_machine;

use crate::failure::{Failure, shown};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the shipper does.
#[derive(Debug)]
pub struct Config {
    /// The folder into which the agent writes its windows.
    pub spool: PathBuf,
    /// Where the shipper remembers how far each sink is.
    pub state: PathBuf,
    pub labels: Labels,
    pub sinks: Vec<Sink>,
}

/// What is said of all windows of this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    /// Empty if it was not given.
    pub namespace: String,
    /// Empty if it was not given.
    pub cluster: String,
    pub version: Version,
}

/// What is taken for the version of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// This text; it may be empty.
    Text(String),
    /// The build-id of the program's file.
    BuildId,
}

impl Default for Version {
    fn default() -> Self {
        Version::Text(String::new())
    }
}

/// Somewhere to send windows to.
#[derive(Debug)]
pub struct Sink {
    /// Names its cursor, and the sink in messages: letters, digits, `-` and `_`.
    pub name: String,
    pub kind: Kind,
}

/// What a sink speaks.
#[derive(Debug)]
pub enum Kind {
    /// Pyroscope's push API.
    Pyroscope(Server),
    /// OpenTelemetry's protocol over HTTP.
    Otlp(Server),
    /// Parquet files in a folder.
    Parquet {
        dir: PathBuf,
        /// The windows of so much time are one file.
        roll: Duration,
    },
}

impl Kind {
    /// Its word in the configuration.
    pub fn word(&self) -> &'static str {
        match self {
            Kind::Pyroscope(_) => "pyroscope",
            Kind::Otlp(_) => "otlp",
            Kind::Parquet { .. } => "parquet",
        }
    }
}

/// A server that is spoken to over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Without a slash at its end.
    pub url: String,
    /// Goes into the header `X-Scope-OrgID`; empty: none.
    pub tenant: String,
    /// The file with the token of the header `Authorization`.
    pub token_file: Option<PathBuf>,
    /// The certificates by which the server is known, instead of those of the system.
    pub ca: Option<PathBuf>,
    /// The certificate and the private key by which the server knows this host.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// The longest file that is read.
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
