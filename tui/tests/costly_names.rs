//! Names that keep a demangler busy for hours, in the symbols of a program and in its map of
//! generated code: they stay as they are, and all others get their names, however deep.

use crate::common::{can_sample, list, proftop, reports_until};
use serde_json::Value;
use std::process::Command;
use test_support::{Process, Scratch, compile};

/// Runs three pieces of code in turns: a function with a harmless deep name, one with a costly name,
/// and code made at run time, whose map gives it a costly name as well.
const SOURCE: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile unsigned sum;
void deep(void) __asm__(DEEP);
void costly(void) __asm__(COSTLY);
__attribute__((noinline)) void deep(void) {
    for (unsigned i = 0; i < 1000000; i++) sum += i;
}
__attribute__((noinline)) void costly(void) {
    for (unsigned i = 0; i < 1000000; i++) sum += i;
}

static const unsigned char code[] = {
#ifdef __x86_64__
    0xb9, 0x40, 0x42, 0x0f, 0x00, /* mov $1000000, %ecx */
    0xff, 0xc9,                   /* dec %ecx */
    0x75, 0xfc,                   /* jnz back */
    0xc3,
#else
    0x00, 0x48, 0x88, 0xd2, /* mov x0, #0x42400000 */
    0x00, 0x04, 0x40, 0xd1, /* sub x0, x0, #0x1000 */
    0xe0, 0xff, 0xff, 0xb5, /* cbnz x0, back */
    0xc0, 0x03, 0x5f, 0xd6,
#endif
};

int main(void) {
    int rights = PROT_READ | PROT_WRITE | PROT_EXEC;
    void *page = mmap(0, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    __builtin___clear_cache(page, (char *)page + sizeof code);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%lx %x %s\n", (long)page, 4096, GENERATED);
    fclose(map);
    for (;;) {
        deep();
        costly();
        ((void (*)(void))page)();
    }
}
"#;

/// The name of a function as Qt's string builder has them.
fn deep_name() -> String {
    format!(
        "_ZN13QConcatenableI14QStringBuilder{}I7QString{}E8appendToI5QCharEEvRKS15_RPT_",
        "IS0_".repeat(41),
        "S1_E".repeat(42)
    )
}

#[test]
fn names_made_to_take_hours_stay_and_others_are_demangled() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    let (costly, generated) = ("StIL1aI".repeat(12), "StIL1aI".repeat(11));
    let (costly, generated) = (format!("_Z{costly}"), format!("_Z{generated}"));
    let names = [
        ("DEEP", &deep_name()),
        ("COSTLY", &costly),
        ("GENERATED", &generated),
    ];
    let defined = names.map(|(macro_name, name)| format!("-D{macro_name}=\"{name}\""));
    let program = scratch.join("costly");
    let source = scratch.write("costly.c", SOURCE);
    let flags = ["-O1", "-fno-inline"].map(String::from);
    let flags: Vec<String> = flags.into_iter().chain(defined).collect();
    if compile(&source, &program, flags.iter().map(String::as_str)).is_none() {
        return;
    }
    let running = Process::start_load(&mut Command::new(&program));
    let has = |report: &Value, start: &str| {
        let names = list(report, "functions").iter();
        let mut names = names.filter_map(|function| function["name"].as_str());
        names.any(|name| name.starts_with(start))
    };
    let pid = running.pid().to_string();
    let live = ["-b", "--format", "json", "-d", "1", "-p", &pid];
    let all = [
        "QConcatenable<QStringBuilder<QStringBuilder<",
        &costly,
        &generated,
        "main",
    ];
    reports_until(&mut proftop(&live), "all names", |reports| {
        let last = reports.last().expect("there is one");
        all.iter().all(|name| has(last, name))
    });
    let map = format!("/tmp/perf-{}.map", running.pid());
    drop(running);
    _ = std::fs::remove_file(map);
}
