//! Our answers, unit by unit and from the table of the whole file.

use std::fs::File;
use std::path::Path;

use symbolize::debug_file::DebugFiles;
use symbolize::dwarf::DebugInfo;
use symbolize::object::Object;
use symbolize::table::{Extras, Table};
use symbolize::{ElfSymbols, FileSource, LinkAddr, RemoteFiles};
use test_support::Random;

use crate::Frame;

pub struct Ours {
    pub addresses: Vec<u64>,
    pub answers: Vec<Vec<Frame>>,
    pub tabled: Vec<Vec<Frame>>,
}

impl Ours {
    pub fn read(path: &Path, count: usize) -> Result<Ours, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let open = || Object::read(&file).map_err(|error| error.to_string());
        let path = path.canonicalize().map_err(|error| error.to_string())?;
        let files = || DebugFiles::of(&FileSource::new(&path), RemoteFiles::Open);
        let symbols =
            ElfSymbols::with_debug_files(open()?, &files()).map_err(|error| error.to_string())?;
        let addresses = random_addresses(&symbols, count);
        let main = open()?;
        let separate = files().separate(&main);
        let object = separate.map_or(main, |found| found);
        let info = DebugInfo::read(&object, files(), 4 << 30)
            .map_err(|error| error.to_string())?
            .ok_or("no debug information")?;
        let bytes = info.build(&Extras::default(), 2);
        let table = Table::from_bytes(bytes.map_err(|error| error.to_string())?)
            .map_err(|error| error.to_string())?;
        let of_unit = |address: &u64| {
            let table = info.table_at(LinkAddr(*address));
            table.map_or_else(Vec::new, |table| frames(&table, *address))
        };
        Ok(Ours {
            answers: addresses.iter().map(of_unit).collect(),
            tabled: addresses.iter().map(|a| frames(&table, *a)).collect(),
            addresses,
        })
    }
}

fn frames(table: &Table, address: u64) -> Vec<Frame> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let frame = |frame: symbolize::table::SourceFrame<'_>| Frame {
        function: frame.function.map_or_else(String::new, text),
        file: text(&frame.path()),
        line: frame.line,
        column: frame.column,
    };
    table.find(LinkAddr(address)).map(frame).collect()
}

/// Returns random addresses in functions, the same ones in every run. Larger functions have more of
/// them.
fn random_addresses(symbols: &ElfSymbols, count: usize) -> Vec<u64> {
    let mut ends = Vec::new();
    let mut total = 0;
    for function in symbols.functions().filter(|function| function.size > 0) {
        total += function.size;
        ends.push((total, function.start.0, function.size));
    }
    let mut random = Random::new(0x5eed);
    let mut one = || {
        let at = random.below(total);
        let index = ends.partition_point(|(end, ..)| *end <= at);
        let (end, start, size) = ends.get(index)?;
        Some(start + (at - (end - size)))
    };
    (0..count).filter_map(|_| one()).collect()
}
