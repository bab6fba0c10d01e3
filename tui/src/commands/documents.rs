//! Documents that are made from the definition of the command line and the table of keys: the
//! manual and completions for shells.

/// Tests that README.md and docs/ agree with the program.
#[cfg(test)]
mod readme;

use crate::action::{Binding, Keymap, Scope};
use crate::cli::{self, ENVIRONMENT, EXAMPLES, EXIT_CODES};
use crate::plain::command::{COMMANDS, WORDS as DIALOG_WORDS};
use crate::view_id::ViewId;
use clap_complete::Shell;
use std::fmt::Write as _;

const CONFIGURATION: &str = "\
Two files are read, the later one wins: /etc/proftop.toml, and proftop/config.toml below
$XDG_CONFIG_HOME or ~/.config. Under sudo it is that of the user who called it. PROFTOP_CONFIG
names another file, which is then the only one; /dev/null is none. A mistake in a file is reported with its line and
column, and that setting is left out. How each target was left (order, unit, layouts; never a
filter, a window or a scope) is kept in proftop/state.toml below $XDG_STATE_HOME or ~/.local/state;
options win over it, and it wins over the configuration. This is what can be set:";

const PLAIN: &str = "\
With --plain, or if PROFTOP_PLAIN=1 is set, there is no screen: proftop reads a command a line and
answers in lines of text, without colors and control characters. The first line of an answer says
what its numbers are based on. The same works through a pipe. These are the commands, with their
short forms:";

const FILTERS: &str = "\
A filter (--filter, or edited on the screen) is a list of clauses with blanks between them. A sample
counts if every clause keeps it. A TEST is about a frame of the stack: a WORD (a part of a
function's name; capitals count if it has any), fn:NAME, fn~REGEX, mod:NAME, mod~REGEX (modules),
file:NAME, file~REGEX (source files), lang:python (functions of Python), or kind: and one of kernel,
user, jit, inlined. Write a value with blanks in double quotes. These are the clauses:";

/// The clauses of a filter and their descriptions.
const CLAUSES: &[(&str, &str)] = &[
    ("TEST, focus:TEST", "keeps stacks with such a frame"),
    ("!TEST, exclude:TEST", "drops stacks with such a frame"),
    (
        "hide:TEST",
        "takes such frames out of stacks; their callers get their samples",
    ),
    (
        "only:TEST",
        "takes all other frames out, and no samples: those without a frame that is left are in [hidden]",
    ),
    ("fold:MODULE", "takes all frames of a module out"),
    (
        "fold:recursion",
        "shows a function that calls itself as one frame",
    ),
    (
        "show:internals",
        "shows what CPython does itself below a Python function; else that function gets its samples",
    ),
    (
        "pid:, tid:, cpu: NUMBERS",
        "keeps samples of these, as in cpu:0-3,7; with ! before it drops them",
    ),
    (
        "comm:, cgroup:, user:, host: NAME",
        "keeps samples of threads, control groups, users or machines of this name; with ! before it \
         drops them",
    ),
    (
        "state: WORDS",
        "keeps samples of threads that did this, as in state:lock,disk: run, queue, quota, lock, join, gil, \
         disk, net, sleep, fault, stopped, other, or idle: waits for work, with epoll, poll, select, accept or \
         a condition on the stack; with ! before it drops them",
    ),
];

/// An example for the manual; a test parses it.
const EXAMPLE_FILTER: &str =
    "proftop --filter 'focus:fn~^Exec !mod:libc.so.6 comm:postgres cpu:0-3'";

/// Returns the script with which a shell completes command lines of proftop.
pub fn completions(shell: Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "proftop", &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the manual page proftop(1), to be read with `man -l`.
pub fn manual() -> String {
    let command = cli::command();
    let manual = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    // clap makes the usual sections. The others are written here in roff: `.SH` begins a section,
    // `.TP` an entry whose next line is its term, and `.nf` and `.fi` enclose lines that are kept
    // as they are.
    let mut sections = || {
        manual.render_title(&mut text)?;
        manual.render_name_section(&mut text)?;
        manual.render_description_section(&mut text)?;
        manual.render_options_section(&mut text)
    };
    sections().expect("memory takes everything");
    let mut text = String::from_utf8_lossy(&text).into_owned();
    text += ".SH EXAMPLES\n.nf\n";
    text += &plain(EXAMPLES);
    text += "\n.fi\n.SH SUBCOMMANDS\n";
    for sub in command.get_subcommands() {
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        entry(&mut text, &format!("proftop {}", sub.get_name()), &about);
        for option in sub.get_arguments().filter(|option| !option.is_hide_set()) {
            let help = option
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default()
                .replace('\n', " ");
            let _ = writeln!(
                text,
                ".RS\n.TP\n{}\n{}\n.RE",
                plain(&name(option)),
                plain(&help)
            );
        }
    }
    text += ".SH KEYS\n";
    let keymap = Keymap::default();
    for (title, bindings) in groups(&keymap) {
        let _ = writeln!(text, ".SS {}", plain(title));
        for binding in bindings.iter().filter(|each| !each.help.is_empty()) {
            entry(&mut text, &binding.labels(true), binding.help);
        }
    }
    text += ".SH FILTERS\n";
    text += &plain(FILTERS);
    text += "\n";
    for (clause, words) in CLAUSES {
        entry(&mut text, clause, words);
    }
    text += ".PP\nFor example:\n.PP\n.nf\n";
    text += &plain(EXAMPLE_FILTER);
    text += "\n.fi\n.SH PLAIN DIALOG\n";
    text += &plain(PLAIN);
    text += "\n";
    for command in COMMANDS {
        let short = match command.short {
            "" => String::new(),
            short => format!(" ({short})"),
        };
        entry(
            &mut text,
            &format!("{}{short}", command.usage()),
            command.help,
        );
    }
    text += ".PP\n";
    text += &plain(DIALOG_WORDS);
    text += "\n";
    text += ".SH CONFIGURATION\n";
    text += &plain(CONFIGURATION);
    text += "\n.nf\n";
    text += &plain(&crate::config::template());
    text += "\n.fi\n.SH ENVIRONMENT\n";
    text += &plain(ENVIRONMENT);
    text += "\n.SH EXIT STATUS\n";
    text += &plain(EXIT_CODES);
    text.push('\n');
    text
}

/// Returns the bindings in groups: those that work everywhere, then those of each view.
fn groups(keymap: &Keymap) -> Vec<(&'static str, Vec<&Binding>)> {
    let everywhere = |binding: &&Binding| binding.scope == Scope::Everywhere;
    let mut groups = vec![(
        "Everywhere",
        keymap.all().iter().filter(everywhere).collect(),
    )];
    for view in ViewId::ALL.into_iter().chain([ViewId::Page]) {
        let here: Vec<&Binding> = keymap.of(view).filter(|each| !everywhere(each)).collect();
        if !here.is_empty() {
            groups.push((view.name(), here));
        }
    }
    groups
}

/// Returns an option as it is typed, such as `-d, --delay SECONDS`. An option without a value has
/// only its flags, an operand only its name.
fn name(option: &clap::Arg) -> String {
    let value = option
        .get_value_names()
        .map(|names| names.join(" "))
        .filter(|_| option.get_action().takes_values());
    let flags = [
        option.get_short().map(|short| format!("-{short}")),
        option.get_long().map(|long| format!("--{long}")),
    ];
    let flags: Vec<String> = flags.into_iter().flatten().collect();
    let parts = [Some(flags.join(", ")), value]
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" ")
}

/// Adds an entry: a term in bold and, indented below it, its description.
fn entry(text: &mut String, term: &str, words: &str) {
    let _ = writeln!(text, ".TP\n.B {}\n{}", plain(term), plain(words));
}

/// Escapes a text so that roff reads no part of it as a command.
fn plain(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    let lines = escaped.lines().map(|line| {
        if line.starts_with(['.', '\'']) {
            format!("\\&{line}")
        } else {
            line.to_owned()
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_has_every_key_and_every_word() {
        let manual = manual();
        for binding in Keymap::default().all() {
            assert!(manual.contains(&plain(binding.help)), "{}", binding.help);
        }
        for command in COMMANDS {
            assert!(
                manual.contains(&plain(&command.usage())),
                "{}",
                command.name
            );
            assert!(manual.contains(&plain(command.help)), "{}", command.name);
        }
        for sub in cli::command().get_subcommands() {
            assert!(manual.contains(&format!("proftop {}", sub.get_name())));
        }
        assert!(manual.contains("\\-\\-max\\-depth"));
        // Each line that begins with a dot is a roff request that this file writes on purpose.
        let known = [
            ".TH", ".IP", ".PP", ".SH", ".SS", ".TP", ".RS", ".RE", ".nf", ".fi", ".B", ".ie",
            ".el", ".br",
        ];
        for line in manual.lines().filter(|line| line.starts_with('.')) {
            assert!(
                known.iter().any(|request| line.starts_with(request)),
                "{line}"
            );
        }
    }

    /// The filter syntax has each action and key of the clauses.
    #[test]
    fn the_manual_describes_filters_that_there_are() {
        let quoted = EXAMPLE_FILTER.split('\'').nth(1).expect("a filter");
        assert!(quoted.parse::<profile::Filter>().is_ok(), "{quoted}");
        let reads = |clause: &str| clause.parse::<profile::Filter>().is_ok();
        for (clauses, words) in CLAUSES {
            for clause in clauses.split(", ") {
                let clause = clause
                    .replace("TEST", "fn~^a")
                    .replace("MODULE", "libc.so.6")
                    .replace(" NUMBERS", "0-3,7")
                    .replace(" NAME", "x")
                    .replace(" WORDS", "lock,idle");
                let clause = match clause.strip_suffix(':') {
                    Some(key) => format!("{key}:1"),
                    None => clause,
                };
                assert!(reads(&clause), "{clause}");
                if words.contains("with ! before it") {
                    assert!(reads(&format!("!{clause}")), "!{clause}");
                }
            }
        }
    }

    #[test]
    fn shells_know_the_subcommands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish] {
            let text = completions(shell);
            assert!(
                text.contains("symbolize") && text.contains("max-depth"),
                "{shell}"
            );
        }
    }
}
