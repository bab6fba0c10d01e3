//! `.debug_frame`: unwind information as part of debug information, for code that was compiled
//! without `.eh_frame`, such as Go's. It may be compressed, and in a separate file.

use gimli::{BaseAddresses, DebugFrame, LittleEndian};

use super::collect::Collector;
use super::section::{self, AtZero, SECTION_BYTES_MAX};
use crate::OpenError;
use crate::object::Object;

/// Adds the functions of the section, if there is one.
pub fn read(object: &Object, collector: &mut Collector) -> Result<(), OpenError> {
    let data = match object.debug_section(".debug_frame", SECTION_BYTES_MAX) {
        Ok(data) => data,
        // Errors are ignored: only what this section would have added is missing, not the rules of
        // `.eh_frame`.
        Err(OpenError::Damaged(_) | OpenError::Refused(_)) => {
            collector.statistics.damaged += 1;
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let mut debug_frame = DebugFrame::new(&data, LittleEndian);
    debug_frame.set_address_size(8);
    debug_frame.set_vendor(collector.machine.vendor());
    let bases = BaseAddresses::default();
    section::read(&debug_frame, &data, &bases, AtZero::Continue, collector)
}
