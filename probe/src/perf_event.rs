//! `perf_event_open`: the one call, its attributes, and a descriptor that
//! closes (and with it detaches everything) when dropped.

use crate::bpf_call::bpf;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// `struct perf_event_attr` up to its fifth version (Linux 4.8), which has all fields that are used
/// here.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Attributes {
    /// `type`, one of [`kind`].
    pub kind: u32,
    /// Filled in by [`PerfEvent::open`].
    pub size: u32,
    /// What to count, one of [`kind`] or the number of a tracepoint.
    pub config: u64,
    /// Nanoseconds between two samples of a clock, or for other events their number. With
    /// [`flags::FREQUENCY`] the number of samples per second.
    pub period: u64,
    /// The fields of samples: bits of [`sample_type`].
    pub sample_type: u64,
    /// The format of what is read from the descriptor.
    pub read_format: u64,
    /// Bits of [`flags`].
    pub flags: u64,
    /// When readers are woken: a number of bytes with the flag [`flags::WATERMARK`], else of
    /// events.
    pub wakeup: u32,
    /// Not used (`bp_type`).
    pub breakpoint_kind: u32,
    /// For a breakpoint in a program: the address of its path in this process, ended by a NUL.
    pub config1: u64,
    /// For a breakpoint in a program: its offset in the file.
    pub config2: u64,
    /// Not used.
    pub branch_sample_type: u64,
    /// The user registers in samples, a bit for each.
    pub user_registers: u64,
    /// Bytes of the user stack in samples.
    pub user_stack: u32,
    /// The clock of all times, with the flag [`flags::USE_CLOCK`].
    pub clock: i32,
    /// Not used.
    pub interrupt_registers: u64,
    /// Not used.
    pub aux_watermark: u32,
    /// Maximum number of frames in call chains.
    pub stack_max: u16,
    /// Not used, and 0.
    pub reserved: u16,
}

const ATTRIBUTES_SIZE: usize = 112;
const _: () = {
    assert!(size_of::<Attributes>() == ATTRIBUTES_SIZE);
    assert!(std::mem::offset_of!(Attributes, flags) == 40);
    assert!(std::mem::offset_of!(Attributes, wakeup) == 48);
    assert!(std::mem::offset_of!(Attributes, clock) == 92);
};

/// Returns the period of a clock in nanoseconds.
pub fn period_of(rate_hz: u32) -> u64 {
    1_000_000_000 / u64::from(rate_hz.max(1))
}

/// Values of [`Attributes::kind`] and [`Attributes::config`].
pub mod kind {
    /// `PERF_TYPE_HARDWARE`.
    pub const HARDWARE: u32 = 0;
    /// `PERF_TYPE_SOFTWARE`.
    pub const SOFTWARE: u32 = 1;
    /// `PERF_COUNT_SW_CPU_CLOCK`: its period is in nanoseconds.
    pub const SOFTWARE_CPU_CLOCK: u64 = 0;
    /// `PERF_COUNT_SW_CONTEXT_SWITCHES`: occurs when a thread leaves its CPU.
    pub const SOFTWARE_CONTEXT_SWITCHES: u64 = 3;
    /// `PERF_COUNT_SW_DUMMY`: counts nothing; used for the side band.
    pub const SOFTWARE_DUMMY: u64 = 9;
}

/// Bits of [`Attributes::flags`].
pub mod flags {
    /// The event does not count before it is enabled.
    pub const DISABLED: u64 = 1 << 0;
    /// The event also counts in threads and processes that a task starts.
    pub const INHERIT: u64 = 1 << 1;
    /// The event does not count in the kernel.
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    /// The event does not count while the CPU is idle.
    pub const EXCLUDE_IDLE: u64 = 1 << 7;
    /// Adds records of executable mappings.
    pub const MMAP: u64 = 1 << 8;
    /// Adds records of new thread names.
    pub const COMM: u64 = 1 << 9;
    /// The period is a number of samples per second, which the kernel maintains.
    pub const FREQUENCY: u64 = 1 << 10;
    /// Adds records of fork and exit.
    pub const TASK: u64 = 1 << 13;
    /// `wakeup` is in bytes.
    pub const WATERMARK: u64 = 1 << 14;
    /// All records have time and thread.
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    /// Call chains have no user frames, as the kernel finds those by frame pointers.
    pub const EXCLUDE_USER_CALLCHAIN: u64 = 1 << 22;
    /// Records of mappings have device and inode.
    pub const MMAP2: u64 = 1 << 23;
    /// Records of names show whether they come from exec.
    pub const COMM_EXEC: u64 = 1 << 24;
    /// Times are of the clock in [`Attributes::clock`].
    pub const USE_CLOCK: u64 = 1 << 25;
    /// Adds records of threads that leave a CPU and get one again, also for threads that may not be
    /// sampled there.
    pub const CONTEXT_SWITCH: u64 = 1 << 26;
}

/// Bits of [`Attributes::sample_type`].
pub mod sample_type {
    /// Process and thread.
    pub const TID: u64 = 1 << 1;
    /// The time, by the clock that was requested.
    pub const TIME: u64 = 1 << 2;
    /// The frames of the kernel, and of the user if not excluded.
    pub const CALLCHAIN: u64 = 1 << 5;
    /// The CPU.
    pub const CPU: u64 = 1 << 7;
    /// The user registers that were requested.
    pub const USER_REGISTERS: u64 = 1 << 12;
    /// A copy of the top of the user stack.
    pub const USER_STACK: u64 = 1 << 13;
    /// The control group, since Linux 5.7.
    pub const CGROUP: u64 = 1 << 21;
}

const FLAG_CGROUP: libc::c_ulong = 4;
const FLAG_FD_CLOEXEC: libc::c_ulong = 8;
const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_PERIOD: libc::c_ulong = 0x4008_2404;
const IOC_DISABLE: libc::c_ulong = 0x2401;
const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;
const IOC_SET_BPF: libc::c_ulong = 0x4004_2408;

/// As in uapi/linux/bpf.h.
const LINK_CREATE: u32 = 28;
const ATTACH_PERF_EVENT: u32 = 41;

/// `union bpf_attr` of BPF_LINK_CREATE, for perf events.
#[repr(C)]
struct LinkCreate {
    program: u32,
    target: u32,
    kind: u32,
    flags: u32,
    cookie: u64,
}

/// The tasks that an event is for.
#[derive(Debug, Clone, Copy)]
pub enum Tasks<'a> {
    /// All tasks.
    All,
    /// One thread, by its number.
    One(u32),
    /// The tasks of a control group, by its open directory.
    Of(BorrowedFd<'a>),
}

/// An open event on one CPU.
#[derive(Debug)]
pub struct PerfEvent {
    fd: OwnedFd,
}

impl PerfEvent {
    /// Opens an event, which counts from when it is enabled.
    pub fn open(attributes: Attributes, tasks: Tasks<'_>, cpu: u32) -> io::Result<Self> {
        Self::open_on(attributes, tasks, cpu.cast_signed())
    }

    /// Opens an event of one process, on whichever CPU it runs.
    pub fn open_anywhere(attributes: Attributes, pid: u32) -> io::Result<Self> {
        Self::open_on(attributes, Tasks::One(pid), -1)
    }

    fn open_on(mut attributes: Attributes, tasks: Tasks<'_>, cpu: i32) -> io::Result<Self> {
        attributes.size = ATTRIBUTES_SIZE as u32;
        let (task, flags) = match tasks {
            Tasks::All => (-1, 0),
            Tasks::One(tid) => (tid.cast_signed(), 0),
            Tasks::Of(cgroup) => (cgroup.as_raw_fd(), FLAG_CGROUP),
        };
        let no_group: libc::c_int = -1;
        // SAFETY: the attributes outlive the call and their size is in them.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                task,
                cpu,
                no_group,
                FLAG_FD_CLOEXEC | flags,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just gave us this descriptor.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        Ok(Self { fd })
    }

    /// Runs `program` at each overflow. The program is detached when the event is closed.
    pub fn attach(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        self.ioctl(IOC_SET_BPF, program.as_raw_fd() as libc::c_ulong)
    }

    /// Redirects records into the ring of another event of the same CPU.
    pub fn write_to_ring_of(&self, other: BorrowedFd<'_>) -> io::Result<()> {
        self.ioctl(IOC_SET_OUTPUT, other.as_raw_fd() as libc::c_ulong)
    }

    /// Runs `program` at each hit, and passes `cookie` to it, as long as the link exists (Linux
    /// 5.15).
    pub fn link(&self, program: BorrowedFd<'_>, cookie: u64) -> io::Result<OwnedFd> {
        let mut request = LinkCreate {
            program: program.as_raw_fd().cast_unsigned(),
            target: self.fd.as_raw_fd().cast_unsigned(),
            kind: ATTACH_PERF_EVENT,
            flags: 0,
            cookie,
        };
        // SAFETY: the arm of that command; it has no addresses.
        let fd = unsafe { bpf(LINK_CREATE, &mut request) }?;
        // SAFETY: the call made this descriptor, and nobody else has it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Returns how often the event has occurred; of a clock the nanoseconds that it has counted.
    pub fn count(&self) -> io::Result<u64> {
        let mut bytes = [0u8; 8];
        let read = rustix::io::read(&self.fd, &mut bytes)?;
        match read {
            8 => Ok(u64::from_ne_bytes(bytes)),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Starts to count.
    pub fn enable(&self) -> io::Result<()> {
        self.ioctl(IOC_ENABLE, 0)
    }

    /// Stops counting until it is enabled again.
    pub fn disable(&self) -> io::Result<()> {
        self.ioctl(IOC_DISABLE, 0)
    }

    /// Sets another [period](Attributes::period). The copies that tasks inherited keep theirs.
    pub fn set_period(&self, period: u64) -> io::Result<()> {
        // SAFETY: the request reads one number of 64 bits from where it points to.
        let result = unsafe { libc::ioctl(self.fd.as_raw_fd(), IOC_PERIOD, &raw const period) };
        checked(result)
    }

    fn ioctl(&self, request: libc::c_ulong, argument: libc::c_ulong) -> io::Result<()> {
        // SAFETY: the requests that come here take a number, no pointer.
        let result = unsafe { libc::ioctl(self.fd.as_raw_fd(), request, argument) };
        checked(result)
    }
}

fn checked(result: libc::c_int) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl AsFd for PerfEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
