//! Compares this crate's unwind tables with what gimli computes, for every
//! row of every ELF file below the given paths.
//!
//! ```text
//! cargo run --release -p symbolize --example unwind_check -- /usr/lib /usr/bin
//! ```
//!
//! Each row is looked up at its first, middle and last byte, each gap between
//! functions in its middle. A look-up is right if rule and row lead to the
//! same caller from made-up registers and memory. Exits with 1 if any is wrong.

mod files;
mod frames;
mod oracle;
mod ranges;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use symbolize::object::Object;
use symbolize::unwind::{RuleId, Unsupported, UnwindRule, UnwindTable};

use oracle::Outcome;

/// Number of files that are listed one by one.
const LARGEST: usize = 8;

fn main() -> ExitCode {
    let paths = std::env::args_os().skip(1).map(PathBuf::from);
    let mut totals = Totals::default();
    files::visit(paths.collect(), &mut |path| totals.add(path));
    totals.print();
    match totals.outcome.wrong {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Returns the CPU time of this thread: other work on the machine does not count.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[derive(Default)]
struct Totals {
    files: u64,
    without: u64,
    refused: BTreeMap<String, u64>,
    functions: u64,
    discarded: u64,
    damaged: u64,
    rows: u64,
    holes: u64,
    bytes: u64,
    unsupported: BTreeMap<Unsupported, u64>,
    rules_max: usize,
    building: Duration,
    outcome: Outcome,
    largest: Vec<(usize, Duration, PathBuf)>,
}

impl Totals {
    fn add(&mut self, path: &Path) {
        let Ok(file) = File::open(path) else { return };
        if let Err(error) = self.add_file(path, &file) {
            let error = error.to_string();
            *self.refused.entry(error).or_default() += 1;
        }
    }

    fn add_file(&mut self, path: &Path, file: &File) -> Result<(), symbolize::OpenError> {
        let object = Object::read(file)?;
        let start = cpu_time();
        let table = UnwindTable::read(&object)?;
        let took = cpu_time() - start;
        self.add_table(&table);
        self.building += took;
        self.largest.push((table.rows().len(), took, path.into()));
        self.largest
            .sort_by_key(|(rows, ..)| std::cmp::Reverse(*rows));
        self.largest.truncate(LARGEST);

        let outcome = oracle::check(&object, &table)?;
        for example in &outcome.examples {
            println!("{}: {example}", path.display());
        }
        let total = &mut self.outcome;
        total.rows += outcome.rows;
        total.shadowed += outcome.shadowed;
        total.lookups += outcome.lookups;
        total.wrong += outcome.wrong;
        Ok(())
    }

    fn add_table(&mut self, table: &UnwindTable) {
        let statistics = table.statistics();
        self.files += 1;
        self.without += u64::from(table.rows().is_empty());
        self.functions += statistics.functions;
        self.discarded += statistics.discarded;
        self.damaged += statistics.damaged;
        self.rows += table.rows().len() as u64;
        self.bytes += table.heap_bytes() as u64;
        self.rules_max = self.rules_max.max(table.rules().len());
        for row in table.rows() {
            if row.rule == RuleId::HOLE {
                self.holes += 1;
            }
            if let UnwindRule::Unsupported(why) = table.rule(row.rule) {
                *self.unsupported.entry(why).or_default() += 1;
            }
        }
    }

    fn print(&self) {
        println!(
            "files        {} ({} without information)",
            self.files, self.without
        );
        for (why, files) in &self.refused {
            println!("  not read   {files}: {why}");
        }
        println!("functions    {}", self.functions);
        println!("  discarded  {}", self.discarded);
        println!("  damaged    {}", self.damaged);
        println!("rows         {} ({} holes)", self.rows, self.holes);
        println!("rules        {} at most in a file", self.rules_max);
        println!("bytes        {}", self.bytes);
        println!("build        {:.1?}", self.building);
        println!(
            "unsupported  {} rows",
            self.unsupported.values().sum::<u64>()
        );
        for (why, rows) in &self.unsupported {
            println!("  {rows:>8}   {why}");
        }
        let outcome = &self.outcome;
        println!(
            "gimli rows   {} ({} addresses shadowed)",
            outcome.rows, outcome.shadowed
        );
        println!("look-ups     {}", outcome.lookups);
        println!("wrong        {}", outcome.wrong);
        for (rows, took, path) in &self.largest {
            println!("{rows:>9} rows in {took:>7.1?}  {}", path.display());
        }
    }
}
