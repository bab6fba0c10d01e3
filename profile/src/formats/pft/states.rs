//! What threads did and for whom they waited, as records of one section: writes what the file does
//! not have yet, and reads it back.
//!
//! A record is its kind, its length and its contents, so that a reader can skip kinds that it does
//! not know.

use super::tables::Tables;
use crate::formats::FormatError;
use crate::formats::wire::{Bytes, put, put_bytes};
use crate::states::{DoingThen, Held, HeldBy, StateLog, StateStretch, StateThread};
use crate::wait::{DELAY_SLOTS, Delays, STATE_COUNT};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Kinds of records.
mod kind {
    pub(super) const THREAD: u64 = 1;
    pub(super) const STRETCH: u64 = 2;
    pub(super) const HELD: u64 = 3;
    pub(super) const INTERRUPTED: u64 = 4;
}

/// Number of newest seconds for which it is not written yet who waited for whom: a wait that is
/// reported late may still add to them.
const LATE_SECONDS: u64 = 3;

/// Maximum number of threads in one file, as a reader accepts it.
const THREADS_MAX: usize = 4 << 20;
/// Maximum number of threads that are written. It is lower than [`THREADS_MAX`], as the writer
/// remembers each of them.
pub(super) const THREADS_WRITTEN_MAX: usize = 1 << 20;

/// Which parts of a log are already in the file.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Number of each thread, by process, thread id, when it was first seen, and name.
    threads: HashMap<(u32, u32, u64, Arc<str>), u64>,
    /// First second of which stretches are written.
    first_second: u64,
    /// Number of written stretches of each second.
    stretches: BTreeMap<u64, usize>,
    /// The first second for which it is not written yet who waited for whom.
    held_until: u64,
    /// Number of written last stretches of living threads.
    living: usize,
    /// There were more threads than are written, so some are missing.
    pub(super) is_full: bool,
}

/// Returns the number of a string; defines the string if it is new.
type Strings<'s> = &'s mut dyn FnMut(&Arc<str>) -> u32;

/// Appends a record.
fn put_record(out: &mut Vec<u8>, kind: u64, contents: &[u8]) {
    put(out, kind);
    put_bytes(out, contents);
}

impl Written {
    /// Leaves out what ended before `second`.
    pub(super) fn begin_at(&mut self, second: u64) {
        self.first_second = second;
        self.held_until = second;
    }

    /// Writes what the log has and the file does not, until `out` reaches `size`. Returns false if
    /// there is more. Data that may still change is written only if `is_last`; the caller must not
    /// call this function again after that.
    pub(super) fn write(
        &mut self,
        log: &StateLog,
        string: Strings<'_>,
        out: &mut Vec<u8>,
        size: usize,
        is_last: bool,
    ) -> bool {
        let first = self.first_second;
        let wanted = log.closed().filter(|(second, _)| *second >= first);
        for (second, stretches) in wanted {
            let done = self.stretches.get(&second).copied().unwrap_or(0);
            for (at, stretch) in stretches.iter().enumerate().skip(done) {
                if out.len() > size {
                    return false;
                }
                self.put_stretch(stretch, string, out);
                self.stretches.insert(second, at + 1);
            }
        }
        // Seconds that the log has dropped do not come again.
        if let Some(oldest) = log.oldest_second() {
            self.stretches = self.stretches.split_off(&oldest);
        }
        let newest = log.held().next_back().map_or(0, |(second, _)| second);
        let is_settled = |second: u64| is_last || second.saturating_add(LATE_SECONDS) <= newest;
        for (second, pairs) in log.held() {
            if second < self.held_until || !is_settled(second) {
                continue;
            }
            if out.len() > size {
                return false;
            }
            pairs.for_each(|held| put_held(second, held, out));
            self.held_until = second.saturating_add(1);
        }
        for stretch in log.living().skip(self.living).take_while(|_| is_last) {
            if out.len() > size {
                return false;
            }
            self.put_stretch(stretch, string, out);
            self.living += 1;
        }
        true
    }

    fn put_stretch(&mut self, stretch: &StateStretch, string: Strings<'_>, out: &mut Vec<u8>) {
        let Some(thread) = self.number(&stretch.thread, string, out) else {
            self.is_full = true;
            return;
        };
        let mut record = Vec::new();
        put(&mut record, thread);
        put(&mut record, stretch.start_ns);
        put(&mut record, stretch.end_ns - stretch.start_ns);
        let (states, delays) = (stretch.states(), stretch.delays());
        put(&mut record, states.len() as u64);
        for (state, ns) in states {
            record.push(*state);
            put(&mut record, *ns);
        }
        put(&mut record, delays.len() as u64);
        for (slot, count) in delays {
            record.push(*slot);
            put(&mut record, (*count).into());
        }
        // A thread that ended has no further stretches.
        if let Some(then) = stretch.then {
            record.push(then.state as u8);
            put(&mut record, stretch.end_ns - then.since_ns);
            put(
                &mut record,
                then.owner.map_or(0, |owner| u64::from(owner) + 1),
            );
        }
        put_record(out, kind::STRETCH, &record);
    }

    /// Returns the number of a thread, defined if it is new; `None` if there are too many.
    fn number(
        &mut self,
        thread: &StateThread,
        string: Strings<'_>,
        out: &mut Vec<u8>,
    ) -> Option<u64> {
        let comm = Arc::clone(&thread.comm);
        let key = (thread.pid, thread.tid, thread.since_ns, comm);
        let next = self.threads.len() as u64;
        if self.threads.len() >= THREADS_WRITTEN_MAX && !self.threads.contains_key(&key) {
            return None;
        }
        Some(*self.threads.entry(key).or_insert_with(|| {
            let mut record = Vec::new();
            put(&mut record, thread.pid.into());
            put(&mut record, thread.tid.into());
            put(&mut record, string(&thread.comm).into());
            put(&mut record, thread.since_ns);
            put_record(out, kind::THREAD, &record);
            next
        }))
    }
}

fn put_held(second: u64, held: &Held, out: &mut Vec<u8>) {
    let mut record = Vec::new();
    put(&mut record, second);
    put(&mut record, held.waiter.into());
    let (kind, by) = match held.by {
        HeldBy::Owner => (kind::HELD, 0),
        HeldBy::Waker => (kind::HELD, 1),
        HeldBy::Timer => (kind::INTERRUPTED, 0),
        HeldBy::Interrupt => (kind::INTERRUPTED, 1),
    };
    if held.by.is_thread() {
        put(&mut record, held.holder.into());
        put(&mut record, held.holder_thread.into());
    }
    record.push(by);
    record.push(held.state as u8);
    put(&mut record, held.ns);
    put(&mut record, held.waits);
    put_record(out, kind, &record);
}

fn damaged(what: &str) -> FormatError {
    FormatError::Damaged(what.into())
}

/// The threads that a file has defined, by number.
#[derive(Debug, Default)]
pub(super) struct Threads(Vec<Arc<StateThread>>);

impl Threads {
    /// Adds the records of a section to a log. Returns how many records of unknown kinds were
    /// skipped.
    pub(super) fn read(
        &mut self,
        mut bytes: Bytes<'_>,
        tables: &Tables,
        log: &mut StateLog,
    ) -> Result<u64, FormatError> {
        let mut unknown = 0;
        while !bytes.is_empty() {
            let kind = bytes.number()?;
            let mut record = Bytes(bytes.bytes()?);
            match kind {
                kind::THREAD => self.add(&mut record, tables)?,
                kind::STRETCH => log.add(self.stretch(&mut record)?),
                kind::HELD | kind::INTERRUPTED => {
                    let (second, held) = held(kind, &mut record)?;
                    log.add_held(second, held);
                }
                _ => unknown += 1,
            }
        }
        Ok(unknown)
    }

    fn add(&mut self, record: &mut Bytes<'_>, tables: &Tables) -> Result<(), FormatError> {
        if self.0.len() >= THREADS_MAX {
            return Err(FormatError::TooLarge("the threads in it"));
        }
        self.0.push(Arc::new(StateThread {
            pid: record.u32()?,
            tid: record.u32()?,
            comm: Arc::clone(tables.string(record)?),
            since_ns: record.number()?,
        }));
        Ok(())
    }

    fn stretch(&self, record: &mut Bytes<'_>) -> Result<StateStretch, FormatError> {
        let number = usize::try_from(record.number()?);
        let thread = number
            .ok()
            .and_then(|number| self.0.get(number))
            .ok_or_else(|| damaged("a thread is used that it does not have"))?;
        let impossible = || damaged("what a thread did cannot be");
        let start_ns = record.number()?;
        let end_ns = start_ns
            .checked_add(record.number()?)
            .ok_or_else(impossible)?;
        let mut ns = [0; STATE_COUNT];
        for _ in 0..record.count()? {
            let state = usize::from(record.byte()?);
            *ns.get_mut(state).ok_or_else(impossible)? = record.number()?;
        }
        let mut delays = Delays([0; DELAY_SLOTS]);
        for _ in 0..record.count()? {
            let slot = usize::from(record.byte()?);
            *delays.0.get_mut(slot).ok_or_else(impossible)? = record.u32()?;
        }
        let mut then = None;
        if !record.is_empty() {
            let state = usize::from(record.byte()?);
            let since_ns = end_ns.checked_sub(record.number()?);
            let owner = record.number()?.checked_sub(1);
            then = Some(DoingThen {
                state,
                since_ns: since_ns.ok_or_else(impossible)?,
                owner: owner
                    .map(u32::try_from)
                    .transpose()
                    .map_err(|_| impossible())?,
            });
        }
        let span = (start_ns, end_ns);
        StateStretch::new(thread, span, &ns, &delays, then).ok_or_else(impossible)
    }
}

fn held(kind: u64, record: &mut Bytes<'_>) -> Result<(u64, Held), FormatError> {
    let second = record.number()?;
    let waiter = record.u32()?;
    let [holder, holder_thread] = match kind {
        kind::HELD => [record.u32()?, record.u32()?],
        _ => [0, 0],
    };
    let by = match (kind, record.byte()?) {
        (kind::HELD, 0) => HeldBy::Owner,
        (kind::HELD, 1) => HeldBy::Waker,
        (kind::INTERRUPTED, 0) => HeldBy::Timer,
        (kind::INTERRUPTED, 1) => HeldBy::Interrupt,
        _ => return Err(damaged("for whom a thread waited cannot be")),
    };
    let state = usize::from(record.byte()?);
    if state >= STATE_COUNT {
        return Err(damaged("what a thread waited for cannot be"));
    }
    let held = Held {
        waiter,
        holder,
        holder_thread,
        by,
        state,
        ns: record.number()?,
        waits: record.number()?,
    };
    Ok((second, held))
}
