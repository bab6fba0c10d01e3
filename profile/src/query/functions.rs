//! Self and total of every function in a window.

use super::tally::Tally;
use super::trend::Trends;
use crate::intern::{NO_STACK, StackId};
use crate::names::Tag;
use crate::sources::Link;
use crate::store::{Module, Store};
use crate::{Completeness, FrameId, FrameKind, FunctionId, FunctionRow, ModuleId, RowName};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// What the row of the samples without any frame is called.
const NO_STACK_NAME: &str = "[no stack]";

/// The counts of all functions, by the number of their owner.
pub(super) struct Counts {
    cells: Vec<Cell>,
    /// Occurrences of frames, by the tag of their name.
    tags: [u64; Tag::COUNT],
}

/// What one function has; together, because all are touched at once.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    self_samples: u32,
    total_samples: u32,
    /// The last stack that counted here, plus one: recursion counts once.
    mark: u32,
    /// The frame whose place in source text is shown, and the self samples
    /// that chose it.
    place: FrameId,
    place_samples: u32,
    /// Whether it was found as the function whose code it is.
    out_of_line: bool,
}

impl Cell {
    #[inline]
    fn add(&mut self, stack: u32, samples: u32, frame: FrameId) {
        if self.mark != stack + 1 {
            if self.mark == 0 {
                self.place = frame;
            }
            self.mark = stack + 1;
            self.total_samples += samples;
        }
    }
}

/// The rows, and where to find one.
pub(super) struct Functions {
    pub(super) rows: Vec<FunctionRow>,
    /// By the owner's number; those without a row have [`NO_ROW`].
    row_of: Vec<u32>,
}

const NO_ROW: u32 = u32::MAX;

pub(super) fn count(store: &Store, tally: &Tally) -> Counts {
    let owners = store.names.owners().as_slice();
    let frame_tags = store.names.tags();
    let mut cells = vec![Cell::default(); owners.len()];
    let mut leaves = vec![0u32; owners.len()];
    let mut tags = [0; Tag::COUNT];
    for (number, samples) in (0u32..).zip(&tally.stacks) {
        if *samples == 0 {
            continue;
        }
        let frames = store.stacks.frames(StackId(number));
        for frame in frames {
            tags[frame_tags[*frame as usize].index()] += u64::from(*samples);
            let frame = FrameId(*frame);
            for link in store.inlined_in(frame) {
                cells[link.function.0 as usize].add(number, *samples, frame);
            }
            let own = &mut cells[owners[frame.0 as usize].0 as usize];
            own.add(number, *samples, frame);
            own.out_of_line = true;
        }
        leaves[store.stacks.leaf(StackId(number)).0 as usize] += samples;
    }
    for (frame, samples) in (0..).map(FrameId).zip(leaves).filter(|(_, n)| *n > 0) {
        let cell = &mut cells[store.innermost(frame).0 as usize];
        cell.self_samples += samples;
        if samples > cell.place_samples {
            (cell.place, cell.place_samples) = (frame, samples);
        }
    }
    // The stand-in for a missing stack is no frame.
    let no_stack = u64::from(cells[NO_STACK.0 as usize].total_samples);
    tags[store.names.tag(NO_STACK).index()] -= no_stack;
    Counts { cells, tags }
}

impl Counts {
    /// Fills in what the frames say.
    pub(super) fn complete(&self, store: &Store, completeness: &mut Completeness) {
        completeness.frames = self.tags.iter().sum();
        completeness.named = self.tags[Tag::NAMED.index()];
        let mut unnamed: Vec<(&'static str, u64)> = store
            .names
            .reasons()
            .map(|(tag, reason)| (reason, self.tags[tag.index()]))
            .filter(|(_, frames)| *frames > 0)
            .collect();
        unnamed.sort_by_key(|(reason, frames)| (Reverse(*frames), *reason));
        let unnamed_sum: u64 = unnamed.iter().map(|(_, frames)| frames).sum();
        completeness.pending = completeness.frames - completeness.named - unnamed_sum;
        completeness.unnamed = unnamed;
    }
}

pub(super) fn rows(store: &Store, counts: &Counts, trends: &Trends) -> Functions {
    let mut modules = ModuleCache::new(store);
    let mut rows: Vec<FunctionRow> = (0..)
        .map(FrameId)
        .zip(&counts.cells)
        .filter(|(_, cell)| cell.total_samples > 0)
        .map(|(id, cell)| FunctionRow {
            self_samples: cell.self_samples.into(),
            total_samples: cell.total_samples.into(),
            trend: trends.function(id),
            inlined: !cell.out_of_line,
            ..describe(store, id, cell.place, &mut modules)
        })
        .collect();
    rows.sort_unstable_by(|a, b| {
        let by_count = (b.self_samples, b.total_samples).cmp(&(a.self_samples, a.total_samples));
        by_count
            .then_with(|| a.name.cmp(&b.name))
            .then_with(|| a.id.cmp(&b.id))
    });
    let mut row_of = vec![NO_ROW; counts.cells.len()];
    for (at, row) in (0..).zip(&rows) {
        row_of[row.id.0 as usize] = at;
    }
    Functions { rows, row_of }
}

impl Functions {
    /// How the function is called that a stack's innermost frame is in.
    pub(super) fn name(&self, function: FunctionId) -> Option<Arc<str>> {
        let row = *self.row_of.get(function.0 as usize)?;
        Some(Arc::clone(&self.rows.get(row as usize)?.name))
    }
}

/// Everything about a function but its counts.
fn describe(
    store: &Store,
    id: FunctionId,
    place: FrameId,
    modules: &mut ModuleCache<'_>,
) -> FunctionRow {
    let frame = store.frames.get(id);
    let address = frame.map_or(0, |f| f.address);
    let module = match frame {
        Some(frame) if id != NO_STACK => modules.get(frame.module),
        _ => Module {
            name: Arc::default(),
            path: Arc::default(),
        },
    };
    let chain = store.sources.chain(place);
    let is_inlined_there = |link: &&Link| link.function == id;
    let inlined = store.inlined_in(place).iter().find(is_inlined_there);
    let source = inlined.or(chain.last());
    let tag = store.names.tag(id);
    let name_state = match store.names.reason(tag) {
        Some(reason) => RowName::Unnamed(reason),
        None if tag.is_pending() => RowName::Pending,
        None => RowName::Named,
    };
    let name = match store.names.name(id) {
        Some(name) => Arc::clone(name),
        None if id == NO_STACK => NO_STACK_NAME.into(),
        None => format!("{}+{address:#x}", module.name).into(),
    };
    FunctionRow {
        id,
        name,
        module: module.name,
        module_path: module.path,
        kind: frame.map_or(FrameKind::User, |f| f.kind),
        address,
        name_state,
        file: source.and_then(|link| store.sources.file(*link).cloned()),
        line: source.map_or(0, |link| link.line),
        inlined: false,
        self_samples: 0,
        total_samples: 0,
        trend: Default::default(),
    }
}

/// Rows of one module share its name.
struct ModuleCache<'a> {
    store: &'a Store,
    modules: HashMap<ModuleId, Module>,
}

impl<'a> ModuleCache<'a> {
    fn new(store: &'a Store) -> Self {
        Self {
            store,
            modules: HashMap::new(),
        }
    }

    fn get(&mut self, id: ModuleId) -> Module {
        let found = self.modules.entry(id);
        found.or_insert_with(|| self.store.modules.get(id)).clone()
    }
}
