//! `.debug_frame`: unwind information among the debug information, for code
//! that was compiled without `.eh_frame`. Go's is here.

use gimli::{BaseAddresses, DebugFrame, LittleEndian};

use super::collect::Collector;
use super::section::{self, AtZero, SECTION_BYTES_MAX};
use crate::OpenError;
use crate::object::Object;

/// Adds the functions of the section, if there is one.
pub fn read(object: &Object, collector: &mut Collector) -> Result<(), OpenError> {
    let Some(section) = object.section_by_name(b".debug_frame") else {
        return Ok(());
    };
    if section.is_compressed() {
        collector.statistics.compressed = true;
        return Ok(());
    }
    let data = object.section_data(section, SECTION_BYTES_MAX, ".debug_frame")?;
    let mut debug_frame = DebugFrame::new(&data, LittleEndian);
    debug_frame.set_address_size(8);
    let bases = BaseAddresses::default();
    section::read(&debug_frame, &data, &bases, AtZero::Continue, collector)
}
