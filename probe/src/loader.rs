//! Loads the BPF object: sizes its maps, sets its globals, and gives the
//! programs and maps by name.

use crate::error::Error;
use crate::events::tick;
use crate::tables::BpfMaps;
use crate::target::Target;
use crate::{btf, cpus};
use aya::maps::{HashMap, MapData, PerCpuArray, RingBuf};
use aya::programs::{PerfEvent, ProgramError, ProgramFd, RawTracePoint};
use aya::{Ebpf, EbpfLoader};
use probe_ebpf::settings::filter;

/// The object, built from `probe-ebpf/` by `cargo xtask ebpf`.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../assets/proftop.bpf.o");

/// What the programs are told before they are loaded.
#[derive(Debug, Clone)]
pub struct Settings {
    pub max_user_frames: u32,
    /// A power of two.
    pub ring_bytes: u32,
    /// Ship all stacks as well.
    pub check_walks: bool,
}

/// The loaded object.
///
/// Dropping it, or dying, takes everything out of the kernel again.
pub struct Loaded {
    pub sampler: ProgramFd,
    pub samples: RingBuf<MapData>,
    pub counters: PerCpuArray<MapData, u64>,
    pub target_pids: HashMap<MapData, u32, u8>,
    pub target_tids: HashMap<MapData, u32, u8>,
    pub target_uids: HashMap<MapData, u32, u8>,
    pub comm_pids: HashMap<MapData, u32, u8>,
    pub comm_verdicts: HashMap<MapData, [u8; 16], u8>,
    /// Where the walk finds tables and mappings.
    pub tables: BpfMaps,
    /// What could not be had, in words.
    pub notes: Vec<String>,
    /// Instructions the verifier looked at, by program.
    pub verified: Vec<(&'static str, u32)>,
    pub object: Object,
}

/// Keeps the programs that are attached.
pub struct Object(#[expect(dead_code, reason = "held for its Drop")] Ebpf);

/// Loads everything; nothing is sampled yet.
pub fn load(settings: &Settings, target: &Target) -> Result<Loaded, Error> {
    let conditions = conditions(target);
    let cgroup = target
        .cgroup
        .as_ref()
        .map_or((0, 0), |cgroup| (cgroup.id, cgroup.level));
    let check_walks = u32::from(settings.check_walks);
    let wake_bytes = u64::from(settings.ring_bytes / 4);
    let mut notes = Vec::new();
    let tgid_offset = btf::kernel_offset("task_struct", "tgid");
    // Without it, samples of tasks that end are stacks that cannot be read.
    let flags_offset = btf::kernel_offset("task_struct", "flags").unwrap_or(0);
    let mut loader = EbpfLoader::new();
    // Nothing in the sampler is relocated by BTF; reading the kernel's takes
    // longer than all the rest.
    loader
        .btf(None)
        .override_global("FILTER", &conditions, true)
        .override_global("MAX_USER_FRAMES", &settings.max_user_frames, true)
        .override_global("CGROUP_ID", &cgroup.0, true)
        .override_global("CGROUP_LEVEL", &cgroup.1, true)
        .override_global("WAKE_BYTES", &wake_bytes, true)
        .override_global("CHECK_WALKS", &check_walks, true)
        .override_global("TASK_TGID_OFFSET", tgid_offset.as_ref().unwrap_or(&0), true)
        .override_global("TASK_FLAGS_OFFSET", &flags_offset, true)
        .map_max_entries("SAMPLES", settings.ring_bytes)
        .map_max_entries("RULE_CACHE", cpus::possible())
        .map_max_entries("RAW_SCRATCH", cpus::possible());
    let mut object = loader.load(OBJECT).map_err(Error::Load)?;
    let sampler = load_sampler(&mut object)?;
    let mut verified = vec![(tick::PROGRAM, verified_instructions(&object, "sample"))];
    let followers = match tgid_offset {
        Ok(_) => &["follow_exec", "follow_fork"][..],
        Err(error) => {
            notes.push(format!("new processes are found late: {error}"));
            &["follow_exec"]
        }
    };
    for name in followers {
        match attach_follower(&mut object, name) {
            Ok(()) => verified.push((name, verified_instructions(&object, name))),
            Err(error) => notes.push(format!("new processes are found late: {error}")),
        }
    }
    Ok(Loaded {
        sampler,
        samples: take(&mut object, "SAMPLES")?,
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
        notes,
        verified,
        object: Object(object),
    })
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

fn load_sampler(object: &mut Ebpf) -> Result<ProgramFd, Error> {
    let program: &mut PerfEvent = object
        .program_mut(tick::PROGRAM)
        .and_then(|program| program.try_into().ok())
        .ok_or(Error::Foreign("program `tick`"))?;
    let refused = |error| Error::Refused {
        program: tick::PROGRAM,
        reason: last_word(&error),
    };
    program.load().map_err(refused)?;
    program
        .fd()
        .and_then(|fd| Ok(fd.try_clone()?))
        .map_err(refused)
}

/// A follower is called as the tracepoint after `follow_`.
fn attach_follower(object: &mut Ebpf, name: &'static str) -> Result<(), Error> {
    let refused = |error: ProgramError| Error::Refused {
        program: name,
        reason: last_word(&error),
    };
    let program: &mut RawTracePoint = object
        .program_mut(name)
        .and_then(|program| program.try_into().ok())
        .ok_or(Error::Foreign(name))?;
    program.load().map_err(refused)?;
    let tracepoint = name.replace("follow_", "sched_process_");
    program.attach(&tracepoint).map_err(refused)?;
    Ok(())
}

/// What the verifier said last is its reason; the rest is how it got there.
fn last_word(error: &ProgramError) -> String {
    let ProgramError::LoadError {
        io_error,
        verifier_log,
    } = error
    else {
        return error.to_string();
    };
    let log = verifier_log.to_string();
    let said = |line: &&str| !line.trim().is_empty() && !line.starts_with("processed ");
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
