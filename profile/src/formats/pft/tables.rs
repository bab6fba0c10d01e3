//! What a file has defined so far: strings, modules, processes, threads, frames and stacks, each
//! found by its number in the file.
//!
//! A definition comes before its use, so a number can be checked when it is read, and numbers
//! stored in these tables can be followed without a check. Sections of version 1 and of version 2
//! fill the same tables.

use crate::formats::FormatError;
use crate::formats::wire::Bytes;
use crate::intern::STACK_DEPTH_MAX;
use crate::{Frame, FrameKind, ModuleId, ProcessId};
use std::sync::Arc;

/// Limits of what one file may define; all together stay below a gigabyte. This one is for the
/// bytes of all strings.
const STRING_BYTES_MAX: usize = 256 << 20;
const STRINGS_MAX: usize = 4 << 20;
/// Maximum number of processes, of threads and of modules.
pub(super) const PEOPLE_MAX: usize = 4 << 20;
const FRAMES_MAX: usize = 8 << 20;
/// Maximum number of frame numbers in all stacks together, 4 bytes each.
const STACK_WORDS_MAX: usize = 64 << 20;

/// The tables of one file, owned by its [`Reader`](super::Reader).
#[derive(Debug)]
pub(super) struct Tables {
    /// Strings by number; number 0 is the empty string.
    strings: Vec<Arc<str>>,
    /// Bytes of all strings, at most [`STRING_BYTES_MAX`].
    letters: usize,
    /// Offset that is added to the numbers of modules and processes in the store.
    first_number: u32,
    /// Number of modules defined so far.
    pub(super) modules: u32,
    /// Number of processes defined so far.
    pub(super) processes: u32,
    pub(super) threads: Vec<Thread>,
    /// Frames by number minus one, as number 0 stands for no frame.
    frames: Vec<Frame>,
    /// Frame numbers of all stacks, innermost first.
    words: Vec<u32>,
    /// Begin of each stack in `words`, and at last the end of the last stack.
    starts: Vec<u32>,
}

/// A thread as the file defines it. The store gets these values again with each sample.
#[derive(Debug, Clone)]
pub(super) struct Thread {
    pub(super) process: ProcessId,
    pub(super) tid: u32,
    pub(super) comm: Arc<str>,
}

fn damaged(what: &str) -> FormatError {
    FormatError::Damaged(what.into())
}

impl Tables {
    /// Empty tables; `first_number` is added to the numbers of modules and processes.
    pub(super) fn new(first_number: u32) -> Self {
        Self {
            strings: vec![Arc::default()],
            letters: 0,
            first_number,
            modules: 0,
            processes: 0,
            threads: Vec::new(),
            frames: Vec::new(),
            words: Vec::new(),
            starts: vec![0],
        }
    }

    /// Adds strings after removing what could harm a terminal; long ones are cut.
    pub(super) fn add_strings(&mut self, mut bytes: Bytes<'_>) -> Result<(), FormatError> {
        while !bytes.is_empty() {
            let text = bytes.text()?;
            self.letters += text.len();
            if self.letters > STRING_BYTES_MAX || self.strings.len() >= STRINGS_MAX {
                return Err(FormatError::TooLarge("the names in it"));
            }
            self.strings.push(text.into());
        }
        Ok(())
    }

    /// Reads the number of a string from `bytes` and returns the string.
    pub(super) fn string(&self, bytes: &mut Bytes<'_>) -> Result<&Arc<str>, FormatError> {
        self.string_of(bytes.u32()?)
    }

    /// Returns the string of a number; an error if it was not defined.
    pub(super) fn string_of(&self, number: u32) -> Result<&Arc<str>, FormatError> {
        let found = self.strings.get(number as usize);
        found.ok_or_else(|| damaged("a name is used that it does not have"))
    }

    /// Reads the section of threads: process, thread id and name of each.
    pub(super) fn add_threads(&mut self, mut bytes: Bytes<'_>) -> Result<(), FormatError> {
        while !bytes.is_empty() {
            let process = bytes.u32()?;
            if process >= self.processes {
                return Err(damaged("a process is used that it does not have"));
            }
            let tid = bytes.u32()?;
            let comm = Arc::clone(self.string(&mut bytes)?);
            check_room(self.threads.len(), PEOPLE_MAX, "the threads in it")?;
            self.threads.push(Thread {
                process: self.process_id(process),
                tid,
                comm,
            });
        }
        Ok(())
    }

    /// Reads frames of version 1: a module and a kind for each, and addresses as differences to the
    /// one before, positive or negative.
    pub(super) fn add_frames(&mut self, mut bytes: Bytes<'_>) -> Result<(), FormatError> {
        let mut last = 0u64;
        while !bytes.is_empty() {
            let (module, kind) = self.frame_place(&mut bytes)?;
            last = last.wrapping_add(bytes.signed()?.cast_unsigned());
            self.add_frame(module, kind, last)?;
        }
        Ok(())
    }

    /// Reads frames of version 2: runs of frames of one module and kind, by rising addresses. The
    /// description of all runs comes before all addresses.
    pub(super) fn add_frame_runs(&mut self, mut bytes: Bytes<'_>) -> Result<(), FormatError> {
        let mut runs = Bytes(bytes.bytes()?);
        while !runs.is_empty() {
            let (module, kind) = self.frame_place(&mut runs)?;
            let mut address = 0u64;
            // Each run takes at least a byte, so reading past the end is an error before much
            // memory is used.
            for _ in 0..runs.number()? {
                address = address.wrapping_add(bytes.number()?);
                self.add_frame(module, kind, address)?;
            }
        }
        Ok(())
    }

    /// Reads the module and the kind of code that precede an address or a run of addresses.
    fn frame_place(&self, bytes: &mut Bytes<'_>) -> Result<(ModuleId, FrameKind), FormatError> {
        let module = bytes.u32()?;
        if module >= self.modules {
            return Err(damaged("a module is used that it does not have"));
        }
        let kind = match bytes.byte()? {
            0 => FrameKind::User,
            1 => FrameKind::Kernel,
            2 => FrameKind::Jit,
            3 => FrameKind::Python,
            _ => return Err(damaged("a kind of frame that is not known")),
        };
        Ok((self.module_id(module), kind))
    }

    /// Defines the next frame.
    fn add_frame(
        &mut self,
        module: ModuleId,
        kind: FrameKind,
        address: u64,
    ) -> Result<(), FormatError> {
        check_room(self.frames.len(), FRAMES_MAX, "the frames in it")?;
        self.frames.push(Frame {
            module,
            address,
            kind,
        });
        Ok(())
    }

    /// Returns the frame of a number; `None` for 0, which stands for no frame.
    pub(super) fn frame(&self, number: u32) -> Result<Option<Frame>, FormatError> {
        let Some(at) = number.checked_sub(1) else {
            return Ok(None);
        };
        let found = self.frames.get(at as usize).copied();
        found
            .map(Some)
            .ok_or_else(|| damaged("a frame is used that it does not have"))
    }

    /// Reads stacks of version 1. Each stores how many of the outermost frames it shares with the
    /// stack before in its section, and its other frames, innermost first:
    ///
    /// ```text
    /// before:   main run step parse        (outermost first)
    /// this one: main run step             write flush
    ///           └─ shared: 3 ─┘            └ own: 2 ┘
    /// ```
    ///
    /// Because `words` has stacks innermost first, the shared part is the end of the stack before
    /// and is copied behind the stack's own frames.
    pub(super) fn add_stacks(&mut self, mut bytes: Bytes<'_>) -> Result<(), FormatError> {
        let mut before = self.words.len()..self.words.len();
        while !bytes.is_empty() {
            let shared = bytes.number()? as usize;
            // Each own frame takes a byte at least, so `count` bounds the loop; shared
            // ones take none, and are bounded by the stack before and by
            // `STACK_WORDS_MAX`.
            let own = bytes.count()?;
            if shared > before.len() || shared + own > STACK_DEPTH_MAX {
                return Err(damaged("a stack is longer than stacks are"));
            }
            let start = self.words.len();
            if start + shared + own > STACK_WORDS_MAX {
                return Err(FormatError::TooLarge("the stacks in it"));
            }
            let mut last = 0i64;
            for _ in 0..own {
                last = last.wrapping_add(bytes.signed()?);
                let number = u32::try_from(last).map_err(|_| damaged("a frame of no number"))?;
                // Checked once here, so that `stack` can index without a check.
                self.frame(number)?;
                self.words.push(number);
            }
            self.words
                .extend_from_within(before.end - shared..before.end);
            before = start..self.words.len();
            self.starts.push(self.words.len() as u32);
        }
        Ok(())
    }

    /// Reads stacks of version 2, as [`columns::Stacks`](super::columns::Stacks) writes them.
    ///
    /// Lengths and frame numbers lie in two columns. The numbers all have the same width and are
    /// outermost first; here their order is reversed.
    pub(super) fn add_stack_columns(&mut self, mut bytes: Bytes<'_>) -> Result<(), FormatError> {
        let width = usize::from(bytes.byte()?);
        if !(1..=4).contains(&width) {
            return Err(damaged("frames of no width"));
        }
        let mut lens = Bytes(bytes.bytes()?);
        let mut before = self.words.len()..self.words.len();
        while !lens.is_empty() {
            let shared = lens.number()?;
            let own = lens.number()?;
            if shared > before.len() as u64 || shared.saturating_add(own) > STACK_DEPTH_MAX as u64 {
                return Err(damaged("a stack is longer than stacks are"));
            }
            let (shared, own) = (shared as usize, own as usize);
            let start = self.words.len();
            if start + shared + own > STACK_WORDS_MAX {
                return Err(FormatError::TooLarge("the stacks in it"));
            }
            for word in bytes.take(own * width)?.chunks_exact(width).rev() {
                let mut number = [0; 4];
                number[..width].copy_from_slice(word);
                let number = u32::from_le_bytes(number);
                self.frame(number)?;
                self.words.push(number);
            }
            self.words
                .extend_from_within(before.end - shared..before.end);
            before = start..self.words.len();
            self.starts.push(self.words.len() as u32);
        }
        Ok(())
    }

    /// Returns the store's id of a module of the file.
    pub(super) fn module_id(&self, number: u32) -> ModuleId {
        ModuleId(self.first_number + number)
    }

    /// Returns the store's id of a process of the file.
    pub(super) fn process_id(&self, number: u32) -> ProcessId {
        ProcessId(self.first_number + number)
    }

    /// Number of stacks defined so far.
    pub(super) fn stacks(&self) -> usize {
        self.starts.len() - 1
    }

    /// Replaces the contents of `frames` by the frames of a stack.
    pub(super) fn stack(&self, number: u32, frames: &mut Vec<Frame>) -> Result<(), FormatError> {
        let at = number as usize;
        let bounds = self.starts.get(at..at + 2);
        let Some([start, end]) = bounds else {
            return Err(damaged("a stack is used that it does not have"));
        };
        frames.clear();
        for word in &self.words[*start as usize..*end as usize] {
            frames.extend(word.checked_sub(1).map(|at| self.frames[at as usize]));
        }
        Ok(())
    }

    /// Returns an error if there is no room for one more module or process.
    pub(super) fn check_people(&self, count: u32) -> Result<(), FormatError> {
        check_room(
            count as usize,
            PEOPLE_MAX,
            "the processes and modules in it",
        )
    }
}

fn check_room(len: usize, max: usize, what: &'static str) -> Result<(), FormatError> {
    if len < max {
        Ok(())
    } else {
        Err(FormatError::TooLarge(what))
    }
}
