//! Where the names of functions come from, by module as the screen calls it.

use std::collections::HashMap;
use symbolize::Origin;

/// What told the names of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameSource {
    /// `None` if several files of that name have theirs from different places.
    pub origin: Option<Origin>,
    /// Some of its code was found in source text.
    pub has_lines: bool,
}

/// What told the names, for every module that has some.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamesFrom(HashMap<String, NameSource>);

impl NamesFrom {
    /// Adds what told the names of one file.
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

    /// What told the names of a module; `None` if it has none yet.
    pub fn of(&self, module: &str) -> Option<NameSource> {
        self.0.get(module).copied()
    }

    /// Whether no module has names yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl NameSource {
    /// In words: `debug file`, `exports`, or `several`.
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
        // They do not agree later, either.
        all.note("libc.so.6", Origin::DebugFile, true);
        assert_eq!(all.of("libc.so.6").unwrap().origin, None);
        assert_eq!(all.of("other"), None);
    }
}
