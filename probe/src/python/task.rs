//! The task of asyncio that a thread ran, as a record has it: behind the frames, which of them is
//! its coroutine and what the program calls it.

use probe_ebpf::python::{Entry, TASK_ENTRIES, TASK_TEXT};
use std::sync::Arc;
use symbolize::sanitize;

/// How asyncio calls a task itself, with a number.
const NUMBERED: &str = "Task-";

/// The task that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The code object of its coroutine.
    pub code: u64,
    /// What the program calls it; `None` if that is a number only.
    pub name: Option<Arc<str>>,
}

/// The frames of a record, and the task behind them.
pub fn split(entries: &[Entry]) -> (&[Entry], Option<Task>) {
    let Some(at) = entries.iter().position(|entry| entry.is_task()) else {
        return (entries, None);
    };
    let (frames, rest) = entries.split_at(at);
    (frames, read(rest[0], &rest[1..]))
}

/// The task of an entry; `None` if its name is none.
fn read(entry: Entry, text: &[Entry]) -> Option<Task> {
    let code = entry.code();
    let Some((length, state)) = entry.task_name() else {
        return Some(Task { code, name: None });
    };
    let name = decode(text.get(..TASK_ENTRIES - 1)?, length, state)?;
    let is_number = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
    let is_own = name.strip_prefix(NUMBERED).is_none_or(|it| !is_number(it));
    Some(Task {
        code,
        name: (is_own && !name.is_empty()).then(|| name.into()),
    })
}

/// So many characters of a string, as far as they are there.
fn decode(text: &[Entry], length: u32, state: u32) -> Option<String> {
    let words = text.iter().flat_map(|entry| {
        let (first, second) = entry.words();
        [first, second]
    });
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    // Two bits of `interned`, three of `kind`, one of `compact`.
    let (kind, is_compact) = (state >> 2 & 7, state >> 5 & 1 != 0);
    let width = match kind {
        1 | 2 | 4 if is_compact => kind as usize,
        _ => return None,
    };
    let room = TASK_TEXT / width;
    let is_cut = length as usize > room;
    let character = |unit: &[u8]| {
        let mut bytes = [0; 4];
        bytes[..width].copy_from_slice(unit);
        char::from_u32(u32::from_le_bytes(bytes)).unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    let units = bytes.chunks_exact(width).take(length as usize);
    let mut name: String = units.map(character).collect();
    if is_cut {
        name.pop();
        name.push('…');
    }
    Some(sanitize(name.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: u64 = 0x7f00_1234_5670;

    /// A record with one frame and a task of a name of this kind of string.
    fn named(bytes: &[u8], length: u32, kind: u32) -> Vec<Entry> {
        let mut room = [0xff; TASK_TEXT];
        room[..bytes.len()].copy_from_slice(bytes);
        let state = kind << 2 | 1 << 5;
        let mut entries = vec![Entry::END, Entry::task(CODE, 1, length, state)];
        entries.extend(room.as_chunks::<16>().0.iter().map(|pair| {
            let words = pair.as_chunks::<8>().0;
            Entry::from_words(u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]))
        }));
        entries
    }

    fn name(bytes: &[u8], length: u32, kind: u32) -> Option<String> {
        let entries = named(bytes, length, kind);
        let (frames, task) = split(&entries);
        assert_eq!(frames, [Entry::END]);
        let task = task?;
        assert_eq!(task.code, CODE);
        Some(task.name.as_deref().unwrap_or("(a number)").into())
    }

    #[test]
    fn names_of_every_width() {
        assert_eq!(name(b"worker", 6, 1).unwrap(), "worker");
        assert_eq!(name(b"na\xefve", 5, 1).unwrap(), "naïve");
        let wide: Vec<u8> = "λx".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(name(&wide, 2, 2).unwrap(), "λx");
        let widest: Vec<u8> = "🐍"
            .chars()
            .flat_map(|c| u32::from(c).to_le_bytes())
            .collect();
        assert_eq!(name(&widest, 1, 4).unwrap(), "🐍");
        assert_eq!(name(b"Task-17", 7, 1).unwrap(), "(a number)");
        assert_eq!(name(b"", 0, 1).unwrap(), "(a number)");
        assert_eq!(name(b"Task-one", 8, 1).unwrap(), "Task-one");
        let long = [b'x'; TASK_TEXT];
        assert_eq!(name(&long, 48, 1).unwrap(), "x".repeat(48));
        assert_eq!(name(&long, u32::MAX, 1).unwrap(), "x".repeat(47) + "…");
    }

    #[test]
    fn what_is_no_name_is_no_task() {
        for kind in [0, 3, 7] {
            assert_eq!(name(b"worker", 6, kind), None);
        }
        let entries = named(b"worker", 6, 1);
        assert_eq!(split(&entries[..4]), (&entries[..1], None));
    }

    #[test]
    fn a_task_without_a_name_and_no_task() {
        let entries = [Entry::END, Entry::task(CODE, 0, 7, 1)];
        let task = Task {
            code: CODE,
            name: None,
        };
        assert_eq!(split(&entries), (&entries[..1], Some(task)));
        assert_eq!(split(&entries[..1]), (&entries[..1], None));
    }
}
