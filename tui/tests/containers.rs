//! Debug files of processes that have a root directory of their own: proftop finds them
//! there, and only there.

use crate::common;

use common::{can_sample, proftop, reports_until};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use test_support::{Process, run_tool, skip, wait_for};

const SOURCE: &str = "
static __attribute__((noinline)) unsigned hidden_work(unsigned rounds) {
    volatile unsigned sum = 0;
    while (rounds--) sum += rounds;
    return sum;
}
int main(void) {
    for (;;) hidden_work(4000000);
}
";

/// A root directory with a stripped program, and the program's debug file outside of it.
struct Container {
    directory: tempfile::TempDir,
    build_id: String,
}

impl Container {
    fn new() -> Option<Container> {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        for inside in ["root/opt", "root/usr/lib/debug"] {
            fs::create_dir_all(path(inside)).unwrap();
        }
        fs::write(path("work.c"), SOURCE).unwrap();
        let (program, debug) = (path("root/opt/work"), path("work.debug"));
        // A build-id of its own: programs with the same build-id count as one program.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let build_id = format!("feed{:08x}{number:08x}", std::process::id());
        let steps: [(&str, &[&str]); 3] = [
            (
                "cc",
                &[
                    "-O1",
                    "-g",
                    "-static",
                    &format!("-Wl,--build-id=0x{build_id}"),
                    "-o",
                    &program,
                    &path("work.c"),
                ],
            ),
            ("objcopy", &["--only-keep-debug", &program, &debug]),
            ("strip", &["-s", &program]),
        ];
        for (command, args) in steps {
            run_tool(Command::new(command).args(args))?;
        }
        Some(Container {
            directory,
            build_id,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the path of the debug file by its build-id, relative to a root directory.
    fn place(&self) -> String {
        let (first, rest) = self.build_id.split_at(2);
        format!("usr/lib/debug/.build-id/{first}/{rest}.debug")
    }

    /// Returns that path in the container, and makes the folders above it.
    fn place_inside(&self) -> PathBuf {
        let place = self.path("root").join(self.place());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        place
    }

    fn link(&self) {
        let link = format!("--add-gnu-debuglink={}", self.path("work.debug").display());
        let program = self.path("root/opt/work");
        let status = Command::new("objcopy").arg(link).arg(program).status();
        assert!(status.unwrap().success());
    }

    /// Returns the hottest function, as proftop outside of the container shows it, once
    /// `is_enough` returns true for the number of reports and this function.
    #[track_caller]
    fn watch(
        &self,
        process: &Process,
        what: &str,
        is_enough: impl Fn(usize, &Value) -> bool,
    ) -> Value {
        let pid = process.pid().to_string();
        let mut command = proftop(&[
            "-b", "--format", "json", "-F", "499", "-d", "0.5", "-p", &pid,
        ]);
        command.env("PROFTOP_CACHE", self.path("tables"));
        let hottest = |reports: &[Value]| {
            let is_settled = |report: &&Value| report["pending"] == 0 && report["samples"] != 0;
            let report = reports.iter().rfind(is_settled)?;
            Some(report["functions"][0].clone())
        };
        let reports = reports_until(&mut command, what, |reports| {
            hottest(reports).is_some_and(|function| is_enough(reports.len(), &function))
        });
        hottest(&reports).expect("waited for")
    }

    #[track_caller]
    fn check_found(&self, process: &Process) {
        let function = self.watch(process, "its name and line", |_, function| {
            function["name"] == "hidden_work" && function["line"] != Value::Null
        });
        let (file, line) = (function["file"].as_str(), function["line"].as_u64());
        assert!(
            file.is_some_and(|file| file.ends_with("work.c")),
            "{file:?}"
        );
        assert!(line.is_some_and(|line| (2..=6).contains(&line)), "{line:?}");
    }

    #[track_caller]
    fn check_not_found(&self, process: &Process) {
        // Enough time to find a file that must not be found.
        let function = self.watch(process, "three reports", |reports, _| reports >= 3);
        let name = function["name"].as_str().unwrap_or_default();
        assert!(name.starts_with("work+0x"), "{name}");
        assert_eq!(function["file"], Value::Null);
    }
}

/// Starts the program in its root directory by a command. Returns None where that is not possible.
fn start(command: &[&str]) -> Option<Process> {
    let mut starting = Command::new(command[0]);
    starting.args(&command[1..]).stdout(Stdio::null());
    let mut process = Process::try_start(&mut starting).ok()?;
    let link = PathBuf::from(format!("/proc/{}/exe", process.pid()));
    // Shells, `chroot` and `unshare` run before the program.
    let has_come = wait_for("the program", || {
        if fs::read_link(&link).is_ok_and(|exe| exe.ends_with("work")) {
            return Some(true);
        }
        process.try_wait().expect("ours").map(|_| false)
    });
    has_come.then_some(process)
}

fn start_below(root: &Path) -> Option<Process> {
    start(&["chroot", root.to_str().unwrap(), "/opt/work"])
}

#[test]
fn debug_files_below_the_root_of_a_process() {
    if !can_sample() {
        return;
    }
    let Some(container) = Container::new() else {
        return;
    };
    let Some(work) = start_below(&container.path("root")) else {
        return skip("no root directory of its own can be given to a process");
    };
    container.check_not_found(&work);
    fs::copy(container.path("work.debug"), container.place_inside()).unwrap();
    container.check_found(&work);

    fs::remove_file(container.place_inside()).unwrap();
    drop(work);
    container.link();
    for place in ["root/opt/.debug", "root/usr/lib/debug/opt"] {
        let work = start_below(&container.path("root")).unwrap();
        container.check_not_found(&work);
        fs::create_dir_all(container.path(place)).unwrap();
        let place = container.path(place).join("work.debug");
        fs::copy(container.path("work.debug"), &place).unwrap();
        container.check_found(&work);
        fs::remove_file(&place).unwrap();
        _ = fs::remove_dir_all(container.path("tables"));
    }
}

/// The process decides where links lead, and proftop may read more than the process may.
#[test]
fn links_that_lead_out_of_the_root_stay_inside() {
    if !can_sample() {
        return;
    }
    let Some(container) = Container::new() else {
        return;
    };
    let Some(work) = start_below(&container.path("root")) else {
        return skip("no root directory of its own can be given to a process");
    };
    let outside = container.path("work.debug");
    let place = container.place_inside();
    let up = "../".repeat(40);
    let relative = PathBuf::from(format!("{up}{}", outside.display()));
    for target in [
        &outside,
        &relative,
        &PathBuf::from("/proc/1/root").join(&up),
    ] {
        symlink(target, &place).unwrap();
        container.check_not_found(&work);
        fs::remove_file(&place).unwrap();
    }
    // The same link, if there is such a file inside of the root.
    let inside = container
        .path("root")
        .join(outside.strip_prefix("/").unwrap());
    fs::create_dir_all(inside.parent().unwrap()).unwrap();
    fs::copy(&outside, &inside).unwrap();
    symlink(&outside, &place).unwrap();
    container.check_found(&work);
}

/// A mount namespace, as systemd's services and most containers have one.
#[test]
fn a_mount_that_only_the_process_has() {
    if !can_sample() {
        return;
    }
    let Some(container) = Container::new() else {
        return;
    };
    let script = format!(
        "mkdir -p /usr/lib/debug && mount -t tmpfs none /usr/lib/debug &&
         mkdir -p $(dirname /{place}) && cp {debug} /{place} && exec {program}",
        place = container.place(),
        debug = container.path("work.debug").display(),
        program = container.path("root/opt/work").display(),
    );
    let Some(work) = start(&["unshare", "-m", "sh", "-c", &script]) else {
        return skip("no namespace of mounts can be made");
    };
    assert!(!Path::new("/").join(container.place()).exists());
    container.check_found(&work);
}
