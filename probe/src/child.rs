//! A *held command*: a child process that exists, with its user, its files and its pid, but has not
//! begun to run its program. So sampling can be set up before its first instruction.
//!
//! ```text
//! hold_command ──► HeldCommand ──release──► RunningCommand ──wait──► exit code
//!                      │ drop: the child ends, nothing was run
//! ```
//!
//! Between fork and exec the child waits on a pipe. `Command::spawn` returns only after exec, so it
//! runs on a thread of its own; the child sends its pid through a second pipe.

use crate::privilege::{Identity, InvokingUser};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

/// The standard streams of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// For when proftop shows its screen: input is empty, both outputs are pipes to us. The command
    /// gets a session of its own, so that it cannot reach the terminal through `/dev/tty`, and a
    /// process group that [`RunningCommand::terminate`] ends as a whole.
    Captured,
    /// For when our standard output has a report: the command's output goes to our standard error
    /// instead. It stays in our process group, so ^C reaches it from the terminal as usual; the
    /// waiting process has to survive that signal.
    OutputToStderr,
    /// For when our output goes to a file: the command has our standard output, as if it had been
    /// started without us. It stays in our process group, too.
    Shared,
}

/// Why a command did not start; it determines the exit code, as for `env`.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no such file in any directory of `PATH`.
    #[error("command not found: {program}")]
    NotFound {
        /// The program as typed.
        program: String,
    },
    /// There is such a file, but the kernel does not execute it.
    #[error("cannot run {program}: {source}")]
    NotExecutable {
        /// The program as typed.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// No process could be created for it.
    #[error("cannot start {program}: {source}")]
    Failed {
        /// The program as typed.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl StartError {
    /// Returns the exit code that shells use for such a failure.
    pub fn exit_code(&self) -> u8 {
        match self {
            StartError::NotFound { .. } => 127,
            StartError::NotExecutable { .. } => 126,
            StartError::Failed { .. } => 125,
        }
    }
}

/// Creates the child and leaves it waiting. `user` is the user it runs as; `None` for our own.
pub fn hold_command(
    program: OsString,
    args: Vec<OsString>,
    user: Option<&InvokingUser>,
    streams: Streams,
) -> Result<HeldCommand, StartError> {
    let name = program.to_string_lossy().into_owned();
    // exec would fail in the same way, but only after everything else is set up and, for example,
    // an output file has been replaced.
    if !is_found(&program) {
        return Err(StartError::NotFound { program: name });
    }
    let failed = |source: io::Error| StartError::Failed {
        program: name.clone(),
        source,
    };
    let mut command = Command::new(program);
    command.args(args);
    set_streams(&mut command, streams);
    if let Some(user) = user {
        command.env("HOME", &user.home);
        command.env("USER", &user.name).env("LOGNAME", &user.name);
    }

    let (pid_read, pid_write) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
    let (go_read, go_write) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
    let gate = Gate {
        identity: user.map(Identity::of),
        own_session: streams == Streams::Captured,
        pid_write,
        go_read,
        go_write_in_parent: go_write.as_raw_fd(),
    };
    // SAFETY: the closure runs between fork and exec, where other threads'
    // locks may be held for ever. It makes system calls only: it allocates
    // nothing, and takes no lock.
    unsafe { command.pre_exec(move || gate.pass()) };

    let spawner = std::thread::Builder::new()
        .name("command".into())
        .spawn(move || {
            let started = faults::catch("starting a command", || command.spawn());
            started.unwrap_or_else(|fault| Err(io::Error::other(fault.to_string())))
        })
        .map_err(&failed)?;
    match read_pid(&pid_read) {
        Some(pid) => Ok(HeldCommand {
            pid,
            name,
            go: Some(go_write),
            spawner: Some(spawner),
        }),
        // The pipe was closed instead: the child ended before writing its pid.
        None => match join(spawner) {
            Ok(_) => Err(failed(io::Error::other("it did not report its pid"))),
            Err(source) => Err(failed(source)),
        },
    }
}

/// Returns the files that exec tries for a program: the named one, if the name contains a `/`, else
/// one in each directory of `PATH`.
pub fn candidates(program: &OsStr) -> Vec<PathBuf> {
    if has_folder(program) {
        return vec![program.into()];
    }
    // The C library's default if the variable is missing.
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let folders = std::env::split_paths(&path);
    folders.map(|folder| folder.join(program)).collect()
}

fn has_folder(program: &OsStr) -> bool {
    program.as_encoded_bytes().contains(&b'/')
}

/// Whether there is a file that exec would try for this program.
fn is_found(program: &OsStr) -> bool {
    // A directory is not a program either, but exec gives the better error message for a named
    // directory. The same is true for anything else that cannot be checked.
    let is_tried = |path: PathBuf| match path.metadata() {
        Ok(found) => !found.is_dir() || has_folder(program),
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    };
    candidates(program).into_iter().any(is_tried)
}

/// A child that waits for [`HeldCommand::release`].
#[derive(Debug)]
pub struct HeldCommand {
    pid: u32,
    name: String,
    /// Closing it without writing makes the child end.
    go: Option<OwnedFd>,
    spawner: Option<JoinHandle<io::Result<Child>>>,
}

impl HeldCommand {
    /// The pid, which does not change with exec.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the program begin. Returns when it has begun, or the reason why the kernel does not
    /// execute it.
    pub fn release(mut self) -> Result<RunningCommand, StartError> {
        if let Some(go) = self.go.take() {
            // This fails only if the child has ended, and then spawn's error is more informative.
            let _ = rustix::io::write(&go, &[1]);
        }
        let spawner = self.spawner.take().expect("taken only here and in drop");
        match join(spawner) {
            Ok(child) => Ok(RunningCommand { child }),
            Err(source) => Err(exec_error(std::mem::take(&mut self.name), source)),
        }
    }
}

impl Drop for HeldCommand {
    fn drop(&mut self) {
        drop(self.go.take());
        // `spawn` reaps a child that did not reach exec.
        if let Some(spawner) = self.spawner.take() {
            let _ = join(spawner);
        }
    }
}

/// A command whose program is running.
///
/// Dropping it leaves the program alone: it continues to run, unless the user who quits requests
/// [`terminate`](Self::terminate).
#[derive(Debug)]
pub struct RunningCommand {
    child: Child,
}

impl RunningCommand {
    /// The process id of the command.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Takes the pipes of [`Streams::Captured`]; possible once.
    pub fn take_output(&mut self) -> Option<(ChildStdout, ChildStderr)> {
        Some((self.child.stdout.take()?, self.child.stderr.take()?))
    }

    /// Waits until the command ends.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// How the command ended; `None` while it runs.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Sends SIGTERM to the command; returns false if it has already ended. With
    /// [`Streams::Captured`] this reaches all of its process group.
    pub fn terminate(&mut self) -> io::Result<bool> {
        // Until it is reaped, its pid cannot be reused.
        if self.child.try_wait()?.is_some() {
            return Ok(false);
        }
        let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) else {
            return Ok(false);
        };
        let leads_group = rustix::process::getpgid(Some(pid)) == Ok(pid);
        // A stopped process does not handle SIGTERM until it is continued.
        for signal in [Signal::TERM, Signal::CONT] {
            if leads_group {
                rustix::process::kill_process_group(pid, signal)?;
            } else {
                rustix::process::kill_process(pid, signal)?;
            }
        }
        Ok(true)
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // Reaps it if it has ended, so that no zombie is left.
        let _ = self.child.try_wait();
    }
}

/// Returns the exit code that a shell would show: the command's own, or 128 + the signal.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    // wait without WUNTRACED returns one of the two.
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255)
}

/// What the child does before exec.
struct Gate {
    identity: Option<Identity>,
    own_session: bool,
    pid_write: OwnedFd,
    go_read: OwnedFd,
    go_write_in_parent: i32,
}

impl Gate {
    /// Waits for the parent. Makes system calls only.
    fn pass(&self) -> io::Result<()> {
        if self.own_session {
            rustix::process::setsid()?;
        }
        if let Some(identity) = &self.identity {
            identity.take_on()?;
        }
        // SAFETY: this number is the child's copy of the parent's end, which
        // nobody in the child uses. While it is open, the parent's death would
        // not end the read below.
        unsafe { rustix::io::close(self.go_write_in_parent) };
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        rustix::io::write(&self.pid_write, &pid.to_ne_bytes())?;
        match read_byte(&self.go_read)? {
            Some(_) => Ok(()),
            None => Err(io::Error::from_raw_os_error(libc::ECANCELED)),
        }
    }
}

fn set_streams(command: &mut Command, streams: Streams) {
    match streams {
        Streams::Captured => command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped()),
        Streams::OutputToStderr => command.stdout(io::stderr()),
        Streams::Shared => command,
    };
}

fn read_pid(pipe: &OwnedFd) -> Option<u32> {
    // A pipe gives so small a write whole or not at all, see pipe(7).
    let mut bytes = [0; 4];
    loop {
        match rustix::io::read(pipe, &mut bytes) {
            Ok(4) => return Some(u32::from_ne_bytes(bytes)),
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return None,
        }
    }
}

fn read_byte(pipe: &OwnedFd) -> io::Result<Option<u8>> {
    let mut byte = [0];
    loop {
        match rustix::io::read(pipe, &mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(Some(byte[0])),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn join(spawner: JoinHandle<io::Result<Child>>) -> io::Result<Child> {
    spawner
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the starting thread panicked")))
}

fn exec_error(program: String, source: io::Error) -> StartError {
    match source.kind() {
        ErrorKind::NotFound => StartError::NotFound { program },
        _ => StartError::NotExecutable { program, source },
    }
}

#[cfg(test)]
mod tests;
