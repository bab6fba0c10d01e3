//! A disk that becomes full, at any moment: one sentence says it, the exit status is 1, and what was
//! written before can be read.

use crate::common;

use common::disk::Disk;
use common::{can_sample, list, number, proftop, reports, run, side_by_side, sum, text};
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use test_support::{Process, Random, Scratch, cases, compile, skip, wait_for};

/// A program with a new stack nearly each time, so that recordings grow.
const DEEP: &str = "
static volatile unsigned sum;
static unsigned seed = 1;
static unsigned next(void) { seed ^= seed << 13; seed ^= seed >> 17; return seed ^= seed << 5; }
void odd(unsigned depth);
__attribute__((noinline)) void even(unsigned depth) {
    if (depth == 0) { for (int i = 0; i < 20000; i++) sum += i; return; }
    if (next() & 1) even(depth - 1); else odd(depth - 1);
    sum++;
}
__attribute__((noinline)) void odd(unsigned depth) {
    if (depth == 0) { for (int i = 0; i < 20000; i++) sum += i; return; }
    if (next() & 1) even(depth - 1); else odd(depth - 1);
    sum++;
}
int main(void) { for (;;) even(60); }
";

/// Starts that program. None where it cannot be compiled.
fn deep(scratch: &Scratch) -> Option<Process> {
    let (source, program) = (scratch.write("deep.c", DEEP), scratch.join("deep"));
    compile(&source, &program, ["-O1", "-fno-optimize-sibling-calls"])?;
    Some(Process::start_load(&mut Command::new(&program)))
}

/// A command that writes a file in its folder for a minute.
struct Writer {
    words: &'static str,
    file: &'static str,
    /// How the sentence begins.
    sentence: &'static str,
    /// The file that what was written can be read from.
    kept: &'static str,
}

const WRITERS: [Writer; 4] = [
    Writer {
        words: "-b -d 0.2 --format json",
        file: "reports",
        sentence: "failed to write to",
        kept: "",
    },
    Writer {
        words: "record -d 60s",
        file: "a.pft",
        sentence: "cannot go on recording: failed to write to",
        kept: "a.pft",
    },
    Writer {
        words: "record -d 60s",
        file: "a.folded",
        sentence: "cannot go on recording: ",
        kept: "a.folded.pft",
    },
    Writer {
        words: "record --ring 10s",
        file: "ring.pft",
        sentence: "cannot write",
        kept: "ring.pft",
    },
];

/// The longest time until the disk is full.
const LONGEST: Duration = Duration::from_millis(1500);

#[test]
fn a_disk_that_becomes_full_is_one_sentence() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    let Some(deep) = deep(&scratch) else {
        return;
    };
    let pid = deep.pid().to_string();
    let rounds = cases(5).div_ceil(WRITERS.len() as u32);
    let all = WRITERS.iter().cycle().take(rounds as usize * WRITERS.len());
    let numbered: Vec<(usize, &Writer)> = all.enumerate().collect();
    let readable = AtomicU64::new(0);
    side_by_side(&numbered, |(number, writer)| {
        let Some(disk) = Disk::mount(&scratch.join(format!("disk{number}")), 1 << 20) else {
            return skip("needs root to mount a small file system");
        };
        let mut random = Random::new(*number as u64);
        let pause = Duration::from_millis(random.below(LONGEST.as_millis() as u64));
        let samples = write_until_full(&disk, writer, &pid, pause);
        readable.fetch_add(u64::from(samples > 0), Ordering::Relaxed);
    });
    println!(
        "{} of {} left samples",
        readable.into_inner(),
        numbered.len()
    );
}

/// Lets a writer begin, fills the disk after a pause, and checks what is said. Returns the number of
/// samples that can be read then.
fn write_until_full(disk: &Disk, writer: &Writer, pid: &str, pause: Duration) -> u64 {
    let what = format!("{} to {}, full after {pause:?}", writer.words, writer.file);
    let path = disk.path().join(writer.file);
    let mut command = proftop(&writer.words.split(' ').collect::<Vec<_>>());
    command.args(["-F", "4999", "-p", pid, "-o"]).arg(&path);
    let errors = tempfile::NamedTempFile::new().expect("a file");
    command.stderr(errors.reopen().expect("a second descriptor"));
    let mut process = Process::start(command.stdout(Stdio::null()));
    std::thread::sleep(pause);
    disk.fill();
    let said = || fs::read_to_string(errors.path()).expect("UTF-8");
    let is_ring = writer.kept == "ring.pft";
    if is_ring {
        // It waits for room until it is ended.
        wait_for("it is said", || {
            said().contains(writer.sentence).then_some(())
        });
        process.interrupt();
    }
    let status = wait_for("it ends", || process.try_wait().expect("ours"));
    let said = said();
    assert_eq!(status.code(), Some(1), "{what}: {said}");
    let about_it = said.lines().filter(|line| line.contains("No space left"));
    let about_it: Vec<&str> = about_it.collect();
    assert_eq!(about_it.len(), 1, "{what}: {said}");
    assert!(about_it[0].contains(writer.sentence), "{what}: {said}");
    assert!(!said.contains("panicked"), "{what}: {said}");
    if writer.kept.is_empty() {
        return number_of_whole_reports(&fs::read(&path).unwrap_or_default());
    }
    let kept = disk.path().join(writer.kept);
    // Nothing was written before, or it can be read.
    if !kept.exists() {
        return 0;
    }
    let report = run(proftop(&["report", "--format", "json"]).arg(&kept));
    assert!(
        matches!(report.status.code(), Some(0 | 5)),
        "{what}: {said}"
    );
    let reports = reports(&report.stdout);
    let samples = sum(&reports, "samples");
    if samples > 0 {
        assert!(!list(&reports[0], "functions").is_empty(), "{what}");
        assert!(number(&reports[0], "lost") < u64::MAX, "{what}");
    }
    samples
}

/// Returns the number of reports up to the place where the file ends.
fn number_of_whole_reports(bytes: &[u8]) -> u64 {
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    reports(&bytes[..whole]).len() as u64
}

/// The first write already has no room: an earlier file stays.
#[test]
fn a_disk_that_is_full_costs_no_earlier_file() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    let Some(deep) = deep(&scratch) else {
        return;
    };
    let pid = deep.pid().to_string();
    side_by_side(&WRITERS[..2], |writer| {
        let Some(disk) = Disk::mount(&scratch.join(writer.file), 64 << 10) else {
            return skip("needs root to mount a small file system");
        };
        let path = disk.path().join(writer.file);
        fs::write(&path, "an earlier file").expect("room");
        disk.fill();
        let mut command = proftop(&writer.words.split(' ').collect::<Vec<_>>());
        command
            .args(["-F", "4999", "-p", &pid, "-f", "-o"])
            .arg(&path);
        let output = run(&mut command);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("No space left on device"), "{said}");
        assert_eq!(fs::read(&path).expect("it is there"), b"an earlier file");
    });
}
