//! What the programs of waits share with us.

use super::record::{ThreadTotals, WaitCounters, thread_of_words};
use crate::bpf_call::bpf;
use crate::error::Error;
use crate::plain::Plain;
use crate::time::now_ns;
use aya::maps::{Array, HashMap, IterableMap as _, MapData, PerCpuArray, RingBuf};
use aya::programs::ProgramFd;
use probe_ebpf::interrupts::CpuPlaces;
use probe_ebpf::limits::THREADS_MAX;
use probe_ebpf::waits::{Orders, THREAD_WORDS, Thread};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};

// SAFETY: structures of numbers without padding, for which any bytes are a value.
unsafe impl aya::Pod for Plain<Thread> {}
// SAFETY: as above.
unsafe impl aya::Pod for Plain<Orders> {}

/// The maps.
pub struct WaitMaps {
    /// What is known of each thread, by tid.
    pub threads: HashMap<MapData, u32, Plain<Thread>>,
    /// What is wanted.
    pub orders: Array<MapData, Plain<Orders>>,
    /// What was counted.
    pub counters: PerCpuArray<MapData, u64>,
    /// Where to see whether a CPU is in an interrupt,
    pub cpu_places: Array<MapData, Plain<CpuPlaces>>,
    /// as it is known.
    pub places: CpuPlaces,
    /// The program that tells of waits which are not over. `None` if the kernel refused it.
    pub open: Option<ProgramFd>,
    /// Written to for their interrupts alone.
    pub nudges: Vec<RingBuf<MapData>>,
}

/// `BPF_NOEXIST`.
const ONLY_NEW: u64 = 1;

/// Threads that are read by one system call.
const BATCH: usize = 1024;

/// How often a thread is read again whose sums changed meanwhile.
const TRIES: usize = 3;

impl WaitMaps {
    /// Tells the programs what is wanted of them.
    pub fn set_orders(&mut self, orders: Orders) -> Result<(), Error> {
        let set = self.orders.set(0, Plain(orders), 0);
        set.map_err(|source| Error::Map {
            name: "WAIT_ORDERS",
            source,
        })
    }

    /// Tells the programs where to see whether a CPU is in an interrupt.
    pub fn set_places(&mut self) -> Result<(), Error> {
        let set = self.cpu_places.set(0, Plain(self.places), 0);
        set.map_err(|source| Error::Map {
            name: "CPU_PLACES",
            source,
        })
    }

    /// Adds a thread, unless it is known.
    pub fn add(&mut self, tid: u32, thread: &Thread) -> bool {
        self.threads.insert(tid, Plain(*thread), ONLY_NEW).is_ok()
    }

    /// Makes room for more.
    pub fn empty_nudges(&mut self) {
        for ring in &mut self.nudges {
            while ring.next().is_some() {}
        }
    }

    /// What was counted so far.
    pub fn counters(&self) -> WaitCounters {
        WaitCounters::of_slots(|slot| {
            let values = self.counters.get(&slot, 0);
            values.map_or(0, |values| values.iter().sum())
        })
    }

    /// Reads all threads. One that moves all the time while it is read comes the next time.
    pub fn read_threads(&self, into: &mut Vec<ThreadTotals>) {
        let mut at = Vec::new();
        let read = self.each_batch(|tids, threads| {
            let now_ns = now_ns();
            for (tid, words) in tids.iter().zip(threads) {
                match ThreadTotals::of_living(*tid, &thread_of_words(words), now_ns) {
                    Some(totals) => into.push(totals),
                    None => at.push(*tid),
                }
            }
        });
        // Kernels before 5.6 have no such call; ours is younger.
        debug_assert!(read.is_ok(), "{read:?}");
        for tid in at {
            let again = (0..TRIES).find_map(|_| {
                let thread = self.threads.get(&tid, 0).ok()?;
                ThreadTotals::of_living(tid, &thread.0, now_ns())
            });
            into.extend(again);
        }
    }

    /// Calls `each` with keys and values, some at a time.
    fn each_batch(&self, mut each: impl FnMut(&[u32], &[[u64; THREAD_WORDS]])) -> io::Result<()> {
        const LOOKUP_BATCH: u32 = 24;
        let mut room = BATCH;
        let (mut from, mut to) = (0u32, 0u32);
        let mut is_first = true;
        let mut keys = vec![0u32; room];
        let mut values = vec![[0u64; THREAD_WORDS]; room];
        loop {
            let mut attributes = LookupBatch {
                in_batch: if is_first { 0 } else { &raw const from as u64 },
                out_batch: &raw mut to as u64,
                keys: keys.as_mut_ptr() as u64,
                values: values.as_mut_ptr() as u64,
                count: room as u32,
                map_fd: self.threads.map().fd().as_fd().as_raw_fd() as u32,
                elem_flags: 0,
                flags: 0,
            };
            // SAFETY: the arm of that command; the addresses are those of locals with room
            // for `count` keys and values, and for the 4 bytes of a place in a hash map.
            let result = unsafe { bpf(LOOKUP_BATCH, &mut attributes) };
            let count = (attributes.count as usize).min(room);
            let is_last = match result {
                Ok(_) => false,
                Err(error) => match error.raw_os_error() {
                    Some(libc::ENOENT) => true,
                    // One bucket has more than there is room for.
                    Some(libc::ENOSPC) if room < THREADS_MAX => {
                        room *= 2;
                        keys.resize(room, 0);
                        values.resize(room, [0; THREAD_WORDS]);
                        continue;
                    }
                    _ => return Err(error),
                },
            };
            each(&keys[..count], &values[..count]);
            if is_last {
                return Ok(());
            }
            (from, is_first) = (to, false);
        }
    }
}

/// `union bpf_attr` of BPF_MAP_LOOKUP_BATCH (uapi/linux/bpf.h).
#[repr(C)]
struct LookupBatch {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: u32,
    elem_flags: u64,
    flags: u64,
}
