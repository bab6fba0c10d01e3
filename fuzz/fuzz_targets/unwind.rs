//! Unwind information of a file, as rows: sorted, whatever it says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolize::object::Object;
use symbolize::source::Source;
use symbolize::unwind::UnwindTable;

fuzz_target!(|bytes: &[u8]| {
    let Ok(object) = Object::from_source(Source::Memory(bytes.into())) else {
        return;
    };
    let Ok(table) = UnwindTable::read(&object) else {
        return;
    };
    assert!(table.rows().is_sorted_by_key(|row| row.start));
});
