//! The files in which a process writes down what code it has made.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use crate::Reason;
use crate::files::{Files, has_ended};

/// The files of one process, as far as it has made them.
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
    /// Of a process, by its directory in /proc.
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

    /// Looks for files that are new.
    pub fn look(&mut self) {
        match self.way.perf_map(&self.process) {
            // The one that is open stays: it has been read up to some place.
            Ok(file) if self.map.as_ref().is_some_and(|map| is_same(map, &file)) => {}
            Ok(file) => self.map = Some(file),
            Err(reason) => self.missing = reason,
        }
        self.ended = has_ended(&self.process);
        // A dump is mapped when the runtime starts: once there is a map, it is
        // not looked for.
        if self.map.is_none() && self.dump.is_none() {
            self.dump = self.way.jit_dump(&self.process).ok();
        }
    }

    /// The map, and the dump.
    pub fn files(&self) -> [Option<&File>; 2] {
        [self.map.as_ref(), self.dump.as_ref()]
    }

    /// Forgets a dump that is none: it may become one.
    pub fn reject_dump(&mut self) {
        self.dump = None;
    }

    /// Who reads files for us.
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

    /// Whether the process had ended at the last look: nothing follows.
    pub fn has_ended(&self) -> bool {
        self.ended
    }
}

/// Whether that is the same file, by device and inode.
pub fn is_same(one: &File, other: &File) -> bool {
    let id = |file: &File| -> io::Result<_> {
        let metadata = file.metadata()?;
        Ok((metadata.dev(), metadata.ino()))
    };
    id(one).is_ok_and(|one| id(other).is_ok_and(|other| one == other))
}
