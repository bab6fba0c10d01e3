//! A file system whose server is this test. It answers until the test lets it hang; then it takes
//! requests without an answer, and a process that made one cannot even be killed.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The only file in it.
pub const PROGRAM: &str = "prog";

/// Numbers of the nodes.
const ROOT: u64 = 1;
const FILE: u64 = 2;

/// Requests, as `linux/fuse.h` numbers them.
mod op {
    pub const LOOKUP: u32 = 1;
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const READLINK: u32 = 5;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const STATFS: u32 = 17;
    pub const RELEASE: u32 = 18;
    pub const FLUSH: u32 = 25;
    pub const INIT: u32 = 26;
    pub const OPENDIR: u32 = 27;
    pub const READDIR: u32 = 28;
    pub const ACCESS: u32 = 34;
    pub const INTERRUPT: u32 = 36;
    pub const BATCH_FORGET: u32 = 42;
}

/// Requests that only a process which looks at files makes, and not the programs that run there.
const CURIOUS: [u32; 7] = [
    op::LOOKUP,
    op::GETATTR,
    op::READLINK,
    op::OPEN,
    op::STATFS,
    op::OPENDIR,
    op::ACCESS,
];

const ENOENT: i32 = 2;
const ENOSYS: i32 = 38;

#[derive(Debug, Default)]
struct FuseState {
    hangs: AtomicBool,
    ends: AtomicBool,
    /// Requests of [`CURIOUS`] without an answer: number, pid and command line of the process.
    unanswered: Mutex<Vec<String>>,
}

/// The mount. When it is dropped, processes that wait for it go on, with an error.
pub struct Fuse {
    directory: tempfile::TempDir,
    state: Arc<FuseState>,
    server: Option<JoinHandle<()>>,
}

impl Fuse {
    /// Mounts it with these bytes as its program. Returns an error that says why it cannot.
    pub fn mount(program: Vec<u8>) -> Result<Self, String> {
        let device = File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .map_err(|error| format!("/dev/fuse: {error}"))?;
        let directory = tempfile::tempdir().expect("a directory");
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other",
            device.as_raw_fd()
        );
        let options = std::ffi::CString::new(options).expect("no zero in it");
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount(
            "test",
            directory.path(),
            "fuse.test",
            flags,
            Some(&*options),
        )
        .map_err(|error| format!("a FUSE mount: {error}"))?;
        let state = Arc::<FuseState>::default();
        let shared = state.clone();
        let server = std::thread::spawn(move || serve(device, &program, &shared));
        Ok(Self {
            directory,
            state,
            server: Some(server),
        })
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn program(&self) -> PathBuf {
        self.path().join(PROGRAM)
    }

    /// Makes the file system answer nothing from now on.
    pub fn hang(&self) {
        self.state.hangs.store(true, Ordering::SeqCst);
    }

    /// Returns the requests of processes that have looked at files since then.
    pub fn unanswered(&self) -> Vec<String> {
        self.state.unanswered.lock().expect("no panic").clone()
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        self.state.ends.store(true, Ordering::SeqCst);
        // With the device the connection is closed, and no process waits any more.
        _ = self.server.take().map(JoinHandle::join);
        _ = unmount(self.directory.path(), UnmountFlags::DETACH);
    }
}

fn serve(mut device: File, program: &[u8], state: &FuseState) {
    let mut buffer = vec![0; 1 << 20];
    let nap = Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    while !state.ends.load(Ordering::SeqCst) {
        let mut ready = [PollFd::new(&device, PollFlags::IN)];
        if !poll(&mut ready, Some(&nap)).is_ok_and(|ready| ready > 0) {
            continue;
        }
        let Ok(len) = device.read(&mut buffer) else {
            continue;
        };
        let Some(request) = Request::read(&buffer[..len]) else {
            continue;
        };
        if state.hangs.load(Ordering::SeqCst) {
            if CURIOUS.contains(&request.op) {
                let who = std::fs::read_to_string(format!("/proc/{}/cmdline", request.pid))
                    .unwrap_or_default()
                    .replace('\0', " ");
                let who = format!("request {} of {} {who}", request.op, request.pid);
                state.unanswered.lock().expect("no panic").push(who);
            }
            continue;
        }
        if let Some(answer) = request.answer(program) {
            _ = device.write_all(&answer);
        }
    }
}

/// `struct fuse_in_header`, and what follows it.
struct Request<'a> {
    op: u32,
    unique: u64,
    node: u64,
    pid: u32,
    body: &'a [u8],
}

impl<'a> Request<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        Some(Self {
            op: (word(0)? >> 32) as u32,
            unique: word(8)?,
            node: word(16)?,
            pid: word(32)? as u32,
            body: bytes.get(40..)?,
        })
    }

    /// Returns the answer to the request. Returns None if the kernel expects none.
    fn answer(&self, program: &[u8]) -> Option<Vec<u8>> {
        let len = program.len();
        let (error, body) = match self.op {
            // Version 7.31, read-ahead, write size; the rest is off.
            op::INIT => (
                0,
                words(&[7, 31, 65_536, 0, 0, 131_072, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            ),
            op::LOOKUP if self.body.strip_suffix(&[0]) == Some(PROGRAM.as_bytes()) => {
                // Node, generation, and how long name and attributes hold: not at all.
                let entry = [FILE, 0, 0, 0, 0].map(u64::to_le_bytes).concat();
                (0, [entry, attributes(FILE, len)].concat())
            }
            op::LOOKUP => (-ENOENT, Vec::new()),
            op::GETATTR => (0, [vec![0; 16], attributes(self.node, len)].concat()),
            op::OPEN | op::OPENDIR => (0, vec![0; 16]),
            op::READ => {
                let offset = self.body.get(8..)?.first_chunk()?;
                let size = self.body.get(16..)?.first_chunk()?;
                let start = (u64::from_le_bytes(*offset) as usize).min(len);
                let end = (start + u32::from_le_bytes(*size) as usize).min(len);
                (0, program[start..end].to_vec())
            }
            op::STATFS => (0, vec![0; 80]),
            op::RELEASE | op::FLUSH | op::READDIR => (0, Vec::new()),
            op::FORGET | op::BATCH_FORGET | op::INTERRUPT => return None,
            _ => (-ENOSYS, Vec::new()),
        };
        let whole = 16 + body.len() as u32;
        let header = [&whole.to_le_bytes()[..], &error.to_le_bytes()[..]].concat();
        Some([header, self.unique.to_le_bytes().to_vec(), body].concat())
    }
}

/// `struct fuse_attr`: inode, size, blocks, times, mode, links, owner, device, block size.
fn attributes(node: u64, len: usize) -> Vec<u8> {
    let (mode, len) = if node == ROOT {
        (0o41_777, 0)
    } else {
        (0o100_755, len as u64)
    };
    let long = [node, len, len.div_ceil(512), 0, 0, 0]
        .map(u64::to_le_bytes)
        .concat();
    [long, words(&[0, 0, 0, mode, 1, 0, 0, 0, 4096, 0])].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
