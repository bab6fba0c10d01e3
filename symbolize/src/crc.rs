//! Checksums: CRC-32, as zip archives, gzip and `.gnu_debuglink` have it.

/// The checksum of bytes that come in pieces.
pub(crate) use flate2::Crc;

/// Returns the checksum of these bytes.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        // The check value of the catalogue of parametrised CRC algorithms.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let mut pieces = Crc::new();
        pieces.update(b"1234");
        pieces.update(b"56789");
        assert_eq!(pieces.sum(), 0xcbf4_3926);
    }
}
