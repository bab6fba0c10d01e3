//! Attaches a breakpoint to an instruction of a file, in one process or in all.
//!
//! | module | holds |
//! |---|---|
//! | `events` | a perf event for each of them |
//! | `multi` | one link for several, since Linux 6.12: a hit costs about 70 ns less |

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

/// The processes in which a probe is placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All processes that have the file mapped now or later. A hit costs time also in processes
    /// that are not targets.
    All,
    /// These processes only.
    Processes(Vec<u32>),
}

/// Why a probe could not be placed.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No number is free.
    #[error("there are 64 probes already")]
    TooMany,
    /// All programs for tracepoints are in use.
    #[error("there are 16 probes at tracepoints already")]
    TooManyPoints,
    /// A probe at a tracepoint cannot be restricted to processes.
    #[error("a tracepoint is counted of {} processes at most, or of all", FEW_MAX)]
    TooManyProcesses,
    /// The kernel refused the program of a tracepoint: a sentence.
    #[error("{0}")]
    Program(String),
    /// The kernel has no such tracepoint, or we may not use it.
    #[error("the kernel refused a probe at its tracepoint {name}: {source}")]
    Point {
        /// The tracepoint.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The orders for the programs could not be written.
    #[error("a map could not be written: {0}")]
    Maps(io::Error),
    /// The kernel refused the breakpoint; only an error number is known.
    #[error("the kernel refused a probe at offset {offset:#x}: {source}")]
    Refused {
        /// Offset in the file.
        offset: u64,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel does not support semaphores, which programs need to recognize a probe.
    #[error("this kernel knows no semaphores of markers (Linux 4.20), or not so far in a file")]
    Semaphore,
    /// The cost could not be measured, and no probe is placed without a known cost.
    #[error("what a probe costs could not be measured: {0}")]
    Cost(io::Error),
}

/// Which part of a call a breakpoint detects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Its beginning.
    Begins,
    /// Its end, at a `ret`.
    AtReturn,
    /// Its end, by the kernel's own return address.
    Returned,
}

/// An instruction of a file to be probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbedInstruction {
    /// Offset in the file.
    pub offset: u64,
    /// File offset of the counter that the kernel increments.
    pub semaphore: Option<u64>,
    /// The value that the program receives at each hit.
    pub cookie: Cookie,
}

/// Breakpoints in one scope; closing it removes them.
#[derive(Debug)]
pub enum Link {
    /// One breakpoint.
    Event {
        // The program is closed before the event.
        _program: OwnedFd,
        _event: PerfEvent,
    },
    /// The breakpoints in one file and one process.
    Multi { _link: OwnedFd },
}

/// The method of attaching breakpoints.
#[derive(Debug)]
pub enum Uprobes {
    /// Perf events.
    Events(Events),
    /// Links of BPF.
    Multi,
}

impl Uprobes {
    /// Chooses the method for which these programs were loaded.
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
        // The path of the descriptor is used, so that it is the checked file, in any container, and
        // even if it was deleted.
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

/// Calls back for each process of a scope, with `None` for all. Processes that have ended are
/// skipped.
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
