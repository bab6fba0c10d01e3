//! What reading other tools' files has in common: their names, modules and threads
//! become numbers, and what was told of a place is kept until the store knows the
//! stacks that it is on.
//!
//! A reader asks for numbers ([`Import::module`], [`Import::process`],
//! [`Import::frame`]), says what it knows of frames ([`Import::set_chain`]), adds samples,
//! and takes the store at the end. Everything that a file can make grow has a bound
//! here.

use super::FormatError;
use super::wire::clean;
use crate::{
    Ending, EventId, Frame, FrameKind, Limits, ModuleId, NameState, NewSample, NoName, ProcessId,
    SourceFrame, Store, WaitPart,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// All samples together weigh at most that: sums stay exact everywhere.
const WEIGHT_MAX: u64 = 1 << 53;

/// Letters of all texts together, each counted once.
const LETTERS_MAX: usize = 256 << 20;

/// Modules, processes and places of one file.
const THINGS_MAX: usize = 8 << 20;

/// Functions at one place that are kept.
const CHAIN_MAX: usize = 256;

/// Places without an address count from here: no file is as long.
const NO_ADDRESS: u64 = 1 << 62;

/// The kernel's name for a thread has fifteen letters; others are longer.
const COMM_MAX: usize = 256;

/// A file on its way into a store.
/// Made by most readers of other tools' files, and to put recordings together.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) store: Store,
    /// All texts, cleaned of what could harm a terminal.
    texts: HashSet<Arc<str>>,
    /// Their bytes, at most [`LETTERS_MAX`].
    letters: usize,
    /// By path and build-id: a file that was replaced is another module.
    modules: HashMap<(Arc<str>, Vec<u8>), ModuleId>,
    /// By pid and name, as formats without pids tell processes by names alone.
    processes: HashMap<(u32, Arc<str>), ProcessId>,
    /// By module, address (`u64::MAX` for none) and name: the frame that was given.
    places: HashMap<(ModuleId, u64, Option<Arc<str>>), Frame>,
    /// Frames that some place has.
    taken: HashSet<Frame>,
    /// What is known of a frame; the first that was told counts.
    told: HashMap<Frame, Told>,
    /// All weights so far.
    weight: u64,
}

/// One function of a place.
/// An empty file and line 0 mean that they are not known.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) function: Arc<str>,
    pub(crate) file: Arc<str>,
    pub(crate) line: u32,
}

/// What a frame is called, or why it has no name.
#[derive(Debug)]
enum Told {
    Unnamed(NameState),
    /// Innermost first; the last one is the function whose code it is.
    Chain(Vec<Link>),
}

impl Import {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            store: Store::new(limits),
            texts: HashSet::new(),
            letters: 0,
            modules: HashMap::new(),
            processes: HashMap::new(),
            places: HashMap::new(),
            taken: HashSet::new(),
            told: HashMap::new(),
            weight: 0,
        }
    }

    /// A text as it may be shown, once for all that are equal.
    pub(crate) fn text(&mut self, text: &str) -> Result<Arc<str>, FormatError> {
        let text = clean(text);
        if let Some(known) = self.texts.get(text.as_str()) {
            return Ok(Arc::clone(known));
        }
        self.letters += text.len();
        if self.letters > LETTERS_MAX || self.texts.len() >= THINGS_MAX {
            return Err(FormatError::TooLarge("the names in it"));
        }
        let text: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&text));
        Ok(text)
    }

    /// The module of a path; `[kernel]` and its like are paths, too.
    pub(crate) fn module(&mut self, path: &str, build_id: &[u8]) -> Result<ModuleId, FormatError> {
        let path = self.text(path)?;
        let build_id = &build_id[..build_id.len().min(64)];
        let key = (path, build_id.to_vec());
        if let Some(known) = self.modules.get(&key) {
            return Ok(*known);
        }
        room(self.modules.len())?;
        let id = ModuleId(self.modules.len() as u32);
        let path = &key.0;
        let name = if path.starts_with('[') {
            path
        } else {
            path.rsplit('/').next().unwrap_or_default()
        };
        self.store.add_module(id, name, path);
        self.store.set_build_id(id, build_id);
        self.modules.insert(key, id);
        Ok(id)
    }

    /// The process of that number and name.
    pub(crate) fn process(&mut self, pid: u32, name: &str) -> Result<ProcessId, FormatError> {
        let name = self.comm(name)?;
        let next = ProcessId(self.processes.len() as u32 + 1);
        let id = *self
            .processes
            .entry((pid, Arc::clone(&name)))
            .or_insert(next);
        if id == next {
            room(self.processes.len())?;
            self.store.add_process(id, pid, &name);
        }
        Ok(id)
    }

    /// The name of a thread or process.
    pub(crate) fn comm(&mut self, name: &str) -> Result<Arc<str>, FormatError> {
        match name.char_indices().nth(COMM_MAX) {
            Some((end, _)) => self.text(&name[..end]),
            None => self.text(name),
        }
    }

    /// The frame for a place in a module. Places of no address, or of one that
    /// has another name already, get one that is nowhere.
    pub(crate) fn frame(
        &mut self,
        module: ModuleId,
        address: Option<u64>,
        kind: FrameKind,
        name: Option<&Arc<str>>,
    ) -> Result<Frame, FormatError> {
        let key = (module, address.unwrap_or(u64::MAX), name.cloned());
        if let Some(known) = self.places.get(&key) {
            return Ok(*known);
        }
        room(self.places.len())?;
        let mut frame = Frame {
            module,
            address: address.unwrap_or(NO_ADDRESS),
            kind,
        };
        // The number of places makes an address that no other has.
        if address.is_none() || (self.taken.contains(&frame) && name.is_some()) {
            frame.address = NO_ADDRESS + self.places.len() as u64;
        }
        self.taken.insert(frame);
        self.places.insert(key, frame);
        Ok(frame)
    }

    /// What a frame is called, with what is inlined there, innermost first.
    pub(crate) fn set_chain(&mut self, frame: Frame, mut chain: Vec<Link>) {
        if chain.len() > CHAIN_MAX {
            // The innermost stay, and the last one, whose code it is.
            chain.drain(CHAIN_MAX - 1..chain.len() - 1);
        }
        self.told.entry(frame).or_insert(Told::Chain(chain));
    }

    /// Why a frame has no name.
    pub(crate) fn tell_unnamed(&mut self, frame: Frame, reason: NoName) {
        self.tell_state(frame, NameState::Unnamed(reason));
    }

    /// As [`Import::tell_unnamed`], with where its function starts.
    pub(crate) fn tell_state(&mut self, frame: Frame, state: NameState) {
        self.told.entry(frame).or_insert(Told::Unnamed(state));
    }

    /// Adds a sample; one that weighs nothing is left out.
    pub(crate) fn sample(&mut self, sample: NewSample<'_>) -> Result<(), FormatError> {
        match sample.weight {
            0 => Ok(()),
            _ => self.sample_of_any(sample),
        }
    }

    /// As [`Import::sample`], with what the sample tells of a wait.
    pub(crate) fn wait(
        &mut self,
        sample: NewSample<'_>,
        wait: WaitPart,
    ) -> Result<(), FormatError> {
        match sample.weight {
            0 => Ok(()),
            _ => self.add(sample, wait),
        }
    }

    /// Adds a sample, also one that weighs nothing: it may count by another metric of
    /// the file, and stacks shall have the same numbers by each.
    pub(crate) fn sample_of_any(&mut self, sample: NewSample<'_>) -> Result<(), FormatError> {
        self.add(sample, WaitPart::NONE)
    }

    fn add(&mut self, sample: NewSample<'_>, wait: WaitPart) -> Result<(), FormatError> {
        self.weight = self.weight.saturating_add(sample.weight);
        if self.weight > WEIGHT_MAX {
            return Err(FormatError::TooLarge(
                "its samples add up to more than 2^53",
            ));
        }
        self.store.add_wait_of(EventId::FIRST, sample, wait);
        Ok(())
    }

    /// The store, its frames named.
    ///
    /// Names come last because a store takes them only for frames that a kept stack
    /// has.
    pub(crate) fn finish(mut self) -> Store {
        for (frame, told) in self.told {
            let Some(id) = self.store.find_frame(&frame) else {
                continue;
            };
            let chain = match told {
                Told::Chain(chain) => chain,
                Told::Unnamed(state) => {
                    self.store.set_name(id, state);
                    continue;
                }
            };
            let Some(own) = chain.last() else { continue };
            let name = NameState::Named(Arc::clone(&own.function));
            self.store.set_name(id, name);
            if chain.len() > 1 || own.line > 0 || !own.file.is_empty() {
                let links = chain.iter().map(|link| SourceFrame {
                    function: &link.function,
                    file: &link.file,
                    line: link.line,
                });
                self.store.set_source(id, &links.collect::<Vec<_>>());
            }
        }
        self.store
    }
}

/// An error where one more thing would exceed [`THINGS_MAX`].
fn room(len: usize) -> Result<(), FormatError> {
    if len < THINGS_MAX {
        Ok(())
    } else {
        Err(FormatError::TooLarge("the things it names"))
    }
}

/// On which side of the kernel boundary a module's code is, by its name.
pub(crate) fn kind_of(module: &str) -> FrameKind {
    let name = module.rsplit('/').next().unwrap_or_default();
    let is_module = name.ends_with(".ko") || name.contains(".ko.");
    match module {
        _ if module.starts_with("[kernel") || module.starts_with("[guest.kernel") => {
            FrameKind::Kernel
        }
        _ if name.starts_with("vmlinux") || is_module => FrameKind::Kernel,
        "[anon]" | "//anon" => FrameKind::Jit,
        // Maps and images of run-time code that perf knows: `/tmp/perf-PID.map` and the
        // files that `perf inject --jit` makes.
        _ if name.starts_with("perf-") && name.ends_with(".map") => FrameKind::Jit,
        _ if name.starts_with("jitted-") && name.ends_with(".so") => FrameKind::Jit,
        _ => FrameKind::User,
    }
}

/// How a walk ended of which nothing is told.
///
/// A stack whose outermost frame is the kernel's has no user side; any other is taken
/// to be whole.
pub(crate) fn plain_ending(frames: &[Frame]) -> Ending {
    match frames.last() {
        Some(frame) if frame.kind == FrameKind::Kernel => Ending::NoUserStack,
        _ => Ending::Root,
    }
}

/// A build-id, from its letters.
/// Ends at the first pair that is no hexadecimal number.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks_exact(2);
    pairs
        .map_while(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect()
}
