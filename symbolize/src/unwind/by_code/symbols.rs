//! Starts of functions by the symbols of a file.

use object::elf;

use crate::bytes::u64_at;
use crate::object::{Object, SYMBOL};
use std::collections::BTreeSet;

/// Maximum size of a symbol table. Files without unwind information are small.
const TABLE_BYTES_MAX: u64 = 16 << 20;

/// Size of a symbol in the 64-bit layout (`Elf64_Sym`), and the offsets of two of its fields.
const SYMBOL_BYTES: usize = SYMBOL.wide;
const INFO: usize = 4;
const VALUE: usize = 8;

/// Adds the addresses of the functions in `.symtab` and `.dynsym`. A table that cannot be read is
/// ignored.
pub fn add_functions(object: &Object, starts: &mut BTreeSet<u64>) {
    let is_table = [elf::SHT_SYMTAB, elf::SHT_DYNSYM];
    for section in object.sections() {
        if !is_table.iter().any(|kind| section.is_kind(*kind)) || !section.has_data() {
            continue;
        }
        let Ok(table) = object.section_data(section, TABLE_BYTES_MAX, "symbols") else {
            continue;
        };
        let (symbols, _) = table.as_chunks::<SYMBOL_BYTES>();
        let functions = symbols
            .iter()
            .filter(|symbol| symbol[INFO] & 0xf == elf::STT_FUNC.0);
        starts.extend(functions.map(|symbol| u64_at(symbol, VALUE)));
    }
}
