//! The sections that name another file.

use crate::bytes::u32_in;
use crate::object::Object;

/// Maximum length of such a section: longer than any path.
const LINK_BYTES_MAX: u64 = 8 << 10;

/// `.gnu_debuglink`: a file's name without directory, and its CRC-32.
pub struct DebugLink {
    /// File name without directory.
    pub name: Vec<u8>,
    /// CRC-32 of the whole debug file.
    pub crc: u32,
}

/// Reads `.gnu_debuglink`; `None` if the file has none, or a damaged one.
pub fn debug(object: &Object) -> Option<DebugLink> {
    let bytes = section(object, b".gnu_debuglink")?;
    let len = memchr::memchr(0, &bytes)?;
    let name = bytes[..len].to_vec();
    // The name ends with a NUL and is padded to words.
    let crc = u32_in(&bytes, (len + 4) & !3)?;
    let is_name = !name.is_empty() && !name.contains(&b'/');
    is_name.then_some(DebugLink { name, crc })
}

/// `.gnu_debugaltlink`: a path, and the build-id of what is there.
pub struct AlternativeLink {
    /// Path as the linker wrote it, absolute or relative.
    pub path: Vec<u8>,
    /// Build-id that the file must have.
    pub build_id: Vec<u8>,
}

/// Reads `.gnu_debugaltlink`; `None` if the file has none, or a damaged one.
pub fn alternative(object: &Object) -> Option<AlternativeLink> {
    let bytes = section(object, b".gnu_debugaltlink")?;
    let len = memchr::memchr(0, &bytes)?;
    let (path, build_id) = (bytes[..len].to_vec(), bytes[len + 1..].to_vec());
    let whole = !path.is_empty() && !build_id.is_empty();
    whole.then_some(AlternativeLink { path, build_id })
}

fn section(object: &Object, name: &[u8]) -> Option<Vec<u8>> {
    let section = object.section_by_name(name)?;
    let data = object.section_data(section, LINK_BYTES_MAX, "link to a debug file");
    data.ok()
}
