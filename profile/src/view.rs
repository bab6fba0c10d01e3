//! A *view* is everything a store held at one moment. It never changes, costs little to make and
//! less to clone, and can be queried on any thread while the store goes on: the two share their
//! tables, and the store copies a table before it changes it.

use crate::intern::RESERVED;
use crate::probes::ProbeLog;
use crate::states::StateLog;
use crate::tables::{EventId, Module, Tables};
use crate::time::{TimeRange, Window};
use crate::{
    Busy, Frame, FrameId, FrameKind, Function, FunctionId, Info, Metric, NameState, ProcessId,
    Rates, Role, RowName,
};
use foldhash::{HashMap, HashMapExt as _};
use std::sync::Arc;

/// What a store held at one moment.
#[derive(Debug, Clone)]
pub struct View {
    pub(crate) tables: Arc<Tables>,
}

impl View {
    /// Returns the stacks of this view with the weights and the metric of `other`, which must be
    /// the same file, read by another of its metrics. `None` if the two do not have the same
    /// stacks.
    pub fn counting(&self, other: &View) -> Option<View> {
        let (tables, theirs) = (&*self.tables, &*other.tables);
        // Inlined functions that were found later come after all places.
        let is_alike = tables.frames.starts_with(&theirs.frames)
            && tables.stacks.len() == theirs.stacks.len()
            && tables.history.seconds() == theirs.history.seconds()
            && tables.history.samples() == theirs.history.samples()
            && tables.processes.thread_slots() == theirs.processes.thread_slots();
        is_alike.then(|| View {
            tables: Arc::new(Tables {
                history: theirs.history.clone(),
                info: Arc::new(Info {
                    metric: theirs.info.metric.clone(),
                    rates: theirs.info.rates.clone(),
                    ..Info::clone(&tables.info)
                }),
                ..tables.clone()
            }),
        })
    }

    /// The events that samples were taken of, with metric and number of samples: first the one that
    /// this view counts.
    pub fn events(&self) -> impl Iterator<Item = (EventId, &Metric, u64)> {
        let tables = &*self.tables;
        let first = (
            EventId::FIRST,
            &tables.info.metric,
            tables.history.samples(),
        );
        let others = tables.others.iter().enumerate().map(|(index, other)| {
            let event = EventId::of_index(index);
            (event, &other.metric, other.history.samples())
        });
        std::iter::once(first).chain(others)
    }

    /// Returns a view of one of the [`events`](View::events). It is the only event of the new view,
    /// whose history begins when counting the event began. Places and stacks have the same numbers
    /// as here.
    pub fn of_event(&self, event: EventId) -> Option<View> {
        let tables = &*self.tables;
        let Some(index) = event.index() else {
            return Some(self.clone());
        };
        let counted = tables.others.get(index)?;
        let begin_ns = tables.begin_ns.max(counted.since_ns);
        let later_ns = begin_ns
            .zip(tables.begin_ns)
            .map_or(0, |(own, all)| own - all);
        Some(View {
            tables: Arc::new(Tables {
                history: counted.history.clone(),
                others: Arc::default(),
                begin_ns,
                kept_seconds: (tables.kept_seconds - later_ns as f64 / 1e9).max(0.0),
                info: Arc::new(Info {
                    metric: counted.metric.clone(),
                    // No clock takes its samples.
                    rates: Rates::default(),
                    ..Info::clone(&tables.info)
                }),
                ..tables.clone()
            }),
        })
    }

    /// Number of samples in the whole history.
    pub fn samples(&self) -> u64 {
        self.tables.history.samples()
    }

    /// Number of seconds that the history goes back from the end of its last one.
    pub fn kept_seconds(&self) -> f64 {
        self.tables.kept_seconds
    }

    /// When the history begins; `None` if it is empty.
    pub fn begin_ns(&self) -> Option<u64> {
        self.tables.begin_ns
    }

    /// When the recording ended; if that is unknown, the end of the newest second with a sample.
    pub fn end_ns(&self) -> Option<u64> {
        self.tables.end_ns
    }

    /// The part of a range that the history covers.
    pub fn window(&self, range: TimeRange) -> Window {
        let TimeRange { start_ns, end_ns } = range;
        let end_ns = end_ns.or(self.end_ns()).unwrap_or(0);
        let begin_ns = self.begin_ns().unwrap_or(end_ns);
        let start_ns = start_ns.unwrap_or(0).max(begin_ns).min(end_ns);
        let pauses = self.info().pauses.iter();
        Window {
            start_ns,
            end_ns,
            paused_ns: pauses.map(|pause| pause.within(start_ns, end_ns)).sum(),
        }
    }

    /// The part of a range that has samples.
    pub(crate) fn reach(&self, range: TimeRange) -> TimeRange {
        let window = self.window(range);
        TimeRange::between(window.start_ns, window.end_ns)
    }

    /// Where and how the samples were taken.
    pub fn info(&self) -> &Arc<Info> {
        &self.tables.info
    }

    /// How busy the CPUs were, as far as known.
    pub fn busy(&self) -> Busy {
        self.tables.busy
    }

    /// What probes counted, in addition to the samples.
    pub fn probes(&self) -> &Arc<ProbeLog> {
        &self.tables.probes
    }

    /// What threads did and for whom they waited; empty if waiting time is not counted.
    pub fn states(&self) -> &Arc<StateLog> {
        &self.tables.states
    }

    /// Whether a process has ended: its end was reported, or it is not in the view any more.
    pub fn has_ended(&self, process: ProcessId) -> bool {
        let process = self.tables.processes.get(process);
        process.is_none_or(|process| process.exited)
    }

    /// Returns the place that a number stands for; `None` if it is from another store.
    pub fn frame(&self, id: FrameId) -> Option<Frame> {
        self.tables.frames.get(id)
    }

    /// Returns a frame's name in the form in which it can be set in another store.
    pub(crate) fn name_told(&self, frame: FrameId) -> NameState {
        let names = &self.tables.names;
        let state = names.state(frame);
        let NameState::Unnamed(reason) = state else {
            return state;
        };
        // The store's name for it: `module+0xstart`.
        let place = names.name(self.function_of(frame));
        let start = place.and_then(|place| place.rsplit_once("+0x"));
        match start.map(|(_, start)| u64::from_str_radix(start, 16)) {
            Some(Ok(start)) => NameState::UnnamedIn { reason, start },
            _ => state,
        }
    }

    /// Returns the function that a frame belongs to, in this view.
    pub fn function_of(&self, frame: FrameId) -> FunctionId {
        let owners = self.tables.names.owners();
        owners.get(frame.0 as usize).copied().unwrap_or(frame)
    }

    /// The first source file of each function, over all its frames: a format that identifies
    /// functions by their files needs one also for frames whose location is unknown.
    pub(crate) fn files(&self) -> HashMap<FunctionId, &str> {
        let sources = &self.tables.sources;
        let mut files = HashMap::new();
        for frame in (0..self.tables.frames.len() as u32).map(FrameId) {
            for (at, link) in sources.chain(frame).iter().enumerate() {
                let function = if at < sources.inlined_in(frame).len() {
                    link.function
                } else {
                    self.function_of(frame)
                };
                if let Some(file) = sources.file(*link) {
                    files.entry(function).or_insert(&**file);
                }
            }
        }
        files
    }

    /// Returns the description of a function, without its counts.
    pub fn function(&self, id: FunctionId) -> Function {
        let module = match self.frame(id) {
            Some(frame) if id.0 >= RESERVED => self.tables.modules.get(frame.module),
            _ => Module::none(),
        };
        self.describe(id, id, module)
    }

    /// Returns the description of a function as [`View::function`] does, with the source location
    /// of `place`, one of its frames.
    pub(crate) fn describe(&self, id: FunctionId, place: FrameId, module: Module) -> Function {
        let tables = &*self.tables;
        let frame = self.frame(id);
        let address = frame.map_or(0, |f| f.address);
        let inlined = tables.sources.inlined_in(place);
        let source = inlined
            .iter()
            .find(|link| link.function == id)
            .or(tables.sources.chain(place).last())
            .or(tables.sources.chain(id).last());
        let tag = tables.names.tag(id);
        let name_state = match tag.reason() {
            Some(reason) => RowName::Unnamed(reason),
            None if tag.is_pending() => RowName::Pending,
            None => RowName::Named,
        };
        Function {
            id,
            name: match tables.names.name(id) {
                Some(name) => Arc::clone(name),
                None => format!("{}+{address:#x}", module.name).into(),
            },
            module: module.name,
            module_path: module.path,
            build_id: module.build_id,
            kind: frame.map_or(FrameKind::User, |f| f.kind),
            address,
            name_state,
            file: source.and_then(|link| tables.sources.file(*link).cloned()),
            line: source.map_or(0, |link| link.line),
            role: Role::of(id),
        }
    }
}
