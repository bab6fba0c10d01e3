//! What was sampled, and how that lays out its records.

use super::cursor::Cursor;
use crate::formats::FormatError;
use crate::{Info, Metric};

const READ_TOTAL_TIMES: [u64; 2] = [1, 2];
const READ_ID: u64 = 4;
const READ_GROUP: u64 = 8;
const READ_LOST: u64 = 16;

const IS_FREQUENCY: u64 = 1 << 10;
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// Bits of `sample_type`, in the order of what they stand for.
pub(super) mod has {
    pub(crate) const IP: u64 = 1;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDRESS: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const USER_STACK: u64 = 1 << 13;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
}

/// How one event was sampled: `struct perf_event_attr`.
#[derive(Debug, Clone, Default)]
pub(super) struct Attributes {
    kind: u32,
    config: u64,
    /// Ticks between samples, or samples a second.
    rate: u64,
    pub(super) sample_type: u64,
    read_format: u64,
    flags: u64,
}

impl Attributes {
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

    /// Nanoseconds of a CPU: each sample is one tick.
    pub(super) fn is_clock(&self) -> bool {
        self.kind == 1 && self.config <= 1
    }

    pub(super) fn copies_stacks(&self) -> bool {
        self.sample_type & has::USER_STACK != 0
    }

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
        // The high half says which kind of CPU.
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

    /// Counters that come with a sample.
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

    /// The time of any record.
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

    /// Whose sample it is, if there are several events.
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
