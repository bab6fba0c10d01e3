//! Suggests names while the user types: functions, markers and tracepoints.

use super::find::{marker_names, names, tracepoint_names};
use super::modules::Module;
use crate::nearest;
use profile::few;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of suggested names.
const SUGGESTED_MAX: usize = 100;

/// Maximum number of names that are considered, of all that contain what was typed.
const FOUND_MAX: usize = 20_000;

/// Minimum length of the text: a shorter one matches nearly everything.
const LETTERS_MIN: usize = 2;

const KINDS: [&str; 2] = ["usdt:", "tracepoint:"];

/// Suggested names for what was typed, the best first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggested {
    /// The typed text when they were looked up.
    pub typed: Arc<str>,
    /// The names, in the form in which they would be typed.
    pub names: Vec<Arc<str>>,
}

/// Looks up names that contain what was typed, else one with a similar spelling.
pub fn suggest(typed: &str, modules: &[Module]) -> Suggested {
    let kinds = KINDS.iter().filter(|kind| kind.starts_with(typed));
    let mut suggested: Vec<String> = kinds.map(|kind| kind.to_string()).collect();
    if typed.starts_with("usdt:") {
        suggested.extend(containing(typed, marker_names(modules)));
    } else if let Some(point) = typed.strip_prefix("tracepoint:") {
        // The subsystem is kept as typed, because types do not contain it.
        let (before, name) = match point.split_once(':') {
            Some((subsystem, name)) => (format!("tracepoint:{subsystem}:"), name),
            None => ("tracepoint:".to_string(), point),
        };
        let names = tracepoint_names().into_iter();
        suggested.extend(
            containing(name, names)
                .into_iter()
                .map(|name| before.clone() + &name),
        );
    } else if typed.len() >= LETTERS_MIN {
        let (module, name) = match typed.split_once('!') {
            Some((module, name)) => (Some(module), name),
            None => (None, typed),
        };
        let is_meant = |it: &&Module| module.is_none_or(|module| it.name().starts_with(module));
        let meant: Vec<Module> = modules.iter().filter(is_meant).cloned().collect();
        let found = containing(name, names(&meant));
        let shown = |name: String| match module {
            Some(module) => format!("{module}!{name}"),
            None => name,
        };
        suggested.extend(found.into_iter().map(shown));
        if suggested.is_empty() {
            let all: Vec<String> = names(&meant).collect();
            let near = nearest(name, all.iter().map(String::as_str));
            suggested.extend(near.map(|name| shown(name.to_string())));
        }
    }
    suggested.truncate(SUGGESTED_MAX);
    Suggested {
        typed: typed.into(),
        names: suggested
            .iter()
            .map(|name| symbolize::sanitize(name.as_bytes()).as_ref().into())
            .collect(),
    }
}

/// Returns the names that contain a part: those that begin with it first, then the shortest.
fn containing(part: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let found = names.filter(|name| name.contains(part)).take(FOUND_MAX);
    let mut found: Vec<String> = found.collect::<BTreeSet<_>>().into_iter().collect();
    few::sort_by_key(&mut found, |name| (!name.starts_with(part), name.len()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_as_it_was_typed_comes_first() {
        let names = ["rehash", "hash_search", "hash", "other", "hash"];
        let found = containing("hash", names.into_iter().map(str::to_string));
        assert_eq!(found, ["hash", "hash_search", "rehash"]);
    }

    #[test]
    fn kinds_of_places_are_suggested_by_their_beginning() {
        let of = |typed: &str| suggest(typed, &[]).names;
        assert_eq!(of("us"), ["usdt:".into()]);
        assert_eq!(of("trace"), ["tracepoint:".into()]);
        assert!(of("x").is_empty());
    }
}
