//! A *frame* is one place in a program that was found on a stack: a module and an address inside
//! it. Its name is not part of it, as names become known later.

use crate::NoName;
use std::sync::Arc;

/// The number of a file, or of something like a file, that holds code. The source of the samples
/// assigns it; two modules with the same number have the same bytes. (A live profile uses the
/// numbers of `probe::ModuleId`; a recording has its own.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// The number of one life of a process: a pid that is used again gets another. The source of the
/// samples assigns it, as with [`ModuleId`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// What may be known about a process in addition to its name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessDetails {
    /// The name of the machine that it runs on, in a profile of several machines.
    pub host: Option<Arc<str>>,
    /// Its control group's path.
    pub cgroup: Option<Arc<str>>,
    /// The name of the user it runs as.
    pub user: Option<Arc<str>>,
    /// Its command line, with arguments. It is never written to a file, as it may contain secrets.
    pub command_line: Option<Arc<str>>,
    /// When it was started, in milliseconds of Unix time.
    pub started_unix_ms: Option<i64>,
    /// The pid of its parent: the process that started it, or that adopted it.
    pub parent: Option<u32>,
    /// Its ancestors, from the parent on, each with pid and name. They need not be in the profile.
    pub ancestors: Arc<[(u32, Arc<str>)]>,
}

/// The number of an interned [`Frame`]. It does not change when a name arrives, so the screen can
/// keep a selected line by it.
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

/// One place on a stack, as a profile stores it. (A live sample's `probe::Frame` has the same two
/// numbers; the engine adds the kind, which it knows from the module.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// The file, or something like a file, that contains the code.
    pub module: ModuleId,
    /// Address in the module, ready for a symbol look-up: a return address was already decreased by
    /// one, so that it lies inside the call.
    pub address: u64,
    /// On which side of the kernel boundary it is.
    pub kind: FrameKind,
}

/// What is known about a frame's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameState {
    /// Not looked up yet, or the look-up is running.
    Pending,
    /// The name as it is displayed: demangled and safe to print.
    Named(Arc<str>),
    /// There is no name, for this reason.
    Unnamed(NoName),
    /// There is no name, for this reason, but the start of the function that contains the frame is
    /// known: all frames with this start are one function.
    UnnamedIn {
        /// Why there is no name.
        reason: NoName,
        /// Where in the module the function starts.
        start: u64,
    },
}

/// One of the functions at a frame's address, with its source location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFrame<'a> {
    /// The name as it is displayed, safe to print.
    pub function: &'a str,
    /// Path of the source file; empty if unknown.
    pub file: &'a str,
    /// Line in the file; 0 if unknown.
    pub line: u32,
}
