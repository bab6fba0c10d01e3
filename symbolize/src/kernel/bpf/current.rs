//! The BPF programs that are loaded now: they come and go, and their memory is reused.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{BpfCode, BpfKernel, BpfPlace, BpfProgram};
use crate::kernel::btf::Btf;

/// Minimum time between two queries for the ids of programs. A query takes less than a microsecond
/// per program, of which a machine has up to a few thousand.
const WAIT: Duration = Duration::from_millis(100);

/// Maximum number of programs; most machines have some dozens.
const PROGRAMS_MAX: usize = 65_536;

/// Maximum number of functions of all programs.
const EXTENTS_MAX: usize = 1 << 20;

/// Maximum size of the lines of programs that had samples. Those of a large program take 1 MiB.
const DETAILS_BYTES_MAX: usize = 16 << 20;

/// Maximum number of trampolines whose functions are cached.
const TRAMPOLINES_MAX: usize = 4096;

/// Queries the kernel and caches the results.
#[derive(Debug)]
pub struct CurrentBpf {
    kernel: Box<dyn BpfKernel>,
    state: Mutex<KnownPrograms>,
}

#[derive(Debug, Default)]
struct KnownPrograms {
    /// Ids of programs, in order.
    programs: Vec<u32>,
    /// Functions of all programs, by address.
    extents: Vec<Extent>,
    read: Option<Instant>,
    /// Details of programs that were looked up, the latest last.
    details: Vec<(u32, Arc<BpfProgram>)>,
    /// The function that each trampoline is attached to, by the trampoline's number.
    trampolines: HashMap<u64, Option<Arc<[u8]>>>,
}

#[derive(Debug, Clone, Copy)]
struct Extent {
    start: u64,
    end: u64,
    program: u32,
}

impl CurrentBpf {
    /// An empty cache; `kernel` is queried when an address is looked up.
    pub fn new(kernel: Box<dyn BpfKernel>) -> CurrentBpf {
        let state = Mutex::default();
        CurrentBpf { kernel, state }
    }

    /// Returns the place in the program that is at this address now.
    pub fn find(&self, addr: u64) -> Option<BpfPlace> {
        let mut state = self.state();
        let program = state.program_at(addr, &*self.kernel)?;
        state.details(&*self.kernel, program)?.find(addr)
    }

    /// Returns the code of the function that is at this address now. `None` also if the kernel does
    /// not provide it: it needs `CAP_BPF`, addresses that are not hidden (`CAP_SYSLOG`), and the
    /// right to open programs of others (`CAP_SYS_ADMIN`).
    pub fn code(&self, addr: u64) -> Option<BpfCode> {
        let program = self.state().program_at(addr, &*self.kernel)?;
        let functions = self.kernel.code(program)?;
        functions.into_iter().find(|code| {
            let within = addr.checked_sub(code.start);
            within.is_some_and(|within| within < code.bytes.len() as u64)
        })
    }

    /// Returns the name of what the kernel's `bpf_trampoline_<number>` is attached to: a function
    /// of the kernel, of a module, or of another program.
    pub fn attached_to(&self, trampoline: u64) -> Option<Arc<[u8]>> {
        if let Some(known) = self.state().trampolines.get(&trampoline) {
            return known.clone();
        }
        let name = self.name_attached_to(trampoline);
        let mut state = self.state();
        if state.trampolines.len() < TRAMPOLINES_MAX {
            state.trampolines.insert(trampoline, name.clone());
        }
        name
    }

    /// The upper half of the number is what the trampoline is attached to: a program or, with a
    /// mark, a BTF object; the lower half is the type of the function in it
    /// (`bpf_trampoline_compute_key` in linux/bpf_verifier.h).
    fn name_attached_to(&self, trampoline: u64) -> Option<Arc<[u8]>> {
        const IN_KERNEL: u32 = 1 << 31;
        const VMLINUX: u32 = 1;
        let (number, function) = ((trampoline >> 32) as u32, trampoline as u32);
        let name: Option<Vec<u8>> = if function & IN_KERNEL == 0 {
            let info = self.kernel.program(number)?;
            let btf = Btf::parse(&info.btf)?;
            btf.type_name(function).map(<[u8]>::to_vec)
        } else {
            let types = self.kernel.types(number).filter(|types| types.is_kernel)?;
            let (btf, function) = (Btf::parse(&types.bytes)?, function & !IN_KERNEL);
            if types.name == b"vmlinux" {
                btf.type_name(function).map(<[u8]>::to_vec)
            } else {
                let base = self.kernel.types(VMLINUX);
                let base = base.filter(|base| base.is_kernel && base.name == b"vmlinux")?;
                let base = Btf::parse(&base.bytes)?;
                btf.type_name_above(&base, function).map(<[u8]>::to_vec)
            }
        };
        name.filter(|name| !name.is_empty()).map(Arc::from)
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        let state = self.state();
        state.extents.capacity() * size_of::<Extent>() + state.details_bytes()
    }

    /// A poisoned lock is used all the same: no code panics while it holds the lock, and every
    /// state is consistent.
    fn state(&self) -> MutexGuard<'_, KnownPrograms> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownPrograms {
    /// Returns the id of the program that has code at this address.
    fn program_at(&mut self, addr: u64, kernel: &dyn BpfKernel) -> Option<u32> {
        if self.read.is_none_or(|read| read.elapsed() >= WAIT) {
            self.refresh(kernel);
        }
        let behind = self.extents.partition_point(|e| e.start <= addr);
        let extent = self.extents[..behind].last()?;
        (addr < extent.end).then_some(extent.program)
    }

    /// Queries new programs. Ids are never reused, so cached data of an id stays valid.
    fn refresh(&mut self, kernel: &dyn BpfKernel) {
        let mut programs = Vec::with_capacity(self.programs.len());
        let mut last = 0;
        while programs.len() < PROGRAMS_MAX
            && let Some(next) = kernel.next_program(last).filter(|next| *next > last)
        {
            programs.push(next);
            last = next;
        }
        let is_loaded = |program: &u32| programs.binary_search(program).is_ok();
        self.extents.retain(|extent| is_loaded(&extent.program));
        self.details.retain(|(program, _)| is_loaded(program));
        for program in &programs {
            if self.programs.binary_search(program).is_err() {
                let room = EXTENTS_MAX.saturating_sub(self.extents.len());
                let extents = kernel.extents(*program).unwrap_or_default();
                let extents = extents.iter().take(room).map(|extent| Extent {
                    start: extent.start,
                    end: extent.start.saturating_add(extent.len.into()),
                    program: *program,
                });
                self.extents.extend(extents);
            }
        }
        self.extents.sort_unstable_by_key(|extent| extent.start);
        self.programs = programs;
        self.read = Some(Instant::now());
    }

    fn details(&mut self, kernel: &dyn BpfKernel, program: u32) -> Option<Arc<BpfProgram>> {
        if let Some(at) = self.details.iter().position(|(known, _)| *known == program) {
            let known = self.details.remove(at);
            self.details.push(known);
        } else {
            let details = BpfProgram::new(&kernel.program(program)?);
            self.details.push((program, Arc::new(details)));
            while self.details.len() > 1 && self.details_bytes() > DETAILS_BYTES_MAX {
                self.details.remove(0);
            }
        }
        self.details.last().map(|(_, details)| Arc::clone(details))
    }

    fn details_bytes(&self) -> usize {
        let sizes = self.details.iter().map(|(_, details)| details.heap_bytes());
        sizes.sum()
    }
}

#[cfg(test)]
pub mod tests;
