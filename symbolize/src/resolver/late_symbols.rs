//! The symbols of a file, all of them or those around a few addresses.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::debug_file::DebugFiles;
use crate::elf;
use crate::go::GoSymbols;
use crate::object::Object;
use crate::{ElfSymbols, FileId, LinkAddr, OpenError, Reason};

/// Maximum number of times that symbols around a few addresses are read: then all of them are.
const LOOKS_MAX: u32 = 8;

/// Maximum number of addresses in one such look.
const ADDRS_MAX: usize = 64;

/// Symbol tables smaller than this, with some 10,000 functions, are read as a whole: it takes two
/// milliseconds.
const TABLE_BYTES_MIN: u64 = 256 << 10;

/// The symbols of a file, read when the first name is looked up.
#[derive(Debug)]
pub struct LateSymbols {
    object: Arc<Object>,
    id: FileId,
    /// Where its debug files are searched.
    files: DebugFiles,
    whole: OnceLock<Result<ElfSymbols, OpenError>>,
    near: Mutex<Near>,
    go: OnceLock<Option<GoSymbols>>,
}

/// The symbols around a few addresses.
#[derive(Debug, Default)]
struct Near {
    looks: u32,
    addrs: Vec<LinkAddr>,
    symbols: Option<ElfSymbols>,
}

impl LateSymbols {
    /// Prepares for the symbols of a file. Reads them if there are few, or if their table cannot be
    /// read in parts.
    pub fn new(object: Object, files: DebugFiles) -> Result<LateSymbols, OpenError> {
        let symbols = LateSymbols {
            id: object.file_id()?,
            object: Arc::new(object),
            files,
            whole: OnceLock::new(),
            near: Mutex::default(),
            go: OnceLock::new(),
        };
        let object = &symbols.object;
        let is_small = elf::table_bytes(object) < TABLE_BYTES_MIN;
        if is_small || object.sections().is_empty() {
            symbols.whole()?;
        } else {
            elf::check_tables(object)?;
        }
        Ok(symbols)
    }

    /// Reads the symbols around these addresses, if that takes less time than to read all.
    pub fn prepare(&self, addrs: &[LinkAddr]) {
        let mut near = self.near();
        let is_late = self.whole.get().is_some() || near.looks == LOOKS_MAX;
        if is_late || addrs.len() > ADDRS_MAX {
            return;
        }
        near.looks += 1;
        let files = Some(&self.files);
        let symbols = ElfSymbols::near_links(Arc::clone(&self.object), files, addrs);
        near.symbols = symbols.ok().flatten();
        near.addrs = addrs.to_vec();
    }

    /// Returns the name of the function at an address.
    pub fn name(&self, addr: LinkAddr) -> Result<Vec<u8>, Reason> {
        let near = self.near();
        if let Some(symbols) = near.symbols.as_ref().filter(|_| near.addrs.contains(&addr)) {
            return symbols.find_link(addr).map(|symbol| symbol.name.to_vec());
        }
        drop(near);
        let symbols = self.known().as_ref().map_err(OpenError::reason)?;
        symbols.find_link(addr).map(|symbol| symbol.name.to_vec())
    }

    /// All symbols, read now if they were not before.
    pub fn whole(&self) -> Result<&ElfSymbols, OpenError> {
        self.known().as_ref().map_err(OpenError::again)
    }

    /// Whether the whole symbol table can be read, and nothing was stripped from it.
    pub fn are_all_there(&self) -> bool {
        self.whole().is_ok_and(|symbols| !symbols.is_stripped())
    }

    /// Why the symbols could not be read; `None` if they were read, or not needed as a whole.
    pub fn failure(&self) -> Option<&OpenError> {
        self.whole.get()?.as_ref().err()
    }

    fn known(&self) -> &Result<ElfSymbols, OpenError> {
        let object = || Arc::clone(&self.object);
        let read = || ElfSymbols::with_debug_files(object(), &self.files);
        self.whole.get_or_init(read)
    }

    /// What a Go program has for its own functions; None if it is not a Go program.
    pub fn go(&self) -> Option<&GoSymbols> {
        let read = || GoSymbols::read(&self.object);
        self.go.get_or_init(read).as_ref()
    }

    /// The file itself.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The identity of the file's contents.
    pub fn id(&self) -> &FileId {
        &self.id
    }

    /// A poisoned lock is used all the same: no code panics while it holds the lock, and every
    /// state is consistent.
    fn near(&self) -> MutexGuard<'_, Near> {
        self.near.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
