//! From 3.13 on a process has its own offsets at the start of `_PyRuntime` (`_Py_DebugOffsets` in
//! `Include/internal/pycore_debug_offsets.h`). That structure differs between versions.

use super::{
    Attributes, CodeLayout, FrameLayout, Gil, Groups, IDENTITY_REACH, Layout, LineTable, Objects,
    TaskLayout, ThreadLayout,
};
use crate::python::Version;
use crate::python::memory::{Lack, Memory, word};
use crate::wire::{Taken, put_u32};

const COOKIE: &[u8; 8] = b"xdebugpy";

/// Number of bytes of it that are read: up to `code_object.co_code_adaptive` of 3.15.
const BYTES: u32 = 456;

/// Maximum offset: no structure is larger; `_PyRuntime` contains an interpreter.
const OFFSET_MAX: u64 = 1 << 20;

/// Positions of `version` and `free_threaded`, in all versions.
const VERSION: u32 = 8;
const FREE_THREADED: u32 = 16;

const IMPLAUSIBLE: Lack = Lack::Implausible("the offsets of its version");

/// The offsets that a process tells.
type Offsets = [u32; 19];

/// Positions of offsets in `_Py_DebugOffsets`.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    /// `runtime_state.interpreters_head`.
    pub runtime_interpreters: u32,
    /// `interpreter_state.next`.
    pub interpreter_next: u32,
    /// `interpreter_state.threads_head`.
    pub interpreter_threads: u32,
    /// `interpreter_state.imports_modules`.
    pub interpreter_modules: u32,
    /// `interpreter_state.ceval_gil`.
    pub gil: u32,
    /// `thread_state.next`.
    pub thread_next: u32,
    /// `thread_state.current_frame`.
    pub thread_frame: u32,
    /// `thread_state.thread_id`; `native_thread_id` follows it.
    pub thread_id: u32,
    /// `interpreter_frame.previous`; `executable`, `instr_ptr`, `localsplus` and `owner` follow it.
    pub frame_previous: u32,
    /// `code_object.filename`; `name`, `qualname`, `linetable` and `firstlineno` follow it.
    pub code_file: u32,
    /// `code_object.co_code_adaptive`.
    pub code_start: u32,
    /// Sizes of a frame and of a code object, up to the last field that is read.
    pub frame_bytes: u32,
    pub code_bytes: u32,
    /// `ht_cached_keys` of `PyHeapTypeObject`, which the process does not have.
    pub cached_keys: u32,
    /// Whether the chain of every thread ends with a frame without a call.
    pub has_base: bool,
    /// Tasks of asyncio, if its own file does not describe them.
    pub tasks: Option<TaskLayout>,
}

impl Told {
    /// Reads the layout of a process of this version.
    pub fn read(
        &self,
        version: Version,
        memory: &impl Memory,
        runtime: u64,
    ) -> Result<Layout, Lack> {
        let bytes = memory.read(runtime, BYTES)?;
        let own = Version::of_number(word(&bytes, VERSION)?);
        if bytes.get(..8) != Some(COOKIE) || own != Some(version) {
            return Err(IMPLAUSIBLE);
        }
        if word(&bytes, FREE_THREADED)? != 0 {
            return Err(Lack::FreeThreaded);
        }
        let mut offsets = Offsets::default();
        for (offset, at) in offsets.iter_mut().zip(self.positions()) {
            *offset = match word(&bytes, at)? {
                told @ 0..OFFSET_MAX => told as u32,
                _ => return Err(IMPLAUSIBLE),
            };
        }
        self.layout(offsets).ok_or(IMPLAUSIBLE)
    }

    /// Positions of the offsets that [`Told::layout`] takes, in the same order.
    fn positions(&self) -> Offsets {
        [
            self.runtime_interpreters,
            self.interpreter_next,
            self.interpreter_threads,
            self.interpreter_modules,
            self.gil,
            self.thread_next,
            self.thread_frame,
            self.thread_id,
            self.thread_id + 8,
            self.frame_previous,
            self.frame_previous + 8,
            self.frame_previous + 16,
            self.frame_previous + 32,
            self.code_file,
            self.code_file + 8,
            self.code_file + 16,
            self.code_file + 24,
            self.code_file + 32,
            self.code_start,
        ]
    }

    /// Returns the layout with these offsets; `None` if they are not plausible.
    fn layout(&self, offsets: Offsets) -> Option<Layout> {
        let [
            runtime_interpreters,
            interpreter_next,
            interpreter_threads,
            interpreter_modules,
            gil,
            thread_next,
            thread_frame,
            thread_id,
            native_thread_id,
            previous,
            frame_code,
            instruction,
            owner,
            file,
            name,
            qualified_name,
            line_table,
            first_line,
            start,
        ] = offsets;
        let layout = Layout {
            runtime_interpreters,
            interpreter_next,
            interpreter_threads,
            thread: ThreadLayout {
                next: thread_next,
                frame: thread_frame,
                c_frame: None,
                thread_id,
                native_thread_id: Some(native_thread_id),
            },
            frame: FrameLayout {
                bytes: self.frame_bytes,
                previous,
                code: frame_code,
                instruction,
                instruction_bytes: None,
                groups: Groups::OwnedByC(owner),
                has_base: self.has_base,
            },
            code: CodeLayout {
                bytes: self.code_bytes,
                first_line,
                file,
                name,
                qualified_name: Some(qualified_name),
                line_table,
                lines: LineTable::Locations,
                identity: file,
                start,
            },
            interpreter_modules,
            gil: Gil::Interpreter(gil),
            objects: Objects {
                attributes: Attributes::Inline,
                cached_keys: self.cached_keys,
            },
            ascii_data: 40,
            wide_data: 56,
            tasks: self.tasks,
        };
        let are_small = offsets.iter().all(|offset| u64::from(*offset) < OFFSET_MAX);
        (are_small && is_plausible(&layout)).then_some(layout)
    }

    /// Encodes the offsets of a layout that [`Told::layout`] has made.
    pub fn write(&self, layout: &Layout, out: &mut Vec<u8>) {
        let Layout {
            thread,
            frame,
            code,
            ..
        } = layout;
        let (Groups::OwnedByC(owner) | Groups::Flagged(owner)) = frame.groups else {
            return;
        };
        let (Gil::Interpreter(gil) | Gil::Runtime(gil)) = layout.gil;
        let offsets: Offsets = [
            layout.runtime_interpreters,
            layout.interpreter_next,
            layout.interpreter_threads,
            layout.interpreter_modules,
            gil,
            thread.next,
            thread.frame,
            thread.thread_id,
            thread.native_thread_id.unwrap_or_default(),
            frame.previous,
            frame.code,
            frame.instruction,
            owner,
            code.file,
            code.name,
            code.name_or_qualified(),
            code.line_table,
            code.first_line,
            code.start,
        ];
        offsets.into_iter().for_each(|offset| put_u32(out, offset));
    }

    /// Decodes the result of [`Told::write`]; `None` if it is malformed, or not plausible.
    pub fn take(&self, bytes: &mut Taken<'_>) -> Option<Layout> {
        let mut offsets = Offsets::default();
        for offset in &mut offsets {
            *offset = bytes.u32()?;
        }
        self.layout(offsets)
    }
}

/// Whether all needed fields of a frame and of a code object are within the bytes that are read,
/// and words are aligned.
fn is_plausible(layout: &Layout) -> bool {
    let Layout {
        thread,
        frame,
        code,
        ..
    } = layout;
    let words = [frame.previous, frame.code, frame.instruction];
    let in_frame = |at: &u32| at.is_multiple_of(8) && at + 8 <= frame.bytes;
    let in_code = |at: &u32| at + 8 <= code.bytes;
    let owner = match frame.groups {
        Groups::OwnedByC(at) | Groups::Flagged(at) => at,
        Groups::Each => 0,
    };
    let of_thread = [thread.next, thread.frame, thread.thread_id];
    words.iter().all(in_frame)
        && owner < frame.bytes
        && [code.first_line, code.file, code.name, code.line_table]
            .iter()
            .chain(&code.qualified_name)
            .all(in_code)
        && code.identity + 32 <= code.bytes
        && is_near(code)
        && code.start <= code.bytes
        && of_thread.iter().all(|at| *at < 4096)
        && thread.native_thread_id.is_some_and(|at| at < 4096)
}

/// Whether the identity can be read together with the first line.
fn is_near(code: &CodeLayout) -> bool {
    let first = code.first_line & !7;
    code.identity >= first && code.identity - first + 32 <= IDENTITY_REACH
}

#[cfg(test)]
mod tests {
    use super::super::{v3_13, v3_14, v3_15};
    use super::*;
    use crate::Reason;

    /// Contents in CPython 3.13.0, 3.14.10 and 3.15.2: positions and offsets.
    const VERSIONS: [(u8, &Told, [u64; 14]); 3] = [
        (
            13,
            &v3_13::TOLD,
            [632, 0, 7344, 8, 72, 152, 160, 8, 0, 56, 70, 112, 68, 200],
        ),
        (
            14,
            &v3_14::TOLD,
            [808, 7272, 7344, 8, 72, 152, 160, 8, 0, 56, 74, 112, 68, 208],
        ),
        (
            15,
            &v3_15::TOLD,
            [936, 7264, 7336, 8, 72, 176, 184, 8, 0, 56, 74, 112, 68, 208],
        ),
    ];

    /// The start of `_PyRuntime` of a version.
    fn offsets((minor, told, offsets): (u8, &Told, [u64; 14])) -> Vec<u8> {
        let mut bytes = vec![0; BYTES as usize];
        bytes[..8].copy_from_slice(COOKIE);
        let places = [
            told.runtime_interpreters,
            told.interpreter_next,
            told.interpreter_threads,
            told.thread_next,
            told.thread_frame,
            told.thread_id,
            told.thread_id + 8,
            told.frame_previous,
            told.frame_previous + 8,
            told.frame_previous + 16,
            told.frame_previous + 32,
            told.code_file,
            told.code_file + 32,
            told.code_start,
        ];
        let mut put = |at: u32, value: u64| {
            bytes[at as usize..][..8].copy_from_slice(&value.to_le_bytes());
        };
        put(VERSION, 0x0300_00f0 | u64::from(minor) << 16);
        for (at, offset) in places.into_iter().zip(offsets) {
            put(at, offset);
        }
        let file = offsets[11];
        for (number, at) in (1..).zip([8, 16, 24]) {
            put(told.code_file + at, file + 8 * number);
        }
        bytes
    }

    fn layout(minor: u8, told: &Told, bytes: &[u8]) -> Result<Layout, Lack> {
        let memory = |_, length| {
            let piece = bytes.get(..length as usize);
            piece.map(Vec::from).ok_or(Reason::FileGone)
        };
        told.read(Version { major: 3, minor }, &memory, 0x1000)
    }

    #[test]
    fn a_process_tells_its_offsets() {
        for version @ (minor, told, offsets_of) in VERSIONS {
            let layout = layout(minor, told, &offsets(version)).unwrap();
            assert_eq!(u64::from(layout.interpreter_threads), offsets_of[2]);
            assert_eq!(u64::from(layout.thread.frame), offsets_of[4]);
            let owner = u32::try_from(offsets_of[10]).unwrap();
            assert_eq!(layout.frame.groups, Groups::OwnedByC(owner));
            assert_eq!(u64::from(layout.code.start), offsets_of[13]);
            let mut bytes = Vec::new();
            told.write(&layout, &mut bytes);
            assert_eq!(told.take(&mut Taken(&bytes)), Some(layout));
            assert_eq!(told.take(&mut Taken(&bytes[..bytes.len() - 1])), None);
        }
    }

    #[test]
    fn offsets_that_cannot_be_are_not_believed() {
        for version @ (minor, told, _) in VERSIONS {
            let with = |at: u32, value: u64| {
                let mut bytes = offsets(version);
                bytes[at as usize..][..8].copy_from_slice(&value.to_le_bytes());
                layout(minor, told, &bytes)
            };
            assert_eq!(with(FREE_THREADED, 1), Err(Lack::FreeThreaded));
            for (at, value) in [
                (0, 0),
                (VERSION, 0x030c_00f0),
                (told.frame_previous, 66),
                (told.frame_previous, u64::from(told.frame_bytes)),
                (told.code_file, 4000),
                // In the code object, but too far from its first line.
                (told.code_file, 40),
                (told.runtime_interpreters, 1 << 40),
            ] {
                assert_eq!(with(at, value), Err(IMPLAUSIBLE), "{value} at {at}");
            }
            let right = layout(minor, told, &offsets(version)).unwrap();
            let mut encoded = Vec::new();
            told.write(&right, &mut encoded);
            // The offsets of the frame and of the code object are among the last ten.
            for number in 9..encoded.len() / 4 {
                let mut bytes = encoded.clone();
                bytes[4 * number..][..4].copy_from_slice(&0x000f_fff0u32.to_le_bytes());
                assert_eq!(told.take(&mut Taken(&bytes)), None, "number {number}");
            }
            for number in 0..encoded.len() / 4 {
                let mut bytes = encoded.clone();
                bytes[4 * number..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
                assert_eq!(told.take(&mut Taken(&bytes)), None, "number {number}");
            }
        }
    }
}
