//! Files that become shorter and longer again while they are read: recordings, programs, debug
//! files, perf maps. A command ends with a result or with a sentence, and sampling loses nothing.

use crate::{common, namespaces};

use common::{
    DEMO, can_sample, proftop, reports, reports_until, run, self_samples, side_by_side, sum, text,
};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use test_support::{Random, Scratch, cases, compile, run_tool};

/// The longest time for which a file is shorter, or whole.
const PAUSE_US: u64 = 3_000;

/// Makes a file shorter and whole again, at random, while `work` is done.
fn while_it_changes<T>(path: &Path, seed: u64, work: impl FnOnce() -> T) -> T {
    let whole = fs::read(path).expect("it is there");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(seed);
            while !is_over.load(Ordering::Relaxed) {
                let length = random.below(whole.len() as u64 + 1);
                let file = File::options().write(true).open(path).expect("ours");
                file.set_len(length).expect("ours");
                std::thread::sleep(Duration::from_micros(random.below(PAUSE_US)));
                fs::write(path, &whole).expect("ours");
                std::thread::sleep(Duration::from_micros(random.below(PAUSE_US)));
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_over.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Fails unless a command has ended by itself, and said why if it has no result.
fn check(what: &str, output: &Output) {
    let said = text(&output.stderr);
    let code = output.status.code();
    assert!(matches!(code, Some(0..=5)), "{what}: {code:?}: {said}");
    // A report of a recording says in itself what is missing.
    let is_told = !said.is_empty() || !output.stdout.is_empty();
    assert!(code == Some(0) || is_told, "{what}: {code:?}");
    assert!(!said.contains("panicked"), "{what}: {said}");
}

#[test]
fn a_recording_that_changes_is_read_or_refused() {
    const COMMANDS: [&[&str]; 4] = [
        &["report", "--format", "json"],
        &["export", "--format", "folded"],
        &["export", "--format", "firefox"],
        &["diff", DEMO],
    ];
    let rounds: Vec<u64> = (0..u64::from(cases(5).max(COMMANDS.len() as u32))).collect();
    side_by_side(&rounds, |round| {
        let scratch = Scratch::new();
        let recording = scratch.join("a.pft");
        fs::copy(DEMO, &recording).expect("a copy");
        let words = COMMANDS[*round as usize % COMMANDS.len()];
        let mut command = proftop(words);
        command.arg(&recording);
        if words[0] == "export" {
            command.arg("-");
        }
        let output = while_it_changes(&recording, *round, || run(&mut command));
        check(words[0], &output);
    });
}

const THREE: &str = "
int first(int x) { return x * 3; }
int second(int x) { return first(x) + 5; }
int main(void) { return second(2); }
";

/// What is symbolized: a stripped program, its debug file, and the addresses of its functions.
struct Split {
    folder: Scratch,
    program: PathBuf,
    debug: PathBuf,
    addresses: Vec<String>,
}

impl Split {
    /// Makes them. None without a compiler and the tools that take files apart.
    fn new() -> Option<Split> {
        let folder = Scratch::new();
        let source = folder.write("three.c", THREE);
        let [whole, program, debug] =
            ["whole", "three", "three.debug"].map(|name| folder.join(name));
        compile(&source, &whole, ["-g", "-O0"])?;
        let listed = text(&run_tool(Command::new("nm").arg(&whole))?.stdout);
        let of = |name: &str| {
            let line = listed.lines().find(|line| line.ends_with(name))?;
            Some(format!("0x{}", line.split(' ').next()?))
        };
        let addresses = [" first", " second", " main"]
            .iter()
            .map(|name| of(name).expect("a function"));
        let addresses = addresses.collect();
        let mut keep = Command::new("objcopy");
        run_tool(keep.arg("--only-keep-debug").args([&whole, &debug]))?;
        let mut strip = Command::new("objcopy");
        let link = format!("--add-gnu-debuglink={}", debug.display());
        run_tool(strip.args(["--strip-all", &link]).args([&whole, &program]))?;
        Some(Split {
            folder,
            program,
            debug,
            addresses,
        })
    }

    fn symbolize(&self) -> Output {
        let mut command = proftop(&["symbolize"]);
        command.env("PROFTOP_CACHE", self.folder.join("cache"));
        run(command.arg(&self.program).args(&self.addresses))
    }
}

#[test]
fn a_program_that_changes_has_names_or_none_and_later_its_own() {
    let rounds: Vec<u64> = (0..u64::from(cases(4))).collect();
    side_by_side(&rounds, |round| {
        let Some(split) = Split::new() else {
            return;
        };
        let changes = if round % 2 == 0 {
            &split.program
        } else {
            &split.debug
        };
        while_it_changes(changes, *round, || {
            for _ in 0..3 {
                let output = split.symbolize();
                check("symbolize", &output);
            }
        });
        // Nothing that was read meanwhile is kept.
        let told = text(&split.symbolize().stdout);
        for name in ["first", "second", "main"] {
            assert!(told.contains(name) && told.contains("three.c"), "{told}");
        }
    });
}

#[test]
fn a_perf_map_that_changes_costs_no_sample() {
    if !can_sample() {
        return;
    }
    let Some((inside, _scratch)) = namespaces::program_with_map() else {
        return;
    };
    let map = PathBuf::from(format!("/tmp/perf-{}.map", inside.pid()));
    let pid = inside.pid().to_string();
    let output = while_it_changes(&map, 1, || {
        run(&mut proftop(&[
            "-b", "-d", "0.5", "-n", "4", "--format", "json", "-p", &pid,
        ]))
    });
    check("sampling", &output);
    let reports = reports(&output.stdout);
    assert!(sum(&reports, "samples") > 0);
    assert_eq!(sum(&reports, "lost"), 0);
    let mut sampling = proftop(&["-b", "-d", "0.5", "--format", "json", "-p", &pid]);
    reports_until(
        &mut sampling,
        "the function has its name again",
        |reports| self_samples(reports, "made_inside") > 0,
    );
}
