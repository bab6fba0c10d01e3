//! Whether the sampling clocks can be opened: each is opened once, without counting, and closed.

use super::{Finding, kernel};
use rustix::fd::{FromRawFd, OwnedFd};
use std::io;

/// The first version of `struct perf_event_attr`, which every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

const _: () = assert!(size_of::<Attributes>() == 64, "PERF_ATTR_SIZE_VER0");

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const HARDWARE_CPU_CYCLES: u64 = 0;
const SOFTWARE_CPU_CLOCK: u64 = 0;
const FLAG_DISABLED: u64 = 1;
/// `PERF_FLAG_FD_CLOEXEC`, since Linux 3.14.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// Returns whether the kernel opens CPU clocks and hardware counters for this process. Without the
/// rights to sample no event is opened.
pub fn clocks(may_try: bool) -> Vec<Finding> {
    if !may_try {
        return vec![Finding::warn(
            "cpu-clock",
            "CPU clock: not tried without rights",
        )];
    }
    vec![
        judge_clock(
            open(TYPE_SOFTWARE, SOFTWARE_CPU_CLOCK),
            kernel::perf_event_paranoid(),
        ),
        judge_counters(open(TYPE_HARDWARE, HARDWARE_CPU_CYCLES)),
    ]
}

/// The level of `kernel.perf_event_paranoid`, if that is why the kernel opens no clock for us although
/// we have the right to sample: Debian's and Ubuntu's kernels have levels above 2, at which
/// `CAP_PERFMON` does not count.
pub fn level_that_keeps_clocks() -> Option<i32> {
    let level =
        kernel::perf_event_paranoid().filter(|level| kernel::is_of_a_distribution(*level))?;
    let error = open(TYPE_SOFTWARE, SOFTWARE_CPU_CLOCK).err()?;
    is_denied(&error).then_some(level)
}

/// Whether the kernel refuses an event for lack of rights.
fn is_denied(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// A software clock is a timer, which cannot interrupt while interrupts are off.
const CLOCK_IS_THERE: &str = "CPU clock: opened on CPU 0; work with interrupts off is counted \
     where they come on again (_raw_spin_unlock_irqrestore, finish_task_switch)";

fn judge_clock(opened: io::Result<OwnedFd>, paranoid: Option<i32>) -> Finding {
    let error = match opened {
        Ok(_) => return Finding::ok("cpu-clock", CLOCK_IS_THERE),
        Err(error) => error,
    };
    let finding = Finding::fail("cpu-clock", format!("CPU clock: perf_event_open: {error}"));
    let denied = is_denied(&error);
    match (error.raw_os_error(), paranoid) {
        (Some(libc::ENOSYS), _) => finding.fix("use a kernel built with CONFIG_PERF_EVENTS=y"),
        // The levels 3 and 4 of Debian and Ubuntu ignore CAP_PERFMON.
        (_, Some(level)) if denied && kernel::is_of_a_distribution(level) => finding.fix(format!(
            "run as root, or: sudo sysctl kernel.perf_event_paranoid=2  (now {level})"
        )),
        _ => finding.fix("look for a seccomp filter; in a container: --cap-add=PERFMON"),
    }
}

/// Only the software clock is sampled; hardware counters are reported for comparison with perf.
fn judge_counters(opened: io::Result<OwnedFd>) -> Finding {
    match opened {
        Ok(_) => Finding::ok(
            "counters",
            "hardware counters: present; `perf record -e cycles:p` sees work with interrupts off where it is done",
        ),
        Err(_) => Finding::ok(
            "counters",
            "hardware counters: none (virtual machine?); the CPU clock does not need them, but only \
             they see work with interrupts off where it is done",
        ),
    }
}

/// Opens a disabled event on CPU 0, for all processes.
fn open(kind: u32, config: u64) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        flags: FLAG_DISABLED,
        ..Attributes::default()
    };
    let (every_process, cpu, no_group) = (-1, 0, -1);
    // SAFETY: the kernel reads `size` bytes of `attributes`, which is that long
    // and outlives the call.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            every_process,
            cpu,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    match i32::try_from(fd) {
        // SAFETY: the kernel has just given us this descriptor.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn a_denial_names_the_setting_only_where_it_is_to_blame() {
        let denied = || Err(io::Error::from_raw_os_error(libc::EACCES));
        let debian = judge_clock(denied(), Some(3));
        assert_eq!(debian.level, Level::Fail);
        assert!(debian.fix.unwrap().contains("perf_event_paranoid=2"));
        assert!(
            judge_clock(denied(), Some(2))
                .fix
                .unwrap()
                .contains("seccomp")
        );
        let missing = judge_clock(Err(io::Error::from_raw_os_error(libc::ENOSYS)), None);
        assert!(missing.fix.unwrap().contains("CONFIG_PERF_EVENTS"));
    }

    #[test]
    fn missing_counters_are_no_problem() {
        let none = judge_counters(Err(io::Error::from_raw_os_error(libc::ENOENT)));
        assert_eq!(none.level, Level::Ok);
    }

    #[test]
    fn the_clock_of_this_machine_opens() {
        if crate::privilege::Rights::current()
            .unwrap()
            .can_sample()
            .is_err()
        {
            test_support::skip("needs root");
            return;
        }
        assert!(open(TYPE_SOFTWARE, SOFTWARE_CPU_CLOCK).is_ok());
    }
}
