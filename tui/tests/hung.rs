//! Targets whose files lie on a file system that does not answer: a process that reads from it
//! waits for ever, and cannot be killed.

use crate::common;

use common::fuse::Fuse;
use common::pty::Pty;
use common::{
    BURN_FUNCTIONS, burning, can_sample, list, proftop, reports_until, run, self_samples,
    side_by_side, sum, text,
};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;
use symbolize::files::Request;
use symbolize::opener::{Blocker, Mounts, Opening, Watch};
use symbolize::{Files, Reason, RemoteFiles};
use test_support::{Process, cases, compile, skip, wait_until};

/// Number of processes of each kind.
const PROCESSES: usize = 4;

/// A program that uses a part of a CPU: in code of its file, or, with an argument, in code that was
/// made at run time (`mov ecx, n; dec ecx; jnz; ret`).
const SOURCE: &str = r"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static void spin(void) { for (volatile long i = 0; i < 10000000; i++); }
int main(int argc, char **argv) {
    static const unsigned char code[] = {0xb9, 0, 0, 0, 1, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
    void (*work)(void) = spin;
    if (argc > 1) {
        void *made = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(made, code, sizeof code);
        work = (void (*)(void))made;
    }
    for (;;) { work(); usleep(20000); }
}
";

const NOBODY: [String; 0] = [];

/// Processes on a file system that hangs, and one that has nothing to do with it.
struct Scene {
    on_it: Vec<Process>,
    with_tmp_on_it: Vec<Process>,
    burn: Process,
    // Dropped last: processes that wait for it go on then.
    fuse: Fuse,
    _folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Option<Self> {
        if !can_sample() {
            return None;
        }
        let (folder, program) = program()?;
        // In a chroot(1), for example, the root is no mount whose propagation could be changed.
        let tried = Command::new("unshare").args(["-m", "true"]).status();
        if !tried.is_ok_and(|status| status.success()) {
            skip("no namespace of mounts can be made");
            return None;
        }
        let fuse = Fuse::mount(fs::read(&program).expect("it was made"))
            .map_err(|why| skip(&why))
            .ok()?;
        let on_it = (0..PROCESSES).map(|_| Process::start_load(&mut Command::new(fuse.program())));
        let on_it: Vec<_> = on_it.collect();
        let tmp = fuse.path().to_str().expect("UTF-8");
        // The program itself may lie in /tmp.
        let script = r#"exec 9<"$1" && mount --bind "$0" /tmp && exec /proc/self/fd/9 jit"#;
        let with_tmp_on_it = (0..PROCESSES).map(|_| {
            let mut command = Command::new("unshare");
            Process::start_load(command.args(["-m", "sh", "-c", script, tmp]).arg(&program))
        });
        let with_tmp_on_it: Vec<_> = with_tmp_on_it.collect();
        let scene = Self {
            on_it,
            with_tmp_on_it,
            burn: burning(1),
            fuse,
            _folder: folder,
        };
        wait_until("all run", || scene.all_run());
        scene.fuse.hang();
        Some(scene)
    }

    /// Returns the pids of all processes that are watched.
    fn pids(&self) -> String {
        let all = self
            .on_it
            .iter()
            .chain(&self.with_tmp_on_it)
            .chain([&self.burn])
            .map(|process| process.pid().to_string());
        all.collect::<Vec<_>>().join(",")
    }

    /// Returns whether all run. A process that runs by a descriptor is named by its number.
    fn all_run(&self) -> bool {
        let is = |process: &Process, name: &str| {
            let comm = fs::read_to_string(format!("/proc/{}/comm", process.pid()));
            comm.is_ok_and(|comm| comm.trim_end() == name)
        };
        let on_it = self.on_it.iter().all(|process| is(process, "prog"));
        on_it && self.with_tmp_on_it.iter().all(|process| is(process, "9"))
    }
}

/// Compiles the program in a folder outside of `/tmp`, which is removed when it is dropped.
fn program() -> Option<(tempfile::TempDir, PathBuf)> {
    if !cfg!(target_arch = "x86_64") {
        skip("code made at run time is written for x86-64 only");
        return None;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let program = folder.path().join("hung");
    let source = program.with_extension("c");
    fs::write(&source, SOURCE).expect("a place for it");
    compile(&source, &program, ["-O1", "-static"])?;
    Some((folder, program))
}

/// Returns both engines for each round: as many rounds as `PROPTEST_CASES` says.
fn engines(usual_rounds: u32) -> Vec<&'static str> {
    ["bpf", "perf"].repeat(cases(usual_rounds) as usize)
}

#[test]
fn reports_come_and_other_names_are_as_ever() {
    let Some(scene) = Scene::new() else { return };
    let pids = scene.pids();
    side_by_side(&engines(1), |engine| {
        let begun = Instant::now();
        let first = OnceLock::new();
        let mut command = proftop(&[
            "-b", "--format", "json", "--engine", engine, "-p", &pids, "-F", "299", "-d", "1",
        ]);
        // The reasons why the functions of a module have no name.
        let in_module = |reports: &[Value], module: &str| {
            let named = reports.iter().filter(|report| report["pending"] == 0);
            let functions = named.flat_map(|report| list(report, "functions"));
            let of_it = functions.filter(|function| function["module"] == module);
            of_it
                .map(|function| function["no_name"].as_str().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        let reports = reports_until(&mut command, "functions of all modules", |reports| {
            first.get_or_init(|| begun.elapsed());
            let has_all = BURN_FUNCTIONS
                .iter()
                .all(|name| self_samples(reports, name) > 0);
            let modules = ["prog", "[anon]"];
            has_all
                && modules
                    .iter()
                    .all(|module| !in_module(reports, module).is_empty())
        });
        // The code of the file and that made at run time have no names, and a reason for it.
        for module in ["prog", "[anon]"] {
            let why = in_module(&reports, module);
            assert!(why.iter().all(|why| why == "remote"), "{engine}: {why:?}");
        }
        assert!(sum(&reports, "samples") > 0);
        // A test that runs at the same time may sample all processes, and meet one that is
        // ending, whose mounts cannot be read any more.
        let mut asked = scene.fuse.unanswered();
        asked.retain(|request| request.contains(&pids));
        assert_eq!(asked, NOBODY, "{engine} asked the server");
        println!(
            "{engine}: the first report, of one second, after {:?}",
            first.get()
        );
    });
}

#[test]
fn a_signal_and_q_end_it() {
    let Some(scene) = Scene::new() else { return };
    side_by_side(&engines(2), |engine| {
        let mut command = proftop(&["-b", "--format", "json", "-d", "1", "--engine", engine]);
        let mut process = Process::start(command.stdout(Stdio::piped()));
        let mut output = BufReader::new(process.stdout.take().expect("it is piped"));
        let read = output.read_line(&mut String::new());
        assert!(read.expect("a report") > 0);
        let rest = std::thread::spawn(move || output.lines().count());
        let begun = Instant::now();
        process.signal(Signal::TERM);
        wait_until("TERM ends it", || {
            process.try_wait().expect("ours").is_some()
        });
        let by_signal = begun.elapsed();
        rest.join().expect("its output ends");

        let mut terminal = Pty::open(100, 30);
        let mut command = proftop(&["--engine", engine]);
        terminal.attach(&mut command);
        let mut process = Process::start(&mut command);
        terminal.read_until(b"burn");
        let begun = Instant::now();
        terminal.press(b"q");
        wait_until("q ends it", || process.try_wait().expect("ours").is_some());
        let by_key = begun.elapsed();
        println!("{engine}: TERM ended it within {by_signal:?}, q within {by_key:?}");
    });
    assert_eq!(scene.fuse.unanswered(), NOBODY);
}

#[test]
fn doctor_and_symbolize_say_what_cannot_be_read() {
    let Some(scene) = Scene::new() else { return };
    let each = [
        (&scene.on_it[0], "network or FUSE"),
        (&scene.with_tmp_on_it[0], "no perf map"),
    ];
    side_by_side(&each.repeat(cases(2) as usize), |(process, words)| {
        let pid = process.pid().to_string();
        let begun = Instant::now();
        let said = text(&run(&mut proftop(&["doctor", "-p", &pid])).stdout);
        assert!(said.contains(words), "{said}");
        println!("doctor: {words}, after {:?}", begun.elapsed());
    });
    // A test that runs at the same time may have a proftop that follows the whole machine.
    let mut asked = scene.fuse.unanswered();
    asked.retain(|request| request.contains("doctor"));
    assert_eq!(asked, NOBODY);

    // A file that the user names is opened, and given up.
    let file = scene.fuse.program();
    let named = [file.to_str().expect("UTF-8"), "0x1000"];
    let output = run(proftop(&["symbolize"]).args(named));
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("does not answer"), "{said}");
    assert_ne!(scene.fuse.unanswered(), NOBODY);
}

/// A program that looks like an interpreter whose state lies in a file that cannot be read to its
/// end: a process that reads its memory waits.
const PYTHON: &str = r"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
char _PyRuntime[1 << 20] __attribute__((aligned(4096)));
__attribute__((noinline)) void _PyEval_EvalFrameDefault(void) {
    for (volatile long i = 0; i < 1000000; i++);
}
int main(int argc, char **argv) {
    int file = open(argv[argc - 1], O_RDONLY);
    void *state = mmap(_PyRuntime, sizeof _PyRuntime, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0);
    if (state != _PyRuntime) return 1;
    // Or its end would wait for the server.
    close(file);
    for (;;) _PyEval_EvalFrameDefault();
}
";

#[test]
fn memory_that_cannot_be_read_holds_up_nobody() {
    if !can_sample() {
        return;
    }
    let folder = test_support::Scratch::new();
    let source = folder.write("python.c", PYTHON);
    let program = folder.path().join("python3.11");
    if compile(&source, &program, ["-O1", "-rdynamic"]).is_none() {
        return;
    }
    let fuse = match Fuse::mount(vec![0; 1 << 20]) {
        Ok(fuse) => fuse,
        Err(why) => return skip(&why),
    };
    let start = |_| Process::start_load(Command::new(&program).arg(fuse.program()));
    let pythons: Vec<_> = (0..2 * PROCESSES).map(start).collect();
    for python in &pythons {
        common::wait_for_work(python.pid(), std::time::Duration::from_millis(20));
    }
    fuse.hang();
    let burn = burning(1);
    let pids = pythons
        .iter()
        .chain([&burn])
        .map(|it| it.pid().to_string())
        .collect::<Vec<_>>()
        .join(",");
    let args = [
        "-b", "--format", "json", "-p", &pids, "-F", "299", "-d", "1",
    ];
    let reports = reports_until(
        &mut proftop(&args),
        "names of what can be read",
        |reports| {
            let is_seen = |name: &&str| self_samples(reports, name) > 20;
            let names = [&BURN_FUNCTIONS[..2], &["_PyEval_EvalFrameDefault"]].concat();
            names.iter().all(is_seen)
        },
    );
    assert_eq!(sum(&reports, "lost"), 0);
}

/// A watch that stops nothing.
struct Careless(Vec<Blocker>);

impl Watch for Careless {
    fn enter(&mut self, place: Blocker) -> Result<(), Reason> {
        self.0.push(place);
        Ok(())
    }
}

#[test]
fn paths_that_lead_into_it_end_before_it() {
    let Some((_folder, program)) = program() else {
        return;
    };
    let bytes = fs::read(&program).expect("it was made");
    let fuse = match Fuse::mount(bytes) {
        Ok(fuse) => fuse,
        Err(why) => return skip(&why),
    };
    let outside = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink(fuse.path(), outside.path().join("to")).expect("a link");
    std::os::unix::fs::symlink("to/prog", outside.path().join("prog")).expect("a link");
    let root = fs::File::open("/").expect("it is there");
    let files = Files::default();
    let direct = fuse.program();
    // A remote file is refused even while its server answers.
    let alive = files.open_beneath(&root, &direct).map(drop);
    assert_eq!(alive, Err(Reason::Remote));
    let asked = files.with_remote(RemoteFiles::Open);
    assert!(asked.open_beneath(&root, &direct).is_ok());
    fuse.hang();
    let linked = outside.path().join("to/prog");
    let twice = outside.path().join("prog");
    for path in [&direct, &linked, &twice, &fuse.path().join("none/../../x")] {
        let opened = files.open_beneath(&root, path).map(drop);
        assert_eq!(opened, Err(Reason::Remote), "{}", path.display());
    }
    // From inside, as the root of a process whose root it is.
    let inside = rustix::fs::open(
        fuse.path(),
        rustix::fs::OFlags::PATH,
        rustix::fs::Mode::empty(),
    )
    .expect("its root can be held");
    let opened = files.open_beneath(&inside, Path::new("prog")).map(drop);
    assert_eq!(opened, Err(Reason::Remote));
    // Only a request for remote files reports one to the watch, before it may hang.
    let mut watch = Careless(Vec::new());
    let local = Request::Beneath {
        root: root.as_fd(),
        path: &program,
        links: symbolize::opener::Links::Follow,
    };
    let done = local.perform(&mut Opening {
        remote: RemoteFiles::Skip,
        mounts: &mut Mounts::default(),
        watch: &mut watch,
        mountinfo: None,
    });
    assert!(done.is_ok());
    assert_eq!(watch.0, []);
    assert_eq!(fuse.unanswered(), NOBODY);
}
