//! The modules that a process has imported.

use super::dict::{Item, read_dict, read_word};
use super::layout::Layout;
use super::memory::{Lack, Memory};
use super::text::is_text;
use super::threads::read_interpreters;

/// Offset of `md_dict` in `PyModuleObject`.
pub const MODULE_DICT: u64 = 16;

/// Returns the modules with a name, one for each interpreter of the process that has imported it,
/// the newest interpreter first.
pub fn find_modules(
    memory: &impl Memory,
    runtime: u64,
    layout: &Layout,
    name: &str,
) -> Result<Vec<u64>, Lack> {
    let mut found = Vec::new();
    for interpreter in read_interpreters(memory, runtime, layout)? {
        let modules = read_word(
            memory,
            interpreter.wrapping_add(layout.interpreter_modules.into()),
        )?;
        if modules == 0 {
            // The interpreter has just been created.
            continue;
        }
        let modules = read_dict(memory, modules, layout)?;
        found.extend(value_of(memory, &modules, name, layout));
    }
    Ok(found)
}

/// Returns the value for a key that is a string of ASCII characters.
pub fn value_of(memory: &impl Memory, items: &[Item], key: &str, layout: &Layout) -> Option<u64> {
    let has_it = |item: &&Item| item.value != 0 && is_text(memory, item.key, key, layout);
    Some(items.iter().find(has_it)?.value)
}
