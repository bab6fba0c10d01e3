//! *Health* is what the numbers lack, and why: lost samples, cut stacks, frames without a name, and
//! what proftop itself costs. Every line has a sentence that explains it.

/// The modules of an open cause, for which frames have no names.
mod causes;
mod draw;
/// Which of several machines deliver samples.
mod machines;
/// What is missing, by module.
mod modules;
mod view;
pub mod words;

pub use causes::{CauseAnswer, CauseRow, CauseWanted, lines as cause_lines};
pub use modules::{ModuleRow, modules};

use crate::desk::{Ask, Desk};
use crate::failure::without_numbers;
use crate::lists::cursor::Cursor;
use crate::lists::motion::Motion;
use crate::words::unnamed::why_unnamed;
use crate::words::{compared, cpus, units, waits};
use engine::losses::Losses;
use engine::snapshot::{NameSource, Snapshot};
use profile::diff::{Diff, DiffRow};
use profile::few;
use profile::{Ending, ModuleId, NoName, OwnMemory, RowName};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// What a line is about. The selection is stored as a topic, so that it survives new snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// A line that only names the section below it.
    Heading(&'static str),
    /// This topic and the next four are about the baseline: its samples, what it lacks, and which
    /// functions are the same on both sides.
    BaselineSamples,
    BaselineLost,
    BaselineWhole,
    BaselineNamed,
    SameFunctions,
    /// Number of samples in the window.
    Taken,
    /// Number of samples that were lost.
    Lost,
    /// The time from which on waits are counted.
    WaitsSince,
    /// Stacks that reach the start of the thread.
    Whole,
    /// User stacks that ended early, for this cause.
    Cut(Ending),
    /// Samples without a user stack, for this cause.
    NoUserStack(Ending),
    /// A module in which stacks were cut, by its position in the list.
    Stop(usize),
    /// For the language at this position in the list: samples with all of its functions.
    LanguageWhole(usize),
    /// For the language at the first position: samples that lack some functions, for the cause at
    /// the second position.
    LanguageLacks(usize, usize),
    /// Samples whose thread held the global lock of the language at this position.
    LanguageLock(usize),
    /// Frames that have a name.
    Named,
    /// Frames whose name is being looked up.
    Pending,
    /// Frames without a name, for this reason.
    Unnamed(NoName),
    /// Below an open cause: a module.
    CauseModule(ModuleId),
    /// Below an open cause: the command to type to get the names of this module.
    CauseCommand(ModuleId),
    /// Below an open cause: all modules that have no line of their own.
    CauseOthers,
    /// Below an open cause: its modules are still being looked up.
    CauseWaits,
    /// A note of the engine, by its position in the list.
    Note(usize),
    /// Of several machines the one at this position, and whether it delivers samples.
    Machine(usize, bool),
    /// The kernel of this machine.
    Kernel,
    /// CPU time of proftop itself.
    OwnCpu,
    /// How much CPU time proftop may use.
    Budget,
    /// Memory of proftop itself.
    OwnMemory,
    /// Memory for samples.
    OwnSamples,
    /// Memory for symbols.
    OwnSymbols,
    /// Memory of the processes that read files.
    OwnHelpers,
}

/// One line of the view.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub topic: Topic,
    pub label: String,
    pub value: Value,
    /// The short reason beside the number.
    pub text: String,
    /// The full sentence, for the detail line.
    pub explain: String,
}

/// The number of a line, by what it counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    None,
    /// The first number is a part of the second.
    Share(u64, u64),
    /// Like `Share`, in nanoseconds, with the number of decimals of the share.
    Time(u64, u64, usize),
    /// A part of a whole of which only the ratio is meaningful, with the number of decimals.
    Part(u64, u64, usize),
    Count(u64),
    CpuPercent(f64),
    Bytes(u64),
}

/// The state of the view: its lines, the selected one, and the open cause.
#[derive(Debug, Default)]
pub struct Health {
    cursor: Cursor<Topic>,
    /// The topics of the snapshot's lines.
    found: Vec<Topic>,
    /// The topics of all lines, including those below the open cause.
    topics: Vec<Topic>,
    height: usize,
    /// The cause whose modules are shown below it.
    opened: Option<NoName>,
    desk: Desk<CauseWanted, CauseAnswer>,
    /// Generation and time of the last snapshots for which the question about the open cause was
    /// asked.
    asked_at: VecDeque<(u64, Duration)>,
}

/// Maximum length of `asked_at`. An answer may be kept until no keys are pressed, while more
/// questions are asked.
const ASKED_MAX: usize = 8;

impl Health {
    /// Takes the lines of a new snapshot. The selected line stays selected. If it is gone, a line
    /// near it is selected.
    pub fn update(&mut self, snapshot: &Snapshot) {
        self.found = findings(snapshot).iter().map(|f| f.topic).collect();
        self.settle();
    }

    /// Inserts the lines of the open cause below it, and finds the selected line again.
    fn settle(&mut self) {
        let before = std::mem::replace(&mut self.topics, self.found.clone());
        let opened = self.opened.map(Topic::Unnamed);
        if let Some(at) = self.topics.iter().position(|topic| opened == Some(*topic)) {
            let below = causes::topics(self.answer());
            self.topics.splice(at + 1..at + 1, below);
        }
        self.cursor.settle_near(&before, &self.topics, self.height);
    }

    /// Returns all lines to be drawn, including those below the open cause.
    pub fn lines(&self, snapshot: &Snapshot) -> Vec<Finding> {
        let mut lines = findings(snapshot);
        let is_open = |line: &Finding| self.opened.map(Topic::Unnamed) == Some(line.topic);
        if let Some(at) = lines.iter().position(is_open) {
            let below = causes::lines(self.answer());
            // The modules were counted some time ago. So that they add up to the line above them,
            // that line shows the counts and the time of that moment, while other lines go on.
            if let Some(answer) = self.answer() {
                let line = &mut lines[at];
                line.value = answer.value();
                let is_live = snapshot.source.recording.is_none();
                if let Some(time) = self.counted_at(answer).filter(|_| is_live) {
                    line.text = format!("at {}: {}", units::clock(time), line.text);
                }
            }
            lines.splice(at + 1..at + 1, below);
        }
        lines
    }

    /// Returns the answer about the open cause, or `None` if no cause is open or there is no answer
    /// about it yet.
    fn answer(&self) -> Option<&CauseAnswer> {
        let shown = self.desk.shown()?;
        Some(&**shown).filter(|shown| Some(shown.key.what.reason) == self.opened)
    }

    /// Returns the time of the snapshot that an answer is about, by the clock of the header.
    fn counted_at(&self, answer: &CauseAnswer) -> Option<Duration> {
        let mut asked = self.asked_at.iter();
        let (_, time) = asked.find(|(generation, _)| *generation == answer.key.generation)?;
        Some(*time)
    }

    /// Opens the selected cause, or closes the cause whose lines are selected. On any other line it
    /// opens the cause of most missing names. Returns false if no name is missing.
    pub fn toggle_cause(&mut self, snapshot: &Snapshot) -> bool {
        let is_cause = |topic: &Topic| matches!(topic, Topic::Unnamed(_));
        let wanted = match self.topics.get(self.index()) {
            Some(Topic::Unnamed(reason)) => Some(*reason),
            Some(
                Topic::CauseModule(_)
                | Topic::CauseCommand(_)
                | Topic::CauseOthers
                | Topic::CauseWaits,
            ) => self.opened,
            _ => match self.topics.iter().position(is_cause) {
                Some(at) => {
                    self.close_cause();
                    self.cursor.select(at, &self.topics, self.height);
                    self.topics.get(at).and_then(|topic| match topic {
                        Topic::Unnamed(reason) => Some(*reason),
                        _ => None,
                    })
                }
                None => return false,
            },
        };
        if self.opened == wanted {
            self.close_cause();
        } else {
            self.opened = wanted;
            self.desk.clear();
        }
        self.update(snapshot);
        true
    }

    /// Closes the open cause and selects its line. Returns false if none was open.
    pub fn close_cause(&mut self) -> bool {
        let Some(opened) = self.opened.take() else {
            return false;
        };
        if let Some(at) = self
            .topics
            .iter()
            .position(|topic| *topic == Topic::Unnamed(opened))
        {
            self.cursor.select(at, &self.topics, self.height);
        }
        self.desk.clear();
        self.settle();
        true
    }

    /// Returns the question about the open cause. Returns `None` if no cause is open, or if the
    /// question was asked already.
    pub fn question(&mut self, snapshot: &Snapshot) -> Option<Ask<CauseWanted>> {
        let wanted = CauseWanted::of(self.opened?, snapshot);
        let ask = self.desk.ask(snapshot, wanted)?;
        if self.asked_at.len() == ASKED_MAX {
            self.asked_at.pop_front();
        }
        let asked = (snapshot.generation, snapshot.run.elapsed);
        self.asked_at.push_back(asked);
        Some(ask)
    }

    /// Takes an answer, and returns whether it is shown now. It is if `is_calm`, or if the modules
    /// of the open cause are not shown yet.
    pub fn receive(&mut self, answer: Arc<CauseAnswer>, is_calm: bool) -> bool {
        let key = answer.key.clone();
        let what = key.what.clone();
        self.desk.receive(&key, what, answer)
            && (is_calm || self.answer().is_none())
            && self.take_waiting()
    }

    /// Shows the answer that `receive` kept. Returns false if there was none.
    pub fn take_waiting(&mut self) -> bool {
        let is_new = self.desk.take_waiting().is_some();
        self.settle();
        is_new
    }

    /// Returns the command to type for the selected module. Returns `None` if another line is
    /// selected, or if no command helps.
    pub fn selected_command(&self) -> Option<String> {
        let (Topic::CauseModule(module) | Topic::CauseCommand(module)) =
            *self.topics.get(self.index())?
        else {
            return None;
        };
        let mut rows = self.answer()?.rows.iter();
        let row = rows.find(|row| row.nameless.module_id == module)?;
        row.advice.command.clone()
    }

    /// Frees the answer about the open cause when the view is left.
    pub fn release(&mut self) {
        self.desk.clear();
    }

    /// Sets how many lines fit on the screen.
    pub fn resize(&mut self, height: usize) {
        self.height = height;
        self.cursor.settle(&self.topics, height);
    }

    /// Returns the number of the first line on the screen.
    pub fn offset(&self) -> usize {
        self.cursor.offset()
    }

    /// Returns the number of the selected line, counted from 0.
    pub fn index(&self) -> usize {
        self.cursor.index()
    }

    /// Moves the selection. A page is one line less than fits on the screen; half a page is treated
    /// as a whole one.
    pub fn go(&mut self, motion: Motion) {
        let motion = match motion {
            Motion::Page { down, .. } => Motion::Page { down, half: false },
            other => other,
        };
        let page = self.height.saturating_sub(1);
        let target = motion.target(self.cursor.index(), page, self.topics.len());
        self.cursor.select(target, &self.topics, self.height);
    }

    /// Selects the line on a line of the body, counted from 0 at the top. Below the last line there
    /// is nothing to select.
    pub fn select_line(&mut self, line: usize) {
        let at = self.cursor.offset() + line;
        self.cursor.select(at, &self.topics, self.height);
    }
}

/// Returns all lines of the view in their order: counts of the window before counts of the whole
/// run.
pub fn findings(snapshot: &Snapshot) -> Vec<Finding> {
    let mut lines = baseline(snapshot);
    lines.extend(samples(snapshot));
    lines.extend(stacks(snapshot));
    lines.extend(symbols(snapshot));
    lines.extend(stops(snapshot));
    lines.extend(languages(snapshot));
    lines.extend(machines::findings(snapshot));
    lines.extend(system(snapshot));
    if snapshot.source.recording.is_none() {
        lines.extend(overhead(snapshot));
    }
    lines
}

/// Returns the lines about the baseline, if there is one.
fn baseline(snapshot: &Snapshot) -> Vec<Finding> {
    let (Some(lacks), Some(diff)) = (&snapshot.comparison.lacks, &snapshot.comparison.functions)
    else {
        return Vec::new();
    };
    let completeness = &lacks.completeness;
    let line = |topic, label: &str, value, text: String, explain: &str| Finding {
        topic,
        label: label.into(),
        value,
        text,
        explain: explain.into(),
    };
    let new = diff.rows.iter().filter(|row| row.is_new()).count();
    let gone = diff.rows.iter().filter(|row| row.is_gone()).count();
    let is_on_both = |row: &&DiffRow| !row.is_new() && !row.is_gone();
    let same = diff.rows.iter().filter(is_on_both).count();
    vec![
        heading(
            "A, the baseline",
            "What is shown, B, is compared with it: what it lacks looks like a change.",
        ),
        line(
            Topic::BaselineSamples,
            "A taken",
            Value::Count(lacks.samples),
            format!("in {:.1} s", lacks.window.seconds()),
            "The samples of A, by its own scope and window.",
        ),
        line(
            Topic::BaselineLost,
            "A lost",
            Value::Share(lacks.lost, lacks.samples + lacks.lost),
            String::new(),
            "Came faster than they were read while A was taken.",
        ),
        line(
            Topic::BaselineWhole,
            "A whole",
            Value::Share(completeness.whole, completeness.user_stacks),
            "stacks; callers of the others are missing".into(),
            "Where more stacks were cut, outer functions have less total time.",
        ),
        line(
            Topic::BaselineNamed,
            "A named",
            Value::Share(completeness.named, completeness.frames),
            "frames".into(),
            "A function without a name on one side is another one on the other.",
        ),
        line(
            Topic::SameFunctions,
            "same functions",
            Value::Count(same as u64),
            same_functions(diff, new, gone),
            "Functions are the same by build-id and name, or else by the names of both, or by \
             their own names in files that are taken for one program.",
        ),
    ]
}

/// Returns by what means functions of both sides were found to be the same, and how many exist on
/// one side only.
fn same_functions(diff: &Diff, new: usize, gone: usize) -> String {
    let mut text = format!(
        "{} by build-id, {} by name; new {new}, gone {gone}",
        diff.same_by_build_id, diff.same_by_module
    );
    for renamed in &diff.renamed {
        text.push_str("; ");
        text.push_str(&compared::renamed(renamed));
    }
    text
}

/// Returns the lines about how many samples the window has, and how many were lost.
fn samples(snapshot: &Snapshot) -> Vec<Finding> {
    let (taken, lost) = (snapshot.report.samples, snapshot.health.lost);
    let by_cpu = snapshot
        .run
        .losses
        .as_ref()
        .map_or_else(String::new, |losses| lost_by_cpu(losses));
    let why_lost = match (lost, &*by_cpu) {
        (0, _) => String::new(),
        (_, "") => "a buffer was full".into(),
        (_, by_cpu) => format!("a buffer was full; in this run {by_cpu}"),
    };
    let is_time = snapshot.counts_time();
    let (title, sentence, taken_explain) = if is_time {
        (
            "TIME in the window",
            "A wait counts with its length, when it ends; see docs/waiting.md.",
            "This time is in the window and is counted in every view.",
        )
    } else {
        (
            "SAMPLES in the window",
            "A clock ticks on each CPU; a tick that finds a thread there is a sample.",
            "These samples are in the window and are counted in every view.",
        )
    };
    let mut lines = vec![
        heading(title, sentence),
        Finding {
            topic: Topic::Taken,
            label: if is_time { "counted" } else { "taken" }.into(),
            value: if is_time {
                Value::Time(taken, taken, digits(snapshot, taken))
            } else {
                Value::Share(taken, taken + lost)
            },
            text: "the base of shares in other views".into(),
            explain: taken_explain.into(),
        },
        Finding {
            topic: Topic::Lost,
            label: "lost".into(),
            // The lengths of lost waits are unknown.
            value: if is_time {
                Value::Count(lost)
            } else {
                Value::Share(lost, taken + lost)
            },
            text: why_lost,
            explain: "Came faster than they were read. Shares are fair if all code lost alike."
                .into(),
        },
    ];
    lines.extend(waits_since(snapshot));
    lines
}

/// Returns the line that says since when waits are counted, in a run that started without them.
fn waits_since(snapshot: &Snapshot) -> Option<Finding> {
    let since = waits::since(snapshot)?;
    Some(Finding {
        topic: Topic::WaitsSince,
        label: "waits".into(),
        value: Value::None,
        text: format!("counted since {since}"),
        explain: format!(
            "Waits are counted since {since}, when they were asked for; of a window that begins \
             before, off-cpu, wall and kept-waiting have only what came since."
        ),
    })
}

/// Number of CPUs that are named; the others are summed up.
const CPUS_TOLD: usize = 2;

/// Returns the samples lost in this run, as `CPU 3 611, CPU 7 515, 2 more 12`; empty if that is not
/// known.
pub fn lost_by_cpu(losses: &Losses) -> String {
    let by_cpu = losses.by_cpu();
    let (first, others) = by_cpu.split_at(by_cpu.len().min(CPUS_TOLD));
    let mut words: Vec<String> = first
        .iter()
        .map(|(cpu, lost)| format!("CPU {cpu} {}", units::count(*lost)))
        .collect();
    if !others.is_empty() {
        let lost = others.iter().map(|(_, lost)| lost).sum();
        words.push(format!("{} more {}", others.len(), units::count(lost)));
    }
    words.join(", ")
}

/// Returns the lines about modules in which stacks were cut, most samples first.
fn stops(snapshot: &Snapshot) -> Vec<Finding> {
    let stops = &snapshot.health.stops;
    if stops.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![heading(
        "CUT in this run, by module",
        "Where the walk stopped, and why: the module of the last frame that was found.",
    )];
    let shown = stops.iter().take(STOPS_MAX).enumerate();
    lines.extend(shown.map(|(number, stop)| Finding {
        topic: Topic::Stop(number),
        label: stop.module.to_string(),
        value: Value::Count(stop.samples),
        text: stop.cause.label().replace('_', " "),
        explain: format!("{}: {}.", stop.module, stop.cause.explain()),
    }));
    lines
}

/// Returns the lines about how many samples have all functions of the languages whose runtimes run
/// beside native code, and why the others do not.
fn languages(snapshot: &Snapshot) -> Vec<Finding> {
    let stacks = &snapshot.health.languages;
    if stacks.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![heading(
        "LANGUAGES in this run",
        "Functions that a runtime runs, which native stacks do not have.",
    )];
    for (at, stacks) in stacks.iter().enumerate() {
        let (samples, language) = (stacks.samples(), stacks.language);
        lines.push(Finding {
            topic: Topic::LanguageWhole(at),
            label: language.into(),
            value: Value::Share(stacks.whole, samples),
            text: format!("of {} samples have all functions", units::count(samples)),
            explain: format!(
                "Samples of programs that run {language}: with all of its functions in the stack."
            ),
        });
        let lacking = stacks.lacking.iter().enumerate();
        lines.extend(lacking.map(|(cause, (why, lacking))| Finding {
            topic: Topic::LanguageLacks(at, cause),
            label: "  not whole".into(),
            value: Value::Share(*lacking, samples),
            text: (*why).into(),
            explain: format!(
                "{} samples {why}: such stacks have native functions only, or not all of {language}.",
                units::count(*lacking)
            ),
        }));
        if stacks.lock_known > 0 {
            lines.push(Finding {
                topic: Topic::LanguageLock(at),
                label: "  had the lock".into(),
                value: Value::Share(stacks.lock_held, stacks.lock_known),
                text: "of samples on a CPU; the others ran beside it".into(),
                explain: format!(
                    "One thread of a process at a time has {language}'s global lock: near 100%, \
                     more threads make nothing faster."
                ),
            });
        }
    }
    lines
}

/// Maximum number of modules that are listed. Scripts get more.
const STOPS_MAX: usize = 5;

/// Returns the lines about how many stacks are whole, and how many are cut for each cause. Samples
/// without a user stack have causes too, but are not counted among these stacks.
fn stacks(snapshot: &Snapshot) -> Vec<Finding> {
    let is_time = snapshot.counts_time();
    let share = |part, base| {
        if is_time {
            Value::Time(part, base, digits(snapshot, base))
        } else {
            Value::Share(part, base)
        }
    };
    let completeness = &snapshot.report.completeness;
    let stacks = completeness.user_stacks;
    let mut lines = vec![
        heading(
            "STACKS of programs",
            "A cut stack still counts for the functions that it has.",
        ),
        Finding {
            topic: Topic::Whole,
            label: "whole".into(),
            value: share(completeness.whole, stacks),
            text: if is_time {
                format!("of {}, to the thread's start", units::nanoseconds(stacks))
            } else {
                format!(
                    "of {}, to the thread's start",
                    units::counted(stacks, "stack")
                )
            },
            explain: format!("Whole: {}.", Ending::Root.explain()),
        },
    ];
    for (ending, count) in &completeness.endings {
        if ending.is_whole() {
            continue;
        }
        let topic = if ending.is_user_stack() {
            Topic::Cut(*ending)
        } else {
            Topic::NoUserStack(*ending)
        };
        lines.push(Finding {
            topic,
            label: ending.label().replace('_', " "),
            value: if ending.is_user_stack() {
                share(*count, stacks)
            } else if is_time {
                let all = snapshot.report.samples;
                Value::Time(*count, all, digits(snapshot, all))
            } else {
                Value::Count(*count)
            },
            text: ending.explain().into(),
            explain: sentence(ending.explain()),
        });
    }
    lines
}

/// Returns how many decimals shares of `base` deserve, given the number of stacks.
fn digits(snapshot: &Snapshot, base: u64) -> usize {
    snapshot.report.percent_digits(base)
}

/// Returns the lines about how many frames have names, and how many have none for each reason.
fn symbols(snapshot: &Snapshot) -> Vec<Finding> {
    let completeness = &snapshot.report.completeness;
    let frames = completeness.frames;
    let is_time = snapshot.counts_time();
    let of_all = if is_time {
        "of the frames, each as long as its wait".into()
    } else {
        format!("of {}", units::counted(frames, "frame"))
    };
    let share = |part| {
        if is_time {
            Value::Part(part, frames, digits(snapshot, frames))
        } else {
            Value::Share(part, frames)
        }
    };
    let (text, explain) = match names_from(snapshot) {
        from if from.is_empty() => (of_all, "These frames have a function name.".into()),
        from => (
            format!("{of_all}: {from}"),
            format!("With a name; of the samples on top of stacks: {from}."),
        ),
    };
    let mut lines = vec![
        heading(
            "NAMES of frames",
            "Every frame of every sample in the window is counted here.",
        ),
        Finding {
            topic: Topic::Named,
            label: "named".into(),
            value: share(completeness.named),
            text,
            explain,
        },
    ];
    if completeness.pending > 0 {
        lines.push(Finding {
            topic: Topic::Pending,
            label: "on its way".into(),
            value: share(completeness.pending),
            text: "symbols are being read".into(),
            explain: "They show as module+offset until their file's symbols are read.".into(),
        });
    }
    for (reason, count) in &completeness.unnamed {
        lines.push(Finding {
            topic: Topic::Unnamed(*reason),
            label: reason.label().replace('_', " "),
            value: share(*count),
            text: why_unnamed(*reason).trim_end_matches('.').into(),
            explain: why_unnamed(*reason).into(),
        });
    }
    lines
}

/// Returns where the names of frames come from, as `.symtab 61%, debug file 30%, kallsyms 9%`;
/// empty if that is not known. A function that is twice on a stack counts once.
fn names_from(snapshot: &Snapshot) -> String {
    if snapshot.names.from.is_empty() {
        return String::new();
    }
    let mut by_label: BTreeMap<&str, u64> = BTreeMap::new();
    let functions = snapshot.report.functions.iter();
    // Rows that stand for a missing stack are in no file.
    let named = functions
        .filter(|function| function.name_state == RowName::Named && !function.module.is_empty());
    for function in named {
        let from = snapshot.names.from.of(&function.module);
        let label = from.map_or("elsewhere", NameSource::label);
        *by_label.entry(label).or_default() += function.total_samples;
    }
    let all: u64 = by_label.values().sum();
    let mut by_label: Vec<_> = by_label.into_iter().filter(|(_, n)| *n > 0).collect();
    few::sort_by_key(&mut by_label, |(label, frames)| (Reverse(*frames), *label));
    let words = by_label.into_iter().map(|(label, frames)| {
        let share = units::completeness_in(&snapshot.report, frames, all);
        format!("{label} {share}%")
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Returns the lines about the machine, and the notes of the engine about what does not work here.
fn system(snapshot: &Snapshot) -> Vec<Finding> {
    let host = &snapshot.source.host;
    let cpus = if host.sampled_cpus.is_empty() {
        cpus::sampled(host)
    } else {
        format!("only {} sampled", cpus::sampled(host))
    };
    let mut lines = Vec::new();
    // Samples of a server or of some files do not tell of a kernel.
    if !host.kernel.is_empty() {
        lines.push(Finding {
            topic: Topic::Kernel,
            label: "kernel".into(),
            value: Value::None,
            text: format!("Linux {} {}, {}", host.kernel, host.arch, cpus),
            explain: format!(
                "Linux {} on {}; {} samples per second and CPU.",
                host.kernel, host.arch, snapshot.source.rate_hz
            ),
        });
    }
    for (number, note) in snapshot.health.notes.iter().enumerate() {
        lines.push(Finding {
            topic: Topic::Note(number),
            label: "note".into(),
            value: Value::None,
            text: without_numbers(note).into_owned(),
            explain: without_numbers(note).into_owned(),
        });
    }
    if !lines.is_empty() {
        let head = heading("SYSTEM", "What this machine and these rights allow.");
        lines.insert(0, head);
    }
    lines
}

/// Returns the lines about what proftop itself costs.
fn overhead(snapshot: &Snapshot) -> Vec<Finding> {
    let health = &snapshot.health;
    let mut findings = vec![
        heading(
            "COST of proftop",
            "What watching costs. proftop is also in its own process table.",
        ),
        Finding {
            topic: Topic::OwnCpu,
            label: "CPU".into(),
            value: Value::CpuPercent(health.own_cpu_percent),
            text: "of one CPU, kernel part included".into(),
            explain:
                "The CPU time that proftop, the processes that read files for it and its part in \
                      the kernel use, of one CPU."
                    .into(),
        },
        Finding {
            topic: Topic::OwnMemory,
            label: "memory".into(),
            value: Value::Bytes(health.own_rss_bytes),
            text: "resident".into(),
            explain:
                "The memory of proftop that is resident. What is not told apart is code, what \
                      it shares with the kernel, and reports."
                    .into(),
        },
    ];
    if snapshot.health.own_memory != OwnMemory::default() {
        findings.extend(memory_by_part(&snapshot.health.own_memory));
    }
    if let Some(budget) = snapshot.source.budget {
        findings.push(Finding {
            topic: Topic::Budget,
            label: "budget".into(),
            value: Value::CpuPercent(budget.percent),
            text: "of one CPU may be taken (--budget)".into(),
            explain: budget
                .note()
                .unwrap_or_else(|| "Nothing had to be left out to keep to it.".into()),
        });
    }
    findings
}

/// Returns the lines about what memory is used for.
fn memory_by_part(memory: &OwnMemory) -> [Finding; 3] {
    let part = |topic, label: &str, bytes, text: &str, explain: &str| Finding {
        topic,
        label: label.into(),
        value: Value::Bytes(bytes),
        text: text.into(),
        explain: explain.into(),
    };
    [
        part(
            Topic::OwnSamples,
            "samples",
            memory.samples,
            "of it: samples, stacks, names (--mem)",
            "Samples with their stacks, names and lines. --keep and --mem say how much is kept.",
        ),
        part(
            Topic::OwnSymbols,
            "symbols",
            memory.symbols,
            "of it: symbols, debug information",
            "Symbols of the kernel, and debug information that was read and may be asked again. \
             What nobody has asked for half a minute is dropped.",
        ),
        part(
            Topic::OwnHelpers,
            "helpers",
            memory.helpers,
            "beside it: processes that read files",
            "The processes that open files and understand them. Their memory is their own, and \
             not in what is resident.",
        ),
    ]
}

/// Returns a heading. It can be selected, and explains the lines below it.
fn heading(title: &'static str, explain: &str) -> Finding {
    Finding {
        topic: Topic::Heading(title),
        label: title.into(),
        value: Value::None,
        text: String::new(),
        explain: explain.into(),
    }
}

/// Makes a sentence of a text, with a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), chars.as_str()),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::alike::no_name;
    use symbolize::Reason;

    #[test]
    fn the_cpus_that_lost_most_are_told() {
        let mut losses = Losses::default();
        assert_eq!(lost_by_cpu(&losses), "");
        losses.note(10, 5, &[(1, 5)]);
        assert_eq!(lost_by_cpu(&losses), "CPU 1 5");
        losses.note(20, 1_151, &[(1, 5), (3, 611), (7, 515), (15, 20)]);
        assert_eq!(lost_by_cpu(&losses), "CPU 3 611, CPU 7 515, 2 more 25");
    }

    #[test]
    fn memory_is_told_by_part_where_it_is_known() {
        let memory = OwnMemory {
            samples: 12 << 20,
            symbols: 3 << 20,
            helpers: 5 << 20,
        };
        let mut snapshot = Snapshot::default();
        let labels = |snapshot: &Snapshot| {
            let found = overhead(snapshot)
                .into_iter()
                .map(|finding| (finding.label, finding.value));
            found
                .skip_while(|(label, _)| label != "memory")
                .collect::<Vec<_>>()
        };
        assert_eq!(labels(&snapshot).len(), 1);
        snapshot.health.own_memory = memory;
        let told = labels(&snapshot);
        let told = told[1..].iter().map(|(label, value)| (&**label, value));
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                ("samples", &Value::Bytes(12 << 20)),
                ("symbols", &Value::Bytes(3 << 20)),
                ("helpers", &Value::Bytes(5 << 20)),
            ]
        );
    }

    #[test]
    fn every_reason_has_a_sentence() {
        for reason in Reason::ALL {
            assert_eq!(why_unnamed(no_name(reason)), reason.explain());
        }
    }
}
