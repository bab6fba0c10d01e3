//! Code of AArch64. A call leaves the return address in the link register, which functions save
//! visibly.

mod frame;
mod instruction;

use crate::bytes::u32_in;
use crate::unwind::rule::UnwindRule;
use frame::Frame;
use instruction::{BYTES, Flow, flow};
use std::collections::{BTreeSet, HashMap};

/// Maximum number of functions of a section that are found by calls; more are found while others
/// are followed.
const CALLED_MAX: usize = 1 << 20;

/// Maximum number of different frames in a section. Large programs have some hundreds.
const FRAMES_MAX: usize = 4096;

/// Returns the targets of calls in this code.
pub fn called(code: &[u8], start: u64) -> BTreeSet<u64> {
    let calls =
        (0..code.len())
            .step_by(BYTES as usize)
            .filter_map(|at| match flow(u32_in(code, at)?) {
                Flow::Call(Some(distance)) => {
                    Some(start.wrapping_add(at as u64).wrapping_add_signed(distance))
                }
                _ => None,
            });
    calls.take(CALLED_MAX).collect()
}

/// Returns the rules of a piece of code at `start`, by address, from its first byte on.
pub fn rows(code: &[u8], start: u64, called: impl Iterator<Item = u64>) -> Vec<(u64, UnwindRule)> {
    let mut scan = Scan::of(code);
    let called = called.map(|address| (address.wrapping_sub(start) / BYTES) as usize);
    scan.begin(called.filter(|at| *at < scan.frames.len()).collect());
    scan.sweep();
    let mut rows: Vec<(u64, UnwindRule)> = Vec::new();
    for (at, number) in scan.frames.iter().enumerate() {
        let rule = match number {
            0 => UnwindRule::Hole,
            number => scan.rule(at, &scan.different[usize::from(*number) - 1]),
        };
        if rows.last().is_none_or(|(_, last)| *last != rule) {
            rows.push((start + at as u64 * BYTES, rule));
        }
    }
    rows
}

/// Code that is being followed. Instructions are numbered from its beginning.
struct Scan<'c> {
    code: &'c [u8],
    /// Number of the frame at each instruction, from 1 on; 0 if nothing has led there.
    frames: Vec<u16>,
    different: Vec<Frame>,
    numbers: HashMap<Frame, u16>,
    /// Whether a function begins at each instruction.
    begins: Vec<bool>,
    /// Instructions that are still to be followed, with their frames.
    open: Vec<(usize, Frame)>,
}

impl<'c> Scan<'c> {
    fn of(code: &'c [u8]) -> Self {
        let count = code.len() / BYTES as usize;
        Self {
            code,
            frames: vec![0; count],
            different: Vec::new(),
            numbers: HashMap::new(),
            begins: vec![false; count],
            open: Vec::new(),
        }
    }

    fn word(&self, at: usize) -> u32 {
        u32_in(self.code, at * BYTES as usize).unwrap_or_default()
    }

    /// Follows the functions that begin at these instructions.
    fn begin(&mut self, starts: Vec<usize>) {
        for at in starts {
            self.begins[at] = true;
            self.open.push((at, Frame::ENTRY));
        }
        self.drain();
    }

    /// Follows the code that nothing has led to, from the first instruction on.
    fn sweep(&mut self) {
        // The frame at the last jump by a table, of the preceding function.
        let mut by_table: Option<Frame> = None;
        for at in 0..self.frames.len() {
            let word = self.word(at);
            if self.frames[at] == 0 && !instruction::is_padding(word) {
                let frame = by_table.filter(|_| !instruction::begins_a_function(word));
                self.open.push((at, frame.unwrap_or(Frame::ENTRY)));
                self.begins[at] |= frame.is_none();
                self.drain();
            }
            if self.begins[at] {
                by_table = None;
            }
            if flow(word) == Flow::Jump {
                let number = usize::from(self.frames[at]);
                let frame = number.checked_sub(1).map(|index| self.different[index]);
                by_table = frame.or(by_table);
            }
        }
    }

    fn drain(&mut self) {
        while let Some((at, frame)) = self.open.pop() {
            self.follow(at, frame);
        }
    }

    /// Follows the code from an instruction on, until an instruction that was already followed, or
    /// until control leaves.
    fn follow(&mut self, mut at: usize, mut frame: Frame) {
        let entry = at;
        // Whether only padding came since a call.
        let mut has_called = false;
        while at < self.frames.len() && self.frames[at] == 0 {
            let word = self.word(at);
            // A call that does not return may be a function's last instruction.
            let is_next = has_called && instruction::begins_a_function(word);
            if at != entry && (self.begins[at] || is_next) {
                return;
            }
            let is_call = matches!(flow(word), Flow::Call(_));
            has_called = is_call || has_called && instruction::is_padding(word);
            let Some(number) = self.number(frame) else {
                return;
            };
            self.frames[at] = number;
            frame = frame.after(word, (0..at).rev().map(|before| self.word(before)));
            match flow(word) {
                Flow::On | Flow::Call(_) => {}
                Flow::Maybe(distance) => self.branch(at, distance, frame),
                Flow::Branch(distance) => return self.branch(at, distance, frame),
                Flow::Jump | Flow::End => return,
            }
            at += 1;
        }
    }

    fn branch(&mut self, at: usize, distance: i64, frame: Frame) {
        let to = (at as u64).checked_add_signed(distance / BYTES as i64);
        let to = to.and_then(|to| usize::try_from(to).ok());
        if let Some(to) = to.filter(|to| self.frames.get(*to) == Some(&0) && !self.begins[*to]) {
            self.open.push((to, frame));
        }
    }

    fn number(&mut self, frame: Frame) -> Option<u16> {
        if let Some(number) = self.numbers.get(&frame) {
            return Some(*number);
        }
        if self.different.len() == FRAMES_MAX {
            return None;
        }
        self.different.push(frame);
        let number = self.different.len() as u16;
        self.numbers.insert(frame, number);
        Some(number)
    }

    /// Returns the rule at an instruction. After a call the link register does not hold the
    /// caller's address any more, so only a saved frame record is used at a return address.
    fn rule(&self, at: usize, frame: &Frame) -> UnwindRule {
        match flow(self.word(at)) {
            Flow::Call(_) if !frame.has_link() => UnwindRule::Hole,
            _ => frame.rule(),
        }
    }
}

#[cfg(test)]
mod compilers;
#[cfg(test)]
mod tests;
