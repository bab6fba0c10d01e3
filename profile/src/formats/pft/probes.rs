//! The counts of probes, as records of one section: writes what the file does not have yet, and
//! reads it back.
//!
//! A record is its kind, its length and its contents, so that a reader can skip kinds that it does
//! not know. Numbers are the same as in the log, which never changes a number.

use super::tables::Tables;
use crate::formats::FormatError;
use crate::formats::wire::{Bytes, put, put_bytes};
use crate::intern::STACK_DEPTH_MAX;
use crate::probes::{
    CallTally, ProbeAbout, ProbeEnd, ProbeFrame, ProbeLog, ProbeRecord, ProbeThread, ValueAbout,
    ValueTally,
};
use std::sync::Arc;

/// Kinds of records.
mod kind {
    pub(super) const PROBE: u64 = 1;
    pub(super) const FRAME: u64 = 2;
    pub(super) const FRAME_NAME: u64 = 3;
    pub(super) const STACK: u64 = 4;
    pub(super) const THREAD: u64 = 5;
    pub(super) const TEXT: u64 = 6;
    pub(super) const COUNTS: u64 = 7;
    pub(super) const END: u64 = 8;
}

/// Bits for the properties of a probe.
mod flag {
    pub(super) const STEPPED: u64 = 1;
    pub(super) const TIMED: u64 = 2;
    pub(super) const REPEATS: u64 = 4;
}

/// Maximum number of values that one probe reads: eight times as many as it can have today.
const VALUES_MAX: usize = 64;

/// Which parts of a log are already in the file.
#[derive(Debug, Default)]
pub(super) struct Written {
    probes: Vec<WrittenProbe>,
    /// Whether the name of each frame is in the file, by number.
    frames: Vec<bool>,
}

/// Which parts of a probe are already in the file.
#[derive(Debug, Clone, Default)]
struct WrittenProbe {
    stacks: usize,
    threads: usize,
    texts: usize,
    /// Number of written counts, including those that the log has forgotten.
    counts: u64,
    has_end: bool,
}

/// Returns the number of a string; defines the string if it is new.
type Strings<'s> = &'s mut dyn FnMut(&Arc<str>) -> u32;

/// Appends a record.
fn put_record(out: &mut Vec<u8>, kind: u64, contents: &[u8]) {
    put(out, kind);
    put_bytes(out, contents);
}

impl Written {
    /// Writes what the log has and the file does not, until `out` reaches `size`. Returns false if
    /// there is more.
    pub(super) fn write(
        &mut self,
        log: &ProbeLog,
        string: Strings<'_>,
        out: &mut Vec<u8>,
        size: usize,
    ) -> bool {
        if !self.write_frames(log, string, out, size) {
            return false;
        }
        for (number, probe) in log.probes().iter().enumerate() {
            if number == self.probes.len() {
                put_record(out, kind::PROBE, &about(probe.about(), string));
                self.probes.push(WrittenProbe::default());
            }
            let written = &mut self.probes[number];
            if !written.write(number, probe, string, out, size) {
                return false;
            }
        }
        true
    }

    /// Writes new frames, and names of frames that had none. Returns false if there are more.
    fn write_frames(
        &mut self,
        log: &ProbeLog,
        string: Strings<'_>,
        out: &mut Vec<u8>,
        size: usize,
    ) -> bool {
        for (number, frame) in log.frames().iter().enumerate() {
            let is_written = match self.frames.get(number) {
                None => false,
                Some(is_named) => *is_named || frame.name.is_none(),
            };
            if is_written {
                continue;
            }
            if out.len() > size {
                return false;
            }
            let name = frame.name.as_ref().map_or(0, &mut *string);
            let mut record = Vec::new();
            if number == self.frames.len() {
                put(&mut record, string(&frame.module).into());
                put(&mut record, frame.address);
                put(&mut record, name.into());
                put_record(out, kind::FRAME, &record);
                self.frames.push(frame.name.is_some());
            } else {
                put(&mut record, number as u64);
                put(&mut record, name.into());
                put_record(out, kind::FRAME_NAME, &record);
                self.frames[number] = true;
            }
        }
        true
    }
}

impl WrittenProbe {
    /// Writes the new data of one probe, until `out` reaches a limit. Returns false if there is
    /// more.
    fn write(
        &mut self,
        number: usize,
        probe: &ProbeRecord,
        string: Strings<'_>,
        out: &mut Vec<u8>,
        size: usize,
    ) -> bool {
        for stack in probe.stacks().iter().skip(self.stacks) {
            if out.len() > size {
                return false;
            }
            let mut record = numbered(number);
            stack
                .iter()
                .for_each(|frame| put(&mut record, (*frame).into()));
            put_record(out, kind::STACK, &record);
            self.stacks += 1;
        }
        for thread in probe.threads().iter().skip(self.threads) {
            if out.len() > size {
                return false;
            }
            let mut record = numbered(number);
            put(&mut record, string(&thread.comm).into());
            put(&mut record, thread.tid.into());
            put_record(out, kind::THREAD, &record);
            self.threads += 1;
        }
        for text in probe.texts().iter().skip(self.texts) {
            if out.len() > size {
                return false;
            }
            let mut record = numbered(number);
            put(&mut record, string(text).into());
            put_record(out, kind::TEXT, &record);
            self.texts += 1;
        }
        self.counts = self.counts.max(probe.forgotten());
        let new = (self.counts - probe.forgotten()) as usize;
        for (second, tally) in probe.counts().skip(new) {
            if out.len() > size {
                return false;
            }
            let mut record = numbered(number);
            put(&mut record, second);
            put_tally(&mut record, tally);
            put_record(out, kind::COUNTS, &record);
            self.counts += 1;
        }
        if let Some(end) = probe.end().filter(|_| !self.has_end) {
            let mut record = numbered(number);
            put(&mut record, end.at_ns);
            put(&mut record, string(&end.why).into());
            put_record(out, kind::END, &record);
            self.has_end = true;
        }
        true
    }
}

/// Begins the contents of a record with the number of its probe.
fn numbered(number: usize) -> Vec<u8> {
    let mut record = Vec::new();
    put(&mut record, number as u64);
    record
}

/// Encodes the description of a probe.
fn about(about: &ProbeAbout, string: Strings<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for text in [
        &about.name,
        &about.module,
        &about.language,
        &about.site,
        &about.whose,
    ] {
        put(&mut out, string(text).into());
    }
    let flags = [
        (about.is_stepped, flag::STEPPED),
        (about.is_timed, flag::TIMED),
        (about.repeats, flag::REPEATS),
    ]
    .iter()
    .fold(0, |all, (is_set, bit)| all | if *is_set { *bit } else { 0 });
    for number in [
        about.address,
        about.copies.into(),
        about.breakpoints.into(),
        flags,
        about.hit_ns,
        about.floor_ns,
        about.min_ns,
        about.placed_ns,
    ] {
        put(&mut out, number);
    }
    put(&mut out, about.values.len() as u64);
    for value in &about.values {
        put(&mut out, string(&value.text).into());
        put(&mut out, string(&value.register).into());
    }
    out
}

/// The sums of a tally, in the order in which they are stored.
fn sums(tally: &mut CallTally) -> [&mut u64; 12] {
    [
        &mut tally.calls,
        &mut tally.returns,
        &mut tally.strangers,
        &mut tally.short,
        &mut tally.others,
        &mut tally.stacks,
        &mut tally.stacks_lost,
        &mut tally.values_lost,
        &mut tally.sum_ns,
        &mut tally.max_ns,
        &mut tally.cpu_samples,
        &mut tally.cpu_ns,
    ]
}

fn put_tally(out: &mut Vec<u8>, tally: &CallTally) {
    let mut copy = CallTally {
        buckets: Default::default(),
        values: Vec::new(),
        callers: Default::default(),
        threads: Default::default(),
        ..tally.clone()
    };
    for sum in sums(&mut copy) {
        put(out, *sum);
    }
    put(out, tally.buckets.len() as u64);
    let mut last = 0;
    for ((from, below), calls) in &tally.buckets {
        put(out, from - last);
        put(out, below.saturating_sub(*from));
        put(out, *calls);
        last = *from;
    }
    put_counts(out, tally.callers.iter());
    put_counts(out, tally.threads.iter());
    put(out, tally.values.len() as u64);
    for value in &tally.values {
        put(out, value.unreadable);
        put_counts(out, value.texts.iter());
    }
    // Stored last: earlier versions do not have it, and ignore bytes at the end.
    put(out, tally.missed);
}

/// Writes the number of entries, then for each entry its number and its count.
fn put_counts<'c>(out: &mut Vec<u8>, counts: impl ExactSizeIterator<Item = (&'c u32, &'c u64)>) {
    put(out, counts.len() as u64);
    for (number, count) in counts {
        put(out, (*number).into());
        put(out, *count);
    }
}

fn damaged(what: &str) -> FormatError {
    FormatError::Damaged(what.into())
}

/// Reads a section into a log; returns how many records of unknown kinds were skipped.
pub(super) fn read(
    mut bytes: Bytes<'_>,
    tables: &Tables,
    log: &mut ProbeLog,
) -> Result<u64, FormatError> {
    let mut unknown = 0;
    while !bytes.is_empty() {
        let kind = bytes.number()?;
        let record = Bytes(bytes.bytes()?);
        match kind {
            kind::PROBE => read_probe(record, tables, log)?,
            kind::FRAME => read_frame(record, tables, log)?,
            kind::FRAME_NAME => read_frame_name(record, tables, log)?,
            kind::STACK | kind::THREAD | kind::TEXT | kind::COUNTS | kind::END => {
                read_of_probe(kind, record, tables, log)?;
            }
            _ => unknown += 1,
        }
    }
    Ok(unknown)
}

fn read_probe(
    mut bytes: Bytes<'_>,
    tables: &Tables,
    log: &mut ProbeLog,
) -> Result<(), FormatError> {
    let mut text = || tables.string(&mut bytes).cloned();
    let [name, module, language, site, whose] = [text()?, text()?, text()?, text()?, text()?];
    let address = bytes.number()?;
    let (copies, breakpoints) = (bytes.u32()?, bytes.u32()?);
    let flags = bytes.number()?;
    let mut about = ProbeAbout {
        name,
        module,
        address,
        language,
        site,
        whose,
        copies,
        breakpoints,
        is_stepped: flags & flag::STEPPED != 0,
        is_timed: flags & flag::TIMED != 0,
        repeats: flags & flag::REPEATS != 0,
        hit_ns: bytes.number()?,
        floor_ns: bytes.number()?,
        min_ns: bytes.number()?,
        placed_ns: bytes.number()?,
        values: Vec::new(),
    };
    let values = bytes.count()?;
    if values > VALUES_MAX {
        return Err(damaged("a probe reads more values than there can be"));
    }
    for _ in 0..values {
        about.values.push(ValueAbout {
            text: Arc::clone(tables.string(&mut bytes)?),
            register: Arc::clone(tables.string(&mut bytes)?),
        });
    }
    let added = log.add_probe(about);
    added.map_or(Err(FormatError::TooLarge("the probes in it")), |_| Ok(()))
}

fn read_frame(
    mut bytes: Bytes<'_>,
    tables: &Tables,
    log: &mut ProbeLog,
) -> Result<(), FormatError> {
    let module = Arc::clone(tables.string(&mut bytes)?);
    let address = bytes.number()?;
    let name = Arc::clone(tables.string(&mut bytes)?);
    let added = log.add_frame(ProbeFrame {
        module,
        address,
        name: (!name.is_empty()).then_some(name),
    });
    added.map_or(
        Err(FormatError::TooLarge("the callers of its probes")),
        |_| Ok(()),
    )
}

fn read_frame_name(
    mut bytes: Bytes<'_>,
    tables: &Tables,
    log: &mut ProbeLog,
) -> Result<(), FormatError> {
    let frame = bytes.u32()?;
    let name = Arc::clone(tables.string(&mut bytes)?);
    if log.set_frame_name(frame, name) {
        Ok(())
    } else {
        Err(damaged("a caller of a probe is used that it does not have"))
    }
}

/// Reads a record that begins with the number of its probe.
fn read_of_probe(
    kind: u64,
    mut bytes: Bytes<'_>,
    tables: &Tables,
    log: &mut ProbeLog,
) -> Result<(), FormatError> {
    let number = bytes.u32()? as usize;
    let Some(probe) = log.probes().get(number) else {
        return Err(damaged("a probe is used that it does not have"));
    };
    let added = match kind {
        kind::STACK => {
            let mut frames = Vec::new();
            while !bytes.is_empty() {
                let frame = bytes.u32()?;
                if frame as usize >= log.frames().len() || frames.len() > STACK_DEPTH_MAX {
                    return Err(damaged("a stack of a probe that cannot be"));
                }
                frames.push(frame);
            }
            log.add_stack(number, &frames)
        }
        kind::THREAD => {
            let comm = Arc::clone(tables.string(&mut bytes)?);
            let tid = bytes.u32()?;
            log.add_thread(number, ProbeThread { comm, tid })
        }
        kind::TEXT => log.add_text(number, Arc::clone(tables.string(&mut bytes)?)),
        kind::COUNTS => {
            let second = bytes.number()?;
            let tally = read_tally(bytes, probe)?;
            if second > u64::MAX / 1_000_000_000 - 1 {
                return Err(damaged("a probe counted at a time that cannot be"));
            }
            log.count(number, second, tally);
            Some(0)
        }
        _ => {
            let at_ns = bytes.number()?;
            let why = Arc::clone(tables.string(&mut bytes)?);
            log.set_end(number, ProbeEnd { at_ns, why });
            Some(0)
        }
    };
    match added {
        Some(_) => Ok(()),
        None => Err(FormatError::TooLarge("what its probes counted")),
    }
}

fn read_tally(mut bytes: Bytes<'_>, probe: &ProbeRecord) -> Result<CallTally, FormatError> {
    let mut tally = CallTally::default();
    for sum in sums(&mut tally) {
        *sum = bytes.number()?;
    }
    let mut from = 0u64;
    for _ in 0..bytes.count()? {
        from = from.saturating_add(bytes.number()?);
        let below = from.saturating_add(bytes.number()?);
        tally.buckets.insert((from, below), bytes.number()?);
    }
    let callers = read_counts(&mut bytes, probe.stacks().len())?;
    let threads = read_counts(&mut bytes, probe.threads().len())?;
    (tally.callers, tally.threads) = (callers, threads);
    let values = bytes.count()?;
    if values > probe.about().values.len() {
        return Err(damaged("a probe has more values than it reads"));
    }
    for _ in 0..values {
        tally.values.push(ValueTally {
            unreadable: bytes.number()?,
            texts: read_counts(&mut bytes, probe.texts().len())?,
        });
    }
    if !bytes.is_empty() {
        tally.missed = bytes.number()?;
    }
    Ok(tally)
}

/// Reads counts of things whose numbers are below a given limit.
fn read_counts(
    bytes: &mut Bytes<'_>,
    known: usize,
) -> Result<std::collections::BTreeMap<u32, u64>, FormatError> {
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..bytes.count()? {
        let number = bytes.u32()?;
        if number as usize >= known {
            return Err(damaged("a probe counted what it does not have"));
        }
        counts.insert(number, bytes.number()?);
    }
    Ok(counts)
}
