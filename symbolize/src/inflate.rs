//! Compressed bytes of strangers, inflated within bounds.
//!
//! What a header claims is not believed: memory is taken for what the input
//! can hold at most, and grows only as bytes come out.

use std::io::{self, Read};

use ruzstd::decoding::StreamingDecoder;

use crate::OpenError;

/// Deflate cannot do better than 1032 to 1. Others can, with content that no
/// file of ours has.
const RATIO_MAX: u64 = 1032;

/// What an xz decoder may take for itself: the largest preset needs 65 MiB.
pub const XZ_KIB_MAX: u32 = 96 << 10;

/// What a zstd decoder may keep of its output.
const ZSTD_WINDOW_MAX: u64 = 128 << 20;

/// A zlib stream that inflates to `size` bytes.
pub fn zlib(bytes: &[u8], size: u64, what: &'static str) -> Result<Vec<u8>, OpenError> {
    exactly(flate2::read::ZlibDecoder::new(bytes), bytes, size, what)
}

/// A deflate stream without a header that inflates to `size` bytes.
pub fn deflate(bytes: &[u8], size: u64, what: &'static str) -> Result<Vec<u8>, OpenError> {
    exactly(flate2::read::DeflateDecoder::new(bytes), bytes, size, what)
}

/// A zstd frame that inflates to `size` bytes.
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
        // No more is read than was told.
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
