//! The work of the first program of a machine, before and after its own work, if it is the only
//! program: a virtual machine for the self-test runs nothing else.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::process::ExitCode;

/// File systems that sampling reads, and their mount points.
const FILE_SYSTEMS: [(&str, &str); 5] = [
    ("devtmpfs", "/dev"),
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("tmpfs", "/tmp"),
    ("tracefs", "/sys/kernel/tracing"),
];

/// The text on the console before the result.
const ENDED: &str = "selftest ended with";

/// Runs the work. If this is the machine's first program, prepares the machine before, and turns it
/// off afterwards.
pub fn run(work: impl FnOnce() -> ExitCode) -> ExitCode {
    if !is_ours() {
        return work();
    }
    for (kind, path) in FILE_SYSTEMS {
        if let Err(error) = mount(kind, path) {
            println!("{kind} at {path}: {error}");
        }
    }
    println!("\nselftest runs on {}", release_words().trim());
    let code = work();
    println!("{ENDED} {}", u8::from(code != ExitCode::SUCCESS));
    // SAFETY: system calls without memory. The output is already on the console.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
    }
    code
}

fn release_words() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default()
}

/// The first two numbers of the kernel's release.
pub fn release() -> (u32, u32) {
    let words = release_words();
    let mut numbers = words.split('.').map(|number| number.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next())
}

/// Whether this is the first program of a machine, which may change everything.
pub fn is_ours() -> bool {
    std::process::id() == 1
}

fn mount(kind: &str, path: &str) -> io::Result<()> {
    // The directory may exist, or be made by the kernel with what is mounted above it.
    _ = fs::create_dir_all(path);
    let (kind, path) = (CString::new(kind)?, CString::new(path)?);
    // SAFETY: both are strings that end with a zero and outlive the call; no data is passed.
    let done = unsafe {
        libc::mount(
            kind.as_ptr(),
            path.as_ptr(),
            kind.as_ptr(),
            0,
            std::ptr::null(),
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Enables the interface through which a machine sends to itself.
pub fn connect_to_itself() -> io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: all zeros are such a request, without a name and without flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (into, letter) in request.ifr_name.iter_mut().zip(*b"lo") {
        *into = letter as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the call reads the request, which outlives it.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the last CPU, which may be taken out of the machine. Returns None on a machine with fewer
/// than four CPUs, or if this is not the machine's first program.
pub fn spare_cpu() -> Option<u32> {
    let count = fs::read_to_string("/sys/devices/system/cpu/present").unwrap_or_default();
    let last = count.trim().rsplit('-').next().unwrap_or_default();
    let last = last.parse().ok().filter(|last| *last >= 3);
    last.filter(|_| is_ours())
}

/// Takes a CPU out of the machine or puts it back in.
pub fn set_cpu(cpu: u32, is_online: bool) -> io::Result<()> {
    let switch = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    fs::write(switch, if is_online { "1" } else { "0" })
}

/// Makes this thread run on one CPU only.
pub fn stay_on(cpu: u32) -> io::Result<()> {
    let mut cpus = rustix::thread::CpuSet::new();
    cpus.set(cpu as usize);
    Ok(rustix::thread::sched_setaffinity(None, &cpus)?)
}
