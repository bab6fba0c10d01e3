//! The workers that give names to frames, away from everything that must not
//! wait.

use probe::{Module, ModuleKind};
use profile::{FrameId, NameState};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use symbolize::{ElfSymbols, FileOffset, FileSource, Reason, Symbolizer, Vdso, demangle, sanitize};

/// Two, so that one file on a slow disk does not hold up all others.
const WORKERS: usize = 2;

/// Frames of one module that want names.
#[derive(Debug)]
struct Request {
    module: Arc<NamedModule>,
    frames: Vec<(FrameId, u64)>,
}

/// What is known of a frame's name now.
#[derive(Debug)]
pub struct Answer {
    pub frame: FrameId,
    pub name: NameState,
}

/// A module, and where its names are to be found.
#[derive(Debug)]
pub struct NamedModule {
    place: Place,
}

#[derive(Debug)]
enum Place {
    Kernel,
    Vdso,
    Vsyscall,
    File {
        path: PathBuf,
        build_id: Option<Vec<u8>>,
        device: (u32, u32),
        inode: u64,
        /// Taken by the first who reads it.
        file: Mutex<Option<Arc<OwnedFd>>>,
        unreadable: Option<Reason>,
    },
    Nowhere(Reason),
}

impl NamedModule {
    pub fn new(module: &Module) -> Self {
        let place = match &module.kind {
            ModuleKind::Kernel => Place::Kernel,
            ModuleKind::Vdso => Place::Vdso,
            ModuleKind::Vsyscall => Place::Vsyscall,
            ModuleKind::File {
                path,
                build_id,
                device,
                inode,
                file,
                unreadable,
            } => Place::File {
                device: *device,
                inode: *inode,
                path: path.clone(),
                build_id: build_id.clone(),
                file: Mutex::new(file.clone()),
                unreadable: *unreadable,
            },
            ModuleKind::Anonymous { .. } => Place::Nowhere(Reason::Jit),
            ModuleKind::Unmapped { .. } => Place::Nowhere(Reason::Unmapped),
        };
        Self { place }
    }

    /// Gives the descriptor back; the file is found again by its path.
    pub fn close_file(&self) {
        if let Place::File { file, .. } = &self.place {
            file.lock().expect("nobody panics with it").take();
        }
    }
}

/// The workers and the two queues. Dropping it ends them.
#[derive(Debug)]
pub struct Naming {
    requests: Option<Sender<Request>>,
    answers: Receiver<Vec<Answer>>,
    asked: usize,
    workers: Vec<JoinHandle<()>>,
}

impl Naming {
    pub fn start() -> Self {
        let (requests, queue) = channel::<Request>();
        let (results, answers) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let symbolizer = Arc::new(Symbolizer::new());
        let workers = (0..WORKERS)
            .filter_map(|_| {
                let (queue, results, symbolizer) =
                    (queue.clone(), results.clone(), symbolizer.clone());
                thread::Builder::new()
                    .name("naming".into())
                    .spawn(move || work(&queue, &results, &symbolizer))
                    .ok()
            })
            .collect();
        Self {
            requests: Some(requests),
            answers,
            asked: 0,
            workers,
        }
    }

    /// Asks for names, in this order. What belongs to one module goes as one
    /// request, at the place of its first frame.
    pub fn ask(&mut self, frames: impl Iterator<Item = (FrameId, u64, Arc<NamedModule>)>) {
        let mut order: Vec<Request> = Vec::new();
        let mut place: HashMap<*const NamedModule, usize> = HashMap::new();
        for (frame, address, module) in frames {
            self.asked += 1;
            let index = *place.entry(Arc::as_ptr(&module)).or_insert_with(|| {
                order.push(Request {
                    module,
                    frames: Vec::new(),
                });
                order.len() - 1
            });
            order[index].frames.push((frame, address));
        }
        if let Some(requests) = &self.requests {
            for request in order {
                // Without workers there are no names; the frames stay pending.
                let _ = requests.send(request);
            }
        }
    }

    /// The answers that have come.
    pub fn answers(&mut self) -> Vec<Answer> {
        let answers: Vec<Answer> = self.answers.try_iter().flatten().collect();
        self.asked = self.asked.saturating_sub(answers.len());
        answers
    }

    /// How many frames were asked for and not answered.
    pub fn outstanding(&self) -> usize {
        self.asked
    }
}

impl Drop for Naming {
    fn drop(&mut self) {
        self.requests.take();
        // A worker that reads a file from a dead server would hold us up; it
        // ends with the process.
        self.workers.clear();
    }
}

fn work(queue: &Mutex<Receiver<Request>>, results: &Sender<Vec<Answer>>, symbolizer: &Symbolizer) {
    loop {
        let next = queue.lock().expect("nobody panics with it").recv();
        let Ok(request) = next else {
            return;
        };
        let frames = request
            .frames
            .iter()
            .map(|(frame, _)| *frame)
            .collect::<Vec<_>>();
        // A parser's mistake must cost one file's names, not all that follow.
        let named = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            name_all(&request, symbolizer)
        }));
        let answers = named.unwrap_or_else(|_| {
            let name = NameState::Unnamed(Reason::Damaged.label());
            frames
                .into_iter()
                .map(|frame| Answer {
                    frame,
                    name: name.clone(),
                })
                .collect()
        });
        if results.send(answers).is_err() {
            return;
        }
    }
}

fn name_all(request: &Request, symbolizer: &Symbolizer) -> Vec<Answer> {
    let each = |name: &dyn Fn(u64) -> Result<String, Reason>| {
        let answer = |(frame, address): &(FrameId, u64)| Answer {
            frame: *frame,
            name: match name(*address) {
                Ok(name) => NameState::Named(name.into()),
                Err(reason) => NameState::Unnamed(reason.label()),
            },
        };
        request.frames.iter().map(answer).collect()
    };
    match &request.module.place {
        Place::Kernel => each(&|address| {
            let symbol = symbolizer.kernel().find(address)?;
            Ok(shown(symbol.name.as_bytes()))
        }),
        Place::Vdso => match Vdso::load() {
            Ok(vdso) => each(&|address| Ok(shown(vdso.find(FileOffset(address))?.name))),
            Err(error) => each(&|_| Err(error.reason())),
        },
        Place::Vsyscall => {
            each(&|address| symbolize::vdso::find_vsyscall(FileOffset(address)).map(str::to_string))
        }
        Place::File {
            path,
            build_id,
            device,
            inode,
            file,
            unreadable,
        } => {
            let file = file.lock().expect("nobody panics with it").take();
            let source = FileSource {
                build_id: build_id.as_deref(),
                device: *device,
                inode: *inode,
                file: file.as_deref(),
                ..FileSource::new(path)
            };
            match symbolizer.open(source) {
                Ok(symbols) => name_in_file(request, &symbols),
                Err(reason) => {
                    let reason = unreadable.unwrap_or(reason);
                    each(&|_| Err(reason))
                }
            }
        }
        Place::Nowhere(reason) => each(&|_| Err(*reason)),
    }
}

fn name_in_file(request: &Request, symbols: &ElfSymbols) -> Vec<Answer> {
    let name = |offset| match symbols.find(offset) {
        Ok(symbol) => NameState::Named(shown(symbol.name).into()),
        Err(reason) => match symbols.function_start(offset) {
            Some(FileOffset(start)) => NameState::UnnamedIn {
                reason: reason.label(),
                start,
            },
            None => NameState::Unnamed(reason.label()),
        },
    };
    let answer = |&(frame, offset): &(FrameId, u64)| Answer {
        frame,
        name: name(FileOffset(offset)),
    };
    request.frames.iter().map(answer).collect()
}

/// A symbol as a person reads it, safe to print.
fn shown(symbol: &[u8]) -> String {
    sanitize(demangle(symbol).short().as_bytes()).into_owned()
}
