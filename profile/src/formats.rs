//! *File formats*: reading and writing profiles as files of proftop and of other tools.
//!
//! Reading gives a [`Store`](crate::Store), whatever the format; writing takes a
//! [`View`](crate::View) (everything) or a [`Selection`](crate::Selection) (the result of a query).
//! [`Format::loses`] says in advance what a format cannot hold.
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

    /// The name of the format on a command line.
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

    /// The format that the end of a file's name stands for, also with `.gz` or `.zst` behind it;
    /// `None` if no format has this ending.
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

    /// What the format cannot hold, in words for the user.
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
    /// Whether the format holds each thread separately. If not, it groups stacks by thread name,
    /// and can be made to group by thread instead ([`GroupBy`]).
    pub fn has_threads(self) -> bool {
        match self {
            Format::Pft | Format::Pprof | Format::Firefox | Format::Trace => true,
            Format::Folded | Format::Speedscope | Format::Html | Format::Svg => false,
        }
    }

    /// Whether the format holds the counts of probes.
    pub fn has_probes(self) -> bool {
        match self {
            Format::Pft | Format::Pprof | Format::Firefox | Format::Trace => true,
            Format::Folded | Format::Speedscope | Format::Html | Format::Svg => false,
        }
    }

    /// Whether its files are binary and cannot be shown on a terminal.
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

    /// Whether the format holds the build-id of each file.
    pub fn has_build_ids(self) -> bool {
        match self {
            Format::Pft | Format::Pprof | Format::Firefox => true,
            Format::Folded | Format::Speedscope | Format::Trace | Format::Html | Format::Svg => {
                false
            }
        }
    }

    /// Writes the result of a query; `.pft` always holds the whole view.
    pub fn write(self, selection: &Selection, mut out: impl Write) -> Result<(), FormatError> {
        self.write_by(GroupBy::Comm, selection, &mut out)
    }

    /// Writes as [`Format::write`] does; formats without threads group stacks by `by`.
    fn write_by(
        self,
        by: GroupBy,
        selection: &Selection,
        // Takes `dyn Write`, so that all formats are compiled once and not once for each kind of
        // output.
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

    /// Writes as [`Format::write`] does, packed if the file name ends in `.gz` or `.zst`.
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
            // pprof files are gzipped by their own writer, as their readers expect.
            Some(Packing::Gzip) if self == Format::Pprof => self.write_by(by, selection, &mut out),
            Some(packing) => {
                let mut bytes = Vec::new();
                self.write_by(by, selection, &mut bytes)?;
                packing.write(&bytes, out)
            }
            None => self.write_by(by, selection, &mut out),
        }
    }

    /// The endings of its file names, the usual one first.
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

/// How a whole file is compressed, as the end of its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// `.gz`
    Gzip,
    /// `.zst`
    Zstd,
}

impl Packing {
    /// The packing that the end of a file's name asks for; `None` if the file is written unpacked.
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

    /// Packs `bytes`, a complete file, and writes the result.
    fn write(self, bytes: &[u8], mut out: impl Write) -> Result<(), FormatError> {
        match self {
            Packing::Gzip => {
                let mut packed = GzEncoder::new(out, Compression::new(6));
                packed.write_all(bytes)?;
                packed.finish()?.flush()?;
            }
            // `compress_to_vec` panics on write errors; writing to memory has none.
            Packing::Zstd => out.write_all(&compress_to_vec(bytes, CompressionLevel::Fastest))?,
        }
        Ok(())
    }
}

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Reading or writing the underlying file failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file is empty.
    #[error("it is empty")]
    Empty,
    /// The first bytes belong to no format that can be read.
    #[error("it is not a profile that proftop can read")]
    Unknown,
    /// The file was written by a later version of `.pft`: the file's version, and the newest that
    /// can be read.
    #[error("made by a newer proftop: version {0} of the format, this one reads up to {1}")]
    Newer(u16, u16),
    /// The file is damaged; the text says where.
    #[error("damaged: {0}")]
    Damaged(String),
    /// The format was recognized, but it cannot be read; the text names it.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The file exceeds a limit; the text says which.
    #[error("too large: {0}")]
    TooLarge(&'static str),
    /// The file does not count the wanted metric: its name, and the names of the metrics that the
    /// file has.
    #[error("it does not count {0}, but {1}")]
    NoMetric(String, String),
}

impl FormatError {
    fn no_metric(wanted: &str, there: &[String]) -> Self {
        let wanted = wire::clean(wanted);
        FormatError::NoMetric(wanted, there.join(", "))
    }
}

/// The contents of a file that may count several metrics, read by one of them.
#[derive(Debug)]
pub struct Metered {
    /// The samples, weighted by the chosen metric.
    pub store: Store,
    /// Sentences about what was left out.
    pub notes: Vec<String>,
    /// The names of all metrics of the file, at least one.
    pub metrics: Vec<String>,
}
