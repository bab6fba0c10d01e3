//! A *frame* is one place in a program that was found on a stack: a module and
//! an address inside it. Its name is no part of it; names come later.

use crate::NoName;
use std::sync::Arc;

/// The number of a file, or of something like a file, that holds code. Whoever feeds
/// the profile gives it out; two modules with one number are the same bytes. (A live
/// profile takes the numbers of `probe::ModuleId`; a recording numbers its own.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// The number of one life of a process: a pid that is used again gets another. Whoever
/// feeds the profile gives it out, as with [`ModuleId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// What may be known of a process beside its name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessDetails {
    /// The name of the machine that it runs on, where a profile has several.
    pub host: Option<Arc<str>>,
    /// Its control group's path.
    pub cgroup: Option<Arc<str>>,
    /// The name of the user it runs as.
    pub user: Option<Arc<str>>,
    /// Its command line, with arguments. No file keeps it: it may hold secrets.
    pub command_line: Option<Arc<str>>,
    /// When it was started, in milliseconds of Unix time.
    pub started_unix_ms: Option<i64>,
    /// The pid of the process that started it, or took it over.
    pub parent: Option<u32>,
    /// That process and those that it descends from, each with its pid and its name: they need
    /// not be in the profile.
    pub ancestors: Arc<[(u32, Arc<str>)]>,
}

/// The number of an interned [`Frame`]. It never changes when a name arrives,
/// so a selection can be held by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// Which side of the kernel boundary a frame is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameKind {
    /// In a program or library of a process.
    User,
    /// In the kernel or one of its modules.
    Kernel,
    /// Code made at run time: an anonymous executable mapping.
    Jit,
    /// A function of Python, which an interpreter runs.
    Python,
}

/// One place on a stack, as a profile keeps it. (A live sample's `probe::Frame` has the
/// same two numbers; the engine adds the kind, which it knows of the module.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// The file, or what is like a file, that has the code.
    pub module: ModuleId,
    /// Where in the module, ready for a look-up: a return address has already
    /// been moved back by one, so that it lies inside the call.
    pub address: u64,
    /// On which side of the kernel boundary it is.
    pub kind: FrameKind,
}

/// What is known of a frame's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameState {
    /// Not asked yet, or the answer is on its way.
    Pending,
    /// As a person would write it: demangled and safe to print.
    Named(Arc<str>),
    /// There is none, and this is why.
    Unnamed(NoName),
    /// There is none, for that reason, but it is known where in the module the
    /// function starts that the frame is in: all such frames are one function.
    UnnamedIn {
        /// Why there is none.
        reason: NoName,
        /// Where in the module the function starts.
        start: u64,
    },
}

/// One function that a frame's address stands for, and where in source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFrame<'a> {
    /// As a person would write it, safe to print.
    pub function: &'a str,
    /// Empty if it is not known.
    pub file: &'a str,
    /// 0 if it is not known.
    pub line: u32,
}
