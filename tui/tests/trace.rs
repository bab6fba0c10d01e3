//! `proftop trace` on programs that count and time their own calls, and print that.

use crate::common;

use common::group::Group;
use common::mistakes::{VARIABLE, assert_told};
use common::traced::{NO_LIMITS, Program, can_trace, own_count, probe, top, trace};
use common::{
    BURN_FUNCTIONS, burning, can_sample, proftop, run, side_by_side, start_sampling, text,
    wait_for_work,
};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;
use test_support::{Process, Scratch, wait_until};

const C: &str = r#"
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define APART __attribute__((noinline, noclone))
struct inner { int number; unsigned short port; const char *name; };
struct outer { long unused; struct inner *inner; };
static unsigned long calls[8];
static unsigned long long slept_ns[1000];
static unsigned slept;
static unsigned long long now(void) {
    struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}
APART long depth(long n) { __atomic_add_fetch(&calls[0], 1, 0); return n ? depth(n - 1) * 3 + 1 : 0; }
APART long eight(long a, long b, long c, long d, long e, long f, long g, long h) {
    calls[1]++; __asm__ volatile(""); return a + b + c + d + e + f + g + h; }
APART long behind(struct outer *o) { calls[2]++; __asm__ volatile(""); return o->inner->number; }
APART int sleeps(int us) {
    struct timespec t = {0, us * 1000L}; nanosleep(&t, 0); calls[3]++; return us; }
static jmp_buf back;
APART void leaves(int n) { calls[4]++; __asm__ volatile(""); if (n % 2) longjmp(back, 1); }
APART long in_threads(long n) { __atomic_add_fetch(&calls[5], 1, 0); return n + 1; }
static void *thread(void *arg) {
    long sum = 0; for (int i = 0; i < 1000; i++) sum += in_threads(i);
    return (void *)(sum - 1000L * 1001 / 2); }
/* A text in r8 and its length in r9, as no compiler would pass them. */
__asm__(".text\n.globl by_hand\n.type by_hand,@function\nby_hand:\n push %rbx\n mov %r9,%rax\n"
        " pop %rbx\n ret\n nop\n nop\n.size by_hand,.-by_hand\n");
static long call_by_hand(const char *text, long length) {
    register const char *r8 __asm__("r8") = text; register long r9 __asm__("r9") = length; long result;
    __asm__ volatile("call by_hand" : "=a"(result), "+r"(r8), "+r"(r9) : : "memory", "cc", "rcx", "rdx");
    calls[6]++; return result; }
static int compare(const void *a, const void *b) {
    unsigned long long x = *(unsigned long long *)a, y = *(unsigned long long *)b; return x < y ? -1 : x > y; }
int main(int count, char **words) {
    int rounds = count > 1 ? atoi(words[1]) : 1000;
    struct inner inner = {-7, 65535, strdup("inner name")}; struct outer outer = {1, &inner};
    char *texts[2] = {strdup("GET /index"), strdup("PUT /x and more")};
    long sum = strlen(inner.name);
    for (int i = 0; i < rounds; i++) {
        sum += depth(20) + eight(1, 2, 3, 4, 5, 6, 777 + i % 3, -1) + behind(&outer);
        unsigned long long start = now();
        sum += sleeps(i % 10 ? 200 : 3000);
        if (slept < 1000) slept_ns[slept++] = now() - start;
        if (!setjmp(back)) leaves(i);
        sum += call_by_hand(texts[i % 2], 3);
    }
    pthread_t threads[64];
    for (int i = 0; i < 64; i++) pthread_create(&threads[i], 0, thread, 0);
    for (int i = 0; i < 64; i++) { void *wrong; pthread_join(threads[i], &wrong); sum += (long)wrong; }
    qsort(slept_ns, slept, sizeof slept_ns[0], compare);
    const char *names[] = {"depth", "eight", "behind", "sleeps", "leaves", "in_threads", "by_hand"};
    for (int i = 0; i < 7; i++) fprintf(stderr, "%s %lu\n", names[i], calls[i]);
    fprintf(stderr, "p50 %llu\np99 %llu\n", slept_ns[slept / 2], slept_ns[slept * 99 / 100]);
    fprintf(stderr, "checksum %lu\n", (unsigned long)sum);
    return 0;
}
"#;

/// Compiles the program so that no call becomes a jump. Returns None where there is no compiler.
fn with_every_call() -> Option<Program> {
    let flags = ["-O1", "-pthread", "-fno-optimize-sibling-calls"];
    Program::compile("traced.c", C, &flags)
}

#[test]
fn counts_are_those_of_the_program() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = with_every_call() else {
        return;
    };
    let names = [
        "depth",
        "eight",
        "behind",
        "sleeps",
        "leaves",
        "in_threads",
        "by_hand",
    ];
    let list = names.join(",");
    for count_only in [&["--count"][..], &[]] {
        let (report, said) = trace(&[count_only, &[&list]].concat(), &[program.path()]);
        for name in names {
            let probe = probe(&report, name);
            assert_eq!(probe["count"], own_count(&said, name), "{name}");
            let not_returned = match (name, count_only.is_empty()) {
                // Every other call is left by a longjmp.
                ("leaves", true) => 500,
                (_, true) => 0,
                (_, false) => own_count(&said, name),
            };
            assert_eq!(probe["unreturned"], not_returned, "{name}");
        }
    }
}

#[test]
fn an_interrupt_ends_a_trace_of_others_with_its_report() {
    if !can_sample() || !can_trace() {
        return;
    }
    let burn = burning(1);
    let pid = burn.pid().to_string();
    for number in [Signal::INT, Signal::TERM] {
        let mut trace = proftop(&["trace", BURN_FUNCTIONS[0], "-d", "1h", "-p", &pid]);
        let mut trace = start_sampling(trace.stdout(Stdio::piped()));
        wait_for_work(burn.pid(), Duration::from_millis(300));
        trace.signal(number);
        let mut report = String::new();
        let mut stdout = trace.stdout.take().expect("a pipe");
        stdout.read_to_string(&mut report).expect("its report");
        wait_until("the end", || trace.try_wait().expect("ours").is_some());
        assert!(report.contains(" calls in "), "{report}");
    }
}

const EARLY: &str = r#"
#include <stdlib.h>
#include <unistd.h>
int main(void) { void *volatile first = malloc(24681); free(first); usleep(1); return 7; }
"#;

#[test]
fn the_first_call_of_a_library_counts() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = Program::compile("early.c", EARLY, &["-O1"]) else {
        return;
    };
    // The program ends long before proftop could look which libraries it has mapped.
    let list = ["--value", "arg1", "libc.so.6!malloc,libc.so.6!usleep"];
    let (report, _) = trace(&list, &[program.path()]);
    let sizes = top(&probe(&report, "malloc")["args"][0]);
    assert!(sizes.contains(&("24681".to_string(), 1)), "{sizes:?}");
    let usleep = probe(&report, "usleep");
    assert_eq!((&usleep["count"], &usleep["sites"]), (&1.into(), &1.into()));
    assert_eq!(
        (&usleep["unreturned"], &usleep["late_s"]),
        (&0.into(), &Value::Null)
    );
}

#[test]
fn a_function_that_is_nowhere_is_said_before_the_command_ends() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = Program::compile("early.c", EARLY, &["-O1"]) else {
        return;
    };
    let output = run(&mut proftop(&["trace", "mian", "--", program.path()]));
    let said = text(&output.stderr);
    let (before, after) = said.split_once("looking in what").expect("both");
    assert!(before.contains("did you mean main?"), "{said}");
    assert!(after.contains("no function is called `mian`"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

/// The work of these processes.
pub const SEARCHING: &str = "looking for functions to probe";

/// Files are only understood by processes without rights: if these make a mistake, nothing is found,
/// and that is said.
#[test]
fn a_mistake_while_functions_are_searched_is_a_sentence() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = Program::compile("early.c", EARLY, &["-O1"]) else {
        return;
    };
    let mut command = proftop(&["trace", "main", "--", program.path()]);
    let output = run(command.env(VARIABLE, SEARCHING));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_told(&said, SEARCHING);
    assert!(said.contains(" was not looked through ("), "{said}");
}

#[test]
fn a_damaged_program_is_a_sentence() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = Program::compile("early.c", EARLY, &["-O1"]) else {
        return;
    };
    // The kernel needs none of what is overwritten: the headers of its sections.
    let mut bytes = fs::read(program.path()).expect("the program");
    let headers = u64::from_le_bytes(bytes[40..48].try_into().expect("8 bytes")) as usize;
    bytes[headers..].fill(0xff);
    fs::write(program.path(), bytes).expect("it can be written");
    let output = run(&mut proftop(&["trace", "main", "--", program.path()]));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("main"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn a_value_that_cannot_be_is_said_before_the_command_runs() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = with_every_call() else {
        return;
    };
    let switch = "tracepoint:sched:sched_switch";
    let cases = [
        ("behind", "prev.comm", "needs debug information"),
        (switch, "nothing.comm", "no parameter is called"),
    ];
    for (function, value, sentence) in cases {
        let command = [program.path(), "it ran"];
        let words = [&["trace", function, "--value", value, "--"], &command[..]].concat();
        let output = run(&mut proftop(&words));
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains(sentence), "{said}");
        assert!(
            !said.contains("checksum") && !said.contains("no function is called"),
            "{said}"
        );
        assert_ne!(output.status.code(), Some(0), "{said}");
    }
}

#[test]
fn values_are_those_of_the_program() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = Program::compile("traced.c", C, &["-O1", "-pthread"]) else {
        return;
    };
    let value = |function: &str, expressions: &[&str]| -> Value {
        let options = expressions.iter().flat_map(|text| ["--value", *text]);
        let args: Vec<&str> = std::iter::once(function).chain(options).collect();
        let (report, _) = trace(&args, &[program.path()]);
        probe(&report, function).clone()
    };
    let eight = value("eight", &["arg1", "arg7", "arg8:i32", "ret"]);
    let argument = |index: usize| top(&eight["args"][index]);
    assert_eq!(argument(0), [("1".to_string(), 1000)]);
    let seventh = [("777", 334), ("778", 333), ("779", 333)];
    assert_eq!(
        argument(1),
        seventh.map(|(value, count)| (value.to_string(), count))
    );
    assert_eq!(top(&eight["values"][0]), [("-1".to_string(), 1000)]);
    assert_eq!(top(&eight["returns"])[0], ("797".to_string(), 334));

    let expressions = [
        "*(*(arg1+8)):i32",
        "*(*(arg1+8)+4):u16",
        "str(*(*(arg1+8)+8))",
        "*(1)",
    ];
    let behind = value("behind", &expressions);
    let once = |text: &str| [(text.to_string(), 1000)];
    assert_eq!(top(&behind["values"][0]), once("-7"));
    assert_eq!(top(&behind["values"][1]), once("65535"));
    assert_eq!(top(&behind["values"][2]), once("\"inner name\""));
    // Nothing is mapped at that address.
    assert_eq!(behind["values"][3]["unreadable"], 1000);

    let by_hand = value("by_hand", &["str(%r8, %r9)", "str(%r8)"]);
    let halves = |first: &str, second: &str| [first, second].map(|text| (text.to_string(), 500));
    assert_eq!(top(&by_hand["values"][0]), halves("\"GET\"", "\"PUT\""));
    assert_eq!(
        top(&by_hand["values"][1]),
        halves("\"GET /index\"", "\"PUT /x and more\"")
    );
}

#[test]
fn times_are_those_of_the_program() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = Program::compile("traced.c", C, &["-O1", "-pthread"]) else {
        return;
    };
    let (report, said) = trace(&["sleeps", "--stacks"], &[program.path()]);
    let sleeps = probe(&report, "sleeps");
    for (field, own) in [("p50_ns", "p50"), ("p99_ns", "p99")] {
        let (ours, own) = (
            sleeps[field].as_f64().unwrap(),
            own_count(&said, own) as f64,
        );
        // A bucket is at most a quarter of its times wide, and the middle of one is shown.
        assert!(
            (ours / own - 1.0).abs() < 0.375,
            "{field}: {ours} and {own}"
        );
    }
    let histogram = sleeps["histogram"].as_array().unwrap();
    let in_buckets = histogram.iter().map(|bucket| bucket[2].as_u64().unwrap());
    assert_eq!(in_buckets.sum::<u64>(), 1000);
    let callers = sleeps["callers"].as_array().unwrap();
    let stack = callers[0]["stack"].as_array().unwrap();
    assert_eq!(stack[..2], ["sleeps", "main"], "{stack:?}");
    // With a minimum, only calls that sleep long are measured.
    let (report, _) = trace(&["sleeps", "--min", "2ms"], &[program.path()]);
    let slow = probe(&report, "sleeps");
    assert_eq!(slow["count"], 1000);
    assert!(slow["short"].as_u64().unwrap() <= 900, "{slow}");
    assert!(slow["p50_ns"].as_u64().unwrap() > 2_000_000, "{slow}");
}

#[test]
fn what_was_traced_is_kept_and_told_again() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = with_every_call() else {
        return;
    };
    let scratch = Scratch::new();
    let path = |name: &str| scratch.join(name).to_str().expect("UTF-8").to_string();
    let kept = path("calls.pft");
    let functions = "sleeps,by_hand,leaves";
    let args = [functions, "--stacks", "--value", "arg1", "-o", &kept];
    let (report, _) = trace(&args, &[program.path()]);
    let again = run(&mut proftop(&[
        "report", &kept, "--probes", "--format", "json",
    ]));
    let again: Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!(again["probes"], report["probes"]);
    assert_eq!(probe(&again, "sleeps")["count"], 1000);
    assert!(
        !probe(&again, "sleeps")["callers"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    // A report as text has them without an option.
    let told = text(&run(&mut proftop(&["report", &kept])).stdout);
    assert!(told.contains("\n  1000 calls in "), "{told}");
    // An existing file is refused, and a format that cannot contain the counts.
    for (name, sentence) in [
        ("calls.pft", "exists already"),
        ("calls.svg", "no place for"),
    ] {
        let file = path(name);
        let args = ["trace", "sleeps", "-o", &file, "--", program.path()];
        let output = run(&mut proftop(&args));
        assert!(text(&output.stderr).contains(sentence), "{output:?}");
        assert_ne!(output.status.code(), Some(0));
    }
    // Other formats contain every call as well, or a note says that they do not.
    for (name, has_it) in [
        ("x.trace.json", true),
        ("x.firefox.json", true),
        ("x.folded", false),
    ] {
        let file = path(name);
        let output = run(&mut proftop(&["export", &kept, &file]));
        let said = text(&output.stderr);
        assert_eq!(said.contains("what probes counted"), !has_it, "{said}");
        let written = std::fs::read_to_string(&file).expect("it was written");
        let calls: Vec<&str> = written.split("\"calls\":").skip(1).collect();
        let counted = calls.iter().map(|rest| {
            let end = rest
                .find(|c: char| !c.is_ascii_digit())
                .expect("more follows");
            rest[..end].parse::<u64>().expect("a number")
        });
        let expected = if has_it { 3000 } else { 0 };
        assert_eq!(counted.sum::<u64>(), expected, "{written}");
    }
    let hidden = path("hidden.pft");
    run(&mut proftop(&["export", &kept, &hidden, "--hide-names"]));
    let hidden = run(&mut proftop(&[
        "report", &hidden, "--probes", "--format", "json",
    ]));
    let hidden: Value = serde_json::from_slice(&hidden.stdout).expect("JSON");
    let sleeps = probe(&hidden, "sleeps");
    assert_eq!(
        (&sleeps["count"], &sleeps["args"]),
        (&1000.into(), &Value::Array(Vec::new()))
    );
}

#[test]
fn a_recording_has_samples_and_every_call() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = with_every_call() else {
        return;
    };
    let scratch = Scratch::new();
    let kept = scratch.join("both.pft");
    let kept = kept.to_str().expect("UTF-8");
    let probes = ["--probe", "sleeps,no_such_function", "--probe", "by_hand"];
    let rest = [
        "--value",
        "arg1",
        "-F",
        "999",
        "-o",
        kept,
        "--",
        program.path(),
    ];
    let words = [&["record"][..], &probes, &rest].concat();
    let output = run(&mut proftop(&words));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("no function is called `no_such_function`"),
        "{said}"
    );
    let report = run(&mut proftop(&[
        "report", kept, "--probes", "--format", "json",
    ]));
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    for name in ["sleeps", "by_hand"] {
        let probe = probe(&report, name);
        assert_eq!(probe["count"], own_count(&said, name), "{name}: {report}");
        assert_eq!(probe["unreturned"], 0, "{report}");
    }
    let slept = top(&probe(&report, "sleeps")["args"][0]);
    assert_eq!(slept, [("200".into(), 900), ("3000".into(), 100)]);
    let functions = text(&run(&mut proftop(&["report", kept])).stdout);
    assert!(!functions.contains("samples 0 "), "{functions}");
    // A file that cannot contain both is refused before the program starts.
    let refused = scratch.join("both.svg");
    let refused = refused.to_str().expect("UTF-8");
    let words = [
        "record",
        "--probe",
        "sleeps",
        "-o",
        refused,
        "--",
        program.path(),
    ];
    let output = run(&mut proftop(&words));
    assert!(text(&output.stderr).contains("no place for"), "{output:?}");
}

/// A program with markers as the macros of sys/sdt.h write them, which not every machine has.
const MARKED: &str = r#"
#include <stdio.h>
unsigned short app_turn_semaphore __attribute__((section(".probes")));
unsigned short app_end_semaphore __attribute__((section(".probes")));
__asm__(".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n .weak _.stapsdt.base\n"
        " .hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n .size _.stapsdt.base,1\n .popsection\n");
#define MARK(name, semaphore, arguments, ...) __asm__ volatile( \
    "990: nop\n .pushsection .note.stapsdt,\"\",\"note\"\n .balign 4\n" \
    " .4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b\n" \
    " .8byte _.stapsdt.base\n .8byte " semaphore "\n .asciz \"app\"\n .asciz \"" name "\"\n" \
    " .asciz \"" arguments "\"\n994: .balign 4\n .popsection\n" : : __VA_ARGS__)
static unsigned long turns, prepared, ends;
__attribute__((noinline)) long turn(int i, const char *text) {
    volatile short small = -3 - i % 2;
    /* What nobody has read is in no memory that the kernel can read. */
    turns += *(const volatile char *)text != 0;
    if (app_turn_semaphore) {
        prepared++;
        MARK("turn", "app_turn_semaphore", "-4@%[a] 8@%[b] -4@%[c] -2@%[d]",
             [a] "r"(-i % 4), [b] "r"(text), [c] "n"(42), [d] "m"(small));
    }
    return i + small;
}
static const char *volatile last = "at the end";
__attribute__((noinline)) long end(long x) {
    /* The same marker with its arguments elsewhere, and one without a semaphore. */
    ends += *(const volatile char *)last != 0;
    MARK("turn", "app_turn_semaphore", "-8@%[a] 8@%[b]", [a] "r"(x), [b] "r"(last));
    MARK("end__of", "0", "8@%[a]", [a] "r"(x));
    return x + 1;
}
int main(void) {
    long sum = 0;
    for (int i = 0; i < 10000; i++) {
        sum += turn(i, i % 2 ? "another" : "one text");
        if (i % 10 == 0) sum += end(7);
    }
    fprintf(stderr, "turns %lu\nprepared %lu\nends %lu\nchecksum %ld\n", turns, prepared, ends, sum);
}
"#;

#[test]
fn markers_are_counted_and_told_that_somebody_listens() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = Program::compile("marked.c", MARKED, &["-O2"]) else {
        return;
    };
    let (report, said) = trace(&["usdt:app:.*"], &[program.path()]);
    let all = probe(&report, "usdt:app:turn");
    assert_eq!(
        all["count"],
        own_count(&said, "turns") + own_count(&said, "ends")
    );
    assert_eq!(own_count(&said, "prepared"), 10_000, "{said}");
    assert_eq!((&all["sites"], &all["site"]), (&2.into(), &"marker".into()));
    assert_eq!(
        probe(&report, "usdt:app:end__of")["count"],
        own_count(&said, "ends")
    );
    // With a probe on the other marker alone, `turn` prepares no arguments.
    let (report, said) = trace(&["usdt:app:end-of"], &[program.path()]);
    assert_eq!(probe(&report, "usdt:app:end__of")["count"], 1000);
    assert_eq!(own_count(&said, "prepared"), 0);
    // With values, there is one probe for each place that has other arguments.
    let args = ["usdt:app:turn", "--value", "arg1", "--value", "str(arg2)"];
    let (report, _) = trace(&args, &[program.path()]);
    let (turn, end) = (
        probe(&report, "usdt:app:turn"),
        probe(&report, "usdt:app:turn #2"),
    );
    assert_eq!(
        (&turn["count"], &end["count"]),
        (&10_000.into(), &1000.into())
    );
    let numbers = ["-1", "-2", "-3", "0"].map(|number| (number.to_string(), 2500));
    assert_eq!(sorted(top(&turn["args"][0])), numbers);
    let texts = [("\"another\"".into(), 5000), ("\"one text\"".into(), 5000)];
    assert_eq!(sorted(top(&turn["values"][0])), texts);
    assert_eq!(top(&end["args"][0]), [("7".into(), 1000)]);
    assert_eq!(top(&end["values"][0]), [("\"at the end\"".into(), 1000)]);
    // One place has fewer arguments, and only there the values are missing.
    let args = ["usdt:app:turn", "--value", "arg3", "--value", "arg4"];
    let (report, said) = trace(&args, &[program.path()]);
    let turn = probe(&report, "usdt:app:turn");
    assert_eq!(top(&turn["args"][0]), [("42".into(), 10_000)]);
    let small = ["-3", "-4"].map(|number| (number.to_string(), 5000));
    assert_eq!(sorted(top(&turn["args"][1])), small);
    assert!(said.contains("it has not these arguments"), "{said}");
}

fn sorted(mut values: Vec<(String, u64)>) -> Vec<(String, u64)> {
    values.sort();
    values
}

const ENDLESS: &str = r#"
#include <unistd.h>
__attribute__((noinline)) int turn(int n) { __asm__ volatile("nop\n nop\n nop"); return n * 3 + 1; }
int main(void) { for (int n = 0;;) { n = turn(n); usleep(500); } }
"#;

#[test]
fn of_a_control_group_its_own_processes_are_probed() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(group) = Group::make("proftop-trace") else {
        return;
    };
    let Some(program) = Program::compile("endless.c", ENDLESS, &["-O2"]) else {
        return;
    };
    let start = || Process::start_load(Command::new(program.path()).stdout(Stdio::null()));
    let outside = start();
    // No process in the group has it.
    let words = ["trace", "-g", group.name(), "turn", "-d", "1s"];
    let output = run(&mut proftop(&[&words[..], &["--format", "json"]].concat()));
    assert!(!output.status.success(), "{}", text(&output.stdout));
    let inside = start();
    group.add(inside.pid());
    for (function, has_others) in [("turn", true), ("libc.so.6!usleep", false)] {
        let words = [
            "trace",
            "-g",
            group.name(),
            function,
            "-d",
            "1s",
            "--format",
            "json",
        ];
        let output = run(&mut proftop(&words));
        let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
        let calls = &report["probes"][0];
        assert!(calls["count"].as_u64() > Some(0), "{calls}");
        // A program is probed in all processes, as the group may start it again; a library is only
        // probed in the processes of the group.
        assert_eq!(calls["others"].as_u64() > Some(0), has_others, "{calls}");
    }
    drop((inside, outside));
}

#[test]
fn a_trace_that_is_killed_keeps_what_it_has_counted() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = Program::compile("endless.c", ENDLESS, &["-O1"]) else {
        return;
    };
    let scratch = Scratch::new();
    let file = scratch.join("killed.pft");
    let kept = file.to_str().expect("UTF-8");
    let endless = Process::start_load(&mut Command::new(program.path()));
    let pid = endless.pid().to_string();
    for options in [&["--stacks"][..], &["--hide-names", "-f"]] {
        let _ = std::fs::remove_file(&file);
        // On a busy machine hits cost so much that the probe would be removed.
        let limit = "--max-cost=1000";
        let words = ["trace", "turn", "-d", "1h", "-p", &pid, limit, "-o", kept];
        let mut trace = start_sampling(&mut proftop(&[&words, options].concat()));
        // A first block, and one that follows it.
        let size = || file.metadata().map_or(0, |metadata| metadata.len());
        wait_until("a block", || size() > 0);
        let first = size();
        wait_until("another block", || size() > first);
        trace.signal(Signal::KILL);
        wait_until("the end", || trace.try_wait().expect("ours").is_some());
        let report = run(&mut proftop(&[
            "report", kept, "--probes", "--format", "json",
        ]));
        let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
        let turn = probe(&report, "turn");
        assert!(turn["count"].as_u64().expect("a number") > 100, "{report}");
        let is_called = turn["callers"].to_string().contains("main");
        assert_eq!(is_called, options.contains(&"--stacks"), "{report}");
    }
}

#[test]
fn stacks_are_whole_while_returns_are_watched() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = with_every_call() else {
        return;
    };
    // In each of these stacks, twenty return addresses are the kernel's.
    // The stacks are whole once the tables are there, on a busy machine after more than a second.
    let (report, _) = trace(&["depth", "--stacks"], &[program.path(), "6000"]);
    let depth = probe(&report, "depth");
    let callers = depth["callers"].as_array().unwrap();
    assert!(!callers.is_empty(), "{depth}");
    for caller in callers {
        let stack: Vec<&str> = caller["stack"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap())
            .collect();
        let recursion = stack.iter().take_while(|name| **name == "depth").count();
        assert!((1..=21).contains(&recursion), "{stack:?}");
        assert_eq!(stack[recursion], "main", "{stack:?}");
        assert_eq!(stack.last(), Some(&"_start"), "{stack:?}");
    }
}

/// A program that, from the first call on, may only write and end: any other system call ends it
/// at once.
const FILTERED: &str = r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#define APART __attribute__((noinline, noclone))
#define LETS(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
APART long filtered(long n) { __asm__ volatile(""); return n * 3; }
APART long leaf(long n) { __asm__ volatile(""); return n + 1; }
int main(void) {
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), LETS(SYS_write), LETS(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_fprog filter = {sizeof lines / sizeof *lines, lines};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 1;
    long sum = 0;
    for (long i = 0; i < 500; i++) sum += filtered(i) - leaf(i);
    fprintf(stderr, "sum %ld\n", sum);
    return 0;
}
"#;

#[test]
fn a_program_under_a_filter_of_system_calls_goes_on_behind_its_returns() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = Program::compile("filtered.c", FILTERED, &["-O1"]) else {
        return;
    };
    let (report, said) = trace(&["filtered,leaf", "--ret"], &[program.path()]);
    assert_eq!(own_count(&said, "sum"), 500 * 499 - 500, "{said}");
    for name in ["filtered", "leaf"] {
        let called = probe(&report, name);
        assert_eq!(called["count"], 500, "{called}");
        assert_eq!(called["unreturned"], 0, "{called}");
        let all = top(&called["returns"]);
        assert!(all.iter().all(|(_, count)| *count == 1), "{all:?}");
    }
}

/// A program that spends nearly all of its time in the kernel, which handles its two breakpoints.
const HIT_ALL_THE_TIME: &str = r#"
#define APART __attribute__((noinline, noclone))
static volatile unsigned long sink;
APART unsigned long inner(unsigned long n) { sink += n; return sink; }
APART unsigned long outer(unsigned long n) { unsigned long a = inner(n); sink ^= a; return a + inner(n + 1); }
int main(void) { for (unsigned long i = 0; i < 400000; i++) sink += outer(i); return 0; }
"#;

#[test]
fn samples_are_whole_while_a_breakpoint_is_hit() {
    if !can_sample() || !can_trace() {
        return;
    }
    // Both functions begin with a push of one byte, after which the pc is as if it had not run.
    let Some(program) = Program::compile("hit.c", HIT_ALL_THE_TIME, &["-O0"]) else {
        return;
    };
    let scratch = Scratch::new();
    let kept = scratch.join("hit.pft");
    let kept = kept.to_str().expect("UTF-8");
    let limits = ["--max-cost", "1000", "--max-hits", "100000000"];
    let probes = ["--probe", "inner,outer", "-F", "999", "-o", kept];
    let words = [&["record"][..], &limits, &probes, &["--", program.path()]].concat();
    let output = run(&mut proftop(&words));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = run(&mut proftop(&["report", kept, "--format", "json"]));
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let (walked, whole) = (&report["user_stacks"], &report["whole"]);
    let (walked, whole) = (walked.as_u64().unwrap(), whole.as_u64().unwrap());
    // The first stacks are walked from copies, as the program's tables are not there yet.
    assert!(walked > 300 && whole * 100 >= walked * 98, "{report}");
}

#[test]
fn what_is_not_found_in_a_command_costs_nobody_else_his_counts() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = Program::compile("traced.c", C, &["-O1", "-pthread"]) else {
        return;
    };
    // The program is mapped before it runs, its libraries a moment later.
    let functions = "sleeps,libc!clock_nanosleep,no_such_function_here";
    let (report, said) = trace(&[functions], &[program.path()]);
    assert_eq!(probe(&report, "sleeps")["count"], 1000);
    assert!(said.contains("`no_such_function_here`"), "{said}");
    let library = probe(&report, "clock_nanosleep");
    // The function has one start in the C library and a name for each of two versions.
    assert_eq!(library["sites"], 1, "{library}");
    let count = library["count"].as_u64().unwrap();
    assert!((1..=1000).contains(&count), "{library}");
}

const LINES: &str = "/* Line 4 is put into two functions. */
static volatile long sink;
static inline __attribute__((always_inline)) void step(long n) {
    sink += n; }
__attribute__((noinline)) void first(long n) { step(n); sink ^= 3; }
__attribute__((noinline)) void second(long n) { step(n + 1); sink ^= 5; }
int main(void) { for (long n = 0; n < 100; n++) { first(n); if (n % 4 == 0) second(n); } }
";

#[test]
fn a_line_is_counted_wherever_the_compiler_has_put_it() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = Program::compile("lines.c", LINES, &["-O1", "-g"]) else {
        return;
    };
    let (report, _) = trace(&["lines.c:4"], &[program.path()]);
    let line = probe(&report, "lines.c:4");
    assert_eq!(line["count"], 125, "{line}");
    assert_eq!(line["sites"], 2, "{line}");
    assert_eq!(line["p50_ns"], Value::Null);
    let output = run(&mut proftop(&["trace", "lines.c:1", "--", program.path()]));
    let said = text(&output.stderr);
    assert!(
        said.contains("line 1 of lines.c has no code; line "),
        "{said}"
    );
    assert_ne!(output.status.code(), Some(0));
}

#[test]
fn a_probe_that_costs_too_much_is_taken_away() {
    if !can_sample() || !can_trace() {
        return;
    }
    let source = "__attribute__((noinline)) long hot(long n) { __asm__ volatile(\"\"); return n * 3 + 1; }\n\
                  int main(void) { for (volatile long n = 0;; n = hot(n)); }";
    let Some(program) = Program::compile("hot.c", source, &["-O1"]) else {
        return;
    };
    // The program has the usual priority: what a probe costs depends on how often it is hit.
    let process = Process::start(&mut Command::new(program.path()));
    let pid = process.pid().to_string();
    let args = ["trace", "hot", "-p", &pid, "-d", "60s", "--format", "json"];
    let output = run(&mut proftop(&args));
    let said = text(&output.stderr);
    assert!(said.contains("the probe on hot was taken away"), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let removed = probe(&report, "hot")["removed"].as_str().unwrap();
    assert!(
        removed.contains("% of a CPU") || removed.contains("times a second"),
        "{removed}"
    );
}

const GO: &str = r#"
package main
import ("fmt"; "os"; "sync"; "sync/atomic"; "time")
var calls, deeps int64
//go:noinline
func Work(name string, n int) int { atomic.AddInt64(&calls, 1); if n%100 == 0 { time.Sleep(100*time.Microsecond) }; return len(name) + n }
//go:noinline
func Deep(n int) int { atomic.AddInt64(&deeps, 1); var room [64]int; room[n%64] = n; if n > 0 { return Deep(n-1) + room[(n+1)%64] }; return 0 }
func main() {
  var all sync.WaitGroup
  sum := int64(0)
  for g := 0; g < 8; g++ { all.Add(1); go func(g int) { defer all.Done()
    for i := 0; i < 100; i++ { atomic.AddInt64(&sum, int64(Work([]string{"even","odd"}[i%2], i))) }
    Deep(200) }(g) }
  all.Wait()
  fmt.Fprintf(os.Stderr, "main.Work %d\nmain.Deep %d\nchecksum %d\n", calls, deeps, sum)
}
"#;

#[test]
fn go_is_counted_and_timed_while_its_stacks_move() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = Program::compile("main.go", GO, &["-ldflags=-s -w"]) else {
        return;
    };
    let args = ["main.Work,main.Deep", "--value", "str(arg1,arg2)", "--ret"];
    let (report, said) = trace(&args, &[program.path()]);
    for name in ["main.Work", "main.Deep"] {
        let probe = probe(&report, name);
        assert_eq!(probe["language"], "go");
        assert_eq!(probe["count"], own_count(&said, name), "{name}");
        assert_eq!(probe["unreturned"], 0, "{name}");
    }
    let work = probe(&report, "main.Work");
    let names = top(&work["values"][0]);
    let unreadable = work["values"][0]["unreadable"].as_u64().unwrap();
    assert!(
        names
            .iter()
            .all(|(name, _)| name == "\"even\"" || name == "\"odd\""),
        "{names:?}"
    );
    assert_eq!(
        names.iter().map(|name| name.1).sum::<u64>() + unreadable,
        800
    );
}

const GO_BOOL: &str = r#"
package main
import "fmt"
var words [16]uint64
//go:noinline
func IsEven(n int) bool { return words[n&15]&1 == 0 }
func main() {
  for i := range words { words[i] = uint64(i) * 0x0123456789abcdef }
  even := 0
  for i := 0; i < 600; i++ { if IsEven(i % 3) { even++ } }
  fmt.Println("even", even)
}
"#;

#[test]
fn what_a_function_of_go_returns_is_as_wide_as_its_type() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = Program::compile("main.go", GO_BOOL, &[]) else {
        return;
    };
    let (report, _) = trace(&["main.IsEven", "--ret"], &[program.path()]);
    let even = probe(&report, "main.IsEven");
    // The bits above the lowest byte of the register are left from before.
    let expected = [("1".to_string(), 400), ("0".to_string(), 200)];
    assert_eq!(top(&even["returns"]), expected);
    // The end of each call is seen by a breakpoint, whose instruction is stepped.
    assert_eq!(even["instruction_class"], "stepped");
    let Some(stripped) = Program::compile("main.go", GO_BOOL, &["-ldflags=-s -w"]) else {
        return;
    };
    let args = ["trace", "main.IsEven", "--ret", "--", stripped.path()];
    let said = text(&run(&mut proftop(&args)).stdout);
    assert!(
        said.contains("ret (rax, whole, as its type is not known)"),
        "{said}"
    );
    assert!(said.contains("stepped"), "{said}");
    // A user who knows the type gives it.
    let (report, _) = trace(&["main.IsEven", "--value", "ret:u8"], &[stripped.path()]);
    let even = probe(&report, "main.IsEven");
    assert_eq!(top(&even["values"][0]), expected);
}

const MANY_VALUES: &str = r#"
#include <unistd.h>
__attribute__((noinline, noclone)) long value(long n) { __asm__ volatile(""); return n + 1; }
int main(void) { long sum = 0; for (long i = 0;; i++) { sum += value(i % 4000); if (i % 64 == 0) usleep(50); } return (int)sum; }
"#;

#[test]
fn of_no_value_there_are_more_than_calls() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = Program::compile("many.c", MANY_VALUES, &["-O1"]) else {
        return;
    };
    let process = Process::start(&mut Command::new(program.path()));
    let pid = process.pid().to_string();
    // The program calls all the time, also while proftop reads the values, of which there are many.
    let args = [
        &[
            "trace", "value", "--args", "1", "--ret", "-p", &pid, "-d", "2s",
        ][..],
        &["--format", "json"],
        &NO_LIMITS,
    ];
    let output = run(&mut proftop(&args.concat()));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let probe = probe(&report, "value");
    let all = |values: &Value| {
        let top: u64 = top(values).iter().map(|(_, count)| count).sum();
        top + values["others"].as_u64().unwrap()
    };
    let (calls, unreturned) = (&probe["count"], &probe["unreturned"]);
    let (calls, unreturned) = (calls.as_u64().unwrap(), unreturned.as_u64().unwrap());
    assert!(calls > 1_000, "{probe}");
    assert!(all(&probe["args"][0]) <= calls, "{probe}");
    assert!(all(&probe["returns"]) <= calls - unreturned, "{probe}");
}

const ONLY_INSIDE: &str = r#"
#include <unistd.h>
static inline __attribute__((always_inline)) long clamp_it(long n) {
    __asm__ volatile("");
    return n > 7 ? 7 : n; }
__attribute__((noinline, noclone)) long outside(long n) { return clamp_it(n) * 3; }
int main(void) { long sum = 0; for (long i = 0; i < 20; i++) { sum += outside(i); usleep(1000); } return sum == 0; }
"#;

#[test]
fn of_a_function_that_is_only_in_its_callers_these_are_named() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = Program::compile("inside.c", ONLY_INSIDE, &["-O2", "-g"]) else {
        return;
    };
    let output = run(&mut proftop(&["trace", "clamp_it", "--", program.path()]));
    let said = text(&output.stderr);
    assert!(
        said.contains("the compiler put `clamp_it` into its callers"),
        "{said}"
    );
    assert!(
        said.contains("probe outside, or a line of it: inside.c:"),
        "{said}"
    );
    assert_ne!(output.status.code(), Some(0));
}

#[test]
fn of_a_function_of_python_it_is_said_that_only_native_code_is_probed() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(python) = ["/usr/bin/python3", "/usr/local/bin/python3"]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists())
    else {
        return test_support::skip("no python3");
    };
    let args = [
        "trace",
        "handle_one",
        "--",
        python,
        "-c",
        "import time; time.sleep(0.1)",
    ];
    let said = text(&run(&mut proftop(&args)).stderr);
    assert!(
        said.contains("if `handle_one` is a function of Python"),
        "{said}"
    );
}

const CPP: &str = r#"
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>
#define APART __attribute__((noinline, noclone))
static unsigned long ints, strings, thrown, virtuals;
namespace shop {
struct Item { int id; double price; APART virtual long total(int n) { virtuals++; asm volatile(""); return id * n; } virtual ~Item() {} };
template <class T> struct Shelf { std::vector<T> all; APART void put(const T &value); };
template <> APART void Shelf<int>::put(const int &value) { ints++; all.push_back(value); }
template <> APART void Shelf<std::string>::put(const std::string &value) { strings++; all.push_back(value); }
APART long pick(int n) { thrown++; asm volatile(""); if (n % 4 == 0) throw std::runtime_error("gone"); return n; }
APART long pick(double n) { asm volatile(""); return (long)n; }
}
int main() {
  shop::Shelf<int> a; shop::Shelf<std::string> b; shop::Item item; item.id = 42; shop::Item *volatile p = &item; long sum = 0;
  for (int i = 0; i < 400; i++) { a.put(i); if (i % 2) b.put("x"); sum += p->total(i % 3);
    try { sum += shop::pick(i); } catch (const std::exception &) { sum--; } sum += shop::pick(1.5); }
  fprintf(stderr, "ints %lu\nstrings %lu\nthrown %lu\nvirtuals %lu\nchecksum %ld\n", ints, strings, thrown, virtuals, sum);
}
"#;

#[test]
fn overloads_templates_and_exceptions_of_cpp() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(program) = Program::compile("traced.cpp", CPP, &["-O1"]) else {
        return;
    };
    let functions = "shop::Shelf::put,shop::pick(int),shop::Item::total";
    let args = [functions, "--value", "*(this+8):i32"];
    let (report, said) = trace(&args, &[program.path()]);
    let put = report["probes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|probe| probe["function"].as_str().unwrap().contains("put"))
        .unwrap();
    // Both instances are sites of one probe. Exceptions can pass, as no return address is replaced.
    assert_eq!(put["sites"], 2);
    assert_eq!(
        put["count"],
        own_count(&said, "ints") + own_count(&said, "strings")
    );
    let pick = probe(&report, "shop::pick");
    assert_eq!(pick["count"], own_count(&said, "thrown"));
    assert_eq!(pick["unreturned"], 100);
    assert_eq!(pick["instruction_class"], "stepped");
    let total = probe(&report, "shop::Item::total");
    assert_eq!(total["count"], own_count(&said, "virtuals"));
    assert_eq!(top(&total["values"][0]), [("42".to_string(), 400)]);
}

#[test]
fn what_cannot_be_probed_says_why() {
    if !can_sample() || !can_trace() {
        return;
    }
    let burn = burning(1);
    let pid = burn.pid().to_string();
    let all = [
        ("no_such_function_here", "no function is called"),
        ("vfs_read", "function of the kernel"),
        ("_start", "starts the process"),
        ("nothing!malloc", "no file `nothing`"),
        ("*", "which is no regular expression"),
        ("_*", "64 can be probed at a time"),
        ("no_such_file.c:12", "no code that is mapped was made of"),
    ];
    side_by_side(&all, |&(function, sentence)| {
        let output = run(&mut proftop(&["trace", function, "-p", &pid, "-d", "1s"]));
        let said = text(&output.stderr);
        assert!(said.contains(sentence), "{function}: {said}");
        assert_ne!(output.status.code(), Some(0), "{function}");
        // Messages about single functions would hide it.
        if function == "_*" {
            assert!(!said.contains("no probe on"), "{said}");
        }
    });
}
