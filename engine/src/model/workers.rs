//! The workers that find names: sends them frames, and puts their answers into the store.

use super::modules::Modules;
use super::waiting::Waiting;
use crate::clock::EARLY;
use crate::debuginfod::Fetching;
use crate::naming::{NamedModule, Naming};
use crate::settings::{Consent, LineReading};
use crate::snapshot::{FetchState, Loading};
use crate::sources::{DEBUG_BYTES_MAX, LINES_BYTES_MAX, Sources};
use probe::shares::{NOBODY, SHARES, may_have_more};
use profile::{FrameId, ModuleId, SourceFrame, Store};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use symbolize::parser::names::SourceLine;
use symbolize::{Symbolizer, TableCache, table_cache};

/// Maximum number of frames sent to the naming workers at once. Others are sent when these are
/// named, so that the frames that are hottest by then come first. An eighth is reserved for users
/// whose files have few of them.
const FRAMES_ASKED_MAX: usize = 20_000;

/// Maximum number of frames whose lines are read later; if there are more, the oldest get no lines.
const LATER_MAX: usize = 1 << 18;

/// Minimum time before more frames are sent while many are being named.
const AGAIN: Duration = Duration::from_millis(200);

/// Minimum time before more frames are sent while few are being named, unless a report waits for
/// them. Each request wakes up a worker and the parser process, for each file.
const AGAIN_SOON: Duration = Duration::from_millis(250);

/// The threads that look up names and source lines, and the thread that fetches debug files.
pub struct Workers {
    symbolizer: Arc<Symbolizer>,
    naming: Naming,
    started: Instant,
    /// When frames were last sent.
    asked: Option<Instant>,
    /// Whether there are any names.
    has_names: bool,
    sources: Sources,
    /// Named frames whose lines were not requested; `None` if lines are requested at once.
    later: Option<VecDeque<FrameId>>,
    /// `None` if debug files may not be fetched.
    fetching: Option<Fetching>,
}

impl Workers {
    /// Starts all workers. `consent` says whether debug files may be fetched, `lines` when lines
    /// are read.
    pub fn start(consent: Consent, lines: LineReading) -> Self {
        let symbolizer = Arc::new(symbolizer());
        Self {
            symbolizer: symbolizer.clone(),
            naming: Naming::start(symbolizer.clone()),
            started: Instant::now(),
            asked: None,
            has_names: false,
            sources: Sources::start(symbolizer.clone()),
            later: (lines == LineReading::WhenAsked).then(VecDeque::new),
            fetching: Fetching::start(symbolizer, consent),
        }
    }

    /// The symbolizer that all of them share.
    pub fn symbolizer(&self) -> &Arc<Symbolizer> {
        &self.symbolizer
    }

    /// Counts a sample whose innermost frame is in a module: debug files of hot modules are
    /// fetched.
    pub fn note_sample(&mut self, module: ModuleId) {
        if let Some(fetching) = &mut self.fetching {
            fetching.note(module);
        }
    }

    /// Whether there are any names.
    pub fn has_names(&self) -> bool {
        self.has_names
    }

    /// Number of frames that wait for a name or a line.
    pub fn outstanding(&self) -> usize {
        self.naming.outstanding() + self.sources.outstanding()
    }

    /// The files that are being fetched.
    pub fn loading(&self) -> impl Iterator<Item = Loading> {
        self.fetching.iter().filter_map(Fetching::loading)
    }

    /// The state of fetching debug files; `None` if no servers are configured.
    pub fn fetching(&self) -> Option<FetchState> {
        self.fetching.as_ref().map(Fetching::fetch_state)
    }

    /// Handles the user's answer whether debug files may be fetched from servers.
    pub fn allow_fetching(&mut self, is_allowed: bool) {
        if let Some(fetching) = &mut self.fetching {
            fetching.allow(is_allowed);
        }
    }

    /// Notes about the results of fetching.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        self.fetching.iter().flat_map(Fetching::notes)
    }

    /// Puts the names that were found into the store, and sends more frames: at intervals, or at once
    /// if all are needed now.
    pub fn exchange(&mut self, store: &mut Store, modules: &mut Modules, are_all_needed: bool) {
        self.take_names(store, modules);
        self.take_lines(store, modules);
        self.fetch_debug_files(store, modules);
        let is_recent = |asked: Instant| asked.elapsed() < self.pause();
        if !are_all_needed && self.asked.is_some_and(is_recent) {
            return;
        }
        self.asked = Some(Instant::now());
        let mut all = self.naming.outstanding();
        let mut by_user = self.naming.outstanding_by_user();
        let wanted = store.frames_to_name_if(FRAMES_ASKED_MAX, |frame| {
            let user = modules.get(frame.module).map(|module| module.named.user);
            let own = by_user.entry(user.unwrap_or(NOBODY)).or_default();
            // No user's files may take the room of other users' frames.
            let may = may_have_more(*own, all, FRAMES_ASKED_MAX);
            *own += usize::from(may);
            all += usize::from(may);
            may
        });
        let wanted = Waiting::name(wanted, store);
        let asked = questions(wanted, store, modules);
        self.naming.ask(asked.into_iter());
    }

    /// How long to wait after sending frames before sending more.
    fn pause(&self) -> Duration {
        // Weighing all frames takes time.
        if self.naming.outstanding() > FRAMES_ASKED_MAX / SHARES {
            AGAIN
        } else if self.started.elapsed() < EARLY {
            // No frame has a name yet.
            Duration::ZERO
        } else {
            AGAIN_SOON
        }
    }

    /// Puts names into the store. A frame whose name came without lines is sent to the thread that
    /// looks up lines.
    fn take_names(&mut self, store: &mut Store, modules: &Modules) {
        // In the order of the names: the hottest first.
        let mut named = Vec::new();
        for answer in self.naming.answers() {
            self.has_names = true;
            if answer.is_for(store.frame(answer.frame)) {
                let chain: Vec<SourceFrame<'_>> = answer.source.iter().map(source_frame).collect();
                if chain.is_empty() {
                    named.push(answer.frame);
                }
                store.set_name(answer.frame, answer.name);
                store.set_source(answer.frame, &chain);
            }
        }
        if let Some(later) = &mut self.later {
            later.extend(named);
            let surplus = later.len().saturating_sub(LATER_MAX);
            later.drain(..surplus);
            return;
        }
        self.sources
            .ask(questions(named, store, modules).into_iter());
    }

    /// Continues reading debug information, or drops the requests that were not handled.
    pub fn set_reading_lines(&mut self, is_reading: bool, store: &Store, modules: &Modules) {
        self.sources.set_paused(!is_reading);
        if is_reading {
            self.read_lines(store, modules);
            self.later = None;
        } else {
            self.later.get_or_insert_default();
        }
    }

    /// Requests the lines of all frames for which that was put off. If a number belongs to another
    /// frame by now, that one is requested.
    pub fn read_lines(&mut self, store: &Store, modules: &Modules) {
        if let Some(later) = &mut self.later {
            let frames = std::mem::take(later).into();
            self.sources
                .ask(questions(frames, store, modules).into_iter());
        }
    }

    /// Puts lines and inlined functions into the store. Answers for a frame whose number belongs to
    /// another one by now are dropped.
    fn take_lines(&mut self, store: &mut Store, modules: &mut Modules) {
        for source in self.sources.answers() {
            let frame = store.frame(source.frame);
            if source.is_for(frame) {
                let chain = source.chain();
                if let Some(frame) = frame.filter(|_| !chain.is_empty()) {
                    modules.found_lines(frame.module);
                }
                store.set_source(source.frame, &chain);
            }
        }
    }

    /// Requests debug files of hot modules, and handles those that arrived: their frames need names
    /// and lines once more.
    fn fetch_debug_files(&mut self, store: &Store, modules: &Modules) {
        let Some(fetching) = &mut self.fetching else {
            return;
        };
        let came = fetching.answers();
        fetching.ask(|id| {
            let module = modules.get(id).filter(|module| module.named.is_file())?;
            Some((&module.named, &module.build_id, module.name.as_str()))
        });
        for module in came {
            let frames = store.frames_in(module);
            self.naming.ask_again(questions(frames, store, modules));
        }
    }
}

/// Returns what the workers need to know about each frame; frames of unknown modules are left out.
fn questions(
    frames: Vec<FrameId>,
    store: &Store,
    modules: &Modules,
) -> Vec<(FrameId, u64, Arc<NamedModule>)> {
    let question = |id| {
        let frame = store.frame(id)?;
        let module = modules.get(frame.module)?;
        Some((id, frame.address, module.named.clone()))
    };
    frames.into_iter().filter_map(question).collect()
}

/// Converts a line to the form that the store takes.
fn source_frame(line: &SourceLine) -> SourceFrame<'_> {
    SourceFrame {
        function: &line.function,
        file: &line.file,
        line: line.line,
    }
}

/// A symbolizer with the range tables of earlier runs, if there is a place for them.
fn symbolizer() -> Symbolizer {
    let base = symbolize::cache_directory::default_base();
    let tables = base.and_then(|base| TableCache::open(&base, table_cache::BYTES_MAX).ok());
    let symbolizer = Symbolizer::new()
        .with_files(probe::files::of_targets())
        .with_debug_bytes_max(DEBUG_BYTES_MAX)
        .with_lines_bytes_max(LINES_BYTES_MAX)
        .with_kernel_symbols(probe::kernel_symbols::read)
        .with_bpf(Box::new(probe::BpfPrograms));
    match tables {
        Some(tables) => symbolizer.with_tables(tables),
        None => symbolizer,
    }
}
