//! Debug files of processes that have a root directory of their own: found
//! there, and only there.

mod common;

use common::{machine, proftop, reports, run, skip};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

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

/// A root directory with a stripped program, and its debug file beside it all.
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
        // Its own build-id: no other test's cache knows it.
        let build_id = format!("feed{:016x}", std::process::id());
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
            let output = Command::new(command).args(args).output();
            if !output.is_ok_and(|output| output.status.success()) {
                skip(&format!("{command} cannot make a static program"));
                return None;
            }
        }
        Some(Container {
            directory,
            build_id,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Where a debug file lies by its build-id, below some root.
    fn place(&self) -> String {
        let (first, rest) = self.build_id.split_at(2);
        format!("usr/lib/debug/.build-id/{first}/{rest}.debug")
    }

    /// The place by build-id in the container, its directory made.
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

    /// What is seen of it by somebody outside: the hottest function's name, its
    /// file and its line.
    fn watch(&self, process: &Work) -> (String, String, u64) {
        let pid = process.0.id().to_string();
        let mut command = proftop(&[
            "-b", "--format", "json", "-F", "499", "-d", "1", "-n", "3", "-p", &pid,
        ]);
        let output = run(command.env("XDG_CACHE_HOME", self.path("tables")));
        let reports = reports(&output.stdout);
        let function = &reports.last().expect("a report")["functions"][0];
        let name = function["name"].as_str().unwrap_or_default().to_owned();
        let file = function["file"].as_str().unwrap_or_default().to_owned();
        (name, file, function["line"].as_u64().unwrap_or(0))
    }

    #[track_caller]
    fn check_found(&self, process: &Work) {
        let (name, file, line) = self.watch(process);
        assert_eq!(name, "hidden_work");
        assert!(file.ends_with("work.c"), "{file}");
        assert!((2..=6).contains(&line), "{line}");
    }

    #[track_caller]
    fn check_not_found(&self, process: &Work) {
        let (name, file, _) = self.watch(process);
        assert!(name.starts_with("work+0x"), "{name}");
        assert_eq!(file, "");
    }
}

/// A process that ends with the test.
struct Work(Child);

impl Work {
    fn start(command: &[&str]) -> Option<Work> {
        let child = Command::new(command[0])
            .args(&command[1..])
            .stdout(Stdio::null())
            .spawn();
        let work = Work(child.ok()?);
        let link = PathBuf::from(format!("/proc/{}/exe", work.0.id()));
        // Until it is the program: shells and `unshare` come before.
        for _ in 0..200 {
            if fs::read_link(&link).is_ok_and(|exe| exe.ends_with("work")) {
                return Some(work);
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        None
    }

    fn below(root: &Path) -> Option<Work> {
        Work::start(&["chroot", root.to_str().unwrap(), "/opt/work"])
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

#[test]
fn debug_files_below_the_root_of_a_process() {
    let Some(_machine) = machine() else { return };
    let Some(container) = Container::new() else {
        return;
    };
    let Some(work) = Work::below(&container.path("root")) else {
        return skip("no root directory of its own can be given to a process");
    };
    container.check_not_found(&work);
    fs::copy(container.path("work.debug"), container.place_inside()).unwrap();
    container.check_found(&work);

    fs::remove_file(container.place_inside()).unwrap();
    drop(work);
    container.link();
    for place in ["root/opt/.debug", "root/usr/lib/debug/opt"] {
        let work = Work::below(&container.path("root")).unwrap();
        container.check_not_found(&work);
        fs::create_dir_all(container.path(place)).unwrap();
        let place = container.path(place).join("work.debug");
        fs::copy(container.path("work.debug"), &place).unwrap();
        container.check_found(&work);
        fs::remove_file(&place).unwrap();
        _ = fs::remove_dir_all(container.path("tables"));
    }
}

/// The process decides where links lead, and we may read more than it may.
#[test]
fn links_that_lead_out_of_the_root_stay_inside() {
    let Some(_machine) = machine() else { return };
    let Some(container) = Container::new() else {
        return;
    };
    let Some(work) = Work::below(&container.path("root")) else {
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
    // The same link, where inside of the root there is such a file.
    let inside = container
        .path("root")
        .join(outside.strip_prefix("/").unwrap());
    fs::create_dir_all(inside.parent().unwrap()).unwrap();
    fs::copy(&outside, &inside).unwrap();
    symlink(&outside, &place).unwrap();
    container.check_found(&work);
}

/// As systemd's services and most containers have them.
#[test]
fn a_mount_that_only_the_process_has() {
    let Some(_machine) = machine() else { return };
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
    let Some(work) = Work::start(&["unshare", "-m", "sh", "-c", &script]) else {
        return skip("no namespace of mounts can be made");
    };
    assert!(!Path::new("/").join(container.place()).exists());
    container.check_found(&work);
}
