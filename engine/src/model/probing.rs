//! The model's side of probes: sends orders and stacks of calls to the thread that owns the probes,
//! and counts samples of probed functions as their CPU time.

use super::modules::Modules;
use crate::probes::{
    Asked, Counted, Extent, Keeper, Message, News, OnCpu, ProbeOrder, ProbedFunction, Probes,
    Reach, Stack, Word, cut_of,
};
use crate::sampler::{Wish, Wishes};
use profile::probes::ProbeLog;
use profile::{Frame, ModuleId, ProcessId};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use symbolize::Symbolizer;

/// The probes of a run.
pub struct Probing {
    /// Requests the probes of the source from the sampler.
    wishes: Wishes,
    reach: Reach,
    /// The thread that owns the probes; started with the first order.
    keeper: Option<Keeper>,
    /// Pids of running processes, as probes are placed by pid.
    pids: HashMap<ProcessId, u32>,
    /// Probes whose CPU time is counted, as last reported by the keeper.
    counted: Arc<Vec<Counted>>,
    /// Code of probed functions by module, each with its index in `counted`; for modules that were
    /// sampled since `counted` changed.
    code: HashMap<ModuleId, Vec<(Range<u64>, usize)>>,
    /// CPU time by number of the probe, with when the probe was placed.
    on_cpu: HashMap<u64, (u64, OnCpu)>,
    /// The part of `on_cpu` that was not sent to the keeper yet, with when the probe was placed.
    untold: HashMap<u64, (u64, OnCpu)>,
    told: Arc<Probes>,
    /// Whether the user waits for news of a probe.
    is_urgent: bool,
}

impl Probing {
    /// Starts without probes. `wishes` leads to the sampler, which owns the source.
    pub fn new(wishes: Wishes, reach: Reach) -> Self {
        Self {
            wishes,
            reach,
            keeper: None,
            pids: HashMap::new(),
            counted: Arc::default(),
            code: HashMap::new(),
            on_cpu: HashMap::new(),
            untold: HashMap::new(),
            told: Arc::default(),
            is_urgent: false,
        }
    }

    /// Sends an order of the user to the keeper, which is started with the first one. A function
    /// that has samples is ordered with its module, which only the model knows.
    pub fn order(&mut self, order: ProbeOrder, modules: &Modules, symbolizer: &Arc<Symbolizer>) {
        let module = match &order {
            ProbeOrder::Place {
                place: ProbedFunction::Sampled(sampled),
                ..
            } => modules.get(sampled.module),
            _ => None,
        };
        let module = module.map(|module| Arc::clone(&module.named));
        if self.keeper.is_none() {
            let wishes = self.wishes.clone();
            let ask = move |asked| match asked {
                Asked::Calls(keeper) => {
                    // The send fails if the sampler has ended.
                    if wishes.send(Wish::Calls(keeper.clone())).is_err() {
                        let why = "nothing is sampled any more".to_string();
                        let _ = keeper.send(Message::Calls(Err(why)));
                    }
                }
                Asked::Begin => _ = wishes.send(Wish::Ready),
            };
            let (symbolizer, reach) = (Arc::clone(symbolizer), self.reach.clone());
            match Keeper::start(symbolizer, reach, &self.told, ask) {
                Ok(keeper) => self.keeper = Some(keeper),
                Err(error) => return self.lose(&order, &error),
            }
        }
        if let Some(keeper) = &self.keeper {
            keeper.send(Message::Order(order, module));
        }
    }

    /// Counts and explains an order that is lost because the thread could not be started. The next
    /// order tries that again.
    fn lose(&mut self, order: &ProbeOrder, why: &std::io::Error) {
        // There is nothing to wait for.
        _ = self.wishes.send(Wish::Ready);
        if !order.is_counted() {
            return;
        }
        let told = Arc::make_mut(&mut self.told);
        told.turn += 1;
        told.touched = 0;
        told.word = Some(Word {
            number: told.word.as_ref().map_or(0, |word| word.number) + 1,
            sentence: format!("calls cannot be watched: {why}").into(),
        });
        self.is_urgent = true;
    }

    /// Takes over what the keeper has reported. Returns the counts of each second, if there is
    /// anything new.
    pub fn receive_news(&mut self) -> Option<Arc<ProbeLog>> {
        let news = self.keeper.as_ref().and_then(Keeper::news)?;
        Some(self.take_news(news))
    }

    /// Has all probes read once more, and waits for the counts.
    pub fn fresh_news(&mut self) -> Option<Arc<ProbeLog>> {
        self.tell_cpu();
        let news = self.keeper.as_ref().and_then(Keeper::fresh_news)?;
        Some(self.take_news(news))
    }

    fn take_news(&mut self, news: News) -> Arc<ProbeLog> {
        if !Arc::ptr_eq(&news.counted, &self.counted) {
            self.counted = news.counted;
            self.code.clear();
            let counted = &self.counted;
            self.on_cpu.retain(|number, (from_ns, _)| {
                let is_it = |one: &Counted| one.number == *number && one.from_ns == *from_ns;
                counted.iter().any(is_it)
            });
        }
        self.told = Arc::new(news.probes);
        self.is_urgent |= news.is_urgent;
        news.log
    }

    /// Sends the keeper the CPU time that was found since the last call.
    fn tell_cpu(&mut self) {
        let Some(keeper) = &self.keeper else {
            return;
        };
        for (number, (from_ns, time)) in self.untold.drain() {
            keeper.send(Message::OnCpu {
                number,
                from_ns,
                time,
            });
        }
    }

    /// Whether a probe was ever ordered, so that there may be news.
    pub fn has_begun(&self) -> bool {
        self.keeper.is_some()
    }

    /// Whether there is news that the user waits for.
    pub fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// All probes with their CPU time, for a snapshot.
    pub fn told(&mut self) -> Arc<Probes> {
        self.is_urgent = false;
        self.tell_cpu();
        let probes = Arc::make_mut(&mut self.told);
        for probe in &mut probes.list {
            if let Some(seen) = &mut probe.seen {
                let counted = self.on_cpu.get(&probe.number);
                seen.on_cpu = Some(counted.map_or_else(OnCpu::default, |(_, on_cpu)| *on_cpu));
            }
        }
        Arc::clone(&self.told)
    }

    /// Records that a process was started or has ended.
    pub fn note_process(&mut self, id: ProcessId, pid: u32, has_exited: bool) {
        if has_exited {
            self.pids.remove(&id);
        } else {
            self.pids.insert(id, pid);
        }
    }

    /// Sends the stack of a call to the keeper.
    pub fn take_stack(&self, number: u8, sample: &probe::Sample, modules: &Modules) {
        let Some(keeper) = &self.keeper else {
            return;
        };
        if sample.frames.is_empty() {
            // The sample was only taken to request the tables of its process.
            return;
        }
        let frames = sample.frames.iter().filter_map(|frame| {
            let module = modules.get(ModuleId(frame.module.0))?;
            Some((Arc::clone(&module.named), frame.address))
        });
        keeper.send(Message::Stack(Stack {
            probe: number,
            frames: frames.collect(),
            tid: sample.tid,
            comm: Arc::clone(&sample.comm),
            cut: cut_of(sample),
        }));
    }

    /// Counts a sample for every probed function that is on its stack.
    pub fn count(
        &mut self,
        sample: &probe::Sample,
        frames: &[Frame],
        modules: &Modules,
        rate_hz: u32,
    ) {
        if self.counted.is_empty() || rate_hz == 0 {
            return;
        }
        // One bit for each probe, so that a function that is on a stack twice counts once. There
        // are at most 64.
        let mut seen: u64 = 0;
        for frame in frames {
            // Looked up once for each module, as most have no probed function.
            let code = self
                .code
                .entry(frame.module)
                .or_insert_with(|| code_in(&self.counted, modules, frame.module));
            let hit = code
                .iter()
                .filter(|(range, _)| range.contains(&frame.address));
            for (_, at) in hit {
                seen |= 1 << (at & 63);
            }
        }
        if seen == 0 {
            return;
        }
        let pid = self.pids.get(&ProcessId(sample.process.0)).copied();
        let cpu_ns = 1_000_000_000 / u64::from(rate_hz);
        for (at, counted) in self.counted.iter().enumerate().take(64) {
            let is_in = seen & 1 << at != 0 && counted.has(pid, sample.time_ns);
            if is_in {
                for table in [&mut self.on_cpu, &mut self.untold] {
                    let (from_ns, on_cpu) = table.entry(counted.number).or_default();
                    if *from_ns != counted.from_ns {
                        (*from_ns, *on_cpu) = (counted.from_ns, OnCpu::default());
                    }
                    on_cpu.samples += 1;
                    on_cpu.cpu_ns += cpu_ns;
                }
            }
        }
    }
}

/// Returns the code of probed functions in a module.
fn code_in(counted: &[Counted], modules: &Modules, id: ModuleId) -> Vec<(Range<u64>, usize)> {
    let Some(build) = modules.get(id).and_then(|module| module.named.build()) else {
        return Vec::new();
    };
    let is_here = |extent: &&Extent| {
        if build.id.is_empty() || extent.build_id.is_empty() {
            extent.path == build.path
        } else {
            // Of several copies in containers only one has a module.
            extent.build_id == build.id
        }
    };
    let all = counted.iter().enumerate();
    all.flat_map(|(at, counted)| {
        let here = counted.extents.iter().filter(is_here);
        here.map(move |extent| (extent.range.clone(), at))
    })
    .collect()
}
