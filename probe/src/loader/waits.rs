//! The programs of waits. They are loaded and attached when waits are followed: at the start of a
//! run, or later.
//!
//! Until then the map of threads has room for one entry. aya has already put the number of that
//! map's descriptor into the instructions of the programs, so a larger map takes over that number
//! before the programs are loaded.

use super::{Object, load_program, program, refused, take, take_map, verified_instructions};
use crate::btf::KernelTypes;
use crate::error::Error;
use crate::events::Event;
use crate::events::wait::{self, Threads, WaitMaps};
use crate::plain::Plain;
use aya::maps::{Map, MapData, MapError};
use aya::programs::{BtfTracePoint, Iter, ProgramFd};
use aya::{Btf, Ebpf};
use probe_ebpf::interrupts::CpuPlaces;
use probe_ebpf::waits::Thread;
use probe_ebpf::waits::places::PLACES;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::PoisonError;

/// The result of loading the programs.
pub struct LoadedWaits {
    /// The maps that the programs share.
    pub maps: WaitMaps,
    /// What is not available, in sentences.
    pub notes: Vec<String>,
    /// Number of instructions that the verifier processed, by program.
    pub verified: Vec<(&'static str, u32)>,
}

impl Object {
    /// Loads the programs of waits, and attaches them. The error is a sentence; then none of them
    /// stays attached. It is not called again once it has succeeded.
    pub fn load_waits(&self) -> Result<LoadedWaits, String> {
        let mut object = self.ebpf.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = match &self.no_waits {
            None => load(&mut object).map_err(|error| error.to_string()),
            Some(why) => Err(why.clone()),
        };
        if loaded.is_err() {
            detach(&mut object);
        }
        let what = Event::Wait.what();
        loaded.map_err(|error| format!("{what} cannot be sampled: {error}"))
    }
}

fn load(object: &mut Ebpf) -> Result<LoadedWaits, Error> {
    let threads = make_room(object)?;
    let types = Btf::from_sys_fs().map_err(Error::Types)?;
    let mut notes = Vec::new();
    attach(object, &types)?;
    let places = KernelTypes::read()
        .and_then(|types| wait::interrupt_places(&types))
        .unwrap_or_else(|error| {
            notes.push(format!("who ends a wait is not told: {error}"));
            CpuPlaces::default()
        });
    let open = load_open(object, &types).map_err(|error| {
        notes.push(format!("waits that are not over have no stack: {error}"));
    });
    let names = wait::PROGRAMS
        .map(|(name, _)| name)
        .into_iter()
        .chain(open.is_ok().then_some(wait::OPEN));
    let verified = names
        .map(|name| (name, verified_instructions(object, name)))
        .collect();
    let nudges = wait::NUDGES.iter();
    let maps = WaitMaps {
        threads: shared(object, threads)?,
        orders: take(object, "WAIT_ORDERS")?,
        counters: take(object, "WAIT_COUNTERS")?,
        cpu_places: take(object, "CPU_PLACES")?,
        places,
        open: open.ok(),
        nudges: nudges
            .map(|name| take(object, name))
            .collect::<Result<_, _>>()?,
    };
    Ok(LoadedWaits {
        maps,
        notes,
        verified,
    })
}

/// The name of the map with the state of threads.
const THREADS: &str = "THREADS";

/// Replaces the small map by one with room for all threads, and returns it.
fn make_room(object: &Ebpf) -> Result<MapData, Error> {
    /// `BPF_MAP_TYPE_ARRAY` of uapi/linux/bpf.h.
    const ARRAY: u32 = 2;
    let small = match object.map(THREADS) {
        Some(Map::Array(map)) => map.fd().as_fd(),
        _ => return Err(Error::Foreign(THREADS)),
    };
    let failed = |source| Error::Map {
        name: THREADS,
        source,
    };
    let (key, value) = (size_of::<u32>() as u32, size_of::<Plain<Thread>>() as u32);
    let large = aya_obj::Map::new_from_params(ARRAY, key, value, PLACES as u32, 0);
    let large = MapData::create(large, THREADS, None).map_err(failed)?;
    // SAFETY: both descriptors are open. The number of the small map keeps its owner, the object,
    // and stands for the large map afterwards; no program that is loaded uses the small one.
    let result = unsafe {
        libc::dup3(
            large.fd().as_fd().as_raw_fd(),
            small.as_raw_fd(),
            libc::O_CLOEXEC,
        )
    };
    if result < 0 {
        return Err(failed(MapError::from(std::io::Error::last_os_error())));
    }
    Ok(large)
}

/// Returns the map of threads as it is shared with the programs. aya takes the object's map to be
/// as small as it was made.
fn shared(object: &mut Ebpf, threads: MapData) -> Result<Threads, Error> {
    const PLACES: &str = "THREAD_PLACES";
    let kept = Map::Array(threads)
        .try_into()
        .map_err(|source| Error::Map {
            name: THREADS,
            source,
        })?;
    match take_map(object, PLACES)? {
        Map::Array(places) => Threads::new(&places, kept),
        _ => Err(Error::Foreign(PLACES)),
    }
}

/// Loads the programs that follow context switches, all of them before the first is attached.
fn attach(object: &mut Ebpf, types: &Btf) -> Result<(), Error> {
    for (name, tracepoint) in wait::PROGRAMS {
        let program: &mut BtfTracePoint = program(object, name)?;
        load_program(name, || program.load(tracepoint, types))?;
    }
    for (name, _) in wait::PROGRAMS {
        let program: &mut BtfTracePoint = program(object, name)?;
        program.attach().map_err(refused(name))?;
    }
    Ok(())
}

/// Unloads those of the programs that are already loaded.
fn detach(object: &mut Ebpf) {
    for (name, _) in wait::PROGRAMS {
        if let Ok(program) = program::<BtfTracePoint>(object, name) {
            // This fails for programs that were not loaded.
            _ = program.unload();
        }
    }
}

/// Loads the program that lists waits which are not over.
fn load_open(object: &mut Ebpf, types: &Btf) -> Result<ProgramFd, Error> {
    let name = wait::OPEN;
    let program: &mut Iter = program(object, name)?;
    load_program(name, || program.load("task", types))?;
    let fd = program.fd().and_then(|fd| Ok(fd.try_clone()?));
    fd.map_err(refused(name))
}

/// Offsets of the fields of a task that the programs of waits read.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    /// `pid` in `task_struct`, which is the thread's number.
    pub pid: u32,
    /// `tgid` in `task_struct`, which is the number of its process.
    pub tgid: u32,
    /// `flags` in `task_struct`.
    pub flags: u32,
    /// The byte of `task_struct` with the bit `in_iowait`.
    pub iowait: u32,
    /// The mask of that bit in its byte.
    pub iowait_bit: u32,
    /// `throttled` in `task_struct`, since Linux 6.18, else 0.
    pub throttled: u32,
    /// `se.cfs_rq` in `task_struct`, before Linux 6.18; 0 if groups have no quotas of CPU time.
    pub run_queue: u32,
    /// `throttle_count` in `cfs_rq`, before Linux 6.18; 0 if groups have no quotas of CPU time.
    pub throttles: u32,
}

impl Waiting {
    /// Finds the offsets; an error if the kernel's types lack one that is required.
    pub fn find(types: &KernelTypes) -> std::io::Result<Self> {
        let [pid, tgid, flags, iowait] = types.bit_offsets([
            ("task_struct", "pid"),
            ("task_struct", "tgid"),
            ("task_struct", "flags"),
            ("task_struct", "in_iowait"),
        ])?;
        Ok(Self {
            pid: pid / 8,
            tgid: tgid / 8,
            flags: flags / 8,
            iowait: iowait / 8,
            iowait_bit: 1 << (iowait % 8),
            ..Self::quotas(types)
        })
    }

    /// Finds the fields that show that a control group has used up its CPU time.
    fn quotas(types: &KernelTypes) -> Self {
        if let Ok(throttled) = types.offset("task_struct", "throttled") {
            return Self {
                throttled,
                ..Self::default()
            };
        }
        let members = [
            ("task_struct", "se"),
            ("sched_entity", "cfs_rq"),
            ("cfs_rq", "throttle_count"),
        ];
        match types.offsets(members) {
            Ok([entity, run_queue, throttles]) => Self {
                run_queue: entity + run_queue,
                throttles,
                ..Self::default()
            },
            Err(_) => Self::default(),
        }
    }
}
