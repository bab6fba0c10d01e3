//! The contents of the files in which one process describes its code, read as far as they are
//! written.

use std::fs::File;
use std::io;

use super::{JitCode, JitDump, JitName, PerfMap};

/// The map and the dump of a process.
#[derive(Debug, Default)]
pub struct CodeMaps {
    map: Option<PerfMap>,
    dump: Option<JitDump>,
}

impl CodeMaps {
    /// Sets the current files. Files that are already known continue to be read.
    pub fn take(&mut self, [map, dump]: [Option<&File>; 2]) {
        if let Some(file) = map
            && !self.map.as_ref().is_some_and(|map| map.is(file))
            && let Ok(file) = file.try_clone()
        {
            self.map = Some(PerfMap::new(file));
        }
        if let Some(file) = dump
            && !self.dump.as_ref().is_some_and(|dump| dump.is(file))
            && let Ok(file) = file.try_clone()
        {
            self.dump = JitDump::new(file).ok();
        }
    }

    /// Whether a file was taken that really is a dump.
    pub fn has_dump(&self) -> bool {
        self.dump.is_some()
    }

    /// Reads what was written since the last call. Returns true if there may be new names.
    pub fn update(&mut self) -> bool {
        let map = self.map.as_mut().map(PerfMap::update);
        let dump = self.dump.as_mut().map(JitDump::update);
        let grown = |update: Option<io::Result<bool>>| matches!(update, Some(Ok(true)));
        grown(map) | grown(dump)
    }

    /// Returns the name of the code that was last at this address.
    pub fn find(&mut self, addr: u64) -> Option<JitName> {
        let in_map = self.map.as_mut().and_then(|map| map.find(addr));
        in_map.or_else(|| self.dump.as_ref()?.find(addr))
    }

    /// Returns the code that was last at this address.
    pub fn code(&mut self, addr: u64) -> Option<JitCode> {
        let in_dump = self.dump.as_ref().and_then(|dump| dump.code(addr));
        in_dump.or_else(|| self.map.as_mut()?.code(addr))
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        let map = self.map.as_ref().map_or(0, PerfMap::heap_bytes);
        map + self.dump.as_ref().map_or(0, JitDump::heap_bytes)
    }
}
