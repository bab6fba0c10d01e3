//! Files that say to be another one: a copy of a program by another user, with its
//! build-id, other names, and other unwind rules. What is said of the program itself is
//! the same as without the copy, whichever was seen first, now or in an earlier run.

mod common;

use common::{machine, proftop, reports, run};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use symbolize::object::Object;
use test_support::skip;

/// Without frame pointers each caller is found by `.eh_frame` alone.
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

/// A program of root's, and what another user made of a copy.
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
        // No other test's cache knows it.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = format!("{:08x}f0{:06x}", std::process::id(), number);
        let output = Command::new("cc")
            .args(["-O1", "-g", "-fomit-frame-pointer"])
            .args(["-fno-optimize-sibling-calls"])
            .arg(format!("-Wl,--build-id=0x{id}"))
            .arg("-o")
            .args([programs.honest(), programs.path("work.c")])
            .output();
        if !output.is_ok_and(|output| output.status.success()) {
            skip("cc cannot make a program");
            return None;
        }
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
        // `DW_CFA_def_cfa_offset`: where the caller's frame is.
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

    fn start_honest(&self) -> Work {
        Work::start(&mut Command::new(self.honest()))
    }

    fn start_forged(&self) -> Work {
        Work::start(Command::new(self.forged()).uid(FORGER))
    }

    /// What a run says of both.
    fn watch(&self, works: &[&Work]) -> Seen {
        let pids: Vec<String> = works.iter().map(|work| work.0.id().to_string()).collect();
        let pids = pids.join(",");
        let output = run(&mut proftop(&[
            "-b", "--format", "json", "-F", "499", "-d", "1", "-n", "4", "-p", &pids,
        ]));
        let mut reports = reports(&output.stdout);
        Seen(reports.pop().expect("a report"))
    }
}

/// The last second of a run.
struct Seen(Value);

impl Seen {
    /// Samples of a function of a file, callees included.
    fn total(&self, path: &Path, function: &str) -> u64 {
        let functions = self.0["functions"].as_array().unwrap();
        let is_it =
            |row: &&Value| row["module_path"] == path.to_str().unwrap() && row["name"] == function;
        { functions.iter() }
            .filter(is_it)
            .map(|row| row["total"].as_u64().unwrap())
            .sum()
    }

    /// All time of the honest program is where it was, with its names and callers.
    #[track_caller]
    fn check_honest(&self, programs: &Programs) {
        let honest = programs.honest();
        let total = |function| self.total(&honest, function);
        let leaf = total("honest_leaf");
        assert!(leaf > 50, "{leaf} samples: {}", self.0);
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

    /// What runs of the copy has the names of the copy.
    #[track_caller]
    fn check_forged(&self, programs: &Programs) {
        let leaf = self.total(&programs.forged(), "forged_leaf");
        assert!(leaf > 50, "{leaf} samples: {}", self.0);
        assert_eq!(self.total(&programs.forged(), "honest_leaf"), 0);
    }
}

/// A process that ends with the test.
struct Work(Child);

impl Work {
    fn start(command: &mut Command) -> Work {
        Work(command.stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

#[test]
fn seen_together() {
    let Some(_machine) = machine() else { return };
    for forger_is_first in [true, false] {
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
    }
}

#[test]
fn seen_one_run_after_the_other() {
    let Some(_machine) = machine() else { return };
    for forger_is_first in [true, false] {
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
    }
}
