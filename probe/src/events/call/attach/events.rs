//! A perf event for each breakpoint.

use super::{AttachError, BorrowedFd, Link, ProbedInstruction, Scope, When, each_process};
use crate::perf_event::{Attributes, PerfEvent, Tasks};
use std::ffi::CStr;
use std::{fs, io};

const PMU: &str = "/sys/bus/event_source/devices/uprobe";

/// The kernel's performance monitoring unit of such breakpoints.
#[derive(Debug)]
pub struct Events {
    kind: u32,
    /// The bit of `config` that requests the ends of calls.
    end_bit: u64,
    /// Position of a semaphore's offset in `config`. `None` before Linux 4.20.
    semaphore_shift: Option<u32>,
}

impl Events {
    /// Finds the unit. Fails if the kernel has none, or describes it in another way.
    pub fn find() -> io::Result<Self> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_string());
        let kind = fs::read_to_string(format!("{PMU}/type"))?
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

    /// Runs `program` at each hit of one place.
    pub fn attach(
        &self,
        program: BorrowedFd<'_>,
        when: When,
        path: &CStr,
        place: &ProbedInstruction,
        scope: &Scope,
        links: &mut Vec<Link>,
    ) -> Result<(), AttachError> {
        let semaphore = match (place.semaphore, self.semaphore_shift) {
            (None, _) => 0,
            // The field has 32 bits.
            (Some(place), Some(shift)) if u32::try_from(place).is_ok() => place << shift,
            (Some(_), _) => return Err(AttachError::Semaphore),
        };
        let end = match when {
            When::Returned => self.end_bit,
            When::Begins | When::AtReturn => 0,
        };
        let attributes = Attributes {
            kind: self.kind,
            config: semaphore | end,
            // The kernel reads the path during the call.
            config1: path.as_ptr() as u64,
            config2: place.offset,
            ..Attributes::default()
        };
        let attach = |process| {
            let event = match process {
                // Hits are counted on every CPU, although the event requires one.
                None => PerfEvent::open(attributes, Tasks::All, 0),
                Some(pid) => PerfEvent::open_anywhere(attributes, pid),
            }?;
            let program = event.link(program, place.cookie.0)?;
            Ok(Link::Event {
                _program: program,
                _event: event,
            })
        };
        let attached = each_process(scope, attach, links);
        attached.map_err(|source| AttachError::Refused {
            offset: place.offset,
            source,
        })
    }
}

/// Reads the position of a semaphore's offset in `config`: `config:32-63`.
fn semaphore_shift() -> Option<u32> {
    let bits = fs::read_to_string(format!("{PMU}/format/ref_ctr_offset")).ok()?;
    let (first, _) = bits.trim().strip_prefix("config:")?.split_once('-')?;
    first.parse().ok().filter(|first| *first == 32)
}
