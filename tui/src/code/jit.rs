//! Code that a process made at run time. Its runtime says in a perf map or a dump where each
//! function is; the code is in the dump or in the process's memory.

use super::assembly::{self, Instruction, Mode};
use super::pieces::cover_hits;
use super::{Body, Piece, Wanted};
use engine::shown;
use std::io::{ErrorKind, Read as _};
use std::ops::Range;
use std::sync::Arc;
use symbolize::jit::{JitCode, JitNames};
use symbolize::{Files, Reason};

/// How many bytes of a process's memory are read at once.
const READ_MAX: u64 = 1 << 20;

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
            let code = process.code(address, wanted, &mut trouble)?;
            body.starts.insert(address, code.start);
            is_memory |= code.bytes.is_none();
            process.piece(code, left, files, &mut trouble)
        });
        found.filter(|piece| piece.range.contains(&address))
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
    names: JitNames,
    /// None for a processor without a decoder.
    mode: Option<Mode>,
}

impl Process {
    /// Opens the process, with the names of its functions. None if it has ended.
    fn open(pid: u32, files: &Files) -> Option<Self> {
        let directory = JitNames::hold(pid).ok()?;
        let mut names = JitNames::new(Arc::new(directory), files.clone());
        names.update();
        Some(Self {
            pid,
            names,
            mode: mode(pid, files),
        })
    }

    /// Returns the function that has the address now. None if it is not the wanted one.
    fn code(&mut self, address: u64, wanted: &Wanted, trouble: &mut Trouble) -> Option<JitCode> {
        match self.names.code(address) {
            Ok(code) if shown(&code.name) == *wanted.function => Some(code),
            Ok(_) => None,
            Err(reason) => {
                *trouble = Trouble::NoMap(reason);
                None
            }
        }
    }

    /// Returns the code of a function as instructions: from the dump if it has the bytes, else from
    /// the memory of the process. At most `bytes_max` bytes are read; the number of those that are
    /// left out is in `cut`.
    fn piece(
        &mut self,
        code: JitCode,
        bytes_max: u64,
        files: &Files,
        trouble: &mut Trouble,
    ) -> Option<Piece> {
        let Some(mode) = self.mode else {
            *trouble = Trouble::Foreign;
            return None;
        };
        let start = code.start;
        let wanted = code.len.min(bytes_max).min(READ_MAX);
        let bytes = match code.bytes {
            Some(mut bytes) => {
                bytes.truncate(wanted as usize);
                bytes
            }
            None => match files.memory(self.pid, start, wanted as u32) {
                Ok(bytes) => bytes,
                Err(error) => {
                    *trouble = Trouble::NoMemory(error.kind());
                    return None;
                }
            },
        };
        let range = start..start.checked_add(bytes.len() as u64)?;
        let mut instructions = assembly::decode(mode, &bytes, start, start);
        for instruction in &mut instructions {
            instruction.target = self.target(instruction, &range);
        }
        Some(Piece {
            host: None,
            start,
            cut: code.len.saturating_sub(bytes.len() as u64),
            range,
            instructions,
        })
    }

    /// Returns the name of the target of a call or jump. None if the process does not name it.
    fn target(&mut self, instruction: &Instruction, range: &Range<u64>) -> Option<Arc<str>> {
        let target = instruction.branch()?;
        if range.contains(&target) && !instruction.is_call() {
            return Some(format!("+{:#x}", target - range.start).into());
        }
        let code = self.names.code(target).ok()?;
        let name = shown(&code.name);
        Some(match target - code.start {
            0 => name.into(),
            offset => format!("{name}+{offset:#x}").into(),
        })
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
