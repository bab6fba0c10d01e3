//! The command line: parses it into a [`Request`].
//!
//! It checks only what depends on the arguments alone. Whether a pid exists or the kernel allows a
//! rate is checked in [`crate::commands`].

mod args;
mod help;
mod meaning;
mod metric;

pub use help::{ENVIRONMENT, EXAMPLES, EXIT_CODES};
pub use meaning::CONTROL;

use crate::action::Keymap;
use crate::address::Address;
use crate::calendar;
use crate::choices::{Color, EngineChoice, Format, Operand, Sort, Theme};
use crate::code::SourceMap;
use crate::condition::Condition;
use crate::config::{Complaint, Settings};
use crate::dialogs::write::Manner;
use crate::failure::Failure;
use crate::knobs::Unit;
use crate::target::TargetSpec;
use crate::values::Percent;
use crate::view_id::ViewId;
use clap::ValueEnum;
use engine::probes::ProbeLimits;
use engine::probes::expression::Values;
use profile::formats::{Format as FileFormat, Packing};
use profile::{Cohort, Filter};
use regex::Regex;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A request of the user.
#[derive(Debug)]
pub enum Request {
    Top(Box<Config>),
    Doctor(DoctorConfig),
    /// Send a request to a running flight recorder.
    AskAgent(AskAgent),
    Symbolize(SymbolizeConfig),
    Report(ReportConfig),
    Export(ExportConfig),
    Diff(DiffConfig),
    Open(OpenConfig),
    Machines(MachinesConfig),
    Mcp(McpConfig),
    /// Run `proftop-fleet` with these arguments.
    Fleet(Vec<OsString>),
    Merge(MergeConfig),
    Resolve(ResolveConfig),
    Configuration(ConfigTask),
    /// Print the script with which a shell completes command lines of proftop.
    Completions(clap_complete::Shell),
    Manual,
    /// Print this text, the help or the version, to standard output.
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

/// How samples are taken and kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleConfig {
    pub engine: EngineChoice,
    pub rate_hz: u32,
    pub counted: engine::Counted,
    /// Maximum number of user frames of a stack.
    pub depth_max: u32,
    /// Maximum CPU usage of proftop itself, in percent of one CPU. None means no limit.
    pub budget: Option<Percent>,
    pub keep: Duration,
    pub memory_bytes_max: u64,
}

/// Which time is shown or reported, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShowConfig {
    /// The length of the window. In batch mode it equals `delay`, because a report covers the time
    /// since the previous one.
    pub window: Duration,
    /// The time between updates of the screen, or between reports.
    pub delay: Duration,
    /// Freeze the screen this long after the first samples.
    pub freeze_after: Option<Duration>,
}

/// How the screen looks and begins, by the command line and the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    pub color: Color,
    pub ascii: bool,
    pub theme: Theme,
    pub mouse: bool,
    pub start: ViewId,
    /// How functions are sorted.
    pub sort: Sort,
    /// None means the usual unit of each view.
    pub unit: Option<Unit>,
    pub asks_sort: bool,
    pub asks_unit: bool,
    /// Whether to ignore how the target was left last time, and not to save how it is left.
    pub fresh: bool,
    pub filter: Filter,
    /// A recording for comparison.
    pub baseline: Option<PathBuf>,
    /// Whether to use the dialog of lines instead of the screen.
    pub plain: bool,
    pub keymap: Keymap,
    /// The mistakes in the configuration files.
    pub complaints: Vec<Complaint>,
    /// Where to look for source text.
    pub sources: SourceMap,
}

/// The front end of a run of the profiler.
#[derive(Debug, Clone, PartialEq)]
pub enum Mode {
    Screen,
    Batch(BatchConfig),
    Record(RecordConfig),
    Trace(TraceConfig),
}

/// Options of `--batch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchConfig {
    /// Number of reports. None means until interrupted, or until the target ends.
    pub reports_max: Option<u32>,
    /// Maximum number of functions in a report. None means all.
    pub rows_max: Option<usize>,
    pub format: Format,
    /// Maximum length of a report in Markdown, in tokens.
    pub tokens_max: usize,
    /// None means standard output.
    pub file: Option<PathBuf>,
    pub overwrite: bool,
}

/// Options of `record`.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordConfig {
    /// How long to record. None means until interrupted, or until the target ends.
    pub duration: Option<Duration>,
    /// None means standard output.
    pub file: Option<PathBuf>,
    pub format: FileFormat,
    pub overwrite: bool,
    /// Functions whose calls are counted and timed, too.
    pub probes: engine::FirstProbes,
    /// The options of a flight recorder, which keeps only the last minutes.
    pub ring: Option<RingConfig>,
}

/// Options of a flight recorder.
#[derive(Debug, Clone, PartialEq)]
pub struct RingConfig {
    /// Minimum length of the ring.
    pub length: Duration,
    /// Maximum size of its file and of the one that replaces it, together.
    pub bytes_max: u64,
    /// The conditions for saving the ring.
    pub conditions: Vec<Condition>,
    /// How much of the time after a condition is saved, too.
    pub after: Duration,
    /// Maximum number of saved files.
    pub saves_max: usize,
    /// The path of the control socket.
    pub control: Option<PathBuf>,
    /// The default folders of a service, which it creates if they are missing.
    pub folders: Vec<PathBuf>,
    /// The folder of windows, for another program to send.
    pub spool: Option<SpoolConfig>,
    /// Another rate while this host is in a cohort.
    pub cohort: Option<CohortConfig>,
}

/// The rates of a flight recorder whose host is in a cohort from time to time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CohortConfig {
    pub cohort: Cohort,
    /// Samples per second while the host is in the cohort, and while it is not.
    pub rate_hz: u32,
    pub usual_hz: u32,
}

/// The folder into which a flight recorder writes each window as a recording of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolConfig {
    pub folder: PathBuf,
    /// How long a window is, in whole seconds.
    pub window: Duration,
    /// Maximum size of all windows; beyond it, the oldest are removed.
    pub bytes_max: u64,
}

/// A request to a running flight recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskAgent {
    /// The path of its socket. None means that of the service.
    pub control: Option<PathBuf>,
    pub question: Question,
}

/// The kind of a request to a flight recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Save the ring, with this note, which may be empty.
    Save { note: String },
    /// Print the status.
    Status { as_json: bool },
}

/// Options of `trace`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceConfig {
    /// The functions to probe, as they were typed.
    pub functions: Vec<String>,
    /// None means as long as probes live, or until the command ends.
    pub duration: Option<Duration>,
    pub is_timed: bool,
    pub values: Values,
    /// The file with types and names for values. None means the probed file itself.
    pub types: Option<PathBuf>,
    pub min: Duration,
    pub stacks: bool,
    pub limits: ProbeLimits,
    pub hide_names: bool,
    pub format: Format,
    /// The file of `-o`. None without one.
    pub output: Option<TraceOutput>,
}

/// The file in which `trace` keeps its results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceOutput {
    pub path: PathBuf,
    pub format: FileFormat,
    pub overwrite: bool,
}

impl TraceOutput {
    /// Whether the file is written while calls are counted. If not, it is written at the end.
    pub fn is_streamed(&self) -> bool {
        self.format == FileFormat::Pft && Packing::of_path(&self.path).is_none()
    }
}

impl RecordConfig {
    /// Returns the default name, which contains the present time.
    fn default_file(format: Option<FileFormat>) -> PathBuf {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = now.unwrap_or_default().as_secs();
        let ending = format.unwrap_or(FileFormat::Pft).endings()[0];
        format!("proftop-{}{ending}", calendar::compact(seconds)).into()
    }

    /// Whether the format is text, which may go to a terminal.
    pub fn is_text(&self) -> bool {
        matches!(self.format, FileFormat::Folded | FileFormat::Svg)
            && self.file.as_deref().and_then(Packing::of_path).is_none()
    }

    /// Whether samples are written while they arrive. If not, all are written at the end.
    pub fn is_streamed(&self) -> bool {
        self.format == FileFormat::Pft && self.file.as_deref().and_then(Packing::of_path).is_none()
    }
}

/// Options of `open` and `demo`.
#[derive(Debug, Clone)]
pub struct OpenConfig {
    pub source: RecordingSource,
    /// The metric to show, if the file has several.
    pub metric: Option<String>,
    /// Length of the window with which the screen begins. None means all.
    pub last: Option<Duration>,
    pub look: Look,
}

/// Where `open` and `demo` have a recording from.
#[derive(Debug, Clone)]
pub enum RecordingSource {
    /// A file; `-` means standard input.
    File(PathBuf),
    /// The recording that is built into proftop.
    BuiltIn,
    /// What `proftop-fleet` fetches.
    Fleet(FleetAddress),
}

/// An address that `proftop-fleet` understands, such as that of a server.
#[derive(Debug, Clone)]
pub struct FleetAddress {
    /// The address as it was typed.
    pub address: String,
    /// Arguments for `proftop-fleet`.
    pub options: Vec<OsString>,
}

/// Machines that are sampled at the same time and shown together.
#[derive(Debug, Clone)]
pub struct MachinesConfig {
    pub addresses: Vec<Address>,
    /// The name of each machine on the screen.
    pub names: Vec<String>,
    /// The arguments of proftop on the machines.
    pub record: Vec<String>,
    /// Length of the window that the screen shows.
    pub window: Duration,
    pub look: Look,
}

/// Options of `report`.
#[derive(Debug, Clone)]
pub struct ReportConfig {
    /// `-` means standard input.
    pub file: PathBuf,
    /// The metric to count, if the file has several.
    pub metric: Option<String>,
    /// Length of the last part that is counted. None means all.
    pub last: Option<Duration>,
    pub filter: Filter,
    pub shape: ReportShape,
}

/// The contents of a report: the list of functions, the call tree, the results of probes, or
/// callers and callees.
#[derive(Debug, Clone)]
pub enum ReportShape {
    Functions {
        rows_max: Option<usize>,
        format: Format,
        /// Maximum length of a report in Markdown, in tokens.
        tokens_max: usize,
    },
    Tree,
    /// The results of probes.
    Probes(Format),
    /// Callers and callees of the functions whose names match.
    Peek(Regex),
}

/// Options of `diff`; `a` is the earlier recording.
#[derive(Debug, Clone)]
pub struct DiffConfig {
    pub a: Operand,
    pub b: Operand,
    pub filter: Filter,
    /// Maximum number of functions. None means all.
    pub rows_max: Option<usize>,
    pub format: Format,
    /// Maximum length of a text in Markdown, in tokens.
    pub tokens_max: usize,
    /// Maximum growth of a function's share of all samples, in percentage points. Beyond it, `diff`
    /// fails.
    pub fail_over_points: Option<f64>,
}

/// Options of `mcp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpConfig {
    /// Whether clients may count calls of functions, which puts breakpoints into programs.
    pub allows_probes: bool,
}

/// Options of `merge`.
#[derive(Debug, Clone)]
pub struct MergeConfig {
    pub files: Vec<PathBuf>,
    /// `-` means standard output.
    pub output: PathBuf,
    /// The format for the name of the output.
    pub format: FileFormat,
    pub overwrite: bool,
}

/// Options of `resolve`.
#[derive(Debug, Clone)]
pub struct ResolveConfig {
    /// `-` means standard input.
    pub file: PathBuf,
    pub directories: Vec<PathBuf>,
    /// `-` means standard output. None means to replace the input file.
    pub output: Option<PathBuf>,
    pub overwrite: bool,
}

/// Options of `export`.
#[derive(Debug, Clone)]
pub struct ExportConfig {
    /// `-` means standard input.
    pub input: PathBuf,
    /// `-` means standard output.
    pub output: PathBuf,
    pub format: Option<FileFormat>,
    /// The metric to write, if the file has several.
    pub metric: Option<String>,
    /// Length of the last part that is written. None means all.
    pub last: Option<Duration>,
    pub filter: Filter,
    pub manner: Manner,
    pub overwrite: bool,
}

/// The command to start and watch, as typed after `--`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    pub program: OsString,
    pub args: Vec<OsString>,
}

/// What `config` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConfigTask {
    /// Print what holds
    Show,
    /// Write a file to begin with, in which everything is a comment
    Init,
    /// Print which files are read
    Path,
}

/// Options of `doctor`, which examines the machine and, if a pid is given, that process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorConfig {
    pub pid: Option<u32>,
    pub format: Format,
    /// Maximum length of a text in Markdown, in tokens.
    pub tokens_max: usize,
}

/// Options of `symbolize`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolizeConfig {
    pub task: SymbolizeTask,
    pub format: SymbolFormat,
    pub demangle: bool,
}

/// What `symbolize` does, and with which addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SymbolizeTask {
    /// Resolve addresses in a file. If there are none, they are read from standard input.
    File {
        file: Option<PathBuf>,
        /// A directory of tables that replace files.
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

/// In which format `symbolize` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SymbolFormat {
    Text,
    Json,
    /// As llvm-symbolizer
    Llvm,
    /// As addr2line -f -i
    Addr2line,
}

/// Returns clap's definition of the whole command line, from which manual and completions are made.
pub fn command() -> clap::Command {
    use clap::CommandFactory as _;
    args::Words::command()
}

/// Parses a command line, whose first word is the name of the program. An error is a failure of
/// usage. `configuration` is called only by requests that need it.
pub fn parse(
    words: impl IntoIterator<Item = OsString>,
    configuration: impl FnOnce() -> (Settings, Vec<Complaint>),
) -> Result<Request, Failure> {
    let words: Vec<OsString> = words.into_iter().collect();
    let first = words
        .get(1)
        .and_then(|word| word.to_str())
        .unwrap_or_default()
        .to_owned();
    match args::read(words) {
        Ok(args) => meaning::request(args, configuration),
        Err(error) => help::or_failure(error, &first).map(Request::Print),
    }
}

#[cfg(test)]
mod tests;
