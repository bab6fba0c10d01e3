//! Asks what programs and processes have of Python, on a thread of its own, because a process can
//! deliberately delay a reader of its memory. Parser processes read it: one for each process.

use super::codes::{self, WantedCode};
use super::memories::{Memories, Subject};
use super::tids;
use crate::aside::Aside;
use crate::ids::ModuleId;
use std::collections::HashSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use symbolize::parser::{ProcessMemory, python_order};
use symbolize::python::{self, Interpreter, Lack, Layout, TaskLayout, Trampoline, Version};
use symbolize::{Files, Reason};

/// What is known about a process before it is inspected.
#[derive(Debug, Clone)]
pub struct Look {
    pub subject: Arc<Subject>,
    pub interpreter: Arc<Interpreter>,
    /// The address of its `_PyRuntime`.
    pub runtime: u64,
}

/// Held while a request is in progress, and by its answer: if it is gone and there was no answer,
/// there will be none.
pub type Ticket = Arc<()>;

/// A file that may be a part of Python.
#[derive(Debug, Clone)]
pub struct WantedFile {
    pub module: ModuleId,
    /// The user to whom it is charged.
    pub user: u32,
    pub file: Arc<OwnedFd>,
    pub name: Vec<u8>,
}

/// A request about a file or a process.
pub enum Wanted {
    /// Whether a file is an interpreter, and what it contains about asyncio.
    File(WantedFile),
    /// The threads of a process, and what is not known of it yet.
    Look {
        look: Look,
        layout: Option<Layout>,
        threading: Vec<u64>,
        /// Whether the position of its tasks is unknown, and may be found.
        wants_tasks: bool,
        ticket: Ticket,
    },
    /// Whether the mapping of a process that begins there has trampolines.
    Trampolines { subject: Arc<Subject>, start: u64 },
    /// Code objects of a process. The answer is stored in each of them.
    Codes {
        subject: Arc<Subject>,
        version: Version,
        layout: Layout,
        codes: Vec<WantedCode>,
    },
}

/// The answer to a request.
pub enum Came {
    /// A file was inspected. The interpreter is None if the file is not one.
    File {
        module: ModuleId,
        interpreter: Option<Arc<Interpreter>>,
        /// Set if it has asyncio's part in C; inside the positions of tasks, if it contains them.
        asyncio: Option<Option<TaskLayout>>,
    },
    /// No parser could read a file; another attempt may succeed.
    Unanswered(WantedFile),
    /// A mapping was inspected.
    Trampolines {
        pid: u32,
        start: u64,
        kind: Trampoline,
    },
    /// A process was inspected.
    Look {
        pid: u32,
        ticket: Ticket,
        seen: Result<Seen, Lack>,
        /// Whether the process has memory: it has not ended.
        is_there: bool,
    },
}

/// The result of inspecting a process.
pub struct Seen {
    pub found: Box<python::Seen>,
    /// Threads that have never run Python.
    pub foreign: HashSet<u32>,
}

/// Starts the thread; `None` if that is not possible.
pub fn start() -> Option<Aside<Wanted, Came>> {
    let way = crate::files::for_those_aside();
    let mut memories = Memories::default();
    let read = move |wanted| read(wanted, &mut memories, &way);
    Aside::start("python", "reading Python's structures", read).ok()
}

fn read(wanted: Wanted, memories: &mut Memories, way: &Files) -> Option<Came> {
    match wanted {
        Wanted::File(wanted) => {
            let file = wanted.file.try_clone().map(File::from);
            let file = file.map_err(|_| Reason::Refused);
            match file.and_then(|file| python_order::ask(file, &wanted.name, way)) {
                Err(Reason::Refused) => Some(Came::Unanswered(wanted)),
                found => {
                    // A file that cannot be understood is not an interpreter.
                    let found = found.unwrap_or_default();
                    Some(Came::File {
                        module: wanted.module,
                        interpreter: found.interpreter.map(Arc::new),
                        asyncio: found.asyncio,
                    })
                }
            }
        }
        Wanted::Look {
            look,
            layout,
            threading,
            wants_tasks,
            ticket,
        } => {
            let pid = look.subject.pid;
            let question = python::Look {
                pid,
                version: look.interpreter.version,
                runtime: look.runtime,
                layout,
                threading,
                wants_tasks,
                tids: tids::of_process(pid),
            };
            let memory = memories.of(&look.subject, way);
            let seen = memory
                .map_err(Lack::from)
                .and_then(|it| see(it, question, way));
            if let Err(Lack::Unreadable(Reason::FileGone)) = seen {
                memories.close(&look.subject);
            }
            let is_there = seen.is_ok() || {
                let mappings = way.code_mappings(pid, 1);
                mappings.is_ok_and(|lines| !lines.is_empty())
            };
            Some(Came::Look {
                pid,
                ticket,
                seen,
                is_there,
            })
        }
        Wanted::Trampolines { subject, start } => {
            let memory = memories.of(&subject, way).ok()?;
            let kind = memory.trampoline(start, way).ok()??;
            Some(Came::Trampolines {
                pid: subject.pid,
                start,
                kind,
            })
        }
        Wanted::Codes {
            subject,
            version,
            layout,
            codes,
        } => {
            match memories.of(&subject, way) {
                Ok(memory) => codes::read(&codes, (version, layout), memory, way),
                Err(reason) => codes::are_missing(&codes, reason),
            }
            None
        }
    }
}

/// Inspects a process.
fn see(memory: &ProcessMemory, question: python::Look, way: &Files) -> Result<Seen, Lack> {
    let tids: Vec<u32> = question.tids.values().copied().collect();
    let found = memory.look(question, way)?;
    let is_foreign = |tid: &u32| !found.threads.contains_key(tid);
    Ok(Seen {
        foreign: tids.into_iter().filter(is_foreign).collect(),
        found,
    })
}
