//! Numbers and texts in records of the kernel: nothing where they are cut.

/// What comes before the first zero; everything if there is none.
pub fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    &bytes[..end]
}

/// The 16-bit number at an offset; `None` where the bytes end before.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(field_at(bytes, at)?))
}

/// The 32-bit number at an offset; `None` where the bytes end before.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(field_at(bytes, at)?))
}

/// The 64-bit number at an offset; `None` where the bytes end before.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(field_at(bytes, at)?))
}

/// `N` bytes.
pub fn field_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}
