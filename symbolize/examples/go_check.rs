//! Compares what this crate reads from the table of a stripped Go program with
//! what other tools say about its twin that is not stripped: `go tool addr2line`, which
//! reads the same table and knows no inlined functions, and llvm-symbolizer,
//! which reads DWARF.
//!
//! ```text
//! cargo run --release -p symbolize --example go_check -- STRIPPED TWIN GO [COUNT]
//! ```
//!
//! Both must have the same code at the same addresses; `GO` is the go command
//! that built them. `COUNT` random addresses of Go's text (20,000 by default)
//! are looked up. Prints each kind of difference with a few examples,
//! and exits with 1 if there are any from the same table. The answers of DWARF may
//! differ: the compiler moves lines there, and leaves out wrappers.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Instant;

use symbolize::LinkAddr;
use symbolize::go::{GoFrame, GoSymbols};
use symbolize::object::Object;
use test_support::Random;

const COUNT: usize = 20_000;
const EXAMPLES: usize = 5;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [stripped, twin, go, rest @ ..] = args.as_slice() else {
        return Err("which files? STRIPPED TWIN GO [COUNT]".into());
    };
    let count = rest.first().map_or(Ok(COUNT), |count| count.parse())?;

    let started = Instant::now();
    let object = Arc::new(Object::read(&File::open(stripped)?)?);
    let symbols = GoSymbols::read(&object).ok_or("no table of Go")?;
    let opened = started.elapsed();
    let addrs = random_addresses(&symbols, count);
    let started = Instant::now();
    let own: Vec<Chain> = addrs
        .iter()
        .map(|addr| own_chain(&symbols, *addr))
        .collect();
    let taken = started.elapsed();
    println!(
        "{} functions, opened in {opened:.1?}, {} addresses in {taken:.1?}",
        symbols.starts().count(),
        addrs.len(),
    );
    let inlined = own.iter().filter(|chain| chain.len() > 1).count();
    println!("{inlined} of them in inlined code");

    let by_table = compare(
        &addrs,
        &own,
        &go_addr2line(go, twin, &addrs)?,
        by_same_table,
    );
    report("go tool addr2line", &by_table);
    report(
        "DWARF",
        &compare(&addrs, &own, &llvm_symbolizer(twin, &addrs)?, by_dwarf),
    );
    Ok(if by_table.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Descriptions of the differences, by kind.
type Differences = BTreeMap<&'static str, Vec<String>>;

fn compare(
    addrs: &[u64],
    own: &[Chain],
    theirs: &[Chain],
    difference: fn(&Chain, &Chain) -> Option<&'static str>,
) -> Differences {
    assert_eq!(own.len(), theirs.len(), "not every address was answered");
    let mut differences = Differences::new();
    for ((addr, own), theirs) in addrs.iter().zip(own).zip(theirs) {
        if let Some(kind) = difference(own, theirs) {
            let text = format!("{addr:#x}\n    own    {own:?}\n    theirs {theirs:?}");
            differences.entry(kind).or_default().push(text);
        }
    }
    differences
}

fn report(oracle: &str, differences: &Differences) {
    let count: usize = differences.values().map(Vec::len).sum();
    println!("{oracle}: {count} differences");
    for (kind, found) in differences {
        println!("  {} times: {kind}", found.len());
        found
            .iter()
            .take(EXAMPLES)
            .for_each(|text| println!("  {text}"));
    }
}

/// A chain of functions, innermost first: function, file and line.
type Chain = Vec<(String, String, u32)>;

fn own_chain(symbols: &GoSymbols, addr: u64) -> Chain {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let frame = |frame: &GoFrame| (text(&frame.name), text(&frame.file), frame.line);
    symbols.find(LinkAddr(addr)).iter().map(frame).collect()
}

/// Returns random addresses, the same ones in every run.
fn random_addresses(symbols: &GoSymbols, count: usize) -> Vec<u64> {
    let starts: Vec<u64> = symbols.starts().map(|start| start.0).collect();
    let (first, last) = (starts[0], starts[starts.len() - 1]);
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    (0..count)
        .map(|_| first + random.below(last - first))
        .collect()
}

fn llvm_symbolizer(twin: &str, addrs: &[u64]) -> Result<Vec<Chain>, Box<dyn Error>> {
    let mut command = Command::new("llvm-symbolizer");
    command.args([
        "--no-demangle",
        "--inlines",
        "--output-style=LLVM",
        "--obj",
        twin,
    ]);
    let text = ask(&mut command, addrs)?;
    Ok(text
        .split("\n\n")
        .take(addrs.len())
        .map(parse_chain)
        .collect())
}

/// Asks `go tool addr2line`, which names the function whose code it is (without inlined ones), with
/// the innermost file and line.
fn go_addr2line(go: &str, twin: &str, addrs: &[u64]) -> Result<Vec<Chain>, Box<dyn Error>> {
    let text = ask(Command::new(go).args(["tool", "addr2line", twin]), addrs)?;
    let lines: Vec<&str> = text.lines().collect();
    let frame = |pair: &[&str]| {
        let (file, line) = pair
            .get(1)
            .and_then(|p| p.rsplit_once(':'))
            .unwrap_or(("?", "0"));
        vec![(pair[0].into(), file.into(), line.parse().unwrap_or(0))]
    };
    Ok(lines.chunks(2).map(frame).collect())
}

/// Runs a command that reads addresses, one a line, and returns its output.
fn ask(command: &mut Command, addrs: &[u64]) -> Result<String, Box<dyn Error>> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().ok_or("no pipe")?;
    let questions: String = addrs.iter().map(|addr| format!("{addr:#x}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(questions.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().map_err(|_| "the writer panicked")??;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Parses pairs of lines: the function, then `file:line:column`.
fn parse_chain(text: &str) -> Chain {
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let pair = |pair: &[&str]| {
        let position = pair.get(1).copied().unwrap_or_default();
        let (rest, _column) = position.rsplit_once(':').unwrap_or((position, ""));
        let (file, line) = rest.rsplit_once(':').unwrap_or((rest, ""));
        (pair[0].into(), file.into(), line.parse().unwrap_or(0))
    };
    lines.chunks(2).map(pair).collect()
}

fn by_same_table(own: &Chain, theirs: &Chain) -> Option<&'static str> {
    let [(function, file, line)] = theirs.as_slice() else {
        return Some("no answer");
    };
    let (Some(inner), Some(outer)) = (own.first(), own.last()) else {
        // Between functions go's tool names the function before, without a line.
        return (*line != 0).then_some("only there");
    };
    if plain(&outer.0) != plain(function) {
        Some("function")
    } else if inner.1 != *file && !(inner.1.is_empty() && file == "?") {
        Some("file")
    } else if inner.2 != *line {
        Some("line")
    } else {
        None
    }
}

fn by_dwarf(own: &Chain, theirs: &Chain) -> Option<&'static str> {
    let unknown = theirs.iter().all(|frame| frame.0 == "??");
    if own.is_empty() && unknown {
        return None;
    }
    // Wrappers have no lines in the DWARF of some versions.
    if theirs.iter().all(|frame| frame.2 == 0) {
        return None;
    }
    if own.len() != theirs.len() {
        return Some(if unknown {
            "only here"
        } else {
            "length of the chain"
        });
    }
    own.iter().zip(theirs).find_map(|(own, theirs)| {
        if plain(&own.0) != plain(&theirs.0) {
            Some("function")
        } else if own.1 != theirs.1.trim_start_matches("./") {
            Some("file")
        } else if own.2 != theirs.2 {
            Some("line")
        } else {
            None
        }
    })
}

/// Removes what is not the same everywhere: symbols of assembly have the calling convention behind
/// their names, some names have a middle dot, and only one of the sources names type arguments.
fn plain(name: &str) -> Vec<u8> {
    let name = name.strip_suffix(".abi0").unwrap_or(name);
    let frame = GoFrame {
        name: name.replace('·', ".").into(),
        file: Vec::new(),
        line: 0,
    };
    frame.short_name().into_owned()
}
