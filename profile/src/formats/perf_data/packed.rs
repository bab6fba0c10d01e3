//! Records that perf compressed (`perf record -z`): one Zstandard stream, cut into records of its
//! own wherever perf's buffer was full.
//!
//! perf never ends the stream, and the decoder holds the last window back until the stream ends. So
//! it is ended here, and the unpacked records come later than the records around them.

use crate::formats::FormatError;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Limit of the unpacked bytes, as for any packed file.
const UNPACKED_MAX: u64 = 4 << 30;

/// Largest accepted window. perf's highest level would need 128 MiB; this one is enough for the
/// levels used in practice.
const WINDOW_MAX: u64 = 32 << 20;

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Length of the header of a block in a frame.
const BLOCK_HEADER: usize = 3;
/// An empty last block, which ends a frame.
const LAST_BLOCK: [u8; BLOCK_HEADER] = [1, 0, 0];
const CHECKSUM: usize = 4;

/// ```text
/// push ─► packed ── whole blocks ──► decoder ─► unpacked ── whole records ──► take_records
/// ```
pub(super) struct Packed {
    /// The frame that is being unpacked.
    frame: Option<Frame>,
    decoder: FrameDecoder,
    /// Bytes to be unpacked: less than a block.
    packed: Vec<u8>,
    /// Unpacked bytes that were not taken: less than a record.
    unpacked: Vec<u8>,
    /// Number of bytes that may still be unpacked.
    left: u64,
    is_used: bool,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    has_checksum: bool,
}

fn damaged() -> FormatError {
    FormatError::Damaged("its compressed records cannot be unpacked".into())
}

impl Default for Packed {
    fn default() -> Self {
        Self {
            frame: None,
            decoder: FrameDecoder::new(),
            packed: Vec::new(),
            unpacked: Vec::new(),
            left: UNPACKED_MAX,
            is_used: false,
        }
    }
}

impl Packed {
    /// Unpacks `bytes`, which continue what was pushed before.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        self.is_used = true;
        self.packed.extend_from_slice(bytes);
        let packed = std::mem::take(&mut self.packed);
        let mut rest = &packed[..];
        loop {
            let len = match self.frame {
                None => frame_header_len(rest)?,
                Some(frame) => block_len(rest, frame),
            };
            let Some((part, after)) = len.and_then(|len| rest.split_at_checked(len)) else {
                break;
            };
            match self.frame {
                None => self.begin(part)?,
                Some(_) => self.unpack(part)?,
            }
            rest = after;
        }
        self.packed = rest.to_vec();
        Ok(())
    }

    /// Unpacks what the decoder held back. Returns false if the stream is cut.
    pub(super) fn end(&mut self) -> Result<bool, FormatError> {
        let is_whole = self.packed.is_empty();
        self.packed.clear();
        if self.frame.is_some() {
            self.unpack(&[&LAST_BLOCK[..], &[0; CHECKSUM]].concat())?;
        }
        Ok(is_whole)
    }

    /// Whether any packed bytes were pushed.
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Takes the records that are complete.
    pub(super) fn take_records(&mut self) -> Vec<u8> {
        let mut end = 0;
        while let Some(head) = self.unpacked.get(end..end + 8) {
            let len = usize::from(u16::from_le_bytes([head[6], head[7]]));
            // A record that claims to be too short is left for the caller to refuse.
            if self.unpacked.len() - end < len {
                break;
            }
            end += len.max(8);
        }
        let rest = self.unpacked.split_off(end);
        std::mem::replace(&mut self.unpacked, rest)
    }

    /// Whether the unpacked bytes end inside a record.
    pub(super) fn is_cut(&self) -> bool {
        !self.unpacked.is_empty()
    }

    /// Begins a frame; `header` has to be complete.
    fn begin(&mut self, header: &[u8]) -> Result<(), FormatError> {
        self.decoder.set_max_window_size(WINDOW_MAX);
        self.decoder.reset(header).map_err(|_| damaged())?;
        // The byte behind the magic number describes the frame, RFC 8878, 3.1.1.1.1.
        let has_checksum = header[4] & 1 << 2 != 0;
        self.frame = Some(Frame { has_checksum });
        Ok(())
    }

    /// Unpacks one block, and counts the result against the limit.
    fn unpack(&mut self, block: &[u8]) -> Result<(), FormatError> {
        let one = BlockDecodingStrategy::UptoBlocks(1);
        let is_last = self
            .decoder
            .decode_blocks(block, one)
            .map_err(|_| damaged())?;
        let unpacked = self.decoder.collect().unwrap_or_default();
        let left = self.left.checked_sub(unpacked.len() as u64);
        self.left = left.ok_or(FormatError::TooLarge("it unpacks to more than 4 GB"))?;
        self.unpacked.extend(unpacked);
        if is_last {
            self.frame = None;
        }
        Ok(())
    }
}

/// Returns the length of a frame's header, RFC 8878, 3.1.1.1; `None` if the bytes that tell it are
/// not there yet.
fn frame_header_len(bytes: &[u8]) -> Result<Option<usize>, FormatError> {
    let Some((magic, rest)) = bytes.split_at_checked(MAGIC.len()) else {
        return Ok(None);
    };
    if magic != MAGIC {
        return Err(damaged());
    }
    let Some(descriptor) = rest.first() else {
        return Ok(None);
    };
    let is_single_segment = descriptor & 1 << 5 != 0;
    let window = usize::from(!is_single_segment);
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size = match descriptor >> 6 {
        0 => usize::from(is_single_segment),
        bits => 1 << bits,
    };
    Ok(Some(MAGIC.len() + 1 + window + dictionary + size))
}

/// Returns the length of a block with its header, and with the checksum after the last block.
fn block_len(bytes: &[u8], frame: Frame) -> Option<usize> {
    const RLE: u32 = 1;
    let header = bytes.get(..BLOCK_HEADER)?;
    let header = u32::from_le_bytes([header[0], header[1], header[2], 0]);
    let len = match header >> 1 & 3 {
        RLE => 1,
        _ => (header >> 3) as usize,
    };
    let is_last = header & 1 == 1;
    let checksum = if is_last && frame.has_checksum {
        CHECKSUM
    } else {
        0
    };
    Some(BLOCK_HEADER + len + checksum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four bytes that are 128 KiB.
    const REPEATED: [u8; 4] = [2, 0, 1 << 4, 0];

    #[test]
    fn a_stream_that_unpacks_to_too_much_is_refused() {
        let mut packed = Packed {
            left: 4 << 20,
            ..Packed::default()
        };
        let header = [&MAGIC[..], &[0, 7 << 3]].concat();
        packed.push(&header).unwrap();
        let mut pushed = 0;
        let error = loop {
            match packed.push(&REPEATED) {
                Ok(()) => pushed += 1,
                Err(error) => break error.to_string(),
            }
            // As the reader does.
            packed.take_records();
        };
        assert!(error.contains("more than 4 GB"), "{error}");
        // The last window is held back by the decoder.
        assert_eq!(pushed, (4 << 20 >> 17) + 1);
    }
}
