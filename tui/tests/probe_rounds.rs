//! Probes that are placed and removed on programs at work: the programs live on, all their results
//! are right, and their code is as it was.

use crate::common;

use common::can_sample;
use common::dialog::Dialog;
use common::postgres::Postgres;
use common::traced::can_trace;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use test_support::{Process, Random, Scratch, behind_others, run_tool, skip, wait_until};

/// Rounds for one program; `bench/probes.py rounds` has hundreds.
const ROUNDS: usize = 6;

/// Number of functions that have a probe at a time.
const AT_ONCE: usize = 2;

/// A program that computes the same again and again, and writes a line each time.
struct Worker {
    process: Process,
    scratch: Scratch,
}

impl Worker {
    fn start(scratch: Scratch, command: &mut Command) -> Option<Self> {
        let results = File::create(scratch.join("results")).expect("a file");
        let command = behind_others(command.stdout(results).stderr(Stdio::null()));
        let process = Process::try_start(command).ok();
        let Some(process) = process else {
            skip(format_args!("{command:?} does not start"));
            return None;
        };
        let mut worker = Self { process, scratch };
        wait_until("it has worked something out", || {
            let ended = worker.process.try_wait().expect("ours");
            assert!(ended.is_none(), "{command:?}: {ended:?}");
            worker.results().len() > 1
        });
        Some(worker)
    }

    /// Returns the lines that are complete.
    fn results(&self) -> Vec<String> {
        let text = fs::read_to_string(self.scratch.join("results")).expect("its results");
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(str::to_owned).collect()
    }

    /// Fails unless every result so far is the same, and more come.
    fn check(&mut self) {
        let before = self.results().len();
        wait_until("it works on", || {
            let ended = self.process.try_wait().expect("ours");
            assert!(ended.is_none(), "it has ended: {ended:?}");
            self.results().len() > before + 1
        });
        let different: BTreeSet<String> = self.results().into_iter().collect();
        assert_eq!(different.len(), 1, "{different:?}");
    }
}

/// Places probes on random ones of these functions and removes them, `ROUNDS` times. Each
/// function is found, and some probes are in place in time however busy the machine is.
fn probe_in_rounds(pid: u32, functions: &[&str], seed: u64) {
    let mut dialog = Dialog::start(&["--plain", "-p", &pid.to_string()]);
    let mut random = Random::new(seed);
    let mut placed = 0;
    for _ in 0..ROUNDS {
        for _ in 0..AT_ONCE {
            let function = functions[random.index(functions.len())];
            let answer = dialog.probe(function);
            // A probe that costs too much may be removed by now, and proftop says so.
            let is_placed = answer.contains(" is on ") || answer.contains("was taken away");
            assert!(
                is_placed || answer.contains("not done within"),
                "{function}: {answer}"
            );
            placed += usize::from(is_placed);
        }
        dialog.ask("unprobe all");
    }
    assert!(placed > 0);
    dialog.finish();
}

/// Returns the files whose code in memory is not as it is in the file.
fn changed_code(pid: u32) -> Vec<String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("it lives");
    let memory = File::open(format!("/proc/{pid}/mem")).expect("its memory");
    let mut changed = Vec::new();
    for line in maps.lines() {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let &[range, "r-xp", offset, _, _, path] = &fields[..] else {
            continue;
        };
        let Ok(file) = File::open(Path::new(path)) else {
            continue;
        };
        let hex = |digits| u64::from_str_radix(digits, 16).expect("a number");
        let (start, end) = range.split_once('-').expect("a range");
        let (start, end, offset) = (hex(start), hex(end), hex(offset));
        let mut in_file = vec![0; (end - start) as usize];
        let mut in_memory = in_file.clone();
        // The last page may go beyond the end of the file: there are zeros.
        let mut len = 0;
        while let Ok(read @ 1..) = file.read_at(&mut in_file[len..], offset + len as u64) {
            len += read;
        }
        memory.read_exact_at(&mut in_memory, start).expect("code");
        if in_file != in_memory {
            changed.push(path.to_owned());
        }
    }
    changed
}

#[track_caller]
fn check_code(pid: u32) {
    // The kernel takes the last breakpoints away after proftop has ended.
    let mut changed = Vec::new();
    wait_until("all code is as it was", || {
        let now = changed_code(pid);
        if now != changed {
            println!("code that is not as it was: {now:?}");
            changed = now;
        }
        changed.is_empty()
    });
}

/// Runs all rounds with a program that writes its results.
fn come_and_go(worker: Option<Worker>, functions: &[&str], seed: u64) {
    let Some(mut worker) = worker else {
        return;
    };
    let pid = worker.process.pid();
    // Otherwise another program changes its code, and it would never be as it was.
    assert_eq!(changed_code(pid), [""; 0]);
    probe_in_rounds(pid, functions, seed);
    worker.check();
    check_code(pid);
}

const GO: &str = include_str!("programs/worker.go");
const NODE: &str = include_str!("programs/worker.js");
const JAVA: &str = include_str!("programs/Worker.java");

#[test]
fn on_go() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = common::traced::Program::compile("worker.go", GO, &["-ldflags=-s -w"])
    else {
        return;
    };
    let worker = Worker::start(Scratch::new(), &mut Command::new(program.path()));
    let functions = [
        "main.grow",
        "main.mix",
        "main.collect",
        "main.(*shelf).put",
        "runtime.makeslice",
        "runtime.newproc",
        "runtime.growslice",
    ];
    come_and_go(worker, &functions, 1);
}

#[test]
fn on_node() {
    if !can_sample() || !can_trace() {
        return;
    }
    let scratch = Scratch::new();
    let script = scratch.write("worker.js", NODE);
    let worker = Worker::start(scratch, Command::new("node").arg(script));
    let functions = [
        "EVP_DigestUpdate",
        "EVP_DigestFinal_ex",
        "EVP_MD_CTX_free",
        "libc.so.6!malloc",
        "libc.so.6!free",
        "libc.so.6!realloc",
        "uv__io_poll",
        "deflate",
        "inflate",
    ];
    come_and_go(worker, &functions, 2);
}

#[test]
fn on_java() {
    if !can_sample() || !can_trace() {
        return;
    }
    let scratch = Scratch::new();
    let source = scratch.write("Worker.java", JAVA);
    let mut compiler = Command::new("javac");
    compiler.arg("-d").arg(scratch.path()).arg(source);
    if run_tool(&mut compiler).is_none() {
        return;
    }
    let mut java = Command::new("java");
    java.args(["-Xmx128m", "-cp"]).arg(scratch.path());
    let worker = Worker::start(scratch, java.arg("Worker"));
    let functions = [
        "libjvm.so!JVM_StartThread",
        "libjvm.so!JVM_FindClassFromCaller",
        "libjvm.so!JVM_IHashCode",
        "libc.so.6!malloc",
        "libc.so.6!free",
        "libc.so.6!pthread_cond_signal",
        "libz.so.1!deflate",
        "libz.so.1!inflate",
    ];
    come_and_go(worker, &functions, 3);
}

#[test]
fn on_postgresql() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(database) = Postgres::start_idle() else {
        return;
    };
    let mut work = database.start_checked_work();
    let functions = [
        "ExecutorRun",
        "PortalRun",
        "raw_parser",
        "palloc",
        "pfree",
        "LWLockAcquire",
        "LWLockRelease",
        "hash_search_with_hash_value",
        "heap_hot_search_buffer",
        "tuplesort_performsort",
    ]
    .map(|name| format!("postgres!{name}"));
    let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
    probe_in_rounds(database.pid(), &functions, 4);
    work.check();
    check_code(database.pid());
}
