//! A breakpoint at an instruction of a file, in one process or in all.

use super::{SitePlan, changing};
use crate::perf_event::{Attributes, PerfEvent, Tasks};
use aya::programs::ProgramFd;
use probe_ebpf::calls::{Cookie, FEW_MAX};
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

const PMU: &str = "/sys/bus/event_source/devices/uprobe";

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

/// One breakpoint in one scope; closing it takes it away.
#[derive(Debug)]
pub struct Link {
    // The program goes before the event.
    _program: OwnedFd,
    _event: PerfEvent,
}

/// The kernel's performance monitoring unit of such breakpoints.
#[derive(Debug)]
pub struct Uprobes {
    kind: u32,
    /// The bit of `config` that asks for the ends of calls.
    end_bit: u64,
    /// By how much the place of a semaphore is shifted in `config`. `None` before Linux 4.20.
    semaphore_shift: Option<u32>,
}

impl Uprobes {
    pub fn find() -> io::Result<Self> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_string());
        let kind = fs::read_to_string(format!("{PMU}/type"))?;
        let kind = kind
            .trim()
            .parse()
            .map_err(|_| invalid("its type is no number"))?;
        // `config:0`
        let bit = fs::read_to_string(format!("{PMU}/format/retprobe"))?;
        let bit = bit
            .trim()
            .strip_prefix("config:")
            .and_then(|bit| bit.parse::<u32>().ok());
        let bit = bit
            .filter(|bit| *bit < 64)
            .ok_or_else(|| invalid("its format is another"))?;
        Ok(Self {
            kind,
            end_bit: 1 << bit,
            semaphore_shift: semaphore_shift(),
        })
    }

    /// Runs `program` at each run of the instruction at `offset`.
    pub fn attach(
        &self,
        program: &ProgramFd,
        file: &File,
        offset: u64,
        cookie: Cookie,
        scope: &Scope,
        links: &mut Vec<Link>,
    ) -> Result<(), AttachError> {
        self.attach_at(program, file, (offset, 0), cookie, scope, links)
    }

    /// Runs `program` at each run of the instruction of a plan, and counts up its semaphore.
    pub fn attach_counted(
        &self,
        program: &ProgramFd,
        file: &File,
        plan: &SitePlan,
        cookie: Cookie,
        scope: &Scope,
        links: &mut Vec<Link>,
    ) -> Result<(), AttachError> {
        let offset = plan.offset;
        let config = match (plan.semaphore, self.semaphore_shift) {
            (None, _) => 0,
            // It has 32 bits.
            (Some(place), Some(shift)) if u32::try_from(place).is_ok() => place << shift,
            (Some(_), _) => return Err(AttachError::Semaphore),
        };
        self.attach_at(program, file, (offset, config), cookie, scope, links)
    }

    /// Runs `program` at the end of each call that begins at `offset`.
    pub fn attach_end(
        &self,
        program: &ProgramFd,
        file: &File,
        offset: u64,
        cookie: Cookie,
        scope: &Scope,
        links: &mut Vec<Link>,
    ) -> Result<(), AttachError> {
        self.attach_at(program, file, (offset, self.end_bit), cookie, scope, links)
    }

    fn attach_at(
        &self,
        program: &ProgramFd,
        file: &File,
        (offset, config): (u64, u64),
        cookie: Cookie,
        scope: &Scope,
        links: &mut Vec<Link>,
    ) -> Result<(), AttachError> {
        let refused = |source| AttachError::Refused { offset, source };
        let _alone = changing::begin().ok_or_else(|| refused(io::ErrorKind::Interrupted.into()))?;
        // The descriptor and not a path: the file that was checked, in whatever
        // container, deleted or not.
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let path = path.expect("digits have no zero byte");
        let attributes = Attributes {
            kind: self.kind,
            config,
            // The kernel reads the path during the call.
            config1: path.as_ptr() as u64,
            config2: offset,
            ..Attributes::default()
        };
        let mut link = |event: PerfEvent| {
            let program = event.link(program.as_fd(), cookie.0)?;
            links.push(Link {
                _program: program,
                _event: event,
            });
            Ok(())
        };
        match scope {
            // Hits count on whichever CPU they are; the event wants one.
            Scope::All => PerfEvent::open(attributes, Tasks::All, 0).and_then(link),
            Scope::Processes(pids) => pids.iter().try_for_each(|pid| {
                match PerfEvent::open_anywhere(attributes, *pid) {
                    Ok(event) => link(event),
                    // It has ended since.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
                    Err(error) => Err(error),
                }
            }),
        }
        .map_err(refused)
    }
}

/// Where in `config` the place of a semaphore goes: `config:32-63`.
fn semaphore_shift() -> Option<u32> {
    let bits = fs::read_to_string(format!("{PMU}/format/ref_ctr_offset")).ok()?;
    let (first, _) = bits.trim().strip_prefix("config:")?.split_once('-')?;
    first.parse().ok().filter(|first| *first == 32)
}
