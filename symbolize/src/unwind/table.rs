//! The unwind rules of one file, by link address.

use super::collect::{Collector, Statistics};
use super::machine::Machine;
use super::row::{Row, RuleId};
use super::rule::{Register, UnwindRule};
use super::{by_code, debug_frame, eh_frame, flatten, go, start_code, stubs};
use crate::debug_file::DebugFiles;
use crate::object::Object;
use crate::{LinkAddr, OpenError};

/// End of the addresses that rows can have.
const ADDRESS_END: u64 = 1 << 32;

/// The unwind rules of one file. Neighbouring rows differ; the last row is a hole.
#[derive(Debug, Default)]
pub struct UnwindTable {
    rows: Vec<Row>,
    rules: Vec<UnwindRule>,
    statistics: Statistics,
    /// Number of bytes of code whose rules are derived from the code itself.
    bytes_by_code: u64,
}

impl UnwindTable {
    /// Reads `.eh_frame`; for code that it does not cover Go's function table and `.debug_frame`;
    /// for the rest the known forms of `_init`, `_fini` and stubs. On AArch64, code without any
    /// information is analyzed by its instructions. A file without any of these has an empty table.
    pub fn read(object: &Object) -> Result<UnwindTable, OpenError> {
        UnwindTable::read_with(object, None)
    }

    /// Reads the rules of a mapped file, and adds those in its separate debug information if the
    /// file itself has few. The flag is false if debug information was wanted and is missing.
    pub fn read_mapped(
        object: &Object,
        files: &DebugFiles,
    ) -> Result<(UnwindTable, bool), OpenError> {
        let own = UnwindTable::read(object)?;
        if !own.lacks_most(object) {
            return Ok((own, true));
        }
        let Some(debug) = files.separate(object) else {
            return Ok((own, false));
        };
        // Unreadable debug information counts as none.
        let debug = debug.belonging_to(object);
        let both = UnwindTable::read_with(object, Some(&debug)).unwrap_or(own);
        Ok((both, true))
    }

    /// Reads the rules of a file, taking `.debug_frame` from its separate debug information.
    pub fn read_with(object: &Object, debug: Option<&Object>) -> Result<UnwindTable, OpenError> {
        let Some(machine) = Machine::of(object) else {
            let only = "unwinding is known for x86-64 and AArch64 only";
            return Err(OpenError::Refused(only));
        };
        if has_code_at_or_above(object, ADDRESS_END) {
            return Err(OpenError::Refused("code above 4 GiB"));
        }
        let plain = UnwindTable::collect(object, debug, Collector::of(machine))?;
        if !plain.rules.iter().any(is_from_rbx) {
            return Ok(plain);
        }
        // Rare, except in the dynamic linker. The rules of called functions then say where rbx is
        // saved.
        let mut collector = Collector::of(machine);
        collector.with_rbx = true;
        UnwindTable::collect(object, debug, collector)
    }

    fn collect(
        object: &Object,
        debug: Option<&Object>,
        mut collector: Collector,
    ) -> Result<UnwindTable, OpenError> {
        eh_frame::read(object, &mut collector)?;
        let mut rows = flatten::flatten(collector.take());
        // Go's own table describes changes of stacks, which `.debug_frame` cannot express.
        let debug = debug.unwrap_or(object);
        type Read = fn(&Object, &mut Collector) -> Result<(), OpenError>;
        let readers: [(Read, _); 4] = [
            (go::read, object),
            (debug_frame::read, debug),
            (start_code::read, object),
            (stubs::read, object),
        ];
        for (read, object) in readers {
            read(object, &mut collector)?;
            let more = collector.take();
            if !more.spans.is_empty() {
                rows = flatten::overlay(&rows, &flatten::flatten(more));
            }
        }
        by_code::read(object, &rows, &mut collector)?;
        let more = flatten::flatten(collector.take());
        rows = flatten::overlay(&rows, &more);
        let rules = collector.rules.into_list();
        let bytes_by_code = covered_bytes(&more, &rules);
        flatten::drop_padding(&mut rows, &rules);
        Ok(UnwindTable {
            rows,
            rules,
            statistics: collector.statistics,
            bytes_by_code,
        })
    }

    /// Rows by address.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The distinct rules. The largest files have a thousand.
    pub fn rules(&self) -> &[UnwindRule] {
        &self.rules
    }

    /// Returns the rule with that number; a hole if there is none.
    pub fn rule(&self, id: RuleId) -> UnwindRule {
        let rule = self.rules.get(usize::from(id.0));
        rule.copied().unwrap_or(UnwindRule::Hole)
    }

    /// Returns the rule at an address; `None` before the first row.
    pub fn lookup(&self, addr: LinkAddr) -> Option<UnwindRule> {
        let behind = self
            .rows
            .partition_point(|row| u64::from(row.start) <= addr.0);
        let row = self.rows.get(behind.checked_sub(1)?)?;
        Some(self.rule(row.rule))
    }

    /// Whether most of the code has no rule, so that the file's separate debug information may be
    /// needed.
    pub fn lacks_most(&self, object: &Object) -> bool {
        let code = object
            .segments()
            .iter()
            .filter(|segment| segment.executable);
        let bytes = code.fold(0, |sum: u64, code| sum.saturating_add(code.filesz));
        // Rules that compilers wrote are better than derived ones.
        self.covered_bytes().saturating_sub(self.bytes_by_code) < bytes / 2
    }

    /// Number of bytes of code that have a rule for finding the caller.
    pub fn covered_bytes(&self) -> u64 {
        covered_bytes(&self.rows, &self.rules)
    }

    /// How many functions the unwind information describes, and how much of it was unusable.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Row>() + self.rules.capacity() * size_of::<UnwindRule>()
    }
}

fn covered_bytes(rows: &[Row], rules: &[UnwindRule]) -> u64 {
    let leads_on = |row: &Row| {
        let rule = rules.get(usize::from(row.rule.0));
        !matches!(
            rule,
            None | Some(UnwindRule::Hole | UnwindRule::Unsupported(_))
        )
    };
    let pairs = rows.windows(2).filter(|pair| leads_on(&pair[0]));
    pairs
        .map(|pair| u64::from(pair[1].start.saturating_sub(pair[0].start)))
        .sum()
}

fn is_from_rbx(rule: &UnwindRule) -> bool {
    matches!(rule, UnwindRule::Frame { cfa, .. } if cfa.base == Register::Rbx)
}

fn has_code_at_or_above(object: &Object, end: u64) -> bool {
    let code = object.program_headers().iter();
    code.filter(|header| header.is_load() && header.is_executable())
        .any(|header| header.vaddr.saturating_add(header.filesz) > end)
}
