//! Inflates untrusted compressed data within limits.
//!
//! The size in a header is not trusted: memory is allocated for what the input can produce at most,
//! and grows only as bytes are produced.

use std::io::{self, Read};

use ruzstd::decoding::StreamingDecoder;

use crate::OpenError;

/// Maximum compression ratio. Deflate cannot exceed 1032 to 1. Others can, but not with the
/// contents of the files that are read here.
const RATIO_MAX: u64 = 1032;

/// Maximum memory of an xz decoder: the largest preset needs 65 MiB.
pub const XZ_KIB_MAX: u32 = 96 << 10;

/// Maximum part of its output that a zstd decoder may keep.
const ZSTD_WINDOW_MAX: u64 = 128 << 20;

/// Inflates a zlib stream to exactly `size` bytes.
pub fn zlib(bytes: &[u8], size: u64, what: &'static str) -> Result<Vec<u8>, OpenError> {
    exactly(flate2::read::ZlibDecoder::new(bytes), bytes, size, what)
}

/// Inflates a deflate stream without a header to exactly `size` bytes.
pub fn deflate(bytes: &[u8], size: u64, what: &'static str) -> Result<Vec<u8>, OpenError> {
    exactly(flate2::read::DeflateDecoder::new(bytes), bytes, size, what)
}

/// Inflates a zstd frame to exactly `size` bytes.
pub fn zstd(bytes: &[u8], size: u64, what: &'static str) -> Result<Vec<u8>, OpenError> {
    let decoder = StreamingDecoder::new_with_max_window_size(bytes, ZSTD_WINDOW_MAX)
        .map_err(|_| OpenError::Damaged(what))?;
    exactly(decoder, bytes, size, what)
}

fn exactly(
    decoder: impl Read,
    bytes: &[u8],
    size: u64,
    what: &'static str,
) -> Result<Vec<u8>, OpenError> {
    let inflated = read(decoder, bytes, size).map_err(|_| OpenError::Damaged(what))?;
    if inflated.len() as u64 == size {
        Ok(inflated)
    } else {
        Err(OpenError::Damaged(what))
    }
}

fn read(decoder: impl Read, bytes: &[u8], max: u64) -> io::Result<Vec<u8>> {
    let room = max.min(bytes.len() as u64 * RATIO_MAX).min(64 << 20);
    let mut inflated = Vec::with_capacity(room as usize);
    decoder.take(max).read_to_end(&mut inflated)?;
    Ok(inflated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let level = flate2::Compression::fast();
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_stream_of_another_size_than_told_is_damaged() {
        let bytes = deflated(&[7; 1000]);
        assert_eq!(zlib(&bytes, 1000, "x").unwrap(), [7; 1000]);
        let longer = zlib(&bytes, 1001, "x").unwrap_err();
        assert!(matches!(longer, OpenError::Damaged("x")));
        // No more is read than was announced.
        assert_eq!(zlib(&bytes, 999, "x").unwrap().len(), 999);
    }

    #[test]
    fn claims_cost_nothing() {
        for size in [1 << 40, u64::MAX - 1] {
            assert!(zlib(b"x\x9c", size, "x").is_err());
            assert!(zstd(b"\x28\xb5\x2f\xfd", size, "x").is_err());
        }
    }
}
