//! Compares the keys, commands and numbers in README.md and docs/ with the program. docs/keys.md is
//! made from the program's own table: run the tests with `PROFTOP_UPDATE_SNAPSHOTS=1` to write it
//! anew.

use crate::action::{Binding, Key, Keymap, Scope};
use crate::cli;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
const KEYS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/keys.md");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const PFT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/pft.md");
const RECIPES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/recipes.md");
const AGENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/agents.md");
const RECORDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/recorder.md");

const INTRODUCTION: &str = "\
# Keys

<!-- Made by a test from tui/src/action/keymap.rs: change it there. -->

The keys below \"Everywhere\" work in every view, the others only in the views that
their heading names. In proftop, `?` shows the keys of the view you are in, and `:`
finds an action by its name.

To give an action other keys, run `proftop config init` and open the file that it
writes. Below `[keys]`, add a line with the action's name (the last column here) and its
keys, such as `find = [\"/\", \"ctrl-s\"]`. An action that has several rows here gets
the same keys in all of them.
";

/// Returns the heading over the keys of a scope.
fn heading(scope: Scope) -> &'static str {
    match scope {
        Scope::Everywhere => "Everywhere",
        Scope::Functions => "Functions",
        Scope::Page => "The page of a function",
        Scope::Code => "Code",
        Scope::Tree => "Call tree",
        Scope::Flame => "Flame graph",
        Scope::Time => "Time",
        Scope::Health => "Health",
        Scope::Probes => "Probes",
        Scope::Maps => "Flame graph and time",
        Scope::Calls => "Call tree and flame graph",
        Scope::Processes => "Processes",
        Scope::People => "Processes and threads",
        Scope::FunctionRows => "Wherever a function is selected",
        Scope::Rows => "Wherever there are names",
        Scope::Lists => "Tables, pages, code, health",
        Scope::Tables => "Tables: functions, processes, threads",
    }
}

/// Returns the contents of docs/keys.md: keys that work everywhere, then scope by scope in the
/// order of the keymap, with a row for each action.
fn page(keymap: &Keymap) -> String {
    let mut scopes = vec![Scope::Everywhere];
    for binding in keymap.all() {
        if !scopes.contains(&binding.scope) {
            scopes.push(binding.scope);
        }
    }
    let mut text = String::from(INTRODUCTION);
    for scope in scopes {
        let here = keymap.all().iter();
        let told = here.filter(|binding| binding.scope == scope && !binding.help.is_empty());
        let rows: String = told.map(row).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n## {}\n", heading(scope));
        text += "| keys | what they do | name |\n| --- | --- | --- |\n";
        text += &rows;
    }
    text
}

/// Returns a row, as in ``| `>` `s` `F6` | sort by the next column | sort-right |``.
fn row(binding: &Binding) -> String {
    let keys = binding.keys.iter();
    let keys: Vec<String> = keys.map(|key| format!("`{}`", written(*key))).collect();
    let keys = keys.join(" ").replace('|', "\\|");
    format!("| {keys} | {} | {} |\n", binding.help, binding.name)
}

/// Returns a key as the help writes it, except that `^c` becomes `Ctrl-c`, which everybody
/// understands.
fn written(key: Key) -> String {
    match key {
        Key::Ctrl(letter) => format!("Ctrl-{letter}"),
        other => other.label(true),
    }
}

#[test]
fn the_page_of_keys_is_made_from_the_keymap() {
    let made = page(&Keymap::default());
    if std::env::var_os("PROFTOP_UPDATE_SNAPSHOTS").is_some() {
        fs::write(KEYS, made).expect("docs/keys.md can be written");
        return;
    }
    let kept = fs::read_to_string(KEYS).expect("docs/keys.md");
    assert_eq!(
        kept, made,
        "PROFTOP_UPDATE_SNAPSHOTS=1 cargo test writes it anew"
    );
}

/// Each key between backticks in the first column of the README's table is in the keymap.
#[test]
fn the_keys_of_the_readme_are_keys() {
    let keymap = Keymap::default();
    let known: Vec<String> = keymap
        .all()
        .iter()
        .flat_map(|binding| &binding.keys)
        .map(|key| written(*key))
        .collect();
    let readme = fs::read_to_string(README).expect("the README");
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut read = 0;
    for row in rows {
        let cell = row.split(" |").next().unwrap_or_default();
        for key in cell.split('`').step_by(2) {
            assert!(known.iter().any(|label| label == key), "{key:?} in {row}");
            read += 1;
        }
    }
    assert!(read >= 10, "only {read}");
}

/// Recordings contain the number of an ending, so docs/pft.md must have the same numbers.
#[test]
fn the_page_of_the_format_numbers_the_endings_as_they_are_written() {
    let page = fs::read_to_string(PFT).expect("docs/pft.md");
    let words: Vec<&str> = page.split_whitespace().collect();
    let words = words.join(" ");
    for (number, ending) in profile::Ending::ALL.into_iter().enumerate() {
        assert_eq!(ending as usize, number);
        let wanted = format!(" {number} `{}`", ending.label());
        assert!(words.contains(&wanted), "docs/pft.md lacks{wanted}");
    }
}

/// Returns the words between backticks in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Whether a word is a file of the repository, as documents write it: `probe/src/clocks.rs`.
fn is_file(word: &str) -> bool {
    let ends = [".rs", ".md", ".py"];
    word.contains('/') && !word.contains("NAME") && ends.iter().any(|end| word.ends_with(end))
}

#[test]
fn files_that_the_documents_name_are_there() {
    let root = Path::new(ROOT);
    let docs = fs::read_dir(root.join("docs"))
        .expect("docs/")
        .map(|entry| entry.expect("a page").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root.join(page));
    let mut named = 0;
    for page in pages.into_iter().chain(docs) {
        let text = fs::read_to_string(&page).expect("a page");
        for file in text.lines().flat_map(quoted).filter(|word| is_file(word)) {
            assert!(root.join(file).is_file(), "{}: {file}", page.display());
            named += 1;
        }
    }
    assert!(named > 100, "only {named}");
}

/// Each row of the invariants names tests. Each of them is in a file that the row names.
#[test]
fn the_tests_of_the_invariants_are_there() {
    let root = Path::new(ROOT);
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let mut named = 0;
    for row in text.lines().filter(|line| line.starts_with("| **")) {
        let files = quoted(row)
            .filter(|word| is_file(word))
            .map(|file| fs::read_to_string(root.join(file)).expect(file));
        let files: Vec<String> = files.collect();
        let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        for test in quoted(row)
            .filter(is_name)
            .filter(|word| word.contains('_'))
        {
            let function = format!("fn {test}(");
            let found = files.iter().any(|file| file.contains(&function));
            assert!(found, "no {test} in the files of: {row}");
            named += 1;
        }
    }
    assert!(named > 10, "only {named}");
}

/// The column at which explanations begin, unless a command is longer.
const COMMAND_WIDTH: usize = 42;

/// Splits a command into words. Blanks between quotation marks and inside `$(…)` are part of a
/// word.
fn shell_words(command: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for part in command.split_whitespace() {
        match words
            .last_mut()
            .filter(|last| last.matches('\'').count() == 1 || is_open_command(last))
        {
            Some(open) => *open += &format!(" {part}"),
            None => words.push(part.into()),
        }
    }
    words
}

/// Whether a word begins with `$(` and does not end there.
fn is_open_command(word: &str) -> bool {
    word.starts_with("$(") && !word.ends_with(')')
}

/// proftop accepts the commands in README.md and in three pages of docs/.
#[test]
fn the_commands_of_the_documents_are_understood() {
    let texts =
        [README, RECIPES, AGENTS, RECORDER].map(|path| fs::read_to_string(path).expect(path));
    let lines = texts
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| line.strip_prefix("    "));
    let mut read = 0;
    for line in lines {
        // The command without the explanation that follows it.
        let line = match line.split_at_checked(COMMAND_WIDTH) {
            Some((command, _)) if command.ends_with("  ") => command,
            _ => line,
        };
        for part in line.split([';', '|']).flat_map(|part| part.split("  ")) {
            let words = shell_words(part);
            let Some(at) = words.iter().position(|word| word == "proftop") else {
                continue;
            };
            let words = words[at..]
                .iter()
                .take_while(|word| *word != "<")
                .map(|word| match word.strip_prefix("$(") {
                    Some(_) => "1",
                    None => word.trim_end_matches(')').trim_matches('\''),
                });
            let result = cli::command().try_get_matches_from(words);
            assert!(result.is_ok(), "{part}: {}", result.unwrap_err());
            read += 1;
        }
    }
    assert!(read > 25, "only {read}");
}
