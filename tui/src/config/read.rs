//! Reads settings from TOML. Every key is read by itself: a wrong one is reported, the others are
//! used.

use super::options::OPTIONS;
use super::{Complaint, Settings};
use crate::action::{Key, Rebound};
use crate::code::source_map::Mapping;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Maximum number of bytes of a key in a complaint.
const SHOWN_BYTES_MAX: usize = 40;
/// Maximum number of complaints about a file that are listed. The others are counted.
pub(super) const LISTED_MAX: usize = 20;
/// Maximum number of keys of one action. Each is compared with all keys of the other actions.
const KEYS_MAX: usize = 32;

/// The sections whose keys are not in the table of options.
const FREE_SECTIONS: [&str; 2] = ["keys", "source-map"];

/// Reads the text of a file into the settings, and returns the complaints about it. If there are
/// too many, the last one says how many are not listed.
pub fn read(text: &str, file: &str, settings: &mut Settings) -> Vec<Complaint> {
    let mut reader = Reader {
        text,
        file,
        settings,
        complaints: Vec::new(),
        unlisted: 0,
    };
    match DeTable::parse(text) {
        Ok(table) => reader.sections(table.get_ref()),
        Err(error) => {
            let at = error.span().unwrap_or(0..0);
            // The parser's own message presumes knowledge of its terms.
            reader.complain(at, NOT_TOML);
        }
    }
    let (mut complaints, unlisted) = (reader.complaints, reader.unlisted);
    if unlisted > 0 {
        complaints.push(Complaint {
            file: file.to_owned(),
            at: None,
            what: format!("not listed, but left out too: {unlisted} more"),
            mistakes: unlisted,
        });
    }
    complaints
}

/// The complaint about a file that is not valid TOML. Nothing of it is used.
const NOT_TOML: &str = "not TOML: a line is [section], or key = value, and a text stands in \
                        quotes, as in name = \"dark\"";

/// Reads one file. Complaints are collected, and reading continues after each. Lines are counted
/// only for those that are listed, so that a file of nothing but mistakes takes no longer.
struct Reader<'a> {
    text: &'a str,
    file: &'a str,
    settings: &'a mut Settings,
    /// At most [`LISTED_MAX`].
    complaints: Vec<Complaint>,
    /// How many more there were.
    unlisted: usize,
}

impl Reader<'_> {
    /// Reads all sections of a file. For an unknown one there is one complaint, not one for each
    /// key.
    fn sections(&mut self, table: &DeTable) {
        for (name, value) in table {
            let section: &str = name.get_ref();
            let is_known =
                FREE_SECTIONS.contains(&section) || OPTIONS.iter().any(|o| o.section == section);
            match value.get_ref() {
                _ if !is_known => self.complain(
                    name.span(),
                    &format!("there is no section '{}'", shown(section)),
                ),
                DeValue::Table(keys) if section == "keys" => self.keys(keys),
                DeValue::Table(paths) if section == "source-map" => self.source_map(paths),
                DeValue::Table(options) => self.options(section, options),
                _ => self.complain(name.span(), &format!("{section} is a section: [{section}]")),
            }
        }
    }

    /// Reads a section whose keys are in the table of options. Values of any type are turned into
    /// text first, and parsed by the same functions as those of the command line.
    fn options(&mut self, section: &str, table: &DeTable) {
        for (name, value) in table {
            let key: &str = name.get_ref();
            let found = OPTIONS
                .iter()
                .find(|o| o.section == section && o.key == key);
            let Some(option) = found else {
                let known: Vec<&str> = OPTIONS
                    .iter()
                    .filter(|o| o.section == section)
                    .map(|o| o.key)
                    .collect();
                let key = shown(key);
                let known = known.join(", ");
                self.complain(
                    name.span(),
                    &format!("no '{key}' in [{section}]; there are {known}"),
                );
                continue;
            };
            let read = scalar(value.get_ref())
                .ok_or_else(|| "one value is wanted".to_owned())
                .and_then(|text| (option.read)(self.settings, &text));
            if let Err(why) = read {
                self.complain(value.span(), &format!("{key}: {why}"));
            }
        }
    }

    /// Reads the section `[keys]`: `freeze = "space"` or `freeze = ["space", "Z"]`.
    fn keys(&mut self, table: &DeTable) {
        for (name, value) in table {
            let action: &str = name.get_ref();
            let values = match value.get_ref() {
                DeValue::Array(values) => values.iter().collect::<Vec<_>>(),
                _ => vec![value],
            };
            if values.len() > KEYS_MAX {
                let what = format!("an action has at most {KEYS_MAX} keys");
                self.complain(value.span(), &what);
                continue;
            }
            let mut keys: Vec<Key> = Vec::new();
            let mut is_whole = true;
            for value in values {
                match key(value) {
                    Some(key) => keys.push(key),
                    None => {
                        is_whole = false;
                        self.complain(
                            value.span(),
                            "not a key: a letter, ctrl-x, f1, enter, space, tab, pgup, …",
                        );
                    }
                }
            }
            // Some of the keys would be neither what the user wrote nor the default.
            if !is_whole {
                continue;
            }
            match self.settings.keymap.rebind(action, &keys) {
                Rebound::Done => {}
                Rebound::Unknown => {
                    let action = shown(action);
                    let what =
                        format!("there is no action '{action}'; proftop config init lists them");
                    self.complain(name.span(), &what);
                }
                Rebound::NoWayOut => {
                    self.complain(name.span(), "this would leave no key to quit with");
                }
            }
        }
    }

    /// Reads the section `[source-map]`: `"/build/src" = "/home/ann/src"`.
    fn source_map(&mut self, table: &DeTable) {
        let mut maps = Vec::new();
        for (from, value) in table {
            let mapping = match value.get_ref() {
                DeValue::String(to) => Mapping::written(from.get_ref(), to),
                _ => None,
            };
            match mapping {
                Some(mapping) => maps.push(mapping),
                None => self.complain(
                    value.span(),
                    "write the whole path of a folder, from / or ~/ on",
                ),
            }
        }
        // If two files map the same folder, the file that is read last wins.
        maps.append(&mut self.settings.source_maps);
        self.settings.source_maps = maps;
    }

    /// Adds a complaint about these bytes of the file. Line and column count from 1, the column in
    /// characters.
    fn complain(&mut self, at: Range<usize>, what: &str) {
        if self.complaints.len() == LISTED_MAX {
            self.unlisted += 1;
            return;
        }
        let before = self.text.get(..at.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before[start..].chars().count() + 1;
        self.complaints.push(Complaint {
            file: self.file.to_owned(),
            at: Some((line, column)),
            // A part of the file may be quoted in it.
            what: format!("{}; left out", symbolize::sanitize(what.as_bytes())),
            mistakes: 1,
        });
    }
}

/// Returns a single value as text. None for arrays, tables and times.
fn scalar(value: &DeValue) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(on) => Some(on.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// Parses the name of a key, such as `ctrl-x`. None if it is invalid.
fn key(value: &Spanned<DeValue>) -> Option<Key> {
    match value.get_ref() {
        DeValue::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// Returns a key of the file for a message.
fn shown(key: &str) -> String {
    let end = key.floor_char_boundary(SHOWN_BYTES_MAX);
    symbolize::sanitize(&key.as_bytes()[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Action, Keymap};
    use crate::view_id::ViewId;
    use proptest::prelude::*;
    use std::time::Duration;

    fn reading(text: &str) -> (Settings, Vec<String>) {
        let mut settings = Settings::default();
        let complaints = read(text, "c.toml", &mut settings);
        (
            settings,
            complaints.iter().map(ToString::to_string).collect(),
        )
    }

    #[test]
    fn every_section_is_read() {
        let (settings, complaints) = reading(
            "sample = { rate = 499, keep = \"1h\" }\n\
             [view]\nstart = \"tree\"\nrefresh = 0.5\n\
             [theme]\nname = \"16\"\nascii = true\n\
             [keys]\nfreeze = [\"space\", \"f5\"]\nquit = \"Q\"\n\
             [source-map]\n\"/build/src\" = \"/home/ann/src\"\n",
        );
        assert_eq!(complaints, [""; 0]);
        assert_eq!(settings.rate_hz, Some(499));
        assert_eq!(settings.keep, Some(Duration::from_secs(3600)));
        assert_eq!(settings.start, Some(ViewId::Tree));
        assert_eq!(settings.refresh, Some(Duration::from_millis(500)));
        assert_eq!(settings.ascii, Some(true));
        assert_eq!(settings.keymap.key_of(Action::Quit), Some(Key::Char('Q')));
        assert_eq!(settings.window, None);
        assert_eq!(
            settings.source_maps,
            [Mapping::written("/build/src", "/home/ann/src").unwrap()]
        );
    }

    #[test]
    fn what_is_wrong_is_left_out_and_the_rest_holds() {
        let (settings, complaints) = reading(
            "[sample]\nrate = 0\nkeep = \"1h\"\n  rat = 7\n\
             [vew]\n[keys]\nfreeze = [\"hyper\"]\nfly = \"f\"\nquit = []\n\
             [view]\nwindow = [1]\nstart = \"nowhere\"\n",
        );
        let mut complaints = complaints.into_iter();
        let mut next = |line: &str| {
            let complaint = complaints.find(|each| each.starts_with(line));
            complaint.unwrap_or_else(|| panic!("nothing about {line}"))
        };
        assert_eq!(
            next("c.toml:7:11"),
            "c.toml:7:11: not a key: a letter, ctrl-x, f1, enter, space, tab, pgup, …; left out"
        );
        drop(complaints);
        let all = reading("[sample]\nrate = 0\n  rat = 7\n[vew]\n[keys]\nfly = \"f\"\nquit = []\n[view]\nwindow = [1]\nstart = \"x\"").1;
        let find = |what: &str| {
            assert!(
                all.iter().any(|each| each.contains(what)),
                "{what}: {all:?}"
            )
        };
        find("c.toml:2:8: rate: not a number from 1 to 10000; left out");
        find("c.toml:3:3: no 'rat' in [sample]; there are rate, engine");
        find("c.toml:4:2: there is no section 'vew'");
        find("c.toml:6:1: there is no action 'fly'");
        find("c.toml:7:1: this would leave no key to quit with");
        find("c.toml:9:10: window: one value is wanted");
        find("start: there are functions, tree, flame");
        let wrong = reading("[source-map]\n\"/build\" = 3\n").1;
        assert!(
            wrong[0].starts_with("c.toml:2:12: write the whole path of a folder"),
            "{wrong:?}"
        );
        assert_eq!(settings.keep, Some(Duration::from_secs(3600)));
        assert_eq!(settings.rate_hz, None);
        assert!(settings.keymap.key_of(Action::Quit).is_some());
    }

    #[test]
    fn what_is_no_toml_is_one_complaint() {
        let (settings, complaints) = reading("[view\nwindow = 3");
        assert_eq!(settings, Settings::default());
        assert_eq!(complaints.len(), 1);
        assert!(
            complaints[0].starts_with("c.toml:1:6: not TOML: a line is [section], or key = value"),
            "{complaints:?}"
        );
    }

    #[test]
    fn of_many_mistakes_the_first_are_listed_and_all_are_counted() {
        let mistakes = 20_000;
        let lines: Vec<String> = (0..mistakes).map(|at| format!("s{at:05} = 1\n")).collect();
        let text = lines.concat() + "[sample]\nrate = 499\n";
        let mut settings = Settings::default();
        let complaints = read(&text, "c.toml", &mut settings);
        let counted: usize = complaints.iter().map(Complaint::mistakes).sum();
        assert_eq!((counted, complaints.len()), (mistakes, LISTED_MAX + 1));
        let [.., listed, others] = &complaints[..] else {
            panic!("{complaints:?}");
        };
        assert_eq!(
            listed.to_string(),
            "c.toml:20:1: there is no section 's00019'; left out"
        );
        assert_eq!(
            others.to_string(),
            "c.toml: not listed, but left out too: 19980 more"
        );
        // The rest of the file holds.
        assert_eq!(settings.rate_hz, Some(499));
        // As many as are listed leave nothing to count.
        let (_, complaints) = reading(&lines[..LISTED_MAX].concat());
        assert_eq!(complaints.len(), LISTED_MAX);
    }

    #[test]
    fn an_action_has_not_any_number_of_keys() {
        let freeze = |count| format!("[keys]\nfreeze = [{}]\n", vec!["\"f5\""; count].join(","));
        assert_eq!(reading(&freeze(KEYS_MAX)).1, [""; 0]);
        let (settings, complaints) = reading(&freeze(KEYS_MAX + 1));
        assert_eq!(
            complaints,
            ["c.toml:2:10: an action has at most 32 keys; left out"]
        );
        assert_eq!(settings.keymap, Keymap::default());
    }

    #[test]
    fn names_of_keys_do_no_harm() {
        let (_, complaints) = reading("\"\\u001b[2J\u{202e}\" = 1");
        assert!(
            !complaints[0].contains(['\u{1b}', '\u{202e}']),
            "{complaints:?}"
        );
    }

    #[test]
    fn no_part_of_a_file_does_harm_in_a_complaint() {
        let (_, complaints) = reading("[agent]\nsave-on = \"process:\tabcdefghijklmnop > 150%\"\n");
        assert!(complaints[0].contains("\\tabcdef"), "{complaints:?}");
        assert!(!complaints[0].contains('\t'), "{complaints:?}");
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\\[[a-z]{0,6}\\]\n|[a-z]{1,6} = ([0-9.\"\\[\\]{}a-z=, ]{0,12})\n|\\PC{0,8}){0,6}") {
            for complaint in reading(&text).1 {
                prop_assert!(!complaint.chars().any(char::is_control));
            }
        }
    }
}
