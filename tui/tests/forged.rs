//! Files that claim to be another file: a copy of a program by another user, with the same
//! build-id, other names, and other unwind rules. Reports on the honest program are the same as
//! without the copy, whichever was seen first, in this run or in an earlier one.

use crate::common;

use common::{can_sample, list, number, proftop, reports_until, side_by_side};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use symbolize::object::Object;
use test_support::{Process, cases, compile, skip};

/// The program. Without frame pointers each caller is found by `.eh_frame` alone.
const SOURCE: &str = "
static volatile unsigned sum;
__attribute__((noinline)) void honest_leaf(unsigned rounds) {
    volatile unsigned room[24];
    while (rounds--) { room[rounds % 24] = sum; sum += rounds; }
}
__attribute__((noinline)) void honest_caller(unsigned rounds) {
    volatile unsigned room[12];
    room[rounds % 12] = rounds;
    honest_leaf(rounds);
    sum += room[rounds % 12];
}
__attribute__((noinline)) void honest_outer(unsigned rounds) {
    volatile unsigned room[40];
    room[rounds % 40] = rounds;
    honest_caller(rounds);
    sum += room[rounds % 40];
}
int main(void) {
    for (;;) honest_outer(4000000);
}
";

const FORGER: u32 = 60_321;

/// A program of root's, and a copy that another user has changed.
struct Programs {
    directory: tempfile::TempDir,
}

impl Programs {
    fn new() -> Option<Programs> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            skip("only root can give a program to another user");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let programs = Programs { directory };
        fs::write(programs.path("work.c"), SOURCE).unwrap();
        // A build-id that no other test's cache has.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = format!("{:08x}f0{:06x}", std::process::id(), number);
        let build_id = format!("-Wl,--build-id=0x{id}");
        let flags = [
            "-O1",
            "-g",
            "-fomit-frame-pointer",
            "-fno-optimize-sibling-calls",
            &build_id,
        ];
        compile(&programs.path("work.c"), &programs.honest(), flags)?;
        programs.forge();
        Some(programs)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn honest(&self) -> PathBuf {
        self.path("honest")
    }

    fn forged(&self) -> PathBuf {
        self.path("forged")
    }

    fn forge(&self) {
        let honest = fs::File::open(self.honest()).unwrap();
        let object = Object::read(&honest).unwrap();
        let section = object.section_by_name(b".eh_frame").unwrap();
        let frames = section.offset as usize..(section.offset + section.size) as usize;
        let mut bytes = fs::read(self.honest()).unwrap();
        // Changes `DW_CFA_def_cfa_offset`, which says where the caller's frame is.
        let mut offsets = 0;
        for at in frames.start..frames.end - 1 {
            let is_offset =
                bytes[at] == 0x0e && bytes[at + 1] >= 16 && bytes[at + 1].is_multiple_of(8);
            if is_offset {
                bytes[at + 1] ^= 0x58;
                offsets += 1;
            }
        }
        assert!(offsets >= 3, "{offsets}");
        let mut names = 0;
        for at in 0..bytes.len() - 7 {
            if &bytes[at..at + 7] == b"honest_" {
                bytes[at..at + 7].copy_from_slice(b"forged_");
                names += 1;
            }
        }
        assert!(names >= 3, "{names}");
        fs::write(self.forged(), bytes).unwrap();
        fs::set_permissions(self.forged(), Permissions::from_mode(0o755)).unwrap();
        chown(self.forged(), Some(FORGER), None).unwrap();
    }

    fn start_honest(&self) -> Process {
        Process::start_load(&mut Command::new(self.honest()))
    }

    fn start_forged(&self) -> Process {
        Process::start_load(Command::new(self.forged()).uid(FORGER))
    }

    /// Returns the reports of a run on these processes once it has names and unwind tables of
    /// the honest program, if that is one of them.
    fn watch(&self, works: &[&Process]) -> Seen {
        let pids: Vec<u64> = works.iter().map(|work| u64::from(work.pid())).collect();
        let honest = fs::metadata(self.honest()).unwrap();
        let is_honest = |work: &&Process| {
            let program = fs::metadata(format!("/proc/{}/exe", work.pid())).unwrap();
            program.ino() == honest.ino()
        };
        let has_honest = works.iter().copied().any(|work| is_honest(&work));
        let is_ready = |report: &Value| {
            let main = || Seen(vec![report.clone()]).total(&self.honest(), "main");
            report["pending"] == 0 && (!has_honest || main() > 0)
        };
        // The report after the first ready one has names and tables for its whole second.
        let settled = |reports: &[Value]| {
            let ready = reports.iter().position(is_ready).map(|at| at + 1);
            let behind = reports.get(ready.unwrap_or(reports.len())..);
            behind.unwrap_or_default().to_vec()
        };
        let samples = |reports: &[Value], pid: u64| -> u64 {
            let processes = reports.iter().flat_map(|report| list(report, "processes"));
            let its = processes.filter(|process| process["pid"] == pid);
            its.map(|process| number(process, "samples")).sum()
        };
        let words = pids
            .iter()
            .map(u64::to_string)
            .collect::<Vec<_>>()
            .join(",");
        let mut command = proftop(&[
            "-b", "--format", "json", "-F", "499", "-d", "0.5", "-p", &words,
        ]);
        let reports = reports_until(&mut command, "samples of each", |reports| {
            let settled = settled(reports);
            let is_last_named = settled.last().is_some_and(|report| report["pending"] == 0);
            is_last_named && pids.iter().all(|pid| samples(&settled, *pid) > 200)
        });
        // The last report may have been cut off before its names came.
        let mut settled = settled(&reports);
        settled.retain(|report| report["pending"] == 0);
        Seen(settled)
    }
}

/// The reports of a run.
struct Seen(Vec<Value>);

impl Seen {
    /// Returns the samples of a function of a file, callees included.
    fn total(&self, path: &Path, function: &str) -> u64 {
        let functions = self.0.iter().flat_map(|report| list(report, "functions"));
        let is_it =
            |row: &&Value| row["module_path"] == path.to_str().unwrap() && row["name"] == function;
        functions
            .filter(is_it)
            .map(|row| number(row, "total"))
            .sum()
    }

    /// Checks that all time of the honest program is in its functions, with its names and callers.
    #[track_caller]
    fn check_honest(&self, programs: &Programs) {
        let honest = programs.honest();
        let total = |function| self.total(&honest, function);
        let leaf = total("honest_leaf");
        assert!(leaf > 50, "{leaf} samples: {:?}", self.0);
        for caller in ["honest_caller", "honest_outer", "main"] {
            let with_leaf = total(caller);
            assert!(
                with_leaf * 100 >= leaf * 99,
                "{caller}: {with_leaf} of {leaf}"
            );
        }
        for forged in ["forged_leaf", "forged_caller", "forged_outer"] {
            assert_eq!(total(forged), 0, "{forged}");
        }
    }

    /// Checks that the copy's time has the names of the copy.
    #[track_caller]
    fn check_forged(&self, programs: &Programs) {
        let leaf = self.total(&programs.forged(), "forged_leaf");
        assert!(leaf > 50, "{leaf} samples: {:?}", self.0);
        assert_eq!(self.total(&programs.forged(), "honest_leaf"), 0);
    }
}

/// Returns both orders for each round: as many rounds as `PROPTEST_CASES` says.
fn orders() -> Vec<bool> {
    [true, false].repeat(cases(1) as usize)
}

#[test]
fn seen_together() {
    if !can_sample() {
        return;
    }
    side_by_side(&orders(), |&forger_is_first| {
        let Some(programs) = Programs::new() else {
            return;
        };
        let (honest, forged);
        if forger_is_first {
            forged = programs.start_forged();
            honest = programs.start_honest();
        } else {
            honest = programs.start_honest();
            forged = programs.start_forged();
        }
        let seen = programs.watch(&[&honest, &forged]);
        seen.check_honest(&programs);
        seen.check_forged(&programs);
    });
}

#[test]
fn seen_one_run_after_the_other() {
    if !can_sample() {
        return;
    }
    side_by_side(&orders(), |&forger_is_first| {
        let Some(programs) = Programs::new() else {
            return;
        };
        if forger_is_first {
            let forged = programs.start_forged();
            programs.watch(&[&forged]).check_forged(&programs);
        }
        for _ in 0..2 {
            let honest = programs.start_honest();
            programs.watch(&[&honest]).check_honest(&programs);
            drop(honest);
            let forged = programs.start_forged();
            programs.watch(&[&forged]).check_forged(&programs);
        }
    });
}

#[test]
fn another_users_program_has_source_lines() {
    if !can_sample() {
        return;
    }
    let Some(programs) = Programs::new() else {
        return;
    };
    let forged = programs.start_forged();
    let pid = forged.pid().to_string();
    let mut command = proftop(&[
        "-b", "--format", "json", "-F", "499", "-d", "0.5", "-p", &pid,
    ]);
    reports_until(&mut command, "a source line", |reports| {
        let mut functions = reports.iter().flat_map(|report| list(report, "functions"));
        functions.any(|row| row["name"] == "forged_leaf" && row["file"].is_string())
    });
}
