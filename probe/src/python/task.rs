//! Decodes tasks of asyncio, which a record has after the frames: which one ran (by its coroutine's
//! frame), the name that the program has given it, and the tasks that await it.

use probe_ebpf::python::{Entry, TASK_ENTRIES, TASK_TEXT};
use std::sync::Arc;
use symbolize::sanitize;

/// The prefix of the names that asyncio itself gives to tasks, before a number.
const NUMBERED: &str = "Task-";

/// A task that may be the one that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The address of its coroutine's frame: it is one of the thread's frames if it ran.
    pub frame: u64,
    /// The name that the program has given it; `None` if that is only a number.
    pub name: Option<Arc<str>>,
    /// What awaits it, then what awaits that, and so on.
    pub awaiting: Vec<Awaiting>,
}

/// What awaits a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Awaiting {
    /// One task.
    Task {
        /// The name that the program has given it; `None` if that is only a number.
        name: Option<Arc<str>>,
        /// Where its coroutine will continue; `None` if that could not be read.
        at: Option<Entry>,
    },
    /// Number of tasks, which are not identified; 0 if the number is unknown.
    Several(u64),
}

/// Splits a record into the frames, and the tasks after them.
pub fn split(entries: &[Entry]) -> (&[Entry], Vec<Task>) {
    let first = entries.iter().position(|entry| entry.is_task());
    let (frames, mut rest) = entries.split_at(first.unwrap_or(entries.len()));
    let mut tasks: Vec<Task> = Vec::new();
    while let [entry, behind @ ..] = rest {
        if !entry.is_task() {
            // A valid record does not contain this.
            break;
        }
        let last = tasks.last_mut();
        if let Some(count) = entry.are_several() {
            if let Some(task) = last {
                task.awaiting.push(Awaiting::Several(count));
            }
            rest = behind;
            continue;
        }
        let Some((behind, after)) = behind.split_at_checked(TASK_ENTRIES - 1) else {
            break;
        };
        let (text, at) = (&behind[..TASK_ENTRIES - 2], behind[TASK_ENTRIES - 2]);
        let name = name(*entry, text);
        rest = after;
        match (name, entry.awaits(), last) {
            (Ok(name), true, Some(task)) => {
                let at = at.is_frame().then_some(at);
                task.awaiting.push(Awaiting::Task { name, at });
            }
            (Ok(name), false, _) => tasks.push(Task {
                frame: entry.address(),
                name,
                awaiting: Vec::new(),
            }),
            // An entry without a valid name is not a task, and neither is anything that would await
            // it.
            _ => break,
        }
    }
    (frames, tasks)
}

/// The error for an entry whose name is not a valid string, so that it is not a task.
struct NoTask;

/// Returns the name that the program has given to the task of an entry; `None` if that is a number.
fn name(entry: Entry, text: &[Entry]) -> Result<Option<Arc<str>>, NoTask> {
    let Some((length, state)) = entry.task_name() else {
        return Ok(None);
    };
    let name = decode(text, length, state).ok_or(NoTask)?;
    let is_number = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
    let is_own = name.strip_prefix(NUMBERED).is_none_or(|it| !is_number(it));
    Ok((is_own && !name.is_empty()).then(|| name.into()))
}

/// Decodes `length` characters of a string, as far as they were copied.
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

    const FRAME: u64 = 0x7f00_1234_5670;
    const END: Entry = Entry::end(FRAME);
    const AT: Entry = Entry::frame(0x7f00_0000_1000, 8, 3, 0);

    /// The entries of a task whose name is this kind of string.
    fn named(awaits: u64, bytes: &[u8], length: u32, kind: u32) -> Vec<Entry> {
        let mut room = [0xff; TASK_TEXT];
        room[..bytes.len()].copy_from_slice(bytes);
        let state = kind << 2 | 1 << 5;
        let mut entries = vec![Entry::task(FRAME, awaits, 1, length, state)];
        entries.extend(room.as_chunks::<16>().0.iter().map(|pair| {
            let words = pair.as_chunks::<8>().0;
            Entry::from_words(u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]))
        }));
        entries.push(AT);
        entries
    }

    fn name(bytes: &[u8], length: u32, kind: u32) -> Option<String> {
        let mut entries = vec![END];
        entries.extend(named(0, bytes, length, kind));
        let (frames, tasks) = split(&entries);
        assert_eq!(frames, [END]);
        let task = tasks.first()?;
        assert_eq!((task.frame, &*task.awaiting), (FRAME, &[][..]));
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
    fn what_is_no_name_is_no_task_and_ends_what_awaits() {
        for kind in [0, 3, 7] {
            assert_eq!(name(b"worker", 6, kind), None);
        }
        let mut entries = vec![END];
        entries.extend(named(0, b"worker", 6, 1));
        assert_eq!(split(&entries[..4]), (&entries[..1], vec![]));
        entries.extend(named(1, b"worker", 6, 7));
        entries.extend(named(1, b"worker", 6, 1));
        let (_, tasks) = split(&entries);
        assert_eq!((tasks.len(), tasks[0].awaiting.len()), (1, 0));
    }

    #[test]
    fn tasks_and_what_awaits_them() {
        let mut entries = vec![AT, END];
        entries.extend(named(0, b"query", 5, 1));
        entries.extend(named(1, b"Task-2", 6, 1));
        let mut unread = named(1, b"serve", 5, 1);
        *unread.last_mut().unwrap() = Entry::from_words(0, 0);
        entries.extend(unread);
        entries.push(Entry::several(3));
        entries.extend(named(0, b"other", 5, 1));
        let task = |name: Option<&str>, at| Awaiting::Task {
            name: name.map(Arc::from),
            at,
        };
        let (frames, tasks) = split(&entries);
        assert_eq!(frames, [AT, END]);
        let names: Vec<_> = tasks.iter().map(|task| task.name.as_deref()).collect();
        assert_eq!(names, [Some("query"), Some("other")]);
        let first = [task(None, Some(AT)), task(Some("serve"), None)];
        assert_eq!(tasks[0].awaiting[..2], first);
        assert_eq!(tasks[0].awaiting[2..], [Awaiting::Several(3)]);
        assert_eq!(tasks[1].awaiting, []);
    }

    #[test]
    fn records_that_nobody_writes_end_somewhere() {
        assert_eq!(split(&[END]), (&[END][..], vec![]));
        let alone = [END, Entry::several(2), AT, Entry::task(FRAME, 1, 0, 0, 0)];
        assert_eq!(split(&alone), (&alone[..1], vec![]));
    }

    #[test]
    fn a_task_without_a_name() {
        let mut entries = vec![END];
        entries.extend(named(0, b"", 0, 1));
        entries[1] = Entry::task(FRAME, 0, 0, 7, 1);
        let task = Task {
            frame: FRAME,
            name: None,
            awaiting: Vec::new(),
        };
        assert_eq!(split(&entries), (&entries[..1], vec![task]));
    }
}
