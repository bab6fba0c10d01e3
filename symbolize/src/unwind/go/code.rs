//! Reads the code of Go functions, as far as unwinding needs it.

use crate::object::Object;

/// Number of bytes read at once: functions are visited by address.
const BLOCK_BYTES: u64 = 1 << 20;

/// Maximum distance of the end of a searched instruction from its expected place.
const NEAR_BYTES: u64 = 24;

/// The code of a file.
pub struct Code<'o> {
    object: &'o Object,
    start: u64,
    bytes: Vec<u8>,
}

impl<'o> Code<'o> {
    /// Prepares to read the code of a file. Reads nothing yet.
    pub fn new(object: &'o Object) -> Self {
        Self {
            object,
            start: 0,
            bytes: Vec::new(),
        }
    }

    /// Returns the bytes at these link addresses; empty if they are not in the file, or too many.
    pub fn of(&mut self, start: u64, end: u64) -> &[u8] {
        if !self.has(start, end) {
            self.fill(start);
        }
        if self.has(start, end) {
            &self.bytes[(start - self.start) as usize..(end - self.start) as usize]
        } else {
            &[]
        }
    }

    /// Returns one byte before `at`, and the bytes from there up to the function's end, 24 at most.
    pub fn around(&mut self, at: u64, end: u64) -> &[u8] {
        self.of(at.saturating_sub(1), end.min(at + NEAR_BYTES))
    }

    fn has(&self, start: u64, end: u64) -> bool {
        let behind = self.start + self.bytes.len() as u64;
        start <= end && start >= self.start && end <= behind
    }

    fn fill(&mut self, start: u64) {
        self.start = start;
        self.bytes.clear();
        let mut loads = self
            .object
            .program_headers()
            .iter()
            .filter(|header| header.is_load() && header.is_executable());
        let holding = loads.find_map(|load| {
            let before = start.checked_sub(load.vaddr)?;
            let left = load.filesz.checked_sub(before)?;
            Some((load.offset.checked_add(before)?, left.min(BLOCK_BYTES)))
        });
        if let Some((offset, len)) = holding {
            let bytes = self.object.source().read(offset, len, "code");
            self.bytes = bytes.unwrap_or_default();
        }
    }
}

/// Where a function saves rbp. Code offsets are relative to its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramePointer {
    /// Offset from the CFA.
    pub slot: i32,
    /// Code offset from which on rbp is saved.
    pub saved_from: u64,
    /// From where on rbp points to that slot; `None` if it never does.
    pub set_from: Option<u64>,
    /// Depth of the stack while it is saved.
    pub delta: i32,
}

/// Looks for it where the stack pointer is first lowered, to `delta`. `code` begins one byte before
/// that place, whose code offset is `start`.
///
/// ```text
/// Go 1.21: push %rbp; mov %rsp,%rbp
/// before:  sub $N,%rsp; mov %rbp,disp(%rsp); lea disp(%rsp),%rbp
/// ```
pub fn frame_pointer(code: &[u8], delta: i32, start: u64) -> Option<FramePointer> {
    const PUSH: u8 = 0x55;
    const MOVE: &[u8] = &[0x48, 0x89, 0xe5];
    let (before, code) = code.split_first()?;
    if *before == PUSH && delta == 8 {
        return Some(FramePointer {
            slot: -16,
            saved_from: start,
            set_from: code.starts_with(MOVE).then_some(start + 3),
            delta,
        });
    }
    let (place, store) = relative_to_rsp(code, 0x89)?;
    let slot = place.checked_sub(delta)?.checked_sub(8)?;
    let saved_from = start + store as u64;
    let load = relative_to_rsp(&code[store..], 0x8d).filter(|(same, _)| *same == place);
    Some(FramePointer {
        slot,
        saved_from,
        set_from: load
            .filter(|_| slot == -16)
            .map(|(_, load)| saved_from + load as u64),
        delta,
    })
}

/// Returns the displacement and the length of `opcode disp(%rsp), %rbp`, or with the operands
/// exchanged.
fn relative_to_rsp(code: &[u8], opcode: u8) -> Option<(i32, usize)> {
    match *code {
        [0x48, op, 0x6c, 0x24, near, ..] if op == opcode => Some((i32::from(near as i8), 5)),
        [0x48, op, 0xac, 0x24, a, b, c, d, ..] if op == opcode => {
            Some((i32::from_le_bytes([a, b, c, d]), 8))
        }
        _ => None,
    }
}
