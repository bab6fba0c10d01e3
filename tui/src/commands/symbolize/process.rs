//! Where the addresses of a process lie.

use super::modules::Modules;
use crate::failure::Failure;
use crate::mapped;
use crate::mapped::CodeMapping;
use symbolize::resolver::Resolved;
use symbolize::{FileOffset, FileSource, ProcessAddr};

/// The code that a process has mapped from files.
pub struct Process {
    pid: u32,
    mappings: Vec<CodeMapping>,
}

impl Process {
    pub fn read(pid: u32) -> Result<Process, Failure> {
        let failed = |error| Failure::failed(format!("failed to read `/proc/{pid}/maps`: {error}"));
        let mappings = mapped::read(pid).map_err(failed)?;
        Ok(Process { pid, mappings })
    }

    pub fn has_code_at(&self, addr: u64) -> bool {
        self.mapping(addr).is_some()
    }

    pub fn resolve(&self, addr: u64, modules: &Modules) -> Option<Resolved> {
        let found = self.mapping(addr)?;
        let offset: FileOffset = found.mapping.to_file(ProcessAddr(addr))?;
        let module = modules.find_mapped(&FileSource {
            pid: Some(self.pid),
            range: Some((found.mapping.start.0, found.mapping.end.0)),
            device: found.device,
            inode: found.inode,
            ..FileSource::new(&found.path)
        })?;
        Some(module.resolve(module.segments().to_link(offset)?))
    }

    fn mapping(&self, addr: u64) -> Option<&CodeMapping> {
        let holds = |found: &&CodeMapping| found.mapping.contains(ProcessAddr(addr));
        self.mappings.iter().find(holds)
    }
}
