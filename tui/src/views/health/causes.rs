//! The modules of an open *cause*, for which frames have no names, and the commands that get names
//! for each.

use super::{Finding, Topic, Value};
use crate::advice::{Advice, Code};
use crate::code::Library;
use crate::desk::{Answer, Answerable, Ask, Key, Lane};
use crate::failure::rights::quote;
use crate::words::text;
use engine::snapshot::Snapshot;
use profile::query::Nameless;
use profile::{Cancel, FrameKind, NoName};
use std::path::{Path, PathBuf};

/// Maximum number of modules that are listed. The others have few samples.
const MODULES_MAX: usize = 12;

/// The width of a module's name in cells.
const NAME_CELLS: usize = 14;

/// Which cause the modules are wanted for. Two equal values ask for the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CauseWanted {
    /// The cause.
    pub reason: NoName,
    /// The path of the recording that the samples come from, empty if it came through a pipe.
    /// `None` if they are taken now. The processes of a recording no longer run.
    pub recording: Option<PathBuf>,
}

impl CauseWanted {
    /// Creates the question for the modules with frames that have no names for this reason.
    pub fn of(reason: NoName, snapshot: &Snapshot) -> Self {
        let recording = snapshot.source.recording.as_ref();
        CauseWanted {
            reason,
            recording: recording.map(|file| file.path.clone()),
        }
    }
}

/// The answer: the modules of a cause.
#[derive(Debug)]
pub struct CauseAnswer {
    pub key: Key<CauseWanted>,
    pub rows: Vec<CauseRow>,
    /// The number of modules that have no row, and the number of their frames without a name.
    pub others: (usize, u64),
    /// Frames without a name for this reason, and all frames, at the time of the question.
    frames: (u64, u64),
}

/// A module with frames that have no names, and advice on how to get them.
#[derive(Debug)]
pub struct CauseRow {
    pub nameless: Nameless,
    pub advice: Advice,
}

impl CauseAnswer {
    /// Returns the frames without a name for this reason, as a part of all frames.
    pub fn value(&self) -> Value {
        Value::Share(self.frames.0, self.frames.1)
    }

    /// Answers the question. Returns `None` if it was cancelled.
    pub fn new(ask: &Ask<CauseWanted>, library: &mut dyn Library, cancel: &Cancel) -> Option<Self> {
        let CauseWanted { reason, recording } = &ask.key.what;
        let selection = ask.select(cancel)?;
        let mut found = selection.nameless(cancel).ok()?;
        found.retain(|row| row.reason == *reason);
        let nameless = found.iter().map(|row| row.frames).sum();
        let others = found.split_off(found.len().min(MODULES_MAX));
        let advice = match recording {
            Some(file) => found
                .iter()
                .map(|row| of_recording(file, row.reason))
                .collect(),
            None => advise(&found, library),
        };
        let rows = found.into_iter().zip(advice);
        Some(CauseAnswer {
            rows: rows
                .map(|(nameless, advice)| CauseRow { nameless, advice })
                .collect(),
            frames: (nameless, selection.completeness().frames),
            others: (others.len(), others.iter().map(|row| row.frames).sum()),
            key: ask.key.clone(),
        })
    }
}

/// Returns advice for each of these modules, in the same order.
fn advise(found: &[Nameless], library: &mut dyn Library) -> Vec<Advice> {
    let code = |row: &Nameless| {
        Some(Code {
            path: Path::new(&*row.path).to_owned(),
            reason: engine::alike::reason(row.reason)?,
            has_build_id: !row.build_id.is_empty(),
            process: row.pid.map(|pid| (pid, row.comm.to_string())),
        })
    };
    match found.iter().map(code).collect::<Option<Vec<_>>>() {
        Some(codes) => library.advise(&codes),
        // Some reason is one of the profile itself, which no file on this machine can change.
        None => vec![Advice::default(); found.len()],
    }
}

/// Returns advice for a recording. Its names are looked up in the files of the machine it comes
/// from, and only if the reason is one that other files can change.
fn of_recording(file: &Path, reason: NoName) -> Advice {
    match reason {
        // The files that existed during the recording had no names. Only other files can have them.
        NoName::Stripped | NoName::NotCovered => {
            let file = if file.as_os_str().is_empty() {
                "FILE".to_owned()
            } else {
                quote(&file.to_string_lossy())
            };
            return Advice {
                note: format!(
                    "If its debug file is in some DIR: `proftop resolve {file} --debug-dir DIR`. \
                     Nothing else has these names."
                ),
                ..Advice::default()
            };
        }
        NoName::Jit | NoName::JitNotCovered | NoName::JitMapRefused => {
            return Advice {
                note: "The process wrote no names of this code, and they ended with it: record \
                       again, with the option of its runtime that writes them."
                    .into(),
                ..Advice::default()
            };
        }
        NoName::Unmapped | NoName::CodeGone | NoName::NoStack | NoName::Damaged => {
            return Advice {
                note: "Nothing has these names any more.".into(),
                ..Advice::default()
            };
        }
        _ => {}
    }
    const WHERE: &str = "on the machine it was taken on, or with `--debug-dir` and a folder \
                         that has its files";
    if file.as_os_str().is_empty() {
        return Advice {
            note: format!("Keep it in a file, and type `proftop resolve FILE` {WHERE}."),
            ..Advice::default()
        };
    }
    Advice {
        command: Some(format!(
            "proftop resolve {}",
            quote(&file.to_string_lossy())
        )),
        note: format!("Type it {WHERE}."),
        ..Advice::default()
    }
}

impl Answerable for Ask<CauseWanted> {
    fn answer(&self, library: &mut dyn Library, cancel: &Cancel) -> Option<Answer> {
        Some(Answer::new(CauseAnswer::new(self, library, cancel)?))
    }

    /// The package of a file is read from databases on disk, which can take long.
    fn lane(&self) -> Lane {
        Lane::Code
    }
}

/// Returns the topics of the lines below an open cause.
pub fn topics(answer: Option<&CauseAnswer>) -> Vec<Topic> {
    let Some(answer) = answer else {
        return vec![Topic::CauseWaits];
    };
    let modules = answer.rows.iter().map(|row| row.nameless.module_id);
    let of_row = |module| [Topic::CauseModule(module), Topic::CauseCommand(module)];
    let others = (answer.others.0 > 0).then_some(Topic::CauseOthers);
    modules.flat_map(of_row).chain(others).collect()
}

/// Returns the lines below an open cause, in the order of [`topics`].
pub fn lines(answer: Option<&CauseAnswer>) -> Vec<Finding> {
    let Some(answer) = answer else {
        return vec![Finding {
            topic: Topic::CauseWaits,
            label: String::new(),
            value: Value::None,
            text: "looking for the modules …".into(),
            explain: "The modules and packages are being looked up.".into(),
        }];
    };
    let frames = answer.frames.1;
    let mut lines = Vec::new();
    for row in &answer.rows {
        lines.push(module_line(row, frames));
        lines.push(command_line(row));
    }
    let (modules, of_them) = answer.others;
    if modules > 0 {
        lines.push(Finding {
            topic: Topic::CauseOthers,
            label: format!("  {modules} more"),
            value: Value::Share(of_them, frames),
            text: "modules with less".into(),
            explain: "Modules with fewer frames without a name for this reason.".into(),
        });
    }
    lines
}

/// Returns the line of a module: its frames without names, its package or process, its build id.
fn module_line(row: &CauseRow, frames: u64) -> Finding {
    let Nameless { comm, pid, .. } = &row.nameless;
    let process = pid.map(|pid| format!("{comm}[{pid}]"));
    let package = row.advice.package.clone();
    let is_file = row.nameless.kind != FrameKind::Jit;
    let build_id = match &*row.nameless.build_id {
        [] if is_file => Some("no build-id".to_owned()),
        [] => None,
        id => Some(format!("build-id {}", hexadecimal(id))),
    };
    // The package says more than a process; code that is in no file has only a process.
    let told = [package.as_ref().or(process.as_ref()).cloned(), build_id];
    let symbols = row.advice.symbols.as_ref();
    let symbols = symbols.map(|symbols| format!("symbols in {symbols}"));
    let words: Vec<String> = told.iter().flatten().cloned().chain(symbols).collect();
    let module = &row.nameless.module;
    Finding {
        topic: Topic::CauseModule(row.nameless.module_id),
        label: format!("  {}", text::cut_middle(module, NAME_CELLS)),
        value: Value::Share(row.nameless.frames, frames),
        text: told.into_iter().flatten().collect::<Vec<_>>().join(", "),
        explain: format!("{module}: {}.", words.join(", ")),
    }
}

/// Returns the line below a module: the command to type, or what else would help.
fn command_line(row: &CauseRow) -> Finding {
    let Advice { command, note, .. } = &row.advice;
    Finding {
        topic: Topic::CauseCommand(row.nameless.module_id),
        label: String::new(),
        value: Value::None,
        text: match command {
            Some(command) => format!("type: {command}"),
            None => note.clone(),
        },
        explain: match command {
            Some(command) if note.is_empty() => command.clone(),
            Some(command) => format!("{command}   {note}"),
            None => note.clone(),
        },
    }
}

/// Returns bytes as hexadecimal digits, two for each.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolve_is_advised_where_it_can_find_something() {
        let file = Path::new("/srv/all.pft");
        let left_out = of_recording(file, NoName::LeftOut);
        assert_eq!(left_out.line(), "proftop resolve /srv/all.pft");
        // The files of the machine already had no names when it was recorded.
        let stripped = of_recording(file, NoName::Stripped);
        assert_eq!(stripped.command, None);
        assert!(stripped.note.contains("--debug-dir DIR"), "{stripped:?}");
        for nowhere in [NoName::Jit, NoName::Unmapped] {
            let advice = of_recording(file, nowhere);
            assert!(!advice.line().contains("resolve"), "{advice:?}");
        }
    }
}
