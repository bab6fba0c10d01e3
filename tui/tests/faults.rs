//! A mistake (panic) on any of proftop's threads costs one piece of work: samples, reports and
//! the screen go on, and proftop reports the mistake. The tests cause the mistakes by
//! `PROFTOP_TEST_FAULTS`, once each.

use crate::common;

use common::mistakes::{VARIABLE, assert_told};
use common::tmux::Terminal;
use common::{PROFTOP, burn_str, burning, can_sample, list, number, proftop, reports, run};
use common::{side_by_side, text};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use test_support::{Process, Scratch, compile};

/// Work that is done while samples are taken and reports are written.
const OF_REPORTS: [&str; 12] = [
    "taking samples",
    "counting samples",
    "making a report",
    "reading unwind tables",
    "waiting for a signal",
    "reading titles",
    "finding names",
    "finding source lines",
    "reading symbols",
    "reading files of targets",
    "writing a report",
    "reading headers of files",
];

/// Work that only the screen does.
const OF_THE_SCREEN: [&str; 8] = [
    "watching the terminal",
    "answering an event",
    "drawing the screen",
    "writing to the terminal",
    "answering a view's question",
    "finding code",
    "reading code",
    "looking for names",
];

/// Work on programs of which each makes one kind necessary.
const OF_SOME_REPORTS: [&str; 6] = [
    "reading stacks of threads that wait",
    "reading locks",
    "reading Python's structures",
    "looking for Python in a file",
    "demangling a name",
    "reading maps of generated code",
];

/// Work without which nothing is left to do. The run ends with the reason.
const OF_THE_WHOLE_RUN: [&str; 3] = [
    "starting to sample",
    "keeping what was counted",
    "doing what was asked for",
];

/// Work that each has a test of its own here.
const OF_ONE_TEST: [&str; 4] = [CONTROL, FILE, COMMAND, USER_FILES];
const CONTROL: &str = "listening at the control socket";
const FILE: &str = "reading the file";
const COMMAND: &str = "starting a command";
const USER_FILES: &str = "reading or writing files of the user";

/// Work about which there is a test in another file.
fn elsewhere() -> Vec<&'static str> {
    let several = [
        &crate::faults_of_orders::OF_A_DIALOG[..],
        &crate::faults_of_orders::OF_DOCTOR,
        &crate::faults_of_orders::OF_MACHINES,
        &crate::mcp::OF_TOOLS,
    ];
    let single = [
        crate::faults_of_orders::ARCHIVES,
        crate::debuginfod::FETCHING,
        crate::symbolize::KEEPING,
        crate::trace::SEARCHING,
    ];
    [&several.concat()[..], &single].concat()
}

#[test]
fn there_is_a_test_for_each_piece_of_work() {
    let here = [
        &OF_REPORTS[..],
        &OF_THE_SCREEN,
        &OF_SOME_REPORTS,
        &OF_THE_WHOLE_RUN,
        &OF_ONE_TEST,
    ];
    let tested: BTreeSet<String> = here
        .concat()
        .into_iter()
        .chain(elsewhere())
        .map(Into::into)
        .collect();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeSet::new();
    for part in ["probe", "engine", "tui", "symbolize", "profile"] {
        add_works(&workspace.join(part).join("src"), &mut found);
    }
    assert_eq!(found, tested);
}

/// Adds the names of all pieces of work in the sources of a folder, those of its tests left out.
fn add_works(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("its entry").path();
        if path.is_dir() {
            add_works(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let source = fs::read_to_string(&path).expect("a source");
            let own = source.split("#[cfg(test)]\nmod tests {").next();
            let own = own.expect("its first part");
            assert!(!own.contains("use faults::catch"), "{}", path.display());
            let works = works(own).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            found.extend(works);
        }
    }
}

/// Returns the names of the work in a source. An error tells a call whose name was not understood.
fn works(source: &str) -> Result<Vec<String>, String> {
    /// What a call names that is given its work by others, whose names are found as well.
    const FROM_OTHERS: [&str; 3] = ["what", "work.name()", "READING_HEADERS"];
    let mut names = Vec::new();
    let literal = |text: &str| {
        let text = text.trim_start().strip_prefix('"')?;
        Some(text.split_once('"')?.0.to_owned())
    };
    for call in source.split("faults::catch(").skip(1) {
        match literal(call) {
            Some(name) => names.push(name),
            None if FROM_OTHERS
                .iter()
                .any(|it| call.starts_with(&format!("{it},"))) => {}
            None => return Err(call.chars().take(40).collect()),
        }
    }
    for call in source.split("Aside::start(").skip(1) {
        let second = call.split_once(',').and_then(|(_, rest)| literal(rest));
        names.extend(second);
    }
    let constant = "const READING_HEADERS: &str =";
    names.extend(
        source
            .split_once(constant)
            .and_then(|(_, rest)| literal(rest)),
    );
    if let Some((_, kinds)) = source.split_once("impl Work {") {
        names.extend(kinds.split(" => ").skip(1).filter_map(literal));
    }
    Ok(names)
}

#[test]
fn a_mistake_costs_reports_one_piece_of_work() {
    if !can_sample() {
        return;
    }
    let burn = burning(1);
    let pid = burn.pid().to_string();
    // With a cache of tables and lines, there would be nothing to read.
    let all = OF_REPORTS.map(|work| ("bpf", work)).into_iter();
    let all: Vec<_> = all
        .chain(OF_REPORTS[..6].iter().map(|work| ("perf", *work)))
        .collect();
    side_by_side(&all, |(engine, work)| {
        let home = tempfile::tempdir().expect("a folder");
        let args = ["-b", "--format", "json", "-d", "1", "-n", "2", "-F", "499"];
        let mut command = proftop(&args);
        command.args(["--engine", engine, "-p", &pid]);
        command.env("PROFTOP_CACHE", home.path());
        command.env(VARIABLE, work);
        let output = run(&mut command);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{engine}, {work}: {said}");
        let reports = reports(&output.stdout);
        let last = reports.last().expect("a report");
        // The load has the lowest priority, and may get no CPU time for a second.
        assert!(number(last, "samples_run") > 0, "{engine}, {work}: {last}");
        // A process of its own reads the files, and is started again.
        if *work != "reading files of targets" {
            // Each process that parses files makes the mistake once.
            assert_told(&said, work);
        }
        assert!(!said.contains("panicked"), "{said}");
    });
}

/// Threads of a program of which two always wait for a lock.
const LOCKS: &str = "
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned sum;
static void *work(void *nothing) {
    for (;;) {
        pthread_mutex_lock(&lock);
        for (unsigned i = 0; i < 10000000; i++) sum += i;
        pthread_mutex_unlock(&lock);
    }
    return nothing;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    work(0);
}
";

/// A program with a name of C++, and with code that was made at run time and has a map of its names.
const NAMED: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noinline)) long spin(long rounds) {
    long sum = 0;
    while (rounds-- > 0) { sum += rounds; __asm__ volatile("" : "+r"(sum)); }
    return sum;
}
__attribute__((noinline)) void named(void) __asm__("_ZN4work4spinEv");
void named(void) { for (volatile long i = 0; i < 10000000; i++); }
int main(void) {
    char path[64];
    char *made = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made, (char *)spin, 128);
    __builtin___clear_cache(made, made + 128);
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%lx 80 made_at_run_time\n", (long)made);
    fclose(map);
    for (;;) { ((long (*)(long))made)(10000000); named(); }
}
"#;

/// Starts that program. None where it cannot be compiled.
fn start_named(scratch: &Scratch) -> Option<Process> {
    let (source, program) = (scratch.write("named.c", NAMED), scratch.join("named"));
    compile(&source, &program, ["-O1"])?;
    Some(Process::start_load(&mut Command::new(&program)))
}

#[test]
fn a_mistake_on_a_thread_that_only_some_reports_need_costs_one_piece_of_work() {
    if !can_sample() {
        return;
    }
    let scratch = Scratch::new();
    let (source, program) = (scratch.write("locks.c", LOCKS), scratch.join("locks"));
    if compile(&source, &program, ["-O1", "-pthread"]).is_none() {
        return;
    }
    let _locks = Process::start_load(&mut Command::new(&program));
    let mut python = Command::new("/usr/bin/python3");
    python.args(["-c", "while True: sum(range(1000))"]);
    let python = Path::new("/usr/bin/python3")
        .exists()
        .then(|| Process::start_load(&mut python));
    let _named = start_named(&scratch);
    let [waits, locks, structures, python_file, demangling, maps] = OF_SOME_REPORTS;
    let all = [
        (waits, &["--metric", "off-cpu"][..]),
        (locks, &["--metric", "off-cpu"]),
        (structures, &["--engine", "bpf"]),
        (structures, &["--engine", "perf"]),
        (python_file, &["--engine", "bpf"]),
        (demangling, &["--engine", "bpf"]),
        (maps, &["--engine", "bpf"]),
    ];
    side_by_side(&all, |(work, args)| {
        if (*work == structures || *work == python_file) && python.is_none() {
            return;
        }
        // On a busy machine a program of the lowest priority may have no sample in three seconds.
        let mut runs = (0..5).map(|_| {
            let mut command = proftop(&["-b", "--format", "json", "-d", "1", "-n", "3"]);
            let output = run(command.args(*args).env(VARIABLE, work));
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{work}: {said}");
            let reports = reports(&output.stdout);
            assert_eq!(reports.len(), 3, "{work}: {said}");
            let last = reports.last().expect("there are three");
            assert!(!list(last, "functions").is_empty(), "{work}: {last}");
            said
        });
        let said = runs.find(|said| !said.is_empty());
        assert_told(&said.unwrap_or_default(), work);
    });
}

#[test]
fn a_mistake_at_the_control_socket_costs_the_socket_only() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let (socket, file) = (path("control"), path("a.pft"));
    let mut command = proftop(&["record", "--ring", "10s", "-d", "2"]);
    command.arg("--control").arg(&socket).arg("-o").arg(&file);
    let output = run(command.env(VARIABLE, CONTROL));
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_told(&said, CONTROL);
    let report = run(proftop(&["report"]).arg(&file));
    assert!(report.status.success(), "{}", text(&report.stderr));
}

#[test]
fn a_mistake_does_not_end_the_screen() {
    if !can_sample() {
        return;
    }
    let of_reports = OF_REPORTS
        .iter()
        .filter(|work| **work != "waiting for a signal");
    let all: Vec<_> = of_reports.take(7).chain(&OF_THE_SCREEN).collect();
    side_by_side(&all, |work| {
        let Some(terminal) = Terminal::open(80, 24) else {
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().to_str().expect("UTF-8");
        let errors = folder.path().join("errors");
        let burn = burn_str();
        terminal.type_line(&format!(
            "PROFTOP_CACHE={home} XDG_STATE_HOME={home} {VARIABLE}=\"{work}\" \
             {PROFTOP} -F 499 -- {burn} 60 2>{}",
            errors.display()
        ));
        terminal.wait_for("SELF%");
        if **work == "answering a view's question" {
            // Opens a view that asks such a question.
            terminal.keys(&["2"]);
        }
        if ["finding code", "reading code"].contains(work) {
            terminal.wait_for("burn::burn_sixty");
            terminal.keys(&["a"]);
            // The end of the sentence, "to us", is in the next line if there is no source text either.
            terminal.wait_for("damaged in a way that is new");
        }
        if **work == "looking for names" {
            terminal.wait_for("burn::burn_sixty");
            terminal.keys(&[":"]);
            terminal.type_text("probe burn_");
            // The mistake has cost the names for what was typed then.
            terminal.wait_for("3 names");
            // What was typed hides the notice; Health has it as well.
            terminal.keys(&["Escape", "8"]);
        }
        terminal.wait_for("proftop made a mistake");
        terminal.keys(&["2"]);
        // The tree is drawn, with samples that come in.
        terminal.wait_for("TOP-DOWN");
        terminal.keys(&["1"]);
        terminal.wait_for("burn::burn_sixty");
        terminal.keys(&["q"]);
        terminal.wait_for_shell();
        let said = fs::read_to_string(&errors).expect("written");
        assert_told(&said, work);
    });
}

#[test]
fn a_mistake_that_is_made_again_and_again_ends_with_the_reason() {
    if !can_sample() {
        return;
    }
    let mut command = proftop(&["-b", "-d", "1", "-n", "30"]);
    let work = ["taking samples"; 5].join(",");
    let output = run(command.env(VARIABLE, work));
    let said = text(&output.stderr);
    assert!(!output.status.success());
    assert!(
        said.contains("sampling has ended: proftop made the same mistake again and again"),
        "{said}"
    );
    assert!(said.contains("taking samples, 3 times"), "{said}");
}

#[test]
fn a_mistake_that_leaves_nothing_to_do_ends_with_the_reason() {
    if !can_sample() {
        return;
    }
    let [start, keep, whole] = OF_THE_WHOLE_RUN;
    // Status 4 is that of all sampling that has failed.
    let all = [
        (start, "bpf", 4),
        (start, "perf", 4),
        (keep, "bpf", 4),
        (whole, "bpf", 1),
    ];
    side_by_side(&all, |(work, engine, status)| {
        let mut command = proftop(&["-b", "-d", "1", "-n", "30", "--engine", engine]);
        let output = run(command.env(VARIABLE, work));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*status), "{work}: {said}");
        assert_told(&said, work);
        if *work != whole {
            assert!(said.contains("cannot go on"), "{work}: {said}");
        }
    });
}

#[test]
fn a_mistake_while_a_file_is_read_is_told() {
    let mut command = proftop(&["demo", "--plain"]);
    let output = run(command.env(VARIABLE, FILE));
    assert!(!output.status.success());
    assert_told(&text(&output.stderr), FILE);
}

#[test]
fn a_mistake_while_a_command_is_started_is_told() {
    if !can_sample() {
        return;
    }
    let mut command = proftop(&["-b", "-n", "1", "--", "true"]);
    let output = run(command.env(VARIABLE, COMMAND));
    assert!(!output.status.success());
    assert_told(&text(&output.stderr), COMMAND);
}

#[test]
fn a_mistake_with_files_of_the_user_is_told() {
    if !can_sample() {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        test_support::skip("only root works for another user");
        return;
    }
    let mut command = proftop(&["-b", "-n", "1", "-d", "1"]);
    command.env("SUDO_UID", "60321").env("SUDO_GID", "60321");
    let output = run(command.env(VARIABLE, USER_FILES));
    let said = text(&output.stderr);
    assert_told(&said, USER_FILES);
    // The command went on without that file.
    assert!(output.status.success(), "{said}");
}
