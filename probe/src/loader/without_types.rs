//! Makes a loader that has not read the kernel's types.
//!
//! `aya` reads and parses all types of the running kernel, some 5 MB, whenever a loader is made.
//! Only afterwards can it be told that no types are wanted, and then it frees them. Reading and
//! parsing takes a third of the time that proftop needs to start. So the loader is made on a thread
//! that cannot open files: there `aya` finds no types to read.

use crate::confine::Filter;
use aya::EbpfLoader;
use std::thread;

/// Makes a loader for objects in which nothing is relocated by types of the kernel.
pub fn loader() -> EbpfLoader<'static> {
    // If such a thread cannot be made, the types are read, which takes that time.
    let mut loader = made_without_files().unwrap_or_default();
    loader.btf(None);
    loader
}

/// Makes a loader on a thread that can open no file. `None` if there can be no such thread.
fn made_without_files() -> Option<EbpfLoader<'static>> {
    let filter = Filter::failing(libc::SYS_openat, libc::ENOENT).ok()?;
    let make = move || filter.apply().ok().map(|()| EbpfLoader::new());
    let thread = thread::Builder::new().spawn(make).ok()?;
    thread.join().ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_not_read_and_files_can_be_opened_afterwards() {
        // Only the debug output of a loader shows whether it has types.
        let has_types = |loader: &EbpfLoader<'_>| !format!("{loader:?}").contains("btf: None");
        if !has_types(&EbpfLoader::new()) {
            return test_support::skip("this kernel does not tell its types");
        }
        let made = made_without_files().expect("a thread without files");
        assert!(!has_types(&made));
        assert!(std::fs::read("/proc/self/status").is_ok());
    }
}
