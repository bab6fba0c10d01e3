//! The names of one Go program.

use std::ops::Range;
use std::sync::Arc;

use super::frame::GoFrame;
use super::inline::Chain;
use super::module_data::ModuleData;
use super::pointers::Pointers;
use super::table::Table;
use super::{complete, find, inline};
use crate::LinkAddr;
use crate::object::Object;

/// Number of functions with inlined calls that must agree on the base of trees; the second constant
/// limits how many functions are checked for them.
const AGREEING: usize = 16;
const LOOKED_AT: usize = 20_000;

/// The names, lines and inlined calls of a Go program.
#[derive(Debug)]
pub struct GoSymbols {
    table: Table,
    /// Base of inline trees; `None` if unknown.
    trees: Option<u64>,
}

impl GoSymbols {
    /// Reads the table of a file; `None` if it has none.
    pub fn read(object: &Arc<Object>) -> Option<GoSymbols> {
        let (place, header) = find::table(object)?;
        let pointers = Pointers::new(object);
        let record = ModuleData::find(&pointers, place, &header);
        let table = Table::load(object, place, header, || Some(record?.text()))?;
        let trees = record.and_then(|record| tree_base(&table, &record));
        Some(GoSymbols { table, trees })
    }

    /// Returns the functions at an address, innermost first; the last one contains the code. Empty
    /// for code that is not Go's.
    pub fn find(&self, addr: LinkAddr) -> Vec<GoFrame> {
        self.chain(addr).map_or_else(Vec::new, |chain| chain.frames)
    }

    /// Returns the functions at an address like [`GoSymbols::find`], if the table has as much about
    /// them as debug information can have; `None` otherwise.
    pub fn find_complete(&self, addr: LinkAddr) -> Option<Vec<GoFrame>> {
        let chain = self.chain(addr)?;
        complete::is_complete(&chain).then_some(chain.frames)
    }

    fn chain(&self, addr: LinkAddr) -> Option<Chain> {
        let function = self.table.function(addr.0)?;
        function
            .has_code(&self.table, addr.0)
            .then(|| inline::chain(&self.table, &function, self.trees, addr.0))
    }

    /// Returns the range of the function at `addr`, up to the next function.
    pub fn extent(&self, addr: LinkAddr) -> Option<Range<u64>> {
        let function = self.table.function(addr.0)?;
        Some(function.start..function.start.saturating_add(function.len()))
    }

    /// Returns the name of the function at an address.
    pub fn name_at(&self, addr: LinkAddr) -> Option<Vec<u8>> {
        let function = self.table.function(addr.0)?;
        self.table.name(function.name)
    }

    /// The start of each function.
    pub fn starts(&self) -> impl Iterator<Item = LinkAddr> {
        self.table.starts().map(LinkAddr)
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }
}

/// Finds the word of the record that is the base of inline trees: with any other base the trees are
/// invalid.
fn tree_base(table: &Table, record: &ModuleData) -> Option<u64> {
    let functions = table.starts().take(LOOKED_AT);
    let with_tree: Vec<_> = functions
        .filter_map(|start| table.function(start))
        .filter(|function| function.inline_tree.is_some())
        .take(AGREEING)
        .collect();
    if with_tree.is_empty() {
        return None;
    }
    let fits = |base: &u64| with_tree.iter().all(|f| inline::has_tree(table, f, *base));
    record.others().find(fits)
}
