//! The kernel's functions, read once at the start for all threads that need them: the kernel takes
//! 40 ms or more to list them, so they are kept on disk as well, for later runs.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use symbolize::KernelSymbols;
use symbolize::cache_directory::{self, Directory};

/// The function from which all code of exec is called, since Linux 5.9.
const EXEC: &str = "bprm_execve";

static FIRST: Mutex<Option<First>> = Mutex::new(None);

/// What is kept of the first read.
#[derive(Debug)]
struct First {
    /// Owned by the code that names functions.
    symbols: Weak<KernelSymbols>,
    exec: Option<Range<u64>>,
}

/// Returns the functions as they were when first read, if those are still in use, else as they are
/// now. If another thread is reading them, waits for that thread.
pub fn read() -> Arc<KernelSymbols> {
    let mut first = first();
    let known = first.as_ref().and_then(|first| first.symbols.upgrade());
    known.unwrap_or_else(|| read_now(&mut first))
}

/// Returns the address range of the kernel's code for exec; `None` if the kernel hides its
/// addresses.
pub(crate) fn exec() -> Option<Range<u64>> {
    let mut first = first();
    if first.is_none() {
        read_now(&mut first);
    }
    first.as_ref().and_then(|first| first.exec.clone())
}

fn read_now(first: &mut Option<First>) -> Arc<KernelSymbols> {
    let directory = directory();
    let symbols = directory
        .as_ref()
        .map_or_else(KernelSymbols::load, KernelSymbols::load_or_keep);
    let symbols = Arc::new(symbols);
    let exec = symbols.start_of(EXEC);
    *first = Some(First {
        symbols: Arc::downgrade(&symbols),
        exec: exec.and_then(|start| symbols.extent(start)),
    });
    symbols
}

/// The directory in which the functions are kept; None if there cannot be one.
fn directory() -> Option<Directory> {
    let base = cache_directory::default_base()?;
    Directory::open(&base, &["proftop", "kernel"]).ok()
}

/// Locks the first read. No code panics while it holds the lock, and every state is consistent.
fn first() -> MutexGuard<'static, Option<First>> {
    FIRST.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_come_later_have_the_same() {
        let symbols = read();
        assert!(Arc::ptr_eq(&symbols, &read()));
        if symbols.is_hidden() {
            test_support::skip("the kernel's addresses are hidden");
            assert_eq!(exec(), None);
            return;
        }
        let code = exec().expect("the kernel has exec");
        assert_eq!(symbols.find(code.start).unwrap().name, EXEC);
        assert_eq!(
            symbols.find(code.end - 1).map(|symbol| symbol.start),
            Ok(code.start)
        );
    }
}
