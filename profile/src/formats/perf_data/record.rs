//! Records: a head and a body.

use super::attributes::{Attributes, has};
use super::cursor::Cursor;
use crate::formats::FormatError;

/// The beginning of every record: its kind, and its length, which only [`Head::take`] needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) kind: u32,
    /// Flags whose meaning depends on the kind.
    pub(super) misc: u16,
}

impl Head {
    /// Takes a whole record: its head and its body.
    pub(super) fn take<'a>(cursor: &mut Cursor<'a>) -> Result<(Self, &'a [u8]), FormatError> {
        let head = Head {
            kind: cursor.u32()?,
            misc: cursor.u16()?,
        };
        let len = usize::from(cursor.u16()?);
        let body = len
            .checked_sub(8)
            .ok_or_else(|| FormatError::Damaged("a record is shorter than its head".into()))?;
        Ok((head, cursor.take(body)?))
    }
}

/// Kinds of records, `PERF_RECORD_*` in `perf_event.h`.
pub(super) const MMAP: u32 = 1;
pub(super) const LOST: u32 = 2;
pub(super) const COMM: u32 = 3;
pub(super) const EXIT: u32 = 4;
pub(super) const FORK: u32 = 7;
pub(super) const SAMPLE: u32 = 9;
pub(super) const MMAP2: u32 = 10;
pub(super) const LOST_SAMPLES: u32 = 13;
pub(super) const KSYMBOL: u32 = 17;
/// From here on: records of perf itself, which are not from the kernel.
pub(super) const HEADER_ATTR: u32 = 64;
pub(super) const HEADER_BUILD_ID: u32 = 67;
pub(super) const FINISHED_ROUND: u32 = 68;
pub(super) const AUXTRACE: u32 = 71;
pub(super) const HEADER_FEATURE: u32 = 80;
pub(super) const COMPRESSED: u32 = 81;
pub(super) const COMPRESSED2: u32 = 83;

/// Bits of a head's `misc`.
pub(super) const KERNEL_MODE: u16 = 1;
pub(super) const COMM_EXEC: u16 = 1 << 13;
pub(super) const MAP_HAS_BUILD_ID: u16 = 1 << 14;

/// The parts of a sample that are used here.
#[derive(Debug, Default)]
pub(super) struct Sample {
    pub(super) ip: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) time_ns: u64,
    pub(super) cpu: u32,
    /// Number of events since the last sample.
    pub(super) period: u64,
    /// The call chain: addresses, and marks that say which side the following addresses belong to.
    pub(super) chain: Vec<u64>,
}

/// Values from here on are marks and not addresses.
pub(super) const MARKS: u64 = -4095i64 as u64;
/// `PERF_CONTEXT_KERNEL` and `PERF_CONTEXT_USER`: the addresses after the mark belong to that side.
/// Other marks, such as those of guests, are skipped.
pub(super) const KERNEL_MARK: u64 = -128i64 as u64;
pub(super) const USER_MARK: u64 = -512i64 as u64;

impl Sample {
    /// Reads a sample. The order of the parts is fixed, each is there if its bit is
    /// set; what comes behind the call chain (registers, a copied stack) is not read.
    pub(super) fn parse(body: &[u8], attributes: &Attributes) -> Result<Self, FormatError> {
        let mut cursor = Cursor(body);
        let mut sample = Sample {
            period: 1,
            ..Sample::default()
        };
        let kind = attributes.sample_type;
        let is = |bit| kind & bit != 0;
        if is(has::IDENTIFIER) {
            cursor.skip(8)?;
        }
        if is(has::IP) {
            sample.ip = cursor.u64()?;
        }
        if is(has::TID) {
            (sample.pid, sample.tid) = (cursor.u32()?, cursor.u32()?);
        }
        if is(has::TIME) {
            sample.time_ns = cursor.u64()?;
        }
        for bit in [has::ADDRESS, has::ID, has::STREAM_ID] {
            if is(bit) {
                cursor.skip(8)?;
            }
        }
        if is(has::CPU) {
            sample.cpu = cursor.u32()?;
            cursor.skip(4)?;
        }
        if is(has::PERIOD) {
            sample.period = cursor.u64()?;
        }
        if is(has::READ) {
            attributes.skip_read(&mut cursor)?;
        }
        if is(has::CALLCHAIN) {
            // The buffer is checked to contain all bytes before memory is allocated for them.
            let count = cursor.u64()?;
            let bytes = usize::try_from(count)
                .ok()
                .and_then(|count| count.checked_mul(8));
            let mut chain = Cursor(cursor.take(bytes.unwrap_or(usize::MAX))?);
            while let Ok(address) = chain.u64() {
                sample.chain.push(address);
            }
        }
        Ok(sample)
    }
}
