//! Arguments of questions: where samples are, which are selected, and the format of the answer.

use crate::dates;
use crate::engine::{Address, Bounds, Span};
use crate::failure::Failure;
use crate::sql::{Column, Selection};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Default of the maximum number of sample rows. More take minutes of two CPUs for each question,
/// and should be handled by several machines.
const ROWS_MAX: &str = "2G";

/// Maximum number of rows of a table that may be shown.
const TOP_MAX: usize = 1_000_000;

/// Default of the engine's memory: enough to group what 2 G rows have, with temporary files for the
/// rest.
const MEMORY: &str = "1G";

/// Default of what samples count: proftop's `on-cpu`.
const EVENT: &str = "cpu";

/// Where samples are, and of what time.
#[derive(Debug, Args)]
pub struct Source {
    /// The folder or the object storage (s3://BUCKET/PREFIX) that the sink `parquet` writes into
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// What runs the SQL: embedded; clickhouse+http://HOST:PORT[/DATABASE], which needs no DIR; spark, ballista and
    /// duckdb only with --print
    #[arg(long, value_name = "ENGINE", default_value = "embedded", value_parser = read_engine)]
    pub engine: EngineName,
    /// Only windows that begin then or later: 1h is an hour ago (s, m, h, d), or a time in UTC (2026-11-21T14:03)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only windows that begin before that time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Print the SQL, and run nothing
    #[arg(long)]
    pub print: bool,
    /// A file with the token for the engine's server: `Basic …` with user and password in base64, or another one
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The certificates by which the engine's server is known, instead of those of the system
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// The most memory of the embedded engine; what needs more goes to temporary files
    #[arg(long, value_name = "BYTES", default_value = MEMORY, value_parser = read_size)]
    memory: u64,
    /// The most rows of samples that the embedded engine reads
    #[arg(long, value_name = "ROWS", default_value = ROWS_MAX, value_parser = read_rows)]
    rows_max: u64,
}

/// What all questions have.
#[derive(Debug, Args)]
pub struct Asked {
    #[command(flatten)]
    pub source: Source,
    /// What samples count
    #[arg(long, value_name = "EVENT", default_value = EVENT)]
    event: String,
    /// Only this host; may be given several times, as may those below
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Only this service
    #[arg(long, value_name = "NAME")]
    service: Vec<String>,
    /// Only this namespace
    #[arg(long, value_name = "NAME")]
    namespace: Vec<String>,
    /// Only this version
    #[arg(long, value_name = "VERSION")]
    version: Vec<String>,
    /// Only this container (the first twelve digits of its id)
    #[arg(long, value_name = "ID")]
    container: Vec<String>,
}

/// What the answer looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Csv,
    Json,
}

/// What runs the SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineName {
    Embedded,
    ClickHouse(Address),
    Spark,
    Ballista,
    DuckDb,
}

impl EngineName {
    /// Returns its name on the command line.
    pub fn word(&self) -> &'static str {
        match self {
            EngineName::Embedded => "embedded",
            EngineName::ClickHouse(_) => "clickhouse",
            EngineName::Spark => "spark",
            EngineName::Ballista => "ballista",
            EngineName::DuckDb => "duckdb",
        }
    }
}

impl Source {
    /// Returns the folder; an error if none was specified.
    pub fn folder(&self) -> Result<&Path, Failure> {
        self.dir.as_deref().ok_or_else(|| {
            Failure::usage("a folder is missing: the one that the sink `parquet` writes into")
        })
    }

    /// Returns the limits of the embedded engine.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            memory_bytes: usize::try_from(self.memory).unwrap_or(usize::MAX),
            rows_max: self.rows_max,
        }
    }

    /// Returns the time range; relative times are converted.
    pub fn span(&self) -> Result<Span, Failure> {
        let now = dates::now_ms();
        let time = |text: &Option<String>| {
            let read = text.as_deref().map(|it| dates::read(it, now));
            read.transpose().map_err(Failure::usage)
        };
        let span = Span {
            since_ms: time(&self.since)?,
            until_ms: time(&self.until)?,
        };
        match (span.since_ms, span.until_ms) {
            (Some(since), Some(until)) if since >= until => {
                Err(Failure::usage("--since is not before --until"))
            }
            _ => Ok(span),
        }
    }
}

impl Asked {
    /// Returns what is asked of a folder by names and values, as an address has them. The names are
    /// those of the options. The error is a sentence.
    pub fn of_folder(dir: PathBuf, values: Vec<(String, String)>) -> Result<Self, String> {
        let mut asked = Self {
            source: Source {
                dir: Some(dir),
                engine: EngineName::Embedded,
                since: None,
                until: None,
                print: false,
                token_file: None,
                ca: None,
                memory: read_size(MEMORY)?,
                rows_max: read_rows(ROWS_MAX)?,
            },
            event: EVENT.into(),
            host: Vec::new(),
            service: Vec::new(),
            namespace: Vec::new(),
            version: Vec::new(),
            container: Vec::new(),
        };
        for (name, value) in values {
            match &*name {
                "since" => asked.source.since = Some(value),
                "until" => asked.source.until = Some(value),
                "event" => asked.event = value,
                "host" => asked.host.push(value),
                "service" => asked.service.push(value),
                "namespace" => asked.namespace.push(value),
                "version" => asked.version.push(value),
                "container" => asked.container.push(value),
                other => {
                    return Err(format!(
                        "{other:?} is not one of since, until, event, host, service, namespace, version, \
                         container, function (an & in a value is %26)"
                    ));
                }
            }
        }
        Ok(asked)
    }

    /// Returns the selected samples.
    pub fn selection(&self) -> Result<Selection, Failure> {
        crate::sql::check(&self.event)?;
        let span = self.source.span()?;
        let mut selection = Selection {
            // proftop itself says `on-cpu`.
            event: match self.event.as_str() {
                "on-cpu" => EVENT.into(),
                event => event.into(),
            },
            since_ms: span.since_ms,
            until_ms: span.until_ms,
            values: Vec::new(),
        };
        for (column, values) in [
            (Column::Host, &self.host),
            (Column::Service, &self.service),
            (Column::Namespace, &self.namespace),
            (Column::Version, &self.version),
            (Column::Container, &self.container),
        ] {
            for value in values {
                selection.add(column, value)?;
            }
        }
        Ok(selection)
    }
}

/// Returns the time range of a selection.
pub fn span(selection: &Selection) -> Span {
    Span {
        since_ms: selection.since_ms,
        until_ms: selection.until_ms,
    }
}

fn read_engine(text: &str) -> Result<EngineName, String> {
    for engine in [
        EngineName::Embedded,
        EngineName::Spark,
        EngineName::Ballista,
        EngineName::DuckDb,
    ] {
        if engine.word() == text {
            return Ok(engine);
        }
    }
    if let Some(url) = text.strip_prefix("clickhouse+") {
        return Address::read(url).map(EngineName::ClickHouse);
    }
    Err("it is embedded, clickhouse+https://HOST:PORT, spark, ballista or duckdb".into())
}

/// Parses the number of shown rows of a table.
pub fn read_top(text: &str) -> Result<usize, String> {
    let rows = text.parse().ok().filter(|it| (1..=TOP_MAX).contains(it));
    rows.ok_or_else(|| format!("write a number from 1 to {TOP_MAX}"))
}

/// Parses a number of bytes, with K, M or G for powers of 1024.
fn read_size(text: &str) -> Result<u64, String> {
    let bytes = read_number(text, 1024)?;
    // With less memory nothing can be grouped.
    if bytes < 16 << 20 {
        return Err("16M is the least".into());
    }
    Ok(bytes)
}

/// Parses a number of rows, with K, M or G for powers of 1000.
fn read_rows(text: &str) -> Result<u64, String> {
    read_number(text, 1000)
}

fn read_number(text: &str, step: u64) -> Result<u64, String> {
    let units = [("K", step), ("M", step * step), ("G", step * step * step)];
    let mut found = (text, 1);
    for (unit, factor) in units {
        if let Some(number) = text.strip_suffix(unit) {
            found = (number, factor);
        }
    }
    let number: Option<u64> = found.0.parse().ok();
    let number = number.and_then(|it| it.checked_mul(found.1));
    number.ok_or_else(|| "write a number such as 500M or 2G".into())
}
