//! The workers that give names to frames, on threads of their own because look-ups can block.
//!
//! The model thread owns a [`Naming`]: it requests names, hottest frames first, and takes the
//! answers that are ready; it never waits for one. A frame gets exactly one answer to its first
//! request, a name or a reason. Names of code made at run time may follow later:
//!
//! ```text
//! model ── ask ──► requests (by module, fair to users) ──► 2 workers
//! model ◄─ answers ── outcomes ◄───────────────────────────────┘
//!              └─ frames that may have a name later ──► asked again when that is due
//! ```

mod jit;
mod requests;

use crate::alike::no_name;
use jit::{Jit, Waiting};
use probe::channel::{Receiver, Sender, channel};
use probe::confine::{self, Duty};
use probe::{Module, ModuleKind, PythonNames};
use profile::{Frame, FrameId, ModuleId, NameState};
use requests::Requests;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use symbolize::demangle::shown;
use symbolize::kernel::KernelFrame;
use symbolize::parser::names::{FileNames, PlaceName, PlaceNames, SourceLine};
use symbolize::{FileIdentity, FileOffset, FileSource, Origin, Reason, Symbolizer, Vdso, sanitize};

/// Number of workers: two, so that one file on a slow disk does not block all others.
const WORKERS: usize = 2;

/// A frame, and its address in its module.
type Asked = (FrameId, u64);

/// Frames of one module that need names.
///
/// All frames of a module are in one request, because opening its file is what costs.
#[derive(Debug)]
struct Request {
    module: Arc<NamedModule>,
    frames: Vec<Asked>,
    /// Whether they were answered before: then only names are new information.
    again: bool,
}

/// The current answer for a frame's name.
///
/// [`Answer::is_for`] has to be checked before it is used.
#[derive(Debug)]
pub struct Answer {
    /// Number of the frame in the profile.
    pub frame: FrameId,
    /// For a name that comes late: module and address of the frame when it was requested. The
    /// number may belong to another frame by now.
    pub late_for: Option<(ModuleId, u64)>,
    /// The name, or why there is none.
    pub name: NameState,
    /// The functions at the frame, innermost first, if known.
    pub source: Vec<SourceLine>,
}

impl Answer {
    fn new(frame: FrameId, name: Result<String, Reason>) -> Self {
        Self {
            frame,
            late_for: None,
            name: match name {
                Ok(name) => NameState::Named(name.into()),
                Err(reason) => NameState::Unnamed(no_name(reason)),
            },
            source: Vec::new(),
        }
    }

    /// Whether the answer is still for the frame that the number stands for: it may belong to
    /// another frame by now.
    pub fn is_for(&self, frame: Option<Frame>) -> bool {
        self.late_for.is_none_or(|(module, address)| {
            frame.is_some_and(|frame| frame.module == module && frame.address == address)
        })
    }
}

/// The result of a request.
#[derive(Debug)]
struct Outcome {
    request: Request,
    answers: Vec<Answer>,
    /// Frames of the request whose names may come later.
    waiting: Vec<Asked>,
}

/// The identity of a file.
#[derive(Debug)]
pub struct Build<'b> {
    /// Path of one copy, as a process saw it.
    pub path: &'b Path,
    /// Build-id; empty if it has none.
    pub id: &'b [u8],
    /// Device and inode of that copy.
    pub inode: ((u32, u32), u64),
}

/// A module, and how its names are found.
///
/// The model holds one for each module that has samples, and shares it with workers, with the
/// threads that look up source lines, and with probes.
#[derive(Debug)]
pub struct NamedModule {
    id: ModuleId,
    /// The user who controls its contents: see [`Module::user`].
    pub user: u32,
    place: NamedBy,
    /// Where the names were found last; `None` if they never were.
    origin: Mutex<Option<Origin>>,
}

/// How names of a module are found.
#[derive(Debug)]
enum NamedBy {
    Kernel,
    Vdso,
    /// In an image read from the memory of a 32-bit process.
    NarrowVdso(Option<Arc<[u8]>>),
    Vsyscall,
    /// In a mapped file, identified as it was when it was first seen.
    File {
        path: PathBuf,
        build_id: Option<Vec<u8>>,
        /// Together with the inode it distinguishes the mapped file from one that has its path now.
        device: (u32, u32),
        inode: u64,
        identity: Option<FileIdentity>,
        /// The open file, held until it was read.
        file: Mutex<Option<Arc<OwnedFd>>>,
        /// The root directory of a process in a container: debug files may be there.
        root: Mutex<Option<Arc<OwnedFd>>>,
        /// Why the file could not be opened when it was seen; reported instead of the reason of a
        /// later attempt.
        unreadable: Option<Reason>,
    },
    /// Code made at run time: in what its process writes, a perf map or a jitdump.
    Jit(Jit),
    Python(Arc<PythonNames>),
    /// Nowhere, for this reason.
    Nowhere(Reason),
}

/// What all workers share.
#[derive(Debug)]
struct Workshop {
    symbolizer: Arc<Symbolizer>,
    jit: Arc<jit::Budget>,
}

impl NamedModule {
    /// Takes over the probe's description of a module.
    pub fn new(module: &Module) -> Self {
        let place = match &module.kind {
            ModuleKind::Kernel => NamedBy::Kernel,
            ModuleKind::Vdso => NamedBy::Vdso,
            ModuleKind::NarrowVdso { image } => NamedBy::NarrowVdso(image.clone()),
            ModuleKind::Vsyscall => NamedBy::Vsyscall,
            ModuleKind::File {
                path,
                build_id,
                device,
                inode,
                identity,
                file,
                root,
                unreadable,
                ..
            } => NamedBy::File {
                device: *device,
                inode: *inode,
                identity: identity.clone(),
                path: path.clone(),
                build_id: build_id.clone(),
                file: Mutex::new(file.clone()),
                root: Mutex::new(root.clone()),
                unreadable: *unreadable,
            },
            ModuleKind::Anonymous { directory, .. } => match directory {
                Some(directory) => NamedBy::Jit(Jit::new(directory.clone(), module.user)),
                None => NamedBy::Nowhere(Reason::Jit),
            },
            ModuleKind::Python { names, .. } => NamedBy::Python(names.clone()),
            ModuleKind::Unmapped { .. } => NamedBy::Nowhere(Reason::Unmapped),
        };
        Self {
            id: ModuleId(module.id.0),
            user: module.user,
            place,
            origin: Mutex::default(),
        }
    }

    /// The number of the module in the profile.
    pub fn id(&self) -> ModuleId {
        self.id
    }

    /// Where the names of its functions were found.
    pub fn origin(&self) -> Option<Origin> {
        *self.origin.lock().expect("nobody panics with it")
    }

    fn comes_from(&self, origin: Origin) {
        *self.origin.lock().expect("nobody panics with it") = Some(origin);
    }

    /// Whether there may be debug information.
    pub fn is_file(&self) -> bool {
        matches!(self.place, NamedBy::File { .. })
    }

    /// Calls `read` with the file, if the module is one.
    ///
    /// `None` if it is not a file. Its descriptor is closed afterwards; from then on the file is
    /// found by its path.
    pub fn with_source<T>(&self, read: impl FnOnce(FileSource<'_>) -> T) -> Option<T> {
        let NamedBy::File {
            path,
            build_id,
            device,
            inode,
            identity,
            file,
            root,
            ..
        } = &self.place
        else {
            return None;
        };
        // Two workers may be here at once: neither may find that the other has taken the file.
        let opened = file.lock().expect("nobody panics with it").clone();
        let root = root.lock().expect("nobody panics with it").clone();
        let found = read(FileSource {
            build_id: build_id.as_deref(),
            device: *device,
            inode: *inode,
            identity: identity.as_ref(),
            file: opened.as_deref(),
            root: root.as_deref(),
            ..FileSource::new(path)
        });
        file.lock().expect("nobody panics with it").take();
        Some(found)
    }

    /// Path of the file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            NamedBy::File { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Whether it is the kernel, or one of its modules.
    pub fn is_kernel(&self) -> bool {
        matches!(self.place, NamedBy::Kernel)
    }

    /// The identity of the file, if it is one.
    pub fn build(&self) -> Option<Build<'_>> {
        match &self.place {
            NamedBy::File {
                path,
                build_id,
                device,
                inode,
                ..
            } => Some(Build {
                path,
                id: build_id.as_deref().unwrap_or_default(),
                inode: (*device, *inode),
            }),
            _ => None,
        }
    }

    /// Closes the descriptors; the file is opened again by its path.
    pub fn close_file(&self) {
        match &self.place {
            NamedBy::File { file, .. } => {
                file.lock().expect("nobody panics with it").take();
                self.close_root();
            }
            NamedBy::Jit(jit) => jit.close(),
            _ => {}
        }
    }

    /// Closes the root directory of the file's process, so that a container's mounts are not kept
    /// in use. Called when all debug files have been looked for.
    pub fn close_root(&self) {
        if let NamedBy::File { root, .. } = &self.place {
            root.lock().expect("nobody panics with it").take();
        }
    }
}

/// The workers and the two queues. Dropping it ends the workers.
///
/// Frames are counted for each user because the model requests only a share of them at once.
#[derive(Debug)]
pub struct Naming {
    requests: Arc<Requests>,
    outcomes: Receiver<Outcome>,
    /// Number of frames without an answer, in total and by user.
    asked: usize,
    asked_by_user: HashMap<u32, usize>,
    /// Frames whose names may come later.
    waiting: Waiting,
    workers: Vec<JoinHandle<()>>,
}

impl Naming {
    /// Starts the workers. If no thread can be started, there are no names.
    pub fn start(symbolizer: Arc<Symbolizer>) -> Self {
        let requests = Arc::new(Requests::new());
        let (results, outcomes) = channel();
        let workshop = Arc::new(Workshop {
            symbolizer,
            jit: Arc::default(),
        });
        let workers = (0..WORKERS)
            .filter_map(|number| {
                let queue = requests.clone();
                let (results, workshop) = (results.clone(), workshop.clone());
                thread::Builder::new()
                    .name("naming".into())
                    .spawn(move || {
                        confine::thread(Duty::Parsing);
                        if number == 0 {
                            // Nearly every run needs the kernel's symbols, and sampling has not
                            // begun yet.
                            workshop.symbolizer.kernel(&[]);
                        }
                        work(&queue, &results, &workshop);
                    })
                    .ok()
            })
            .collect();
        Self {
            requests,
            outcomes,
            asked: 0,
            asked_by_user: HashMap::new(),
            waiting: Waiting::default(),
            workers,
        }
    }

    /// Requests names in this order. The frames of one module are one request, at the position of
    /// its first frame.
    pub fn ask(&mut self, frames: impl Iterator<Item = (FrameId, u64, Arc<NamedModule>)>) {
        let mut order: Vec<Request> = Vec::new();
        let mut place: HashMap<*const NamedModule, usize> = HashMap::new();
        for (frame, address, module) in frames {
            self.asked += 1;
            *self.asked_by_user.entry(module.user).or_default() += 1;
            let index = *place.entry(Arc::as_ptr(&module)).or_insert_with(|| {
                order.push(Request {
                    module,
                    frames: Vec::new(),
                    again: false,
                });
                order.len() - 1
            });
            order[index].frames.push((frame, address));
        }
        let due = self.waiting.take_due().into_iter();
        // Frames that wait for late names are last, and do not count as requested.
        let again = due.map(|(module, frames)| Request {
            module,
            frames,
            again: true,
        });
        for request in order.into_iter().chain(again) {
            // Without workers there are no names; the frames stay pending.
            self.requests.add(request);
        }
    }

    /// Requests names for frames of one module once more, because there are new names.
    pub fn ask_again(&mut self, frames: Vec<(FrameId, u64, Arc<NamedModule>)>) {
        let Some((_, _, module)) = frames.first() else {
            return;
        };
        let module = module.clone();
        let frames = frames
            .into_iter()
            .map(|(frame, address, _)| (frame, address))
            .collect();
        self.requests.add(Request {
            module,
            frames,
            again: true,
        });
    }

    /// Takes the answers that are ready.
    pub fn answers(&mut self) -> Vec<Answer> {
        let mut answers = Vec::new();
        while let Ok(outcome) = self.outcomes.try_recv() {
            if !outcome.request.again {
                let answered = outcome.request.frames.len();
                self.asked = self.asked.saturating_sub(answered);
                let user = outcome.request.module.user;
                if let Some(asked) = self.asked_by_user.get_mut(&user) {
                    *asked = asked.saturating_sub(answered);
                    if *asked == 0 {
                        self.asked_by_user.remove(&user);
                    }
                }
            }
            self.waiting.add(outcome.request.module, outcome.waiting);
            answers.extend(outcome.answers);
        }
        answers
    }

    /// Number of frames that were requested and not answered.
    pub fn outstanding(&self) -> usize {
        self.asked
    }

    /// Number of frames that were requested and not answered, by the user whose files they are in.
    pub fn outstanding_by_user(&self) -> HashMap<u32, usize> {
        self.asked_by_user.clone()
    }
}

impl Drop for Naming {
    fn drop(&mut self) {
        self.requests.close();
        // Workers are not joined: one that reads a file from a dead server would block us; it ends
        // with the process.
        self.workers.clear();
    }
}

/// The loop of a worker until the queue is closed. The time that a request took is charged to its
/// user, whose next request then waits longer.
fn work(queue: &Requests, results: &Sender<Outcome>, workshop: &Workshop) {
    while let Some(request) = queue.next() {
        let begun = Instant::now();
        let named = name(&request, workshop);
        let (answers, waiting) = named.unwrap_or_else(|_| name_one_by_one(&request, workshop));
        queue.done(request.module.user, begun.elapsed());
        let outcome = Outcome {
            request,
            answers,
            waiting,
        };
        if results.send(outcome).is_err() {
            return;
        }
    }
}

/// An internal error while naming, which a note reports already.
struct Mistaken;

/// Returns the answers to a request, and the frames that have to wait.
fn name(request: &Request, workshop: &Workshop) -> Result<(Vec<Answer>, Vec<Asked>), Mistaken> {
    let named = faults::catch("finding names", || match &request.module.place {
        NamedBy::Jit(jit) => Ok(name_jit(request, jit, workshop)),
        _ => name_all(request, &workshop.symbolizer).map(|answers| (answers, Vec::new())),
    });
    named.unwrap_or(Err(Mistaken))
}

/// Names each frame of a request by itself, after naming all of them together has panicked, so that
/// only the frame that causes it gets no name. If two frames in a row panic, the cause is the whole
/// file, and the rest is not tried.
fn name_one_by_one(request: &Request, workshop: &Workshop) -> (Vec<Answer>, Vec<Asked>) {
    let (mut answers, mut waiting) = (Vec::new(), Vec::new());
    let mut patience: u32 = 2;
    for asked in &request.frames {
        let one = Request {
            module: request.module.clone(),
            frames: vec![*asked],
            again: request.again,
        };
        let named = match patience {
            0 => None,
            _ => name(&one, workshop).ok(),
        };
        match named {
            Some((named, later)) => {
                patience = 2;
                answers.extend(named);
                waiting.extend(later);
            }
            None => {
                patience = patience.saturating_sub(1);
                if !request.again {
                    answers.push(Answer::new(asked.0, Err(Reason::Mistake)));
                }
            }
        }
    }
    (answers, waiting)
}

/// Names code by what its process writes; frames without a name may get one later.
fn name_jit(request: &Request, jit: &Jit, workshop: &Workshop) -> (Vec<Answer>, Vec<Asked>) {
    let addresses: Vec<u64> = request.frames.iter().map(|(_, address)| *address).collect();
    let told = jit.names(&workshop.jit, request.again, &addresses);
    // Nothing was written since the last look: the frames continue to wait, unless the process has
    // written all that it will.
    if request.again && !told.is_new {
        let waiting = if told.are_all {
            Vec::new()
        } else {
            request.frames.clone()
        };
        return (Vec::new(), waiting);
    }
    let (mut answers, mut waiting) = (Vec::new(), Vec::new());
    for ((frame, address), name) in request.frames.iter().zip(told.names) {
        match name {
            Ok(_) => request.module.comes_from(Origin::JitMap),
            Err(_) => waiting.push((*frame, *address)),
        }
        // That there is still no name is not new information.
        if name.is_ok() || !request.again {
            answers.push(Answer {
                late_for: request.again.then_some((request.module.id, *address)),
                ..Answer::new(*frame, name)
            });
        }
    }
    (answers, waiting)
}

/// Names all frames of a module that is not made at run time, in the order of the request.
fn name_all(request: &Request, symbolizer: &Symbolizer) -> Result<Vec<Answer>, Mistaken> {
    let each = |name: &dyn Fn(u64) -> Result<String, Reason>| {
        let answer = |(frame, address): &(FrameId, u64)| Answer::new(*frame, name(*address));
        request.frames.iter().map(answer).collect()
    };
    let offsets = || -> Vec<FileOffset> {
        let offsets = request.frames.iter();
        offsets.map(|(_, offset)| FileOffset(*offset)).collect()
    };
    Ok(match &request.module.place {
        NamedBy::Kernel => name_in_kernel(request, symbolizer),
        NamedBy::Vdso => match Vdso::load() {
            Ok(vdso) => {
                request.module.comes_from(Origin::Vdso);
                each(&|address| Ok(shown(vdso.find(FileOffset(address))?.name)))
            }
            Err(error) => each(&|_| Err(error.reason())),
        },
        NamedBy::NarrowVdso(None) => each(&|_| Err(Reason::FileGone)),
        NamedBy::NarrowVdso(Some(image)) => match symbolizer.image_names(image, &offsets()) {
            Ok(names) => {
                request.module.comes_from(Origin::Vdso);
                name_in_file(request, names)
            }
            Err(Reason::Mistake) => return Err(Mistaken),
            Err(reason) => each(&|_| Err(reason)),
        },
        NamedBy::Vsyscall => {
            each(&|address| symbolize::vdso::find_vsyscall(FileOffset(address)).map(str::to_string))
        }
        NamedBy::File { unreadable, .. } => {
            let names = |source: FileSource<'_>| symbolizer.names(&source, &offsets());
            match request.module.with_source(names) {
                Some(Ok(names)) => {
                    request.module.comes_from(names.origin);
                    name_in_file(request, names)
                }
                Some(Err(Reason::Mistake)) => return Err(Mistaken),
                failed => {
                    let reason = failed.and_then(Result::err).unwrap_or(Reason::FileGone);
                    let reason = unreadable.unwrap_or(reason);
                    each(&|_| Err(reason))
                }
            }
        }
        NamedBy::Python(names) => name_in_python(request, names),
        NamedBy::Jit(_) => each(&|_| Err(Reason::Jit)),
        NamedBy::Nowhere(reason) => each(&|_| Err(*reason)),
    })
}

/// Returns the names of functions of one module, on the calling thread; `None` for each that has
/// none. Code made at run time is not looked up.
pub fn names_of(
    module: &Arc<NamedModule>,
    addresses: &[u64],
    symbolizer: &Symbolizer,
) -> Vec<Option<String>> {
    let request = Request {
        module: Arc::clone(module),
        frames: (0..).map(FrameId).zip(addresses.iter().copied()).collect(),
        again: false,
    };
    let named = |answer: Answer| match answer.name {
        NameState::Named(name) => Some(name.to_string()),
        _ => None,
    };
    match name_all(&request, symbolizer) {
        Ok(answers) => answers.into_iter().map(named).collect(),
        Err(Mistaken) => vec![None; addresses.len()],
    }
}

/// Names functions of the kernel and its modules, with a source location if the kernel's debug
/// information is there.
fn name_in_kernel(request: &Request, symbolizer: &Symbolizer) -> Vec<Answer> {
    let addresses: Vec<u64> = request.frames.iter().map(|(_, address)| *address).collect();
    let found = symbolizer.kernel(&addresses);
    if found.iter().any(Result::is_ok) {
        request.module.comes_from(Origin::Kernel);
    }
    let answer = |((frame, _), found): (&Asked, Result<KernelFrame, Reason>)| match found {
        Ok(KernelFrame { name, place }) => {
            let function = shown(&name);
            let source = place.map(|place| SourceLine {
                function: function.clone(),
                file: sanitize(&place.file).into_owned(),
                line: place.line,
            });
            Answer {
                source: source.into_iter().collect(),
                ..Answer::new(*frame, Ok(function))
            }
        }
        Err(reason) => Answer::new(*frame, Err(reason)),
    };
    request.frames.iter().zip(found).map(answer).collect()
}

/// Names Python functions, which were read when they were sampled.
fn name_in_python(request: &Request, names: &PythonNames) -> Vec<Answer> {
    let answer = |&(frame, address): &Asked| match names.get(address) {
        Ok(name) => {
            request.module.comes_from(Origin::Python);
            let line = SourceLine {
                function: name.function.to_string(),
                file: name.file.to_string(),
                line: name.line,
            };
            Answer {
                source: vec![line],
                ..Answer::new(frame, Ok(name.function.to_string()))
            }
        }
        Err(reason) => Answer::new(frame, Err(reason)),
    };
    request.frames.iter().map(answer).collect()
}

/// Names functions of a file from the answer for each frame.
fn name_in_file(request: &Request, names: FileNames) -> Vec<Answer> {
    let answer = |(&(frame, offset), place): (&Asked, PlaceNames)| Answer {
        frame,
        late_for: request.again.then_some((request.module.id, offset)),
        name: match place.name {
            PlaceName::Named { name, .. } => NameState::Named(name.into()),
            PlaceName::Unnamed {
                reason,
                start: Some(FileOffset(start)),
            } => NameState::UnnamedIn {
                reason: no_name(reason),
                start,
            },
            PlaceName::Unnamed {
                reason,
                start: None,
            } => NameState::Unnamed(no_name(reason)),
        },
        source: place.lines,
    };
    let places = request.frames.iter().zip(names.places);
    places.map(answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::sync::Barrier;

    /// A file that only its descriptor leads to, such as one in another root directory whose
    /// process has ended.
    #[test]
    fn workers_that_read_a_file_at_once_all_get_it() {
        let own = std::env::current_exe().expect("this test");
        for _ in 0..20 {
            let file = File::open(&own).expect("it can be read");
            let module = NamedModule::new(&Module {
                id: probe::ModuleId(1),
                user: 0,
                kind: ModuleKind::File {
                    path: PathBuf::from("/nonexistent/program"),
                    build_id: None,
                    device: (0, 0),
                    inode: 0,
                    identity: Some(FileIdentity::of(&file).expect("it is there")),
                    file: Some(Arc::new(file.into())),
                    summary: Err(Reason::Damaged),
                    root: None,
                    unreadable: None,
                },
            });
            let (symbolizer, together) = (Symbolizer::new(), Barrier::new(4));
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        together.wait();
                        let opened = module.with_source(|source| symbolizer.open(source));
                        opened.expect("a file").expect("its symbols");
                    });
                }
            });
        }
    }
}
