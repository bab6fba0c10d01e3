//! The command line: reads what was typed into a [`Request`].
//!
//! Only what can be decided by the words alone is checked here. Whether a pid exists or the
//! kernel allows a rate is checked in [`crate::commands`].

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
    /// Ask a running flight recorder.
    AskAgent(AskAgent),
    Symbolize(SymbolizeConfig),
    Report(ReportConfig),
    Export(ExportConfig),
    Diff(DiffConfig),
    Open(OpenConfig),
    Machines(MachinesConfig),
    Mcp(McpConfig),
    /// Run `proftop-fleet` with these words.
    Fleet(Vec<OsString>),
    Merge(MergeConfig),
    Resolve(ResolveConfig),
    Configuration(ConfigTask),
    /// Print the script by which a shell completes command lines of proftop.
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
    /// How many user frames of a stack are walked at most.
    pub depth_max: u32,
    /// What proftop may take of one CPU; None for no limit.
    pub budget: Option<Percent>,
    pub keep: Duration,
    pub memory_bytes_max: u64,
}

/// What time is shown or reported, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShowConfig {
    /// The stretch of time that is shown. In batch mode it equals `delay`, as a report
    /// covers the time since the last one.
    pub window: Duration,
    /// The time between updates of the screen, or between reports.
    pub delay: Duration,
    /// Freeze the screen this long after the first samples.
    pub freeze_after: Option<Duration>,
}

/// How the screen looks and begins: command line and configuration put together.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    pub color: Color,
    pub ascii: bool,
    pub theme: Theme,
    pub mouse: bool,
    pub start: ViewId,
    /// How functions are sorted.
    pub sort: Sort,
    /// None: each view counts in its usual unit.
    pub unit: Option<Unit>,
    pub asks_sort: bool,
    pub asks_unit: bool,
    /// Whether to ignore how the target was left last time, and not to remember how it is
    /// left.
    pub fresh: bool,
    pub filter: Filter,
    /// A recording to compare with.
    pub baseline: Option<PathBuf>,
    /// Whether there is a dialog line by line in place of the screen.
    pub plain: bool,
    pub keymap: Keymap,
    /// What is wrong in the configuration files.
    pub complaints: Vec<Complaint>,
    /// Where to look for source text.
    pub sources: SourceMap,
}

/// Which front end a run of the profiler has.
#[derive(Debug, Clone, PartialEq)]
pub enum Mode {
    Screen,
    Batch(BatchConfig),
    Record(RecordConfig),
    Trace(TraceConfig),
}

/// What `--batch` prints, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchConfig {
    /// After how many reports to end. None: until interrupted, or until the command ends.
    pub reports_max: Option<u32>,
    /// How many functions a report lists. None: all.
    pub rows_max: Option<usize>,
    pub format: Format,
    /// How long a report in Markdown may be, in tokens.
    pub tokens_max: usize,
    /// `None`: standard output.
    pub file: Option<PathBuf>,
    pub overwrite: bool,
}

/// What `record` writes, and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordConfig {
    /// How long to record. None: until interrupted, or until the command ends.
    pub duration: Option<Duration>,
    /// `None`: standard output.
    pub file: Option<PathBuf>,
    pub format: FileFormat,
    pub overwrite: bool,
    /// Functions whose calls are counted and timed as well.
    pub probes: engine::FirstProbes,
    /// Only the last minutes are kept, by a flight recorder.
    pub ring: Option<RingConfig>,
}

/// What a flight recorder keeps and saves.
#[derive(Debug, Clone, PartialEq)]
pub struct RingConfig {
    /// How much time the ring has, at least.
    pub length: Duration,
    /// What its file may take, with the one that takes its place.
    pub bytes_max: u64,
    /// When it is saved.
    pub conditions: Vec<Condition>,
    /// How much of the time after a condition is saved with it.
    pub after: Duration,
    /// How many saved files there may be.
    pub saves_max: usize,
    /// The socket at which it is asked.
    pub control: Option<PathBuf>,
    /// The folders of its own that a service makes where they are missing.
    pub folders: Vec<PathBuf>,
    /// Where each window is written to, for others to send.
    pub spool: Option<SpoolConfig>,
}

/// The folder into which a flight recorder writes each window as a recording of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolConfig {
    pub folder: PathBuf,
    /// How long a window is, in whole seconds.
    pub window: Duration,
    /// What all windows may take; of more the oldest are removed.
    pub bytes_max: u64,
}

/// What a running flight recorder is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskAgent {
    /// Its socket. None: that of the service.
    pub control: Option<PathBuf>,
    pub question: Question,
}

/// A question to a flight recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// To save what it has, with this note, which may be empty.
    Save { note: String },
    /// How it is.
    Status { as_json: bool },
}

/// Which functions `trace` probes, and what it shows of their calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceConfig {
    /// The functions to probe, as they were typed.
    pub functions: Vec<String>,
    /// None: as long as probes live, or until the command ends.
    pub duration: Option<Duration>,
    pub is_timed: bool,
    pub values: Values,
    /// None: names in values are those that the probed file itself tells of.
    pub types: Option<PathBuf>,
    pub min: Duration,
    pub stacks: bool,
    pub limits: ProbeLimits,
    pub hide_names: bool,
    pub format: Format,
    /// None: nothing is kept.
    pub output: Option<TraceOutput>,
}

/// Where `trace` keeps what was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceOutput {
    pub path: PathBuf,
    pub format: FileFormat,
    pub overwrite: bool,
}

impl TraceOutput {
    /// Whether it is written while calls come. If not, all is written at the end.
    pub fn is_streamed(&self) -> bool {
        self.format == FileFormat::Pft && Packing::of_path(&self.path).is_none()
    }
}

impl RecordConfig {
    /// Returns a name with the present time, which no earlier recording has.
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

    /// Whether samples are written while they come. If not, all is written at the end.
    pub fn is_streamed(&self) -> bool {
        self.format == FileFormat::Pft && self.file.as_deref().and_then(Packing::of_path).is_none()
    }
}

/// What `open` and `demo` show.
#[derive(Debug, Clone)]
pub struct OpenConfig {
    /// `-` is standard input.
    pub file: PathBuf,
    /// Whether it is the built-in recording; `file` is then only its name.
    pub is_demo: bool,
    /// Which of the things that the file counts.
    pub metric: Option<String>,
    /// How much of its end the screen begins with. None: all.
    pub last: Option<Duration>,
    pub look: Look,
}

/// Machines that are sampled at the same time, and shown as one.
#[derive(Debug, Clone)]
pub struct MachinesConfig {
    pub addresses: Vec<Address>,
    /// What each is called.
    pub names: Vec<String>,
    /// The command line of proftop there, without its name.
    pub record: Vec<String>,
    /// How much of the newest time the screen counts.
    pub window: Duration,
    pub look: Look,
}

/// What `report` prints of a recording.
#[derive(Debug, Clone)]
pub struct ReportConfig {
    /// `-` is standard input.
    pub file: PathBuf,
    /// Which of the things that the file counts.
    pub metric: Option<String>,
    /// How much of its end is counted. None: all.
    pub last: Option<Duration>,
    pub filter: Filter,
    pub shape: ReportShape,
}

/// What a report of a recording has: the list of functions, the call tree, or callers and
/// callees.
#[derive(Debug, Clone)]
pub enum ReportShape {
    Functions {
        rows_max: Option<usize>,
        format: Format,
        /// How long a report in Markdown may be, in tokens.
        tokens_max: usize,
    },
    Tree,
    /// What probes counted.
    Probes(Format),
    /// Callers and callees of the functions whose names match.
    Peek(Regex),
}

/// What `diff` compares; `a` is the earlier recording.
#[derive(Debug, Clone)]
pub struct DiffConfig {
    pub a: Operand,
    pub b: Operand,
    pub filter: Filter,
    /// None: all.
    pub rows_max: Option<usize>,
    pub format: Format,
    /// How long a text in Markdown may be, in tokens.
    pub tokens_max: usize,
    /// If a function's share of all samples grows by more percentage points than this,
    /// `diff` fails.
    pub fail_over_points: Option<f64>,
}

/// What the server of `mcp` may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpConfig {
    /// Whether clients may count calls of functions, which puts breakpoints into programs.
    pub allows_probes: bool,
}

/// Which recordings `merge` joins.
#[derive(Debug, Clone)]
pub struct MergeConfig {
    pub files: Vec<PathBuf>,
    /// `-` is standard output.
    pub output: PathBuf,
    /// What the name of the output tells.
    pub format: FileFormat,
    pub overwrite: bool,
}

/// The recording to which `resolve` adds names, and where it looks for them.
#[derive(Debug, Clone)]
pub struct ResolveConfig {
    /// `-` is standard input.
    pub file: PathBuf,
    pub directories: Vec<PathBuf>,
    /// `-` is standard output. None: the file itself is replaced.
    pub output: Option<PathBuf>,
    pub overwrite: bool,
}

/// What `export` writes of a recording, and how.
#[derive(Debug, Clone)]
pub struct ExportConfig {
    /// `-` is standard input.
    pub input: PathBuf,
    /// `-` is standard output.
    pub output: PathBuf,
    pub format: Option<FileFormat>,
    /// Which of the things that the file counts.
    pub metric: Option<String>,
    /// How much of its end is written. None: all.
    pub last: Option<Duration>,
    pub filter: Filter,
    pub manner: Manner,
    pub overwrite: bool,
}

/// The command that is started and watched, as typed after `--`.
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

/// What `doctor` looks at: the machine and, if a pid is given, that process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorConfig {
    pub pid: Option<u32>,
    pub format: Format,
    /// How long a text in Markdown may be, in tokens.
    pub tokens_max: usize,
}

/// What `symbolize` answers, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolizeConfig {
    pub task: SymbolizeTask,
    pub format: SymbolFormat,
    pub demangle: bool,
}

/// Where the addresses to be named are from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SymbolizeTask {
    /// Name addresses of a file. If there are none, read them from standard input.
    File {
        file: Option<PathBuf>,
        /// A directory of tables that are used in place of files.
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

/// Returns the description of the whole command line, from which manual and completions are
/// made.
pub fn command() -> clap::Command {
    use clap::CommandFactory as _;
    args::Words::command()
}

/// Reads a command line, whose first word is the name of the program. The failure is one of
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
