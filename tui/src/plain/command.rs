//! The *commands*: one table has their names, short forms, arguments and functions. `help` and the
//! manual are printed from it.

use super::answer::{Answer, Trouble};
use super::dialog::{Dialog, sentence};
use super::{calls, code, knobs, lists, probes, tell, time, tree, write};
use crate::words::text;

/// A command of the dialog: its name and arguments, its text in `help`, and the function that runs
/// it.
pub struct Command {
    pub name: &'static str,
    /// The short form; empty if the command has none.
    pub short: &'static str,
    pub args: &'static str,
    pub help: &'static str,
    pub run: fn(&mut Dialog, &str) -> Result<Answer, Trouble>,
}

macro_rules! commands {
    ($($name:literal $short:literal $args:literal $help:literal $run:expr;)*) => {
        &[$(Command { name: $name, short: $short, args: $args, help: $help, run: $run }),*]
    };
}

/// All commands, in the order of the help. COUNT is a number of rows; ROW is the number of a row of
/// the last list, or a function's name.
#[rustfmt::skip]
pub const COMMANDS: &[Command] = commands! {
    "top"       "t"  "[COUNT]"              "the functions that take most"                        lists::top;
    "sort"      ""   "self|total|name|module" "the order of top"                                  lists::sort;
    "find"      "/"  "REGEX"                "functions whose names match"                         lists::find;
    "processes" "p"  "[COUNT]"              "the processes that take most"                        lists::processes;
    "threads"   "th" "[COUNT]"              "the threads that take most"                          lists::threads;
    "machines"  "ma" "[COUNT]"              "the machines that take most, if there are several"   lists::machines;
    "page"      "pg" "[ROW]"                "a function: callers, callees, heaviest stack, trend" calls::page;
    "callers"   "c"  "[ROW]"                "who calls it"                                        calls::callers;
    "callees"   "ce" "[ROW]"                "what it calls"                                       calls::callees;
    "tree"      "tr" "[up] [ROW] [depth N]" "the call tree; up: from what was on top"             tree::tree;
    "asm"       ""   "[intel|att]"          "how code writes instructions"                        code::syntax;
    "code"      "co" "[ROW] [all]"          "the lines and instructions that take most"           code::code;
    "time"      "ti" "[ROW|CLOCK [TIME]]"   "samples over time; what was different then"          time::time;
    "probe"     ""   "[ROW|NAME]"           "count and time the calls of a function, for 60 s"    probes::probe;
    "probes"    "pr" ""                     "what probes count: calls, times, values, callers"    probes::probes;
    "value"     ""   "[PROBE] EXPR|none"    "read a value of each call, such as arg1 or ret"      probes::value;
    "renew"     ""   "[PROBE|all]"          "let probes live 60 s more"                           probes::renew;
    "unprobe"   ""   "[PROBE|all]"          "take probes away"                                    probes::unprobe;
    "explain"   "i"  "ROW"                  "how that number came about"                          tell::explain;
    "health"    "h"  ""                     "what is missing, and why"                            tell::health;
    "status"    "st" ""                     "what is sampled, counted and shown"                  tell::status;
    "pid"       ""   "PID"                  "count only this process"                             knobs::pid;
    "scope"     "sc" "[ROW...]"             "count only these processes or threads"               knobs::scope;
    "window"    "w"  "[TIME|all|mark|ROW|CLOCK [TIME]]" "count only this time"                    knobs::window;
    "filter"    "f"  "[EXPRESSION|none]"    "count only samples that pass; proftop man has filters"   knobs::filter;
    "focus"     ""   "[ROW]"                "count only stacks with it"                           knobs::focus;
    "exclude"   "x"  "[ROW]"                "count no stacks with it"                             knobs::exclude;
    "back"      "b"  ""                     "undo the last of these"                              knobs::back;
    "rate"      ""   "[HZ]"                 "take HZ samples a second on each CPU from now on"   knobs::rate;
    "mark"      "m"  ""                     "count from now on"                                   knobs::mark;
    "unit"      ""   "[percent|machine|samples|cpu-ms|cpus|usual]" "the unit of the numbers"        knobs::unit;
    "metric"    ""   "[NAME]"               "on-cpu, off-cpu, wall, kept-waiting, or one of a file"  knobs::metric;
    "baseline"  ""   ""                     "make this the baseline, A"                           knobs::baseline;
    "diff"      "d"  "[COUNT]"              "what takes more or less than in A"                   lists::difference;
    "freeze"    ""   ""                     "keep showing these samples; sampling goes on"           knobs::freeze;
    "go"        "g"  "on"                   "show the newest samples again"                            knobs::go_on;
    "wait"      ""   "[TIME]"               "wait until the window is full, or so long"                tell::wait;
    "write"     "export" "[-f] [-t] [-n] [-s] [-b] FILE"  "write a file, whose name tells the format; -f overwrites, -t tells threads apart, -n hides names, -s leaves symbols out, -b build-ids" write::write;
    "output"    "o"  "[COUNT]"              "the last lines that the command printed"             tell::output;
    "help"      "?"  "[COMMAND]"            "this help"                                           help;
    "quit"      "q"  ""                     "leave; so does the end of input"                     tell::quit;
};

/// Explains COUNT, ROW, TIME and CLOCK. `help` prints it below the list of commands.
pub const WORDS: &str = "\
COUNT is how many rows. ROW is the number of a row of the last list, or the name of a function; \
without one it is the function asked about last. TIME is 30s or 10m, CLOCK is 14:02:40, as time shows it. \
The first letters of a command are enough where no other begins so. \
^C stops an answer; at the prompt it leaves.";

/// Splits a typed line into the command that its first word names and the words after it. It is an
/// error if no command, or more than one, matches.
pub fn find(line: &str) -> Result<(&'static Command, &str), Trouble> {
    // `/hash` means `find hash`: no blank is needed after the slash.
    let line = line.trim();
    let (word, rest) = match line.strip_prefix('/') {
        Some(rest) => ("/", rest),
        None => line.split_once(char::is_whitespace).unwrap_or((line, "")),
    };
    named(word).map(|command| (command, rest.trim()))
}

/// Returns the command with this name or short form, or else the only one whose name begins with
/// it. The error lists the matching commands, or suggests one with a similar spelling.
pub fn named(word: &str) -> Result<&'static Command, Trouble> {
    let word = word.to_lowercase();
    let exact = |command: &&Command| command.name == word || command.short == word;
    if let Some(command) = COMMANDS.iter().find(exact) {
        return Ok(command);
    }
    let begins = |command: &&Command| command.name.starts_with(&word);
    let near: Vec<&Command> = COMMANDS.iter().filter(begins).collect();
    if let [only] = near[..] {
        return Ok(only);
    }
    let names = |commands: &[&Command]| {
        let names: Vec<&str> = commands.iter().map(|command| command.name).collect();
        names.join(", ")
    };
    if !near.is_empty() {
        let names = names(&near);
        return Err(Trouble::say(format!("'{word}' can be {names}")));
    }
    let known = COMMANDS.iter().map(|command| command.name);
    let guess = match engine::nearest(&word, known) {
        Some(guess) => format!(" did you mean {guess}?"),
        None => String::new(),
    };
    Err(Trouble::say(format!(
        "there is no command '{word}';{guess} help lists them"
    )))
}

impl Command {
    /// Whether it needs samples, or changes which of them count.
    pub fn is_about_samples(&self) -> bool {
        !matches!(self.name, "help" | "quit")
    }

    /// Returns the name with its arguments, as in `callers [ROW]`.
    pub fn usage(&self) -> String {
        format!("{} {}", self.name, self.args).trim_end().to_owned()
    }
}

/// Runs `help`: lists all commands, or describes the one that is named.
pub fn help(_: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    if !words.is_empty() {
        let command = named(words)?;
        let short = match command.short {
            "" => String::new(),
            short => format!(" (short: {short})"),
        };
        return sentence(format!("{}{short}: {}", command.usage(), command.help));
    }
    let mut answer = Answer::default();
    for command in COMMANDS {
        answer.say(format!("{}: {}", command.usage(), command.help));
    }
    for line in text::wrap(WORDS, 78) {
        answer.say(line);
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_means_two_things() {
        let mut names: Vec<&str> = Vec::new();
        for command in COMMANDS {
            for name in [command.name, command.short] {
                assert!(name.is_empty() || !names.contains(&name), "{name}");
                names.push(name);
            }
            assert!(!command.help.is_empty());
        }
    }

    #[test]
    fn a_beginning_is_enough() {
        let name = |line| find(line).map(|(command, rest)| (command.name, rest));
        assert_eq!(name("  CALLERS  3 "), Ok(("callers", "3")));
        assert_eq!(name("c 3"), Ok(("callers", "3")));
        assert_eq!(name("proc"), Ok(("processes", "")));
        assert_eq!(name("/hash"), Ok(("find", "hash")));
        let say = |line| match name(line) {
            Err(Trouble::Say(words)) => words,
            other => panic!("{other:?}"),
        };
        assert!(say("call").contains("callers, callees"));
        assert!(say("tpo").contains("did you mean top?"));
        assert!(say("qwertyuiop").contains("help lists them"));
    }
}
