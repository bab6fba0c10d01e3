//! Probes at tracepoints of the kernel: each has a program of its own, which is loaded when it is
//! first needed.

use super::AttachError;
use crate::bpf_call::bpf;
use crate::error::Error;
use aya::programs::ProgramFd;
use probe_ebpf::calls::{FIRST_POINT, POINT_ARGUMENTS_MAX, POINTS_MAX, PROBES_MAX};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// As in uapi/linux/bpf.h.
const PROG_TEST_RUN: u32 = 10;
const OBJ_GET_INFO_BY_FD: u32 = 15;
const RAW_TRACEPOINT_OPEN: u32 = 17;
const ENABLE_STATS: u32 = 32;
const STATS_RUN_TIME: u32 = 0;

/// Number of runs of one measurement of the cost of a hit. There are several measurements, and the
/// lowest result counts.
const RUNS: u32 = 40;
const ROUNDS: u32 = 5;

/// The numbers of probes at tracepoints, from the highest on, because functions use the lowest.
pub fn numbers() -> impl Iterator<Item = u8> {
    (FIRST_POINT as u8..PROBES_MAX as u8).rev()
}

/// Loads the program with this index among those for tracepoints. An error if the source of
/// samples, which owns the object, is gone.
pub type Load = Box<dyn Fn(usize) -> Result<ProgramFd, Error> + Send>;

/// The programs for tracepoints.
#[derive(Default)]
pub struct Points {
    /// `None` before the object is complete.
    load: Option<Load>,
    /// The loaded programs, by the number of their probe.
    loaded: BTreeMap<u8, ProgramFd>,
}

impl Points {
    /// Starts with no program loaded.
    pub fn loaded_by(load: Load) -> Self {
        Self {
            load: Some(load),
            loaded: BTreeMap::new(),
        }
    }

    /// Loads the program for a number.
    pub fn load(&mut self, number: u8) -> Result<(), Error> {
        if self.loaded.contains_key(&number) {
            return Ok(());
        }
        let load = self.load.as_ref().ok_or(Error::NoCalls)?;
        let place = usize::from(number).wrapping_sub(FIRST_POINT) % POINTS_MAX;
        let program = load(place)?;
        self.loaded.insert(number, program);
        Ok(())
    }

    /// Runs the program for this number at each pass of the tracepoint, until the descriptor is
    /// closed.
    pub fn attach(&self, number: u8, tracepoint: &str) -> Result<OwnedFd, AttachError> {
        let refused = |source| AttachError::Point {
            name: tracepoint.into(),
            source,
        };
        let name = CString::new(tracepoint).map_err(|error| refused(error.into()))?;
        let program = self.program(number).map_err(refused)?;
        #[repr(C)]
        struct Open {
            name: u64,
            program: u32,
            unused: u32,
        }
        let mut request = Open {
            name: name.as_ptr() as u64,
            program: program.as_fd().as_raw_fd() as u32,
            unused: 0,
        };
        // SAFETY: the arm of that command; the name lives until the call is over.
        let link = unsafe { bpf(RAW_TRACEPOINT_OPEN, &mut request) }.map_err(refused)?;
        // SAFETY: the kernel has just made it, and nobody else knows it.
        Ok(unsafe { OwnedFd::from_raw_fd(link) })
    }

    /// Number of hits since loading for which the kernel did not run the program of this number,
    /// because it was already running on that CPU. 0 before Linux 5.12, which does not count them.
    pub fn missed(&self, number: u8) -> u64 {
        self.program(number)
            .map_or(0, |program| recursion_misses(program.as_fd()))
    }

    /// Number of instructions that the verifier processed. 0 before Linux 5.16, which does not
    /// provide it.
    pub fn verified(&self, number: u8) -> u32 {
        let program = self.program(number);
        program.map_or(0, |program| verified_instructions(program.as_fd()))
    }

    /// Measures the cost of a hit with the program's current orders, in nanoseconds: the program is
    /// run on its own, and the kernel measures the time. The kernel's overhead for calling it, some
    /// tens of nanoseconds, is not included.
    pub fn cost_ns(&self, number: u8) -> io::Result<u64> {
        let program = self.program(number)?;
        let _stats = enable_stats()?;
        let mut least = u64::MAX;
        for _ in 0..ROUNDS {
            let before = run_info(program.as_fd())?;
            for _ in 0..RUNS {
                test_run(program)?;
            }
            let after = run_info(program.as_fd())?;
            let runs = after.run_cnt.saturating_sub(before.run_cnt);
            let spent_ns = after.run_time_ns.saturating_sub(before.run_time_ns);
            if let Some(each) = spent_ns.checked_div(runs) {
                least = least.min(each);
            }
        }
        match least {
            u64::MAX => Err(io::Error::other("the kernel did not count its runs")),
            least => Ok(least),
        }
    }

    fn program(&self, number: u8) -> io::Result<&ProgramFd> {
        let program = self.loaded.get(&number);
        program.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Number of times since loading that the kernel did not run a program because it was already
/// running on that CPU. 0 before Linux 5.12, which does not count them.
pub fn recursion_misses(program: BorrowedFd<'_>) -> u64 {
    run_info(program).map_or(0, |info| info.recursion_misses)
}

/// The last part of `struct bpf_prog_info`, after the fields about code and lines.
#[repr(C)]
#[derive(Clone, Copy)]
struct RunInfo {
    before: [u64; 24],
    run_time_ns: u64,
    run_cnt: u64,
    recursion_misses: u64,
    verified_insns: u32,
    behind: u32,
}

const _: () = assert!(std::mem::offset_of!(RunInfo, run_time_ns) == 192);

fn run_info(program: BorrowedFd<'_>) -> io::Result<RunInfo> {
    #[repr(C)]
    struct InfoByFd {
        fd: u32,
        len: u32,
        info: u64,
    }
    // Zeros in the first part request no arrays.
    let mut info = RunInfo {
        before: [0; 24],
        run_time_ns: 0,
        run_cnt: 0,
        recursion_misses: 0,
        verified_insns: 0,
        behind: 0,
    };
    let mut request = InfoByFd {
        fd: program.as_raw_fd() as u32,
        len: size_of::<RunInfo>() as u32,
        info: std::ptr::from_mut(&mut info) as u64,
    };
    // SAFETY: the arm of that command; `info` has room for as much as it says, and zeros name
    // no other memory.
    unsafe { bpf(OBJ_GET_INFO_BY_FD, &mut request) }?;
    Ok(info)
}

/// Number of instructions of a program that the verifier processed. 0 before Linux 5.16, which does
/// not provide it.
pub(crate) fn verified_instructions(program: BorrowedFd<'_>) -> u32 {
    run_info(program).map_or(0, |info| info.verified_insns)
}

/// Makes the kernel measure how long programs run, until the descriptor is closed.
fn enable_stats() -> io::Result<OwnedFd> {
    let mut kind = STATS_RUN_TIME;
    // SAFETY: the arm of that command is one number.
    let stats = unsafe { bpf(ENABLE_STATS, &mut kind) }?;
    // SAFETY: the kernel has just made it, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(stats) })
}

/// Runs a program once, with zeros as arguments.
fn test_run(program: &ProgramFd) -> io::Result<()> {
    #[repr(C)]
    #[derive(Default)]
    struct TestRun {
        program: u32,
        answer: u32,
        data_sizes: [u32; 2],
        data: [u64; 2],
        repeat: u32,
        duration: u32,
        context_bytes: u32,
        context_out_bytes: u32,
        context: u64,
        context_out: u64,
        flags: u32,
        cpu: u32,
    }
    let arguments = [0u64; POINT_ARGUMENTS_MAX];
    let mut request = TestRun {
        program: program.as_fd().as_raw_fd() as u32,
        context_bytes: size_of_val(&arguments) as u32,
        context: arguments.as_ptr() as u64,
        ..TestRun::default()
    };
    // SAFETY: the arm of that command; the arguments live until the call is over.
    unsafe { bpf(PROG_TEST_RUN, &mut request) }.map(|_| ())
}
