//! Reads numbers and texts in records of the kernel: `None` where a record is cut.

/// Returns what precedes the first zero; everything if there is none.
pub fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    &bytes[..end]
}

/// Returns the 16-bit number at an offset; `None` if the bytes end before it does.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(field_at(bytes, at)?))
}

/// Returns the 32-bit number at an offset; `None` if the bytes end before it does.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(field_at(bytes, at)?))
}

/// Returns the 64-bit number at an offset; `None` if the bytes end before it does.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(field_at(bytes, at)?))
}

/// Returns the `N` bytes at an offset; `None` if the bytes end before that.
pub fn field_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}
