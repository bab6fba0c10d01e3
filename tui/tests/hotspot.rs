//! Probes on C++ functions of a Java virtual machine, which counts the same things itself.

use crate::common;

use common::can_sample;
use common::dialog::Dialog;
use common::traced::can_trace;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use test_support::{Process, Scratch, run_tool};

const JAVA: &str = include_str!("programs/Counted.java");

/// The function that is called once in each full collection.
const COLLECT: &str = "GenMarkSweep::invoke_at_safepoint";

/// The function that is called for each thread that is started from Java.
const START: &str = "JVM_StartThread";

/// Returns the calls that the probe of a function has counted.
fn calls(answer: &str, function: &str) -> u64 {
    let mut lines = answer.lines().skip_while(|line| !line.contains(function));
    let line = lines
        .find(|line| line.contains(" calls in ") || line.contains(" call in "))
        .unwrap_or_else(|| panic!("no count of {function} in {answer}"));
    let number = line.trim_start().split(' ').next().expect("a word");
    number.replace(',', "").parse().expect("a number")
}

/// Returns where a function begins in its file, and its mangled name, by the file's symbols.
fn place_of(library: &Path, function: &str) -> Option<(String, String)> {
    let list = |flags: &[&str]| {
        let listed = run_tool(Command::new("nm").args(flags).arg(library))?;
        Some(String::from_utf8_lossy(&listed.stdout).into_owned())
    };
    let demangled = list(&["-C"])?;
    let line = demangled
        .lines()
        .find(|line| line.contains(&format!(" {function}(")))?;
    let address = line.split(' ').next()?.to_string();
    let plain = list(&[])?;
    let line = plain.lines().find(|line| line.starts_with(&address))?;
    let name = line.rsplit(' ').next()?.to_string();
    Some((address, name))
}

#[test]
fn functions_of_the_virtual_machine_are_counted_as_it_counts() {
    if !can_sample() || !can_trace() {
        return;
    }
    let scratch = Scratch::new();
    let source = scratch.write("Counted.java", JAVA);
    let mut compiler = Command::new("javac");
    compiler.arg("-d").arg(scratch.path()).arg(source);
    if run_tool(&mut compiler).is_none() {
        return;
    }
    let mut java = Command::new("java");
    java.args(["-XX:+UseSerialGC", "-Xmx64m", "-cp"])
        .arg(scratch.path())
        .arg("Counted");
    java.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut java = Process::start(&mut java);
    let mut input = java.stdin.take().expect("a pipe");
    let mut output = BufReader::new(java.stdout.take().expect("a pipe"));
    let mut line = String::new();
    output.read_line(&mut line).expect("it writes");
    assert_eq!(line, "ready\n");

    let maps = std::fs::read_to_string(format!("/proc/{}/maps", java.pid())).expect("it runs");
    let library = maps
        .lines()
        .find_map(|line| line.split(' ').find(|word| word.ends_with("libjvm.so")));
    let Some((address, mangled)) = library.and_then(|path| place_of(Path::new(path), COLLECT))
    else {
        test_support::skip(format_args!("this virtual machine has no symbol {COLLECT}"));
        return;
    };
    let pid = java.pid().to_string();
    let mut dialog = Dialog::start(&["--plain", "-p", &pid]);
    // A function by its name as it is written, and one by a name that the library exports.
    for name in [COLLECT, START] {
        let answer = dialog.probe(name);
        assert!(answer.contains(" is on "), "{answer}");
    }
    let mut ask = |times: u64| -> (u64, u64) {
        writeln!(input, "{times}").expect("it reads");
        let mut line = String::new();
        output.read_line(&mut line).expect("it writes");
        let (collections, threads) = line.trim().split_once(' ').expect("two numbers");
        (
            collections.parse().expect("a number"),
            threads.parse().expect("a number"),
        )
    };
    let (collections, threads) = ask(7);
    assert!(collections >= 7 && threads >= 7, "{collections} {threads}");
    test_support::wait_for("all calls are counted", || {
        let answer = dialog.ask("probes");
        let counted = (calls(&answer, COLLECT), calls(&answer, START));
        let is_less = counted.0 <= collections && counted.1 <= threads;
        assert!(
            is_less,
            "{counted:?} of {collections} and {threads}: {answer}"
        );
        (counted == (collections, threads)).then_some(())
    });
    dialog.ask("unprobe all");
    // The same functions by their mangled names, and by where they begin: code is mapped as it lies
    // in this file.
    let offset = address.trim_start_matches('0');
    for name in [mangled, format!("libjvm.so+0x{offset}")] {
        let answer = dialog.probe(&name);
        assert!(answer.contains(" is on "), "{answer}");
        let (collections, _) = ask(3);
        test_support::wait_for("all calls are counted", || {
            let answer = dialog.ask("probes");
            (calls(&answer, " probe ") == collections).then_some(())
        });
        dialog.ask("unprobe all");
    }
    dialog.finish();
}
