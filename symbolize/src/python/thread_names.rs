//! The names that a program gave its threads with `threading.Thread`. The module `threading` has
//! all running threads in its `_active`, by their `pthread_t`.
//!
//! The process is not stopped, and its memory may change meanwhile: an entry that has changed when
//! it is read again is left out.

use std::collections::HashMap;

use super::dict::{Item, read_attributes, read_dict, read_word};
use super::layout::Layout;
use super::memory::{Lack, Memory, is_alive};
use super::modules::{MODULE_DICT, find_modules, value_of};
use super::text::read_text;

/// Maximum number of threads whose names are read.
const NAMES_MAX: usize = 1024;

/// Returns the dictionaries of the module `threading`, one for each interpreter of the process that
/// has imported it.
pub fn find_threading(
    memory: &impl Memory,
    runtime: u64,
    layout: &Layout,
) -> Result<Vec<u64>, Lack> {
    let modules = find_modules(memory, runtime, layout, "threading")?;
    let dict = |module: u64| read_word(memory, module.wrapping_add(MODULE_DICT));
    modules.into_iter().map(dict).collect()
}

/// Reads the names of threads by their `pthread_t`, from a module's dictionary that
/// [`find_threading`] found. `again` is the same memory without any cached blocks.
pub fn read_thread_names(
    memory: &impl Memory,
    again: &impl Memory,
    threading: u64,
    layout: &Layout,
) -> Result<HashMap<u64, String>, Lack> {
    let items = read_dict(memory, threading, layout)?;
    let Some(active) = value_of(memory, &items, "_active", layout) else {
        return Ok(HashMap::new());
    };
    let threads = read_dict(memory, active, layout)?;
    let mut names = HashMap::new();
    for item in threads
        .iter()
        .filter(|item| item.value != 0)
        .take(NAMES_MAX)
    {
        // The hash of an integer is the integer itself.
        if let (Some(pthread), Ok(name)) = (item.hash, name_of(memory, item.value, layout)) {
            names.insert(pthread, name);
        }
    }
    let after = read_dict(again, active, layout)?;
    let is_there = |pthread: &u64| {
        let own = |items: &[Item]| {
            items
                .iter()
                .copied()
                .find(|item| item.hash == Some(*pthread))
        };
        own(&threads) == own(&after)
    };
    names.retain(|pthread, _| is_there(pthread));
    Ok(names)
}

/// Reads the `_name` of a `threading.Thread`.
fn name_of(memory: &impl Memory, thread: u64, layout: &Layout) -> Result<String, Lack> {
    const NO_THREAD: Lack = Lack::Implausible("a thread of the module threading");
    if !is_alive(&memory.read(thread, 8)?) {
        return Err(NO_THREAD);
    }
    let attributes = read_attributes(memory, thread, layout)?;
    let name = value_of(memory, &attributes, "_name", layout).ok_or(NO_THREAD)?;
    read_text(memory, name, layout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::in_words::{VERSION, memory, text};

    /// The names in a memory with these words.
    fn names(words: &[(u64, u64)]) -> Result<HashMap<u64, String>, Lack> {
        let memory = memory(words);
        let layout = Layout::of(VERSION, &memory, 0)?;
        read_thread_names(&memory, &memory, DICT, &layout)
    }

    const DICT: u64 = 0x1_0000;
    const KEYS: u64 = 0x2_0000;
    const ACTIVE: u64 = 0x3_0000;
    const ACTIVE_KEYS: u64 = 0x4_0000;
    const THREAD: u64 = 0x5_0000;
    const TYPE: u64 = 0x6_0000;
    const TYPE_KEYS: u64 = 0x7_0000;
    const VALUES: u64 = 0x8_0000;
    const TEXTS: u64 = 0x9_0000;

    /// The module `threading` of 3.12 with one thread, whose attributes are in an array.
    fn one_thread() -> Vec<(u64, u64)> {
        let mut words = vec![
            (DICT + 32, KEYS),
            (KEYS + 8, 1 << 16 | 3 << 8),
            (KEYS + 24, 1),
            (KEYS + 40, TEXTS),
            (KEYS + 48, ACTIVE),
            (ACTIVE + 32, ACTIVE_KEYS),
            (ACTIVE_KEYS + 8, 3 << 8),
            (ACTIVE_KEYS + 24, 1),
            (ACTIVE_KEYS + 40, 0x7f00_0000_1700),
            (ACTIVE_KEYS + 48, 0x1234),
            (ACTIVE_KEYS + 56, THREAD),
            (THREAD, 1),
            (THREAD + 8, TYPE),
            (THREAD - 24, VALUES - 1),
            (TYPE + 880, TYPE_KEYS),
            (TYPE_KEYS + 8, 2 << 16 | 3 << 8),
            (TYPE_KEYS + 24, 1),
            (TYPE_KEYS + 40, TEXTS + 0x100),
            (VALUES, TEXTS + 0x200),
        ];
        words.extend(text(TEXTS, "_active"));
        words.extend(text(TEXTS + 0x100, "_name"));
        words.extend(text(TEXTS + 0x200, "worker"));
        words
    }

    #[test]
    fn a_thread_and_its_name() {
        let found = names(&one_thread()).unwrap();
        assert_eq!(found, [(0x7f00_0000_1700, "worker".into())].into());
    }

    #[test]
    fn what_is_none_has_no_name() {
        let with = |at: u64, value: u64| {
            let mut words = one_thread();
            words.push((at, value));
            names(&words)
        };
        let none = Ok(HashMap::new());
        // A freed object; an entry without a value; a name that is not a string; no names at all.
        assert_eq!(with(THREAD, 0), none);
        assert_eq!(with(VALUES, 0), none);
        assert_eq!(with(TEXTS + 0x200 + 32, 0), none);
        assert_eq!(with(TYPE_KEYS + 24, u64::MAX), none);
        assert_eq!(with(TYPE_KEYS + 8, 0xff00), none);
        assert_eq!(with(THREAD - 24, u64::MAX), none);
        let implausible = Err(Lack::Implausible("a dictionary"));
        assert_eq!(with(KEYS + 24, 1 << 40), implausible);
    }
}
