//! Suggests names while the user types: functions, markers and tracepoints.

use super::find::tracepoint_names;
use super::modules::Module;
use super::wanted::What;
use std::collections::BTreeSet;
use std::sync::Arc;
use symbolize::sites::spelling::{self, Meant, NAMES_MAX, best, containing};

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
        let modules: Vec<&Module> = modules.iter().filter(is_meant).collect();
        let found = names_containing(name, &modules);
        let shown = |name: String| match module {
            Some(module) => format!("{module}!{name}"),
            None => name,
        };
        suggested.extend(found.into_iter().map(shown));
        if suggested.is_empty() {
            let near = meant(name, &modules).near;
            suggested.extend(near.map(|(_, name)| shown(name)));
        }
    }
    suggested.truncate(NAMES_MAX);
    Suggested {
        typed: typed.into(),
        names: suggested
            .iter()
            .map(|name| symbolize::sanitize(name.as_bytes()).as_ref().into())
            .collect(),
    }
}

/// Returns the names of functions that contain a part, those that suit best.
fn names_containing(part: &str, modules: &[&Module]) -> Vec<String> {
    let names = modules
        .iter()
        .flat_map(|module| module.sites.names_containing(part));
    best(part, names.collect::<BTreeSet<_>>())
}

/// Returns the names of functions that may be meant by a word.
fn meant(word: &str, modules: &[&Module]) -> Meant {
    let each: Vec<Meant> = modules
        .iter()
        .map(|module| module.sites.meant(word))
        .collect();
    let near = each.iter().filter_map(|meant| meant.near.clone());
    let begun = each.iter().filter_map(|meant| meant.begun.clone());
    Meant {
        near: near.min_by_key(|(distance, _)| *distance),
        begun: begun.min_by_key(String::len),
    }
}

/// The names of all markers of these files, in the form in which they are typed.
fn marker_names(modules: &[Module]) -> impl Iterator<Item = String> {
    let markers = modules.iter().flat_map(|module| module.sites.markers());
    markers.map(|marker| format!("usdt:{}", marker.name))
}

/// Returns the name that the user may have meant when nothing was found: one with a similar
/// spelling, else the shortest that begins as typed. `text` is what was typed for `what`.
pub fn guess(text: &str, what: &What, modules: &[Module]) -> Option<String> {
    let (word, meant) = match what {
        What::Name(wanted, _) => {
            let modules: Vec<&Module> = modules.iter().collect();
            (wanted.as_str(), meant(wanted, &modules))
        }
        What::Marker(..) => (text, spelling::meant(text, marker_names(modules))),
        _ => return None,
    };
    let near = meant.near.map(|(_, name)| name);
    near.or(meant.begun.filter(|_| word.len() > LETTERS_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_places_are_suggested_by_their_beginning() {
        let of = |typed: &str| suggest(typed, &[]).names;
        assert_eq!(of("us"), ["usdt:".into()]);
        assert_eq!(of("trace"), ["tracepoint:".into()]);
        assert!(of("x").is_empty());
    }
}
