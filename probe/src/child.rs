//! A *held command*: a child process that exists, with its user, its files and
//! its pid, but has not begun to run its program. The sampler can be pointed
//! at it before its first instruction.
//!
//! ```text
//! hold_command ──► HeldCommand ──release──► RunningCommand ──wait──► exit code
//!                      │ drop: the child ends, nothing was run
//! ```
//!
//! Between fork and exec the child waits on a pipe. `Command::spawn` returns
//! only after exec, so a thread sits in it; the child tells its pid through a
//! second pipe.

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

/// Where the command reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// We own the screen: input is empty, both outputs are pipes to us. The
    /// command gets a session of its own, so that it cannot reach the terminal
    /// by `/dev/tty`, and a process group that [`RunningCommand::terminate`]
    /// ends as a whole.
    Captured,
    /// Our standard output carries a report: the command's goes to our standard
    /// error instead. It stays in our process group, so ^C reaches it from the
    /// terminal as usual; whoever waits for it has to outlive that signal.
    OutputToStderr,
    /// Our output goes to a file: the command has our standard output, as if it had been
    /// started without us. It stays in our process group, too.
    Shared,
}

/// Why a command did not start, and with which exit code `env` would end.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No file of that name, in no directory of `PATH`.
    #[error("command not found: {program}")]
    NotFound {
        /// As it was typed.
        program: String,
    },
    /// There is a file, and the kernel does not run it.
    #[error("cannot run {program}: {source}")]
    NotExecutable {
        /// As it was typed.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// No process could be made for it.
    #[error("cannot start {program}: {source}")]
    Failed {
        /// As it was typed.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl StartError {
    /// The exit code that shells use for such a failure.
    pub fn exit_code(&self) -> u8 {
        match self {
            StartError::NotFound { .. } => 127,
            StartError::NotExecutable { .. } => 126,
            StartError::Failed { .. } => 125,
        }
    }
}

/// Makes the child and leaves it waiting. `user` is who it runs as; `None` is
/// who we are.
pub fn hold_command(
    program: OsString,
    args: Vec<OsString>,
    user: Option<&InvokingUser>,
    streams: Streams,
) -> Result<HeldCommand, StartError> {
    let name = program.to_string_lossy().into_owned();
    // Exec would say the same, but only when everything else is set up and, say, a file for
    // the samples has been replaced.
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
        // The pipe was closed instead: the child ended before its turn.
        None => match join(spawner) {
            Ok(_) => Err(failed(io::Error::other("it did not report its pid"))),
            Err(source) => Err(failed(source)),
        },
    }
}

/// Returns the files that exec tries for a program: the one that it names, if the name has a
/// `/`, else one in each folder of `PATH`.
pub fn candidates(program: &OsStr) -> Vec<PathBuf> {
    if has_folder(program) {
        return vec![program.into()];
    }
    // What the C library searches where the variable is missing.
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let folders = std::env::split_paths(&path);
    folders.map(|folder| folder.join(program)).collect()
}

fn has_folder(program: &OsStr) -> bool {
    program.as_encoded_bytes().contains(&b'/')
}

/// Whether there is a file that exec would try for this program.
fn is_found(program: &OsStr) -> bool {
    // A folder is no program either, but where it was named exec has the better sentence for
    // it. So it has for whatever else keeps us from a look.
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
    /// Closing it without a word tells the child to end.
    go: Option<OwnedFd>,
    spawner: Option<JoinHandle<io::Result<Child>>>,
}

impl HeldCommand {
    /// Stays the same through exec.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the program begin. Returns once it has, or with the reason why the
    /// kernel would not run it.
    pub fn release(mut self) -> Result<RunningCommand, StartError> {
        if let Some(go) = self.go.take() {
            // This fails only if the child is gone, and then spawn knows more.
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

/// A command whose program runs.
///
/// Dropping it leaves the program alone: what was started goes on, unless the
/// user who quits asks for [`terminate`](Self::terminate).
#[derive(Debug)]
pub struct RunningCommand {
    child: Child,
}

impl RunningCommand {
    /// The process id of the command.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The pipes of [`Streams::Captured`], once.
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

    /// Asks the command to end with SIGTERM; false if it has already. With
    /// [`Streams::Captured`] this reaches all of its process group.
    pub fn terminate(&mut self) -> io::Result<bool> {
        // Until it is reaped, its pid cannot become another process's.
        if self.child.try_wait()?.is_some() {
            return Ok(false);
        }
        let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) else {
            return Ok(false);
        };
        let leads_group = rustix::process::getpgid(Some(pid)) == Ok(pid);
        // One that is stopped would not hear of it until somebody lets it go on.
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
        // Leaves no zombie behind if it has ended.
        let _ = self.child.try_wait();
    }
}

/// The exit code a shell would show: the command's own, or 128 + the signal.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    // A wait without WUNTRACED gives one of the two.
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
    /// System calls only.
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
