//! `proftop trace tracepoint:…` on a program that prints how often it was switched and what it
//! called.

use crate::common;

use common::traced::{NO_LIMITS, Program, can_trace, own_count, probe, top, trace};
use common::{can_sample, proftop, run, text};
use test_support::Scratch;

/// In the output, `switches` and `more` bound how often the thread left its CPU while it was named
/// `counted`: a clock tick may come between a reading and the change of the name.
const C: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) static void asks(void) {
    for (int i = 0; i < 1000; i++) syscall(SYS_getppid);
    syscall(SYS_access, "/no such file for proftop", R_OK);
    __asm__ volatile("");
}
static long switches(void) {
    struct rusage usage; getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}
static void *thread(void *arg) {
    long outer = switches(); prctl(PR_SET_NAME, "counted"); long inner = switches();
    struct timespec t = {0, 3000000};
    for (int i = 0; i < 500; i++) nanosleep(&t, 0);
    long inner_end = switches(); prctl(PR_SET_NAME, "after"); long outer_end = switches();
    fprintf(stderr, "switches %ld\nmore %ld\n", inner_end - inner, outer_end - outer);
    return 0;
}
int main(void) {
    pthread_t one; pthread_create(&one, 0, thread, 0); pthread_join(one, 0);
    asks();
    return 0;
}
"#;

/// Returns whether tracepoints can be counted here. Prints why not.
fn can_trace_kernel() -> bool {
    if !can_trace() {
        return false;
    }
    let has_types = std::path::Path::new("/sys/kernel/btf/vmlinux").exists();
    if !has_types {
        test_support::skip("this kernel does not tell its types");
    }
    has_types
}

fn program() -> Option<Program> {
    Program::compile("counted.c", C, &["-O1", "-g0", "-pthread"])
}

fn count_of(top: &[(String, u64)], value: &str) -> u64 {
    let found = top.iter().find(|(it, _)| it == value);
    found.map_or(0, |(_, count)| *count)
}

#[test]
fn switches_and_system_calls_are_those_of_the_program() {
    if !can_sample() || !can_trace_kernel() {
        return;
    }
    let Some(program) = program() else { return };
    let args = [
        "tracepoint:sched:sched_switch,tracepoint:raw_syscalls:sys_enter",
        "--value",
        "arg2",
    ];
    let (report, _) = trace(&args, &[program.path()]);
    let calls = probe(&report, "tracepoint:raw_syscalls:sys_enter");
    let numbers = top(&calls["args"][0]);
    assert_eq!(count_of(&numbers, "110"), 1000, "{calls}");
    assert_eq!(calls["args"][0]["register"], "id");
    assert_eq!(calls["site"], "tracepoint");

    let args = [
        "tracepoint:sched_switch",
        "--value",
        "prev.comm",
        "--stacks",
    ];
    let (report, said) = trace(&args, &[program.path()]);
    let switches = probe(&report, "tracepoint:sched_switch");
    let counted = count_of(&top(&switches["values"][0]), "\"counted\"");
    let (least, most) = (own_count(&said, "switches"), own_count(&said, "more"));
    assert!(
        least >= 500 && (least..=most).contains(&counted),
        "{least} {most} {switches}"
    );
    // Other threads that left a CPU are no targets.
    assert!(switches["others"].as_u64().unwrap() > 0, "{switches}");
    let stacks = switches["callers"].as_array().unwrap();
    let names: Vec<&str> = stacks
        .iter()
        .flat_map(|it| it["stack"].as_array().unwrap())
        .map(|name| name.as_str().unwrap())
        .collect();
    // The stack goes from the place in the kernel to the thread's first function, without the
    // kernel's functions that run programs at tracepoints.
    assert!(
        names.iter().any(|name| name.contains("nanosleep")),
        "{names:?}"
    );
    assert!(
        !names.iter().any(|name| name.starts_with("bpf_")),
        "{names:?}"
    );
}

#[test]
fn arguments_have_members_and_texts_of_the_kernel_and_the_program() {
    if !can_sample() || !can_trace_kernel() {
        return;
    }
    let Some(program) = program() else { return };
    let args = [
        "tracepoint:sys_enter",
        "--value",
        "str(regs->di)",
        "--value",
        "regs.cs:u8",
        "--value",
        "*(regs+136):u16",
    ];
    let (report, _) = trace(&args, &[program.path()]);
    let calls = probe(&report, "tracepoint:sys_enter");
    let [named, cs, by_offset] = [0, 1, 2].map(|at| top(&calls["values"][at]));
    assert_eq!(
        count_of(&named, "\"/no such file for proftop\""),
        1,
        "{calls}"
    );
    // `__USER_CS`: all calls come from the program.
    let all = calls["count"].as_u64().unwrap();
    assert_eq!(
        (count_of(&cs, "51"), count_of(&by_offset, "51")),
        (all, all),
        "{calls}"
    );
}

#[test]
fn what_is_no_tracepoint_or_member_says_so() {
    if !can_trace_kernel() {
        return;
    }
    for (words, said) in [
        (
            &["tracepoint:no_such"][..],
            "this kernel has no tracepoint `no_such`",
        ),
        (
            &["tracepoint:syscalls:sys_enter_openat"],
            "tracepoint:raw_syscalls:sys_enter",
        ),
        (
            &["tracepoint:sched_switch", "--value", "prev.no_such"],
            "there is no member `no_such`",
        ),
        (
            &["tracepoint:sched_switch", "--value", "who"],
            "preempt, prev, next, prev_state",
        ),
        (
            &["tracepoint:sched_switch", "--value", "%rax"],
            "a tracepoint has no registers",
        ),
    ] {
        let output = run(&mut proftop(&[&["trace", "-d", "1s"], words].concat()));
        let stderr = text(&output.stderr);
        assert!(
            !output.status.success() && stderr.contains(said),
            "{words:?}: {stderr}"
        );
    }
}

#[test]
fn a_recording_has_the_hits_of_a_tracepoint() {
    if !can_sample() || !can_trace_kernel() {
        return;
    }
    let Some(program) = program() else { return };
    let scratch = Scratch::new();
    let path = scratch.join("calls.pft");
    let path = path.to_str().unwrap();
    let words = [
        "record",
        "--probe",
        "tracepoint:sys_enter",
        "--value",
        "id",
        "-o",
        path,
    ];
    // Every system call of a busy machine is a hit.
    let words = [&words[..], &NO_LIMITS, &["--", program.path()]].concat();
    let output = run(&mut proftop(&words));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = run(&mut proftop(&[
        "report", "--probes", "--format", "json", path,
    ]));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let calls = probe(&report, "tracepoint:sys_enter");
    assert_eq!(calls["instruction_class"], "tracepoint");
    let numbers = top(&calls["values"][0]);
    assert_eq!(count_of(&numbers, "110"), 1000, "{calls}");
}
