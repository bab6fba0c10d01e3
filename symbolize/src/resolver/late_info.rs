//! The debug information of a file, read when it is first needed.

use std::sync::{Mutex, OnceLock, PoisonError};

use crate::OpenError;
use crate::debug_file::DebugFiles;
use crate::dwarf::DebugInfo;
use crate::object::Object;

/// The debug information of a file, read or not.
#[derive(Debug)]
pub struct LateInfo {
    /// The file with the debug information, if it is not the program itself.
    separate: Option<Object>,
    /// Where its debug files are searched; `None` once it was read.
    files: Mutex<Option<DebugFiles>>,
    /// Maximum memory of debug information.
    bytes_max: u64,
    read: OnceLock<Result<Option<DebugInfo>, OpenError>>,
}

impl LateInfo {
    /// Remembers what is needed to read debug information. `separate` is the file that has it, if
    /// it is not the program itself.
    pub fn new(separate: Option<Object>, files: DebugFiles, bytes_max: u64) -> LateInfo {
        LateInfo {
            separate,
            files: Mutex::new(Some(files)),
            bytes_max,
            read: OnceLock::new(),
        }
    }

    /// Returns the debug information of the program `main`, read now if it was not before; `None`
    /// if there is none, or if it cannot be read.
    pub fn get(&self, main: &Object) -> Option<&DebugInfo> {
        self.known(main).as_ref().ok()?.as_ref()
    }

    /// Returns the same, or the error that reading it ended with.
    pub fn read(&self, main: &Object) -> Result<Option<&DebugInfo>, OpenError> {
        match self.known(main) {
            Ok(info) => Ok(info.as_ref()),
            Err(error) => Err(error.again()),
        }
    }

    /// The debug information, if an address needed it.
    pub fn needed(&self) -> Option<&DebugInfo> {
        self.read.get()?.as_ref().ok()?.as_ref()
    }

    /// The error with which reading ended.
    pub fn failure(&self) -> Option<&OpenError> {
        self.read.get()?.as_ref().err()
    }

    fn known(&self, main: &Object) -> &Result<Option<DebugInfo>, OpenError> {
        self.read.get_or_init(|| {
            let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(files) = files.take() else {
                return Ok(None);
            };
            let object = self.separate.as_ref().unwrap_or(main);
            DebugInfo::read(object, files, self.bytes_max)
        })
    }
}
