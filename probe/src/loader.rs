//! Loads the BPF object: sizes its maps, sets its globals, and returns the programs and maps by
//! name.
//!
//! The programs are loaded one by one. If the kernel refuses one, only that one is missing, which
//! becomes a note. Without any event there is nothing to sample, which is an error.

mod calls;
#[cfg(test)]
mod depth;
mod interrupted;
pub mod multi;
mod objects;
mod waits;
mod without_types;

use crate::btf::KernelTypes;
use crate::cpus;
use crate::error::Error;
use crate::events::Event;
use crate::events::happening::{self, Counter, Happening, HappeningMaps};
use crate::events::wait;
use crate::machine::THIS;
use crate::python::PythonMaps;
use crate::tables::BpfMaps;
use crate::target::Target;
use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData, PerCpuArray, RingBuf};
use aya::programs::{PerfEvent, ProgramError, ProgramFd, RawTracePoint};
use multi::MadeMaps;
use objects::BpfObject;
use probe_ebpf::calls::{PROBES_MAX, starts};
use probe_ebpf::limits::{COMMS_MAX, NUDGES_BYTES, TARGETS_MAX};
use probe_ebpf::settings::filter;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use waits::Waiting;

/// Number of entries of a map that no program reads in this run. (An LRU map needs a few for each
/// CPU.)
const UNUSED_ENTRIES: u32 = 64;

/// The settings of the programs, which are fixed before they are loaded.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Maximum number of user frames in a stack.
    pub max_user_frames: u32,
    /// Size of the ring of samples: a power of two.
    pub ring_bytes: u32,
    /// Whether stacks are also copied to user space, to check the walks in the kernel.
    pub check_walks: bool,
    /// Whether to make room for probes of calls, whose programs may be loaded later.
    pub calls: bool,
    /// What is counted in addition to time; `None` for time alone.
    pub happening: Option<Happening>,
    /// Whether waits will be followed.
    pub waits: bool,
    /// Whether to use the object without `bpf_loop`, which is for kernels before Linux 6.1, on any
    /// kernel; for tests.
    pub without_loop: bool,
}

#[cfg(test)]
impl Settings {
    /// Settings with which only the clock is sampled.
    pub const FOR_TESTS: Self = Self {
        max_user_frames: 64,
        ring_bytes: 1 << 16,
        check_walks: false,
        calls: false,
        happening: None,
        waits: false,
        without_loop: false,
    };
}

/// The loaded object.
///
/// When it is dropped, or the process ends, everything is removed from the kernel again.
pub struct Loaded {
    /// The programs of the events that can be sampled here; at least one.
    pub events: BTreeMap<Event, ProgramFd>,
    /// The ring of sample records.
    pub samples: RingBuf<MapData>,
    /// Whether the next record in that ring wakes its reader up.
    pub is_resting: Array<MapData, u32>,
    /// Counters of the programs, for each CPU.
    pub counters: PerCpuArray<MapData, u64>,
    /// The processes to sample, by pid, if the target is a list of processes.
    pub target_pids: HashMap<MapData, u32, u8>,
    /// The threads to sample, if the target is a list of threads.
    pub target_tids: HashMap<MapData, u32, u8>,
    /// The users whose processes to sample, if the target is a user.
    pub target_uids: HashMap<MapData, u32, u8>,
    /// Processes whose command name matches the target's pattern, by pid.
    pub comm_pids: HashMap<MapData, u32, u8>,
    /// Command names that were already checked against the target's pattern.
    pub comm_verdicts: HashMap<MapData, [u8; 16], u8>,
    /// The maps with unwind tables and mappings for the walk.
    pub tables: BpfMaps,
    /// The maps with Python's layouts for the walk of its frames.
    pub python: PythonMaps,
    /// The program that samples what is counted in addition to time, if that was requested.
    pub happening: Option<HappeningProgram>,
    /// What is not available, in sentences.
    pub notes: Vec<String>,
    /// Number of instructions that the verifier processed, by program.
    pub verified: Vec<(&'static str, u32)>,
    /// The object itself, which keeps the programs attached.
    pub object: Object,
}

/// The program that takes samples of what is counted in addition to time.
pub enum HappeningProgram {
    /// A program to be attached to a counter of each CPU.
    Counter(Counter, HappeningMaps),
    /// A program that is attached to its tracepoint.
    Point(HappeningMaps),
}

/// Keeps the programs that are attached, and those that may be loaded later.
pub struct Object {
    ebpf: Arc<Mutex<Ebpf>>,
    /// Why waits cannot be followed; `None` if they can, as far as the kernel's types show.
    no_waits: Option<String>,
    /// Why calls cannot be followed, or not any more; `None` if they can.
    no_calls: Option<Error>,
    /// All maps, if programs for links of calls may be loaded.
    maps_for_links: Option<MadeMaps>,
}

/// Loads everything; nothing is sampled yet.
pub fn load(settings: &Settings, target: &Target) -> Result<Loaded, Error> {
    load_object(&BpfObject::choose(settings)?, settings, target)
}

fn load_object(
    bpf_object: &BpfObject,
    settings: &Settings,
    target: &Target,
) -> Result<Loaded, Error> {
    let object_bytes = &*bpf_object.bytes;
    let conditions = conditions(target);
    let cgroup = target
        .cgroup
        .as_ref()
        .map_or((0, 0), |cgroup| (cgroup.id, cgroup.level));
    let check_walks = u32::from(settings.check_walks);
    let wake_bytes = u64::from(settings.ring_bytes / 4);
    let Offsets {
        tgid: tgid_offset,
        flags: flags_offset,
        fs_base: fs_base_offset,
        probed,
        entry,
        waiting,
    } = Offsets::find(bpf_object.is_without_loop);
    let (offsets, no_waits) = match waiting {
        Ok(offsets) => (offsets, None),
        Err(why) => (Waiting::default(), Some(why)),
    };
    let Entry { stack, registers } = *entry.as_ref().unwrap_or(&Entry::default());
    let is_point = matches!(settings.happening, Some(Happening::Point { .. }));
    let if_calls = |entries: usize| if settings.calls { entries as u32 } else { 1 };
    let if_asked = |condition: u32, entries: usize| match conditions & condition {
        0 => UNUSED_ENTRIES,
        _ => entries as u32,
    };
    let rooms = if settings.calls || is_point {
        cpus::possible()
    } else {
        1
    };
    let mut loader = without_types::loader();
    loader
        .override_global("FILTER", &conditions, true)
        .override_global("MAX_USER_FRAMES", &settings.max_user_frames, true)
        .override_global("CGROUP_ID", &cgroup.0, true)
        .override_global("CGROUP_LEVEL", &cgroup.1, true)
        .override_global("WAKE_BYTES", &wake_bytes, true)
        .override_global("CHECK_WALKS", &check_walks, true)
        .override_global("TASK_TGID_OFFSET", tgid_offset.as_ref().unwrap_or(&0), true)
        .override_global("TASK_FLAGS_OFFSET", &flags_offset, true)
        .override_global("TASK_FS_BASE_OFFSET", &fs_base_offset, true)
        .override_global("TASK_UTASK_OFFSET", &probed.utask, true)
        .override_global("UTASK_RETURNS_OFFSET", &probed.returns, true)
        .override_global("RETURN_STACK_OFFSET", &probed.stack, true)
        .override_global("RETURN_ADDRESS_OFFSET", &probed.address, true)
        .override_global("RETURN_NEXT_OFFSET", &probed.next, true)
        .override_global("STEPPED_ACTIVE_OFFSET", &probed.active, true)
        .override_global("STEPPED_ADDRESS_OFFSET", &probed.stepped, true)
        .override_global("WAIT_PID_OFFSET", &offsets.pid, true)
        .override_global("WAIT_TGID_OFFSET", &offsets.tgid, true)
        .override_global("WAIT_FLAGS_OFFSET", &offsets.flags, true)
        .override_global("WAIT_IOWAIT_OFFSET", &offsets.iowait, true)
        .override_global("WAIT_IOWAIT_BIT", &offsets.iowait_bit, true)
        .override_global("WAIT_THROTTLED_OFFSET", &offsets.throttled, true)
        .override_global("WAIT_RUNQUEUE_OFFSET", &offsets.run_queue, true)
        .override_global("WAIT_THROTTLES_OFFSET", &offsets.throttles, true)
        .override_global("TASK_STACK_OFFSET", &stack, bpf_object.is_without_loop)
        .override_global(
            "ENTRY_REGISTERS_OFFSET",
            &registers,
            bpf_object.is_without_loop,
        )
        // The map gets its real size when waits are followed.
        .map_max_entries("THREADS", 1)
        .map_max_entries("CALL_ORDERS", if_calls(PROBES_MAX))
        .map_max_entries("CALL_TALLIES", if_calls(PROBES_MAX))
        .map_max_entries("CALL_STARTS", if_calls(starts::BUCKETS))
        .map_max_entries("CALL_SCRATCH", rooms)
        // Each of these takes 1.3 MB, and is read only if its condition is set.
        .map_max_entries("TARGET_PIDS", if_asked(filter::PIDS, TARGETS_MAX))
        .map_max_entries("TARGET_TIDS", if_asked(filter::TIDS, TARGETS_MAX))
        .map_max_entries("COMM_PIDS", if_asked(filter::COMM, TARGETS_MAX))
        .map_max_entries("COMM_VERDICTS", if_asked(filter::COMM, COMMS_MAX))
        .map_max_entries("SAMPLES", settings.ring_bytes)
        .map_max_entries("RULE_CACHE", cpus::possible())
        .map_max_entries("RAW_SCRATCH", cpus::possible());
    // The size of a ring is a whole number of pages, of which arm64 has several sizes.
    let nudges_bytes = NUDGES_BYTES.max(rustix::param::page_size()) as u32;
    for name in wait::NUDGES {
        loader.map_max_entries(name, nudges_bytes);
    }
    let mut object = loader.load(object_bytes).map_err(Error::Load)?;
    let no_calls = no_calls(settings, bpf_object);
    let maps_for_links = match no_calls {
        None => calls::maps_for_links(&object),
        Some(_) => None,
    };
    let mut parts = Parts::of(&mut object);
    let events = parts.events()?;
    parts.follow("follow_exec", "sched_process_exec");
    match tgid_offset {
        Ok(_) => parts.follow("follow_fork", "sched_process_fork"),
        Err(error) => parts.notes.push(format!("{FOUND_LATE}: {error}")),
    }
    if bpf_object.is_without_loop {
        parts.notes.push(OLD_KERNEL.into());
        if let Err(error) = entry {
            let lost = "stacks of threads that are in the kernel end there";
            parts.notes.push(format!("{lost}: {error}"));
        }
    }
    let happening = match &settings.happening {
        Some(happening) => Some(parts.happening(happening)?),
        None => None,
    };
    let Parts {
        notes, verified, ..
    } = parts;
    let happening = match happening {
        Some((happening, program)) => {
            let orders = take(&mut object, "HAPPENING_ORDERS")?;
            let maps = HappeningMaps { orders, program };
            Some(match happening {
                Happening::Counter(counter) => HappeningProgram::Counter(counter, maps),
                Happening::Point { .. } => HappeningProgram::Point(maps),
            })
        }
        None => None,
    };
    Ok(Loaded {
        events,
        happening,
        samples: take(&mut object, "SAMPLES")?,
        is_resting: take(&mut object, "IS_RESTING")?,
        counters: take(&mut object, "COUNTERS")?,
        target_pids: take(&mut object, "TARGET_PIDS")?,
        target_tids: take(&mut object, "TARGET_TIDS")?,
        target_uids: take(&mut object, "TARGET_UIDS")?,
        comm_pids: take(&mut object, "COMM_PIDS")?,
        comm_verdicts: take(&mut object, "COMM_VERDICTS")?,
        tables: BpfMaps {
            chunks: take_map(&mut object, "CHUNKS")?,
            rules: take_map(&mut object, "RULES")?,
            extended: take_map(&mut object, "EXTENDED")?,
            mappings: take_map(&mut object, "MAPPINGS")?,
            processes: take_map(&mut object, "PROCESSES")?,
        },
        python: PythonMaps::Bpf {
            processes: take(&mut object, "PYTHON_PROCESSES")?,
            threads: take(&mut object, "PYTHON_THREADS")?,
        },
        notes,
        verified,
        object: Object {
            ebpf: Arc::new(Mutex::new(object)),
            no_waits,
            no_calls,
            maps_for_links,
        },
    })
}

/// Returns why calls cannot be followed; `None` if they can.
fn no_calls(settings: &Settings, object: &BpfObject) -> Option<Error> {
    if !settings.calls {
        Some(Error::NoCalls)
    } else if !THIS.has_probes {
        Some(Error::NotOnThisMachine)
    } else if object.is_without_loop {
        Some(Error::OldKernel)
    } else {
        None
    }
}

/// Offsets at which the kernel keeps return addresses that a probe has replaced: see
/// `probe-ebpf/src/bpf/probed.rs`.
#[derive(Default)]
struct Probed {
    utask: u32,
    returns: u32,
    stack: u32,
    address: u32,
    next: u32,
    active: u32,
    stepped: u32,
}

impl Probed {
    fn find(types: &KernelTypes) -> std::io::Result<Self> {
        let [utask, returns, active, stepped, stack, address, next] = types.offsets([
            ("task_struct", "utask"),
            ("uprobe_task", "return_instances"),
            ("uprobe_task", "active_uprobe"),
            ("uprobe_task", "vaddr"),
            ("return_instance", "stack"),
            ("return_instance", "orig_ret_vaddr"),
            ("return_instance", "next"),
        ])?;
        Ok(Self {
            utask,
            returns,
            stack,
            address,
            next,
            active,
            stepped,
        })
    }
}

/// Offsets that lead to the user registers of a thread in the kernel, for kernels without a helper
/// that returns them.
#[derive(Clone, Copy, Default)]
struct Entry {
    /// Offset of the kernel stack's address in `task_struct`.
    stack: u32,
    /// Offset of the registers in that stack.
    registers: u32,
}

impl Entry {
    /// The registers are at the end of the stack. The programs check that what they find is
    /// plausible.
    fn find(types: &KernelTypes) -> std::io::Result<Self> {
        /// `THREAD_SIZE` of arch/x86/include/asm/page_64_types.h, since Linux 3.15 and without
        /// `CONFIG_KASAN`.
        const STACK_BYTES: u32 = 16 << 10;
        Ok(Self {
            stack: types.offset("task_struct", "stack")?,
            registers: STACK_BYTES.saturating_sub(types.size("pt_regs")?),
        })
    }
}

/// Offsets of the fields of kernel structures that the programs read.
struct Offsets {
    tgid: std::io::Result<u32>,
    /// 0 if unknown: then samples of ending tasks have stacks that cannot be read.
    flags: u32,
    /// 0 if unknown, or there is none: then the first stacks of a Go program are copied with much
    /// that is above them.
    fs_base: u32,
    /// Without these, stacks end where another tracer watches the end of a call.
    probed: Probed,
    /// An error says why it is unknown. Only needed for the object without `bpf_loop`.
    entry: std::io::Result<Entry>,
    /// An error says why waits cannot be followed.
    waiting: Result<Waiting, String>,
}

impl Offsets {
    fn find(is_without_loop: bool) -> Self {
        let types = match KernelTypes::read() {
            Ok(types) => types,
            Err(error) => {
                return Self {
                    waiting: Err(error.to_string()),
                    entry: Err(std::io::Error::new(error.kind(), error.to_string())),
                    tgid: Err(error),
                    flags: 0,
                    fs_base: 0,
                    probed: Probed::default(),
                };
            }
        };
        let probed = if THIS.has_probes {
            Probed::find(&types).unwrap_or_default()
        } else {
            Probed::default()
        };
        Self {
            tgid: types.offset("task_struct", "tgid"),
            flags: types.offset("task_struct", "flags").unwrap_or(0),
            fs_base: fs_base(&types).unwrap_or(0),
            probed,
            entry: if is_without_loop {
                Entry::find(&types)
            } else {
                Ok(Entry::default())
            },
            waiting: if is_without_loop {
                Err(Error::OldKernel.to_string())
            } else if THIS.has_probes {
                Waiting::find(&types).map_err(|error| error.to_string())
            } else {
                Err("not on arm64 yet".into())
            },
        }
    }
}

/// Returns the offset in a task of the base of its thread-local variables, on x86-64.
fn fs_base(types: &KernelTypes) -> std::io::Result<u32> {
    let thread = types.offset("task_struct", "thread")?;
    Ok(thread + types.offset("thread_struct", "fsbase")?)
}

fn conditions(target: &Target) -> u32 {
    let bit = |set: bool, bit: u32| if set { bit } else { 0 };
    bit(!target.pids.is_empty(), filter::PIDS)
        | bit(!target.tids.is_empty(), filter::TIDS)
        | bit(!target.uids.is_empty(), filter::UIDS)
        | bit(target.comm.is_some(), filter::COMM)
        | bit(target.cgroup.is_some(), filter::CGROUP)
        | bit(target.children, filter::CHILDREN)
}

/// The note of a run on a kernel that lacks what the usual object needs: what BPF can and cannot do
/// there.
const OLD_KERNEL: &str = "BPF samples the time on CPUs here, but counts no waits (--engine perf does) and \
    no calls: these need BPF as Linux 6.1 has it";

/// The consequence of missing one of the programs that follow processes.
const FOUND_LATE: &str = "new processes are found late";

/// The programs of the object, which are loaded one by one, and the results.
struct Parts<'a> {
    object: &'a mut Ebpf,
    verified: Vec<(&'static str, u32)>,
    notes: Vec<String>,
}

impl<'a> Parts<'a> {
    fn of(object: &'a mut Ebpf) -> Self {
        Self {
            object,
            verified: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Loads the program of each event, which the event's source attaches. A refused event becomes
    /// a note; the last refusal is the error if no event is left.
    fn events(&mut self) -> Result<BTreeMap<Event, ProgramFd>, Error> {
        let mut events = BTreeMap::new();
        let mut refusal = None;
        for event in Event::ALL {
            match self.load_event(event.program()) {
                Ok(program) => _ = events.insert(event, program),
                Err(error) => {
                    let lost = event.what();
                    self.notes
                        .push(format!("{lost} cannot be sampled: {error}"));
                    refusal = Some(error);
                }
            }
        }
        match refusal {
            Some(error) if events.is_empty() => Err(error),
            _ => Ok(events),
        }
    }

    fn load_event(&mut self, name: &'static str) -> Result<ProgramFd, Error> {
        let program: &mut PerfEvent = program(self.object, name)?;
        load_program(name, || program.load())?;
        let fd = program
            .fd()
            .and_then(|fd| Ok(fd.try_clone()?))
            .map_err(refused(name))?;
        self.note_verified(name);
        Ok(fd)
    }

    /// Loads a program that follows processes, and attaches it to its tracepoint.
    fn follow(&mut self, name: &'static str, tracepoint: &str) {
        match attach(self.object, name, tracepoint) {
            Ok(()) => self.note_verified(name),
            Err(error) => self.notes.push(format!("{FOUND_LATE}: {error}")),
        }
    }

    /// Loads the program of what is counted in addition to time. The one of a tracepoint is
    /// attached.
    fn happening(&mut self, happening: &Happening) -> Result<(Happening, ProgramFd), Error> {
        if !THIS.has_probes {
            return Err(Error::NotOnThisMachine);
        }
        let program = match happening {
            Happening::Counter(_) => self.load_event(happening::COUNTER)?,
            Happening::Point { name, .. } => {
                let refused = refused(happening::POINT);
                attach(self.object, happening::POINT, name)?;
                self.note_verified(happening::POINT);
                let program: &mut RawTracePoint = program(self.object, happening::POINT)?;
                let fd = program.fd().and_then(|fd| Ok(fd.try_clone()?));
                fd.map_err(refused)?
            }
        };
        Ok((happening.clone(), program))
    }

    fn note_verified(&mut self, name: &'static str) {
        let verified = verified_instructions(self.object, name);
        self.verified.push((name, verified));
    }
}

fn attach(object: &mut Ebpf, name: &'static str, tracepoint: &str) -> Result<(), Error> {
    let program: &mut RawTracePoint = program(object, name)?;
    load_program(name, || program.load())?;
    program.attach(tracepoint).map_err(refused(name))?;
    Ok(())
}

fn program<'a, P>(object: &'a mut Ebpf, name: &'static str) -> Result<&'a mut P, Error>
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program>,
{
    let program = object.program_mut(name);
    let program = program.and_then(|program| program.try_into().ok());
    program.ok_or(Error::Foreign(name))
}

/// Loads the program `name` into the kernel.
fn load_program(
    name: &'static str,
    load: impl FnMut() -> Result<(), ProgramError>,
) -> Result<(), Error> {
    interrupted::again(load, kernels_answer).map_err(refused(name))
}

fn kernels_answer(error: &ProgramError) -> Option<&std::io::Error> {
    match error {
        ProgramError::LoadError { io_error, .. } => Some(io_error),
        _ => None,
    }
}

fn refused(program: &'static str) -> impl Fn(ProgramError) -> Error {
    move |error| Error::Refused {
        program,
        reason: last_word(&error),
    }
}

/// Returns the last line of the verifier's log that is not a statistic: it is the reason; the lines
/// before show how it got there.
fn last_word(error: &ProgramError) -> String {
    let ProgramError::LoadError {
        io_error,
        verifier_log,
    } = error
    else {
        return error.to_string();
    };
    let log = verifier_log.to_string();
    // Statistics, which the kernel adds at the end.
    let figures = ["processed ", "verification time ", "stack depth "];
    let said = |line: &&str| {
        !line.trim().is_empty() && !figures.iter().any(|figure| line.starts_with(figure))
    };
    match log.lines().rev().find(said) {
        Some(line) => format!("{line} ({io_error})"),
        None => io_error.to_string(),
    }
}

fn verified_instructions(object: &Ebpf, name: &str) -> u32 {
    object
        .program(name)
        .and_then(|program| program.info().ok())
        .and_then(|info| info.verified_instruction_count())
        .unwrap_or(0)
}

fn take<M>(object: &mut Ebpf, name: &'static str) -> Result<M, Error>
where
    M: TryFrom<aya::maps::Map, Error = aya::maps::MapError>,
{
    M::try_from(take_map(object, name)?).map_err(|source| Error::Map { name, source })
}

fn take_map(object: &mut Ebpf, name: &'static str) -> Result<aya::maps::Map, Error> {
    object.take_map(name).ok_or(Error::Foreign(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

    /// Returns the object with an instruction that no kernel knows at the start of one program.
    fn broken(program: &str) -> BpfObject {
        let mut broken = BpfObject::usual();
        let object = &mut broken.bytes;
        let file = object::File::parse(&**object).unwrap();
        let mut symbols = file.symbols();
        let symbol = symbols.find(|symbol| symbol.name() == Ok(program)).unwrap();
        let section = file.section_by_index(symbol.section_index().unwrap());
        let (start, _) = section.unwrap().file_range().unwrap();
        let at = (start + symbol.address()) as usize;
        object[at] = 0xff;
        broken
    }

    /// Loads such an object; `None` if nothing can be loaded here at all.
    fn load_broken(program: &str) -> Option<Result<Loaded, Error>> {
        if let Err(error) = load(&Settings::FOR_TESTS, &Target::default()) {
            test_support::skip(format_args!("no BPF programs here: {error}"));
            return None;
        }
        let object = broken(program);
        Some(load_object(
            &object,
            &Settings::FOR_TESTS,
            &Target::default(),
        ))
    }

    #[test]
    fn what_the_kernel_refuses_takes_only_itself_away() {
        for (refused, others) in [
            ("follow_fork", ["tick", "follow_exec"]),
            ("follow_exec", ["tick", "follow_fork"]),
        ] {
            let Some(loaded) = load_broken(refused) else {
                return;
            };
            let loaded = loaded.unwrap();
            let names: Vec<_> = loaded.verified.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, others);
            assert!(loaded.events.contains_key(&Event::Tick));
            assert_eq!(loaded.notes.len(), 1, "{:?}", loaded.notes);
            let note = &loaded.notes[0];
            assert!(
                note.starts_with(FOUND_LATE) && note.contains(refused),
                "{note}"
            );
            assert!(note.contains("unknown opcode"), "{note}");
        }
    }

    #[test]
    fn without_any_event_there_is_nothing_to_sample() {
        match load_broken("tick") {
            Some(Err(Error::Refused { program, .. })) => assert_eq!(program, "tick"),
            Some(Err(error)) => panic!("{error}"),
            Some(Ok(_)) => panic!("it was loaded"),
            None => {}
        }
    }

    /// Sends signals to the loading thread: fewer than the number of attempts, and more than two,
    /// which is the number of aya's attempts.
    #[test]
    fn signals_while_it_loads_do_no_harm() {
        extern "C" fn nothing(_: libc::c_int) {}
        if let Err(error) = load(&Settings::FOR_TESTS, &Target::default()) {
            test_support::skip(format_args!("no BPF programs here: {error}"));
            return;
        }
        let handler: extern "C" fn(libc::c_int) = nothing;
        // SAFETY: the handler does nothing, and nobody else uses this signal here.
        unsafe { libc::signal(libc::SIGUSR2, handler as libc::sighandler_t) };
        // SAFETY: a call without arguments.
        let thread = unsafe { libc::pthread_self() };
        let (begin, begins) = crate::channel::sync_channel::<()>(0);
        let signals = std::thread::spawn(move || {
            for () in begins.iter() {
                for _ in 0..interrupted::ATTEMPTS / 2 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    // SAFETY: that thread waits for this one before it ends.
                    unsafe { libc::pthread_kill(thread, libc::SIGUSR2) };
                }
            }
        });
        let loaded: Vec<_> = (0..10)
            .map(|_| {
                begin.send(()).unwrap();
                load(&Settings::FOR_TESTS, &Target::default()).map(|loaded| loaded.notes)
            })
            .collect();
        drop(begin);
        signals.join().unwrap();
        for notes in loaded {
            assert_eq!(notes.unwrap(), [""; 0]);
        }
    }
}
