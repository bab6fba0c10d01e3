//! The kernel's functions as they are now: modules and BPF programs come while
//! others run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::KernelSymbols;
use crate::Reason;

/// Reading them again takes the kernel 40 ms. Where that does not help the wait
/// doubles, so that one address without a name costs little for ever.
const WAIT: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(256);

/// Reads `/proc/kallsyms` when it is first needed, and again when code has come
/// that it did not have.
#[derive(Debug, Default)]
pub struct CurrentKernel(Mutex<Option<State>>);

#[derive(Debug)]
struct State {
    symbols: Arc<KernelSymbols>,
    /// Of the last read.
    read: Instant,
    wait: Duration,
}

impl CurrentKernel {
    /// The kernel's functions, with these addresses if it has them.
    pub fn symbols_for(&self, addrs: impl Iterator<Item = u64>) -> Arc<KernelSymbols> {
        self.with(addrs, KernelSymbols::load)
    }

    /// Bytes of heap held by what was read.
    pub fn heap_bytes(&self) -> usize {
        let state = self.state();
        state.as_ref().map_or(0, |state| state.symbols.heap_bytes())
    }

    fn with(
        &self,
        mut addrs: impl Iterator<Item = u64>,
        load: impl Fn() -> KernelSymbols,
    ) -> Arc<KernelSymbols> {
        let mut guard = self.state();
        let state = guard.get_or_insert_with(|| State {
            symbols: Arc::new(load()),
            read: Instant::now(),
            wait: WAIT,
        });
        let is_missing = |addr| state.symbols.find(addr) == Err(Reason::NotCovered);
        if state.read.elapsed() >= state.wait
            && let Some(missing) = addrs.find(|addr| is_missing(*addr))
        {
            state.symbols = Arc::new(load());
            state.read = Instant::now();
            state.wait = match state.symbols.find(missing) {
                Ok(_) => WAIT,
                Err(_) => (state.wait * 2).min(WAIT_MAX),
            };
        }
        state.symbols.clone()
    }

    /// No code panics while it holds the lock, and every state is consistent.
    fn state(&self) -> MutexGuard<'_, Option<State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const KNOWN: u64 = 0xffff_ffff_8100_0010;
    const LATE: u64 = 0xffff_ffff_c000_0010;

    #[test]
    fn code_that_comes_later_is_read_then_and_not_too_often() {
        let reads = Cell::new(0);
        let load = || {
            reads.set(reads.get() + 1);
            let late = match reads.get() {
                1 => "",
                _ => "ffffffffc0000000 t bpf_prog_6deef7357e7b4530_late\t[bpf]\n",
            };
            KernelSymbols::parse(format!("ffffffff81000000 T early\n{late}").as_bytes())
        };
        let kernel = CurrentKernel::default();
        let ask = |addr: u64| kernel.with([addr].into_iter(), load);
        let pass = || {
            let mut state = kernel.state();
            let state = state.as_mut().unwrap();
            state.read -= state.wait;
        };
        assert!(ask(LATE).find(LATE).is_err());
        assert!(ask(LATE).find(LATE).is_err(), "read just before");
        assert_eq!(reads.get(), 1);
        pass();
        ask(KNOWN);
        assert_eq!(reads.get(), 1, "nothing is missing");
        assert_eq!(ask(LATE).find(LATE).unwrap().name, "late");
        assert_eq!(reads.get(), 2);

        // What never gets a name is asked for less and less.
        for _ in 0..3 {
            pass();
            ask(7);
        }
        assert_eq!(kernel.state().as_ref().unwrap().wait, WAIT * 8);
        assert_eq!(reads.get(), 5);
    }
}
