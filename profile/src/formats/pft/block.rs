//! A *block*: sixteen bytes of header, then compressed contents. Each is
//! compressed and checked by itself, so a file that was cut anywhere is whole
//! up to its last whole block.

use crate::formats::FormatError;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use std::io::{ErrorKind, Read, Write};

/// The contents of one block. A writer begins a new one long before.
pub(super) const RAW_MAX: usize = 16 << 20;

const HEADER: usize = 16;
const STORED: u32 = 0;
const DEFLATED: u32 = 1;

/// Fast enough that a recording at 10 kHz is not seen in it; level 9 makes
/// files a twentieth smaller and takes four times as long.
const LEVEL: u32 = 6;

pub(super) fn write(out: &mut impl Write, raw: &[u8]) -> Result<usize, FormatError> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(LEVEL));
    encoder.write_all(raw)?;
    let packed = encoder.finish()?;
    let (codec, stored) = match packed.len() < raw.len() {
        true => (DEFLATED, &packed[..]),
        false => (STORED, raw),
    };
    let mut block = Vec::with_capacity(HEADER + stored.len());
    for word in [
        stored.len() as u32,
        raw.len() as u32,
        crc(codec, raw.len(), stored),
        codec,
    ] {
        block.extend_from_slice(&word.to_le_bytes());
    }
    block.extend_from_slice(stored);
    // One write: who reads while we write sees whole blocks, mostly.
    out.write_all(&block)?;
    out.flush()?;
    Ok(block.len())
}

/// What came of asking for the next block.
pub(super) enum Next {
    Block(Vec<u8>),
    /// The file ends here, between two blocks.
    End,
    /// The file ends inside a block.
    Cut,
}

pub(super) fn read(input: &mut impl Read) -> Result<Next, FormatError> {
    let mut header = [0; HEADER];
    match read_full(input, &mut header)? {
        0 => return Ok(Next::End),
        HEADER => {}
        _ => return Ok(Next::Cut),
    }
    let word = |at: usize| {
        let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        u32::from_le_bytes(bytes)
    };
    let (stored_len, raw_len, sum, codec) = (word(0), word(4), word(8), word(12));
    let (stored_len, raw_len) = (stored_len as usize, raw_len as usize);
    let damaged = |what: &str| Err(FormatError::Damaged(what.into()));
    if raw_len > RAW_MAX || stored_len > RAW_MAX {
        return damaged("a block is larger than blocks are");
    }
    let mut stored = Vec::new();
    input.take(stored_len as u64).read_to_end(&mut stored)?;
    if stored.len() < stored_len {
        return Ok(Next::Cut);
    }
    if crc(codec, raw_len, &stored) != sum {
        return damaged("the checksum of a block is wrong");
    }
    match codec {
        STORED => Ok(Next::Block(stored)),
        DEFLATED => {
            let mut raw = Vec::new();
            // One more than announced, to see that there is no more.
            let limit = raw_len as u64 + 1;
            let unpacked = DeflateDecoder::new(&stored[..])
                .take(limit)
                .read_to_end(&mut raw);
            match unpacked {
                Ok(len) if len == raw_len => Ok(Next::Block(raw)),
                _ => damaged("a block cannot be unpacked"),
            }
        }
        _ => damaged("a block is packed in a way that is not known"),
    }
}

fn crc(codec: u32, raw_len: usize, stored: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(&codec.to_le_bytes());
    crc.update(&(raw_len as u32).to_le_bytes());
    crc.update(stored);
    crc.sum()
}

fn read_full(input: &mut impl Read, buffer: &mut [u8]) -> Result<usize, FormatError> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(filled)
}
