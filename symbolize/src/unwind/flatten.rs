//! Functions, possibly overlapping, as rows in the order of their addresses.
//!
//! Where functions overlap, the one that starts last has the address; of those
//! that start together the shorter; of equal ones that which comes first in
//! the file. Overlaps are what BOLT leaves behind: it moves functions, and
//! keeps a copy of the original information for those that it did not move.

use std::cmp::Reverse;

use super::collect::{Collection, Span};
use super::rule::UnwindRule;
use super::table::{Row, RuleId};

/// Gaps below this are what linkers pad functions with. No code of its own is
/// so short and yet ever on a stack.
const PADDING_BYTES: u32 = 64;

/// Rows by address, each telling the rule up to the next. Addresses that no
/// function has are holes.
pub fn flatten(mut collection: Collection) -> Vec<Row> {
    collection
        .spans
        .sort_unstable_by_key(|span| (span.start, Reverse(span.end), Reverse(span.first)));
    let mut sweep = Sweep {
        rows: &collection.rows,
        open: Vec::new(),
        at: 0,
        out: Output(Vec::with_capacity(
            collection.rows.len() + collection.spans.len(),
        )),
    };
    for span in &collection.spans {
        sweep.advance(span.start);
        sweep.open.push(*span);
    }
    sweep.advance(u32::MAX);
    sweep.out.0
}

/// `primary`, and `secondary` in its holes.
pub fn overlay(primary: &[Row], secondary: &[Row]) -> Vec<Row> {
    let mut out = Output(Vec::with_capacity(primary.len() + secondary.len()));
    let mut rules = [RuleId::HOLE; 2];
    let mut lists = [primary.iter().peekable(), secondary.iter().peekable()];
    while let Some(start) = lists.iter_mut().filter_map(|l| Some(l.peek()?.start)).min() {
        for (rule, list) in rules.iter_mut().zip(&mut lists) {
            if let Some(row) = list.next_if(|row| row.start == start) {
                *rule = row.rule;
            }
        }
        let rule = match rules {
            [RuleId::HOLE, secondary] => secondary,
            [primary, _] => primary,
        };
        out.push(Row { start, rule });
    }
    out.0
}

/// Drops holes that are padding behind an ordinary frame. After a frame that
/// ends the stack, or has any other special meaning, they stay: taken for it,
/// code without information would be misread.
pub fn drop_padding(rows: &mut Vec<Row>, rules: &[UnwindRule]) {
    let mut kept: usize = 0;
    for index in 0..rows.len() {
        let row = rows[index];
        let before = kept.checked_sub(1).map(|last| rows[last].rule);
        let after = rows.get(index + 1);
        let is_padding = row.rule == RuleId::HOLE
            && after.is_some_and(|after| after.start - row.start < PADDING_BYTES)
            && before.is_some_and(|rule| is_frame(rules, rule));
        if !is_padding && before != Some(row.rule) {
            rows[kept] = row;
            kept += 1;
        }
    }
    rows.truncate(kept);
}

fn is_frame(rules: &[UnwindRule], id: RuleId) -> bool {
    let rule = rules.get(usize::from(id.0));
    matches!(rule, Some(UnwindRule::Frame { .. }))
}

struct Sweep<'r> {
    rows: &'r [Row],
    /// The functions that the sweep is in, the last to start on top.
    open: Vec<Span>,
    /// Everything below is done.
    at: u32,
    out: Output,
}

impl Sweep<'_> {
    fn advance(&mut self, to: u32) {
        while let Some(&span) = self.open.last() {
            let stop = span.end.min(to);
            if self.at < stop {
                self.emit(span, stop);
            }
            if span.end > to {
                return;
            }
            self.open.pop();
            if self.open.is_empty() {
                self.out.push(Row {
                    start: self.at,
                    rule: RuleId::HOLE,
                });
            }
        }
        self.at = to;
    }

    /// Puts out what the function says from here to `stop`.
    fn emit(&mut self, span: Span, stop: u32) {
        let rows = &self.rows[span.first as usize..span.behind as usize];
        let behind = rows.partition_point(|row| row.start <= self.at);
        let Some(current) = behind.checked_sub(1) else {
            return;
        };
        self.out.push(Row {
            start: self.at,
            rule: rows[current].rule,
        });
        for row in rows[behind..].iter().take_while(|row| row.start < stop) {
            self.out.push(*row);
        }
        self.at = stop;
    }
}

/// Rows without repetition.
struct Output(Vec<Row>);

impl Output {
    fn push(&mut self, row: Row) {
        // A hole of no length, between functions that touch.
        if self.0.last().is_some_and(|last| last.start == row.start) {
            self.0.pop();
        }
        if self.0.last().is_none_or(|last| last.rule != row.rule) {
            self.0.push(row);
        }
    }
}
