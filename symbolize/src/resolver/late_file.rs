//! A file that is opened and not read.

use super::late_info::LateInfo;
use super::late_symbols::LateSymbols;
use super::{Resolver, Source};
use crate::OpenError;
use crate::debug_file::DebugFiles;
use crate::object::Object;
use crate::table_cache::TableKey;

/// What is needed to read a file.
#[derive(Debug)]
pub struct LateFile {
    pub main: Object,
    /// The file with the debug information, if it is not the program itself.
    pub separate: Option<Object>,
    /// Where debug files are searched: for symbols, and for debug information.
    pub files: [DebugFiles; 2],
    /// Maximum memory of debug information.
    pub bytes_max: u64,
}

impl LateFile {
    /// Reads the file. With a key, a table may be kept of it later, unless it is a Go program: such
    /// a program's own table answers before debug information, which a table is made of.
    pub fn read(self, key: Option<TableKey>) -> Result<Resolver, OpenError> {
        let [of_symbols, of_info] = self.files;
        let symbols = Box::new(LateSymbols::new(self.main, of_symbols)?);
        let info = Box::new(LateInfo::new(self.separate, of_info, self.bytes_max));
        let is_go = symbols.go().is_some();
        if !is_go {
            info.read(symbols.object())?;
        }
        let key = key.filter(|_| !is_go).map(Box::new);
        Ok(Resolver(Source::File { symbols, info, key }))
    }
}
