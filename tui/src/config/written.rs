//! Writes configurations: a template, in which everything is a comment, and the settings in effect.

use super::Settings;
use super::options::OPTIONS;
use super::quote::quote;
use crate::action::{Binding, Keymap};
use std::fmt::Write as _;

const ABOUT: &str = "\
# Configuration of proftop. What is said on the command line wins over it.
# Take away a # to change something.
";

/// Returns every option with its default, as a comment.
pub fn template() -> String {
    format!("{ABOUT}{}", write("# ", &Settings::default()))
}

/// Returns every option with its value in effect.
pub fn effective(settings: &Settings) -> String {
    write("", settings)
}

/// Writes all options, section by section, each with its description after it. `mark` is put before
/// each: the sign of a comment for a template, or an empty string.
fn write(mark: &str, settings: &Settings) -> String {
    let mut text = String::new();
    let mut section = "";
    for option in OPTIONS {
        if option.section != section {
            section = option.section;
            let _ = writeln!(text, "\n[{section}]");
        }
        let value = (option.show)(settings).unwrap_or_else(|| option.default.into());
        let line = format!("{mark}{} = {value}", option.key);
        let _ = writeln!(text, "{line:<28} # {}", option.help);
    }
    text += "\n[source-map]\n";
    if settings.source_maps.is_empty() {
        text += "# \"/build/src\" = \"~/src\"     # where source is that was compiled there\n";
    }
    for mapping in &settings.source_maps {
        let (from, to) = mapping.sides();
        let _ = writeln!(text, "{} = {}", quote(&from), quote(&to));
    }
    let _ = writeln!(text, "\n[keys]");
    for binding in unique(&settings.keymap) {
        let keys: Vec<String> = binding
            .keys
            .iter()
            .map(|key| quote(&key.written()))
            .collect();
        let line = format!("{mark}{} = [{}]", binding.name, keys.join(", "));
        let _ = writeln!(text, "{line:<44} # {}", binding.help);
    }
    let varying = varying(&settings.keymap);
    if !varying.is_empty() {
        text += "# These have other keys in some views; a line for one gives it the same in all:\n";
    }
    for (binding, keys) in varying {
        let about = format!("# {}: {keys}", binding.name);
        let _ = writeln!(text, "{about:<44} # {}", binding.help);
    }
    text
}

/// Returns the actions whose keys differ by the view, each with all its keys. They are written as
/// comments: a setting would give them the same keys in all views.
fn varying(keymap: &Keymap) -> Vec<(&Binding, String)> {
    let all = keymap.all();
    let listed = unique(keymap);
    let is_listed = |name: &str| listed.iter().any(|binding| binding.name == name);
    let mut varying: Vec<(&Binding, Vec<String>)> = Vec::new();
    for binding in all.iter().filter(|binding| !is_listed(binding.name)) {
        if binding.help.is_empty() {
            continue;
        }
        let keys = binding.keys.iter().map(|key| quote(&key.written()));
        match varying
            .iter_mut()
            .find(|(first, _)| first.name == binding.name)
        {
            Some((_, known)) => known.extend(keys),
            None => varying.push((binding, keys.collect())),
        }
    }
    for (_, keys) in &mut varying {
        keys.sort_unstable();
        keys.dedup();
    }
    let joined = varying.into_iter();
    joined
        .map(|(binding, keys)| (binding, keys.join(", ")))
        .collect()
}

/// Returns one binding for each action that has the same keys in all views. Actions whose keys
/// differ by the view are left out: writing them as settings would change them.
fn unique(keymap: &Keymap) -> Vec<&Binding> {
    let all = keymap.all();
    all.iter()
        .enumerate()
        .filter(|(at, binding)| {
            let mut others = all.iter().filter(|other| other.name == binding.name);
            let is_first = all[..*at].iter().all(|before| before.name != binding.name);
            !binding.help.is_empty() && is_first && others.all(|other| other.keys == binding.keys)
        })
        .map(|(_, binding)| binding)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::source_map::Mapping;
    use crate::condition::Condition;
    use crate::config::read::read;

    #[test]
    fn what_is_written_is_read_without_a_complaint() {
        let mut settings = Settings::default();
        assert_eq!(read(&template(), "c", &mut settings), []);
        assert_eq!(settings, Settings::default());
        assert_eq!(read(&effective(&settings.clone()), "c", &mut settings), []);
        assert_eq!(settings.rate_hz, Some(99));
        assert_eq!(settings.keymap, Keymap::default());
        let odd = Mapping::written("/a\n\"b\"\\", "~/c\u{7f}=");
        settings.source_maps.extend(odd);
        let odd = Condition::parse("process:\ta\u{202e}\\ > 150%");
        settings.agent.conditions = Some(vec![odd.expect("a condition")]);
        // The settings in effect, written and read again, are the same.
        let again = effective(&settings);
        let mut other = Settings::default();
        assert_eq!(read(&again, "c", &mut other), []);
        assert_eq!(other, settings);
        assert!(!again.contains(['\t', '\u{202e}']), "{again}");
    }

    #[test]
    fn the_template_names_every_action() {
        let template = template();
        let keymap = Keymap::default();
        let told = keymap.all().iter().filter(|each| !each.help.is_empty());
        for binding in told {
            let line = format!("# {} = [", binding.name);
            // An action with different keys in some views has a comment with its keys.
            let about = format!("# {}: ", binding.name);
            assert!(
                template.contains(&line) || template.contains(&about),
                "{line}"
            );
        }
    }
}
