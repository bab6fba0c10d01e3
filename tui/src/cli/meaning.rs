//! From options to a [`Config`]: what goes together and what does not.

use super::args::{Sub, Symbolize, Top, Words};
use super::{
    BatchConfig, CommandLine, Config, DoctorConfig, Format, Look, Mode, Request, SampleConfig,
    ShowConfig, SymbolizeConfig, SymbolizeTask, TargetSpec, values::Ids,
};
use crate::failure::Failure;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const WINDOW_DEFAULT: Duration = Duration::from_secs(10);
const ROWS_DEFAULT: usize = 20;

pub fn request(words: Words) -> Result<Request, Failure> {
    match words.subcommand {
        Some(Sub::Doctor(doctor)) => Ok(Request::Doctor(DoctorConfig {
            pid: doctor.pid,
            json: doctor.json,
        })),
        Some(Sub::Symbolize(symbolize)) => symbolize_config(symbolize).map(Request::Symbolize),
        None => config(words.top).map(|config| Request::Top(Box::new(config))),
    }
}

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

fn config(top: Top) -> Result<Config, Failure> {
    let mode = mode(&top)?;
    let show = show(&top, &mode)?;
    let sample = SampleConfig {
        rate_hz: top.rate,
        depth_max: top.max_depth,
        keep: top.keep,
        memory_bytes_max: top.mem,
    };
    let look = Look {
        color: top.color,
        ascii: top.ascii,
        theme: top.theme,
        mouse: !top.no_mouse,
    };
    let target = TargetSpec {
        pids: flatten(&top.pids),
        tids: flatten(&top.tids),
        comm: top.comm,
        cgroup: top.cgroup,
        no_children: top.no_children,
    };
    let mut command = top.command.into_iter();
    let command = command.next().map(|program| CommandLine {
        program,
        args: command.collect(),
    });
    check_target(&target, command.is_some())?;
    Ok(Config {
        target,
        sample,
        show,
        look,
        mode,
        command,
    })
}

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
            None => Ok(Mode::Screen),
        };
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
        file: top.output.clone(),
        overwrite: top.force,
    }))
}

/// A person wants the top of the list, a program all of it.
fn rows_default(format: Format) -> Option<usize> {
    match format {
        Format::Text => Some(ROWS_DEFAULT),
        Format::Csv | Format::Json => None,
    }
}

fn show(top: &Top, mode: &Mode) -> Result<ShowConfig, Failure> {
    let window = match (mode, top.window) {
        (Mode::Batch(_), None) => top.delay,
        (Mode::Batch(_), Some(_)) => {
            return Err(Failure::usage(
                "with --batch a report covers one delay: give its length with -d instead of --window",
            ));
        }
        (Mode::Screen, given) => given.unwrap_or(WINDOW_DEFAULT.min(top.keep)),
    };
    if window > top.keep {
        let option = if top.window.is_some() {
            "--window"
        } else {
            "-d"
        };
        return Err(Failure::usage(format!(
            "{option} asks for {} s, but --keep holds only {} s",
            window.as_secs_f64(),
            top.keep.as_secs()
        )));
    }
    Ok(ShowConfig {
        window,
        sort: top.sort,
        delay: top.delay,
    })
}

fn check_target(target: &TargetSpec, command: bool) -> Result<(), Failure> {
    let by_id = !target.pids.is_empty() || !target.tids.is_empty();
    if command && (by_id || target.cgroup.is_some()) {
        return Err(Failure::usage(
            "-- COMMAND is itself the target: leave out -p, -t and -g",
        ));
    }
    if target.no_children && target.pids.is_empty() && !command {
        return Err(Failure::usage(
            "--no-children needs a process to be about: add -p PID or -- COMMAND",
        ));
    }
    Ok(())
}

fn flatten(lists: &[Ids]) -> Vec<u32> {
    let mut ids: Vec<u32> = lists.iter().flatten().copied().collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
