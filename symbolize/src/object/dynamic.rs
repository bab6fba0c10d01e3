//! The dynamic segment: what the loader uses instead of section headers.

use super::{DYNAMIC, Object};
use crate::bytes::u64_at;

/// Maximum size. There are some dozens of entries of 8 or 16 bytes; each needed library has one.
const DYNAMIC_BYTES_MAX: u64 = 1 << 20;

/// Returns tag and value of each entry of the dynamic segment; `None` if the file has none.
pub fn entries(object: &Object) -> Option<Vec<(u64, u64)>> {
    let header = object.program_headers().iter().find(|h| h.is_dynamic())?;
    let size = header.filesz.min(DYNAMIC_BYTES_MAX);
    let source = object.source();
    let bytes = source.read(header.offset, size, "dynamic segment").ok()?;
    let bytes = object.class().widen(&DYNAMIC, bytes);
    let (entries, _) = bytes.as_chunks::<{ DYNAMIC.wide }>();
    let entries = entries.iter().map(|e| (u64_at(e, 0), u64_at(e, 8)));
    Some(entries.take_while(|(tag, _)| *tag != 0).collect())
}
