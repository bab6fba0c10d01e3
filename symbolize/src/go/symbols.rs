//! The names of one Go program.

use std::ops::Range;
use std::sync::Arc;

use super::frame::GoFrame;
use super::module_data::ModuleData;
use super::pointers::Pointers;
use super::table::Table;
use super::{find, inline};
use crate::LinkAddr;
use crate::object::Object;

/// Functions with inlined calls that must agree on where trees are, and how
/// many functions are looked at to find them.
const AGREEING: usize = 16;
const LOOKED_AT: usize = 20_000;

/// What a Go program tells of its functions.
#[derive(Debug)]
pub struct GoSymbols {
    table: Table,
    /// What inline trees count from.
    trees: Option<u64>,
}

impl GoSymbols {
    /// The table of a file, `None` if it has none.
    pub fn read(object: &Arc<Object>) -> Option<GoSymbols> {
        let (place, header) = find::table(object)?;
        let pointers = Pointers::new(object);
        let record = ModuleData::find(&pointers, place, &header);
        let table = Table::load(object, place, header, || Some(record?.text()))?;
        let trees = record.and_then(|record| tree_base(&table, &record));
        Some(GoSymbols { table, trees })
    }

    /// The functions that an address stands for, innermost first, the one whose
    /// code it is last. Empty for code that is not Go's.
    pub fn find(&self, addr: LinkAddr) -> Vec<GoFrame> {
        let function = self.table.function(addr.0);
        match function.filter(|function| function.has_code(&self.table, addr.0)) {
            Some(function) => inline::chain(&self.table, &function, self.trees, addr.0),
            None => Vec::new(),
        }
    }

    /// From where to where the function goes that has `addr`, up to the next.
    pub fn extent(&self, addr: LinkAddr) -> Option<Range<u64>> {
        let function = self.table.function(addr.0)?;
        Some(function.start..function.start.saturating_add(function.len()))
    }

    /// The name of the function that has an address.
    pub fn name_at(&self, addr: LinkAddr) -> Option<Vec<u8>> {
        let function = self.table.function(addr.0)?;
        self.table.name(function.name)
    }

    /// Where each function starts.
    pub fn starts(&self) -> impl Iterator<Item = LinkAddr> {
        self.table.starts().map(LinkAddr)
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }
}

/// The word of the record from which inline trees count: from no other are
/// they trees.
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
