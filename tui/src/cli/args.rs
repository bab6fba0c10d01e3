//! The command line as clap reads it. The doc comment of an option is its text in `--help`.
//! Types have plain comments, as clap would print a doc comment of theirs, too.

// The arguments of a flight recorder.
mod recorder;

pub use recorder::{Agent, AgentTask, RingArgs};

use super::help;
use super::metric::MetricParser;
use crate::choices::{Color, EngineChoice, Format, Sort, Theme};
use crate::code::source_map::Mapping;
use crate::knobs::Unit;
use crate::values;
use crate::view_id::ViewId;
use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum as _};
use engine::Counted;
use profile::Filter;
use regex::Regex;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Which functions burn the CPUs, live.
#[derive(Debug, Parser)]
#[command(
    name = "proftop",
    version,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    override_usage = help::USAGE,
    before_long_help = help::EXAMPLES,
    after_long_help = help::after_options()
)]
pub struct Words {
    #[command(subcommand)]
    pub subcommand: Option<Sub>,
    #[command(flatten)]
    pub top: Top,
}

// The subcommands. Without one, proftop opens the live screen.
#[derive(Debug, Subcommand)]
pub enum Sub {
    /// Say what works on this machine, what does not, and what would help
    Doctor(Doctor),
    /// Record to a file, or to another machine, without a screen
    Record(Box<Record>),
    /// Always have the last minutes, as a service: a flight recorder; or ask the running one
    Agent(Box<Agent>),
    /// Count and time calls of functions of running programs
    Trace(Box<Trace>),
    /// Look at a recording on the screen
    Open(Open),
    /// Look around on the screen, in a recording that is built in; needs no rights
    Demo(LookArgs),
    /// Print a recording as text
    Report(Report),
    /// Write a recording in another format
    Export(Export),
    /// Compare two recordings
    Diff(Diff),
    /// Put several recordings into one
    Merge(Merge),
    /// Answer an assistant: a server of the Model Context Protocol on standard input and
    /// output, which reads and changes nothing
    Mcp(Mcp),
    /// Ask about many machines, or send what an agent has recorded: runs proftop-fleet, a program of its own
    Fleet(Fleet),
    /// Add names of functions to a recording that was made without them
    Resolve(Resolve),
    /// Show the configuration, or write one to begin with
    Config(Configuration),
    /// Print completions for a shell
    Completions(Completions),
    /// Print the manual: proftop man | man -l -
    Man,
    /// Print the functions and source lines of addresses
    Symbolize(Symbolize),
}

// Arguments of `config`.
#[derive(Debug, Args)]
pub struct Configuration {
    #[arg(value_name = "TASK", value_enum, default_value_t = super::ConfigTask::Show)]
    pub task: super::ConfigTask,
}

// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// bash, zsh, fish, elvish or powershell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: clap_complete::Shell,
}

// Arguments of `symbolize`.
#[derive(Debug, Args)]
pub struct Symbolize {
    /// The program or library, then addresses in it as the linker wrote them.
    /// Without addresses standard input is read: addresses, or any text with
    /// addresses inside, such as a crash log
    #[arg(value_name = "FILE|ADDR")]
    pub words: Vec<OsString>,
    /// Take the addresses of this running process; give no FILE then
    #[arg(short, long, value_name = "PID", value_parser = values::id)]
    pub pid: Option<u32>,
    /// Format of the answers: text, json, or as llvm-symbolizer or addr2line
    /// print them
    #[arg(long, value_enum, default_value_t = super::SymbolFormat::Text)]
    pub format: super::SymbolFormat,
    /// Print names as the compiler wrote them
    #[arg(long)]
    pub no_demangle: bool,
    /// Answer from the tables in this directory, without the files; FILE is then the
    /// name or build-id of a file
    #[arg(long, value_name = "DIR", conflicts_with_all = ["pid", "build_cache"])]
    pub cache: Option<PathBuf>,
    /// Write tables of these FILEs into this directory, for --cache
    #[arg(long, value_name = "DIR", conflicts_with = "pid")]
    pub build_cache: Option<PathBuf>,
}

// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Look at this process too: its binaries, symbols and namespaces
    #[arg(short, long, value_name = "PID", value_parser = values::id)]
    pub pid: Option<u32>,
    /// Print one JSON object; see docs/doctor-json.md
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Format of what is printed: text, json or md [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = format_of_answers())]
    pub format: Option<Format>,
    /// With --format md: about how long the text may be [default: 1500]
    #[arg(long, value_name = "N", value_parser = values::tokens)]
    pub budget_tokens: Option<u32>,
}

// What to sample: shared by all subcommands that sample.
#[derive(Debug, Args)]
pub struct TargetArgs {
    /// Processes, with all that they start or have started; may be given more than once
    #[arg(short, long = "pid", value_name = "PID[,PID]", value_parser = values::ids, help_heading = "Target")]
    pub pids: Vec<values::Ids>,
    /// Threads; may be given more than once
    #[arg(short, long = "tid", value_name = "TID[,TID]", value_parser = values::ids, help_heading = "Target")]
    pub tids: Vec<values::Ids>,
    /// Threads whose name matches
    #[arg(long, value_name = "REGEX", value_parser = values::regex, help_heading = "Target")]
    pub comm: Option<Regex>,
    /// A control group by path, a systemd unit by name, or a container by the start of its id
    #[arg(
        short = 'g',
        long,
        value_name = "CGROUP|CONTAINER|UNIT",
        help_heading = "Target"
    )]
    pub cgroup: Option<String>,
    /// Processes that these users started, by name or number; may be given more than once
    #[arg(
        short = 'u',
        long = "user",
        value_name = "USER[,USER]",
        value_parser = values::users,
        help_heading = "Target"
    )]
    pub users: Vec<values::Users>,
    /// Only what runs on these CPUs, as in 0-3,7; the others are not sampled
    #[arg(short = 'C', long = "cpu", value_name = "CPUS", value_parser = values::cpus, help_heading = "Target")]
    pub cpus: Vec<values::Cpus>,
    /// Leave out processes that the given ones start
    #[arg(long, help_heading = "Target")]
    pub no_children: bool,
}

// How to sample: shared by the screen, `--batch` and `record`.
#[derive(Debug, Args)]
pub struct SampleArgs {
    /// Samples per second on each busy CPU, 1 to 10000 [default: 99; of agent 19]
    #[arg(short = 'F', long = "rate", value_name = "HZ", value_parser = values::rate, help_heading = "Sampling")]
    pub rate: Option<u32>,
    /// What is counted: on-cpu, off-cpu, wall, kept-waiting; page-faults, context-switches, cycles or another
    /// counter of perf; or tracepoint:SUBSYSTEM:NAME [default: on-cpu]
    #[arg(long, value_parser = MetricParser, hide_possible_values = true, value_name = "METRIC", help_heading = "Sampling")]
    pub metric: Option<Counted>,
    /// How samples are taken [default: auto]
    #[arg(long, value_enum, help_heading = "Sampling")]
    pub engine: Option<EngineChoice>,
    /// Take no more than this share of one CPU, such as 1%: above it leave out source lines, then
    /// samples, and say so [default: no limit]
    #[arg(long, value_name = "PERCENT", value_parser = values::budget, help_heading = "Sampling")]
    pub budget: Option<values::Percent>,
    /// Longest user stack that is walked, 1 to 1024 frames [default: 512]
    #[arg(long, value_name = "N", value_parser = values::depth, help_heading = "Sampling")]
    pub max_depth: Option<u32>,
}

// When a probe is removed: shared by `record` and `trace`.
#[derive(Debug, Args)]
pub struct ProbeLimitArgs {
    /// Take a probe away when it costs more than this share of a CPU
    #[arg(long, value_name = "PERCENT", default_value_t = 5, value_parser = values::cost)]
    pub max_cost: u32,
    /// Take a probe away when it is hit more often in a second
    #[arg(long, value_name = "HITS", default_value_t = 200_000, value_parser = values::count)]
    pub max_hits: u32,
}

// Arguments of `record`.
#[derive(Debug, Args)]
pub struct Record {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub sample: SampleArgs,
    /// How long to record [default: until ^C, or until the command ends]. A command that goes on
    /// after that is not ended, and waited for
    #[arg(short, long, value_name = "TIME", value_parser = values::keep)]
    pub duration: Option<Duration>,
    /// The file to write, or - for standard output; its name tells the format
    /// [default: proftop-DATE.pft]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The format, if the name does not tell it: pft, folded, pprof, speedscope,
    /// firefox, trace, html or svg.
    /// A .pft is written while samples come, all others at the end
    #[arg(long, value_name = "FORMAT", value_parser = values::file_format)]
    pub format: Option<profile::formats::Format>,
    /// Count and time calls of these functions as well, named as for proftop trace; needs BPF
    #[arg(long = "probe", value_name = "FUNCTION")]
    pub probes: Vec<String>,
    /// Keep how often which values of this come at calls of the probed functions: arg1, ret,
    /// str(arg1); may be given more than once
    #[arg(long = "value", value_name = "EXPR", requires = "probes")]
    pub values: Vec<String>,
    #[command(flatten)]
    pub limits: ProbeLimitArgs,
    /// Overwrite the file if it is there
    #[arg(short, long)]
    pub force: bool,
    /// Keep only the last stretch of so much time, in a .pft that is whole at every moment, and
    /// save it when a condition is met or SIGUSR2 comes; the ring of an earlier run is kept
    /// beside it [default file: proftop-ring.pft]
    #[arg(long, value_name = "TIME", value_parser = values::ring, conflicts_with_all = ["probes", "force"], help_heading = "Flight recorder")]
    pub ring: Option<Duration>,
    #[command(flatten)]
    pub ring_args: RingArgs,

    /// A command to start and to record, as the user who called sudo. With -o - what it
    /// prints goes to standard error
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

// Arguments of `trace`.
#[derive(Debug, Args)]
pub struct Trace {
    /// Functions by name, by a regular expression, as MODULE!NAME, or as MODULE+0xOFFSET; lines as
    /// FILE:LINE, markers as usdt:PROVIDER:NAME, places in the kernel as
    /// tracepoint:SUBSYSTEM:NAME; several with commas between them
    #[arg(value_name = "FUNCTION", required = true)]
    pub functions: Vec<String>,
    #[command(flatten)]
    pub target: TargetArgs,
    /// How long [default: 60s, or until ^C, or until the command ends]. A command that goes on
    /// after that is not ended, and waited for
    #[arg(short, long, value_name = "TIME", value_parser = values::keep)]
    pub duration: Option<Duration>,
    /// Only count calls, which costs half of timing them
    #[arg(long, conflicts_with_all = ["min", "ret"])]
    pub count: bool,
    /// Show how often which values of the first N arguments come
    #[arg(long, value_name = "N", value_parser = values::arguments)]
    pub args: Option<u32>,
    /// Show how often which values of this come: arg1, ret, %r8, *(arg1+16):u32,
    /// str(arg1,arg2), with debug information arg1->name, this->size, a parameter by its
    /// name, of tracepoints prev.comm; may be given more than once
    #[arg(long = "value", value_name = "EXPR")]
    pub values: Vec<String>,
    /// Take types and names from the debug information of this file, where the probed one has
    /// none: its debug file, or another build whose structures lie alike
    #[arg(long, value_name = "FILE", requires = "values")]
    pub types: Option<PathBuf>,
    /// Show how often which values are returned
    #[arg(long)]
    pub ret: bool,
    /// Show the text that this argument points to; may be given more than once
    #[arg(long = "string", value_name = "ARG", value_parser = values::argument)]
    pub strings: Vec<u32>,
    /// Only look at calls that take at least so long, such as 10ms
    #[arg(long, value_name = "TIME", value_parser = values::latency)]
    pub min: Option<Duration>,
    /// Show from where the function is called
    #[arg(long)]
    pub stacks: bool,
    #[command(flatten)]
    pub limits: ProbeLimitArgs,
    /// Leave out values, which are the data of the program
    #[arg(long)]
    pub hide_names: bool,
    /// Format of the report
    #[arg(long, default_value = "text", value_parser = trace_format())]
    pub format: Format,
    /// Keep what was counted in this file too; its name tells the format: .pft, .pb.gz,
    /// .trace.json or .firefox.json
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite the file if it is there
    #[arg(short, long, requires = "output")]
    pub force: bool,

    /// A command to start and to watch, as the user who called sudo. What it prints goes to
    /// standard error
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

// Arguments of `open`.
#[derive(Debug, Args)]
pub struct Open {
    /// A recording, or - for standard input, also while it is being made; machines to sample now, as
    /// ssh://[USER@]HOST[:PORT][/PATH/TO/PROFTOP]; or what proftop-fleet has to fetch, as
    /// pyroscope+https://HOST/?q=SELECTOR, parquet+DIR or parquet+s3://BUCKET/PREFIX
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// What to count: of a file that counts several things, such as alloc_space; of machines as
    /// for record
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Begin with the last stretch of the recording, so much time
    #[arg(long, value_name = "TIME", value_parser = values::window)]
    pub last: Option<Duration>,
    #[command(flatten)]
    pub look: LookArgs,
    /// Options of record on each machine, such as -F 49 -g nginx.service; or of proftop-fleet, such as
    /// --token-file FILE
    #[arg(last = true, value_name = "OPTIONS")]
    pub options: Vec<OsString>,
}

/// How the screen looks.
#[derive(Debug, Default, Args)]
pub struct LookArgs {
    /// When to use colors [default: auto]
    #[arg(long, value_enum, value_name = "WHEN", help_heading = "Output")]
    pub color: Option<Color>,
    /// Draw with ASCII characters only
    #[arg(long, help_heading = "Output")]
    pub ascii: bool,
    /// Colors to draw with [default: auto]
    #[arg(long, value_enum, help_heading = "Output")]
    pub theme: Option<Theme>,
    /// The view that opens [default: functions]
    #[arg(long, value_name = "VIEW", value_parser = values::view, help_heading = "Display")]
    pub view: Option<ViewId>,
    /// Order of functions [default: self]
    #[arg(long, value_enum, help_heading = "Display")]
    pub sort: Option<Sort>,
    /// Unit of the numbers [default: the usual one of each view]
    #[arg(long, value_enum, help_heading = "Display")]
    pub unit: Option<Unit>,
    /// Count only samples that pass this filter; proftop man describes filters
    #[arg(long, value_name = "EXPR", value_parser = values::filter, help_heading = "Display")]
    pub filter: Option<Filter>,
    /// Show what differs from this recording
    #[arg(long, value_name = "FILE", help_heading = "Display")]
    pub baseline: Option<PathBuf>,
    /// No screen: commands and answers line by line, for screen readers and dumb terminals
    #[arg(long, help_heading = "Output")]
    pub plain: bool,
    /// Do not begin as this target was left last time, and do not remember how it is left
    #[arg(long, help_heading = "Display")]
    pub fresh: bool,
    /// Do not use the mouse: the terminal selects text with it
    #[arg(long, help_heading = "Output")]
    pub no_mouse: bool,
    /// Look below TO for source text that was compiled below FROM; may be given more than
    /// once
    #[arg(long = "source-map", value_name = "FROM=TO", help_heading = "Output")]
    pub source_maps: Vec<Mapping>,
}

// Arguments of `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// A recording, or - for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print so many functions, those with most samples [default: 20]
    #[arg(long, value_name = "K", value_parser = values::count, conflicts_with_all = ["tree", "peek"])]
    pub top: Option<u32>,
    /// Print the call tree, callers first
    #[arg(long, conflicts_with = "peek")]
    pub tree: bool,
    /// Print what probes counted, as proftop trace does, in text, CSV or JSON
    #[arg(long, conflicts_with_all = ["tree", "peek", "top", "filter", "budget_tokens"])]
    pub probes: bool,
    /// What to count, of a file that counts several things, such as alloc_space
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Count only the last stretch of the recording, so much time
    #[arg(long, value_name = "TIME", value_parser = values::window, conflicts_with = "probes")]
    pub last: Option<Duration>,
    /// Print callers and callees of the functions whose names match
    #[arg(long, value_name = "REGEX", value_parser = values::regex)]
    pub peek: Option<Regex>,
    /// Count only samples that pass this filter; proftop man describes filters
    #[arg(long, value_name = "EXPR", value_parser = values::filter)]
    pub filter: Option<Filter>,
    /// Format of the list of functions, or of what probes counted
    #[arg(long, value_enum, conflicts_with_all = ["tree", "peek"])]
    pub format: Option<Format>,
    /// With --format md: about how long the report may be [default: 1500]
    #[arg(long, value_name = "N", value_parser = values::tokens)]
    pub budget_tokens: Option<u32>,
}

// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// The earlier recording, or pid:1234@30s: record process 1234 now for 30 s
    #[arg(value_name = "A", value_parser = OsStringValueParser::new().try_map(values::operand))]
    pub a: crate::choices::Operand,
    /// The later recording, likewise; - is standard input
    #[arg(value_name = "B", value_parser = OsStringValueParser::new().try_map(values::operand))]
    pub b: crate::choices::Operand,
    /// End with status 3 if a function's share of all samples surely grew by more than
    /// POINTS percentage points
    #[arg(long, value_name = "POINTS", value_parser = values::points)]
    pub fail_over: Option<f64>,
    /// Functions to print [default: 20; all with --format json]
    #[arg(long, value_name = "K", value_parser = values::count)]
    pub top: Option<u32>,
    /// Count only samples that pass this filter; proftop man describes filters
    #[arg(long, value_name = "EXPR", value_parser = values::filter)]
    pub filter: Option<Filter>,
    /// Format of what is printed: text, json (see docs/diff-json.md) or md [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = format_of_answers())]
    pub format: Option<Format>,
    /// With --format md: about how long the text may be [default: 1500]
    #[arg(long, value_name = "N", value_parser = values::tokens)]
    pub budget_tokens: Option<u32>,
}

// Arguments of `merge`.
#[derive(Debug, Args)]
pub struct Merge {
    /// Recordings. A process that is in two of them is counted as two processes
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// The file to write, or - for standard output; its name tells the format:
    /// .pft, .folded, .pb.gz, .speedscope.json, .firefox.json, .trace.json, .html or .svg
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Overwrite the file if it is there
    #[arg(short, long)]
    pub force: bool,
}

// Arguments of `mcp`.
#[derive(Debug, Args)]
pub struct Mcp {
    /// Offer a tool that counts and times calls of functions: it puts breakpoints into
    /// running programs, for a minute at most
    #[arg(long)]
    pub allow_probes: bool,
}

// Arguments of `fleet`: all of them are passed on to proftop-fleet, `--help` too.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct Fleet {
    /// What proftop-fleet is to do, as in top DIR; see proftop fleet --help
    #[arg(
        value_name = "WORDS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub words: Vec<OsString>,
}

// Arguments of `resolve`.
#[derive(Debug, Args)]
pub struct Resolve {
    /// A recording, or - for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Look in this directory, and below it, for the programs, libraries and debug
    /// files; may be given more than once. Files of this machine are looked at, too
    #[arg(long = "debug-dir", value_name = "DIR")]
    pub directories: Vec<PathBuf>,
    /// The .pft to write, or - for standard output [default: FILE, if it is a .pft]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite the file if it is there
    #[arg(short, long)]
    pub force: bool,
}

// Arguments of `export`.
#[derive(Debug, Args)]
pub struct Export {
    /// A recording, or - for standard input
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// The file to write, or - for standard output; its name tells the format
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// The format, if the name does not tell it: pft, folded, pprof, speedscope,
    /// firefox, trace, html or svg
    #[arg(long, value_name = "FORMAT", value_parser = values::file_format)]
    pub format: Option<profile::formats::Format>,
    /// What to count, of a file that counts several things, such as alloc_space
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Write only the last stretch of the recording, so much time
    #[arg(long, value_name = "TIME", value_parser = values::window)]
    pub last: Option<Duration>,
    /// Write only samples that pass this filter; proftop man describes filters
    #[arg(long, value_name = "EXPR", value_parser = values::filter)]
    pub filter: Option<Filter>,
    /// Keep threads apart where the format would join those of one name
    #[arg(long)]
    pub by_thread: bool,
    /// Write numbers instead of the names of processes, users, machines and directories.
    /// Those of files with code, and so of programs, and of functions stay
    #[arg(long)]
    pub hide_names: bool,
    /// Leave out names of functions; proftop resolve finds them again where the files are
    #[arg(long)]
    pub no_symbols: bool,
    /// Leave out build-ids, which tell the exact build of each file
    #[arg(long)]
    pub no_build_ids: bool,
    /// Overwrite the file if it is there
    #[arg(short, long)]
    pub force: bool,
}

// The options without a subcommand: those of the live screen and of `--batch`.
#[derive(Debug, Args)]
pub struct Top {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub sample: SampleArgs,
    /// How long samples are kept [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = values::keep, help_heading = "Sampling")]
    pub keep: Option<Duration>,
    /// Memory for samples, symbols and all else that grows; when it is full the oldest samples
    /// leave first [default: 256M]
    #[arg(long, value_name = "SIZE", value_parser = values::memory, help_heading = "Sampling")]
    pub mem: Option<u64>,

    /// Show the samples of this last stretch of time [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = values::window, help_heading = "Display")]
    pub window: Option<Duration>,
    /// Time between redraws; with --batch, the time that one report covers [default: 1]
    #[arg(short, long, value_name = "SECS", value_parser = values::delay, help_heading = "Display")]
    pub delay: Option<Duration>,
    /// Freeze the view so long after the first samples; sampling goes on
    #[arg(long, value_name = "TIME", value_parser = values::window, help_heading = "Display")]
    pub freeze_after: Option<Duration>,

    /// Print reports instead of opening the screen
    #[arg(short, long, help_heading = "Output")]
    pub batch: bool,
    /// End after N reports
    #[arg(short = 'n', long = "reports", value_name = "N", value_parser = values::count, help_heading = "Output")]
    pub reports: Option<u32>,
    /// Functions per report [default: 20]
    #[arg(long, value_name = "K", value_parser = values::count, help_heading = "Output")]
    pub top: Option<u32>,
    /// Format of reports [default: text]
    #[arg(long, value_enum, help_heading = "Output")]
    pub format: Option<Format>,
    /// With --format md: about how long a report may be [default: 1500]
    #[arg(long, value_name = "N", value_parser = values::tokens, help_heading = "Output")]
    pub budget_tokens: Option<u32>,
    /// Write reports to a new file
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Let -o overwrite a file
    #[arg(short, long, help_heading = "Output")]
    pub force: bool,
    #[command(flatten)]
    pub look: LookArgs,

    /// A command to start and to watch, as the user who called sudo. On the screen O shows what
    /// it prints, and quitting ends it; with --batch that goes to standard error, unless -o takes
    /// the reports
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Reads a command line, whose first word is the name of the program. The error may also be
/// the text of the help or the version.
pub fn read(mut words: Vec<OsString>) -> Result<Words, clap::Error> {
    // `proftop top` means `proftop`, for users who expect a subcommand there.
    if words.get(1).is_some_and(|word| word == "top") {
        words.remove(1);
    }
    // Likewise `proftop help record` means `proftop record --help`.
    if words.get(1).is_some_and(|word| word == "help") && words.len() <= 3 {
        words.remove(1);
        words.push("--help".into());
    }
    Words::from_arg_matches(&command(&words).try_get_matches_from(words)?)
}

/// Returns the parser. The text of `-h` is written by hand and fits on one screen; that of
/// `--help` is made from the doc comments above.
fn command(words: &[OsString]) -> clap::Command {
    let ours = words.iter().take_while(|&word| word != "--");
    let long = ours.into_iter().any(|word| word == "--help");
    let command = Words::command();
    // `trace` shares the target's options with the others, but refuses `--cpu`.
    let hide = |option: clap::Arg| option.hide(true);
    let command = command.mut_subcommand("trace", |trace| trace.mut_arg("cpus", hide));
    if long {
        command
    } else {
        command.override_help(help::SCREEN)
    }
}

/// Returns the parser of the format of `trace`, which has all formats but Markdown.
fn trace_format() -> impl TypedValueParser<Value = Format> {
    one_of(&["text", "csv", "json"])
}

/// Returns the parser of the format of `diff` and `doctor`, which have all formats but CSV.
fn format_of_answers() -> impl TypedValueParser<Value = Format> {
    one_of(&["text", "json", "md"])
}

fn one_of(formats: &'static [&'static str]) -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(formats).try_map(|word| Format::from_str(&word, false))
}
