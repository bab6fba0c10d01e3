//! Compares our lines and inlined functions with those of llvm-symbolizer and
//! of the crate addr2line, at random addresses of functions.
//!
//! ```text
//! cargo run --release -p symbolize --example lines_check -- [-n COUNT] [-v] FILE…
//! ```
//!
//! Ends with 1 if a line, a file, or the name of an inlined function differs.

mod ours;
mod peers;

use std::path::Path;
use std::process::ExitCode;

use ours::Ours;

/// One function of a chain, in the form that all three have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub function: String,
    /// Empty if unknown.
    pub file: String,
    pub line: u32,
    pub column: u32,
}

#[derive(Debug, Default)]
struct Differences {
    lines: usize,
    inner: usize,
    outer: usize,
}

fn main() -> ExitCode {
    let mut count = 20_000;
    let mut verbose = false;
    let mut wrong = 0;
    let mut args = std::env::args().skip(1);
    println!(
        "file                             addresses  with lines  inlined | llvm: lines inner outer | addr2line: lines inner outer"
    );
    while let Some(arg) = args.next() {
        match &*arg {
            "-n" => count = args.next().and_then(|n| n.parse().ok()).unwrap_or(count),
            "-v" => verbose = true,
            path => wrong += check(Path::new(path), count, verbose),
        }
    }
    ExitCode::from(u8::from(wrong > 0))
}

/// Returns how many answers differ from those of another tool.
fn check(path: &Path, count: usize, verbose: bool) -> usize {
    let Ours {
        addresses,
        answers,
        tabled,
    } = match Ours::read(path, count) {
        Ok(ours) => ours,
        Err(error) => {
            println!("{}: {error}", path.display());
            return 1;
        }
    };
    let with_lines = answers
        .iter()
        .filter(|a| a.iter().any(|f| f.line > 0))
        .count();
    let inlined = answers.iter().filter(|a| a.len() > 1).count();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    print!(
        "{name:32} {:9} {with_lines:11} {inlined:8}",
        addresses.len()
    );
    let mut wrong = 0;
    if tabled
        != answers
            .iter()
            .map(|a| without_columns(a))
            .collect::<Vec<_>>()
    {
        let differs = |(unit, table): &(&Vec<Frame>, &Vec<Frame>)| without_columns(unit) != **table;
        let pairs = answers.iter().zip(&tabled);
        wrong += pairs.filter(differs).count();
        print!(" (the whole table differs {wrong} times)");
    }
    for (peer, theirs) in [
        ("llvm", peers::llvm(path, &addresses)),
        ("addr2line", peers::addr2line(path, &addresses)),
    ] {
        let Some(theirs) = theirs else {
            print!(" | skipped: no {peer}");
            continue;
        };
        let mut differences = Differences::default();
        for ((address, ours), theirs) in addresses.iter().zip(&answers).zip(&theirs) {
            let before = differences.lines + differences.inner;
            compare(ours, theirs, &mut differences);
            let is_worse = differences.lines + differences.inner > before;
            if verbose && is_worse {
                println!("\n{address:#x}\n ours {ours:#?}\n {peer} {theirs:#?}");
            }
        }
        let Differences {
            lines,
            inner,
            outer,
        } = differences;
        print!(" | {lines:8} {inner:8} {outer:8}");
        wrong += lines + inner;
    }
    println!();
    wrong
}

fn compare(ours: &[Frame], theirs: &[Frame], differences: &mut Differences) {
    // Without debug information llvm-symbolizer still gives the symbol, and the
    // name of the object file that the symbol table has before the symbol.
    let has_symbol_only = matches!(theirs, [only] if only.line == 0 && !only.file.contains('/'));
    if ours.is_empty() && has_symbol_only {
        return;
    }
    // A column without a line has no meaning: addr2line leaves it out.
    let column = |f: &Frame| if f.line == 0 { 0 } else { f.column };
    let place = |frames: &[Frame]| {
        let place = |f: &Frame| (f.file.clone(), f.line, column(f));
        frames.iter().map(place).collect::<Vec<_>>()
    };
    differences.lines += usize::from(place(ours) != place(theirs));
    let inner = |frames: &[Frame]| {
        let inner = frames.iter().rev().skip(1).map(|f| f.function.clone());
        inner.collect::<Vec<_>>()
    };
    differences.inner += usize::from(inner(ours) != inner(theirs));
    let outer = |frames: &[Frame]| frames.last().map(|f| f.function.clone());
    differences.outer += usize::from(outer(ours) != outer(theirs));
}

fn without_columns(frames: &[Frame]) -> Vec<Frame> {
    let without = |frame: &Frame| Frame {
        column: 0,
        ..frame.clone()
    };
    frames.iter().map(without).collect()
}
