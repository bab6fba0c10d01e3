//! One job of one tool: see `bench/symbols.py`.
//!
//! ```text
//! symbols-bench build TOOL FILE OUT           everything resolved ahead
//! symbols-bench warm TOOL FILE [OUT]          addresses on standard input
//! symbols-bench first TOOL FILE [OUT]         the first of them, anew each time
//! symbols-bench stream TOOL anew|kept DIR     crash logs on standard input
//! ```
//!
//! Times are CPU times of the one thread that works: whoever else keeps the machine
//! busy makes all of them wait, and none of them slower than the others.

mod answer;
mod peers;
mod tool;

use std::hint::black_box;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use answer::{Answer, Module};
use rustix::time::{ClockId, clock_gettime};
use tool::{open, table_path};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["build", tool, file, out] => tool::build(tool, Path::new(file), Path::new(out)),
        ["warm", tool, file] => warm(&*open(tool, Path::new(file), None)),
        ["warm", tool, file, out] => warm(&*open(tool, Path::new(file), Some(Path::new(out)))),
        ["first", tool, file] => first(tool, Path::new(file), None),
        ["first", tool, file, out] => first(tool, Path::new(file), Some(Path::new(out))),
        ["stream", tool, mode, directory] => stream(tool, mode == "kept", Path::new(directory)),
        _ => panic!("see the source"),
    }
}

fn input() -> String {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    text
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn hex(word: &str) -> u64 {
    u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap()
}

/// Look-ups a second once everything has been asked before.
fn warm(module: &dyn Module) {
    let addresses: Vec<u64> = input().lines().map(hex).collect();
    let ask = || {
        let mut sum = Answer::default();
        addresses.iter().for_each(|addr| sum += module.answer(*addr));
        sum
    };
    let answer = ask();
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = cpu_time();
        black_box(ask());
        best = best.min(cpu_time() - start);
    }
    println!(
        "{} {} {}",
        addresses.len() as f64 / best.as_secs_f64(),
        answer.frames,
        answer.with_lines
    );
}

/// Microseconds from nothing open to an answer, for each address.
fn first(tool: &str, file: &Path, out: Option<&Path>) {
    for addr in input().lines().map(hex) {
        let start = cpu_time();
        black_box(open(tool, file, out).answer(addr));
        println!("{}", (cpu_time() - start).as_nanos() as f64 / 1e3);
    }
}

/// Microseconds for each log, of which an empty line ends one: `FILE 0xADDR`. Which
/// module a line means is found out before: no tool's work.
fn stream(tool: &str, is_kept: bool, directory: &Path) {
    let text = input();
    let mut files: Vec<&str> = Vec::new();
    let logs = text.split("\n\n").filter(|log| !log.is_empty());
    let logs: Vec<Vec<(usize, u64)>> = logs
        .map(|log| log.lines().map(|line| parsed(line, &mut files)).collect())
        .collect();
    let paths: Vec<(&Path, Option<PathBuf>)> = files
        .iter()
        .map(|file| (Path::new(*file), table_path(tool, directory, Path::new(file))))
        .collect();
    let mut modules: Vec<Option<Box<dyn Module>>> = files.iter().map(|_| None).collect();
    let mut sum = Answer::default();
    for log in logs {
        let start = cpu_time();
        if !is_kept {
            modules.fill_with(|| None);
        }
        for (file, addr) in log {
            let (path, table) = &paths[file];
            let module = modules[file].get_or_insert_with(|| open(tool, path, table.as_deref()));
            sum += module.answer(addr);
        }
        println!("{}", (cpu_time() - start).as_nanos() as f64 / 1e3);
    }
    eprintln!("{} {}", sum.frames, sum.with_lines);
}

/// The number of a line's file, and its address.
fn parsed<'t>(line: &'t str, files: &mut Vec<&'t str>) -> (usize, u64) {
    let (file, addr) = line.split_once(' ').unwrap();
    let known = files.iter().position(|known| *known == file);
    let file = known.unwrap_or_else(|| {
        files.push(file);
        files.len() - 1
    });
    (file, hex(addr))
}
