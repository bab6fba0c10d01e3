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

/// Which samples pass, and which frames are removed from their stacks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    clauses: Vec<Clause>,
}

/// One step of a filter.
#[derive(Debug, Clone, PartialEq)]
pub enum Clause {
    /// A test of the thread or CPU of a sample.
    Sample {
        /// What is tested.
        test: SampleTest,
        /// Whether those that pass the test are dropped instead of kept.
        negated: bool,
    },
    /// A test of the frames of a stack.
    Stack {
        /// What is done with stacks or frames that pass the test.
        action: Action,
        /// What is tested of each frame.
        test: FrameTest,
    },
    /// Merges recursion: repeated frames of one function are removed from a stack.
    FoldRecursion,
    /// Keeps an interpreter's own functions on the stacks of the functions that it runs, and keeps
    /// on waiting stacks the functions with which libraries and the kernel wait.
    ShowInternals,
}

/// What a filter does with the frames that pass a [`FrameTest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Keeps the stacks that have such a frame.
    Focus,
    /// Drops the stacks that have such a frame.
    Exclude,
    /// Removes such frames from stacks: their samples count for their callers.
    Hide,
    /// Removes all other frames from stacks.
    Only,
}

/// A test of a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameTest {
    /// Does its function's name match?
    Name(Text),
    /// Does its module's name match? A library's name also matches without its version.
    Module(Text),
    /// Does its source file's name match?
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

/// A test of the thread or the CPU of a sample.
#[derive(Debug, Clone, PartialEq)]
pub enum SampleTest {
    /// Is its pid in these ranges?
    Pid(Ranges),
    /// Is its tid in these ranges?
    Tid(Ranges),
    /// Is its CPU number in these ranges?
    Cpu(Ranges),
    /// Does its thread's name match?
    Comm(Text),
    /// Does the path of its control group match?
    Cgroup(Text),
    /// Does the name of its process's user match?
    User(Text),
    /// Does the name of its machine match? Only profiles of several machines have one.
    Host(Text),
    /// Was its thread in one of these states?
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

    /// Whether it begins with all steps of `other`: then every sample that passes it also passes
    /// `other`.
    pub fn extends(&self, other: &Filter) -> bool {
        self.clauses.starts_with(&other.clauses)
    }

    /// Whether some step tests threads or CPUs, and not only stacks.
    pub(crate) fn asks_of_samples(&self) -> bool {
        let is_of_sample = |clause: &Clause| matches!(clause, Clause::Sample { .. });
        self.clauses.iter().any(is_of_sample)
    }

    /// Adds a step at the end.
    pub fn push(&mut self, clause: Clause) {
        self.clauses.push(clause);
    }

    /// Removes one clause, wherever it stands; returns false if it is not there.
    pub fn remove(&mut self, clause: &Clause) -> bool {
        let at = self.clauses.iter().rposition(|each| each == clause);
        at.map(|at| self.clauses.remove(at)).is_some()
    }

    /// Removes the last clause.
    pub fn pop(&mut self) -> Option<Clause> {
        self.clauses.pop()
    }
}

impl Clause {
    /// A clause for exactly the function of this name.
    pub fn function(action: Action, name: &str) -> Self {
        Clause::Stack {
            action,
            test: FrameTest::Name(Text::is(name)),
        }
    }

    /// A clause for exactly the module of this name.
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
