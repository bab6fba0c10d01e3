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
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::Write;
use std::path::Path;

/// The formats that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Our own format, which keeps everything: docs/pft.md.
    Pft,
    /// A line for each stack, its functions separated by `;`, and its samples.
    Folded,
    /// The format of `go tool pprof` and of many services.
    Pprof,
    /// JSON for <https://speedscope.app>.
    Speedscope,
    /// JSON for <https://profiler.firefox.com>.
    Firefox,
    /// Chrome's trace events, which Perfetto shows as well: what ran when.
    Trace,
    /// A page with a flame graph that works without a server.
    Html,
    /// A flame graph as a picture.
    Svg,
}

impl Format {
    /// All formats, in the order in which they are offered.
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

    /// By the end of a file's name, perhaps with `.gz` or `.zst` behind it.
    pub fn of_path(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let packing = Packing::of_path(path);
        let name = match packing {
            _ if name.ends_with(".pb.gz") => &name,
            Some(packing) => name.strip_suffix(packing.ending())?,
            None => &name,
        };
        let ends = |format: &Format| format.endings().iter().any(|end| name.ends_with(end));
        Format::ALL.into_iter().find(ends)
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

    /// Whether it holds what probes counted.
    pub fn has_probes(self) -> bool {
        match self {
            Format::Pft | Format::Pprof | Format::Firefox | Format::Trace => true,
            Format::Folded | Format::Speedscope | Format::Html | Format::Svg => false,
        }
    }

    /// Whether its files are bytes that no terminal shows, and not text.
    pub fn is_bytes(self) -> bool {
        match self {
            Format::Pft | Format::Pprof => true,
            Format::Folded
            | Format::Speedscope
            | Format::Firefox
            | Format::Trace
            | Format::Html
            | Format::Svg => false,
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
    pub fn write(self, selection: &Selection, mut out: impl Write) -> Result<(), FormatError> {
        self.write_by(GroupBy::Comm, selection, &mut out)
    }

    /// As [`Format::write`]; what has no threads tells stacks apart by `by`.
    fn write_by(
        self,
        by: GroupBy,
        selection: &Selection,
        // All formats are there once, and not once for each place that is written to.
        out: &mut dyn Write,
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

    /// As [`Format::write`], packed for a name that ends in `.gz` or `.zst`.
    pub fn write_as(
        self,
        path: &Path,
        by_thread: bool,
        selection: &Selection,
        mut out: impl Write,
    ) -> Result<(), FormatError> {
        let by = if by_thread {
            GroupBy::Thread
        } else {
            GroupBy::Comm
        };
        match Packing::of_path(path) {
            // pprof is packed by itself, as its readers expect it.
            Some(Packing::Gzip) if self == Format::Pprof => self.write_by(by, selection, &mut out),
            Some(packing) => {
                let mut bytes = Vec::new();
                self.write_by(by, selection, &mut bytes)?;
                packing.write(&bytes, out)
            }
            None => self.write_by(by, selection, &mut out),
        }
    }

    /// How the names of its files end: the usual end first.
    pub fn endings(self) -> &'static [&'static str] {
        match self {
            Format::Pft => &[".pft"],
            Format::Folded => &[".folded", ".collapsed"],
            Format::Pprof => &[".pb.gz", ".pprof"],
            Format::Speedscope => &[".speedscope.json"],
            Format::Firefox => &[".firefox.json", ".profile.json"],
            Format::Trace => &[".trace.json", ".perfetto.json"],
            Format::Html => &[".html"],
            Format::Svg => &[".svg"],
        }
    }
}

/// How a whole file is made smaller, told by the end of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// `.gz`
    Gzip,
    /// `.zst`
    Zstd,
}

impl Packing {
    /// `None` if the file is to be written as it is.
    pub fn of_path(path: &Path) -> Option<Packing> {
        let end = path.extension()?.to_str()?.to_ascii_lowercase();
        let all = [Packing::Gzip, Packing::Zstd];
        all.into_iter()
            .find(|packing| packing.ending().strip_prefix('.') == Some(end.as_str()))
    }

    fn ending(self) -> &'static str {
        match self {
            Packing::Gzip => ".gz",
            Packing::Zstd => ".zst",
        }
    }

    /// Packs bytes that are all there and writes them.
    fn write(self, bytes: &[u8], mut out: impl Write) -> Result<(), FormatError> {
        match self {
            Packing::Gzip => {
                let mut packed = GzEncoder::new(out, Compression::new(6));
                packed.write_all(bytes)?;
                packed.finish()?.flush()?;
            }
            // It panics where it cannot write, and memory it always can.
            Packing::Zstd => out.write_all(&compress_to_vec(bytes, CompressionLevel::Fastest))?,
        }
        Ok(())
    }
}

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Reading or writing failed below us.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// There is no byte in it.
    #[error("it is empty")]
    Empty,
    /// The first bytes are of no format that is read.
    #[error("it is not a profile that proftop can read")]
    Unknown,
    /// A later version of `.pft`: the file's, and the newest that is read.
    #[error("made by a newer proftop: version {0} of the format, this one reads up to {1}")]
    Newer(u16, u16),
    /// With where.
    #[error("damaged: {0}")]
    Damaged(String),
    /// It says what it is, and that is not read.
    #[error("{0}")]
    Unsupported(&'static str),
    /// A bound was reached; the text says which.
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
    /// The samples, in the metric that was asked for.
    pub store: Store,
    /// What was left out, in sentences.
    pub notes: Vec<String>,
    /// The names of all that it counts, at least one.
    pub metrics: Vec<String>,
}
