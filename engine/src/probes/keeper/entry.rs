//! One probe, from the order to its removal.

use super::Counted;
use super::callers::Callers;
use crate::naming::NamedModule;
use crate::probes::expression::Values;
use crate::probes::order::{ProbedFunction, Whose};
use crate::probes::reach::{Reach, has_ended};
use crate::probes::shown::TREND_MAX;
use crate::probes::{Found, Guard, Placing, ProbeLimits, Recorder, Search, TooMuch, Track};
use probe::call::{Calls, Cost, Reading, Scope, Texts};
use probe::call_orders::{Orders, order};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Target number of stacks per second of one probe: enough for shares, and few compared with the
/// hits.
const STACKS_PER_SECOND: f64 = 200.0;

/// One in this many of the first calls gives its stack.
const FIRST_STACKS: u32 = 32;

/// Distance of the marks of a trend.
const MARKED_EVERY: Duration = Duration::from_millis(990);

/// A probe that was ordered.
pub struct Entry {
    /// Number of the probe, unique in the run.
    pub number: u64,
    /// The function.
    pub place: ProbedFunction,
    /// The processes whose calls count.
    pub whose: Whose,
    /// The module of a function that has samples; None for a typed name.
    pub module: Option<Arc<NamedModule>>,
    /// What is observed of its calls: how they end, and values.
    pub search: Search,
    /// The values before a change that is being looked up: if the new ones cannot be read, these
    /// are used again.
    pub values_before: Option<Values>,
    /// Limits at which it is removed.
    pub limits: ProbeLimits,
    /// Number of look-ups of its function.
    pub attempt: u64,
    /// Whether it stays in place for the whole run, and its function is looked up until it is
    /// found.
    pub stays: bool,
    /// When its function was last found missing; `None` if it was not.
    pub missing_since: Option<Instant>,
    /// Whether the finder has not answered yet.
    pub is_asked: bool,
    /// Where the probe is in its life.
    pub state: EntryState,
}

/// ```text
/// Sought ── found and placed ──► InPlace ── taken away ──► Gone ── renewed ──► Sought
///    └────── refused: it leaves the list
/// ```
pub enum EntryState {
    /// Its function is being looked up.
    Sought,
    /// It counts calls.
    InPlace(Box<Watched>),
    /// It was removed: the reason, and the counts until then.
    Gone(Box<Past>),
}

/// A removed probe. It stays listed until there is no room.
pub struct Past {
    /// Why it was removed, in the words for the user.
    pub why: Arc<str>,
    /// What it counted; None if it was never in place.
    pub watched: Option<Box<Watched>>,
}

/// A probe that is in place, or was.
pub struct Watched {
    /// The function and its sites.
    pub found: Found,
    /// Its number on the kernel side.
    pub probe: u8,
    /// Checks at each look that the probe does not cost too much.
    pub guard: Guard,
    /// Limits at which it is removed.
    pub limits: ProbeLimits,
    /// Whether the ends of calls are seen, so that calls have durations.
    pub is_timed: bool,
    /// When it was placed.
    pub placed: Instant,
    /// When it was placed, on the clock of samples.
    pub placed_ns: u64,
    /// End of its lifetime, by the keeper's clock.
    pub expires: Instant,
    /// When it was removed, also on the clock of samples. `None` while it is in place.
    pub gone: Option<(Instant, u64)>,
    /// Whether its first counts were sent.
    pub is_looked_at: bool,
    /// The counts at the last look; None before the first.
    pub reading: Option<Reading>,
    /// When `reading` was read.
    read_at: Instant,
    /// The values that were read at calls, as of the last look.
    pub texts: Texts,
    /// Where the function was called from.
    pub callers: Callers,
    /// How much of its counts the log of the run has; `None` if the log has no more room.
    pub track: Option<Track>,
    /// The counts at the end of each second, the newest last.
    marks: VecDeque<Mark>,
    /// What the BPF program does at each hit.
    orders: Orders,
    /// The processes that it was placed in; `None` for all.
    pids: Option<Vec<u32>>,
}

/// The counts at one moment.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Instant,
    calls: u64,
    /// Calls, and hits of others.
    hits: u64,
}

impl Mark {
    /// A mark with counts of 0.
    fn at(at: Instant) -> Self {
        Self {
            at,
            calls: 0,
            hits: 0,
        }
    }
}

impl Entry {
    /// Makes a probe that waits to be looked up, with default limits and no values.
    pub fn new(
        number: u64,
        place: ProbedFunction,
        whose: Whose,
        module: Option<Arc<NamedModule>>,
    ) -> Self {
        Self {
            number,
            place,
            whose,
            module,
            search: Search::default(),
            values_before: None,
            limits: ProbeLimits::default(),
            attempt: 0,
            stays: false,
            missing_since: None,
            is_asked: false,
            state: EntryState::Sought,
        }
    }

    /// Displayed name of the function.
    pub fn shown(&self) -> &Arc<str> {
        self.place.shown()
    }

    /// The probe, in place or removed.
    pub fn watched(&self) -> Option<&Watched> {
        match &self.state {
            EntryState::Sought => None,
            EntryState::InPlace(watched) => Some(watched),
            EntryState::Gone(past) => past.watched.as_deref(),
        }
    }

    /// The probe, in place or removed, for changing it.
    pub fn watched_mut(&mut self) -> Option<&mut Watched> {
        match &mut self.state {
            EntryState::Sought => None,
            EntryState::InPlace(watched) => Some(watched),
            EntryState::Gone(past) => past.watched.as_deref_mut(),
        }
    }

    /// Its callers, if it was ever in place.
    pub fn callers(&self) -> Option<&Callers> {
        Some(&self.watched()?.callers)
    }

    /// Places it in the kernel. The error says why that is not possible.
    pub fn place(
        &mut self,
        calls: &mut Calls,
        recorder: &mut Recorder,
        cost: Cost,
        reach: &Reach,
        found: Found,
        expires: Instant,
    ) -> Result<(), String> {
        let limits = self.limits;
        let mut orders = Orders {
            // Until the rate of calls is known.
            stack_odds: u32::MAX / FIRST_STACKS,
            flags: order::STACKS,
            ..Orders::default()
        };
        found.values.lower(found.language, &mut orders)?;
        let is_timed = found.sees_ends;
        if is_timed {
            orders.flags |= order::TIMED;
        }
        let (scope, is_exact) = match &self.whose {
            Whose::Target => {
                let scope = reach.scope(&found);
                let is_exact = reach.is_exact(&scope);
                (scope, is_exact)
            }
            Whose::Processes { pids, .. } => (Scope::Processes(pids.clone()), true),
        };
        // All hits are by targets, so the kernel need not check the process.
        if is_exact {
            orders.flags |= order::EVERYBODY;
        }
        let placed = found.place(calls, &mut orders, &scope, cost, limits);
        let (probe, guard) = placed.map_err(|error| error.to_string())?;
        let now = Instant::now();
        let placed_ns = probe::now_ns();
        let placing = Placing {
            whose: match &self.whose {
                Whose::Target => "",
                Whose::Processes { words, .. } => words,
            },
            hit_ns: guard.cost_ns,
            floor_ns: guard.floor_ns,
            min_ns: 0,
            placed_ns,
        };
        let track = recorder.begin(&found, placing);
        self.state = EntryState::InPlace(Box::new(Watched {
            found,
            probe,
            guard,
            limits,
            is_timed,
            placed: now,
            placed_ns,
            expires,
            gone: None,
            is_looked_at: false,
            reading: None,
            read_at: now,
            texts: Texts::default(),
            callers: Callers::default(),
            track,
            marks: VecDeque::from([Mark::at(now)]),
            orders,
            pids: match (&self.whose, scope) {
                (_, Scope::Processes(pids)) => Some(pids),
                (_, Scope::All) => None,
            },
        }));
        Ok(())
    }

    /// Removes it from the kernel, and keeps its counts.
    pub fn take_away(&mut self, calls: &mut Calls, recorder: &mut Recorder, why: &str) {
        if let EntryState::InPlace(_) = &self.state
            && let EntryState::InPlace(mut watched) =
                std::mem::replace(&mut self.state, EntryState::Sought)
        {
            // A last reading, so that the last calls count.
            watched.look(calls, recorder);
            calls.remove(watched.probe);
            let now_ns = probe::now_ns();
            watched.gone = Some((Instant::now(), now_ns));
            if let Some(track) = &mut watched.track {
                recorder.end(track, now_ns, why);
            }
            self.state = EntryState::Gone(Box::new(Past {
                why: why.into(),
                watched: Some(watched),
            }));
        }
    }

    /// Whether all processes that it was placed in have ended.
    pub fn has_ended(&self, reach: &Reach) -> bool {
        match &self.whose {
            Whose::Target => reach.has_ended(),
            Whose::Processes { pids, .. } => pids.iter().all(|pid| has_ended(*pid)),
        }
    }

    /// Describes which samples are CPU time of it.
    pub fn counted(&self) -> Option<Counted> {
        let watched = self.watched()?;
        Some(Counted {
            number: self.number,
            extents: watched.found.extents.clone(),
            pids: watched.pids.clone(),
            from_ns: watched.placed_ns,
            until_ns: watched.gone.map(|(_, at_ns)| at_ns),
        })
    }
}

impl Watched {
    /// Reads the counts.
    pub fn look(&mut self, calls: &mut Calls, recorder: &mut Recorder) {
        let has_values = self.orders.flags & (order::VALUES | order::RESULTS) != 0;
        let read = if has_values {
            calls.read_with_values(self.probe)
        } else {
            calls.read(self.probe).map(|it| (it, Texts::default()))
        };
        if let Ok((reading, texts)) = read {
            self.texts = texts;
            let last = self.marks.back().map_or(self.placed, |mark| mark.at);
            if last.elapsed() >= MARKED_EVERY {
                self.marks.push_back(Mark {
                    at: Instant::now(),
                    calls: reading.calls,
                    hits: reading.calls + reading.others,
                });
                if self.marks.len() > TREND_MAX + 1 {
                    self.marks.pop_front();
                }
            }
            if let Some(track) = &mut self.track {
                let values = &self.found.values;
                recorder.look(track, probe::now_ns(), &reading, &self.texts, values);
            }
            self.reading = Some(reading);
            self.read_at = Instant::now();
        }
    }

    /// Reads the counts, and returns whether it cost too much in the last `since`. Adjusts the
    /// number of stacks.
    pub fn judge(
        &mut self,
        calls: &mut Calls,
        recorder: &mut Recorder,
        since: Duration,
    ) -> Option<TooMuch> {
        self.look(calls, recorder);
        let reading = self.reading.as_ref()?;
        let hits = reading.calls + reading.others;
        // A probe that was placed in between was not there for all of that time.
        let since = since.min(self.placed.elapsed());
        let per_second = self.guard.per_second(hits, since);
        let too_much = self.guard.judge(hits, since);
        self.set_odds(calls, per_second);
        too_much
    }

    /// Reads the counts for the first time, soon after the probe was placed. Does not check the
    /// cost.
    pub fn look_first(&mut self, calls: &mut Calls, recorder: &mut Recorder) {
        self.look(calls, recorder);
        let hits = self.reading.as_ref().map_or(0, |reading| reading.calls);
        let seconds = self.placed.elapsed().as_secs_f64().max(1e-3);
        self.set_odds(calls, hits as f64 / seconds);
    }

    /// Sets the fraction of calls that give their stack, for the target number of stacks.
    fn set_odds(&mut self, calls: &mut Calls, per_second: f64) {
        let odds = (STACKS_PER_SECOND / per_second.max(1.0)).min(1.0);
        self.orders.stack_odds = (odds * f64::from(u32::MAX)) as u32;
        // If it fails, there are more or fewer stacks than intended.
        let _ = calls.set_orders(self.probe, &self.orders);
    }

    /// How long it has been in place, or was.
    pub fn time(&self) -> Duration {
        let end = self.gone.map_or_else(Instant::now, |(at, _)| at);
        end.saturating_duration_since(self.placed)
    }

    /// Calls per second, in the last whole second.
    pub fn calls_per_second(&self) -> f64 {
        self.rates().0
    }

    /// Hits per second, in the last whole second: calls, and hits of others. All of them have a
    /// cost.
    pub fn hits_per_second(&self) -> f64 {
        self.rates().1
    }

    /// Calls and hits per second, over the same time.
    fn rates(&self) -> (f64, f64) {
        let (Some(reading), None) = (&self.reading, self.gone) else {
            return (0.0, 0.0);
        };
        // Calls after the reading are not in it.
        let since = |at: Instant| self.read_at.saturating_duration_since(at);
        let mut marks = self.marks.iter().rev();
        let before = marks
            .find(|mark| since(mark.at) >= MARKED_EVERY / 2)
            .copied()
            .unwrap_or(Mark::at(self.placed));
        let seconds = since(before.at).as_secs_f64().max(1e-3);
        let hits = reading.calls + reading.others;
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        (rate(reading.calls, before.calls), rate(hits, before.hits))
    }

    /// Whether there are stacks of calls that are newer than the reading.
    pub fn has_newer_stacks(&self) -> bool {
        let calls = self.reading.as_ref().map_or(0, |reading| reading.calls);
        self.callers.all() > calls
    }

    /// Number of calls in each of the last seconds.
    pub fn trend(&self) -> Vec<u32> {
        let pairs = self.marks.iter().zip(self.marks.iter().skip(1));
        pairs
            .map(|(before, after)| {
                let seconds = after.at.saturating_duration_since(before.at).as_secs_f64();
                let calls = after.calls.saturating_sub(before.calls);
                (calls as f64 / seconds.max(1e-3)).round() as u32
            })
            .collect()
    }
}
