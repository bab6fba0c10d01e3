//! The workers that find names: what they are asked, and what becomes of the answers.

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

/// Frames sent to the naming workers at once; the rest follow when they are
/// named, so that the hottest of then come first. An eighth is for those whose files have
/// few of them.
const FRAMES_ASKED_MAX: usize = 20_000;

/// Frames whose lines are read later; of more the oldest have none.
const LATER_MAX: usize = 1 << 18;

/// How soon more are sent while many are being named.
const AGAIN: Duration = Duration::from_millis(200);

/// How soon more are sent while few are. Each time costs waking up a worker and the process that
/// reads the file, for each file.
const AGAIN_SOON: Duration = Duration::from_millis(100);

/// The threads that look up names and source lines, and the one that fetches debug
/// files.
pub struct Workers {
    symbolizer: Arc<Symbolizer>,
    naming: Naming,
    started: Instant,
    /// When names were asked for last.
    asked: Option<Instant>,
    /// Whether any have come.
    has_names: bool,
    sources: Sources,
    /// Frames with names whose lines were not asked for; `None` if they are at once.
    later: Option<VecDeque<FrameId>>,
    /// `None` if no debug files may be fetched.
    fetching: Option<Fetching>,
}

impl Workers {
    /// Starts all workers. `consent` says whether debug files may be fetched, `lines` when
    /// lines are read.
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

    /// What all of them look names up with.
    pub fn symbolizer(&self) -> &Arc<Symbolizer> {
        &self.symbolizer
    }

    /// Counts a sample whose innermost frame is in a module: debug files of hot ones
    /// are fetched.
    pub fn note_sample(&mut self, module: ModuleId) {
        if let Some(fetching) = &mut self.fetching {
            fetching.note(module);
        }
    }

    /// Whether any names have come.
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

    /// Whether debug files are fetched; `None` if no servers are named.
    pub fn fetching(&self) -> Option<FetchState> {
        self.fetching.as_ref().map(Fetching::fetch_state)
    }

    pub fn allow_fetching(&mut self, is_allowed: bool) {
        if let Some(fetching) = &mut self.fetching {
            fetching.allow(is_allowed);
        }
    }

    /// Sentences on what came of fetching.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        self.fetching.iter().flat_map(Fetching::notes)
    }

    /// Puts the names that were found into the store, and asks for more.
    pub fn exchange(&mut self, store: &mut Store, modules: &mut Modules) {
        self.take_names(store, modules);
        self.take_lines(store, modules);
        self.fetch_debug_files(store, modules);
        if self
            .asked
            .is_some_and(|asked| asked.elapsed() < self.pause())
        {
            return;
        }
        self.asked = Some(Instant::now());
        let mut all = self.naming.outstanding();
        let mut by_user = self.naming.outstanding_by_user();
        let wanted = store.frames_to_name_if(FRAMES_ASKED_MAX, |frame| {
            let user = modules.get(frame.module).map(|module| module.named.user);
            let own = by_user.entry(user.unwrap_or(NOBODY)).or_default();
            // Nobody's files take the room of others' frames.
            let may = may_have_more(*own, all, FRAMES_ASKED_MAX);
            *own += usize::from(may);
            all += usize::from(may);
            may
        });
        let wanted = Waiting::name(wanted, store);
        let asked = questions(wanted, store, modules);
        self.naming.ask(asked.into_iter());
    }

    /// How long no more names are asked for after some were.
    fn pause(&self) -> Duration {
        // To weigh all that are wanted is work.
        if self.naming.outstanding() > FRAMES_ASKED_MAX / SHARES {
            AGAIN
        } else if self.started.elapsed() < EARLY {
            // Nothing has a name yet.
            Duration::ZERO
        } else {
            AGAIN_SOON
        }
    }

    /// Puts names into the store. A frame whose name came without lines goes on to the
    /// thread that looks for those.
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

    /// Goes on with debug information, or puts off what was not read yet.
    pub fn set_reading_lines(&mut self, is_reading: bool, store: &Store, modules: &Modules) {
        self.sources.set_paused(!is_reading);
        if is_reading {
            self.read_lines(store, modules);
            self.later = None;
        } else {
            self.later.get_or_insert_default();
        }
    }

    /// Asks for the lines of all frames for which that was put off. A number that is another
    /// frame's by now is asked for as that one.
    pub fn read_lines(&mut self, store: &Store, modules: &Modules) {
        if let Some(later) = &mut self.later {
            let frames = std::mem::take(later).into();
            self.sources
                .ask(questions(frames, store, modules).into_iter());
        }
    }

    /// Puts lines and inlined functions into the store. Answers for a frame whose
    /// number is another's by now are dropped.
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

    /// Asks for what is hot, and takes in what has come: its frames want names
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

/// What the workers need to know of each frame; frames of modules that are not known
/// are left out.
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

/// A line as the store wants it.
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
