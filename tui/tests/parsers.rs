//! Processes that parse files may be killed by them, or find no memory: samples and names of other
//! files go on.

use crate::common;

use common::memory_group::MemoryGroup;
use common::{can_sample, list, number, parsers_of, proftop};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use symbolize::{ElfSymbols, FileOffset};
use test_support::{
    NO_PYTHON, Process, Random, cases, compile, copy_program, pythons, skip, wait_until,
};

/// How many processes the test kills.
const KILLS: usize = 100;

/// Maximum pause between two kills: some parsers do their work before they are killed.
const PAUSE_US: u64 = 30_000;

/// The same for parsers that look for Python: none of those that are asked first whether a file is an
/// interpreter does its work.
const PYTHON_PAUSE_US: u64 = 1_000;

/// Number of functions that the program calls one after the other, so that there are new ones
/// to name all the time.
const FUNCTIONS: usize = 2000;

fn program(folder: &Path, flags: &[&str]) -> Option<PathBuf> {
    let (source, program) = (folder.join("many.c"), folder.join("many"));
    let mut text = String::from("volatile long sink;\n");
    // Each instruction that is sampled is a frame of its own.
    let work = "sink += i; sink ^= i; ".repeat(10);
    let body = format!("for (int i = 0; i < 20000; i++) {{ {work} }}");
    let mut calls = String::new();
    for number in 0..FUNCTIONS {
        writeln!(text, "void turn_{number}(void) {{ {body} }}").expect("a String takes all");
        writeln!(calls, "turn_{number}();").expect("a String takes all");
    }
    write!(text, "int main(void) {{ for (;;) {{ {calls} }} }}").expect("a String takes all");
    fs::write(&source, text).expect("a file");
    compile(&source, &program, [&["-O1"], flags].concat())?;
    Some(program)
}

/// Kills a process. Returns false if it has ended.
fn kill(process: u32) -> bool {
    let process = Pid::from_raw(process.cast_signed()).expect("a process");
    kill_process(process, Signal::KILL).is_ok()
}

#[test]
fn no_sample_is_lost_and_no_name_wrong_while_they_are_killed() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = program(folder.path(), &[]) else {
        return;
    };
    let many = Process::start_load(&mut Command::new(&program));
    let pid = many.pid().to_string();
    let args = ["-b", "--format", "json", "-d", "1", "-F", "499", "-p", &pid];
    sample_while_they_are_killed(&args, folder.path(), PAUSE_US, |reports| {
        named(&symbols(&program), reports, "many")
    });
}

/// Samples while parsers are killed, with random pauses of up to `pause_us` between kills; `named` counts
/// the samples with a name, and fails if a name is wrong.
fn sample_while_they_are_killed(
    args: &[&str],
    folder: &Path,
    pause_us: u64,
    named: impl Fn(&[Value]) -> u64,
) {
    let output = folder.join("reports");
    let mut command = proftop(args);
    command.env("PROFTOP_CACHE", folder);
    command.stdout(fs::File::create(&output).expect("a file"));
    command.stderr(Stdio::null());
    let mut sampling = Process::start(&mut command);
    let (mut random, mut killed) = (Random::new(11), 0);
    wait_until("a hundred are killed", || {
        std::thread::sleep(Duration::from_micros(random.below(pause_us)));
        let parsers = parsers_of(sampling.pid()).into_iter();
        killed += parsers.filter(|parser| kill(*parser)).count();
        killed >= KILLS
    });
    let named_before = named(&reports_in(&output));
    wait_until("more is named afterwards", || {
        named(&reports_in(&output)) > named_before
    });
    sampling.interrupt();
    assert!(sampling.wait().expect("ours").success());
    let reports = reports_in(&output);
    let last = reports.last().expect("a report");
    assert_eq!(number(last, "lost_run"), 0, "{last}");
    assert!(number(last, "samples_run") > 0, "{last}");
}

/// Memory that all parsers together may take once they run: less than one needs for its work.
const LITTLE_MEMORY: u64 = 64 << 10;

/// Work on a file ends four parsers, and is not tried again then. If none has ended for this long,
/// there is a new file.
const ENDED_FOR: Duration = Duration::from_millis(100);

/// How often the test looks for new parsers before it looks whether it takes too long.
const LOOKS: u32 = 100;

/// How many programs run at the same time.
const PROGRAMS: usize = 3;

#[test]
fn no_sample_is_lost_and_no_name_wrong_while_they_find_no_memory() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // Without a build-id, proftop takes each copy of the program for another file, although their
    // bytes are equal.
    let program = program(folder.path(), &["-Wl,--build-id=none"]);
    let (Some(program), Some(little)) = (program, MemoryGroup::of(LITTLE_MEMORY)) else {
        return;
    };
    let (mut programs, mut copies) = (VecDeque::new(), 0);
    let mut start_copy = || {
        copies += 1;
        let copy = folder.path().join(format!("many-{copies}"));
        copy_program(&program, &copy);
        programs.push_back(Process::start_load(&mut Command::new(copy)));
        if programs.len() > PROGRAMS {
            programs.pop_front();
        }
        format!("many-{copies}")
    };
    let output = folder.path().join("reports");
    let mut command = proftop(&[
        "-b", "--format", "json", "-d", "1", "-F", "499", "--comm", "^many-",
    ]);
    command.stdout(fs::File::create(&output).expect("a file"));
    let mut sampling = Process::start(command.stderr(Stdio::null()));
    let at_least = cases(40) as usize;
    let (mut ended, mut since) = (0, Instant::now());
    let mut look = || {
        let parsers = parsers_of(sampling.pid());
        parsers.iter().for_each(|parser| little.add(*parser));
        let now_ended = little.ended();
        if now_ended > ended {
            (ended, since) = (now_ended, Instant::now());
        } else if since.elapsed() > ENDED_FOR {
            // One that works on has got memory enough before it was found: another takes its place.
            for parser in parsers {
                kill(parser);
            }
            start_copy();
            since = Instant::now();
        }
        ended >= at_least
    };
    wait_until("enough have ended", || {
        // A parser must be found before it has done its first work.
        (0..LOOKS).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            look()
        })
    });
    // No parser that begins from now on is limited.
    for parser in parsers_of(sampling.pid()) {
        kill(parser);
    }
    let last = start_copy();
    let symbols = symbols(&program);
    wait_until("a new file is named", || {
        named(&symbols, &reports_in(&output), &last) > 0
    });
    sampling.interrupt();
    assert!(sampling.wait().expect("ours").success());
    let reports = reports_in(&output);
    named(&symbols, &reports, "many-");
    let report = reports.last().expect("a report");
    assert_eq!(number(report, "lost_run"), 0, "{report}");
    println!("{copies} files");
}

/// Number of functions of each Python program. Their code is made anew in each round, so that there
/// is always some to read.
const PYTHON_FUNCTIONS: usize = 40;

/// Number of lines of each.
const PYTHON_LINES: usize = 3;

/// Starts a Python program that calls functions of the file `word.py`, one after the other.
fn python_program(python: &Path, folder: &Path, word: &str) -> Process {
    let mut text = String::new();
    for number in 0..PYTHON_FUNCTIONS {
        let head = format!("def {word}_{number}():\n s = 0\n");
        writeln!(text, "{head} for i in range(20000): s += i").expect("a String takes all");
    }
    let file = folder.join(format!("{word}.py"));
    fs::write(&file, text).expect("a file");
    let rounds = "import sys\n\
                  text = open(sys.argv[1]).read()\n\
                  while True:\n    \
                      names = {}\n    \
                      exec(compile(text, sys.argv[1], 'exec'), names)\n    \
                      for name in [it for it in names if it[0] != '_']: names[name]()\n";
    Process::start_load(Command::new(python).args(["-S", "-c", rounds]).arg(&file))
}

/// Returns the samples of the functions of two Python programs. Fails if a name is not that of the
/// function at its line.
fn named_of_python(reports: &[Value]) -> u64 {
    let functions = reports.iter().flat_map(|report| list(report, "functions"));
    let named = functions.filter(|function| {
        let is_named = function["kind"] == "python" && function["no_name"].is_null();
        is_named
            && function["file"]
                .as_str()
                .is_some_and(|file| file.ends_with(".py"))
    });
    let samples = named.map(|function| {
        let name = function["name"].as_str().expect("text");
        let file = function["file"].as_str().expect("text");
        let line = number(function, "line") as usize;
        let word = ["one", "two"]
            .into_iter()
            .find(|word| file.ends_with(&format!("/{word}.py")));
        // Modules of the standard library that are loaded at the start, and instructions without a
        // line, are not checked.
        if let Some(word) = word
            && line > 0
            && name != format!("{word}.<module>")
        {
            let at = (line - 1) / PYTHON_LINES;
            assert_eq!(name, format!("{word}.{word}_{at}"), "{function}");
        }
        number(function, "self")
    });
    samples.sum()
}

#[test]
fn nor_is_one_of_python() {
    if !can_sample() {
        return;
    }
    let Some(python) = pythons().into_values().next_back() else {
        skip(NO_PYTHON);
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let programs = ["one", "two"].map(|word| python_program(&python, folder.path(), word));
    let pids = programs.each_ref().map(|program| program.pid().to_string());
    let pids = pids.join(",");
    let args = [
        "-b", "--format", "json", "-d", "1", "-F", "499", "-p", &pids,
    ];
    sample_while_they_are_killed(&args, folder.path(), PYTHON_PAUSE_US, named_of_python);
}

/// Returns the reports that have been written completely.
fn reports_in(output: &Path) -> Vec<Value> {
    let text = fs::read_to_string(output).expect("text");
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines.collect()
}

fn symbols(program: &Path) -> ElfSymbols {
    ElfSymbols::read(&fs::File::open(program).expect("it is there")).expect("its symbols")
}

/// Returns the samples of the program's functions that have a name, of modules whose name begins
/// like this. Fails if a name is wrong.
fn named(symbols: &ElfSymbols, reports: &[Value], module: &str) -> u64 {
    let functions = reports.iter().flat_map(|report| list(report, "functions"));
    let own = functions.filter(|function| {
        let name = function["module"].as_str();
        name.is_some_and(|name| name.starts_with(module))
    });
    let named = own.filter(|function| function["no_name"].is_null());
    let samples = named.map(|function| {
        let address = function["address"].as_str().expect("text");
        let address = u64::from_str_radix(address.trim_start_matches("0x"), 16);
        let symbol = symbols.find(FileOffset(address.expect("a number")));
        let name = symbol.expect("it has one").name;
        assert_eq!(function["name"].as_str().map(str::as_bytes), Some(name));
        number(function, "self")
    });
    samples.sum()
}
