//! The files in which a process describes the code that it made.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use crate::Reason;
use crate::files::{Files, has_ended};

/// The files of one process, as far as they exist.
#[derive(Debug)]
pub struct Written {
    way: Files,
    process: Arc<OwnedFd>,
    map: Option<File>,
    dump: Option<File>,
    /// Why there is no map.
    missing: Reason,
    ended: bool,
}

impl Written {
    /// Starts without files, for a process given by its directory in /proc.
    pub fn new(process: Arc<OwnedFd>, way: Files) -> Written {
        Written {
            way,
            process,
            map: None,
            dump: None,
            missing: Reason::Jit,
            ended: false,
        }
    }

    /// Looks for new files.
    pub fn look(&mut self) {
        match self.way.perf_map(&self.process) {
            // An open file is kept, as it was read up to some position.
            Ok(file) if self.map.as_ref().is_some_and(|map| is_same(map, &file)) => {}
            Ok(file) => self.map = Some(file),
            Err(reason) => self.missing = reason,
        }
        self.ended = has_ended(&self.process);
        // A dump is mapped when the runtime starts: once there is a map, no dump is looked for.
        if self.map.is_none() && self.dump.is_none() {
            self.dump = self.way.jit_dump(&self.process).ok();
        }
    }

    /// The map, and the dump.
    pub fn files(&self) -> [Option<&File>; 2] {
        [self.map.as_ref(), self.dump.as_ref()]
    }

    /// Drops a dump that is not valid: it may become valid later.
    pub fn reject_dump(&mut self) {
        self.dump = None;
    }

    /// The [`Files`] through which files are read.
    pub fn way(&self) -> &Files {
        &self.way
    }

    /// Why an address has no name.
    pub fn why_no_name(&self) -> Reason {
        if self.map.is_some() || self.dump.is_some() {
            Reason::JitNotCovered
        } else {
            self.missing
        }
    }

    /// Whether the process had ended at the last look, so that nothing more will be written.
    pub fn has_ended(&self) -> bool {
        self.ended
    }
}

/// Whether both are the same file, by device and inode.
pub fn is_same(one: &File, other: &File) -> bool {
    let id = |file: &File| -> io::Result<_> {
        let metadata = file.metadata()?;
        Ok((metadata.dev(), metadata.ino()))
    };
    id(one).is_ok_and(|one| id(other).is_ok_and(|other| one == other))
}
