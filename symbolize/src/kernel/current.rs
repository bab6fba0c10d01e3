//! The kernel's functions as they are now: modules and BPF programs are loaded while others run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{BpfPlace, CurrentBpf, KernelSymbol, KernelSymbols};
use crate::Reason;

/// Minimum time before the symbols are read again, which takes the kernel 40 ms. If that does not
/// help, the time doubles, so that one address without a name causes little cost in the long run.
const WAIT: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(256);

/// Reads `/proc/kallsyms` when it is first needed, and again when there is new code.
#[derive(Debug, Default)]
pub struct CurrentKernel {
    symbols: Mutex<Option<LastRead>>,
    /// Provides the symbols for the first use, if another part of the program may have read them
    /// already.
    first: Option<fn() -> Arc<KernelSymbols>>,
    /// Queries BPF programs, if set.
    bpf: Option<CurrentBpf>,
}

/// What is at a kernel address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelFrame {
    /// Name as in the kernel's list: not safe to display.
    pub name: Vec<u8>,
    /// For code of a BPF program: its source location.
    pub place: Option<BpfPlace>,
}

#[derive(Debug)]
struct LastRead {
    symbols: Arc<KernelSymbols>,
    /// When the symbols were last read.
    read: Instant,
    wait: Duration,
}

impl CurrentKernel {
    /// Adds queries for BPF programs: their lines, and the ends of their functions.
    pub fn with_bpf(self, bpf: CurrentBpf) -> CurrentKernel {
        let bpf = Some(bpf);
        CurrentKernel { bpf, ..self }
    }

    /// Uses the functions from `first` initially.
    pub fn with_first(self, first: fn() -> Arc<KernelSymbols>) -> CurrentKernel {
        let first = Some(first);
        CurrentKernel { first, ..self }
    }

    /// Returns what is at each of these addresses, or why it is unknown.
    pub fn frames(&self, addrs: &[u64]) -> Vec<Result<KernelFrame, Reason>> {
        let symbols = self.symbols_for(addrs.iter().copied());
        addrs
            .iter()
            .map(|addr| self.frame(*addr, &symbols))
            .collect()
    }

    fn frame(&self, addr: u64, symbols: &KernelSymbols) -> Result<KernelFrame, Reason> {
        let symbol = symbols.find(addr);
        let may_be_bpf = match &symbol {
            Ok(symbol) => symbol.bpf,
            Err(reason) => *reason == Reason::NotCovered,
        };
        // The programs that are loaded now are more accurate than symbols that were read a while
        // ago, and have known ends.
        let place = may_be_bpf.then(|| self.place_in_program(addr)).flatten();
        let name = match (&place, symbol) {
            (Some(place), _) if !place.function.is_empty() => place.function.clone(),
            (_, symbol) => self.name(&symbol?),
        };
        let place = place.filter(|place| !place.file.is_empty());
        Ok(KernelFrame { name, place })
    }

    /// Returns what is at an address in the code of a BPF program that is loaded now.
    fn place_in_program(&self, addr: u64) -> Option<BpfPlace> {
        self.bpf.as_ref()?.find(addr)
    }

    /// Whether the code at an address is of a BPF program that names its function itself, so that
    /// it does not take the whole list of symbols to name it.
    fn is_named_by_program(&self, addr: u64) -> bool {
        self.place_in_program(addr)
            .is_some_and(|place| !place.function.is_empty())
    }

    /// Names a trampoline after the function that it is for, instead of by a number that means
    /// something only to the kernel.
    fn name(&self, symbol: &KernelSymbol<'_>) -> Vec<u8> {
        const TRAMPOLINE: &str = "bpf_trampoline_";
        let number = symbol.name.strip_prefix(TRAMPOLINE);
        let number = number.and_then(|number| number.parse().ok());
        let bpf = self.bpf.as_ref().filter(|_| symbol.bpf);
        match bpf.zip(number).and_then(|(bpf, n)| bpf.attached_to(n)) {
            Some(function) => [TRAMPOLINE.as_bytes(), &function].concat(),
            None => symbol.name.as_bytes().to_vec(),
        }
    }

    /// Returns the kernel's functions, read again if these addresses are missing.
    pub fn symbols_for(&self, addrs: impl Iterator<Item = u64>) -> Arc<KernelSymbols> {
        self.with(addrs, KernelSymbols::load)
    }

    /// Bytes of heap held by what was read.
    pub fn heap_bytes(&self) -> usize {
        let state = self.state();
        let symbols = state.as_ref().map_or(0, |state| state.symbols.heap_bytes());
        symbols + self.bpf.as_ref().map_or(0, CurrentBpf::heap_bytes)
    }

    fn with(
        &self,
        mut addrs: impl Iterator<Item = u64>,
        load: impl Fn() -> KernelSymbols,
    ) -> Arc<KernelSymbols> {
        let mut guard = self.state();
        let state = guard.get_or_insert_with(|| {
            let symbols = self.first.map_or_else(|| Arc::new(load()), |first| first());
            LastRead {
                // Functions that an earlier run kept lack code that came since: what is missing is
                // looked for at once.
                wait: if symbols.is_of_earlier_run() {
                    Duration::ZERO
                } else {
                    WAIT
                },
                symbols,
                read: Instant::now(),
            }
        });
        let is_missing = |addr| state.symbols.find(addr) == Err(Reason::NotCovered);
        if state.read.elapsed() >= state.wait
            && let Some(missing) =
                addrs.find(|addr| is_missing(*addr) && !self.is_named_by_program(*addr))
        {
            state.symbols = Arc::new(load());
            state.read = Instant::now();
            state.wait = match state.symbols.find(missing) {
                Ok(_) => WAIT,
                Err(_) => (state.wait * 2).clamp(WAIT, WAIT_MAX),
            };
        }
        state.symbols.clone()
    }

    /// A poisoned lock is used all the same: no code panics while it holds the lock, and every
    /// state is consistent.
    fn state(&self) -> MutexGuard<'_, Option<LastRead>> {
        self.symbols.lock().unwrap_or_else(PoisonError::into_inner)
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

        // An address that never gets a name causes fewer and fewer reads.
        for _ in 0..3 {
            pass();
            ask(7);
        }
        assert_eq!(kernel.state().as_ref().unwrap().wait, WAIT * 8);
        assert_eq!(reads.get(), 5);
    }

    #[test]
    fn code_that_bpf_made_has_a_place_and_an_end() {
        use crate::kernel::bpf::tests::Loaded;
        const BASE: u64 = 0xffff_ffff_c010_0000;
        let text = b"ffffffff81000000 T vfs_read\n\
            ffffffffc0080000 t ftrace_trampoline\t[__builtin__ftrace]\n\
            ffffffffc00f0000 t bpf_trampoline_6442450946\t[bpf]\n\
            ffffffffc00f1000 t bpf_trampoline_18446744073709551616\t[bpf]\n\
            ffffffffc00f2000 t bpf_dispatcher_xdp\t[bpf]\n\
            ffffffffc00f3000 t bpf_prog_6deef7357e7b4530_unloaded\t[bpf]\n\
            ffffffffc0100000 t bpf_prog_6deef7357e7b4530_stale\t[bpf]\n";
        let programs = Loaded::default();
        programs.set(&[(5, BASE)]);
        let kernel = CurrentKernel::default().with_bpf(CurrentBpf::new(Box::new(programs)));
        kernel.with(std::iter::empty(), || KernelSymbols::parse(text));
        let at = |addr: u64| {
            let frame = kernel.frames(&[addr]).remove(0)?;
            let place = frame.place.map(|place| (place.file, place.line));
            Ok((String::from_utf8(frame.name).unwrap(), place))
        };
        let named = |name: &str| Ok((name.to_string(), None));
        assert_eq!(at(0xffff_ffff_8100_0004), named("vfs_read"));
        assert_eq!(at(0xffff_ffff_c008_0020), named("ftrace_trampoline"));
        // 0x1_8000_0002: the second type of the kernel's own.
        assert_eq!(at(0xffff_ffff_c00f_0004), named("bpf_trampoline_read"));
        // Not a number of 64 bits, so the name is left as it is.
        let odd = named("bpf_trampoline_18446744073709551616");
        assert_eq!(at(0xffff_ffff_c00f_1004), odd);
        assert_eq!(at(0xffff_ffff_c00f_2004), named("bpf_dispatcher_xdp"));
        // The symbols still have it, but its lines are gone.
        assert_eq!(at(0xffff_ffff_c00f_3004), named("unloaded"));
        let place = Some((b"/src/a.c".to_vec(), 30));
        assert_eq!(at(BASE + 0x20), Ok(("helper".to_string(), place)));
        let place = Some((b"/src/a.c".to_vec(), 11));
        assert_eq!(at(BASE + 0x1090), Ok(("main".to_string(), place)));
        // Below all symbols there is nothing, with programs or without.
        assert_eq!(at(7), Err(Reason::NotCovered));
    }

    #[test]
    fn a_program_that_names_itself_does_not_take_the_whole_list() {
        use crate::kernel::bpf::tests::Loaded;
        const EARLY: u64 = 0xffff_ffff_8100_0000;
        const BASE: u64 = EARLY - 0x10_0000;
        let reads = Cell::new(0);
        let load = || {
            reads.set(reads.get() + 1);
            KernelSymbols::parse(b"ffffffff81000000 T early\n")
        };
        let programs = Loaded::default();
        programs.set(&[(5, BASE)]);
        let kernel = CurrentKernel::default().with_bpf(CurrentBpf::new(Box::new(programs)));
        kernel.with([EARLY].into_iter(), load);
        let pass = || {
            let mut state = kernel.state();
            let state = state.as_mut().unwrap();
            state.read -= state.wait;
        };
        pass();
        kernel.with([BASE + 0x20].into_iter(), load);
        assert_eq!(reads.get(), 1);
        let frame = kernel.frames(&[BASE + 0x20]).remove(0).unwrap();
        assert_eq!(frame.name, b"helper");
        // Neither a symbol nor a program is there.
        pass();
        kernel.with([BASE - 1].into_iter(), load);
        assert_eq!(reads.get(), 2);
    }
}
