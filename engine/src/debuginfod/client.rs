//! Debug files from debuginfod servers, for those who name servers in
//! `DEBUGINFOD_URLS`, and for nobody else.
//!
//! elfutils' own client speaks to them: proxies, certificates and passwords are
//! its business, a server's bytes are read by a process that is not ours, and a
//! profiler has no use for an HTTP client of its own. What it may take is bounded
//! here all the same, and what it brings counts only if it is the debug file of
//! that build: then it goes into the client's cache, where all tools find it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use probe::privilege::{InvokingUser, UserRights};
use rustix::fs::OFlags;
use rustix::process::{Pid, Resource, Rlimit, Signal};
use symbolize::debuginfod;
use symbolize::object::Object;

const CLIENT: &str = "debuginfod-find";

/// How often the client is looked at.
const NAP: Duration = Duration::from_millis(50);

/// What one file may cost. `DEBUGINFOD_MAXSIZE` and `DEBUGINFOD_MAXTIME` count
/// instead if they are set.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest file.
    pub bytes: u64,
    /// The longest wait for one.
    pub time: Duration,
}

/// Why there is no debug file.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The program that asks servers is not there.
    #[error("`{CLIENT}` is not installed (package debuginfod)")]
    NoClient,
    /// Every server was asked.
    #[error("no server has it")]
    NotThere,
    /// The file is larger than this many bytes.
    #[error("it is larger than {} MiB (DEBUGINFOD_MAXSIZE)", .0 >> 20)]
    TooLarge(u64),
    /// It did not come within this time.
    #[error("it took longer than {} s (DEBUGINFOD_MAXTIME)", .0.as_secs())]
    TooSlow(Duration),
    /// A server sent something else.
    #[error("what came is not the debug file of that build")]
    Wrong,
    /// proftop ends.
    #[error("nobody waits for it any more")]
    Stopped,
    /// A file or a process of our own was in the way.
    #[error("{what}: {source}")]
    Failed {
        /// What was attempted.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Whether servers are named at all.
pub fn is_wanted() -> bool {
    std::env::var_os("DEBUGINFOD_URLS").is_some_and(|urls| !urls.is_empty())
}

/// Fetches the debug file of a build into the client's cache. Returns within
/// the limits, or soon after `stop` is set.
pub fn fetch(build_id: &[u8], limits: Limits, stop: &AtomicBool) -> Result<(), FetchError> {
    let cache = debuginfod::default_cache().ok_or(FetchError::Failed {
        what: "there is no place for it",
        source: io::ErrorKind::NotFound.into(),
    })?;
    let place = ClientCache {
        rights: rights_at(&cache),
        cache,
    };
    fetch_with(CLIENT, &place, build_id, limits.by_environment(), stop)
}

/// The client's cache, and with whose rights it is used.
struct ClientCache {
    cache: PathBuf,
    rights: UserRights,
}

/// Under sudo the environment may name a place of the user who called it: all that is
/// done there, and the client itself, has that user's rights. In root's own home,
/// which is sudo's usual choice, root stays itself.
fn rights_at(cache: &Path) -> UserRights {
    let current = UserRights::current();
    let is_roots = || InvokingUser::find(0, None).is_some_and(|root| cache.starts_with(root.home));
    match current.user() {
        Some(_) if is_roots() => UserRights::own(),
        _ => current.clone(),
    }
}

impl Limits {
    fn by_environment(self) -> Limits {
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        let set = |name| number(name).filter(|&number| number > 0);
        Limits {
            bytes: set("DEBUGINFOD_MAXSIZE").unwrap_or(self.bytes),
            time: set("DEBUGINFOD_MAXTIME").map_or(self.time, Duration::from_secs),
        }
    }
}

/// Fetches with this client into this cache, in these steps, each of which may end it:
///
/// 1. a directory of its own in the cache, in which the client works
/// 2. the client, whose environment says how much it may take, and which is bounded here
/// 3. its end: by itself, or because the time is over or nobody waits
/// 4. what came is looked for where the client would put it, and checked
/// 5. it is moved into the cache
fn fetch_with(
    client: &str,
    ClientCache { cache, rights }: &ClientCache,
    build_id: &[u8],
    limits: Limits,
    stop: &AtomicBool,
) -> Result<(), FetchError> {
    let failed = |what| move |source| FetchError::Failed { what, source };
    let desk =
        Desk::new(cache, rights).map_err(failed("cannot write to the cache of debuginfod"))?;
    let id: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut command = Command::new(client);
    command.args(["debuginfo", &id]);
    // What it needs from our environment it may have, but no word on a screen.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env("DEBUGINFOD_CACHE_PATH", &desk.path)
        .env("DEBUGINFOD_MAXSIZE", limits.bytes.to_string())
        .env("DEBUGINFOD_MAXTIME", limits.time.as_secs().to_string())
        .env_remove("DEBUGINFOD_PROGRESS")
        .env_remove("DEBUGINFOD_VERBOSE");
    rights.apply_to(&mut command);
    let child = command.spawn().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => FetchError::NoClient,
        _ => FetchError::Failed {
            what: "cannot run debuginfod-find",
            source,
        },
    })?;
    let status = Client { child }.wait(limits, stop)?;
    // The kernel ends a process that writes more than its `RLIMIT_FSIZE`.
    if status.signal() == Some(Signal::XFSZ.as_raw()) {
        return Err(FetchError::TooLarge(limits.bytes));
    }
    let came = debuginfod::debug_file(&desk.path, build_id);
    if !status.success() {
        return Err(FetchError::NotThere);
    }
    check(&came, rights, build_id, limits.bytes)?;
    let place = debuginfod::debug_file(cache, build_id);
    rights
        .run(|| put(&came, &place))
        .map_err(failed("cannot write to the cache of debuginfod"))
}

/// A directory in which the client works, so that nothing half done or wrong is
/// left where others look.
struct Desk<'a> {
    path: PathBuf,
    rights: &'a UserRights,
}

impl<'a> Desk<'a> {
    fn new(cache: &Path, rights: &'a UserRights) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = cache.join(format!(".proftop-{}-{number}", std::process::id()));
        let mut make = fs::DirBuilder::new();
        make.mode(0o700);
        rights.run(|| {
            make.recursive(true).create(cache)?;
            make.recursive(false).create(&path)
        })?;
        Ok(Desk { path, rights })
    }
}

impl Drop for Desk<'_> {
    fn drop(&mut self) {
        _ = self.rights.run(|| fs::remove_dir_all(&self.path));
    }
}

/// The running client. It does not outlive its use.
struct Client {
    child: Child,
}

impl Client {
    /// Waits for the client to end, by looking at it every [`NAP`]. It is killed when
    /// `self` is dropped, so also on every error.
    fn wait(mut self, limits: Limits, stop: &AtomicBool) -> Result<ExitStatus, FetchError> {
        self.bound(limits.bytes);
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => {}
                Err(source) => {
                    let what = "cannot wait for debuginfod-find";
                    return Err(FetchError::Failed { what, source });
                }
            }
            if stop.load(Ordering::Relaxed) {
                return Err(FetchError::Stopped);
            }
            if began.elapsed() > limits.time {
                return Err(FetchError::TooSlow(limits.time));
            }
            thread::sleep(NAP);
        }
    }

    /// The client asks a server how much there is; a server need not say so, nor
    /// tell the truth, and packed bytes may become many.
    fn bound(&self, bytes: u64) {
        let limit = Rlimit {
            current: Some(bytes),
            maximum: Some(bytes),
        };
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // One that has ended already needs none.
        _ = rustix::process::prlimit(pid, Resource::Fsize, limit);
        // Behind everything that is being watched.
        _ = rustix::process::setpriority_process(pid, 19);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Whether what came is the debug file of that build. It is opened as a file of a
/// stranger: no link is followed, and a pipe does not make us wait.
fn check(
    came: &Path,
    rights: &UserRights,
    build_id: &[u8],
    bytes_max: u64,
) -> Result<(), FetchError> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let open = || File::options().read(true).custom_flags(flags).open(came);
    let file = rights.run(open).map_err(|_| FetchError::Wrong)?;
    let len = file.metadata().map_or(u64::MAX, |metadata| metadata.len());
    if len > bytes_max {
        return Err(FetchError::TooLarge(bytes_max));
    }
    let object = Object::read(&file).map_err(|_| FetchError::Wrong)?;
    if object.build_id().as_deref() == Some(build_id) {
        Ok(())
    } else {
        Err(FetchError::Wrong)
    }
}

/// Moves a file that was checked into the cache: whole, or not at all.
fn put(came: &Path, place: &Path) -> io::Result<()> {
    if let Some(directory) = place.parent() {
        let mut make = fs::DirBuilder::new();
        make.mode(0o700).recursive(true).create(directory)?;
    }
    // Both are in one file system, so others see all of it or nothing.
    fs::rename(came, place)
}

#[cfg(test)]
mod tests;
