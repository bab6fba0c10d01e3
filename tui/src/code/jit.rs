//! Code that a process made at run time. Its runtime says in a perf map or a dump where each
//! function is; the code is in the dump or in the process's memory.

use super::pieces::cover_hits;
use super::{Body, Piece, Wanted};
use std::io::{ErrorKind, Read as _};
use std::sync::Arc;
use symbolize::code::assembly::Mode;
use symbolize::code::{FunctionCode, RunTimeFound, RunTimeQuestion};
use symbolize::parser::RunTimeCode;
use symbolize::{Files, JitNames, Reason};

/// Adds the instructions of a function to its body. The error says why there are none.
pub fn disassemble(wanted: &Wanted, files: &Files, body: &mut Body) -> Result<(), String> {
    if wanted.is_recorded {
        return Err("code made at run time is in no recording".into());
    }
    let open = |pid: &u32| Process::open(*pid, files);
    let mut processes: Vec<Process> = wanted.pids.iter().filter_map(open).collect();
    if processes.is_empty() {
        return Err("this code was made at run time, and its process has ended".into());
    }
    let mut trouble = Trouble::default();
    let mut is_memory = false;
    cover_hits(wanted, body, |hit, left, body| {
        let address = hit.address;
        let found = processes.iter_mut().find_map(|process| {
            process.find(address, wanted, left, files, &mut trouble, |start| {
                body.starts.insert(address, start);
            })
        });
        let found = found.filter(|found| found.code.range.contains(&address))?;
        is_memory |= found.is_memory;
        Some(Piece {
            host: None,
            start: found.code.range.start,
            range: found.code.range,
            instructions: found.code.instructions,
            cut: found.code.cut,
        })
    });
    if body.pieces.is_empty() {
        Err(trouble.words())
    } else {
        if is_memory {
            let note = "its code is read in the process's memory as it is now; \
                            a runtime may put other code there";
            body.notes.push(note.into());
        }
        Ok(())
    }
}

/// Why the code at an address was not found. Only the last reason is shown.
#[derive(Debug, Default)]
enum Trouble {
    /// The address is now in a function of another name.
    #[default]
    Replaced,
    /// The process does not say where functions begin.
    NoMap(Reason),
    /// The memory of the process could not be read.
    NoMemory(ErrorKind),
    /// The code is for another processor.
    Foreign,
}

impl Trouble {
    fn words(&self) -> String {
        match self {
            Trouble::Replaced => {
                "the process has put other code in its place since it was sampled".into()
            }
            Trouble::NoMap(Reason::Refused) => {
                "what its process says of it could not be understood within the bounds of time and \
                 memory; opened again in a minute, it is tried once more"
                    .into()
            }
            Trouble::NoMap(reason) => format!(
                "nothing tells where functions of this code begin and end: {} {}",
                reason.explain(),
                reason.remedy().trim_end_matches('.')
            ),
            Trouble::NoMemory(ErrorKind::PermissionDenied) => {
                "the memory of this process is read by its own user or with CAP_SYS_PTRACE, \
                 and not if it forbids that (prctl PR_SET_DUMPABLE, kernel.yama.ptrace_scope)"
                    .into()
            }
            Trouble::NoMemory(ErrorKind::TimedOut) => {
                "the memory of this process could not be read in time".into()
            }
            Trouble::NoMemory(_) => "the process has ended, or has given that memory back".into(),
            Trouble::Foreign => "only code of x86 and AArch64 is written out".into(),
        }
    }
}

/// A process that makes code.
struct Process {
    pid: u32,
    code: RunTimeCode,
    /// None for a processor without a decoder.
    mode: Option<Mode>,
}

/// A function, and whether its code was read in the memory of the process.
struct Found {
    code: FunctionCode,
    is_memory: bool,
}

impl Process {
    /// Opens the process. None if it has ended.
    fn open(pid: u32, files: &Files) -> Option<Self> {
        let directory = JitNames::hold(pid).ok()?;
        Some(Self {
            pid,
            code: RunTimeCode::new(Arc::new(directory), files.clone()),
            mode: mode(pid, files),
        })
    }

    /// Returns the code of the function at an address: from the dump if it has the bytes, else from
    /// the memory of the process. None if the function is not the wanted one. At most `bytes_max`
    /// bytes are read; the number of those that are left out is in `cut`. `note_start` is called
    /// with the start of the function, even if its bytes cannot be read.
    fn find(
        &mut self,
        address: u64,
        wanted: &Wanted,
        bytes_max: u64,
        files: &Files,
        trouble: &mut Trouble,
        mut note_start: impl FnMut(u64),
    ) -> Option<Found> {
        let Some(mode) = self.mode else {
            *trouble = Trouble::Foreign;
            return None;
        };
        let question = RunTimeQuestion {
            function: &wanted.function,
            address,
            mode,
            bytes_max,
            memory: None,
        };
        let (start, len) = match self.ask(&question, trouble)? {
            RunTimeFound::Function(code) => {
                note_start(code.range.start);
                let is_memory = false;
                return Some(Found { code, is_memory });
            }
            RunTimeFound::InMemory { start, len } => (start, len),
            RunTimeFound::Replaced | RunTimeFound::Unknown => return None,
        };
        note_start(start);
        // The length is below `bytes_max`.
        let bytes = match files.memory(self.pid, start, len as u32) {
            Ok(bytes) => bytes,
            Err(error) => {
                *trouble = Trouble::NoMemory(error.kind());
                return None;
            }
        };
        let question = RunTimeQuestion {
            memory: Some((start, &bytes)),
            ..question
        };
        match self.ask(&question, trouble)? {
            RunTimeFound::Function(code) => Some(Found {
                code,
                is_memory: true,
            }),
            // Other code has come to that address meanwhile.
            RunTimeFound::InMemory { .. } | RunTimeFound::Replaced | RunTimeFound::Unknown => None,
        }
    }

    fn ask(
        &mut self,
        question: &RunTimeQuestion<'_>,
        trouble: &mut Trouble,
    ) -> Option<RunTimeFound> {
        let found = self.code.find(question);
        if let Err(reason) = found {
            *trouble = Trouble::NoMap(reason);
        }
        found.ok()
    }
}

/// Returns the mode in which code that a process made is decoded: that of its program.
fn mode(pid: u32, files: &Files) -> Option<Mode> {
    let mut head = [0; 20];
    let mut program = files.open_program(pid).ok()?;
    program.read_exact(&mut head).ok()?;
    Mode::of_machine(u16::from_le_bytes([head[18], head[19]]))
}

#[cfg(test)]
mod tests;
