//! Measures the cost of a hit on this machine, on functions of our own: a trap costs twenty times
//! as much in some virtual machines as on the bare machine.

use super::caution::may_replace_return_addresses;
use super::{AttachError, Calls, EndPlan, FunctionPlan, Scope, SitePlan};
use probe_ebpf::calls::{Orders, order};
use std::fs::{self, File};
use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// Number of hits of one measurement. There are several measurements, and the shortest one counts:
/// the others were disturbed. Few hits, so that on a busy machine some measurements end before
/// another program runs: a hundred stepped ones take 2 ms.
const HITS: u32 = 10;
const ROUNDS: u32 = 50;

/// Costs of one hit, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// A call that is counted, at an instruction that the kernel emulates.
    pub emulated_ns: u64,
    /// A call that is counted, at an instruction that the kernel single-steps.
    pub stepped_ns: u64,
    /// The additional cost if the call is timed.
    pub timed_ns: u64,
    /// The time that is displayed for a call that does nothing, at an emulated instruction: this
    /// much of every time is overhead of the probe.
    pub floor_ns: u64,
    /// The time that is displayed for a call that does nothing, at a single-stepped instruction.
    pub stepped_floor_ns: u64,
}

// Functions whose first instruction is emulated, and some whose first is not. Each has one probe in
// its life: a removed probe is hit a while longer.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text",
    ".balign 16",
    "proftop_emulated_call:",
    "push rbp",
    "mov rbp, rsp",
    "pop rbp",
    "ret",
    ".balign 16",
    "proftop_emulated_timed_call:",
    "push rbp",
    "mov rbp, rsp",
    "pop rbp",
    "ret",
    ".balign 16",
    "proftop_stepped_call:",
    "lea rax, [rdi + 1]",
    "ret",
    ".balign 16",
    "proftop_stepped_timed_call:",
    "lea rax, [rdi + 1]",
    "ret",
    ".balign 16",
    ".popsection",
);

// This machine does not support probes yet (`Machine::has_probes`): these are not called.
#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".pushsection .text",
    ".balign 16",
    "proftop_emulated_call:",
    "proftop_emulated_timed_call:",
    "proftop_stepped_call:",
    "proftop_stepped_timed_call:",
    "add x0, x0, #1",
    "ret",
    ".popsection",
);

unsafe extern "C" {
    fn proftop_emulated_call(number: u64) -> u64;
    fn proftop_emulated_timed_call(number: u64) -> u64;
    fn proftop_stepped_call(number: u64) -> u64;
    fn proftop_stepped_timed_call(number: u64) -> u64;
}

/// Measures all costs; the probes for that stay in place until the caller removes them.
pub fn measure(calls: &mut Calls) -> Result<Cost, AttachError> {
    let file = File::open("/proc/self/exe").map_err(AttachError::Cost)?;
    let file = Arc::new(file);
    let mut costs = |function, ret| cost_of(calls, &file, function, ret);
    let emulated = costs(proftop_emulated_call, None)?;
    let stepped = costs(proftop_stepped_call, None)?;
    let timed = costs(proftop_emulated_timed_call, Some(5))?;
    let stepped_timed = costs(proftop_stepped_timed_call, Some(4))?;
    Ok(Cost {
        emulated_ns: emulated.hit_ns,
        stepped_ns: stepped.hit_ns,
        timed_ns: timed.hit_ns.saturating_sub(emulated.hit_ns),
        floor_ns: timed.shown_ns,
        stepped_floor_ns: stepped_timed.shown_ns,
    })
}

type Function = unsafe extern "C" fn(u64) -> u64;

/// One measurement.
struct Measured {
    hit_ns: u64,
    /// The time of most calls, as measured by the program; 0 if it was not.
    shown_ns: u64,
}

/// Measures one function. `ret`: the call is timed, and its `ret` is at this offset from the start.
fn cost_of(
    calls: &mut Calls,
    file: &Arc<File>,
    function: Function,
    ret: Option<u64>,
) -> Result<Measured, AttachError> {
    let offset = offset_of(function as usize as u64).map_err(AttachError::Cost)?;
    let bare_ns = time(function);
    let site = |offset| SitePlan {
        offset,
        pushed: 0,
        unless_taken: false,
        semaphore: None,
    };
    let plan = FunctionPlan {
        file: Arc::clone(file),
        entry: site(offset),
        ends: match ret {
            None => EndPlan::Unseen,
            Some(_) if may_replace_return_addresses() => EndPlan::Replaced,
            Some(ret) => EndPlan::At(vec![site(offset + ret)]),
        },
        is_go: false,
    };
    let orders = Orders {
        // Our own process is not a target.
        flags: order::EVERYBODY | if ret.is_some() { order::TIMED } else { 0 },
        ..Orders::default()
    };
    let scope = Scope::Processes(vec![std::process::id()]);
    let number = calls.place(&[plan], &orders, &scope)?;
    calls.measuring.push(number);
    let probed_ns = time(function);
    let reading = calls.read(number).map_err(AttachError::Cost)?;
    let shown = reading.quantile(0.5).unwrap_or_default();
    Ok(Measured {
        hit_ns: probed_ns.saturating_sub(bare_ns),
        shown_ns: shown.0 + (shown.1 - shown.0) / 2,
    })
}

/// Returns the time of one call in nanoseconds.
fn time(function: Function) -> u64 {
    let round = |_| {
        let start = Instant::now();
        for number in 0..HITS {
            // SAFETY: the functions above take and give a number, and keep to the
            // calling convention.
            black_box(unsafe { function(black_box(u64::from(number))) });
        }
        start.elapsed().as_nanos() as u64 / u64::from(HITS)
    };
    (0..ROUNDS).map(round).min().unwrap_or(0)
}

/// Returns the file offset in our own program of the code at an address.
fn offset_of(address: u64) -> io::Result<u64> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let offset = maps.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let offset = fields.nth(1)?;
        let hex = |digits| u64::from_str_radix(digits, 16).ok();
        let (start, end) = (hex(start)?, hex(end)?);
        (start <= address && address < end).then_some(address - start + hex(offset)?)
    });
    offset.ok_or_else(|| io::ErrorKind::NotFound.into())
}
