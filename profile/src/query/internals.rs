//! What an interpreter does itself: its own functions on a stack that has functions of the
//! language that it runs. They are folded, which is to say charged to the function that they
//! work for, unless the filter says [`show:internals`](crate::filter::Clause::ShowInternals).

use crate::filter::Clause;
use crate::{Filter, FrameId, FrameKind, FunctionId, ModuleId, View};
use std::collections::HashMap;

/// Which functions are an interpreter's own, and which are those that it runs.
#[derive(Debug)]
pub(super) struct Internals {
    /// By function.
    roles: Vec<Role>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Other,
    /// A function that an interpreter runs.
    Run,
    /// An interpreter's own function.
    Own,
}

impl Internals {
    /// `None` if nothing is to be folded.
    pub(super) fn new(view: &View, filter: &Filter) -> Option<Self> {
        if filter.clauses().contains(&Clause::ShowInternals) {
            return None;
        }
        let owners = view.tables.names.owners();
        let is_run = |id: FrameId| {
            let frame = view.frame(id);
            frame.is_some_and(|frame| frame.kind == FrameKind::Python)
        };
        if !(0..owners.len() as u32).map(FrameId).any(is_run) {
            return None;
        }
        let mut interpreters = HashMap::new();
        let role = |id: FunctionId| {
            let Some(frame) = view.frame(id).filter(|_| id.0 >= crate::intern::RESERVED) else {
                return Role::Other;
            };
            match frame.kind {
                FrameKind::Python => Role::Run,
                FrameKind::User if is_own(view, id, frame.module, &mut interpreters) => Role::Own,
                _ => Role::Other,
            }
        };
        let roles = (0..owners.len() as u32).map(FrameId).map(role).collect();
        Some(Self { roles })
    }

    /// Whether some function of a stack is one that an interpreter runs: only there its own
    /// are folded. What it does before the first and after the last has nobody else to
    /// be charged to.
    pub(super) fn fold_in(&self, mut functions: impl Iterator<Item = FunctionId>) -> bool {
        functions.any(|id| self.roles[id.0 as usize] == Role::Run)
    }

    /// Whether a function is an interpreter's own.
    pub(super) fn is_own(&self, function: FunctionId) -> bool {
        self.roles[function.0 as usize] == Role::Own
    }
}

fn is_own(
    view: &View,
    id: FunctionId,
    module: ModuleId,
    interpreters: &mut HashMap<ModuleId, bool>,
) -> bool {
    let tables = &*view.tables;
    let is_interpreter = interpreters
        .entry(module)
        .or_insert_with(|| is_interpreter(&tables.modules.get(module).name));
    *is_interpreter && !tables.names.name(id).is_some_and(|name| is_of_memory(name))
}

/// Whether a file of this name is CPython: `python3.12`, `libpython3.12.so.1.0`.
fn is_interpreter(name: &str) -> bool {
    let rest = name.strip_prefix("lib").unwrap_or(name);
    let Some(rest) = rest.strip_prefix("python3.") else {
        return false;
    };
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    // Builds without the global lock, and those for debugging.
    let rest = rest.trim_start_matches(['t', 'd']);
    rest.is_empty() || rest.starts_with(".so")
}

/// Whether a function of CPython collects garbage: that is work for no function in particular,
/// and what a user can do something about.
fn is_of_memory(name: &str) -> bool {
    name.starts_with("gc_collect_") || name.starts_with("_PyGC_Collect")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_cpython() {
        for (name, expected) in [
            ("python3.12", true),
            ("libpython3.8.so.1.0", true),
            ("libpython3.14t.so.1.0", true),
            ("python3.13d", true),
            ("python3", false),
            ("python3.12-config", false),
            ("libpythonic.so", false),
            ("_json.cpython-312-x86_64-linux-gnu.so", false),
        ] {
            assert_eq!(is_interpreter(name), expected, "{name}");
        }
    }
}
