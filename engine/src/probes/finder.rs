//! The thread that has files read for the probes of a run: it looks up functions, the instructions of
//! each at which a breakpoint can be placed, and the names of callers. The thread that owns the
//! probes never waits for a file.

use super::find::{Found, NotFound, Search, find, find_sampled, throws};
use super::modules::{self, Module};
use super::needed::{self, Environment};
use super::no_code;
use super::order::{ProbedFunction, Sampled, Whose};
use super::reach::Reach;
use super::suggest::{Suggested, suggest};
use super::wanted::Wanted;
use crate::naming::{NamedModule, names_of};
use probe::call::Caution;
use probe::channel::{Receiver, Sender, channel};
use probe::confine::{self, Duty};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use symbolize::Symbolizer;

/// Maximum number of processes that are checked for exceptions passing through a library. If there
/// are more, it is assumed.
const PROCESSES_ASKED: usize = 16;

/// Maximum number of copies of one function: each has at least one breakpoint.
const COPIES_MAX: usize = 64;

/// Maximum number of breakpoints of one function.
const BREAKPOINTS_MAX: usize = 512;

/// A request to the thread.
pub enum Question {
    /// Find the matching functions, and the sites of each.
    Seek(Seek),
    /// Suggest names for what the user has typed.
    Suggest(Arc<str>),
    /// Name callers.
    Name(Vec<(Arc<NamedModule>, Vec<u64>)>),
}

/// A request for a function.
pub struct Seek {
    /// The probe that it is for.
    pub number: u64,
    /// The number of earlier requests for it.
    pub attempt: u64,
    /// The function.
    pub place: ProbedFunction,
    /// The module of a function that has samples.
    pub module: Option<Arc<NamedModule>>,
    /// The processes whose calls count.
    pub whose: Whose,
    /// What is observed of the calls.
    pub search: Search,
}

/// The answer to a request.
pub enum Answer {
    /// The functions for the probe with this number, and the number of earlier requests for it.
    Sought {
        number: u64,
        attempt: u64,
        /// The functions, or why there are none.
        found: Result<Vec<Found>, NotFound>,
    },
    /// Suggested names.
    Suggested(Suggested),
    /// In the order of the request; `None` for each that has no name.
    Named(Vec<NamedFrames>),
}

/// Addresses in a module, and the name of the function at each, if it has one.
pub type NamedFrames = (Arc<NamedModule>, Vec<(u64, Option<String>)>);

/// The handle of the thread, which ends when this is dropped, after its current request.
pub struct Finder {
    questions: Sender<Question>,
}

impl Finder {
    /// Starts the thread. It calls `tell` with every answer; `tell` returns whether more are
    /// wanted.
    pub fn start(
        symbolizer: Arc<Symbolizer>,
        reach: Reach,
        tell: impl Fn(Answer) -> bool + Send + 'static,
    ) -> std::io::Result<Self> {
        let (questions, asked) = channel();
        thread::Builder::new().name("sites".into()).spawn(move || {
            confine::thread(Duty::Looking);
            answer_all(&asked, &symbolizer, &reach, tell);
        })?;
        Ok(Self { questions })
    }

    /// Sends a request to the thread. Answers come in the same order.
    pub fn ask(&self, question: Question) {
        // If the thread has ended, nothing is found any more.
        let _ = self.questions.send(question);
    }
}

/// Answers requests in their order until `tell` says that no more answers are wanted. A panic loses
/// only one answer.
fn answer_all(
    asked: &Receiver<Question>,
    symbolizer: &Symbolizer,
    reach: &Reach,
    tell: impl Fn(Answer) -> bool,
) {
    while let Ok(question) = asked.recv() {
        let answer = match question {
            Question::Seek(wanted) => {
                let found = faults::catch("looking for a function", || {
                    seek(&wanted, symbolizer, reach)
                });
                Answer::Sought {
                    number: wanted.number,
                    attempt: wanted.attempt,
                    found: found.unwrap_or_else(|fault| Err(fault.to_string().into())),
                }
            }
            Question::Suggest(typed) => {
                let found = faults::catch("looking for names", || {
                    let pids = reach.processes();
                    let way = probe::files::of_targets();
                    let (modules, _) = modules::of_processes(&pids, &way, symbolizer);
                    suggest(&typed, &modules)
                });
                Answer::Suggested(found.unwrap_or_else(|_| Suggested {
                    typed,
                    names: Vec::new(),
                }))
            }
            Question::Name(frames) => Answer::Named(name(frames, symbolizer)),
        };
        if !tell(answer) {
            return;
        }
    }
}

/// Names the functions at these addresses; those of one module are looked up together.
fn name(frames: Vec<(Arc<NamedModule>, Vec<u64>)>, symbolizer: &Symbolizer) -> Vec<NamedFrames> {
    let each = frames.into_iter().map(|(module, addresses)| {
        let names = faults::catch("finding names", || {
            names_of(&module, &addresses, symbolizer)
        })
        .unwrap_or_else(|_| vec![None; addresses.len()]);
        (module, addresses.into_iter().zip(names).collect())
    });
    each.collect()
}

/// Finds the functions of a request, with their sites. A sampled function is identified by its file
/// and address; a typed one is searched by name in all files that the processes have mapped.
fn seek(wanted: &Seek, symbolizer: &Symbolizer, reach: &Reach) -> Result<Vec<Found>, NotFound> {
    let pids = match &wanted.whose {
        Whose::Target => reach.processes(),
        Whose::Processes { pids, .. } => pids.clone(),
    };
    let is_everybody = wanted.whose == Whose::Target && reach.pids.is_empty();
    let search = Search {
        caution: Caution::now(),
        ..wanted.search.clone()
    };
    let found = match (&wanted.place, &wanted.module) {
        (ProbedFunction::Sampled(sampled), Some(module)) => {
            let copies = open(module, &pids, symbolizer, sampled)?;
            let may_throw = copies.iter().any(|module| !module.is_program)
                && (is_everybody
                    || pids.len() > PROCESSES_ASKED
                    || pids.iter().any(|pid| may_throw(*pid, symbolizer)));
            let found = find_sampled(&copies, sampled, may_throw, &search);
            vec![found.map_err(|refused| refused.explain().to_string())?]
        }
        (ProbedFunction::Sampled(_), None) => return Err("its samples are gone".into()),
        (ProbedFunction::Named(name), _) => {
            let (modules, unreadable) = match (&reach.program, wanted.attempt) {
                // A command that is held back still has our own program mapped.
                (Some(program), 1) => needed::of_program(program, &Environment::own(), symbolizer),
                _ => modules::of_processes(&pids, &probe::files::of_targets(), symbolizer),
            };
            let unreadable = modules::explain_unreadable(&unreadable);
            by_name(name, &modules, unreadable, &search, wanted.attempt == 1)?
        }
    };
    for found in &found {
        let breakpoints = found.sites.len() + found.return_sites;
        if found.sites.len() > COPIES_MAX || breakpoints > BREAKPOINTS_MAX {
            return Err(format!(
                "it has {} copies and would take {breakpoints} breakpoints; \
                 {COPIES_MAX} and {BREAKPOINTS_MAX} are allowed",
                found.sites.len()
            )
            .into());
        }
    }
    Ok(found)
}

/// Finds the functions that match a text. If all of them are refused, the first reason is returned.
/// `unreadable` is a sentence on files that could not be looked through.
/// Why there are none is determined only at the first attempt, because all debug information is
/// read for it.
fn by_name(
    name: &str,
    modules: &[Module],
    unreadable: Option<String>,
    search: &Search,
    is_first: bool,
) -> Result<Vec<Found>, NotFound> {
    let wanted = Wanted::parse(name)?;
    let (found, refused) = find(modules, &wanted, search)?;
    match (found.is_empty(), refused.first()) {
        (false, _) => Ok(found),
        (true, Some(refused)) => Err(refused.explain().into()),
        (true, None) => {
            if is_first && let Some(why) = no_code::explain(modules, &wanted) {
                return Err(NotFound::Missing(why));
            }
            let near = suggest(name, modules).names.into_iter().next();
            // Kept short, as a line of the screen has little room after the name.
            let why = near.map(|near| format!("did you mean {near}?"));
            let why = why.or(unreadable).unwrap_or_else(|| {
                "no function of that name is in the code that is mapped".to_string()
            });
            Err(NotFound::Missing(why))
        }
    }
}

/// Opens every copy of a module's file that the processes have mapped.
fn open(
    module: &NamedModule,
    pids: &[u32],
    symbolizer: &Symbolizer,
    sampled: &Sampled,
) -> Result<Vec<Module>, String> {
    let Some(build) = module.build() else {
        return Err(format!(
            "its code is in no file ({}): probes are for native code, and neither for functions \
             of Python nor for what a program makes while it runs",
            sampled.file
        ));
    };
    let way = probe::files::of_targets();
    let copies = modules::copies_of(pids, &build, &way, symbolizer);
    if copies.is_empty() {
        Err(format!(
            "{} is mapped by none of these processes now, or cannot be read",
            shown(build.path)
        ))
    } else {
        Ok(copies)
    }
}

/// A path that is safe to print.
fn shown(path: &Path) -> String {
    symbolize::sanitize(path.as_os_str().as_encoded_bytes()).into_owned()
}

/// Whether exceptions may pass through libraries in this process.
fn may_throw(pid: u32, symbolizer: &Symbolizer) -> bool {
    let way = probe::files::of_targets();
    let (modules, unreadable) = modules::of_processes(&[pid], &way, symbolizer);
    !unreadable.is_empty() || modules.iter().any(throws)
}
