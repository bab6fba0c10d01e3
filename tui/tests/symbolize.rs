//! `proftop symbolize`, end to end.

use crate::common;

use common::mistakes::{VARIABLE, assert_told};
use common::{proftop, run, text};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use test_support::{Process, compile, run_tool, skip};

const SOURCE: &str = "
#include <stdio.h>
static inline __attribute__((always_inline)) int twice(int x) { return x * 2 + rand(); }
__attribute__((noinline)) int sum(int n) {
    int total = 0;
    for (int i = 0; i < n; i++)
        total += twice(i);
    return total;
}
int main(int argc, char **argv) {
    printf(\"%d\\n\", sum(argc));
    fflush(stdout);
    return getchar();
}
";

const FLAGS: [&str; 3] = ["-O2", "-g", "-Wl,--build-id=sha1"];

/// A program, in a directory of its own.
struct Fixture {
    directory: tempfile::TempDir,
    program: PathBuf,
}

impl Fixture {
    fn new() -> Option<Fixture> {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("sum.c");
        fs::write(&source, format!("#include <stdlib.h>{SOURCE}")).unwrap();
        let program = directory.path().join("sum");
        compile(&source, &program, FLAGS)?;
        Some(Fixture { directory, program })
    }

    fn program(&self) -> &str {
        self.program.to_str().unwrap()
    }

    /// Returns the addresses of a function, by nm.
    fn addresses(&self, function: &str) -> Option<Vec<u64>> {
        let output = run_tool(Command::new("nm").arg("-S").arg(&self.program))?;
        let listed = text(&output.stdout);
        let line = listed
            .lines()
            .find(|line| line.ends_with(&format!(" {function}")))?;
        let mut numbers = line.split(' ').map(|n| u64::from_str_radix(n, 16));
        let (start, size) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some((start..start + size).collect())
    }
}

fn output(args: &[&str]) -> String {
    let output = run(&mut proftop(args));
    assert!(output.status.success());
    text(&output.stdout)
}

/// Runs proftop with `input` on standard input, and returns what it prints.
fn piped(args: &[&str], input: &[u8]) -> String {
    piped_with_errors(args, input).0
}

/// Like [`piped`], but also returns what is printed to standard error.
fn piped_with_errors(args: &[&str], input: &[u8]) -> (String, String) {
    piped_into(&mut proftop(args), input)
}

/// Like [`piped_with_errors`], with a command.
fn piped_into(command: &mut Command, input: &[u8]) -> (String, String) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    (text(&output.stdout), text(&output.stderr))
}

/// Returns the address of the call that was inlined, as text.
fn inlined(fixture: &Fixture) -> Option<String> {
    let addresses = fixture.addresses("sum")?;
    let all: Vec<String> = addresses.iter().map(|a| format!("{a:#x}")).collect();
    let mut args = vec!["symbolize", fixture.program()];
    args.extend(all.iter().map(String::as_str));
    let answers = output(&args);
    let at = answers
        .find("inlined into sum at ")
        .expect("twice is inlined");
    let before = answers[..at]
        .lines()
        .rev()
        .find(|line| line.starts_with("0x"));
    Some(before?.split(' ').next()?.to_string())
}

#[test]
fn lines_and_inlined_functions() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let Some(address) = inlined(&fixture) else {
        return;
    };
    let answer = output(&["symbolize", fixture.program(), &address]);
    assert!(
        answer.starts_with(&format!("{address}  twice at ")),
        "{answer}"
    );
    assert!(answer.contains("sum.c:3"), "{answer}");

    let json = output(&["symbolize", "--format", "json", fixture.program(), &address]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["frames"][0]["function"], "twice");
    assert_eq!(json["frames"][0]["inlined"], true);
    assert_eq!(json["frames"][1]["function"], "sum");
    assert_eq!(json["frames"][1]["line"], 7);
    assert_eq!(json["frames"][1]["inlined"], false);

    let nowhere = output(&["symbolize", "--format", "json", fixture.program(), "0x1"]);
    let nowhere: serde_json::Value = serde_json::from_str(&nowhere).unwrap();
    assert_eq!(nowhere["no_name"], "not_covered");
}

#[test]
fn as_llvm_symbolizer_prints_it() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    for function in ["sum", "main"] {
        let Some(addresses) = fixture.addresses(function) else {
            return;
        };
        let input: String = addresses.iter().map(|a| format!("{a:#x}\n")).collect();
        let obj = format!("--obj={}", fixture.program());
        let llvm = Command::new("llvm-symbolizer")
            .arg(obj)
            .args(addresses.iter().map(|a| format!("{a:#x}")))
            .output();
        let Ok(llvm) = llvm else {
            return skip("no llvm-symbolizer");
        };
        let args = ["symbolize", "--format", "llvm", fixture.program()];
        assert_eq!(piped(&args, input.as_bytes()), text(&llvm.stdout));
    }
}

#[test]
fn addresses_in_a_text_are_answered_in_place() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let Some(address) = inlined(&fixture) else {
        return;
    };
    let log = format!(
        "#0 {address} in main ({p}+{address}) (BuildId: 00)\n\
         ./elsewhere/sum(+{address})[0x7fff0000]\nnothing 0xzz here +0x \u{fc}\n",
        p = fixture.program()
    );
    let answered = piped(&["symbolize", fixture.program()], log.as_bytes());
    let lines: Vec<&str> = answered.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(
        lines[0].starts_with(&format!("#0 {address} [twice at ")),
        "{}",
        lines[0]
    );
    assert!(
        lines[0].contains(&format!("+{address}) [twice at ")),
        "{}",
        lines[0]
    );
    assert!(lines[0].ends_with(" (BuildId: 00)"), "{}", lines[0]);
    assert!(lines[1].starts_with(&format!("./elsewhere/sum(+{address}) [twice at ")));
    assert!(lines[1].ends_with("[0x7fff0000]"));
    assert_eq!(lines[2], "nothing 0xzz here +0x \u{fc}");

    // Files that the text names are found without options.
    let alone = piped(&["symbolize"], log.as_bytes());
    assert!(
        alone.contains(&format!("{}+{address}) [twice", fixture.program())),
        "{alone}"
    );
}

#[test]
fn a_program_may_wait_for_each_answer() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let Some(addresses) = fixture.addresses("sum") else {
        return;
    };
    let mut child = proftop(&["symbolize", fixture.program()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut output = BufReader::new(output);
    for addr in &addresses[..3] {
        // With the beginning of a line that is not written yet.
        write!(input, "{addr:#x}\n  ").unwrap();
        let mut answer = String::new();
        // The first line of the answer; functions that contain it may follow.
        while !answer.starts_with(&format!("{addr:#x}")) {
            answer.clear();
            assert!(output.read_line(&mut answer).unwrap() > 0);
        }
        assert!(answer.contains("sum.c:"), "{answer}");
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn bytes_that_are_no_text_go_through_unchanged() {
    let input = b"\xff\xfe\0 0x12345 /nowhere+0x10 \x1b[1m\n\nlast without end";
    let mut child = proftop(&["symbolize"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, [&input[..], b"\n"].concat());
}

#[test]
fn a_process() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let Some(address) = inlined(&fixture) else {
        return;
    };
    let mut command = Command::new(&fixture.program);
    let mut child = Process::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    // The program has printed, so it is past the loader.
    let mut byte = [0];
    let stdout = child.stdout.as_mut().unwrap();
    std::io::Read::read_exact(stdout, &mut byte).unwrap();
    let maps = fs::read_to_string(format!("/proc/{}/maps", child.id())).unwrap();
    let first = maps.lines().find(|line| line.ends_with("/sum")).unwrap();
    let base = u64::from_str_radix(first.split('-').next().unwrap(), 16).unwrap();
    let offset = u64::from_str_radix(&address[2..], 16).unwrap();
    let pid = child.id().to_string();
    let there = format!("{:#x}", base + offset);
    let answer = output(&["symbolize", "-p", &pid, &there]);
    assert!(
        answer.starts_with(&format!("{there}  twice at ")),
        "{answer}"
    );
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn ahead_of_time_and_without_the_file() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let Some(address) = inlined(&fixture) else {
        return;
    };
    let llvm = ["symbolize", "--format", "llvm"];
    let asked = |place: &[&str]| {
        let args = [&llvm[..], place, &[&address]].concat();
        output(&args)
    };
    let expected = asked(&[fixture.program()]);
    let cache = fixture.directory.path().join("cache");
    let cache = cache.to_str().unwrap();
    output(&["symbolize", "--build-cache", cache, fixture.program()]);
    fs::remove_file(&fixture.program).unwrap();
    fs::remove_file(fixture.directory.path().join("sum.c")).unwrap();
    assert_eq!(asked(&["--cache", cache, "sum"]), expected);
    let table = fs::read_dir(cache).unwrap().next().unwrap().unwrap().path();
    let name = table.file_name().unwrap().to_str().unwrap().to_string();
    let id = name.split('.').nth(1).unwrap();
    assert_eq!(asked(&["--cache", cache, id]), expected);

    let damaged = fs::read(&table).unwrap()[..100].to_vec();
    fs::write(&table, damaged).unwrap();
    let output = run(&mut proftop(&["symbolize", "--cache", cache, "sum", "0x1"]));
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(message.contains("cannot symbolize `sum`"), "{message}");
}

/// The work of the run that makes a table.
pub const KEEPING: &str = "keeping a table";

/// A program that is asked about in run after run has a table at some time, unasked, which gives
/// the same answers. A damaged one is not believed, and removed, and the table of a file is not
/// that of another one with its build-id.
#[test]
fn a_table_is_kept_of_what_is_asked_about_again_and_again() {
    // Not below /tmp: what lies on a file system without set-user-ID bits is not kept by root.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = directory.path().join("program");
    fs::copy(env!("CARGO_BIN_EXE_proftop"), &program).unwrap();
    let addresses = some_functions(&program, 2_000);
    let Some(addresses) = addresses else { return };
    let cache = directory.path().join("cache");
    let asking = |cache: &Path| {
        let mut command = proftop(&["symbolize", program.to_str().unwrap(), "--format", "llvm"]);
        command.env("PROFTOP_CACHE", cache);
        command
    };
    let asked = |cache: &Path| piped_into(&mut asking(cache), addresses.as_bytes()).0;
    let expected = asked(Path::new("/dev/null"));
    assert!(expected.contains(".rs:"));
    let kept = |folder: &str| {
        let files = fs::read_dir(cache.join("proftop/addresses").join(folder)).unwrap();
        files.map(|file| file.unwrap().path()).collect::<Vec<_>>()
    };
    // The runs until one makes the table, which fails by a mistake of our own.
    let mut runs = 0;
    loop {
        let mut command = asking(&cache);
        let (answered, said) = piped_into(command.env(VARIABLE, KEEPING), addresses.as_bytes());
        assert!(answered == expected, "run {runs} differs");
        runs += 1;
        if !said.is_empty() {
            assert_told(&said, KEEPING);
            break;
        }
        assert!(runs < 60, "no table after {runs} runs");
    }
    assert!(
        runs > 1,
        "the first run cannot know that there will be others"
    );
    assert!(kept("v1").is_empty());
    assert!(asked(&cache) == expected, "the run that makes the table");
    let (tables, notes) = (kept("v1"), kept("notes"));
    let ([table], [note]) = (&tables[..], &notes[..]) else {
        panic!("one file has one table and one note: {tables:?} {notes:?}")
    };
    let noted = || fs::read_to_string(note).unwrap();
    let read_nothing = noted();
    assert!(asked(&cache) == expected, "the table answers otherwise");
    assert_eq!(noted(), read_nothing, "the table was not used");

    // Cut, and with a damaged block.
    let whole = fs::read(table).unwrap();
    let mut damaged = whole.clone();
    let middle = damaged.len() / 3;
    for at in (0..middle).step_by(1000) {
        damaged[at] ^= 0x55;
    }
    for bad in [&whole[..whole.len() / 2], &damaged] {
        put(table, bad);
        assert!(asked(&cache) == expected, "a damaged table was believed");
        assert!(!table.exists(), "a damaged table was left");
    }

    // Another program with that build-id, which is longer by a byte.
    let mut other = fs::read(&program).unwrap();
    other.push(0);
    fs::write(&program, other).unwrap();
    put(table, b"no table of it");
    assert!(asked(&cache) == expected);
    let left = fs::read(table).unwrap();
    assert_eq!(left, b"no table of it", "it was opened");
}

/// Writes a file of a cache, which nobody else may read.
fn put(file: &Path, bytes: &[u8]) {
    fs::write(file, bytes).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Returns addresses of functions of a program, a line each. None without nm.
fn some_functions(program: &Path, count: usize) -> Option<String> {
    let listed = run_tool(Command::new("nm").arg("--defined-only").arg(program))?;
    let listed = text(&listed.stdout);
    let code: Vec<&str> = listed
        .lines()
        .filter(|line| line.contains(" t ") || line.contains(" T "))
        .filter_map(|line| line.split(' ').next())
        .collect();
    let step = (code.len() / count).max(1);
    let lines = code.iter().step_by(step).map(|addr| format!("0x{addr}\n"));
    Some(lines.collect())
}

/// A log of another machine, of two builds of one program: each address gets the names of its
/// own build, and of no other.
#[test]
fn builds_are_told_apart() {
    let (Some(old), Some(new)) = (Fixture::new(), Fixture::new()) else {
        return;
    };
    // The same program, with the function two lines further down.
    let source = new.directory.path().join("sum.c");
    fs::write(&source, format!("#include <stdlib.h>\n\n\n{SOURCE}")).unwrap();
    compile(&source, &new.program, FLAGS).expect("it compiled before");
    let (Some(address), Some(ids)) = (inlined(&old), build_ids(&[&old, &new])) else {
        return;
    };
    let cache = old.directory.path().join("cache");
    let cache = cache.to_str().unwrap();
    let build = [
        "symbolize",
        "--build-cache",
        cache,
        old.program(),
        new.program(),
    ];
    output(&build);
    fs::remove_file(&old.program).unwrap();
    fs::remove_file(&new.program).unwrap();
    let [before, after] = &ids[..] else {
        unreachable!()
    };
    let unknown = "0123456789abcdef";
    let log = format!(
        "#0 0x1 in f (/app/sum+{address}) (BuildId: {before})\n\
         #1 0x1 in f (/app/sum+{address}) (BuildId: {after})\n\
         #2 0x1 in f (/app/sum+{address}) (BuildId: {unknown})\n\
         #3 0x1 in f (/app/sum+{address})\n\
         #00 pc {pc:0>16}  /app/sum (sum+4) (BuildId: {after})\n\
         Module /app/sum with build-id {before}\n\
         #0 0x1 n/a (sum + {address})\n",
        pc = &address[2..]
    );
    let (answered, said) = piped_with_errors(&["symbolize", "--cache", cache], log.as_bytes());
    let lines: Vec<&str> = answered.lines().collect();
    let line_of = |line: &str| {
        let (_, rest) = line.split_once("[twice at ")?;
        rest.split([':', ',']).nth(1).map(str::to_owned)
    };
    let lines: Vec<Option<String>> = lines.into_iter().map(line_of).collect();
    let (three, six) = (Some("3".to_owned()), Some("6".to_owned()));
    let expected = [&three, &six, &None, &None, &six, &None, &three];
    assert_eq!(lines.iter().collect::<Vec<_>>(), expected, "{answered}");
    assert!(
        said.contains(&format!("no table of build {unknown}")),
        "{said}"
    );
    assert!(said.contains("several builds"), "{said}");
    assert!(said.contains("1 address in `/app/sum` left"), "{said}");
}

/// A file that is here, but is not the one that the log was written for.
#[test]
fn another_build_is_not_asked() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let (Some(address), Some(ids)) = (inlined(&fixture), build_ids(&[&fixture])) else {
        return;
    };
    let program = fixture.program();
    for (id, is_answered) in [(&ids[0][..12], true), ("0123456789abcdef", false)] {
        let log = format!("#0 0x1 in f ({program}+{address}) (BuildId: {id})");
        for args in [&["symbolize"][..], &["symbolize", program]] {
            let (answered, said) = piped_with_errors(args, log.as_bytes());
            assert_eq!(answered.contains("[twice at"), is_answered, "{answered}");
            assert_eq!(
                said.contains("is of build 0123456789abcdef"),
                !is_answered,
                "{said}"
            );
        }
    }
}

/// Perf knows functions by name, newer ones also where in the file they are.
#[test]
fn the_text_of_perf_script() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let (Some(address), Some(sum)) = (inlined(&fixture), fixture.addresses("sum")) else {
        return;
    };
    let cache = fixture.directory.path().join("cache");
    let cache = cache.to_str().unwrap();
    output(&["symbolize", "--build-cache", cache, fixture.program()]);
    let inlined = u64::from_str_radix(&address[2..], 16).unwrap();
    // `sum` again, one byte further: where its caller would continue.
    let (at, behind) = (inlined - sum[0], inlined + 1 - sum[0]);
    let text = format!(
        "sum 12 [000] 1.5: 10101 cpu-clock:\n\
         \tffffffff8158c221 sum+0x{at:x} ([kernel.kallsyms])\n\
         \t    1000 sum+0x{at:x} (/srv/sum)\n\
         \t    2000 sum+0x{behind:x} (/srv/sum)\n\
         \t    3000 unknown+0x1 (/srv/sum)\n\
         \t    4000 [unknown] (/srv/other)\n\n"
    );
    let answered = piped(&["symbolize", "--cache", cache], text.as_bytes());
    let lines: Vec<&str> = answered.lines().collect();
    let told: Vec<bool> = lines.iter().map(|l| l.contains(") [twice at ")).collect();
    assert_eq!(
        told,
        [false, false, true, true, false, false, false],
        "{answered}"
    );
    let unchanged: Vec<&str> = text.lines().collect();
    for (line, before) in lines.iter().zip(unchanged) {
        assert!(line.starts_with(before), "{line}");
    }
}

fn build_ids(fixtures: &[&Fixture]) -> Option<Vec<String>> {
    let id = |fixture: &&Fixture| {
        let notes = Command::new("readelf")
            .args(["-n", fixture.program()])
            .output();
        let notes = text(&notes.ok()?.stdout);
        let (_, id) = notes.split_once("Build ID: ")?;
        Some(id.split_whitespace().next()?.to_owned())
    };
    let ids: Option<Vec<String>> = fixtures.iter().map(id).collect();
    if ids.is_none() {
        skip("needs a linker that writes build-ids, and readelf");
    }
    ids
}

/// A stripped program whose debug file only the client's cache has.
#[test]
fn what_debuginfod_has_fetched() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (program, debug) = (path("program"), path("debug"));
    fs::copy(fixture.program(), &program).unwrap();
    let mut keep = Command::new("objcopy");
    keep.args(["--only-keep-debug", &program, &debug]);
    if run_tool(&mut keep).is_none() || run_tool(Command::new("strip").arg(&program)).is_none() {
        return;
    }
    let notes = Command::new("readelf")
        .args(["-n", &program])
        .output()
        .unwrap()
        .stdout;
    let notes = text(&notes);
    let Some((_, id)) = notes.split_once("Build ID: ") else {
        return skip("needs a linker that writes build-ids");
    };
    let id = id.split_whitespace().next().unwrap();
    let cached = directory.path().join("cache").join(id);
    let address = format!("{:#x}", fixture.addresses("main").unwrap()[0]);
    let ask = || {
        let mut command = proftop(&["symbolize", &program, &address]);
        command.env("DEBUGINFOD_CACHE_PATH", path("cache"));
        command.env_remove("DEBUGINFOD_URLS");
        text(&run(&mut command).stdout)
    };
    let without = ask();
    assert!(!without.contains("main"), "{without}");
    fs::create_dir_all(&cached).unwrap();
    fs::copy(&debug, cached.join("debuginfo")).unwrap();
    let with = ask();
    assert!(with.contains("main at "), "{with}");
}

/// A crash log of another system: a PE file that the cross compiler made.
#[test]
fn a_program_of_another_system() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("app.c");
    let program = directory.path().join("app.exe");
    fs::write(
        &source,
        "int twice(int x) { return 2 * x; } int main(void) { return twice(2); }",
    )
    .unwrap();
    let mut compiler = Command::new("x86_64-w64-mingw32-gcc");
    // The compiler is in the package gcc-mingw-w64-x86-64.
    if run_tool(compiler.arg("-o").arg(&program).arg(&source)).is_none() {
        return;
    }
    let symbols = Command::new("nm").arg(&program).output().unwrap();
    let symbols = text(&symbols.stdout);
    let line = symbols.lines().find(|line| line.ends_with(" T twice"));
    let address = line.unwrap().split_whitespace().next().unwrap();
    let path = program.to_str().unwrap();
    let answer = output(&["symbolize", path, address]);
    assert!(answer.contains("twice"), "{answer}");
    // Without the file, names come from a table that was made of it.
    let cache = directory.path().join("cache");
    let cache = cache.to_str().unwrap();
    output(&["symbolize", "--build-cache", cache, path]);
    fs::remove_file(&program).unwrap();
    let again = output(&["symbolize", "--cache", cache, "app.exe", address]);
    assert_eq!(again, answer);
}

#[test]
fn what_cannot_be_read_is_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let odd = directory.path().join("odd");
    fs::write(&odd, "no program").unwrap();
    for file in [Path::new("/nowhere"), &odd, directory.path()] {
        let file = file.to_str().unwrap();
        let output = run(&mut proftop(&["symbolize", file, "0x1"]));
        assert_eq!(output.status.code(), Some(1));
        let message = text(&output.stderr);
        assert!(
            message.starts_with("proftop: cannot symbolize `"),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let output = run(&mut proftop(&["symbolize", "-p", "4194303", "0x1"]));
    assert_eq!(output.status.code(), Some(1));
}
