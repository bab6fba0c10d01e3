//! The kinds of file: a profile in one of its formats, or the screen.

use profile::formats::Format;

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Profile(Format),
    /// The screen as text.
    Text,
}

/// All kinds in the order of the dialog.
pub const KINDS: [FileKind; 9] = [
    FileKind::Profile(Format::Pft),
    FileKind::Profile(Format::Pprof),
    FileKind::Profile(Format::Folded),
    FileKind::Profile(Format::Speedscope),
    FileKind::Profile(Format::Firefox),
    FileKind::Profile(Format::Trace),
    FileKind::Profile(Format::Html),
    FileKind::Profile(Format::Svg),
    FileKind::Text,
];

impl FileKind {
    /// Returns the extension of its files.
    pub fn ending(self) -> &'static str {
        match self {
            FileKind::Profile(Format::Pft) => ".pft",
            FileKind::Profile(Format::Pprof) => ".pb.gz",
            FileKind::Profile(Format::Folded) => ".folded",
            FileKind::Profile(Format::Speedscope) => ".speedscope.json",
            FileKind::Profile(Format::Firefox) => ".firefox.json.gz",
            FileKind::Profile(Format::Trace) => ".trace.json.gz",
            FileKind::Profile(Format::Html) => ".html",
            FileKind::Profile(Format::Svg) => ".svg",
            FileKind::Text => ".txt",
        }
    }

    /// Returns words about what reads such a file.
    pub fn purpose(self) -> &'static str {
        match self {
            FileKind::Profile(Format::Pft) => "all samples; opens here again, all views",
            FileKind::Profile(Format::Pprof) => "go tool pprof, Pyroscope, Parca",
            FileKind::Profile(Format::Folded) => "flamegraph.pl, inferno, flamelens",
            FileKind::Profile(Format::Speedscope) => "speedscope.app",
            FileKind::Profile(Format::Firefox) => "profiler.firefox.com, with times",
            FileKind::Profile(Format::Trace) => "ui.perfetto.dev, with times",
            FileKind::Profile(Format::Html) => "a flame graph as one page, searched",
            FileKind::Profile(Format::Svg) => "a flame graph as a picture",
            FileKind::Text => "this screen as text",
        }
    }

    /// Returns the kind for the extension of a name, or `None` if no kind has it.
    pub fn of_path(path: &std::path::Path) -> Option<FileKind> {
        let is_text = path.extension().is_some_and(|end| end == "txt");
        let format = Format::of_path(path).map(FileKind::Profile);
        format.or(is_text.then_some(FileKind::Text))
    }

    /// Returns what such a file does not contain; empty if it contains everything.
    pub fn loses(self) -> String {
        match self {
            FileKind::Profile(Format::Pft) => "command lines of processes".into(),
            FileKind::Profile(format) => format.loses().join(", "),
            FileKind::Text => "all that is not on the screen".into(),
        }
    }
}
