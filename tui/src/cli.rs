//! The command line: what was typed becomes a [`Config`], what it means.
//!
//! Only what can be told from the words alone is checked here; whether a pid
//! exists or the kernel allows a rate is for [`crate::commands`].

mod args;
mod help;
mod meaning;

pub use help::{ENVIRONMENT, EXAMPLES, EXIT_CODES, nearest};

use crate::action::Keymap;
use crate::calendar;
use crate::choices::{Color, EngineChoice, Format, Operand, Sort, Theme};
use crate::code::SourceMap;
use crate::config::{Complaint, Settings};
use crate::dialogs::write::Manner;
use crate::failure::Failure;
use crate::knobs::Unit;
use crate::target::TargetSpec;
use crate::view_id::ViewId;
use clap::ValueEnum;
use engine::probes::expression::Values;
use profile::Filter;
use profile::formats::{Format as FileFormat, Packing};
use regex::Regex;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the user wants.
#[derive(Debug)]
pub enum Request {
    Top(Box<Config>),
    Doctor(DoctorConfig),
    Symbolize(SymbolizeConfig),
    Report(ReportConfig),
    Export(ExportConfig),
    Diff(DiffConfig),
    Open(OpenConfig),
    Merge(MergeConfig),
    Resolve(ResolveConfig),
    Configuration(ConfigTask),
    /// What a shell reads to complete our words.
    Completions(clap_complete::Shell),
    Manual,
    /// Help or version: goes to standard output, and that is all.
    Print(String),
}

/// A run of the profiler.
#[derive(Debug, Clone)]
pub struct Config {
    pub target: TargetSpec,
    pub sample: SampleConfig,
    pub show: ShowConfig,
    pub look: Look,
    pub mode: Mode,
    /// The command to start and watch; then `target` names no pid, tid or cgroup.
    pub command: Option<CommandLine>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleConfig {
    pub engine: EngineChoice,
    pub rate_hz: u32,
    /// User frames per stack.
    pub depth_max: u32,
    pub keep: Duration,
    pub memory_bytes_max: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShowConfig {
    /// In batch mode one report covers one delay, so there the two are equal.
    pub window: Duration,
    /// Between redraws, or between reports.
    pub delay: Duration,
    /// Then the view stands still, counted from the first samples on.
    pub freeze_after: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    pub color: Color,
    pub ascii: bool,
    pub theme: Theme,
    pub mouse: bool,
    pub start: ViewId,
    /// How functions are sorted.
    pub sort: Sort,
    /// Nothing: what each view usually counts in.
    pub unit: Option<Unit>,
    pub asks_sort: bool,
    pub asks_unit: bool,
    /// However it was left.
    pub fresh: bool,
    pub filter: Filter,
    /// A recording to compare with.
    pub baseline: Option<PathBuf>,
    /// Line by line, without a screen.
    pub plain: bool,
    pub keymap: Keymap,
    /// What the configuration has wrong.
    pub complaints: Vec<Complaint>,
    /// Where source text lies.
    pub sources: SourceMap,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    Screen,
    Batch(BatchConfig),
    Record(RecordConfig),
    Trace(TraceConfig),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchConfig {
    /// `None`: until interrupted, or until the command ends.
    pub reports_max: Option<u32>,
    /// `None`: all of them.
    pub rows_max: Option<usize>,
    pub format: Format,
    /// How long a report in Markdown may be.
    pub tokens_max: usize,
    /// `None`: standard output.
    pub file: Option<PathBuf>,
    pub overwrite: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordConfig {
    /// `None`: until interrupted, or until the command ends.
    pub duration: Option<Duration>,
    /// `None`: standard output.
    pub file: Option<PathBuf>,
    pub format: FileFormat,
    pub overwrite: bool,
}

/// What is watched of which calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceConfig {
    /// The functions to probe, as they were typed.
    pub functions: Vec<String>,
    /// `None`: as long as probes last, or until the command ends.
    pub duration: Option<Duration>,
    pub is_timed: bool,
    pub values: Values,
    pub min: Duration,
    pub stacks: bool,
    pub max_cost_percent: u32,
    pub max_hits: u32,
    pub hide_names: bool,
    pub format: Format,
}

impl RecordConfig {
    /// A name that no earlier recording has.
    fn default_file(format: Option<FileFormat>) -> PathBuf {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = now.unwrap_or_default().as_secs();
        let ending = format.unwrap_or(FileFormat::Pft).endings()[0];
        format!("proftop-{}{ending}", calendar::compact(seconds)).into()
    }

    /// Whether a terminal can show it.
    pub fn is_text(&self) -> bool {
        matches!(self.format, FileFormat::Folded | FileFormat::Svg)
            && self.file.as_deref().and_then(Packing::of_path).is_none()
    }

    /// Whether samples go to the file while they come; else all of it is written at the end.
    pub fn is_streamed(&self) -> bool {
        self.format == FileFormat::Pft && self.file.as_deref().and_then(Packing::of_path).is_none()
    }
}

/// A recording for the screen.
#[derive(Debug, Clone)]
pub struct OpenConfig {
    /// `-` is standard input.
    pub file: PathBuf,
    /// The recording that proftop brings along.
    pub is_demo: bool,
    /// Which of the things that the file counts.
    pub metric: Option<String>,
    pub look: Look,
}

/// What to print of a recording.
#[derive(Debug, Clone)]
pub struct ReportConfig {
    /// `-` is standard input.
    pub file: PathBuf,
    /// Which of the things that the file counts.
    pub metric: Option<String>,
    pub filter: Filter,
    pub shape: ReportShape,
}

#[derive(Debug, Clone)]
pub enum ReportShape {
    Functions {
        rows_max: Option<usize>,
        format: Format,
        /// How long it may be in Markdown.
        tokens_max: usize,
    },
    Tree,
    /// Callers and callees of the functions that match.
    Peek(Regex),
}

/// Two recordings, the earlier one first.
#[derive(Debug, Clone)]
pub struct DiffConfig {
    pub a: Operand,
    pub b: Operand,
    pub filter: Filter,
    pub rows_max: usize,
    /// The change, in points of all samples, that makes `diff` fail.
    pub fail_over_points: Option<f64>,
}

/// Several recordings as one.
#[derive(Debug, Clone)]
pub struct MergeConfig {
    pub files: Vec<PathBuf>,
    /// `-` is standard output.
    pub output: PathBuf,
    pub overwrite: bool,
}

/// A recording that wants names.
#[derive(Debug, Clone)]
pub struct ResolveConfig {
    /// `-` is standard input.
    pub file: PathBuf,
    pub directories: Vec<PathBuf>,
    /// `-` is standard output; without one the file itself.
    pub output: Option<PathBuf>,
    pub overwrite: bool,
}

/// What to write of a recording, and how.
#[derive(Debug, Clone)]
pub struct ExportConfig {
    /// `-` is standard input.
    pub input: PathBuf,
    /// `-` is standard output.
    pub output: PathBuf,
    pub format: Option<FileFormat>,
    /// Which of the things that the file counts.
    pub metric: Option<String>,
    pub filter: Filter,
    pub manner: Manner,
    pub overwrite: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    pub program: OsString,
    pub args: Vec<OsString>,
}

/// What to do about the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConfigTask {
    /// Print what holds
    Show,
    /// Write a file to begin with, in which everything is a comment
    Init,
    /// Print which files are read
    Path,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorConfig {
    pub pid: Option<u32>,
    pub json: bool,
}

/// Addresses to be named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolizeConfig {
    pub task: SymbolizeTask,
    pub format: SymbolFormat,
    pub demangle: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SymbolizeTask {
    /// Names addresses of a file; without addresses those of standard input.
    File {
        file: Option<PathBuf>,
        /// Tables that stand for files.
        cache: Option<PathBuf>,
        addresses: Vec<String>,
    },
    Process {
        pid: u32,
        addresses: Vec<String>,
    },
    BuildCache {
        directory: PathBuf,
        files: Vec<PathBuf>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SymbolFormat {
    Text,
    Json,
    /// As llvm-symbolizer
    Llvm,
    /// As addr2line -f -i
    Addr2line,
}

/// The whole command line, as the manual and completions are made from it.
pub fn command() -> clap::Command {
    use clap::CommandFactory as _;
    args::Words::command()
}

/// Reads the words, the program's name first. A failure is bad usage.
/// `configuration` is asked for by those requests that have a use for it.
pub fn parse(
    words: impl IntoIterator<Item = OsString>,
    configuration: impl FnOnce() -> (Settings, Vec<Complaint>),
) -> Result<Request, Failure> {
    let words: Vec<OsString> = words.into_iter().collect();
    match args::read(words) {
        Ok(args) => meaning::request(args, configuration),
        Err(error) => help::or_failure(error).map(Request::Print),
    }
}

#[cfg(test)]
mod tests;
