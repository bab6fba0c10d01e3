//! The code itself: where a function begins and ends, and its bytes.

use std::ops::Range;

use super::ElfSymbols;
use crate::unwind::{Extents, personality};
use crate::{LinkAddr, OpenError};

impl ElfSymbols {
    /// Returns the address range of the function at `addr`: from the symbol table, else from Go's
    /// own table, else from unwind information.
    pub fn extent(&self, addr: LinkAddr) -> Option<Range<LinkAddr>> {
        let symbol = self.find_link(addr).ok().filter(|symbol| symbol.size > 0);
        let by_symbol = symbol.map(|s| s.start.0..s.start.0.saturating_add(s.size));
        let by_go = || self.go()?.extent(addr);
        let by_unwind = || self.extents().find(&self.object, addr);
        let found = by_symbol.or_else(by_go).or_else(by_unwind)?;
        let end = self.segments.executable_end(LinkAddr(found.start))?;
        let found = LinkAddr(found.start)..LinkAddr(found.end.min(end.0));
        found.contains(&addr).then_some(found)
    }

    /// Reads `len` bytes of code from `start` on, as the file has them.
    pub fn read_code(&self, start: LinkAddr, len: u64) -> Result<Vec<u8>, OpenError> {
        let offset = self
            .segments
            .to_file(start)
            .ok_or(OpenError::Damaged("code"))?;
        self.object.source().read(offset.0, len, "code")
    }

    /// Whether exceptions may pass through the file's code, because some of it has handlers. True
    /// if that cannot be read.
    pub fn has_exceptions(&self) -> bool {
        let read = || personality::has_personality(&self.object).unwrap_or(true);
        *self.exceptions.get_or_init(read)
    }

    pub(super) fn extents(&self) -> &Extents {
        // Errors are ignored: without extents some code has no names and no functions.
        let read = || Extents::read(&self.object).unwrap_or_default();
        self.extents.get_or_init(read)
    }
}
