//! Walks the chain of a thread's Python frames in pieces of its memory.
//! `probe-ebpf/src/bpf/python.rs` does the same while the thread is stopped.

use super::pieces::Pieces;
use probe_ebpf::limits::PYTHON_FRAMES_MAX;
use probe_ebpf::python::{
    CODE_BYTES, Entry, Layout, NONE, OWNER_C, ThreadState, check, status, style,
};

/// Bits of a pointer to an object that are not part of the address: objects begin at multiples of
/// 8.
pub const TAG: u64 = 7;

/// A frame as it is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    address: u64,
    previous: u64,
    code: u64,
    instruction: u64,
    owner: u8,
}

/// The frames of a thread, innermost first, and how the chain ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    pub frames: Vec<Seen>,
    /// How the chain ended: a [`status`].
    pub status: u32,
}

impl Seen {
    fn read(pieces: &Pieces, layout: &Layout, address: u64) -> Option<Self> {
        let word = |at: u32| pieces.word(address.wrapping_add(at.into()));
        let owner = pieces.bytes(address.wrapping_add(layout.frame_owner.into()));
        Some(Self {
            address,
            previous: word(layout.frame_previous)?,
            code: word(layout.frame_code)? & !TAG,
            instruction: word(layout.frame_instruction)?,
            owner: u8::from_le_bytes(owner?),
        })
    }

    /// Whether it runs no code and marks the beginning of a call of the loop.
    fn is_of_c(&self, layout: &Layout) -> bool {
        layout.style == style::OWNED_BY_C && self.owner >= OWNER_C
    }

    /// Returns the address of the words of its code object that are read; `None` if it has none.
    pub fn code_words(&self, layout: &Layout) -> Option<u64> {
        let start = u64::from(layout.code_first_line & !7);
        (!self.is_of_c(layout)).then(|| self.code.wrapping_add(start))
    }

    /// Returns its entry in a record, given the address of the previous frame; `None` if its code
    /// cannot be read, or was not read yet.
    fn entry(&self, before: u64, codes: &Pieces, layout: &Layout) -> Option<Entry> {
        if self.is_of_c(layout) {
            Some(Entry::end(before))
        } else {
            code_entry(codes, layout, (self.code, self.instruction, self.owner))
        }
    }
}

impl Chain {
    /// Reads the chain; `None` if not all of its memory was read yet.
    pub fn read(pieces: &Pieces, layout: &Layout, thread: &ThreadState) -> Option<Self> {
        let word = |at: u32| pieces.word(thread.address.wrapping_add(at.into()));
        let mut chain = Self {
            frames: Vec::new(),
            status: status::TOO_DEEP,
        };
        if word(layout.thread_identity)? != thread.identity {
            chain.status = status::STALE;
            return Some(chain);
        }
        let mut next = word(layout.thread_frame)?;
        if layout.c_frame != NONE && next != 0 {
            next = pieces.word(next.wrapping_add(layout.c_frame.into()))?;
        }
        while chain.frames.len() < PYTHON_FRAMES_MAX {
            if next == 0 {
                chain.status = status::WHOLE;
                break;
            }
            let frame = Seen::read(pieces, layout, next)?;
            next = frame.previous;
            chain.frames.push(frame);
        }
        Some(chain)
    }

    /// Whether the chain existed like this at one moment: all frames but the innermost are the same
    /// in memory that was read after it.
    pub fn was_still(&self, after: &Pieces, layout: &Layout) -> bool {
        let callers = self.frames.iter().skip(1);
        let mut are_same =
            callers.map(|frame| Seen::read(after, layout, frame.address).as_ref() == Some(frame));
        are_same.all(|is_same| is_same)
    }

    /// Returns the entries of a record; `None` if a code object cannot be read, or was not read
    /// yet.
    pub fn entries(&self, codes: &Pieces, layout: &Layout) -> Option<Vec<Entry>> {
        let mut last = 0;
        let entries = self.frames.iter().map(|frame| {
            let before = std::mem::replace(&mut last, frame.address);
            frame.entry(before, codes, layout)
        });
        // All missing pieces are determined at once.
        let entries: Vec<_> = entries.collect();
        entries.into_iter().collect()
    }
}

/// Returns the entry of a frame that is at this instruction of its code; `None` if the code object
/// cannot be read, or was not read yet. `owner` is the byte that marks the end of a group.
pub fn code_entry(
    codes: &Pieces,
    layout: &Layout,
    (code, instruction, owner): (u64, u64, u8),
) -> Option<Entry> {
    let start = u64::from(layout.code_first_line & !7);
    let bytes = codes.bytes::<CODE_BYTES>(code.wrapping_add(start))?;
    let word = |at: u64| {
        let field = bytes.get(usize::try_from(at).ok()?..)?.first_chunk()?;
        Some(u64::from_le_bytes(*field))
    };
    let first_line = (word(0)? >> (8 * (layout.code_first_line & 7))) as u32;
    let at = u64::from(layout.code_identity).wrapping_sub(start);
    let mut identity = [0; 4];
    for (at, part) in (at..).step_by(8).zip(&mut identity) {
        *part = word(at)?;
    }
    let check = check(first_line, &identity);
    let (offset, ends_group) = match layout.style {
        style::EACH => {
            let scale = u64::from(layout.instruction_bytes);
            (instruction.wrapping_mul(scale), 1)
        }
        style => {
            let start = code.wrapping_add(layout.code_start.into());
            let is_flagged = style == style::FLAGGED && owner & 1 != 0;
            (instruction.wrapping_sub(start), is_flagged.into())
        }
    };
    Some(Entry::frame(code, offset as i32, check, ends_group))
}
