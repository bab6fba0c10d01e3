//! Reads a unit: its header, its first entry, and the head of its line number program.

use std::sync::Arc;

use gimli::{
    Abbreviations, AttributeValue, DebugAbbrev, DebugAbbrevOffset, DebugAddrBase, DebugInfo,
    DebugInfoOffset, DebugLine, DebugLineOffset, DebugLocListsBase, DebugRngListsBase,
    DebugStrOffsetsBase, Dwarf, LittleEndian, Reader as _, Section as _, SectionId, Unit,
    UnitHeader, UnitOffset, UnitSectionOffset, UnitType,
};

use super::sections::{Slice, UnitBytes, slice};
use super::strings::{self, Strings};

/// Number of bytes that are needed to know the length of a unit or of a line number program.
pub const LENGTH_BYTES_MAX: usize = 12;

/// Number of bytes that are usually enough for a header and a first entry: most of it are paths.
const HEAD_BYTES: usize = 4 << 10;

/// Returns the length of what begins with these bytes, including the length field (DWARF 5, 7.2.2:
/// 32 bits, or ones and 64 bits).
pub fn length(head: &[u8]) -> Option<usize> {
    let (length, rest) = head.split_first_chunk()?;
    let bytes = match u32::from_le_bytes(*length) {
        u32::MAX => u64::from_le_bytes(*rest.first_chunk()?).checked_add(12)?,
        length => u64::from(length) + 4,
    };
    usize::try_from(bytes).ok()
}

/// Buffer for the bytes of one unit.
#[derive(Debug, Default)]
pub struct Window {
    info: Vec<u8>,
    line: Vec<u8>,
    directory: Vec<u8>,
}

/// Reads a unit whose entries start at `start` and end before `behind`.
pub fn read<'w>(
    dwarf: &Dwarf<Slice<'w>>,
    bytes: &'w UnitBytes,
    strings: Strings<'w>,
    (start, behind): (usize, usize),
    window: &'w mut Window,
) -> Option<Unit<Slice<'w>>> {
    let Window {
        info,
        line,
        directory,
    } = window;
    let is_small = behind.checked_sub(start)? <= bytes.unit_max;
    (bytes.info.is_held() || is_small).then_some(())?;
    let header = header(bytes.info.part(start..behind, info)?, start)?;
    let abbreviations = dwarf.abbreviations(&header).ok()?;
    of_header(
        dwarf,
        header,
        abbreviations,
        |offset| program(bytes, offset, line),
        |unit, value| match strings.place(dwarf, unit, value) {
            Some((section, place)) => strings::one(section, place, directory).map(slice),
            None => dwarf.attr_string(unit, value).ok(),
        },
    )
}

/// Reads only the first entry of a unit, which says where its code is.
pub fn read_head<'w>(
    dwarf: &Dwarf<Slice<'w>>,
    bytes: &UnitBytes,
    (start, behind): (usize, usize),
    window: &'w mut Window,
) -> Option<Unit<Slice<'w>>> {
    let end = behind.min(start.checked_add(HEAD_BYTES)?);
    let head = &mut window.info;
    bytes.info.copy_part(start..end, head)?;
    shorten(head)?;
    let header = header(head, start)?;
    let abbreviations = first_abbreviation(dwarf, &header)?;
    of_header(dwarf, header, abbreviations, |_| None, |_, _| None)
}

/// Returns the first abbreviation, which nearly all first entries use. Reading all other
/// abbreviations takes longer than everything else that is done with the head of a unit.
fn first_abbreviation(
    dwarf: &Dwarf<Slice<'_>>,
    header: &UnitHeader<Slice<'_>>,
) -> Option<Arc<Abbreviations>> {
    let bytes = dwarf
        .debug_abbrev
        .reader()
        .slice()
        .get(header.debug_abbrev_offset().0..)?;
    let mut rest = slice(bytes);
    rest.skip_leb128().ok()?;
    rest.skip_leb128().ok()?;
    rest.skip(1).ok()?;
    loop {
        let (name, form) = (rest.read_uleb128().ok()?, rest.read_uleb128().ok()?);
        if form == u64::from(gimli::DW_FORM_implicit_const.0) {
            rest.skip_leb128().ok()?;
        }
        if (name, form) == (0, 0) {
            break;
        }
    }
    let mut alone = bytes[..bytes.len() - rest.len()].to_vec();
    alone.push(0);
    let section = DebugAbbrev::new(&alone, LittleEndian);
    section
        .abbreviations(DebugAbbrevOffset(0))
        .ok()
        .map(Arc::new)
}

/// Changes the length of a unit that was read in part to the bytes that are there.
fn shorten(head: &mut [u8]) -> Option<()> {
    let len = head.len();
    match head.get(..4)? {
        [0xff, 0xff, 0xff, 0xff] => {
            let rest = u64::try_from(len.checked_sub(12)?).ok()?;
            head[4..12].copy_from_slice(&rest.to_le_bytes());
        }
        _ => {
            let rest = u32::try_from(len - 4).ok()?;
            head[..4].copy_from_slice(&rest.to_le_bytes());
        }
    }
    Some(())
}

/// Parses the header of the unit in these bytes, which starts in the section at `start`.
fn header(info: &[u8], start: usize) -> Option<UnitHeader<Slice<'_>>> {
    let section = DebugInfo::new(info, LittleEndian);
    let header = section.header_from_offset(DebugInfoOffset(0)).ok()?;
    let entries = header
        .range_from(UnitOffset(header.size_of_header())..)
        .ok()?;
    Some(UnitHeader::new(
        header.encoding(),
        header.unit_length(),
        header.type_(),
        header.debug_abbrev_offset(),
        SectionId::DebugInfo,
        UnitSectionOffset(start),
        entries,
    ))
}

/// Opens a unit of sections that are in memory.
pub fn in_memory<'d>(
    dwarf: &Dwarf<Slice<'d>>,
    header: UnitHeader<Slice<'d>>,
) -> Option<Unit<Slice<'d>>> {
    let lines = dwarf.debug_line.reader().slice();
    let text = |unit: &Unit<_>, value| dwarf.attr_string(unit, value).ok();
    let abbreviations = dwarf.abbreviations(&header).ok()?;
    of_header(
        dwarf,
        header,
        abbreviations,
        |offset| lines.get(offset..),
        text,
    )
}

/// Reads the bytes of the line number program at `start`.
fn program<'w>(bytes: &'w UnitBytes, start: usize, room: &'w mut Vec<u8>) -> Option<&'w [u8]> {
    let len = bytes.line.size();
    let mut first = Vec::new();
    let head_end = start.checked_add(LENGTH_BYTES_MAX)?;
    let head = bytes.line.part(start..len.min(head_end), &mut first)?;
    let length = length(head)?;
    let end = start.checked_add(length)?;
    (bytes.line.is_held() || length <= bytes.unit_max).then_some(())?;
    bytes.line.part(start..end.min(len), room)
}

fn of_header<'w>(
    dwarf: &Dwarf<Slice<'w>>,
    header: UnitHeader<Slice<'w>>,
    abbreviations: Arc<Abbreviations>,
    lines: impl FnOnce(usize) -> Option<&'w [u8]>,
    text: impl FnOnce(&Unit<Slice<'w>>, AttributeValue<Slice<'w>>) -> Option<Slice<'w>>,
) -> Option<Unit<Slice<'w>>> {
    let encoding = header.encoding();
    let mut unit = Unit {
        abbreviations,
        name: None,
        comp_dir: None,
        low_pc: 0,
        str_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(
            encoding,
            dwarf.file_type,
        ),
        addr_base: DebugAddrBase(0),
        loclists_base: DebugLocListsBase::default_for_encoding_and_file(encoding, dwarf.file_type),
        rnglists_base: DebugRngListsBase::default_for_encoding_and_file(encoding, dwarf.file_type),
        line_program: None,
        dwo_id: match header.type_() {
            UnitType::Skeleton(id) | UnitType::SplitCompilation(id) => Some(id),
            _ => None,
        },
        header,
    };
    let (mut directory, mut low_pc, mut program) = (None, None, None);
    let mut is_go = false;
    let mut entries = unit.header.entries_raw(&unit.abbreviations, None).ok()?;
    let first = entries.read_abbreviation().ok()??;
    for &attribute in first.attributes() {
        let attribute = entries.read_attribute(attribute).ok()?;
        match (attribute.name(), attribute.value()) {
            (gimli::DW_AT_comp_dir, value) => directory = Some(value),
            (gimli::DW_AT_language, AttributeValue::Language(language)) => {
                is_go = language == gimli::DW_LANG_Go;
            }
            (gimli::DW_AT_low_pc, value) => low_pc = Some(value),
            (gimli::DW_AT_stmt_list, AttributeValue::DebugLineRef(offset)) => {
                program = Some(offset);
            }
            (gimli::DW_AT_str_offsets_base, AttributeValue::DebugStrOffsetsBase(base)) => {
                unit.str_offsets_base = base;
            }
            (
                gimli::DW_AT_addr_base | gimli::DW_AT_GNU_addr_base,
                AttributeValue::DebugAddrBase(base),
            ) => unit.addr_base = base,
            (
                gimli::DW_AT_rnglists_base | gimli::DW_AT_GNU_ranges_base,
                AttributeValue::DebugRngListsBase(base),
            ) => unit.rnglists_base = base,
            (gimli::DW_AT_GNU_dwo_id, AttributeValue::DwoId(id)) => {
                unit.dwo_id = unit.dwo_id.or(Some(id));
            }
            _ => {}
        }
    }
    unit.comp_dir = directory.and_then(|value| text(&unit, value));
    // Go's linker writes `.` for every unit, whatever was compiled where. Without it paths are those
    // of Go's own table and tools, such as `<autogenerated>`.
    if is_go && unit.comp_dir.is_some_and(|dir| dir.slice() == b".") {
        unit.comp_dir = None;
    }
    let low_pc = low_pc.and_then(|value| dwarf.attr_address(&unit, value).ok()?);
    unit.low_pc = low_pc.unwrap_or(0);
    // Partial units and type units refer to the line program of a unit with code for the names of
    // files; its lines are not theirs.
    let is_common = [gimli::DW_TAG_partial_unit, gimli::DW_TAG_type_unit].contains(&first.tag());
    let program = program.filter(|_| !is_common);
    unit.line_program = program.and_then(|DebugLineOffset(offset)| {
        let lines = DebugLine::from(slice(lines(offset)?));
        let size = unit.header.address_size();
        lines
            .program(DebugLineOffset(0), size, unit.comp_dir, None)
            .ok()
    });
    Some(unit)
}
