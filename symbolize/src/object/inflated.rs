//! Sections that are compressed in the file: with `SHF_COMPRESSED` (gABI, with a header of its
//! own), or in the older form of GNU tools (`.zdebug_…`).

use std::sync::Arc;

use object::elf;

use super::class::COMPRESSION_HEADER;
use super::{Object, Section, SectionBytes};
use crate::OpenError;
use crate::bytes::{u32_at, u64_at};
use crate::inflate;
use crate::source::Source;

/// Length of the header: kind, reserved, size, alignment.
const HEADER_BYTES: usize = COMPRESSION_HEADER.wide;

/// Length of the older header: `ZLIB` and the size, big-endian.
const OLD_HEADER_BYTES: usize = 12;

impl Object {
    /// Reads the section of debug information called `name` (`.debug_…`), or inflates its
    /// compressed form, to at most `max` bytes. Empty if there is none.
    pub fn debug_section(&self, name: &'static str, max: u64) -> Result<Vec<u8>, OpenError> {
        if let Some(section) = self.section_by_name(name.as_bytes()) {
            return self.inflated(section, max, name);
        }
        let old = name.replacen(".debug_", ".zdebug_", 1);
        match self.section_by_name(old.as_bytes()) {
            Some(section) => old_form(&self.section_data(section, max, name)?, max, name),
            None => Ok(Vec::new()),
        }
    }

    /// Opens such a section for reading in parts. A compressed one is inflated as a whole, to at
    /// most `max` bytes.
    pub fn debug_section_parts(
        &self,
        name: &'static str,
        max: u64,
    ) -> Result<SectionBytes, OpenError> {
        if let Some(section) = self.section_by_name(name.as_bytes())
            && let Source::File { file, len, .. } = &self.source
            && section.has_data()
            && !section.is_compressed()
        {
            let end = section.offset.checked_add(section.size);
            if end.is_none_or(|end| end > *len) {
                return Err(OpenError::Damaged(name));
            }
            let size = usize::try_from(section.size).map_err(|_| OpenError::Refused(name))?;
            let file = Arc::clone(file);
            return Ok(SectionBytes::of_file(file, section.offset, size));
        }
        self.debug_section(name, max).map(SectionBytes::in_memory)
    }

    /// Whether the file has debug information itself, compressed or not.
    pub fn has_debug_info(&self) -> bool {
        let names: [&[u8]; 2] = [b".debug_info", b".zdebug_info"];
        let section = names.iter().find_map(|name| self.section_by_name(name));
        section.is_some_and(|section| section.has_data() && section.size > 0)
    }

    fn inflated(
        &self,
        section: &Section,
        max: u64,
        what: &'static str,
    ) -> Result<Vec<u8>, OpenError> {
        let bytes = self.section_data(section, max, what)?;
        if !section.is_compressed() || bytes.is_empty() {
            return Ok(bytes);
        }
        let damaged = OpenError::Damaged(what);
        let header_bytes = self.class.size_of(&COMPRESSION_HEADER);
        let (header, stream) = bytes.split_at_checked(header_bytes).ok_or(damaged)?;
        let header = self.class.widen(&COMPRESSION_HEADER, header);
        let damaged = OpenError::Damaged(what);
        let header = header.first_chunk::<HEADER_BYTES>().ok_or(damaged)?;
        let size = u64_at(header, 8);
        if size > max {
            return Err(OpenError::Refused(what));
        }
        match elf::CompressionType(u32_at(header, 0)) {
            elf::ELFCOMPRESS_ZLIB => inflate::zlib(stream, size, what),
            elf::ELFCOMPRESS_ZSTD => inflate::zstd(stream, size, what),
            _ => Err(OpenError::Damaged(what)),
        }
    }
}

fn old_form(bytes: &[u8], max: u64, what: &'static str) -> Result<Vec<u8>, OpenError> {
    let damaged = OpenError::Damaged(what);
    let (header, stream) = bytes
        .split_first_chunk::<OLD_HEADER_BYTES>()
        .filter(|(header, _)| header.starts_with(b"ZLIB"))
        .ok_or(damaged)?;
    let size = u64_at(header, 4).swap_bytes();
    if size > max {
        Err(OpenError::Refused(what))
    } else {
        inflate::zlib(stream, size, what)
    }
}
