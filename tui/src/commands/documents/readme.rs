//! The README's table of keys, made from the table that the program uses. To
//! take over a change, run the tests with `PROFTOP_UPDATE_SNAPSHOTS=1`.

use crate::action::{Binding, Keymap, Scope};
use crate::cli;
use std::fmt::Write as _;
use std::fs;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
const BEGIN: &str = "<!-- keys: made by a test from tui/src/action/keymap.rs -->\n";
const END: &str = "<!-- end of keys -->\n";

/// Where keys of a scope work.
fn words(scope: Scope) -> &'static str {
    match scope {
        Scope::Everywhere => "everywhere",
        Scope::Functions => "functions",
        Scope::Page => "a function's page",
        Scope::Code => "code",
        Scope::Tree => "call tree",
        Scope::Flame => "flame graph",
        Scope::Time => "time",
        Scope::Maps => "flame graph, time",
        Scope::Calls => "call tree, flame graph",
        Scope::People => "processes, threads",
        Scope::FunctionRows => "where functions are",
        Scope::Rows => "where names are",
        Scope::Tables => "tables",
    }
}

/// One row for each place, in the order of the table.
fn table(keymap: &Keymap) -> String {
    let mut scopes: Vec<Scope> = Vec::new();
    for binding in keymap.all() {
        if !scopes.contains(&binding.scope) {
            scopes.push(binding.scope);
        }
    }
    let mut text = String::from("| where | keys |\n| --- | --- |\n");
    for scope in scopes {
        let here = keymap.all().iter();
        let here = here.filter(|binding| binding.scope == scope && !binding.help.is_empty());
        let keys: Vec<String> = here.map(entry).collect();
        let _ = writeln!(text, "| {} | {} |", words(scope), keys.join(" · "));
    }
    text
}

/// `` `<` sort by the column before``
fn entry(binding: &Binding) -> String {
    let keys = binding.keys.iter();
    let keys: Vec<String> = keys.map(|key| format!("`{}`", key.label(true))).collect();
    let text = format!("{} {}", keys.join(" "), binding.help);
    text.replace('|', "\\|")
}

#[test]
fn the_readme_has_the_keys_of_the_table() {
    let readme = fs::read_to_string(PATH).expect("the README");
    let begin = readme.find(BEGIN).expect("where the table begins") + BEGIN.len();
    let end = readme.find(END).expect("where it ends");
    let made = table(&Keymap::default());
    if std::env::var_os("PROFTOP_UPDATE_SNAPSHOTS").is_some() {
        let updated = format!("{}{made}{}", &readme[..begin], &readme[end..]);
        fs::write(PATH, updated).expect("it can be written");
        return;
    }
    assert_eq!(
        &readme[begin..end],
        made,
        "PROFTOP_UPDATE_SNAPSHOTS=1 cargo test writes it anew"
    );
}

/// Where explanations begin, unless a command is longer.
const COMMAND_WIDTH: usize = 42;

/// Whatever is told to be typed exists.
#[test]
fn what_the_readme_tells_to_type_is_understood() {
    let readme = fs::read_to_string(PATH).expect("the README");
    let lines = readme.lines().filter_map(|line| line.strip_prefix("    "));
    let mut read = 0;
    for line in lines {
        // What follows the program's name, up to the explanation or a pipe.
        let line = match line.split_at_checked(COMMAND_WIDTH) {
            Some((command, _)) if command.ends_with(' ') => command,
            _ => line,
        };
        for part in line.split([';', '|']).flat_map(|part| part.split("  ")) {
            let words: Vec<&str> = part.split_whitespace().collect();
            let Some(at) = words.iter().position(|word| *word == "proftop") else {
                continue;
            };
            let words = words[at..].iter().take_while(|word| **word != "<");
            let words = words.map(|word| match word.strip_prefix("$(") {
                Some(_) => "1",
                None => word.trim_end_matches(')').trim_matches('\''),
            });
            let result = cli::command().try_get_matches_from(words.filter(|w| *w != "postgres"));
            assert!(result.is_ok(), "{part}: {}", result.unwrap_err());
            read += 1;
        }
    }
    assert!(read > 15, "only {read}");
}
