//! The chain of a thread's Python frames in pieces of its memory: what
//! `probe-ebpf/src/bpf/python.rs` does where the thread stands still, here where it does not.

use super::pieces::Pieces;
use probe_ebpf::limits::PYTHON_FRAMES_MAX;
use probe_ebpf::python::{
    CODE_BYTES, COROUTINE_FRAME, Entry, IS_TEXT, Layout, NONE, OWNER_C, TASK_TEXT, TEXT_ASCII,
    TEXT_LENGTH, TEXT_STATE, TEXT_WIDE, TYPE_FLAGS, ThreadState, check, status, style,
};

/// Bits of a pointer to an object that are no address: objects begin at multiples of 8.
const TAG: u64 = 7;

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
    /// A [`status`].
    pub status: u32,
    /// The task of asyncio that the thread ran; 0 if none.
    task: u64,
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

    /// It runs no code: behind it a call of the loop began.
    fn is_of_c(&self, layout: &Layout) -> bool {
        layout.style == style::OWNED_BY_C && self.owner >= OWNER_C
    }

    /// Where the words of its code object begin that are looked at; `None` if it has none.
    pub fn code_words(&self, layout: &Layout) -> Option<u64> {
        let start = u64::from(layout.code_first_line & !7);
        (!self.is_of_c(layout)).then(|| self.code.wrapping_add(start))
    }

    /// What a record has of it; `None` if its code cannot be read, or has not been.
    fn entry(&self, codes: &Pieces, layout: &Layout) -> Option<Entry> {
        let Some(words) = self.code_words(layout) else {
            return Some(Entry::END);
        };
        let bytes = codes.bytes::<CODE_BYTES>(words)?;
        let word = |at: u64| {
            let field = bytes.get(usize::try_from(at).ok()?..)?.first_chunk()?;
            Some(u64::from_le_bytes(*field))
        };
        let first_line = (word(0)? >> (8 * (layout.code_first_line & 7))) as u32;
        let start = u64::from(layout.code_identity).wrapping_sub(words.wrapping_sub(self.code));
        let mut identity = [0; 4];
        for (at, part) in (start..).step_by(8).zip(&mut identity) {
            *part = word(at)?;
        }
        let check = check(first_line, &identity);
        let (offset, ends_group) = match layout.style {
            style::EACH => {
                let scale = u64::from(layout.instruction_bytes);
                (self.instruction.wrapping_mul(scale), 1)
            }
            style => {
                let start = self.code.wrapping_add(layout.code_start.into());
                let is_flagged = style == style::FLAGGED && self.owner & 1 != 0;
                (self.instruction.wrapping_sub(start), is_flagged.into())
            }
        };
        Some(Entry::frame(self.code, offset as i32, check, ends_group))
    }
}

impl Chain {
    /// `None` if what is to be read of it has not all been.
    pub fn read(pieces: &Pieces, layout: &Layout, thread: &ThreadState) -> Option<Self> {
        let word = |at: u32| pieces.word(thread.address.wrapping_add(at.into()));
        let mut chain = Self {
            frames: Vec::new(),
            status: status::TOO_DEEP,
            task: 0,
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
        if layout.running_task != NONE {
            chain.task = word(layout.running_task)?;
        }
        Some(chain)
    }

    /// Whether the chain was as it is here at one moment: all frames but the innermost are the
    /// same in memory that was read after it.
    pub fn was_still(&self, after: &Pieces, layout: &Layout, thread: &ThreadState) -> bool {
        let callers = self.frames.iter().skip(1);
        let mut are_same =
            callers.map(|frame| Seen::read(after, layout, frame.address).as_ref() == Some(frame));
        let is_same_task = layout.running_task == NONE || {
            let at = thread.address.wrapping_add(layout.running_task.into());
            after.word(at) == Some(self.task)
        };
        is_same_task && are_same.all(|is_same| is_same)
    }

    /// The entries of a record; `None` if a code object cannot be read, or has not been.
    pub fn entries(&self, codes: &Pieces, layout: &Layout) -> Option<Vec<Entry>> {
        let entries = self.frames.iter().map(|frame| frame.entry(codes, layout));
        // All of those that are missing are to be known at once.
        let entries: Vec<_> = entries.collect();
        entries.into_iter().collect()
    }

    /// The entries of the task that the thread ran; none if it ran none, or it cannot be read.
    pub fn task(&self, pieces: &Pieces, layout: &Layout) -> Option<Vec<Entry>> {
        if self.task == 0 {
            return None;
        }
        let word = |object: u64, at: u32| pieces.word(object.wrapping_add(at.into()));
        let coroutine = word(self.task, layout.task_coroutine)?;
        let frame = coroutine.wrapping_add(COROUTINE_FRAME.into());
        let code = word(frame, layout.frame_code)? & !TAG;
        let name = word(self.task, layout.task_name)?;
        let flags = pieces.word(word(name, 8)?.wrapping_add(TYPE_FLAGS))?;
        let (length, state) = (
            word(name, TEXT_LENGTH)? as u32,
            word(name, TEXT_STATE)? as u32,
        );
        let has_name = flags >> IS_TEXT & 1;
        let is_ascii = state >> 6 & 1 != 0;
        let start = name.wrapping_add(if is_ascii { TEXT_ASCII } else { TEXT_WIDE });
        let bytes = u64::from(length) * u64::from(state >> 2 & 7) * has_name;
        let mut text = [0; TASK_TEXT];
        for (at, byte) in (0..bytes).zip(&mut text) {
            [*byte] = pieces.bytes::<1>(start.wrapping_add(at))?;
        }
        let pair = |pair: &[u8; 16]| {
            let words = pair.as_chunks::<8>().0;
            Entry::from_words(u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]))
        };
        let task = std::iter::once(Entry::task(code, has_name, length, state));
        Some(task.chain(text.as_chunks().0.iter().map(pair)).collect())
    }
}
