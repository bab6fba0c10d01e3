//! The mappings of a process.

use super::modules::Modules;
use crate::failure::Failure;
use crate::target::{process_name, sees_code, unseen_code};
use probe::proc_maps;
use probe::proc_maps::MapsLine;
use symbolize::resolver::Resolved;
use symbolize::{FileOffset, ProcessAddr};

/// The files with code that a process has mapped.
pub struct Process {
    pid: u32,
    mappings: Vec<MapsLine>,
}

impl Process {
    /// Reads the files that a process has mapped now. It is an error if it has ended, or if we have
    /// no right to see them.
    pub fn read(pid: u32) -> Result<Process, Failure> {
        process_name(pid)?;
        let failed = |error: std::io::Error| {
            let failure = Failure::failed(unseen_code(pid, &error));
            match error.kind() {
                std::io::ErrorKind::PermissionDenied => failure.detail(sees_code()),
                _ => failure,
            }
        };
        let mut mappings = proc_maps::read(pid, &probe::files::of_targets()).map_err(failed)?;
        mappings.retain(|line| line.file().is_some());
        Ok(Process { pid, mappings })
    }

    /// Whether this address of the process is in code that is mapped from a file.
    pub fn has_code_at(&self, addr: u64) -> bool {
        self.mapping(addr).is_some()
    }

    /// Returns functions and lines of an address of the process. None if it is in no file, or the
    /// file cannot be read.
    pub fn resolve(&self, addr: u64, modules: &Modules) -> Option<Resolved> {
        let found = self.mapping(addr)?;
        let offset: FileOffset = found.mapping().to_file(ProcessAddr(addr))?;
        let module = modules.find_mapped(&found.source(self.pid)?)?;
        Some(module.resolve(module.segments().to_link(offset)?))
    }

    fn mapping(&self, addr: u64) -> Option<&MapsLine> {
        let holds = |found: &&MapsLine| found.mapping().contains(ProcessAddr(addr));
        self.mappings.iter().find(holds)
    }
}
