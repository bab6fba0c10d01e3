//! The header, which says where the records are, and the features behind the records.

use super::cursor::Cursor;
use super::record::Head;
use crate::formats::FormatError;
use crate::formats::wire::clean;
use std::io::Read;

/// Largest size of one part: attributes and features have some hundred bytes for each event or
/// file.
const PART_MAX: u64 = 64 << 20;

/// Lengths of `struct perf_file_header` and `struct perf_pipe_file_header`. A pipe's header has
/// only the first two fields.
const FILE_HEADER: u64 = 104;
const PIPE_HEADER: u64 = 16;

/// Where the parts of a file are, as offsets from its beginning. A pipe has this information in
/// records instead.
pub(super) struct Header {
    /// All bytes before the records.
    pub(super) start: Vec<u8>,
    /// The attributes: their offset in `start`, the length of one together with the place of its
    /// ids, and the length of all.
    pub(super) attributes: (u64, u64, u64),
    /// Length of the records in bytes; `None` if perf was killed before it could write the length.
    pub(super) data: Option<u64>,
    /// One bit for each feature stored behind the records.
    pub(super) features: [u64; 4],
    pub(super) is_pipe: bool,
}

/// Reads the header. The input cannot be rewound, as it may be a pipe, so everything up to the
/// records is kept in memory: attributes, ids and whatever else is there.
pub(super) fn read(input: &mut impl Read) -> Result<Header, FormatError> {
    let mut start = Vec::new();
    input.take(PIPE_HEADER).read_to_end(&mut start)?;
    let mut cursor = Cursor(start.get(8..).unwrap_or_default());
    let size = cursor.u64()?;
    if size == PIPE_HEADER {
        return Ok(Header {
            start: Vec::new(),
            attributes: (0, 0, 0),
            data: None,
            features: [0; 4],
            is_pipe: true,
        });
    }
    input
        .take(FILE_HEADER - PIPE_HEADER)
        .read_to_end(&mut start)?;
    let mut cursor = Cursor(&start[16..]);
    let attribute_size = cursor.u64()?;
    let (attributes, attributes_len) = (cursor.u64()?, cursor.u64()?);
    let (data, data_len) = (cursor.u64()?, cursor.u64()?);
    cursor.skip(16)?;
    let features = [cursor.u64()?, cursor.u64()?, cursor.u64()?, cursor.u64()?];
    if !(FILE_HEADER..PART_MAX).contains(&data) {
        return Err(FormatError::Damaged("its records are nowhere".into()));
    }
    input.take(data - FILE_HEADER).read_to_end(&mut start)?;
    Ok(Header {
        start,
        attributes: (attributes, attribute_size, attributes_len),
        data: (data_len > 0).then_some(data_len),
        features,
        is_pipe: false,
    })
}

/// The contents of the features that are used here.
#[derive(Debug, Default)]
pub(super) struct Features {
    pub(super) build_ids: Vec<BuildId>,
    pub(super) host: String,
    pub(super) kernel: String,
    pub(super) arch: String,
    pub(super) cpus: u32,
}

/// The build-id of a file that has samples, as perf determined it when it ended.
#[derive(Debug)]
pub(super) struct BuildId {
    pub(super) is_kernel: bool,
    pub(super) path: String,
    pub(super) build_id: Vec<u8>,
}

/// Numbers of the features that are read (`enum` in `tools/perf/util/header.h`).
const BUILD_ID: usize = 2;
const HOST: usize = 3;
const KERNEL_RELEASE: usize = 4;
const ARCH: usize = 6;
const CPUS: usize = 7;

/// Reads what comes after the records, which end at `end` in the file.
///
/// A table is stored there, offset and length for each bit that is set, lowest first, followed by
/// the contents it points to. Contents beyond [`PART_MAX`] or outside of the tail are left out.
pub(super) fn features(
    bits: [u64; 4],
    end: u64,
    input: &mut impl Read,
) -> Result<Features, FormatError> {
    let mut tail = Vec::new();
    input.take(PART_MAX).read_to_end(&mut tail)?;
    let mut features = Features::default();
    let present = (0..256).filter(|bit| bits[bit / 64] >> (bit % 64) & 1 == 1);
    let mut table = Cursor(&tail);
    for bit in present {
        let (Ok(offset), Ok(len)) = (table.u64(), table.u64()) else {
            break;
        };
        let from = usize::try_from(offset.wrapping_sub(end)).unwrap_or(usize::MAX);
        let to = from.saturating_add(usize::try_from(len).unwrap_or(usize::MAX));
        if let Some(part) = tail.get(from..to) {
            features.add(bit, part);
        }
    }
    Ok(features)
}

impl Features {
    /// Reads the feature with that number. A damaged or unknown feature is ignored.
    pub(super) fn add(&mut self, bit: usize, part: &[u8]) {
        let mut cursor = Cursor(part);
        let mut text = || {
            // A text is preceded by its length and padded with zeros.
            let len = cursor.u32().ok()? as usize;
            let text = cursor.take(len.min(part.len() - 4)).ok()?;
            Some(zero_ended(text))
        };
        match bit {
            HOST => self.host = text().unwrap_or_default(),
            KERNEL_RELEASE => self.kernel = text().unwrap_or_default(),
            ARCH => self.arch = text().unwrap_or_default(),
            CPUS => self.cpus = Cursor(part).u32().unwrap_or(0),
            BUILD_ID => {
                let mut records = Cursor(part);
                while let Ok((head, body)) = Head::take(&mut records) {
                    self.add_build_id(head.misc, body);
                }
            }
            _ => {}
        }
    }

    /// Reads a `perf_record_header_build_id` without its head: pid, 20 bytes with 4 for the length,
    /// the path. A damaged one is left out.
    pub(super) fn add_build_id(&mut self, misc: u16, body: &[u8]) {
        let mut cursor = Cursor(body);
        let (Ok(_pid), Ok(id)) = (cursor.u32(), cursor.take(24)) else {
            return;
        };
        // Newer records contain the length; older ones are padded with zeros.
        let len = match misc & 1 << 15 {
            0 => {
                20 - id[..20]
                    .iter()
                    .rev()
                    .take_while(|byte| **byte == 0)
                    .count()
                    .min(20)
                    / 4
                    * 4
            }
            _ => usize::from(id[20].min(20)),
        };
        self.build_ids.push(BuildId {
            is_kernel: misc & 7 == 1,
            path: zero_ended(cursor.0),
            build_id: id[..len].to_vec(),
        });
    }
}

/// Returns a text up to its first zero, cleaned of what could harm a terminal.
pub(super) fn zero_ended(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    clean(&String::from_utf8_lossy(
        &bytes[..end.unwrap_or(bytes.len())],
    ))
}
