//! Prints how long it takes to read the symbols of files and of the kernel, and how much
//! memory they take:
//!
//! ```text
//! cargo run --release -p symbolize --example symbols -- /usr/lib/libLLVM.so
//! ```

use std::fs::File;
use std::time::Instant;

use symbolize::{ElfSymbols, KernelSymbols, demangle};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let started = Instant::now();
    let text = std::fs::read("/proc/kallsyms")?;
    let read = started.elapsed();
    let started = Instant::now();
    let kernel = KernelSymbols::parse(&text);
    println!(
        "kernel: text read in {read:?}, parsed in {:?}: {} functions, {} KiB",
        started.elapsed(),
        kernel.len(),
        kernel.heap_bytes() >> 10
    );
    for path in std::env::args_os().skip(1) {
        let file = File::open(&path)?;
        let started = Instant::now();
        let symbols = ElfSymbols::read(&file)?;
        let read = started.elapsed();
        let heap = symbols.heap_bytes() >> 10;

        let started = Instant::now();
        let functions: Vec<_> = symbols.functions().collect();
        let names = started.elapsed();
        let aliases: u64 = functions.iter().map(|f| u64::from(f.aliases)).sum();

        let started = Instant::now();
        let shown: usize = functions
            .iter()
            .map(|f| demangle(f.name).short().len())
            .sum();
        println!(
            "{}: {read:?} for {} functions with {aliases} aliases, {heap} KiB; all names {names:?}; all demangled {:?} ({} KiB)",
            path.display(),
            functions.len(),
            started.elapsed(),
            shown >> 10,
        );
    }
    Ok(())
}
