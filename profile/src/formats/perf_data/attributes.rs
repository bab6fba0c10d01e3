//! What was sampled, and how the records are laid out because of it.

use super::cursor::Cursor;
use crate::formats::FormatError;
use crate::{Info, Metric};

/// Bits of `read_format`: which values come with each counter of a sample.
const READ_TOTAL_TIMES: [u64; 2] = [1, 2];
const READ_ID: u64 = 4;
const READ_GROUP: u64 = 8;
const READ_LOST: u64 = 16;

/// Bits of the flags. `freq`: the rate is in Hz instead of a period. `sample_id_all`: records that
/// are not samples end with a time and ids, too.
const IS_FREQUENCY: u64 = 1 << 10;
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// Bits of `sample_type`, in the order of the fields that they stand for.
pub(super) mod has {
    /// The address of the sampled instruction.
    pub(crate) const IP: u64 = 1;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    /// The address of the data that was accessed.
    pub(crate) const ADDRESS: u64 = 1 << 3;
    /// Values of counters: see [`Attributes::skip_read`](super::Attributes::skip_read).
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    /// A copy of a part of the stack, to be walked later by perf.
    pub(crate) const USER_STACK: u64 = 1 << 13;
    /// The id, once more, at the same place in every record, whatever other fields it has.
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
}

/// How one event was sampled: `struct perf_event_attr`.
#[derive(Debug, Clone, Default)]
pub(super) struct Attributes {
    /// `type`: 0 hardware, 1 software, others as the kernel numbers them.
    kind: u32,
    /// Number of the event within that kind.
    config: u64,
    /// Number of events between samples, or samples per second.
    rate: u64,
    pub(super) sample_type: u64,
    read_format: u64,
    /// The bit field behind `read_format`.
    flags: u64,
}

impl Attributes {
    /// Reads the first 48 bytes, which all versions have in common: type, size, config,
    /// period or frequency, sample_type, read_format, and the flags.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut cursor = Cursor(bytes);
        let kind = cursor.u32()?;
        cursor.skip(4)?;
        Ok(Self {
            kind,
            config: cursor.u64()?,
            rate: cursor.u64()?,
            sample_type: cursor.u64()?,
            read_format: cursor.u64()?,
            flags: cursor.u64()?,
        })
    }

    /// Whether the event counts nanoseconds of a CPU, so that each sample is one clock tick.
    pub(super) fn is_clock(&self) -> bool {
        self.kind == 1 && self.config <= 1
    }

    /// Whether stacks were copied instead of walked (`--call-graph dwarf`).
    pub(super) fn copies_stacks(&self) -> bool {
        self.sample_type & has::USER_STACK != 0
    }

    /// Returns the event's name in the words of `perf list`; for other kinds of events a name made
    /// of their numbers. The names are listed in the order of the numbers in `perf_event.h`.
    fn event(&self) -> String {
        const HARDWARE: [&str; 10] = [
            "cycles",
            "instructions",
            "cache-references",
            "cache-misses",
            "branches",
            "branch-misses",
            "bus-cycles",
            "stalled-cycles-frontend",
            "stalled-cycles-backend",
            "ref-cycles",
        ];
        const SOFTWARE: [&str; 9] = [
            "cpu-clock",
            "task-clock",
            "page-faults",
            "context-switches",
            "cpu-migrations",
            "minor-faults",
            "major-faults",
            "alignment-faults",
            "emulation-faults",
        ];
        // The high half selects the kind of CPU.
        let at = (self.config & 0xffff_ffff) as usize;
        let known = match self.kind {
            0 => HARDWARE.get(at),
            1 => SOFTWARE.get(at),
            _ => None,
        };
        known.map_or_else(
            || format!("event {}:{:#x}", self.kind, self.config),
            |name| (*name).into(),
        )
    }

    /// Writes into `info` what the samples count and how often they were taken, in Hz; the rate is
    /// 0 if the distance is a number of events and not a time.
    pub(super) fn describe(&self, info: &mut Info) {
        let is_frequency = self.flags & IS_FREQUENCY != 0;
        if !self.is_clock() {
            info.metric = Metric {
                name: self.event(),
                unit: "events".into(),
            };
        }
        let hz = match (is_frequency, self.is_clock()) {
            (true, _) => self.rate,
            (false, true) if self.rate > 0 => (1_000_000_000 + self.rate / 2) / self.rate,
            _ => 0,
        };
        info.rates.first_hz = u32::try_from(hz).unwrap_or(0);
    }

    /// Skips the counters that come with a sample:
    ///
    /// ```text
    /// one:      value  [time enabled] [time running] [id] [lost]
    /// a group:  count  [time enabled] [time running]  count × (value [id] [lost])
    /// ```
    pub(super) fn skip_read(&self, cursor: &mut Cursor<'_>) -> Result<(), FormatError> {
        let is = |bit| self.read_format & bit != 0;
        let times = READ_TOTAL_TIMES.into_iter().filter(|bit| is(*bit)).count();
        let each = 1 + usize::from(is(READ_ID)) + usize::from(is(READ_LOST));
        let words = if is(READ_GROUP) {
            usize::try_from(cursor.u64()?)
                .unwrap_or(usize::MAX)
                .saturating_mul(each)
        } else {
            each
        };
        cursor.skip(words.saturating_add(times).saturating_mul(8))
    }

    /// Returns the time of any record, in nanoseconds on the clock of the recording; 0 if the
    /// record has none. Samples have it near the beginning, other records near the end:
    ///
    /// ```text
    /// sample:  [identifier] [ip] [pid, tid] TIME …
    /// other:   … [pid, tid] TIME [id] [stream id] [cpu] [identifier]
    /// ```
    pub(super) fn time_of(&self, is_sample: bool, body: &[u8]) -> u64 {
        let is = |bit| self.sample_type & bit != 0;
        let words = |bits: &[u64]| bits.iter().filter(|bit| is(**bit)).count();
        if !is(has::TIME) || (!is_sample && self.flags & SAMPLE_ID_ALL == 0) {
            return 0;
        }
        let at = if is_sample {
            Some(words(&[has::IDENTIFIER, has::IP, has::TID]) * 8)
        } else {
            let after = [has::ID, has::STREAM_ID, has::CPU, has::IDENTIFIER];
            body.len().checked_sub((words(&after) + 1) * 8)
        };
        let bytes = at.and_then(|at| body.get(at..));
        bytes
            .and_then(|bytes| Cursor(bytes).u64().ok())
            .unwrap_or(0)
    }

    /// Returns the id of a sample's event, which is needed if there are several events.
    ///
    /// The id is the first word where the identifier bit is set, else it comes after address,
    /// thread, time and data address. `None` if samples have no id, or if the body is too short.
    pub(super) fn id_of(&self, body: &[u8]) -> Option<u64> {
        let is = |bit| self.sample_type & bit != 0;
        let before = [has::IP, has::TID, has::TIME, has::ADDRESS];
        let at = match (is(has::IDENTIFIER), is(has::ID)) {
            (true, _) => 0,
            (false, true) => before.iter().filter(|bit| is(**bit)).count() * 8,
            (false, false) => return None,
        };
        Cursor(body.get(at..)?).u64().ok()
    }
}
