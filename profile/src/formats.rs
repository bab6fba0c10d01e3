//! *File formats*: the same profile, as others write and read it.
//!
//! Reading gives a [`Store`](crate::Store), whatever the format; writing takes a
//! [`View`](crate::View) (everything) or a [`Selection`](crate::Selection)
//! (what a query asks for). What a format cannot hold it says with
//! [`Format::loses`] before anything is written.
//!
//! - [`wire`]: numbers and strings as bytes, and reading them from strangers
//! - [`pft`]: ours; everything, written while recording
//! - [`folded`]: one line a stack, for flame graph tools
//! - [`pprof`]: whole stacks with addresses and lines, for `go tool pprof` and
//!   services that keep profiles
//! - [`speedscope`], [`firefox`]: JSON for viewers in the browser
//! - [`perf_script`], [`perf_data`]: text and records of Linux' perf; only read
//! - [`html`], [`svg`]: a flame graph as a page or a picture; only written
//! - [`trace`]: what ran when, for viewers of traces; only written
//! - [`open`]: reading a file whatever its format is
//! - [`import`]: what readers of other tools' files have in common
//! - [`json`]: strings and columns of JSON

pub mod firefox;
pub mod folded;
pub mod html;
pub(crate) mod import;
mod json;
mod open;
pub mod perf_data;
mod perf_script;
pub mod pft;
pub mod pprof;
pub mod speedscope;
pub mod svg;
pub mod trace;
mod wire;

pub use open::{Opened, read, read_metric};

use crate::query::GroupBy;
use crate::{Selection, Store};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;

/// The formats that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Pft,
    Folded,
    Pprof,
    Speedscope,
    Firefox,
    Trace,
    Html,
    Svg,
}

impl Format {
    pub const ALL: [Format; 8] = [
        Format::Pft,
        Format::Folded,
        Format::Pprof,
        Format::Speedscope,
        Format::Firefox,
        Format::Trace,
        Format::Html,
        Format::Svg,
    ];

    /// The word for it on a command line.
    pub fn word(self) -> &'static str {
        match self {
            Format::Pft => "pft",
            Format::Folded => "folded",
            Format::Pprof => "pprof",
            Format::Speedscope => "speedscope",
            Format::Firefox => "firefox",
            Format::Trace => "trace",
            Format::Html => "html",
            Format::Svg => "svg",
        }
    }

    /// By the end of a file's name.
    pub fn of_path(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = if is_gzipped(path) && !name.ends_with(".pb.gz") {
            &name[..name.len() - 3]
        } else {
            &name
        };
        let ends = |end: &[&str]| end.iter().any(|end| name.ends_with(end));
        Some(match () {
            () if ends(&[".pft"]) => Format::Pft,
            () if ends(&[".folded", ".collapsed"]) => Format::Folded,
            () if ends(&[".pb.gz", ".pprof"]) => Format::Pprof,
            () if ends(&[".speedscope.json"]) => Format::Speedscope,
            () if ends(&[".firefox.json", ".profile.json"]) => Format::Firefox,
            () if ends(&[".trace.json", ".perfetto.json"]) => Format::Trace,
            () if ends(&[".html"]) => Format::Html,
            () if ends(&[".svg"]) => Format::Svg,
            () => return None,
        })
    }

    /// What it cannot hold.
    pub fn loses(self) -> &'static [&'static str] {
        match self {
            Format::Pft => &[],
            Format::Folded => &[
                "time",
                "CPU",
                "process and thread numbers",
                "modules and addresses",
                "source lines",
                "loss counters",
            ],
            Format::Pprof => &[
                "when in its time a sample was taken",
                "CPU",
                "control groups and users",
                "why a function has no name, and where it begins",
            ],
            Format::Speedscope => &[
                "when a sample was taken",
                "CPU",
                "process and thread numbers",
                "addresses",
                "why a function has no name",
                "loss counters",
            ],
            Format::Firefox => &[
                "CPU",
                "why a function has no name, and where it begins",
                "control groups and users",
                "loss counters",
            ],
            Format::Trace => &[
                "samples: what was seen twice in a row is taken to have run between",
                "modules' build-ids and addresses",
                "source lines",
                "loss counters",
            ],
            Format::Svg => &[
                "when a sample was taken",
                "CPU",
                "process and thread numbers",
                "addresses",
                "source lines",
                "loss counters",
                "what is less than a ten-thousandth",
            ],
            Format::Html => &[
                "when a sample was taken",
                "CPU",
                "process and thread numbers",
                "addresses",
                "source lines",
                "loss counters",
                "what is less than a fifty-thousandth",
            ],
        }
    }
}

impl Format {
    /// Whether it holds what each thread did; else it can be asked to, in the place
    /// of what all threads of a name did.
    pub fn has_threads(self) -> bool {
        match self {
            Format::Pft | Format::Pprof | Format::Firefox | Format::Trace => true,
            Format::Folded | Format::Speedscope | Format::Html | Format::Svg => false,
        }
    }

    /// Whether it tells which build of each file it was.
    pub fn has_build_ids(self) -> bool {
        match self {
            Format::Pft | Format::Pprof | Format::Firefox => true,
            Format::Folded | Format::Speedscope | Format::Trace | Format::Html | Format::Svg => {
                false
            }
        }
    }

    /// Writes what a query asks for; of `.pft` everything.
    pub fn write(self, selection: &Selection, out: impl Write) -> Result<(), FormatError> {
        self.write_by(GroupBy::Comm, selection, out)
    }

    /// As [`Format::write`]; what has no threads tells stacks apart by `by`.
    fn write_by(
        self,
        by: GroupBy,
        selection: &Selection,
        out: impl Write,
    ) -> Result<(), FormatError> {
        match self {
            Format::Pft => pft::write(selection.view(), out),
            Format::Folded => folded::write_by(selection, by, out),
            Format::Pprof => pprof::write(selection, out),
            Format::Speedscope => speedscope::write(selection, by, out),
            Format::Firefox => firefox::write(selection, out),
            Format::Trace => trace::write(selection, out),
            Format::Html => html::write(selection, by, out),
            Format::Svg => svg::write(selection, by, out),
        }
    }

    /// As [`Format::write`], packed for a name that ends in `.gz`.
    pub fn write_as(
        self,
        path: &Path,
        by_thread: bool,
        selection: &Selection,
        out: impl Write,
    ) -> Result<(), FormatError> {
        let by = if by_thread {
            GroupBy::Thread
        } else {
            GroupBy::Comm
        };
        // pprof always is.
        if !is_gzipped(path) || self == Format::Pprof {
            return self.write_by(by, selection, out);
        }
        let mut packed = GzEncoder::new(out, Compression::new(6));
        self.write_by(by, selection, &mut packed)?;
        packed.finish()?.flush()?;
        Ok(())
    }
}

fn is_gzipped(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("gz"))
}

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("not a profile that proftop reads")]
    Unknown,
    #[error("made by a newer proftop: version {0} of the format, this one reads up to {1}")]
    Newer(u16, u16),
    /// With where.
    #[error("damaged: {0}")]
    Damaged(String),
    /// It says what it is, and that is not read.
    #[error("{0}")]
    Unsupported(&'static str),
    #[error("too large: {0}")]
    TooLarge(&'static str),
    /// Which was wanted, and those that there are.
    #[error("it does not count {0}, but {1}")]
    NoMetric(String, String),
}

impl FormatError {
    fn no_metric(wanted: &str, there: &[String]) -> Self {
        let wanted = wire::clean(wanted);
        FormatError::NoMetric(wanted, there.join(", "))
    }
}

/// A file that may count several things, read by one of them.
#[derive(Debug)]
pub struct Metered {
    pub store: Store,
    /// What was left out, in sentences.
    pub notes: Vec<String>,
    /// The names of all that it counts, at least one.
    pub metrics: Vec<String>,
}
