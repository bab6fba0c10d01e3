//! Converts readings of probes to a log of the counts of each second.
//!
//! The kernel side counts from when a probe was placed. A *track* remembers which part of it is in
//! the log, so that each count is logged once:
//!
//! ```text
//! readings     0 ── 40 ── 95 │ 130 ── 160 │ 190      calls, since it was placed
//! log           second 7: 95 │ second 8: 65 │ …
//! ```
//!
//! A caller that needs a complete log at some moment calls [`Recorder::settle`]: then a second has
//! several counts, which add up.

use super::Found;
use super::cut::{self, FrameKey};
use super::expression::Values;
use probe::call::{Reading, Texts};
use profile::Ending;
use profile::probes::{
    CallTally, ProbeAbout, ProbeEnd, ProbeFrame, ProbeLog, ProbeThread, ValueAbout, ValueTally,
};
use std::collections::HashMap;
use std::sync::Arc;
use symbolize::sanitize;
use symbolize::sites::Class;

const SECOND_NS: u64 = 1_000_000_000;

/// Keeps the log of a run.
#[derive(Debug, Default)]
pub struct Recorder {
    log: Arc<ProbeLog>,
    frames: HashMap<FrameKey, u32>,
}

/// The state of one probe's log.
#[derive(Debug)]
pub struct Track {
    /// Its number in the log.
    probe: usize,
    /// All counts up to the last reading, and the part of them that is in the log.
    seen: CallTally,
    written: CallTally,
    /// The second of the last reading.
    second: u64,
    /// Counts that are added one by one: stacks, threads, CPU time.
    fresh: CallTally,
    stacks: HashMap<Box<[u32]>, u32>,
    threads: HashMap<(u32, Arc<str>), u32>,
    texts: HashMap<Arc<str>, u32>,
}

/// The description of a probe, in addition to its function.
#[derive(Debug, Clone, Copy, Default)]
pub struct Placing<'p> {
    /// Which processes' calls count, in words; empty for all targets.
    pub whose: &'p str,
    /// Cost of a hit in nanoseconds.
    pub hit_ns: u64,
    /// The time that is displayed for a call that does nothing, in nanoseconds.
    pub floor_ns: u64,
    /// Calls shorter than this are only counted, in nanoseconds.
    pub min_ns: u64,
    /// When it was placed, on the clock of samples.
    pub placed_ns: u64,
}

impl Recorder {
    /// What was recorded so far.
    pub fn log(&self) -> &Arc<ProbeLog> {
        &self.log
    }

    /// Begins to log a probe; `None` if the log has no more room.
    pub fn begin(&mut self, found: &Found, placing: Placing<'_>) -> Option<Track> {
        let about = about(found, placing);
        let probe = Arc::make_mut(&mut self.log).add_probe(about)?;
        Some(Track {
            probe,
            seen: CallTally::default(),
            written: CallTally::default(),
            second: placing.placed_ns / SECOND_NS,
            fresh: CallTally::default(),
            stacks: HashMap::new(),
            threads: HashMap::new(),
            texts: HashMap::new(),
        })
    }

    /// Takes the current counts of the kernel side.
    pub fn look(
        &mut self,
        track: &mut Track,
        now_ns: u64,
        reading: &Reading,
        texts: &Texts,
        values: &Values,
    ) {
        let second = now_ns / SECOND_NS;
        if second != track.second {
            self.settle(track);
            track.second = second;
        }
        track.seen = self.counted(track, reading, texts, values);
    }

    /// Writes everything up to the last reading.
    pub fn settle(&mut self, track: &mut Track) {
        let mut tally = track.seen.since(&track.written);
        tally.add(&std::mem::take(&mut track.fresh));
        if !tally.is_nothing() {
            Arc::make_mut(&mut self.log).count(track.probe, track.second, tally);
            track.written = track.seen.clone();
        }
    }

    /// Writes everything up to the last reading, and that the probe was removed.
    pub fn end(&mut self, track: &mut Track, at_ns: u64, why: &str) {
        self.settle(track);
        let why = why.into();
        Arc::make_mut(&mut self.log).set_end(track.probe, ProbeEnd { at_ns, why });
    }

    /// Counts a sampled stack, the caller first, and its thread. `module` returns the short name of
    /// a module. A stack that is `cut` ends with a frame that says why.
    pub fn take_stack(
        &mut self,
        track: &mut Track,
        frames: impl Iterator<Item = FrameKey>,
        module: impl Fn(u32) -> Arc<str>,
        (tid, comm): (u32, &Arc<str>),
        cut: Option<Ending>,
    ) {
        let log = Arc::make_mut(&mut self.log);
        let mut numbers = Vec::new();
        for key in frames.chain(cut.map(cut::key)) {
            let number = match self.frames.get(&key) {
                Some(number) => *number,
                None => {
                    let frame = cut::frame(key).unwrap_or_else(|| ProbeFrame {
                        module: module(key.0),
                        address: key.1,
                        name: None,
                    });
                    let Some(number) = log.add_frame(frame) else {
                        track.fresh.stacks_lost += 1;
                        return;
                    };
                    self.frames.insert(key, number);
                    number
                }
            };
            numbers.push(number);
        }
        let stack = match track.stacks.get(&*numbers) {
            Some(stack) => Some(*stack),
            None => log.add_stack(track.probe, &numbers).inspect(|stack| {
                track.stacks.insert(numbers.into(), *stack);
            }),
        };
        match stack {
            Some(stack) => *track.fresh.callers.entry(stack).or_default() += 1,
            None => track.fresh.stacks_lost += 1,
        }
        let thread = match track.threads.get(&(tid, Arc::clone(comm))) {
            Some(thread) => Some(*thread),
            None => {
                let comm = Arc::clone(comm);
                let thread = ProbeThread { comm, tid };
                log.add_thread(track.probe, thread.clone())
                    .inspect(|number| {
                        track.threads.insert((tid, thread.comm), *number);
                    })
            }
        };
        if let Some(thread) = thread {
            *track.fresh.threads.entry(thread).or_default() += 1;
        }
    }

    /// Names the function of a frame, if a stack has the frame.
    pub fn name_frame(&mut self, key: FrameKey, name: &Arc<str>) {
        if let Some(number) = self.frames.get(&key) {
            Arc::make_mut(&mut self.log).set_frame_name(*number, Arc::clone(name));
        }
    }

    /// The frames without a name.
    pub fn unnamed(&self) -> impl Iterator<Item = FrameKey> {
        let is_unnamed = |number: u32| {
            let frame = self.log.frames().get(number as usize);
            frame.is_some_and(|frame| frame.name.is_none())
        };
        self.frames
            .iter()
            .filter(move |(_, number)| is_unnamed(**number))
            .map(|(key, _)| *key)
    }

    /// Converts a reading to the form of the log, with a number for each text.
    fn counted(
        &mut self,
        track: &mut Track,
        reading: &Reading,
        texts: &Texts,
        values: &Values,
    ) -> CallTally {
        let mut tally = CallTally {
            calls: reading.calls,
            returns: reading.returns,
            strangers: reading.strangers,
            short: reading.short,
            others: reading.others,
            stacks: reading.stacks,
            stacks_lost: reading.stacks_lost,
            missed: reading.missed,
            values_lost: reading.values_lost,
            sum_ns: reading.sum_ns,
            max_ns: match reading.returns {
                0 => 0,
                _ => reading.longest_ns(),
            },
            buckets: reading
                .buckets()
                .map(|(from, below, calls)| ((from, below), calls))
                .collect(),
            ..CallTally::default()
        };
        for (slot, expression) in values.iter().enumerate() {
            let mut value = ValueTally {
                unreadable: reading.unreadable.get(slot).copied().unwrap_or(0),
                ..ValueTally::default()
            };
            let numbers = texts
                .numbers
                .iter()
                .filter(|number| number.slot == slot)
                .map(|number| (expression.show(number.number), number.count));
            let as_text = texts
                .texts
                .iter()
                .filter(|text| text.slot == slot)
                .map(|text| {
                    let cut = if text.is_cut { "…" } else { "" };
                    (format!("\"{}\"{cut}", sanitize(&text.bytes)), text.count)
                });
            for (shown, count) in numbers.chain(as_text) {
                match self.text(track, shown.into()) {
                    // Two numbers may have the same text, such as two texts that are not UTF-8.
                    Some(text) => *value.texts.entry(text).or_default() += count,
                    None => tally.values_lost += count,
                }
            }
            tally.values.push(value);
        }
        tally
    }

    /// Returns the number of a text; `None` if there is no room for a new one.
    fn text(&mut self, track: &mut Track, shown: Arc<str>) -> Option<u32> {
        if let Some(text) = track.texts.get(&shown) {
            return Some(*text);
        }
        let log = Arc::make_mut(&mut self.log);
        let text = log.add_text(track.probe, Arc::clone(&shown))?;
        track.texts.insert(shown, text);
        Some(text)
    }
}

impl Track {
    /// Its number in the log.
    pub fn probe(&self) -> usize {
        self.probe
    }

    /// Adds CPU time of the function that samples of the clock have found.
    pub fn take_cpu(&mut self, samples: u64, cpu_ns: u64) {
        self.fresh.cpu_samples += samples;
        self.fresh.cpu_ns += cpu_ns;
    }
}

/// Makes the log's description of a probe.
fn about(found: &Found, placing: Placing<'_>) -> ProbeAbout {
    let is_stepped = found.sites.iter().any(|site| site.class == Class::Stepped);
    ProbeAbout {
        name: found.name.as_str().into(),
        module: found.module.as_str().into(),
        address: found.address,
        language: found.language.label().into(),
        site: found.site().into(),
        whose: placing.whose.into(),
        copies: found.copies() as u32,
        breakpoints: (found.copies() + found.return_sites) as u32,
        is_stepped,
        is_timed: found.sees_ends,
        repeats: found.sites.iter().any(|site| site.repeats),
        hit_ns: placing.hit_ns,
        floor_ns: placing.floor_ns,
        min_ns: placing.min_ns,
        placed_ns: placing.placed_ns,
        values: found
            .values
            .iter()
            .map(|value| ValueAbout {
                text: value.text.as_str().into(),
                register: value.register(found.language).into(),
            })
            .collect(),
    }
}
