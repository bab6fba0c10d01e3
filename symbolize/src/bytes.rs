//! Reads little-endian fields at fixed offsets of a record.
//!
//! The record is an array, so an offset outside of it already fails in the first test that runs.

#[inline]
pub(crate) fn u16_at<const N: usize>(record: &[u8; N], at: usize) -> u16 {
    u16::from_le_bytes(field(record, at))
}

#[inline]
pub(crate) fn u32_at<const N: usize>(record: &[u8; N], at: usize) -> u32 {
    u32::from_le_bytes(field(record, at))
}

#[inline]
pub(crate) fn u64_at<const N: usize>(record: &[u8; N], at: usize) -> u64 {
    u64::from_le_bytes(field(record, at))
}

#[inline]
fn field<const N: usize, const LEN: usize>(record: &[u8; N], at: usize) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes.copy_from_slice(&record[at..at + LEN]);
    bytes
}

/// Reads a little-endian 32-bit word at any offset; `None` beyond the end.
pub(crate) fn u32_in(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*field))
}
