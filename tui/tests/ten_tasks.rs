//! Ten questions for which users open a profiler, on a machine with PostgreSQL under load and with
//! services in C++, JavaScript and a stripped Python, at 80 columns: each is answered by at most
//! twelve keys that the screen shows. `--nocapture` prints the keys and the time of each.

use crate::common;

use common::can_sample;
use common::postgres::Postgres;
use common::tmux::Terminal;
use std::cell::RefCell;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use test_support::{Process, behind_others, compile, skip};

const KEYS_MAX: usize = 12;

// Each program works half of the time: with more of them than CPUs, and none ever idle, most of
// this test would be spent waiting for a CPU.

const SERVICE: &str = "
    #include <cstdint>
    #include <unistd.h>
    static volatile std::uint64_t orders;
    __attribute__((noinline)) void churn(std::uint64_t n) {
        // One line: which half of a loop counts more depends on the processor.
        for (; n; n--) orders = orders * 31 + n;
    }
    __attribute__((noinline)) void serve() { churn(1000000); }
    int main() { for (;;) { serve(); usleep(1500); } }
";

const SCRIPT: &str = "
    function spinHot(n) { let sum = 0; for (let i = 0; i < n; i++) sum += Math.sqrt(i); return sum; }
    const idle = new Int32Array(new SharedArrayBuffer(4));
    for (;;) { spinHot(1e6); Atomics.wait(idle, 0, 0, 2); }
";

const PYTHON: &str = "
import time

def add_prices(count):
    total = 0
    for price in range(count):
        total += price & 7
    return total

while True:
    add_prices(100000)
    time.sleep(0.01)
";

/// A screen on these programs, and how many keys its tasks took.
struct Tasks {
    terminal: Terminal,
    /// The processes that are sampled: others of the machine would be in the first rows.
    pids: RefCell<Vec<u32>>,
    told: RefCell<Vec<String>>,
}

impl Tasks {
    /// Presses the keys of a task, and waits for its answer. Words in angle brackets are names of
    /// keys, all else is letters.
    fn ask(&self, what: &str, keys: &str, shows: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        let mut count = 0;
        for part in keys.split_inclusive(['<', '>']) {
            match part.strip_suffix('>') {
                Some(name) => {
                    self.terminal.keys(&[name]);
                    count += 1;
                }
                None => {
                    for letter in part.trim_end_matches('<').chars() {
                        self.terminal.keys(&["-l", &letter.to_string()]);
                        count += 1;
                    }
                }
            }
        }
        let screen = self.terminal.wait(what, shows);
        let seconds = begun.elapsed().as_secs_f64();
        let told = format!("{what}: {count} keys, {seconds:.1} s");
        println!("{told}");
        assert!(count <= KEYS_MAX, "{told}");
        self.told.borrow_mut().push(told);
        screen
    }

    /// Goes back to where every task begins: all functions of all programs.
    fn begin(&self) {
        self.terminal.keys(&["q"]);
        self.terminal.wait_for_shell();
        self.start();
    }

    fn start(&self) {
        let pids: Vec<String> = self.pids.borrow().iter().map(u32::to_string).collect();
        self.terminal
            .start(&format!("--fresh -p {}", pids.join(",")));
        // Names and the first samples have to be there before a task looks for any of them.
        self.terminal.wait("functions of all programs", |screen| {
            screen.contains("[1 Func]") && screen.contains("churn")
        });
    }
}

fn selected(screen: &str) -> &str {
    let row = screen.lines().find(|line| line.starts_with('>'));
    row.unwrap_or_default()
}

fn service(folder: &Path) -> Option<Process> {
    let source = folder.join("orders.cpp");
    std::fs::write(&source, SERVICE).expect("a file");
    let program = folder.join("orders");
    compile(&source, &program, ["-O1", "-g", "-fno-omit-frame-pointer"])?;
    Some(Process::start_load(Command::new(program).arg("--shard=7")))
}

fn node(folder: &Path, options: &[&str], script: &str) -> Option<Process> {
    let path = folder.join(script);
    std::fs::write(&path, SCRIPT).expect("a file");
    let mut command = Command::new("node");
    // The service may leave a log in its folder.
    command.current_dir(folder).args(options).arg(path);
    command.stdout(Stdio::null());
    let started = Process::try_start(behind_others(&mut command)).ok();
    if started.is_none() {
        skip("node is not installed");
    }
    started
}

/// Starts the Python that a distribution packages, which is stripped.
fn python(folder: &Path) -> Option<Process> {
    const PROGRAM: &str = "/usr/bin/python3";
    let known = "import sys; sys.exit(not (3, 8) <= sys.version_info < (3, 14))";
    let status = Command::new(PROGRAM).args(["-c", known]).status();
    if !status.is_ok_and(|status| status.success()) {
        skip("no python3.8 to python3.13 is installed");
        return None;
    }
    let script = folder.join("inv.py");
    std::fs::write(&script, PYTHON).expect("a file");
    Some(Process::start_load(Command::new(PROGRAM).arg(script)))
}

#[test]
fn ten_tasks_take_few_keys_each() {
    if !can_sample() {
        return;
    }
    let Some(terminal) = Terminal::open(80, 24) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (Some(postgres), Some(service), Some(script), Some(python)) = (
        Postgres::start_at(1000),
        service(folder.path()),
        node(folder.path(), &[], "app.js"),
        python(folder.path()),
    ) else {
        return;
    };
    terminal.type_line(&format!("cd {}", folder.path().display()));
    let tasks = Tasks {
        terminal,
        pids: RefCell::new(vec![
            postgres.pid(),
            service.pid(),
            python.pid(),
            script.pid(),
        ]),
        told: RefCell::default(),
    };
    tasks.start();

    tasks.ask("hottest function and line", "/churn<Enter>a", |screen| {
        screen.contains("[7 Code]") && selected(screen).contains("orders = orders * 31 + n")
    });
    tasks.begin();
    tasks.ask("who calls it", "/churn<Enter><Enter>", |screen| {
        screen.contains("CALLERS") && screen.contains("serve")
    });
    tasks.ask("since when", "6", |screen| {
        screen.contains("[6 Time]") && screen.contains("of churn")
    });
    tasks.begin();
    tasks.ask("before and after", "b=", |screen| {
        screen.contains('\u{394}')
    });
    tasks.begin();
    // Threads of one name are one row; this program has one.
    tasks.ask("only one thread", "5/orders<Enter><Enter>", |screen| {
        let scope = screen.lines().nth(1).unwrap_or_default();
        scope.contains('›') && scope.contains('[')
    });
    tasks.begin();
    tasks.ask("without one function", "/churn<Enter>x", |screen| {
        let filter = screen.lines().nth(1).unwrap_or_default();
        filter.contains("!fn:churn")
    });
    tasks.begin();
    tasks.terminal.wait_for("add_prices");
    let keys = "4/inv.py<Enter><Enter>1";
    tasks.ask("hottest function of a Python", keys, |screen| {
        screen.contains("[1 Func]") && selected(screen).contains("inv.add_prices")
    });
    tasks.begin();
    // Its process has to be among the rows before it is looked for.
    tasks.terminal.keys(&["4"]);
    tasks.terminal.wait_for("node /");
    tasks.terminal.keys(&["1"]);
    tasks.terminal.wait_for("[1 Func]");
    tasks.ask("why no name", "4/app.js<Enter><Enter>8", |screen| {
        // The first cause is the one that Enter opens. Until names are looked up it is that.
        let mut lines = screen.lines().skip_while(|line| !line.contains(" named "));
        screen.contains("[8 Health]") && lines.nth(1).is_some_and(|line| line.starts_with("  jit "))
    });
    let screen = tasks.ask("what to type for it", "<Enter>", |screen| {
        screen.contains("--perf-basic-prof")
    });
    assert!(screen.contains("type: node"), "{screen}");
    drop(script);
    let Some(script) = node(folder.path(), &["--perf-basic-prof"], "named.js") else {
        return;
    };
    tasks.pids.borrow_mut().pop();
    tasks.pids.borrow_mut().push(script.pid());
    tasks.begin();
    tasks.terminal.wait_for("spinHot");
    tasks.ask("the name is there then", "/spinHot<Enter>", |screen| {
        selected(screen).contains("spinHot")
    });
    tasks.begin();
    tasks.ask("write it", "w<Enter>", |screen| screen.contains("wrote "));
    tasks.terminal.keys(&["q"]);
    tasks.terminal.wait_for_shell();
    tasks.terminal.start("open *.pft");
    tasks.terminal.wait("what was written", |screen| {
        screen.contains("FILE") && screen.contains("churn")
    });
    tasks.begin();
    // If this kernel does not show its code, the screen says why.
    // The first row says what is hidden.
    tasks.ask("the kernel alone", "U", |screen| {
        screen.contains("[hidden]") && screen.contains("[kernel]")
    });
    tasks.ask("the code of a function of the kernel", "ja", |screen| {
        screen.contains("[7 Code]")
            && (screen.contains("/proc/kcore") || selected(screen).contains('%'))
    });
    tasks.begin();
    tasks.ask("a process by its arguments", "4/shard=7<Enter>", |screen| {
        selected(screen).contains("orders --shard=7")
    });
    tasks.terminal.keys(&["q"]);
    tasks.terminal.wait_for_shell();
    assert_eq!(tasks.told.borrow().len(), 14, "each was asked");
}
