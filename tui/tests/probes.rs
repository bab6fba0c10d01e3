//! Probes placed while proftop runs, on programs that count their own calls.

use crate::common;

use common::can_sample;
use common::dialog::Dialog;
use common::tmux::Terminal;
use common::traced::can_trace;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use test_support::{Process, Scratch, compile};

/// A program that calls `counted` as often as each line of its input says, and prints when it is
/// done. The other thread is busy, so that there are samples.
const COUNTS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#define APART __attribute__((noinline, noclone))
static volatile unsigned long sink;
APART unsigned long busy_work(unsigned long n) {
    unsigned long sum = 0; for (unsigned long i = 0; i < n; i++) sum += i ^ sum; return sink = sum; }
static void *busy(void *unused) { for (;;) busy_work(1000000); return unused; }
APART unsigned long counted(unsigned long a, unsigned long b) {
    __asm__ volatile("" : : : "memory"); return a + b; }
APART void sleeps(void) { struct timespec t = {0, 2000000}; nanosleep(&t, 0); sink++; }
int main(void) {
    pthread_t thread; long calls;
    pthread_create(&thread, 0, busy, 0);
    while (scanf("%ld", &calls) == 1) {
        for (long i = 0; i < calls; i++) { sink += counted(7, i % 2); if (i % 50 == 0) sleeps(); }
        printf("done\n"); fflush(stdout);
    }
    return 0;
}
"#;

struct Counting {
    _scratch: Scratch,
    path: PathBuf,
    process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Counting {
    fn start() -> Option<Self> {
        let scratch = Scratch::new();
        let source = scratch.write("counts.c", COUNTS);
        let path = scratch.join("counts");
        compile(&source, &path, ["-O0", "-g", "-pthread"])?;
        let mut command = Command::new(&path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::start(&mut command);
        let input = process.stdin.take().expect("a pipe");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        Some(Self {
            _scratch: scratch,
            path,
            process,
            input,
            output,
        })
    }

    /// Makes the program call the function this often, and waits for that.
    fn call(&mut self, calls: u64) {
        writeln!(self.input, "{calls}").expect("it reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it writes");
        assert_eq!(line, "done\n");
    }
}

/// Returns the number `12,345` of a line with ` calls in `.
fn calls(answer: &str) -> u64 {
    let line = answer
        .lines()
        .find(|line| line.contains(" calls in "))
        .unwrap_or_else(|| panic!("no count in {answer}"));
    let number = line.trim_start().split(' ').next().expect("a word");
    number.replace(',', "").parse().expect("a number")
}

/// Asks for the probes until the function was called this often: counts come with the next
/// snapshot.
fn until_counted(dialog: &mut Dialog, wanted: u64) -> String {
    test_support::wait_for("all calls are counted", || {
        let answer = dialog.ask("probes");
        let counted = if answer.contains(" calls in ") {
            calls(&answer)
        } else {
            0
        };
        assert!(counted <= wanted, "{counted} of {wanted}: {answer}");
        (counted == wanted).then_some(answer)
    })
}

#[test]
fn a_probe_counts_every_call_while_it_is_there() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(mut counting) = Counting::start() else {
        return;
    };
    let pid = counting.process.pid().to_string();
    let mut dialog = Dialog::start(&["--plain", "-p", &pid]);
    // The function was not sampled so far: proftop finds it by its name.
    let answer = dialog.probe("counted");
    assert!(answer.contains("probe 1 is on counted"), "{answer}");
    counting.call(5_000);
    let answer = until_counted(&mut dialog, 5_000);
    for part in ["p50 ", "measured: a hit costs "] {
        assert!(answer.contains(part), "{part} in {answer}");
    }
    // Names come later.
    test_support::wait_for("callers are named", || {
        let answer = dialog.ask("probes");
        answer.contains("called from main").then_some(())
    });
    // The values begin anew, and are those that the program passes.
    dialog.ask("value 1 arg1");
    dialog.ask("value 1 arg2");
    counting.call(1_000);
    let answer = until_counted(&mut dialog, 1_000);
    for part in ["arg1 100.0% 7", "arg2 50.0% 0", "arg2 50.0% 1"] {
        assert!(answer.contains(part), "{part} in {answer}");
    }
    // A second probe beside it; the answer says what it waits for.
    let answer = dialog.ask("probe sleeps");
    assert!(answer.contains("probe 2 is on sleeps"), "{answer}");
    counting.call(3_000);
    let answer = test_support::wait_for("sleeping is seen", || {
        let answer = dialog.ask("probes");
        answer.contains("60 calls in ").then_some(answer)
    });
    assert!(answer.contains("4,000 calls in "), "{answer}");
    // A refusal says why, and leaves other probes alone.
    let answer = dialog.ask("probe _start");
    assert!(
        answer.contains("no probe on _start: it starts the process"),
        "{answer}"
    );
    let answer = dialog.ask("probe no_such_function");
    assert!(answer.contains("no function of that name"), "{answer}");
    dialog.ask("unprobe 1");
    let answer = dialog.ask("probes");
    assert!(
        !answer.contains("counted") && answer.contains("sleeps"),
        "{answer}"
    );
    dialog.ask("unprobe all");
    assert!(dialog.ask("probes").contains("no function is probed"));
    // The program goes on as before.
    counting.call(10);
    dialog.finish();
}

#[test]
fn only_calls_of_named_threads_count() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(mut counting) = Counting::start() else {
        return;
    };
    // The first thread; the other one is always in `busy_work`.
    let tid = counting.process.pid().to_string();
    let mut dialog = Dialog::start(&["--plain", "-t", &tid]);
    for function in ["counted", "busy_work"] {
        let answer = dialog.probe(function);
        assert!(answer.contains(&format!(" is on {function}")), "{answer}");
    }
    counting.call(1_000);
    let answer = until_counted(&mut dialog, 1_000);
    assert!(answer.contains(" by thread counts["), "{answer}");
    let answer = test_support::wait_for("the other thread is told apart", || {
        let answer = dialog.ask("probes");
        answer.contains(" by others").then_some(answer)
    });
    assert!(answer.contains(" 0 calls in "), "{answer}");
    dialog.finish();
}

#[test]
fn a_line_of_source_text_is_counted() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(mut counting) = Counting::start() else {
        return;
    };
    let line = 1 + COUNTS
        .lines()
        .position(|line| line.contains("return a + b"))
        .unwrap();
    let pid = counting.process.pid().to_string();
    let mut dialog = Dialog::start(&["--plain", "-p", &pid]);
    let answer = dialog.probe(&format!("counts.c:{line}"));
    assert!(
        answer.contains(&format!(" is on counts.c:{line}")),
        "{answer}"
    );
    counting.call(1_000);
    until_counted(&mut dialog, 1_000);
    let answer = dialog.ask("probe counts.c:1");
    assert!(
        answer.contains("line 1 of counts.c has no code; line "),
        "{answer}"
    );
    let answer = dialog.ask("probe nowhere.c:1");
    assert!(
        answer.contains("no code that is mapped was made of nowhere.c"),
        "{answer}"
    );
    dialog.finish();
}

#[test]
fn a_key_on_a_row_places_a_probe() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(mut counting) = Counting::start() else {
        return;
    };
    let Some(tmux) = Terminal::open(80, 24) else {
        return;
    };
    tmux.start(&format!("--fresh -p {}", counting.process.pid()));
    tmux.wait_for("busy_work");
    tmux.keys(&["/", "busy_work", "Enter", "l"]);
    let screen = tmux.wait("calls of it are counted", |screen| {
        screen.contains(" calls in ") && screen.contains("p50 ")
    });
    assert!(screen.contains("[9 Probes]"), "{screen}");
    tmux.wait_for("FROM WHERE, of ");
    tmux.keys(&[":", "probe counted", "Enter"]);
    tmux.wait_for("counted  counts+0x");
    counting.call(777);
    tmux.wait_for("777 calls in ");
    // When the program ends, proftop says so and the numbers stay.
    counting.process.signal(rustix::process::Signal::KILL);
    let screen = tmux.wait_for("gone");
    assert!(screen.contains("777 calls in "), "{screen}");
    assert!(counting.path.exists());
    tmux.keys(&["q"]);
    tmux.wait_for_shell();
}
