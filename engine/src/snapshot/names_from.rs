//! Where the names of functions are from, by displayed module name.

use std::collections::HashMap;
use symbolize::Origin;

/// The source of a module's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameSource {
    /// Kind of source; `None` if several files of that name have different ones.
    pub origin: Option<Origin>,
    /// Whether the source location of some of its code is known.
    pub has_lines: bool,
}

/// The sources of names, for every module that has names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamesFrom(HashMap<String, NameSource>);

impl NamesFrom {
    /// Adds the source of one file.
    pub fn note(&mut self, module: &str, origin: Origin, has_lines: bool) {
        let Some(known) = self.0.get_mut(module) else {
            let source = NameSource {
                origin: Some(origin),
                has_lines,
            };
            self.0.insert(module.to_owned(), source);
            return;
        };
        known.origin = known.origin.filter(|known| *known == origin);
        known.has_lines |= has_lines;
    }

    /// Returns the source of a module's names; `None` if it has no names yet.
    pub fn of(&self, module: &str) -> Option<NameSource> {
        self.0.get(module).copied()
    }

    /// Whether no module has names yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl NameSource {
    /// Returns the source in words: `debug file`, `exports`, or `several`.
    pub fn label(self) -> &'static str {
        self.origin.map_or("several", Origin::label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_name_agree_or_are_several() {
        let mut all = NamesFrom::default();
        all.note("libc.so.6", Origin::DebugFile, false);
        all.note("libc.so.6", Origin::DebugFile, true);
        let libc = all.of("libc.so.6").unwrap();
        assert_eq!((libc.label(), libc.has_lines), ("debug file", true));
        all.note("libc.so.6", Origin::Exports, false);
        let libc = all.of("libc.so.6").unwrap();
        assert_eq!((libc.label(), libc.has_lines), ("several", true));
        // Once they differ, they stay `several`.
        all.note("libc.so.6", Origin::DebugFile, true);
        assert_eq!(all.of("libc.so.6").unwrap().origin, None);
        assert_eq!(all.of("other"), None);
    }
}
