//! The unwind rules of one file, by link address.

use object::elf;

use super::collect::Collector;
use super::rule::UnwindRule;
use super::{debug_frame, eh_frame, flatten};
use crate::object::Object;
use crate::source::Source;
use crate::{LinkAddr, OpenError, Vdso};

/// Rows have 32 bits for an address.
const ADDRESS_END: u64 = 1 << 32;

/// From `start` to the next row's, `rule` applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// A link address.
    pub start: u32,
    pub rule: RuleId,
}

/// A place in [`UnwindTable::rules`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RuleId(pub u16);

impl RuleId {
    /// [`UnwindRule::Hole`] in every table.
    pub const HOLE: RuleId = RuleId(0);
}

/// What was met in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// FDEs that contributed rows.
    pub functions: u64,
    /// FDEs of code that the linker removed, or beyond 4 GiB.
    pub discarded: u64,
    /// Entries that could not be read, or not to their end. The addresses of
    /// such a function are a hole.
    pub damaged: u64,
    /// There is `.debug_frame`, but it is compressed, and was left out.
    pub compressed: bool,
}

/// The unwind rules of one file. Neighbouring rows differ; the last is a hole.
#[derive(Debug, Default)]
pub struct UnwindTable {
    rows: Vec<Row>,
    rules: Vec<UnwindRule>,
    statistics: Statistics,
}

impl UnwindTable {
    /// Reads `.eh_frame`, and `.debug_frame` for what is not there. A file
    /// with neither has an empty table.
    pub fn read(object: &Object) -> Result<UnwindTable, OpenError> {
        if object.machine() != elf::EM_X86_64.0 {
            return Err(OpenError::Refused("unwinding is known for x86-64 only"));
        }
        if has_code_at_or_above(object, ADDRESS_END) {
            return Err(OpenError::Refused("code above 4 GiB"));
        }
        let mut collector = Collector::default();
        eh_frame::read(object, &mut collector)?;
        let mut rows = flatten::flatten(collector.take());
        debug_frame::read(object, &mut collector)?;
        let debug = collector.take();
        if !debug.spans.is_empty() {
            rows = flatten::overlay(&rows, &flatten::flatten(debug));
        }
        let rules = collector.rules.into_list();
        flatten::drop_padding(&mut rows, &rules);
        Ok(UnwindTable {
            rows,
            rules,
            statistics: collector.statistics,
        })
    }

    /// The table of this kernel's vDSO; its addresses are offsets from the
    /// start of `[vdso]`.
    pub fn of_vdso() -> Result<UnwindTable, OpenError> {
        let image = Source::Memory(Vdso::image()?);
        UnwindTable::read(&Object::from_source(image)?)
    }

    /// By address.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The different rules. There are a thousand in the largest files.
    pub fn rules(&self) -> &[UnwindRule] {
        &self.rules
    }

    pub fn rule(&self, id: RuleId) -> UnwindRule {
        let rule = self.rules.get(usize::from(id.0));
        rule.copied().unwrap_or(UnwindRule::Hole)
    }

    /// What applies at an address; `None` before the first row.
    pub fn lookup(&self, addr: LinkAddr) -> Option<UnwindRule> {
        let behind = self
            .rows
            .partition_point(|row| u64::from(row.start) <= addr.0);
        let row = self.rows.get(behind.checked_sub(1)?)?;
        Some(self.rule(row.rule))
    }

    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Row>() + self.rules.capacity() * size_of::<UnwindRule>()
    }
}

fn has_code_at_or_above(object: &Object, end: u64) -> bool {
    let code = object.program_headers().iter();
    code.filter(|header| header.is_load() && header.is_executable())
        .any(|header| header.vaddr.saturating_add(header.filesz) > end)
}
