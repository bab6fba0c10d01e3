//! Merges several recordings into one: of several machines, or of one machine at several times.
//!
//! Modules are the same if path and build-id are equal, functions if they have one name in one
//! module. A process that is in two recordings becomes two processes: a pid is reused by other
//! programs, and a recording does not say when a process started, so joining by pid and name would
//! merge different processes. Each process is marked with its machine. (Call trees below each name,
//! and filters, join them.) Times are put on one clock if it is known when a recording began. Every
//! query gives the same result in whatever order and in however many steps recordings are merged.
//!
//! That is why a merge of recordings with different rates has no rate and does not change weights.
//! Weights that one step would round would be rounded again by the next, and the statistical
//! evidence of a sample (which confidence bands depend on) is not stored in a weight. The merged
//! recording has a note about it.

use crate::TimeRange;
use crate::formats::FormatError;
use crate::formats::import::{Import, Link};
use crate::intern::RESERVED;
use crate::rates::Weighing;
use crate::time::STAMP_NS;
use crate::{
    Busy, Frame, FrameId, Info, Limits, ModuleId, NameState, NewSample, Pause, ProcessId, Rates,
    Store, View,
};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Why recordings cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// They count different metrics: name and unit of the two.
    #[error("one counts {0}, another {1}: these do not add up")]
    Metrics(String, String),
    /// Together they exceed a limit.
    #[error(transparent)]
    TooLarge(#[from] FormatError),
}

/// Separator between the names of several machines.
const LIST: &str = ", ";

/// The note of a merged recording whose parts have different rates.
const RATES_DIFFER: &str = "recordings of different rates, or of unknown ones, were put \
    together: shares are of samples, not of time";

/// Merges recordings.
///
/// The order of the steps matters:
///
/// 1. the info, as times are shifted to its epoch
/// 2. numbers of processes, which count on through all recordings
/// 3. frames without a name, then those with one, of all recordings
/// 4. samples, whose frames are known by now
/// 5. names, which a store takes only for frames that it has
pub fn merge(views: &[View], limits: Limits) -> Result<Store, MergeError> {
    let mut import = Import::new(limits);
    let infos: Vec<Info> = views.iter().map(counted_info).collect();
    let mut info = merged_info(&infos)?;
    let epoch_ms = info.epoch_unix_ms;
    let mut parts: Vec<MergedPart<'_>> = views
        .iter()
        .map(|view| MergedPart::new(view, epoch_ms))
        .collect();
    info.pauses = pauses(&parts);
    import.store.set_info(info);
    // If the value is unknown for one part, it is unknown for the whole.
    if views.iter().all(|view| view.busy().of_ms > 0) {
        let all = views.iter().map(View::busy);
        import.store.set_busy(all.fold(Busy::default(), Busy::and));
    }
    // A part without samples has no end, so its time span is unknown.
    let begin = |part: &MergedPart<'_>| part.end_ns().and(part.begin_ns());
    let begun = parts.iter().filter_map(begin).min();
    if let Some(begin) = begun.or(parts.iter().filter_map(MergedPart::begin_ns).min()) {
        import.store.begin(begin);
    }
    if let Some(end) = parts.iter().filter_map(MergedPart::end_ns).max() {
        import.store.end(end);
    }
    let mut processes = 0;
    for part in &mut parts {
        part.number_processes(&mut processes);
    }
    // Frames without a name are identified by their addresses, so they are added first. A frame
    // with another name at the same address then gets another place.
    for is_named in [false, true] {
        for part in &mut parts {
            part.add_frames(is_named, &mut import)?;
        }
    }
    for part in &parts {
        part.add_samples(&mut import)?;
        let probes = part.view.probes();
        import.store.probes_mut().add_all(probes, part.shift_ns);
    }
    Ok(import.finish())
}

/// Joins the descriptions of the recordings: differing texts are listed, counts of missing things
/// are added up. The order of the recordings makes no difference, as lists are sorted, and the list
/// in an already merged recording is taken apart again.
pub(crate) fn merged_info(infos: &[Info]) -> Result<Info, MergeError> {
    let Some((first, others)) = infos.split_first() else {
        return Ok(Info::default());
    };
    let mut merged = Info::clone(first);
    let mut texts: [BTreeSet<&str>; 4] = Default::default();
    let mut notes: BTreeSet<&str> = BTreeSet::new();
    notes.extend(first.notes.iter().map(String::as_str));
    for info in infos {
        if info.metric != merged.metric {
            let words = |info: &Info| format!("{} in {}", info.metric.name, info.metric.unit);
            return Err(MergeError::Metrics(words(&merged), words(info)));
        }
        let told = [
            &info.host.name,
            &info.host.kernel,
            &info.host.arch,
            &info.scope,
        ];
        for (all, text) in texts.iter_mut().zip(told) {
            all.extend(text.split(LIST).filter(|text| !text.is_empty()));
        }
        notes.extend(info.notes.iter().map(String::as_str));
    }
    for info in others {
        merged.lost = merged.lost.saturating_add(info.lost);
        merged.host.cpus = merged.host.cpus.max(info.host.cpus);
        if info.host.sampled_cpus != merged.host.sampled_cpus {
            merged.host.sampled_cpus = Vec::new();
        }
        merged.epoch_unix_ms = match (merged.epoch_unix_ms, info.epoch_unix_ms) {
            // 0 means unknown.
            (0, other) | (other, 0) => other,
            (a, b) => a.min(b),
        };
        if info.rates.first_hz != merged.rates.first_hz {
            merged.rates.first_hz = 0;
            notes.insert(RATES_DIFFER);
        }
    }
    let joined = |all: &BTreeSet<&str>| all.iter().copied().collect::<Vec<_>>().join(LIST);
    [
        merged.host.name,
        merged.host.kernel,
        merged.host.arch,
        merged.scope,
    ] = texts.each_ref().map(joined);
    merged.notes = notes.into_iter().map(String::from).collect();
    Ok(merged)
}

/// Returns the periods between the first and the last recording in which none of them was sampling:
/// such time must not look like time in which nothing ran.
fn pauses(parts: &[MergedPart<'_>]) -> Vec<Pause> {
    let mut sampled: Vec<(u64, u64)> = parts.iter().flat_map(MergedPart::sampled).collect();
    sampled.sort_unstable();
    let mut pauses = Vec::new();
    let mut reached = sampled.first().map_or(0, |first| first.0);
    for (start_ns, end_ns) in sampled {
        if start_ns > reached {
            pauses.push(Pause {
                start_ns: reached,
                end_ns: start_ns,
            });
        }
        reached = reached.max(end_ns);
    }
    pauses
}

/// Returns the description of a recording with its highest rate, by which its samples are counted.
fn counted_info(view: &View) -> Info {
    Info {
        rates: Rates::always(Weighing::new(&view.info().rates, TimeRange::ALL).hz()),
        ..Info::clone(view.info())
    }
}

/// One of the recordings to be merged.
struct MergedPart<'a> {
    view: &'a View,
    /// The offset that is added to its times, in whole stamps: how much later than the merged clock
    /// its own clock began.
    shift_ns: u64,
    /// The machine of the processes for which the recording names no machine. `None` if the
    /// recording is of several machines, or if its machine is unknown.
    host: Option<Arc<str>>,
    /// Process numbers in the merged store, by their numbers in this recording.
    processes: HashMap<ProcessId, ProcessId>,
    /// Frames in the merged store, by their numbers in this recording. `None` for frames that were
    /// released, and for those that stand for something missing.
    frames: Vec<Option<Frame>>,
}

impl<'a> MergedPart<'a> {
    fn new(view: &'a View, epoch_ms: i64) -> Self {
        let behind_ms = match view.info().epoch_unix_ms {
            0 => 0,
            epoch => u64::try_from(epoch.saturating_sub(epoch_ms)).unwrap_or(0),
        };
        // Whole stamps, so that samples stay in their stamps.
        let shift_ns = behind_ms.saturating_mul(1_000_000) / STAMP_NS * STAMP_NS;
        let host = &view.info().host.name;
        let is_one = !host.is_empty() && !host.contains(LIST);
        Self {
            view,
            shift_ns,
            host: is_one.then(|| host.as_str().into()),
            processes: HashMap::new(),
            frames: vec![None; view.tables.frames.len()],
        }
    }

    fn end_ns(&self) -> Option<u64> {
        Some(self.view.end_ns()?.saturating_add(self.shift_ns))
    }

    fn begin_ns(&self) -> Option<u64> {
        Some(self.view.begin_ns()?.saturating_add(self.shift_ns))
    }

    /// Returns the periods in which it was sampled, as start and end on the merged clock.
    fn sampled(&self) -> Vec<(u64, u64)> {
        let (Some(begin), Some(end)) = (self.begin_ns(), self.end_ns()) else {
            return Vec::new();
        };
        let mut sampled = Vec::new();
        let mut from = begin;
        for pause in &self.view.info().pauses {
            sampled.push((from, pause.start_ns.saturating_add(self.shift_ns)));
            from = pause.end_ns.saturating_add(self.shift_ns);
        }
        sampled.push((from, end));
        sampled
    }

    /// Gives each process a new number; `count` continues from part to part.
    fn number_processes(&mut self, count: &mut u32) {
        for (id, _) in self.view.tables.processes.by_number() {
            self.processes.insert(id, ProcessId(*count));
            *count += 1;
        }
    }

    /// Adds the frames that have names to the merged store, or those that have none.
    fn add_frames(&mut self, is_named: bool, import: &mut Import) -> Result<(), FormatError> {
        let mut modules: HashMap<ModuleId, ModuleId> = HashMap::new();
        let tables = &*self.view.tables;
        for at in RESERVED..tables.frames.len() as u32 {
            let id = FrameId(at);
            if tables.names.tag(id).is_released() {
                continue;
            }
            let state = self.view.name_told(id);
            let name = match &state {
                NameState::Named(name) => Some(name),
                _ => None,
            };
            if name.is_some() != is_named {
                continue;
            }
            let frame = tables.frames.at(FrameId(at));
            let module = match modules.get(&frame.module) {
                Some(known) => *known,
                None => {
                    let told = tables.modules.get(frame.module);
                    let number = import.module(&told.path, &told.build_id)?;
                    import.store.add_module(number, &told.name, &told.path);
                    import.store.set_build_id(number, &told.build_id);
                    modules.insert(frame.module, number);
                    number
                }
            };
            let merged = import.frame(module, Some(frame.address), frame.kind, name)?;
            self.frames[at as usize] = Some(merged);
            match state {
                NameState::Named(name) => {
                    let chain = self.chain(id, &name, import)?;
                    import.set_chain(merged, chain);
                }
                NameState::Pending => {}
                state => import.tell_state(merged, state),
            }
        }
        Ok(())
    }

    /// Returns the chain of a frame as texts. If its source is unknown, the chain has one link, its
    /// name.
    fn chain(
        &self,
        id: FrameId,
        name: &Arc<str>,
        import: &mut Import,
    ) -> Result<Vec<Link>, FormatError> {
        let tables = &*self.view.tables;
        let mut chain = Vec::new();
        let links = tables.sources.chain(id);
        for (at, link) in links.iter().enumerate() {
            let is_own = at + 1 == links.len();
            let function = if is_own {
                Some(name)
            } else {
                tables.names.name(link.function)
            };
            chain.push(Link {
                function: import.text(function.map_or("", |name| name))?,
                file: import.text(tables.sources.file(*link).map_or("", |file| file))?,
                line: link.line,
            });
        }
        if chain.is_empty() {
            chain.push(Link {
                function: Arc::clone(name),
                file: Arc::default(),
                line: 0,
            });
        }
        Ok(chain)
    }

    /// Adds all samples on the common clock, with the weights that they have where the rate was
    /// changed.
    fn add_samples(&self, import: &mut Import) -> Result<(), FormatError> {
        let tables = &*self.view.tables;
        let mut frames = Vec::new();
        // A process is described with its first sample, because the store forgets processes without
        // samples.
        let mut told = HashSet::new();
        let weighing = Weighing::new(&self.view.info().rates, TimeRange::ALL);
        for bucket in tables.history.buckets() {
            for (at, sample) in bucket.weighed(&weighing).enumerate() {
                let thread = tables.processes.thread(sample.thread);
                let Some(process) = self.processes.get(&thread.process) else {
                    continue;
                };
                if told.insert(thread.process)
                    && let Some(known) = tables.processes.get(thread.process)
                {
                    let host = known.details.host.as_ref().or(self.host.as_ref());
                    import
                        .store
                        .add_process_of(host, *process, known.pid, &known.comm);
                    let details = known.details.clone();
                    import.store.set_process_details(*process, details);
                }
                frames.clear();
                let stack = tables.stacks.frames(sample.stack);
                frames.extend(stack.filter_map(|frame| self.frames[frame.0 as usize]));
                let time_ns = sample.stamp.saturating_mul(STAMP_NS);
                let sample = NewSample {
                    time_ns: time_ns.saturating_add(self.shift_ns),
                    cpu: sample.cpu,
                    process: *process,
                    tid: thread.tid,
                    comm: &thread.comm,
                    frames: &frames,
                    kernel_frames: usize::from(sample.in_kernel),
                    ending: sample.ending,
                    weight: sample.weight,
                };
                import.wait(sample, bucket.wait(at))?;
            }
        }
        Ok(())
    }
}
