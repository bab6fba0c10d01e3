//! What a hit costs on this machine: measured on functions of our own, because a trap
//! costs twenty times as much in some virtual machines as on the bare machine.

use super::caution::may_replace_return_addresses;
use super::{AttachError, Calls, EndPlan, FunctionPlan, Scope, SitePlan};
use probe_ebpf::calls::{Orders, order};
use std::fs::{self, File};
use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// Hits of one measurement, of which there are several; the least is taken: whatever
/// came between made the others longer. Few hits, so that on a machine with other work some
/// measurements end before another program has its turn: a hundred stepped ones take 2 ms.
const HITS: u32 = 10;
const ROUNDS: u32 = 50;

/// Nanoseconds of one hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// A call that is counted, at an instruction that the kernel emulates.
    pub emulated_ns: u64,
    /// The same at one that it runs by a single step.
    pub stepped_ns: u64,
    /// What it costs more if the call is timed.
    pub timed_ns: u64,
    /// What is shown as the time of a call that does nothing, of an emulated and of a
    /// stepped instruction: that much of every time is the probe's own.
    pub floor_ns: u64,
    /// The same of a stepped instruction.
    pub stepped_floor_ns: u64,
}

// Functions whose first instruction is emulated, and some whose first is not. Each has one
// probe in its life: one that is taken away is hit a while longer.
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

// There are no probes on this machine yet (`Machine::has_probes`): nobody calls these.
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
    /// The time of most calls, as the program measured it; 0 if it did not.
    shown_ns: u64,
}

/// `ret`: the call is timed, and its `ret` is so many bytes behind the start.
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
        // We are no target of ours.
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

/// Nanoseconds of one call.
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

/// Where in our own program the code at an address is.
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
