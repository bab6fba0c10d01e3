//! Reads recordings in a process without rights, as the author of a recording may be hostile and chose
//! every byte of it. Such a process has the open recordings and nothing else, and what it makes of them is written by this
//! one ([`probe::files::apart`]).

use super::input::Input;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::stderr;
use probe::files::apart::{self, Ended, Listener};
use profile::View;
use profile::formats::pft;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::{AsRawFd as _, BorrowedFd, RawFd};
use std::path::Path;

/// Maximum size of what is made of recordings.
const BYTES_MAX: usize = 4 << 30;

/// The first byte of the process's output. After [`MADE`] comes a line with the message that the user
/// gets when the file is written, and then the content of the file; after [`FAILED`] the reason.
const MADE: u8 = 1;
const FAILED: u8 = 0;

/// What was made of recordings.
#[derive(Debug)]
pub struct Made {
    /// The bytes to write.
    pub bytes: Vec<u8>,
    /// The exit status, as far as the recordings decide it.
    pub exit: Exit,
    /// Sentences that are only true when the bytes are where the user wants them. They are printed
    /// then.
    pub told: Vec<String>,
}

impl Made {
    /// Prints the bytes as text. Characters that a terminal acts on are made visible: the commands do
    /// that themselves, unless a recording has taken over their process.
    pub fn print(&self) -> Result<Exit, Failure> {
        let lines = self.bytes.split_inclusive(|byte| *byte == b'\n');
        let line = |line: &[u8]| match line.strip_suffix(b"\n") {
            Some(line) => symbolize::sanitize(line).into_owned() + "\n",
            None => symbolize::sanitize(line).into_owned(),
        };
        super::print(&lines.map(line).collect::<String>())?;
        Ok(self.tell())
    }

    /// Writes a whole file, or to standard output if `path` is `None`.
    pub fn write(&self, path: Option<&Path>, overwrite: bool) -> Result<Exit, Failure> {
        if path.is_none() && io::stdout().is_terminal() {
            return self.print();
        }
        Output::write_whole(path, overwrite, &self.bytes)?;
        Ok(self.tell())
    }

    /// Prints what is told when the bytes are written; returns the exit status.
    fn tell(&self) -> Exit {
        self.told.iter().for_each(stderr::say);
        self.exit
    }
}

/// Why a command failed, as its process tells this one.
#[derive(Serialize, Deserialize)]
struct Told {
    code: u8,
    message: String,
    details: Vec<String>,
    remedies: Vec<[String; 2]>,
    more: Option<String>,
}

/// Returns the descriptors of what a command reads: its inputs, and what else is open for it.
pub fn descriptors<'i>(
    inputs: impl IntoIterator<Item = &'i Input>,
    others: impl Iterator<Item = BorrowedFd<'i>>,
) -> Vec<RawFd> {
    let inputs = inputs.into_iter().map(Input::descriptor);
    inputs.chain(others).map(|file| file.as_raw_fd()).collect()
}

/// Does a command on recordings without any rights, and returns what it has made. It can use the
/// descriptors in `kept` and no others. Its messages are printed.
pub fn make(
    kept: &[RawFd],
    command: impl FnOnce() -> Result<Made, Failure>,
) -> Result<Made, Failure> {
    let cannot = |error: io::Error| Failure::failed(format!("cannot read without rights: {error}"));
    let process = apart::start(kept, || do_it(command).code()).map_err(cannot)?;
    let mut making = Making::default();
    match process.finish(&mut making).map_err(cannot)? {
        Ended::Exited(code) => making.result(Exit::of_code(code)),
        Ended::Killed(signal) => Err(killed(signal)),
        Ended::Stopped => Err(Failure::failed("the result has more than 4 GB")),
    }
}

/// Writes the samples of a recording of any format as a recording of ours, for the process that waits
/// for it.
pub fn recording(view: &View) -> Result<Made, Failure> {
    let mut bytes = Vec::new();
    pft::write(view, &mut bytes)
        .map_err(|error| Failure::failed(format!("cannot hand on a recording: {error}")))?;
    Ok(Made {
        bytes,
        exit: Exit::Done,
        told: Vec::new(),
    })
}

/// Does the command in the process without rights, and writes the result.
fn do_it(command: impl FnOnce() -> Result<Made, Failure>) -> Exit {
    let outcome = faults::catch("reading recordings", command)
        .unwrap_or_else(|fault| Err(Failure::failed(fault.final_word())));
    for fault in faults::seen() {
        stderr::say(format_args!("{}", fault.report()));
    }
    let (head, bytes, exit) = match outcome {
        Ok(made) => (head(&made.told), made.bytes, made.exit),
        Err(failure) => {
            let exit = failure.exit;
            (vec![FAILED], Told::of(failure).to_bytes(), exit)
        }
    };
    let mut output = io::stdout().lock();
    let written = output
        .write_all(&head)
        .and_then(|()| output.write_all(&bytes));
    match written.and_then(|()| output.flush()) {
        Ok(()) => exit,
        Err(_) => Exit::Failed,
    }
}

/// Encodes what comes before the bytes that were made.
fn head(told: &[String]) -> Vec<u8> {
    let mut head = vec![MADE];
    serde_json::to_writer(&mut head, told).expect("strings can be written");
    head.push(b'\n');
    head
}

/// Decodes what the process has written about what it has made, after the first byte. `None` if it
/// is malformed.
fn read_made(mut written: Vec<u8>, exit: Exit) -> Option<Made> {
    let end = written.iter().position(|byte| *byte == b'\n')?;
    let told = serde_json::from_slice(written.get(1..end)?).ok()?;
    written.drain(..=end);
    Some(Made {
        bytes: written,
        exit,
        told,
    })
}

/// Returns the failure of a command whose process was ended.
fn killed(signal: i32) -> Failure {
    let reason = if signal == Signal::XCPU.as_raw() {
        "it takes more than 20 minutes of CPU time".into()
    } else if signal == Signal::KILL.as_raw() {
        "the process that reads it was killed: memory was short, or somebody has done it".into()
    } else {
        format!(
            "signal {signal} has ended the process that reads it: it takes more than 8 GB of memory, \
             or is made to do harm"
        )
    };
    Failure::failed("cannot read the recording").detail(reason)
}

impl Told {
    fn of(failure: Failure) -> Told {
        let remedies = failure.remedies.into_iter();
        Told {
            code: failure.exit.code(),
            message: failure.message,
            details: failure.details,
            remedies: remedies
                .map(|remedy| [remedy.command, remedy.note])
                .collect(),
            more: failure.more,
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers can be written")
    }

    fn failure(self) -> Failure {
        let mut failure = Failure::new(Exit::of_code(self.code), self.message);
        failure.details = self.details;
        failure.more = self.more;
        let remedies = self.remedies.into_iter();
        remedies.fold(failure, |failure, [command, note]| {
            failure.remedy(command, note)
        })
    }
}

/// Collects what the process writes.
#[derive(Debug, Default)]
struct Making {
    written: Vec<u8>,
}

impl Making {
    fn result(self, exit: Exit) -> Result<Made, Failure> {
        let no_answer = || {
            Failure::failed("cannot read the recording")
                .detail("the process that reads it has ended without an answer")
        };
        match self.written.first() {
            Some(&MADE) => read_made(self.written, exit).ok_or_else(no_answer),
            Some(&FAILED) if let Ok(told) = serde_json::from_slice::<Told>(&self.written[1..]) => {
                Err(told.failure())
            }
            _ => Err(no_answer()),
        }
    }
}

impl Listener for Making {
    fn output(&mut self, piece: &[u8]) -> bool {
        self.written.extend_from_slice(piece);
        self.written.len() <= BYTES_MAX
    }

    fn message(&mut self, line: &[u8]) {
        stderr::write(format_args!("{}\n", String::from_utf8_lossy(line)));
    }
}
