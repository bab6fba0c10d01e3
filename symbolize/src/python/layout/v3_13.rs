//! CPython 3.13: the process tells its offsets itself, at the start of `_PyRuntime`
//! (`_Py_DebugOffsets` in `Include/internal/pycore_runtime.h`).

use super::{CodeLayout, FrameLayout, Groups, Layout, LineTable, ThreadLayout};
use crate::python::Version;
use crate::python::memory::{Lack, Memory, word};

const COOKIE: &[u8; 8] = b"xdebugpy";

/// What is read of the offsets: up to `code_object.co_code_adaptive`.
const BYTES: u32 = 352;

/// No structure that is told of is larger; `_PyRuntime` holds an interpreter.
const OFFSET_MAX: u64 = 1 << 20;

pub fn read(version: Version, memory: &impl Memory, runtime: u64) -> Result<Layout, Lack> {
    let bytes = memory.read(runtime, BYTES)?;
    if bytes.get(..8) != Some(COOKIE) || Version::of_number(word(&bytes, 8)?) != Some(version) {
        return Err(Lack::Implausible("the offsets of Python 3.13"));
    }
    if word(&bytes, 16)? != 0 {
        return Err(Lack::FreeThreaded);
    }
    let offset = |at| match word(&bytes, at)? {
        offset @ 0..OFFSET_MAX => Ok(offset as u32),
        _ => Err(Lack::Implausible("the offsets of Python 3.13")),
    };
    let layout = Layout {
        runtime_interpreters: offset(40)?,
        interpreter_next: offset(64)?,
        interpreter_threads: offset(72)?,
        thread: ThreadLayout {
            next: offset(168)?,
            frame: offset(184)?,
            c_frame: None,
            thread_id: offset(192)?,
            native_thread_id: Some(offset(200)?),
        },
        frame: FrameLayout {
            bytes: 72,
            previous: offset(232)?,
            code: offset(240)?,
            instruction: offset(248)?,
            instruction_bytes: None,
            groups: Groups::OwnedByC(offset(264)?),
        },
        code: CodeLayout {
            bytes: 208,
            first_line: offset(312)?,
            file: offset(280)?,
            name: offset(288)?,
            qualified_name: Some(offset(296)?),
            line_table: offset(304)?,
            lines: LineTable::Locations,
            identity: offset(280)?,
            start: offset(344)?,
        },
        ascii_data: 40,
        wide_data: 56,
    };
    match is_plausible(&layout) {
        true => Ok(layout),
        false => Err(Lack::Implausible("the offsets of Python 3.13")),
    }
}

/// Whether all of a frame and of a code object that is wanted is in the bytes that are read,
/// in words where words are read.
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
        && code.start <= code.bytes
        && of_thread.iter().all(|at| *at < 4096)
        && thread.native_thread_id.is_some_and(|at| at < 4096)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;

    /// The offsets of CPython 3.13.0.
    fn offsets() -> Vec<u8> {
        let mut bytes = vec![0; BYTES as usize];
        bytes[..8].copy_from_slice(COOKIE);
        for (at, offset) in [
            (8, 0x030d_00f0_u64),
            (40, 632),
            (72, 7344),
            (168, 8),
            (184, 72),
            (192, 152),
            (200, 160),
            (232, 8),
            (240, 0),
            (248, 56),
            (264, 70),
            (280, 112),
            (288, 120),
            (296, 128),
            (304, 136),
            (312, 68),
            (344, 200),
        ] {
            bytes[at..at + 8].copy_from_slice(&offset.to_le_bytes());
        }
        bytes
    }

    fn layout(bytes: &[u8]) -> Result<Layout, Lack> {
        let memory = |_, length| {
            bytes
                .get(..length as usize)
                .map(Vec::from)
                .ok_or(Reason::FileGone)
        };
        let version = Version {
            major: 3,
            minor: 13,
        };
        read(version, &memory, 0x1000)
    }

    #[test]
    fn a_process_tells_its_offsets() {
        let layout = layout(&offsets()).unwrap();
        assert_eq!(layout.interpreter_threads, 7344);
        assert_eq!(layout.frame.groups, Groups::OwnedByC(70));
        assert_eq!(layout.code.start, 200);
    }

    #[test]
    fn offsets_that_cannot_be_are_not_believed() {
        let with = |at: usize, value: u64| {
            let mut bytes = offsets();
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            layout(&bytes)
        };
        assert_eq!(with(16, 1), Err(Lack::FreeThreaded));
        let implausible = Err(Lack::Implausible("the offsets of Python 3.13"));
        for (at, value) in [
            (0, 0),
            (8, 0x030e_00f0),
            (232, 66),
            (232, 72),
            (280, 4000),
            (40, 1 << 40),
        ] {
            assert_eq!(with(at, value), implausible, "{value} at {at}");
        }
    }
}
