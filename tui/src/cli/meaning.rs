//! From options to a [`Config`]: fills in the configuration and the defaults, and refuses
//! options that do not go together.

mod fleet;
mod machines;
mod recorder;
mod trace;

pub use recorder::CONTROL;

use super::args::{
    Export, LookArgs, Open, Record, Report, SampleArgs, Sub, Symbolize, TargetArgs, Top, Words,
};
use super::{
    BatchConfig, CommandLine, Config, DiffConfig, DoctorConfig, ExportConfig, Look, McpConfig,
    MergeConfig, Mode, OpenConfig, RecordConfig, RecordingSource, ReportConfig, ReportShape,
    Request, ResolveConfig, SampleConfig, ShowConfig, SymbolizeConfig, SymbolizeTask,
};
use crate::choices::{Color, EngineChoice, Format, Sort, Theme};
use crate::code::SourceMap;
use crate::config::{Complaint, Settings};
use crate::dialogs::write::Manner;
use crate::failure::Failure;
use crate::target::TargetSpec;
use profile::formats::{Format as FileFormat, Packing};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The settings of the configuration files, and what is wrong in the files.
type Configuration = (Settings, Vec<Complaint>);

/// Defaults, if neither the command line nor the configuration has a value: how long samples stay
/// in memory, and how many bytes they may take.
const KEEP_DEFAULT: Duration = Duration::from_secs(600);
const MEMORY_DEFAULT: u64 = 256 << 20;
/// The maximum depth of user stacks, in frames.
const DEPTH_DEFAULT: u32 = 512;
/// Time between two updates of the screen, and between two reports.
const DELAY_DEFAULT: Duration = Duration::from_secs(1);
/// The length of the window of newest samples that the screen shows.
const WINDOW_DEFAULT: Duration = Duration::from_secs(10);
/// How many functions a report for people lists.
const ROWS_DEFAULT: usize = 20;
/// The maximum length of a report in Markdown: half a page, which leaves room for a question.
const TOKENS_DEFAULT: u32 = 1500;
/// A recording is written in steps of this length, so `kill -9` loses at most one step.
const RECORD_STEP: Duration = Duration::from_secs(1);
/// How long samples stay in memory while recording. Older ones are in the file; these are kept for
/// names that arrive late.
const RECORD_KEEP: Duration = Duration::from_secs(60);
/// What samples may take in memory while recording, in bytes.
const RECORD_MEMORY: u64 = 256 << 20;

/// Turns the command line into a request. `configuration` reads the configuration files, and is
/// called only by requests that need them.
pub fn request(
    words: Words,
    configuration: impl FnOnce() -> Configuration,
) -> Result<Request, Failure> {
    match words.subcommand {
        Some(Sub::Doctor(doctor)) => {
            let format = if doctor.json {
                Format::Json
            } else {
                doctor.format.unwrap_or(Format::Text)
            };
            Ok(Request::Doctor(DoctorConfig {
                pid: doctor.pid,
                format,
                tokens_max: tokens_max(doctor.budget_tokens, format)?,
            }))
        }
        Some(Sub::Symbolize(symbolize)) => symbolize_config(symbolize).map(Request::Symbolize),
        Some(Sub::Record(words)) => {
            record(*words, configuration()).map(|config| Request::Top(Box::new(config)))
        }
        Some(Sub::Agent(words)) => recorder::request(*words, configuration),
        Some(Sub::Trace(words)) => {
            trace::config(*words, configuration()).map(|config| Request::Top(Box::new(config)))
        }
        Some(Sub::Open(words)) if machines::are_named(&words) => {
            let look = look(&words.look, configuration());
            machines::config(words, look).map(Request::Machines)
        }
        Some(Sub::Open(words)) => Ok(Request::Open(OpenConfig {
            source: source(&words)?,
            metric: words.metric,
            last: words.last,
            look: look(&words.look, configuration()),
        })),
        Some(Sub::Demo(words)) => Ok(Request::Open(OpenConfig {
            source: RecordingSource::BuiltIn,
            metric: None,
            last: None,
            look: look(&words, configuration()),
        })),
        Some(Sub::Config(words)) => Ok(Request::Configuration(words.task)),
        Some(Sub::Completions(words)) => Ok(Request::Completions(words.shell)),
        Some(Sub::Man) => Ok(Request::Manual),
        Some(Sub::Report(words)) => Ok(Request::Report(report(words)?)),
        Some(Sub::Diff(words)) => {
            let format = words.format.unwrap_or(Format::Text);
            let rows_max = words.top.map(|rows| rows as usize);
            Ok(Request::Diff(DiffConfig {
                a: words.a,
                b: words.b,
                filter: words.filter.unwrap_or_default(),
                rows_max: rows_max.or(rows_default(format)),
                format,
                tokens_max: tokens_max(words.budget_tokens, format)?,
                fail_over_points: words.fail_over,
            }))
        }
        Some(Sub::Merge(words)) => Ok(Request::Merge(MergeConfig {
            files: words.files,
            format: recorded_format(Some(&words.output), "")?,
            output: words.output,
            overwrite: words.force,
        })),
        Some(Sub::Mcp(words)) => Ok(Request::Mcp(McpConfig {
            allows_probes: words.allow_probes,
        })),
        Some(Sub::Fleet(words)) => Ok(Request::Fleet(words.words)),
        Some(Sub::Resolve(words)) => {
            check_is_pft(words.output.as_deref())?;
            Ok(Request::Resolve(ResolveConfig {
                file: words.file,
                directories: words.directories,
                output: words.output,
                overwrite: words.force,
            }))
        }
        Some(Sub::Export(words)) => Ok(Request::Export(export(words))),
        None => config(words.top, configuration()).map(|config| Request::Top(Box::new(config))),
    }
}

/// Returns what `open` shows: a file, or what proftop-fleet fetches.
fn source(words: &Open) -> Result<RecordingSource, Failure> {
    if fleet::is_named(words) {
        fleet::address(words).map(RecordingSource::Fleet)
    } else {
        only_file(words).map(RecordingSource::File)
    }
}

/// Returns the file that `open` shows.
fn only_file(words: &Open) -> Result<PathBuf, Failure> {
    if !words.options.is_empty() {
        let what =
            "options behind -- are for machines (ssh://HOST) and proftop-fleet, not for a file";
        return Err(Failure::usage(what));
    }
    match &words.files[..] {
        [file] => Ok(file.clone()),
        _ => Err(Failure::usage(
            "open shows one file; proftop merge puts several together",
        )),
    }
}

/// Returns the configuration of `symbolize`. Its operands depend on the options: files of which
/// tables are made, addresses in a process, or a file and addresses in it.
fn symbolize_config(args: Symbolize) -> Result<SymbolizeConfig, Failure> {
    let mut words = args.words.into_iter();
    let addresses = |words: std::vec::IntoIter<OsString>| {
        let text = |word: OsString| word.to_string_lossy().into_owned();
        words.map(text).collect::<Vec<String>>()
    };
    let task = match (args.build_cache, args.pid) {
        (Some(directory), _) => {
            let files: Vec<PathBuf> = words.map(PathBuf::from).collect();
            if files.is_empty() {
                return Err(Failure::usage("--build-cache needs the files to resolve"));
            }
            SymbolizeTask::BuildCache { directory, files }
        }
        (None, Some(pid)) => SymbolizeTask::Process {
            pid,
            addresses: addresses(words),
        },
        (None, None) => SymbolizeTask::File {
            file: words.next().map(PathBuf::from),
            cache: args.cache,
            addresses: addresses(words),
        },
    };
    Ok(SymbolizeConfig {
        task,
        format: args.format,
        demangle: !args.no_demangle,
    })
}

/// Returns the configuration of the screen or of batch output. For each setting the command
/// line wins over the configuration files, and these over the default.
fn config(top: Top, configuration: Configuration) -> Result<Config, Failure> {
    let settings = &configuration.0;
    let mode = mode(&top)?;
    let mut sample = sample(&top.sample, settings);
    sample.keep = top.keep.or(settings.keep).unwrap_or(KEEP_DEFAULT);
    let memory = top.mem.or(settings.memory_bytes_max);
    sample.memory_bytes_max = memory.unwrap_or(MEMORY_DEFAULT);
    let show = show(&top, &mode, sample.keep, settings)?;
    let (target, command) = target(top.target, top.command)?;
    Ok(Config {
        target,
        sample,
        show,
        look: look(&top.look, configuration),
        mode,
        command,
    })
}

/// Returns how the screen looks and begins. If two source maps have the same folder, that of the
/// command line wins.
fn look(words: &LookArgs, (settings, complaints): Configuration) -> Look {
    let home = crate::config::home();
    let own = words.source_maps.iter().cloned();
    let written = settings
        .source_maps
        .into_iter()
        .map(|mapping| mapping.at_home(home.as_deref()));
    Look {
        color: words.color.or(settings.color).unwrap_or(Color::Auto),
        ascii: words.ascii || settings.ascii.unwrap_or(false),
        theme: words.theme.or(settings.theme).unwrap_or(Theme::Auto),
        mouse: !words.no_mouse && settings.mouse.unwrap_or(true),
        start: words.view.or(settings.start).unwrap_or_default(),
        asks_sort: words.sort.is_some(),
        unit: words.unit.or(settings.unit),
        asks_unit: words.unit.is_some(),
        fresh: words.fresh,
        sort: words.sort.or(settings.sort).unwrap_or(Sort::SelfTime),
        filter: words.filter.clone().unwrap_or_default(),
        baseline: words.baseline.clone(),
        plain: words.plain || plain_is_set(),
        keymap: settings.keymap,
        complaints,
        sources: SourceMap::new(own.chain(written)),
    }
}

/// Returns the configuration of a run that records, without a screen or reports.
fn recording(
    record: RecordConfig,
    target: TargetSpec,
    sample: SampleConfig,
    configuration: Configuration,
    command: Option<CommandLine>,
) -> Config {
    Config {
        target,
        sample,
        show: ShowConfig {
            window: RECORD_STEP,
            delay: RECORD_STEP,
            freeze_after: None,
        },
        look: look(&LookArgs::default(), configuration),
        mode: Mode::Record(record),
        command,
    }
}

/// Returns the configuration of `record`. Without `-o` the file gets a default name; `-` is
/// standard output.
fn record(words: Record, configuration: Configuration) -> Result<Config, Failure> {
    let probes = trace::recorded(&words)?;
    let (target, command) = target(words.target, words.command)?;
    let ring = recorder::ring(words.ring, words.ring_args)?;
    let file = match words.output {
        Some(path) if path.as_os_str() == "-" => None,
        Some(path) => Some(path),
        None if ring.is_some() => Some("proftop-ring.pft".into()),
        None => Some(RecordConfig::default_file(words.format)),
    };
    let format = match words.format {
        Some(format) => format,
        None => recorded_format(file.as_deref(), ", or add --format")?,
    };
    if !probes.functions.is_empty() && !format.has_probes() {
        return Err(Failure::usage(format!(
            "{} has no place for what probes count: --probe takes .pft, .pb.gz, .trace.json and \
             .firefox.json",
            format.word()
        )));
    }
    let mut sample = sample(&words.sample, &configuration.0);
    if let Some(ring) = &ring {
        recorder::check(ring, file.as_deref(), format, &sample)?;
        sample.keep = recorder::keep(ring);
    }
    let record = RecordConfig {
        duration: words.duration,
        file,
        format,
        overwrite: words.force,
        probes,
        ring,
    };
    Ok(recording(record, target, sample, configuration, command))
}

/// Returns the format for the name of a file. A name without an extension, such as that of a pipe,
/// means .pft. An unknown extension is an error; `or` is the end of its message, with another way
/// out.
fn recorded_format(file: Option<&Path>, or: &str) -> Result<FileFormat, Failure> {
    let Some(file) = file else {
        return Ok(FileFormat::Pft);
    };
    if let Some(format) = FileFormat::of_path(file) {
        return Ok(format);
    }
    let Some(end) = file.extension() else {
        return Ok(FileFormat::Pft);
    };
    let endings = FileFormat::ALL.map(|format| format.endings()[0]).join(", ");
    let end = symbolize::sanitize(end.as_encoded_bytes());
    Err(Failure::usage(format!(
        "no format has names that end in .{end}: use one of {endings}, perhaps with .gz or .zst \
         behind it{or}"
    )))
}

/// Returns an error if the name of a file stands for another format than .pft.
fn check_is_pft(file: Option<&Path>) -> Result<(), Failure> {
    let is_packed = file.and_then(Packing::of_path).is_some();
    match recorded_format(file, "")? {
        FileFormat::Pft if !is_packed => Ok(()),
        _ => Err(Failure::usage(
            "resolve writes a .pft, which proftop export turns into other formats: -o FILE.pft",
        )),
    }
}

/// Returns the configuration of `report`: what it prints depends on `--tree` and `--peek`.
fn report(words: Report) -> Result<ReportConfig, Failure> {
    let shape = match (words.tree, words.peek) {
        (true, _) => ReportShape::Tree,
        (_, Some(pattern)) => ReportShape::Peek(pattern),
        _ if words.probes => match words.format.unwrap_or(Format::Text) {
            Format::Md => return Err(Failure::usage("--probes has no format md")),
            format => ReportShape::Probes(format),
        },
        _ => {
            let format = words.format.unwrap_or(Format::Text);
            let rows_max = words.top.map(|rows| rows as usize).or(rows_default(format));
            ReportShape::Functions {
                rows_max,
                format,
                tokens_max: tokens_max(words.budget_tokens, format)?,
            }
        }
    };
    Ok(ReportConfig {
        file: words.file,
        metric: words.metric,
        last: words.last,
        filter: words.filter.unwrap_or_default(),
        shape,
    })
}

/// Returns the configuration of `export`.
fn export(words: Export) -> ExportConfig {
    ExportConfig {
        input: words.input,
        output: words.output,
        format: words.format,
        metric: words.metric,
        last: words.last,
        filter: words.filter.unwrap_or_default(),
        manner: Manner {
            by_thread: words.by_thread,
            hides_names: words.hide_names,
            omits_symbols: words.no_symbols,
            omits_build_ids: words.no_build_ids,
        },
        overwrite: words.force,
    }
}

/// Returns how samples are taken. Time and memory are set for a recording, whose file has the
/// samples that left memory; `config` replaces them.
fn sample(words: &SampleArgs, settings: &Settings) -> SampleConfig {
    let engine = words.engine.or(settings.engine);
    let rate_hz = words.rate.or(settings.rate_hz);
    let depth_max = words.max_depth.or(settings.depth_max);
    SampleConfig {
        engine: engine.unwrap_or(EngineChoice::Auto),
        rate_hz: rate_hz.unwrap_or(probe::features::RATE_DEFAULT),
        counted: words.metric.clone().unwrap_or_default(),
        depth_max: depth_max.unwrap_or(DEPTH_DEFAULT),
        budget: words.budget.or(settings.budget),
        keep: RECORD_KEEP,
        memory_bytes_max: RECORD_MEMORY,
    }
}

/// Returns what is sampled, and the command to start if there is one. Ids are sorted and without
/// duplicates.
fn target(
    words: TargetArgs,
    command: Vec<OsString>,
) -> Result<(TargetSpec, Option<CommandLine>), Failure> {
    let target = TargetSpec {
        pids: flatten(&words.pids),
        tids: flatten(&words.tids),
        comm: words.comm,
        cgroup: words.cgroup,
        users: words.users.into_iter().flatten().collect(),
        cpus: flatten(&words.cpus),
        no_children: words.no_children,
    };
    let mut command = command.into_iter();
    let command = command.next().map(|program| CommandLine {
        program,
        args: command.collect(),
    });
    check_target(&target, command.is_some())?;
    Ok((target, command))
}

/// Returns whether reports are printed or a screen is shown. Options that have no effect in that
/// mode are refused, with a hint, because an ignored option would look as if it had worked.
fn mode(top: &Top) -> Result<Mode, Failure> {
    if !top.batch {
        let needs_batch = [
            (top.reports.is_some(), "-n"),
            (top.top.is_some(), "--top"),
            (top.format.is_some(), "--format"),
            (top.output.is_some(), "-o"),
            (top.force, "-f"),
        ];
        return match needs_batch.iter().find(|(given, _)| *given) {
            Some((_, option)) => Err(Failure::usage(format!(
                "{option} is about printed reports: add --batch (-b)"
            ))),
            None if top.freeze_after.is_some() && (top.look.plain || plain_is_set()) => {
                Err(Failure::usage(
                    "--freeze-after works on the screen only: with --plain, type freeze",
                ))
            }
            None => Ok(Mode::Screen),
        };
    }
    let needs_screen = [
        (top.look.view.is_some(), "--view"),
        (top.look.unit.is_some(), "--unit"),
        (top.freeze_after.is_some(), "--freeze-after"),
        (top.look.baseline.is_some(), "--baseline"),
        (top.look.plain, "--plain"),
        (top.look.fresh, "--fresh"),
    ];
    if let Some((_, option)) = needs_screen.iter().find(|(given, _)| *given) {
        return Err(Failure::usage(match *option {
            "--baseline" => "--baseline is about the screen: leave out --batch, or use proftop \
                             record, and then proftop diff BASELINE FILE"
                .to_owned(),
            option => format!("{option} is about the screen: leave out --batch"),
        }));
    }
    if top.force && top.output.is_none() {
        return Err(Failure::usage(
            "-f lets -o overwrite a file, but there is no -o",
        ));
    }
    let format = top.format.unwrap_or(Format::Text);
    Ok(Mode::Batch(BatchConfig {
        reports_max: top.reports,
        rows_max: top.top.map(|rows| rows as usize).or(rows_default(format)),
        format,
        tokens_max: tokens_max(top.budget_tokens, format)?,
        // As in `record`, `-` is standard output.
        file: top.output.clone().filter(|path| path.as_os_str() != "-"),
        overwrite: top.force,
    }))
}

/// Returns the maximum length of a report in Markdown, in tokens. A length for another format is an
/// error.
fn tokens_max(asked: Option<u32>, format: Format) -> Result<usize, Failure> {
    match (asked, format) {
        (Some(_), Format::Text | Format::Csv | Format::Json) => Err(Failure::usage(
            "--budget-tokens says how long --format md may be: add it",
        )),
        (tokens, _) => Ok(tokens.unwrap_or(TOKENS_DEFAULT) as usize),
    }
}

/// Returns how many functions are listed by default; None lists all. People want the top ones,
/// programs want all.
fn rows_default(format: Format) -> Option<usize> {
    match format {
        Format::Text => Some(ROWS_DEFAULT),
        Format::Csv | Format::Json | Format::Md => None,
    }
}

/// Returns which time is shown, and how often. In batch mode a report covers the time since the one
/// before, so the delay is the window; on the screen the window may be longer. A window that is
/// longer than the time for which samples are kept is an error.
fn show(
    top: &Top,
    mode: &Mode,
    keep: Duration,
    settings: &Settings,
) -> Result<ShowConfig, Failure> {
    // The refresh time of the configuration is for screens only: a report covers one `delay`.
    let refresh = settings.refresh.filter(|_| *mode == Mode::Screen);
    let delay = top.delay.or(refresh).unwrap_or(DELAY_DEFAULT);
    let window = match (mode, top.window) {
        (Mode::Batch(_), None) => delay,
        (Mode::Batch(_), Some(_)) => {
            return Err(Failure::usage(
                "with --batch a report covers one delay: give its length with -d instead of --window",
            ));
        }
        (Mode::Screen | Mode::Record(_) | Mode::Trace(_), Some(given)) => given,
        (Mode::Screen | Mode::Record(_) | Mode::Trace(_), None) => {
            settings.window.unwrap_or(WINDOW_DEFAULT).min(keep)
        }
    };
    if window > keep {
        let option = if top.window.is_some() {
            "--window"
        } else {
            "-d"
        };
        return Err(Failure::usage(format!(
            "{option} asks for {} s, but --keep holds only {} s",
            window.as_secs_f64(),
            keep.as_secs()
        )));
    }
    Ok(ShowConfig {
        window,
        delay,
        freeze_after: top.freeze_after,
    })
}

/// Returns an error if parts of a target contradict each other.
fn check_target(target: &TargetSpec, command: bool) -> Result<(), Failure> {
    let by_id = !target.pids.is_empty() || !target.tids.is_empty();
    if command && (by_id || target.cgroup.is_some()) {
        return Err(Failure::usage(
            "-- COMMAND is itself the target: leave out -p, -t and -g",
        ));
    }
    if target.no_children && target.pids.is_empty() && !command {
        return Err(Failure::usage(
            "--no-children needs a process: add -p PID or -- COMMAND",
        ));
    }
    Ok(())
}

/// Returns all numbers of an option that may be given several times, sorted and without duplicates.
fn flatten(lists: &[Box<[u32]>]) -> Vec<u32> {
    let mut ids: Vec<u32> = lists.iter().flatten().copied().collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Whether the environment variable `PROFTOP_PLAIN` asks for a dialog in lines of text.
fn plain_is_set() -> bool {
    let set = std::env::var_os("PROFTOP_PLAIN");
    set.is_some_and(|value| !value.is_empty() && value != "0")
}
