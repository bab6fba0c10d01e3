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
//! - [`speedscope`]: JSON for a viewer in the browser; only written
//! - [`html`]: a flame graph as a page; only written
//! - [`json`]: the strings of both

pub mod folded;
pub mod html;
mod json;
pub mod pft;
pub mod pprof;
pub mod speedscope;
mod wire;

use std::path::Path;

/// The formats that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Pft,
    Folded,
    Pprof,
    Speedscope,
    Html,
}

impl Format {
    pub const ALL: [Format; 5] = [
        Format::Pft,
        Format::Folded,
        Format::Pprof,
        Format::Speedscope,
        Format::Html,
    ];

    /// The word for it on a command line.
    pub fn word(self) -> &'static str {
        match self {
            Format::Pft => "pft",
            Format::Folded => "folded",
            Format::Pprof => "pprof",
            Format::Speedscope => "speedscope",
            Format::Html => "html",
        }
    }

    /// By the end of a file's name.
    pub fn of_path(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let ends = |end: &[&str]| end.iter().any(|end| name.ends_with(end));
        Some(match () {
            () if ends(&[".pft"]) => Format::Pft,
            () if ends(&[".folded", ".collapsed"]) => Format::Folded,
            () if ends(&[".pb.gz", ".pprof", ".pprof.gz"]) => Format::Pprof,
            () if ends(&[".speedscope.json"]) => Format::Speedscope,
            () if ends(&[".html"]) => Format::Html,
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
                "why a function has no name",
            ],
            Format::Speedscope => &[
                "when a sample was taken",
                "CPU",
                "process and thread numbers",
                "addresses",
                "why a function has no name",
                "loss counters",
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
    #[error("too large: {0}")]
    TooLarge(&'static str),
}
