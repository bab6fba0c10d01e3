//! `.eh_frame`: the unwind information that every program has, for exceptions.

use gimli::{BaseAddresses, EhFrame, EhFrameHdr, LittleEndian};

use super::Bytes;
use super::collect::Collector;
use super::machine::Machine;
use super::section::{self, AtZero, SECTION_BYTES_MAX};
use crate::OpenError;
use crate::object::{Object, ProgramHeader};

/// Number of bytes of `.eh_frame_hdr` that are read; the search table after them has nothing new.
const HEADER_BYTES: u64 = 12;

/// Names of the sections. BOLT leaves the information about code that it did not move in a section
/// of its own. That is read last: if two describe the same code, the first one counts.
const NAMES: [&[u8]; 2] = [b".eh_frame", b".bolt.org.eh_frame"];

/// A section with unwind information, in memory.
pub struct Found<'d> {
    /// The section as gimli parses it.
    pub eh_frame: EhFrame<Bytes<'d>>,
    /// All bytes of the section.
    pub data: &'d [u8],
    /// What addresses in it may be relative to.
    pub bases: BaseAddresses,
    /// What an empty entry means in this section.
    pub at_zero: AtZero,
}

/// Adds the functions of all such sections.
pub fn read(object: &Object, collector: &mut Collector) -> Result<(), OpenError> {
    sections(object, |found| {
        section::read(
            &found.eh_frame,
            found.data,
            &found.bases,
            found.at_zero,
            collector,
        )
    })
}

/// Reads all such sections, one after the other.
pub fn sections(
    object: &Object,
    mut each: impl FnMut(Found<'_>) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let bases = bases(object);
    let mut found = false;
    for name in NAMES {
        let sections = object.sections().iter();
        for section in sections.filter(|section| object.section_name(section) == name) {
            found = true;
            let data = object.section_data(section, SECTION_BYTES_MAX, ".eh_frame")?;
            each(Found {
                eh_frame: parsed(object, &data),
                data: &data,
                bases: bases.clone().set_eh_frame(section.addr),
                // If object files were linked in an unusual order, the zero that ends the last of
                // them is in the middle.
                at_zero: AtZero::Continue,
            })?;
        }
    }
    if found {
        Ok(())
    } else {
        by_segment(object, bases, each)
    }
}

/// Whether the search table of a file, which belongs to the section at this address, covers all of
/// its unwind information. That of a file that BOLT has changed covers both sections.
pub fn is_covered(object: &Object, addr: u64) -> bool {
    let sections = object.sections().iter();
    let named = sections.filter(|section| object.section_name(section) == NAMES[0]);
    let mut addrs = named.map(|section| section.addr);
    // Without section headers the table says where the section is.
    addrs.next().unwrap_or(addr) == addr && addrs.next().is_none()
}

/// Finds the section without section headers: the run-time search table has its address. It ends at
/// the end of the segment, or at a zero before.
fn by_segment(
    object: &Object,
    bases: BaseAddresses,
    mut each: impl FnMut(Found<'_>) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let headers = object.program_headers();
    let Some(table) = headers.iter().find(|header| header.is_eh_frame_header()) else {
        return Ok(());
    };
    let bases = bases.set_eh_frame_hdr(table.vaddr);
    let damaged = OpenError::Damaged(".eh_frame_hdr");
    let Some(addr) = eh_frame_addr(object, table, &bases)? else {
        return Err(damaged);
    };
    let holds = |load: &&ProgramHeader| {
        load.is_load()
            && addr
                .checked_sub(load.vaddr)
                .is_some_and(|n| n < load.filesz)
    };
    let load = headers.iter().find(holds).ok_or(damaged)?;
    let before = addr - load.vaddr;
    let len = (load.filesz - before).min(SECTION_BYTES_MAX);
    let offset = load.offset.saturating_add(before);
    let data = object.source().read(offset, len, ".eh_frame")?;
    each(Found {
        eh_frame: parsed(object, &data),
        data: &data,
        bases: bases.set_eh_frame(addr),
        at_zero: AtZero::Stop,
    })
}

/// Returns a section as gimli parses it.
pub fn parsed<'d>(object: &Object, data: &'d [u8]) -> EhFrame<Bytes<'d>> {
    let mut eh_frame = EhFrame::new(data, LittleEndian);
    eh_frame.set_address_size(object.class().address_size());
    eh_frame.set_vendor(Machine::of(object).unwrap_or_default().vendor());
    eh_frame
}

fn eh_frame_addr(
    object: &Object,
    table: &ProgramHeader,
    bases: &BaseAddresses,
) -> Result<Option<u64>, OpenError> {
    let len = table.filesz.min(HEADER_BYTES);
    let data = object.source().read(table.offset, len, ".eh_frame_hdr")?;
    let header = EhFrameHdr::new(&data, LittleEndian).parse(bases, object.class().address_size());
    Ok(header
        .ok()
        .and_then(|header| header.eh_frame_ptr().direct().ok()))
}

/// Returns the bases that addresses may be relative to. Only `DW_EH_PE_pcrel` is common.
fn bases(object: &Object) -> BaseAddresses {
    let addr = |name: &[u8]| object.section_by_name(name).map(|section| section.addr);
    let mut bases = BaseAddresses::default();
    if let Some(text) = addr(b".text") {
        bases = bases.set_text(text);
    }
    // `_GLOBAL_OFFSET_TABLE_` on x86.
    if let Some(got) = addr(b".got.plt").or_else(|| addr(b".got")) {
        bases = bases.set_got(got);
    }
    bases
}
