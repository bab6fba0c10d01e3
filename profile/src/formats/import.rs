//! The common part of reading other tools' files. Names, modules and threads become numbers, and
//! descriptions of places are kept until the store has the stacks that contain them.
//!
//! A reader obtains numbers ([`Import::module`], [`Import::process`], [`Import::frame`]), describes
//! frames ([`Import::set_chain`]), adds samples, and takes the store at the end. Everything that a
//! file can make grow has a bound here.

use super::FormatError;
use super::wire::clean;
use crate::{
    Ending, EventId, Frame, FrameKind, Limits, ModuleId, NameState, NewSample, NoName, ProcessId,
    SourceFrame, Store, WaitPart,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Upper limit of the weight of all samples together: up to here sums are exact as `f64`.
const WEIGHT_MAX: u64 = 1 << 53;

/// Upper limit of the bytes of all texts together, each distinct text counted once.
const LETTERS_MAX: usize = 256 << 20;

/// Upper limit of the number of modules, of processes and of places of one file.
const THINGS_MAX: usize = 8 << 20;

/// Number of functions at one place that are kept.
const CHAIN_MAX: usize = 256;

/// Places without an address are numbered from here on: no file is that long.
const NO_ADDRESS: u64 = 1 << 62;

/// Longest name of a thread that is kept, in bytes. The kernel's names have up to fifteen; other
/// systems have longer ones.
const COMM_MAX: usize = 256;

/// A file that is being read into a store. Used by most readers of other tools' files, and to merge
/// recordings.
#[derive(Debug)]
pub(crate) struct Import {
    /// The store that the samples go into; its frames have no names before [`Import::finish`].
    pub(crate) store: Store,
    /// All distinct texts, cleaned of control characters that could harm a terminal.
    texts: HashSet<Arc<str>>,
    /// Bytes of these texts, at most [`LETTERS_MAX`].
    letters: usize,
    /// Modules by path and build-id: a file that was replaced is another module.
    modules: HashMap<(Arc<str>, Vec<u8>), ModuleId>,
    /// Processes by pid and name: in formats without pids only the name tells them apart.
    processes: HashMap<(u32, Arc<str>), ProcessId>,
    /// The frame given to each place, by module, address (`u64::MAX` for none) and name.
    places: HashMap<(ModuleId, u64, Option<Arc<str>>), Frame>,
    /// All frames given so far.
    taken: HashSet<Frame>,
    /// The description of each frame; the first one that was given counts.
    told: HashMap<Frame, Told>,
    /// Sum of all weights so far.
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

/// The names of a frame, or the reason why it has none.
#[derive(Debug)]
enum Told {
    Unnamed(NameState),
    /// The functions at the frame, innermost first; the last one is the function that contains the
    /// code.
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

    /// Returns a text cleaned for display; equal texts share one allocation.
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

    /// Returns the module with that path and build-id. `[kernel]` and similar names count as paths.
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

    /// Returns the process with that number and name.
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

    /// Returns the name of a thread or process, shortened to the longest that is kept.
    pub(crate) fn comm(&mut self, name: &str) -> Result<Arc<str>, FormatError> {
        match name.char_indices().nth(COMM_MAX) {
            Some((end, _)) => self.text(&name[..end]),
            None => self.text(name),
        }
    }

    /// Returns the frame for a place in a module. A place without an address, or with one that
    /// already has another name, gets a frame at an address that no code has.
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
        // The number of places gives an address that no other place has.
        if address.is_none() || (self.taken.contains(&frame) && name.is_some()) {
            frame.address = NO_ADDRESS + self.places.len() as u64;
        }
        self.taken.insert(frame);
        self.places.insert(key, frame);
        Ok(frame)
    }

    /// Sets the names of a frame: its function with what is inlined there, innermost first.
    pub(crate) fn set_chain(&mut self, frame: Frame, mut chain: Vec<Link>) {
        if chain.len() > CHAIN_MAX {
            // If there are too many, the innermost ones and the last one, which contains the code,
            // are kept.
            chain.drain(CHAIN_MAX - 1..chain.len() - 1);
        }
        self.told.entry(frame).or_insert(Told::Chain(chain));
    }

    /// Sets the reason why a frame has no name.
    pub(crate) fn tell_unnamed(&mut self, frame: Frame, reason: NoName) {
        self.tell_state(frame, NameState::Unnamed(reason));
    }

    /// Sets why a frame has no name, as [`Import::tell_unnamed`] does, and where its function
    /// starts.
    pub(crate) fn tell_state(&mut self, frame: Frame, state: NameState) {
        self.told.entry(frame).or_insert(Told::Unnamed(state));
    }

    /// Adds a sample; one with weight 0 is left out.
    pub(crate) fn sample(&mut self, sample: NewSample<'_>) -> Result<(), FormatError> {
        match sample.weight {
            0 => Ok(()),
            _ => self.sample_of_any(sample),
        }
    }

    /// Adds a sample as [`Import::sample`] does, with details of a wait.
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

    /// Adds a sample, even one with weight 0. It may count by another metric of the same file, and
    /// stacks must have the same numbers whichever metric is read.
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

    /// Returns the store after naming its frames.
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

/// Returns an error if adding one more thing would exceed [`THINGS_MAX`].
fn room(len: usize) -> Result<(), FormatError> {
    if len < THINGS_MAX {
        Ok(())
    } else {
        Err(FormatError::TooLarge("the things it names"))
    }
}

/// Returns the kind of code of a module, by its name.
pub(crate) fn kind_of(module: &str) -> FrameKind {
    let name = module.rsplit('/').next().unwrap_or_default();
    let is_module = name.ends_with(".ko") || name.contains(".ko.");
    match module {
        _ if module.starts_with("[kernel") || module.starts_with("[guest.kernel") => {
            FrameKind::Kernel
        }
        _ if name.starts_with("vmlinux") || is_module => FrameKind::Kernel,
        "[anon]" | "//anon" => FrameKind::Jit,
        // Files of run-time code that perf writes: `/tmp/perf-PID.map`, and the images made by
        // `perf inject --jit`.
        _ if name.starts_with("perf-") && name.ends_with(".map") => FrameKind::Jit,
        _ if name.starts_with("jitted-") && name.ends_with(".so") => FrameKind::Jit,
        _ => FrameKind::User,
    }
}

/// The ending of a walk for which the file gives none.
///
/// A stack whose outermost frame is the kernel's has no user side; any other is taken
/// to be whole.
pub(crate) fn plain_ending(frames: &[Frame]) -> Ending {
    match frames.last() {
        Some(frame) if frame.kind == FrameKind::Kernel => Ending::NoUserStack,
        _ => Ending::Root,
    }
}

/// Converts the hexadecimal text of a build-id to bytes; stops at the first pair that is not a
/// hexadecimal number.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks_exact(2);
    pairs
        .map_while(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect()
}
