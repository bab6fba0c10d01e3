//! A *block*: sixteen bytes of header, then compressed contents. Each block has its own checksum,
//! so a file that was cut anywhere can be used up to its last whole block.
//!
//! ```text
//! u32 stored length │ u32 unpacked length │ u32 CRC-32 │ u32 codec │ stored bytes …
//! ```
//!
//! Blocks of a running recording are small and similar. They are compressed as one stream, each
//! continuing the one before, so that later blocks can refer to earlier ones. Large blocks are
//! compressed separately, by a faster method.

use crate::formats::FormatError;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use lzma_rust2::{Lzma2Options, Lzma2Reader, Lzma2Writer};
use std::fmt;
use std::io::{ErrorKind, Read, Write};

/// Largest size of the unpacked contents of one block. A writer begins a new block long before.
pub(super) const RAW_MAX: usize = 16 << 20;

/// Length of the header in bytes.
const HEADER: usize = 16;
/// Codec: the contents are stored unpacked, because packing would make them longer.
const STORED: u32 = 0;
/// Codec: the block is compressed by itself, RFC 1951.
const DEFLATED: u32 = 1;
/// Codec: the block is a piece of the file's one LZMA2 stream.
const STREAMED: u32 = 2;

/// Deflate level. Level 9 makes files 5 % smaller and takes four times as long.
const LEVEL: u32 = 6;

/// How far back the stream can refer: half a minute of a busy machine at 999 Hz.
const WINDOW: u32 = 1 << 20;

/// Largest contents that go into the stream: a second at about 3 kHz on two busy CPUs.
const STREAMED_MAX: usize = 128 << 10;

/// Packs blocks one after the other.
pub(super) struct Packer {
    stream: Lzma2Writer<Vec<u8>>,
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

impl Packer {
    /// A packer with an empty stream, for a new file.
    pub(super) fn new() -> Self {
        // Higher presets make files 10 % smaller and take three times as long.
        let mut options = Lzma2Options::with_preset(1);
        options.lzma_options.dict_size = WINDOW;
        // The contents are not aligned to multiples of four.
        options.lzma_options.pb = 0;
        Self {
            stream: Lzma2Writer::new(Vec::new(), options),
        }
    }

    /// Writes a block, and returns its length in the file.
    pub(super) fn write(&mut self, out: &mut impl Write, raw: &[u8]) -> Result<usize, FormatError> {
        let (codec, packed) = match raw.len() {
            ..=STREAMED_MAX => (STREAMED, self.go_on(raw)?),
            _ => (DEFLATED, deflated(raw)?),
        };
        // A block that is already in the stream must be stored as such, even if it became longer.
        let (codec, stored) = if codec == STREAMED || packed.len() < raw.len() {
            (codec, &packed[..])
        } else {
            (STORED, raw)
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
        // One write call, so that someone reading the file meanwhile nearly always sees whole
        // blocks.
        out.write_all(&block)?;
        out.flush()?;
        Ok(block.len())
    }

    /// Appends contents to the stream and returns their compressed form: the stream is flushed, so
    /// these are whole chunks.
    fn go_on(&mut self, raw: &[u8]) -> Result<Vec<u8>, FormatError> {
        self.stream.write_all(raw)?;
        self.stream.flush()?;
        Ok(std::mem::take(self.stream.inner_mut()))
    }
}

/// Compresses contents by themselves.
fn deflated(raw: &[u8]) -> Result<Vec<u8>, FormatError> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(LEVEL));
    encoder.write_all(raw)?;
    Ok(encoder.finish()?)
}

/// Unpacks blocks one after the other. A block of the stream can be unpacked only after all blocks
/// of the stream before it.
pub(super) struct Unpacker {
    stream: Lzma2Reader<Piece>,
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacker").finish_non_exhaustive()
    }
}

/// The piece of the stream that one block contains.
type Piece = std::io::Cursor<Vec<u8>>;

impl Unpacker {
    /// An unpacker for a file of which no block was read.
    pub(super) fn new() -> Self {
        Self {
            stream: Lzma2Reader::new(Piece::default(), WINDOW, None),
        }
    }

    /// Unpacks the contents of a block whose checksum is right. They must be as long as announced,
    /// which bounds the memory that a malicious file can make us use.
    fn unpack(
        &mut self,
        codec: u32,
        stored: Vec<u8>,
        raw_len: usize,
    ) -> Result<Vec<u8>, FormatError> {
        // One byte more than announced, to notice if there is more.
        let limit = raw_len as u64 + 1;
        let mut raw = Vec::new();
        let unpacked = match codec {
            STORED => return Ok(stored),
            DEFLATED => DeflateDecoder::new(&stored[..])
                .take(limit)
                .read_to_end(&mut raw),
            STREAMED => self.go_on(stored, raw_len, &mut raw),
            _ => {
                let what = "a block is packed in a way that is not known";
                return Err(FormatError::Damaged(what.into()));
            }
        };
        match unpacked {
            Ok(len) if len == raw_len => Ok(raw),
            _ => Err(FormatError::Damaged("a block cannot be unpacked".into())),
        }
    }

    /// Unpacks the next piece of the stream. A piece consists of whole chunks, so the decoder does
    /// not ask for more bytes.
    fn go_on(
        &mut self,
        stored: Vec<u8>,
        raw_len: usize,
        raw: &mut Vec<u8>,
    ) -> std::io::Result<usize> {
        *self.stream.inner_mut() = Piece::new(stored);
        let len = (&mut self.stream).take(raw_len as u64).read_to_end(raw)?;
        // Left-over bytes would be read as the beginning of the next piece.
        let piece = self.stream.inner();
        if piece.position() == piece.get_ref().len() as u64 {
            Ok(len)
        } else {
            Err(ErrorKind::InvalidData.into())
        }
    }
}

/// The result of reading the next block.
pub(super) enum Next {
    Block(Vec<u8>),
    /// The file ends here, between two blocks.
    End,
    /// The file ends inside a block.
    Cut,
}

/// Reads one block. Lengths are checked before anything is read, and memory is allocated only for
/// bytes that arrived, so a forged header costs nothing.
pub(super) fn read(input: &mut impl Read, unpacker: &mut Unpacker) -> Result<Next, FormatError> {
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
    unpacker.unpack(codec, stored, raw_len).map(Next::Block)
}

/// Returns the checksum of a block: CRC-32 of the codec, the unpacked length and the stored
/// contents.
fn crc(codec: u32, raw_len: usize, stored: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(&codec.to_le_bytes());
    crc.update(&(raw_len as u32).to_le_bytes());
    crc.update(stored);
    crc.sum()
}

/// Fills the buffer as far as there is input, and returns how much was read.
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
