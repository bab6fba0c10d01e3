//! The internals of an interpreter: its own functions on a stack that also has functions of the
//! language that it runs. They are folded, that is charged to the function that they work for,
//! unless the filter says [`show:internals`](crate::filter::Clause::ShowInternals).

use crate::filter::Clause;
use crate::intern::RESERVED;
use crate::{Filter, Frame, FrameId, FrameKind, FunctionId, ModuleId, View};
use std::collections::HashMap;

/// Which functions are an interpreter's own, and which ones it runs.
#[derive(Debug)]
pub(super) struct Internals {
    /// Role of each function, by number.
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
    /// Classifies all functions; `None` if nothing is to be folded.
    ///
    /// It visits every frame of the view for each selection. So the only look-up for a frame is its
    /// module, and only if that differs from the module of the frame before.
    pub(super) fn new(view: &View, filter: &Filter) -> Option<Self> {
        if filter.clauses().contains(&Clause::ShowInternals) {
            return None;
        }
        let frames = &view.tables.frames;
        if !frames.iter().any(|frame| frame.kind == FrameKind::Python) {
            return None;
        }
        let mut last = None;
        let mut interpreters = HashMap::new();
        let mut is_in_one = |module: ModuleId| match last {
            Some((known, answer)) if known == module => answer,
            _ => {
                let answer = *interpreters
                    .entry(module)
                    .or_insert_with(|| is_interpreter(&view.tables.modules.get(module).name));
                last = Some((module, answer));
                answer
            }
        };
        let role = |(number, frame): (u32, Frame)| match frame.kind {
            FrameKind::Python => Role::Run,
            FrameKind::User if number >= RESERVED && is_in_one(frame.module) => {
                let name = view.tables.names.name(FrameId(number));
                if name.is_some_and(|name| is_of_memory(name)) {
                    Role::Other
                } else {
                    Role::Own
                }
            }
            _ => Role::Other,
        };
        let roles = (0..).zip(frames.iter()).map(role).collect();
        Some(Self { roles })
    }

    /// Whether a stack has a function that an interpreter runs: only there its own functions are
    /// folded. Before the first and after the last one there is no other function to charge.
    pub(super) fn fold_in(&self, mut functions: impl Iterator<Item = FunctionId>) -> bool {
        functions.any(|id| self.roles[id.0 as usize] == Role::Run)
    }

    /// Whether a function is an interpreter's own.
    pub(super) fn is_own(&self, function: FunctionId) -> bool {
        self.roles[function.0 as usize] == Role::Own
    }
}

/// Whether a file of this name is CPython: `python3.12`, `libpython3.12.so.1.0`.
fn is_interpreter(name: &str) -> bool {
    let rest = name.strip_prefix("lib").unwrap_or(name);
    let Some(rest) = rest.strip_prefix("python3.") else {
        return false;
    };
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    // Suffixes of builds without the global lock, and of debug builds.
    let rest = rest.trim_start_matches(['t', 'd']);
    rest.is_empty() || rest.starts_with(".so")
}

/// Whether a function of CPython collects garbage. Such work belongs to no function in particular,
/// and a user can reduce it, so it is not folded.
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
