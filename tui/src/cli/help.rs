//! Texts of the command line: help, and clap's errors as one sentence.

use crate::failure::Failure;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use engine::nearest;

/// `-h`: one screen of 24 lines and 80 columns, examples first.
pub const SCREEN: &str = "\
proftop: top for code. Which functions burn the CPUs, live.

  sudo proftop                              what is this machine doing?
  sudo proftop -p $(pgrep -d, postgres)     some processes
  sudo proftop -g nginx.service             a unit, container or control group
  sudo proftop -- ./bench --size 1M         run and watch, as yourself
  sudo proftop -b -n 1 -d 10 --top 15       ten seconds, fifteen lines, exit
  sudo proftop record -d 60s -o before.pft  a minute, to be looked at later
  proftop doctor                            what works here, and why not

proftop [top] [OPTIONS] [-- COMMAND [ARGS]...]
proftop record [-o FILE] [-d TIME] [TARGET] [-F HZ] [-- COMMAND [ARGS]...]
proftop open FILE|-  proftop demo     proftop report FILE [--top K|--tree]
proftop export IN OUT   proftop diff A B [--fail-over 5%]   proftop merge FILE…
proftop resolve FILE   proftop doctor [-p PID] [--json]   proftop symbolize FILE

TARGET  -p PID[,PID]  -t TID  --comm RE  -g CGROUP|UNIT  -u USER  -C CPUS
        --no-children
SAMPLE  -F HZ (99)  --engine bpf|perf  --max-depth N  --keep TIME  --mem SIZE
SHOW    --window TIME (10s)  --sort self|total|name  --unit UNIT  -d SECS (1)
        --view  --filter EXPR  --baseline FILE  --freeze-after TIME  --fresh
OUTPUT  -b, --batch -n N --top K  --format text|csv|json|md  -o FILE -f  --plain
        --color WHEN  --theme NAME  --ascii  --no-mouse  --source-map FROM=TO
More: --help, --version, agent, config, fleet, mcp, man, completions bash|zsh
";

/// The usage in `--help`. If the arguments of a subcommand are wrong, its line is quoted in the
/// message.
pub const USAGE: &str = "proftop [top] [OPTIONS] [-- COMMAND [ARGS]...]
       proftop record [-o FILE] [-d TIME] [TARGET] [-- COMMAND [ARGS]...]
       proftop agent [--ring TIME] [--save-on CONDITION]... [TARGET] [-F HZ]
       proftop agent save [--note TEXT] | status [--json]
       proftop trace FUNCTION... [-d TIME] [--args N] [--ret] [TARGET] [-- COMMAND [ARGS]...]
       proftop open FILE | ADDRESS... [-- OPTIONS]
       proftop demo
       proftop report FILE [--top K | --tree | --peek REGEX] [--filter EXPR]
       proftop export IN OUT [--format F] [--filter EXPR]
       proftop merge FILE... -o OUT
       proftop resolve FILE [--debug-dir DIR]... [-o OUT]
       proftop diff A B [--fail-over 5%] [--filter EXPR]
       proftop doctor [-p PID] [--json]
       proftop mcp [--allow-probes]
       proftop fleet top|hosts|diff|flame|ship|status [OPTIONS] [DIR]
       proftop symbolize [OPTIONS] FILE|-p PID [ADDR]...";

/// Examples at the beginning of `--help`, and in the manual.
pub const EXAMPLES: &str = "\
sudo proftop                              what is this machine doing?
sudo proftop -p $(pgrep -d, postgres)     some processes
sudo proftop -g nginx.service             a unit, container or control group
sudo proftop -- ./bench --size 1M         run and watch, as yourself
sudo proftop -b -n 1 -d 10 --top 15       ten seconds, fifteen lines, exit
proftop doctor                            what works here, and why not";

/// How options combine, and what each exit status means; for `--help` and the manual.
pub const EXIT_CODES: &str = "\
Targets of different kinds combine with \"and\", values of one kind with \"or\".
Times are 30s, 10m or 1h; sizes are 256M or 1G.

Exit status: 0 done, 1 failed, 2 bad usage, 3 over --fail-over, 4 not possible here (rights, kernel),
5 no samples. With --batch or record and a command: the command's own, or 125, 126 and 127
as env ends when it did not start, was not executable or was not found.";

/// Returns the text below the options of `--help`.
pub fn after_options() -> String {
    format!("{EXIT_CODES}\n\n{ENVIRONMENT}")
}

/// The environment variables that are read, for the manual and `--help`.
pub const ENVIRONMENT: &str = "\
DEBUGINFOD_URLS names servers of debug files, with blanks between them. They give names and lines to
programs that were stripped: sudo DEBUGINFOD_URLS=https://debuginfod.debian.net proftop (Ubuntu has
debuginfod.ubuntu.com, Fedora debuginfod.fedoraproject.org, others debuginfod.elfutils.org). The
package debuginfod has to be installed. The screen asks before the first file, because servers learn
which builds run here, and remembers the answer; :debuginfod on or off changes it. Without the
variable no byte goes to a network. proftop doctor -p PID and Health say what would give names.";

/// Returns the text of the help or the version, which clap gives as errors. Real errors become a
/// failure of usage. `first` is the first word that was typed, which may be a subcommand.
pub fn or_failure(error: clap::Error, first: &str) -> Result<String, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(error.to_string()),
        _ => Err(Failure::usage(sentence(&error, first))),
    }
}

/// Describes a mistake in the command line in one sentence, with a guess at what the user meant.
/// clap's own text has several paragraphs, of which the first one says what is wrong.
fn sentence(error: &clap::Error, first: &str) -> String {
    let text = error.to_string();
    let lines = text.lines().take_while(|line| !line.is_empty());
    let joined = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    let mut sentence = joined.trim_start_matches("error: ").to_owned();
    let suggested = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ];
    if first_of(error, ContextKind::InvalidArg).is_some_and(|arg| arg == "--freeze-after") {
        sentence += "; it is for live: a recording stands still by itself";
    } else if error.kind() == ErrorKind::MissingRequiredArgument {
        sentence = missing(error, first);
    } else if let Some(guess) = suggested.into_iter().find_map(|kind| first_of(error, kind)) {
        sentence += &format!("; did you mean '{guess}'?");
    } else if let Some(word) = lone_word(error) {
        sentence += &match first {
            sub if TAKES_NO_COMMAND.contains(&sub) => not_of(sub, &word),
            _ => meant_instead(&word),
        };
    }
    // The sentence repeats words of the command line, which may have control characters.
    sentence.retain(|c| !c.is_control());
    sentence
}

/// Describes which arguments are missing, as in `merge needs --output FILE, as in proftop merge …`.
fn missing(error: &clap::Error, subcommand: &str) -> String {
    let wanted = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(wanted)) => wanted.join(" and "),
        _ => "more".into(),
    };
    let wanted = wanted.replace(['<', '>'], "");
    match usage_of(subcommand) {
        Some(example) => format!("{subcommand} needs {wanted}, as in {example}"),
        None => format!("{subcommand} needs {wanted}"),
    }
}

/// Returns the line that shows how a subcommand is used. None if [`USAGE`] has no line for it.
fn usage_of(subcommand: &str) -> Option<&'static str> {
    let begin = format!("proftop {subcommand} ");
    let mut lines = USAGE.lines().map(str::trim);
    lines.find(|line| line.starts_with(&begin))
}

/// Returns a word without a dash that has no place in the command line. clap takes it for a part of
/// the trailing command, and so does not compare it with the subcommands.
fn lone_word(error: &clap::Error) -> Option<String> {
    let word = first_of(error, ContextKind::InvalidArg)?;
    let unknown = error.kind() == ErrorKind::UnknownArgument;
    (unknown && !word.starts_with('-')).then_some(word)
}

/// The subcommands that start no command.
const TAKES_NO_COMMAND: [&str; 15] = [
    "agent",
    "doctor",
    "config",
    "open",
    "demo",
    "report",
    "export",
    "mcp",
    "fleet",
    "merge",
    "resolve",
    "diff",
    "completions",
    "man",
    "symbolize",
];

/// Describes what a subcommand takes, for a word that it does not take.
fn not_of(subcommand: &str, word: &str) -> String {
    if subcommand == "doctor" && word.parse::<u32>().is_ok() {
        return format!("; to look at a process: proftop doctor -p {word}");
    }
    match usage_of(subcommand) {
        Some(usage) => format!("; it is {usage}"),
        None => format!("; proftop {subcommand} takes options only"),
    }
}

/// Guesses what the user meant by a word: a subcommand, a process or a command.
fn meant_instead(word: &str) -> String {
    let subcommands = [
        "doctor",
        "config",
        "record",
        "agent",
        "trace",
        "open",
        "report",
        "export",
        "mcp",
        "fleet",
        "merge",
        "resolve",
        "diff",
        "symbolize",
        "top",
    ];
    if subcommands.contains(&word) {
        format!("; it has to come first: proftop {word}")
    } else if let Some(near) = nearest(word, subcommands.into_iter()) {
        format!("; did you mean '{near}'?")
    } else if word.parse::<u32>().is_ok() {
        format!("; to watch a process: -p {word}")
    } else {
        format!("; to run and watch a command: -- {word}")
    }
}

/// Returns the first text of this kind that clap gives about its error.
fn first_of(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.first().cloned(),
        _ => None,
    }
}
