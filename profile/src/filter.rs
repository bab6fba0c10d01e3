//! The *filter*: a small algebra on samples and stacks, as text and as values.
//!
//! ```text
//! focus:fn~^Exec !mod:libc.so.6 comm:postgres tid:4131 cpu:0-3 hide:memcpy
//! ```
//!
//! A filter is a list of clauses, applied in order; a sample counts if all of
//! them keep it, so one more clause never adds a sample.
//!
//! | clause | what it does |
//! | --- | --- |
//! | `word`, `focus:TEST`, `TEST` | keeps the stacks that have such a frame |
//! | `!TEST`, `exclude:TEST` | drops them |
//! | `hide:TEST` | charges such frames to their callers |
//! | `fold:MODULE` | charges a whole module's frames to their callers |
//! | `only:TEST` | hides all other frames |
//! | `show:internals` | shows what an interpreter (CPython) does itself below a function that it runs, and how a library and the kernel make a wait; else that is charged to the function that they work for |
//! | `fold:recursion` | a function that calls itself is one frame |
//! | `pid: tid: cpu: comm: cgroup: user: host:` | keeps samples by who ran where; `!` turns it round |
//! | `state:` | keeps samples by what the thread did: `run`, or what it waited for; `idle`: it waited for work; `join`: for the end of a thread |
//!
//! A TEST is a bare word (part of a function's name; case counts if it has a
//! capital), `fn:NAME`, `fn~REGEX`, `mod:NAME` (`mod:libc` is `libc.so.6`, too),
//! `mod~REGEX`, `file:NAME`, `file~REGEX`, or `kind:` `kernel`, `user`, `jit`, `inlined`. Numbers are
//! lists of ranges: `cpu:0-3,7`; states are lists of words: `state:lock,disk`. A value with
//! spaces goes in double quotes.

mod own;
mod parse;
mod states;
mod text;
mod write;

pub(crate) use own::foreign;
pub use own::without_foreign;
pub use parse::FilterError;
pub use states::{States, is_idle_call, is_join_call};
pub use text::Text;

use std::str::FromStr;

/// What samples must pass, and what is taken out of their stacks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    clauses: Vec<Clause>,
}

/// One step of a filter.
#[derive(Debug, Clone, PartialEq)]
pub enum Clause {
    /// About the thread or CPU of a sample.
    Sample {
        /// What is asked of the sample.
        test: SampleTest,
        /// Whether those that pass the test are dropped instead of kept.
        negated: bool,
    },
    /// About the frames of a stack.
    Stack {
        /// What is done with stacks or frames that pass the test.
        action: Action,
        /// What is asked of each frame.
        test: FrameTest,
    },
    /// A function that calls itself is one frame: the repeated ones are taken out.
    FoldRecursion,
    /// Functions of an interpreter itself stay on the stacks of those that it runs, and on
    /// stacks that wait those by which libraries and the kernel wait.
    ShowInternals,
}

/// What a filter does by a [`FrameTest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Keeps the stacks that have such a frame.
    Focus,
    /// Drops the stacks that have such a frame.
    Exclude,
    /// Takes such frames out of stacks: their samples count for their callers.
    Hide,
    /// Takes all other frames out of stacks.
    Only,
}

/// A question about a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameTest {
    /// Is its function called so?
    Name(Text),
    /// Is its module called so? A library's name also matches without its version.
    Module(Text),
    /// Is its source file called so?
    File(Text),
    /// Is it in the kernel?
    Kernel,
    /// Is it in a program or library of a process?
    User,
    /// Is it in code that was made at run time?
    Jit,
    /// Is its function one of Python's?
    Python,
    /// Was its function inlined there into its caller?
    Inlined,
}

/// A question about the thread or the CPU of a sample.
#[derive(Debug, Clone, PartialEq)]
pub enum SampleTest {
    /// Is the number of its process among these?
    Pid(Ranges),
    /// Is the number of its thread among these?
    Tid(Ranges),
    /// Is the number of its CPU among these?
    Cpu(Ranges),
    /// Is its thread called so?
    Comm(Text),
    /// Does the path of its control group match?
    Cgroup(Text),
    /// Does its process run as the user of that name?
    User(Text),
    /// The name of the machine, in a profile of several.
    Host(Text),
    /// Is what its thread did one of these?
    State(States),
}

/// Numbers, as ranges with both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranges(pub Vec<(u32, u32)>);

impl Ranges {
    /// Whether a number lies in one of the ranges.
    pub fn contains(&self, number: u32) -> bool {
        let holds = |(first, last): &(u32, u32)| (*first..=*last).contains(&number);
        self.0.iter().any(holds)
    }
}

impl Filter {
    /// The steps, in the order in which they are applied.
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// Whether every sample passes unchanged.
    pub fn is_empty(&self) -> bool {
        self.clauses.is_empty()
    }

    /// Whether it begins with all steps of `other`: what passes it passes that one, too.
    pub fn extends(&self, other: &Filter) -> bool {
        self.clauses.starts_with(&other.clauses)
    }

    /// Whether some step is about threads or CPUs, and not about stacks.
    pub(crate) fn asks_of_samples(&self) -> bool {
        let is_of_sample = |clause: &Clause| matches!(clause, Clause::Sample { .. });
        self.clauses.iter().any(is_of_sample)
    }

    /// Adds a step behind all others.
    pub fn push(&mut self, clause: Clause) {
        self.clauses.push(clause);
    }

    /// Takes one clause back, wherever it stands; false if it is not there.
    pub fn remove(&mut self, clause: &Clause) -> bool {
        let at = self.clauses.iter().rposition(|each| each == clause);
        at.map(|at| self.clauses.remove(at)).is_some()
    }

    /// Takes the last clause back.
    pub fn pop(&mut self) -> Option<Clause> {
        self.clauses.pop()
    }
}

impl Clause {
    /// About exactly that function.
    pub fn function(action: Action, name: &str) -> Self {
        Clause::Stack {
            action,
            test: FrameTest::Name(Text::is(name)),
        }
    }

    /// About exactly that module.
    pub fn module(action: Action, name: &str) -> Self {
        Clause::Stack {
            action,
            test: FrameTest::Module(Text::is(name)),
        }
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let clauses = parse::clauses(text)?;
        Ok(Self { clauses })
    }
}
