//! Debug information of a file: its sections, inflated or not, each unit, and
//! the table of all of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use symbolize::debug_file::DebugFiles;
use symbolize::dwarf::DebugInfo;
use symbolize::object::Object;
use symbolize::source::Source;
use symbolize::table::{CHAIN_MAX, Extras, Table};
use symbolize::{FileSource, LinkAddr, RemoteFiles};

/// More than any seed inflates to.
const BYTES_MAX: u64 = 16 << 20;

fuzz_target!(|bytes: &[u8]| {
    let source = Source::Memory(bytes.into());
    let Ok(object) = Object::from_source(source) else {
        return;
    };
    let nowhere = FileSource::new(Path::new("/nowhere/fuzzed"));
    let files = DebugFiles::of(&nowhere, RemoteFiles::Skip);
    let Ok(Some(info)) = DebugInfo::read(&object, files, BYTES_MAX) else {
        return;
    };
    let whole = info.build(&Extras::default(), 1).expect("few bytes");
    let whole = Table::from_bytes(whole).expect("we wrote it");
    for addr in (0..0x3000).step_by(61).map(LinkAddr) {
        assert!(whole.find(addr).count() <= CHAIN_MAX);
        if let Some(unit) = info.table_at(addr) {
            assert!(unit.find(addr).count() <= CHAIN_MAX);
        }
    }
});
