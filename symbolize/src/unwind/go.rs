//! Unwind rules of Go code, from the table by which Go itself unwinds: it has for each pc the
//! distance of the stack pointer below the return address.
//!
//! The table does not say where rbp is saved, which matters to C code that has called Go, nor what
//! happens in functions that change to another stack. Both are read from the code: functions begin
//! in one of two ways, and only a handful change stacks. Module `aarch64` handles AArch64;
//! everything else, and `switch`, is for x86-64.

mod aarch64;
mod code;
mod switch;

use super::collect::Collector;
use super::machine::Machine;
use super::rule::{RbpRule, Register, UnwindRule};
use crate::OpenError;
use crate::go::depths::{Depths, Function, TOP_FRAME, WRITES_SP};
use crate::object::Object;
use code::{Code, FramePointer, frame_pointer};
use switch::Layout;

/// Size of a return address.
const WORD: i32 = 8;

/// Adds the functions of Go's table, if there is one.
pub fn read(object: &Object, collector: &mut Collector) -> Result<(), OpenError> {
    let table = match Depths::read(object) {
        Ok(Some(table)) => table,
        Ok(None) => return Ok(()),
        // Errors are ignored: the code is then walked by frame pointers.
        Err(_) => {
            collector.statistics.damaged += 1;
            return Ok(());
        }
    };
    let mut code = Code::new(object);
    let layout = match collector.machine {
        Machine::X86_64 => Layout::find(&table, &mut code),
        Machine::Aarch64 => aarch64::layout(&table, &mut code),
    };
    for function in table.functions() {
        add(&table, &function, &layout, &mut code, collector)?;
    }
    Ok(())
}

fn add(
    table: &Depths,
    function: &Function,
    layout: &Layout,
    code: &mut Code<'_>,
    collector: &mut Collector,
) -> Result<(), OpenError> {
    let name = table.name(function);
    // Signal handlers return to its very first byte, and the byte before is looked up.
    let before = u64::from(is_signal_return(name));
    let start = function.start.saturating_sub(before);
    if !collector.open(start, function.end - start) {
        return Ok(());
    }
    let flags = table.flags(function);
    if before != 0 {
        collector.add(start, || UnwindRule::Signal);
    } else if flags & TOP_FRAME != 0 && name != b"runtime.sigtramp" {
        collector.add(start, || UnwindRule::EndOfStack);
    } else {
        let rows = match collector.machine {
            Machine::X86_64 => {
                let mut rows = plain_rows(table, function, flags, code);
                if flags & WRITES_SP != 0 {
                    let bytes = code.of(function.start, function.end);
                    switch::apply(&layout.parts(name, bytes, &rows), &mut rows);
                }
                rows
            }
            Machine::Aarch64 => {
                let deltas = table.stack_deltas(function);
                let bytes = code.of(function.start, function.end);
                aarch64::rows(name, bytes, deltas, flags & WRITES_SP != 0, layout)
            }
        };
        for row in rows {
            collector.add(function.start + row.start, || row.rule);
        }
    }
    collector.close()
}

fn is_signal_return(name: &[u8]) -> bool {
    matches!(name, b"runtime.sigreturn" | b"runtime.sigreturn__sigaction")
}

/// A rule, and the distance from the function's start from which on it is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GoRow {
    start: u64,
    rule: UnwindRule,
}

/// Returns the rows from the table of deltas and the beginning of the code.
fn plain_rows(table: &Depths, function: &Function, flags: u8, code: &mut Code<'_>) -> Vec<GoRow> {
    let mut rows = Rows::default();
    let mut saved: Option<FramePointer> = None;
    let mut before = 0;
    for (start, delta) in table.stack_deltas(function) {
        let Some(above) = delta.checked_add(WORD) else {
            break;
        };
        if saved.is_none() && before == 0 && delta > 0 {
            let at = function.start.saturating_add(start);
            saved = frame_pointer(code.around(at, function.end), delta, start);
        }
        before = delta;
        let frame = |rbp| UnwindRule::frame(Register::Rsp, above, rbp);
        rows.push(start, frame(RbpRule::Same));
        let Some(saved) = saved.filter(|saved| delta >= saved.delta) else {
            continue;
        };
        let with_rbp = frame(RbpRule::AtCfa(saved.slot));
        rows.push(saved.saved_from.max(start), with_rbp);
        // In a function that changes to another stack only rbp leads back.
        if let Some(set_from) = saved.set_from.filter(|_| flags & WRITES_SP != 0) {
            rows.push(set_from.max(start), UnwindRule::StackSwitch);
        }
    }
    rows.0
}

/// Rows by distance, each distance once.
#[derive(Default)]
struct Rows(Vec<GoRow>);

impl Rows {
    /// Adds a row, and removes earlier rows from that distance on.
    fn push(&mut self, start: u64, rule: UnwindRule) {
        let kept = self.0.partition_point(|row| row.start < start);
        self.0.truncate(kept);
        self.0.push(GoRow { start, rule });
    }
}

#[cfg(test)]
mod tests;
