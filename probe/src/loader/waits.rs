//! The programs of waits. They are loaded and attached when waits are followed: from the start of
//! a run, or later in it.
//!
//! Until then the map of threads has room for one. aya has put the number of that map's descriptor
//! into the instructions of the programs already, so that a larger map takes over the number
//! before the kernel sees them.

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

/// What is had once the programs run.
pub struct LoadedWaits {
    pub maps: WaitMaps,
    /// What could not be had, in words.
    pub notes: Vec<String>,
    /// Instructions the verifier looked at, by program.
    pub verified: Vec<(&'static str, u32)>,
}

impl Object {
    /// Loads the programs of waits, and attaches them. The error is a sentence; then none of them
    /// stays attached. Once it has worked it is not called again.
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

/// The map of what is known of threads.
const THREADS: &str = "THREADS";

/// Puts a map with room for all threads in the place of the small one, and returns it.
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

/// The map that the programs keep threads in, as we share it. aya takes the one of the object for
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

/// Loads the programs that follow switches, all before the first is attached.
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

/// Takes those out of the kernel that are in it already.
fn detach(object: &mut Ebpf) {
    for (name, _) in wait::PROGRAMS {
        if let Ok(program) = program::<BtfTracePoint>(object, name) {
            // It fails for those that were not loaded.
            _ = program.unload();
        }
    }
}

/// Loads the program that tells of waits which are not over.
fn load_open(object: &mut Ebpf, types: &Btf) -> Result<ProgramFd, Error> {
    let name = wait::OPEN;
    let program: &mut Iter = program(object, name)?;
    load_program(name, || program.load("task", types))?;
    let fd = program.fd().and_then(|fd| Ok(fd.try_clone()?));
    fd.map_err(refused(name))
}

/// Where the programs of waits find what they read of a task.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    pub pid: u32,
    pub tgid: u32,
    pub flags: u32,
    pub iowait: u32,
    pub iowait_bit: u32,
    /// In `task_struct`, since Linux 6.18, else 0.
    pub throttled: u32,
    /// `se.cfs_rq` in `task_struct` and `throttle_count` in `cfs_rq`, before; 0 where groups
    /// have no quotas of CPU time.
    pub run_queue: u32,
    pub throttles: u32,
}

impl Waiting {
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

    /// What tells that a control group has used up its CPU time, as this kernel has it.
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
