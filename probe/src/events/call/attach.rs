//! A breakpoint at an instruction of a file, in one process or in all.
//!
//! | module | holds |
//! |---|---|
//! | `events` | a perf event for each of them |
//! | `multi` | one link for several, since Linux 6.12: a hit costs some 70 ns less |

mod events;
mod multi;

use super::changing;
use super::programs::Programs;
use crate::perf_event::PerfEvent;
use events::Events;
use probe_ebpf::calls::{Cookie, FEW_MAX};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

/// In which processes a probe is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// In all that have the file mapped now or later. Who is no target pays for a hit
    /// as well.
    All,
    /// In these, and in no other.
    Processes(Vec<u32>),
}

/// Why a probe could not be placed.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No number is free.
    #[error("there are 64 probes already")]
    TooMany,
    /// No program for tracepoints is free.
    #[error("there are 16 probes at tracepoints already")]
    TooManyPoints,
    /// All processes pass a tracepoint.
    #[error("a tracepoint is counted of {} processes at most, or of all", FEW_MAX)]
    TooManyProcesses,
    /// The kernel refused the program of a tracepoint: a sentence.
    #[error("{0}")]
    Program(String),
    /// It has no such tracepoint, or none for us.
    #[error("the kernel refused a probe at its tracepoint {name}: {source}")]
    Point {
        /// The tracepoint.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The programs could not be told what to do.
    #[error("a map could not be written: {0}")]
    Maps(io::Error),
    /// It said why by an error number only.
    #[error("the kernel refused a probe at offset {offset:#x}: {source}")]
    Refused {
        /// Where in the file.
        offset: u64,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel cannot tell the program that somebody listens.
    #[error("this kernel knows no semaphores of markers (Linux 4.20), or not so far in a file")]
    Semaphore,
    /// No probe is placed whose cost is not known.
    #[error("what a probe costs could not be measured: {0}")]
    Cost(io::Error),
}

/// What of a call is seen at a breakpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Its beginning.
    Begins,
    /// Its end, at a `ret`.
    AtReturn,
    /// Its end, by the kernel's own return address.
    Returned,
}

/// One instruction of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbedInstruction {
    /// Where in the file.
    pub offset: u64,
    /// Where in the file the counter is that the kernel counts up.
    pub semaphore: Option<u64>,
    /// What the program is told at each hit.
    pub cookie: Cookie,
}

/// Breakpoints in one scope; closing it takes them away.
#[derive(Debug)]
pub enum Link {
    /// One breakpoint.
    Event {
        // The program goes before the event.
        _program: OwnedFd,
        _event: PerfEvent,
    },
    /// Those of one file and one process.
    Multi { _link: OwnedFd },
}

/// What attaches breakpoints.
#[derive(Debug)]
pub enum Uprobes {
    /// Perf events.
    Events(Events),
    /// Links of BPF.
    Multi,
}

impl Uprobes {
    /// What these programs were loaded for.
    pub fn of(programs: &Programs) -> io::Result<Self> {
        if programs.are_multi {
            Ok(Self::Multi)
        } else {
            Events::find().map(Self::Events)
        }
    }

    /// Runs the program for `when` at each hit of these places of a file.
    pub fn attach(
        &self,
        programs: &Programs,
        when: When,
        file: &File,
        places: &[ProbedInstruction],
        scope: &Scope,
        links: &mut Vec<Link>,
    ) -> Result<(), AttachError> {
        let Some(first) = places.first() else {
            return Ok(());
        };
        let refused = |source| AttachError::Refused {
            offset: first.offset,
            source,
        };
        let program = match when {
            When::Begins => programs.begins.as_fd(),
            When::AtReturn | When::Returned => programs.ends.as_fd(),
        };
        // The descriptor and not a path: the file that was checked, in whatever
        // container, deleted or not.
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))
            .expect("digits have no zero byte");
        let _alone = changing::begin().ok_or_else(|| refused(io::ErrorKind::Interrupted.into()))?;
        match self {
            Self::Events(events) => {
                for place in places {
                    events.attach(program, when, &path, place, scope, links)?;
                }
                Ok(())
            }
            Self::Multi => {
                multi::attach(program, when, &path, places, scope, links).map_err(refused)
            }
        }
    }
}

/// The processes of a scope, of which `None` stands for all. What has ended since is left out.
fn each_process(
    scope: &Scope,
    mut attach: impl FnMut(Option<u32>) -> io::Result<Link>,
    links: &mut Vec<Link>,
) -> io::Result<()> {
    match scope {
        Scope::All => links.push(attach(None)?),
        Scope::Processes(pids) => {
            for pid in pids {
                match attach(Some(*pid)) {
                    Ok(link) => links.push(link),
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(())
}
