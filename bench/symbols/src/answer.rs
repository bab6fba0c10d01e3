//! What is asked of each tool: to answer an address with the whole chain of inlined
//! functions, their names, files and lines.

use std::ops::AddAssign;

/// What an answer holds, so that nobody is fast by leaving things out.
#[derive(Debug, Default, Clone, Copy)]
pub struct Answer {
    pub frames: usize,
    pub with_lines: usize,
    /// Of all texts.
    pub bytes: usize,
}

impl Answer {
    pub fn add(&mut self, function: usize, path: usize, line: u32) {
        self.frames += 1;
        self.with_lines += usize::from(line > 0);
        self.bytes += function + path;
    }
}

impl AddAssign for Answer {
    fn add_assign(&mut self, other: Answer) {
        self.frames += other.frames;
        self.with_lines += other.with_lines;
        self.bytes += other.bytes;
    }
}

pub trait Module {
    fn answer(&self, addr: u64) -> Answer;
}
