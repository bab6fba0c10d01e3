//! Converts functions, possibly overlapping, to rows in the order of their addresses.
//!
//! Where functions overlap, the one that starts last gets the address; of those with the same start
//! the shorter one; of equal ones the one that was found first. BOLT causes overlaps: it moves
//! functions, and keeps a copy of the original information for those that it did not move.

use std::cmp::Reverse;

use super::collect::{Collection, Span};
use super::row::{Row, RuleId};
use super::rule::UnwindRule;

/// Gaps shorter than this are padding of linkers between functions. Real code without information
/// that is ever on a stack is longer.
const PADDING_BYTES: u32 = 64;

/// Returns rows by address; the rule of each is valid up to the next. Addresses without a function
/// are holes.
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

/// Returns `primary`, with its holes filled by `secondary`.
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

/// Drops holes that are padding after an ordinary frame. After a frame that ends the stack, or has
/// another special meaning, they are kept: otherwise code without information would be given that
/// rule.
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
    matches!(
        rule,
        Some(UnwindRule::Frame { .. } | UnwindRule::FrameWithRbx { .. } | UnwindRule::Linked(_))
    )
}

struct Sweep<'r> {
    rows: &'r [Row],
    /// The functions that contain the current address, the last to start on top.
    open: Vec<Span>,
    /// Everything below this address is done.
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

    /// Writes the rows of the function from the current address up to `stop`.
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

/// Rows without repetitions.
struct Output(Vec<Row>);

impl Output {
    fn push(&mut self, row: Row) {
        // Replaces a hole of no length, between functions that touch.
        if self.0.last().is_some_and(|last| last.start == row.start) {
            self.0.pop();
        }
        if self.0.last().is_none_or(|last| last.rule != row.rule) {
            self.0.push(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unwind::{RbpRule, Register};

    /// `(start, end, [(address, rule)])`
    type Function<'r> = (u32, u32, &'r [(u32, u16)]);

    #[track_caller]
    fn check(functions: &[Function<'_>], expected: &[(u32, u16)]) {
        assert_eq!(plain(&flatten(collection(functions))), expected);
    }

    fn collection(functions: &[Function<'_>]) -> Collection {
        let mut collection = Collection::default();
        for (start, end, rows) in functions {
            let first = collection.rows.len() as u32;
            collection.rows.extend(rows.iter().map(|row| Row {
                start: row.0,
                rule: RuleId(row.1),
            }));
            collection.spans.push(Span {
                start: *start,
                end: *end,
                first,
                behind: collection.rows.len() as u32,
            });
        }
        collection
    }

    fn plain(rows: &[Row]) -> Vec<(u32, u16)> {
        rows.iter().map(|row| (row.start, row.rule.0)).collect()
    }

    #[test]
    fn functions_apart_and_touching() {
        check(&[], &[]);
        let second: &[(u32, u16)] = &[(30, 1), (34, 2)];
        check(
            &[(30, 40, second), (10, 20, &[(10, 1)]), (40, 50, &[(40, 2)])],
            &[(10, 1), (20, 0), (30, 1), (34, 2), (50, 0)],
        );
        // The rule is the same on both sides.
        check(
            &[(10, 20, &[(10, 1)]), (20, 30, &[(20, 1)])],
            &[(10, 1), (30, 0)],
        );
    }

    #[test]
    fn the_last_to_start_wins() {
        let outer: &[(u32, u16)] = &[(10, 1), (50, 2)];
        check(
            &[(10, 100, outer), (40, 60, &[(40, 3)])],
            &[(10, 1), (40, 3), (60, 2), (100, 0)],
        );
        check(
            &[(10, 100, outer), (90, 120, &[(90, 3)])],
            &[(10, 1), (50, 2), (90, 3), (120, 0)],
        );
        // Three levels, the middle one ending together with the innermost.
        check(
            &[(10, 100, outer), (20, 40, &[(20, 3)]), (30, 40, &[(30, 4)])],
            &[(10, 1), (20, 3), (30, 4), (40, 1), (50, 2), (100, 0)],
        );
    }

    #[test]
    fn of_equal_starts_the_shorter_and_of_equals_the_first() {
        for functions in [
            [(10, 30, &[(10, 1)][..]), (10, 20, &[(10, 2)])],
            [(10, 20, &[(10, 2)][..]), (10, 30, &[(10, 1)])],
        ] {
            check(&functions, &[(10, 2), (20, 1), (30, 0)]);
        }
        check(
            &[(10, 20, &[(10, 1)]), (10, 20, &[(10, 2)])],
            &[(10, 1), (20, 0)],
        );
    }

    #[test]
    fn the_end_of_the_address_space() {
        let end = u32::MAX;
        check(&[(10, end, &[(10, 1)])], &[(10, 1), (end, 0)]);
    }

    #[test]
    fn secondary_rows_fill_holes() {
        let primary = flatten(collection(&[(10, 20, &[(10, 1)]), (30, 40, &[(30, 1)])]));
        let secondary = flatten(collection(&[(5, 35, &[(5, 2), (32, 3)])]));
        assert_eq!(
            plain(&overlay(&primary, &secondary)),
            [(5, 2), (10, 1), (20, 2), (30, 1), (40, 0)]
        );
        assert_eq!(overlay(&[], &secondary), secondary);
        assert_eq!(overlay(&primary, &[]), primary);
    }

    #[test]
    fn padding_behind_ordinary_frames() {
        let frame = |offset| UnwindRule::frame(Register::Rsp, offset, RbpRule::Same);
        let rules = [
            UnwindRule::Hole,
            frame(8),
            frame(16),
            UnwindRule::EndOfStack,
        ];
        let check = |functions: &[Function<'_>], expected: &[_]| {
            let mut rows = flatten(collection(functions));
            drop_padding(&mut rows, &rules);
            assert_eq!(plain(&rows), expected);
        };
        // 63 bytes, then 64.
        let (a, b, c): (&[_], &[_], &[_]) = (&[(100, 1)], &[(173, 2)], &[(247, 1)]);
        check(
            &[(100, 110, a), (173, 183, b), (247, 250, c)],
            &[(100, 1), (173, 2), (183, 0), (247, 1), (250, 0)],
        );
        // The rule is the same on both sides of the hole.
        check(
            &[(100, 110, a), (120, 130, &[(120, 1)])],
            &[(100, 1), (130, 0)],
        );
        // Code after `_start` is not the end of the stack.
        check(
            &[(100, 110, &[(100, 3)]), (120, 130, &[(120, 1)])],
            &[(100, 3), (110, 0), (120, 1), (130, 0)],
        );
    }
}
