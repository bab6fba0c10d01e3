//! One probe, from the order to its end.

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

/// Stacks of one probe in a second: enough to tell shares, and little beside the hits.
const STACKS_PER_SECOND: f64 = 200.0;

/// Of so many of the first calls one gives its stack.
const FIRST_STACKS: u32 = 32;

/// How far apart the marks of a trend are.
const MARKED_EVERY: Duration = Duration::from_millis(990);

/// A probe that somebody ordered.
pub struct Entry {
    pub number: u64,
    pub place: ProbedFunction,
    pub whose: Whose,
    pub module: Option<Arc<NamedModule>>,
    /// What is wanted of its calls: how they end, and values.
    pub search: Search,
    /// The values before the ones that are sought now: if these cannot be read, it goes back to
    /// them.
    pub values_before: Option<Values>,
    /// When it is taken away.
    pub limits: ProbeLimits,
    /// How often it was looked for.
    pub attempt: u64,
    /// It is in place as long as the run, and is looked for until it is found.
    pub stays: bool,
    /// When it was looked for last, if there was no such function.
    pub missing_since: Option<Instant>,
    /// The finder has not answered yet.
    pub is_asked: bool,
    pub state: EntryState,
}

/// ```text
/// Sought ── found and placed ──► InPlace ── taken away ──► Gone ── renewed ──► Sought
///    └────── refused: it leaves the list
/// ```
pub enum EntryState {
    Sought,
    InPlace(Box<Watched>),
    /// Why it was taken away, and what was counted until then.
    Gone(Box<Past>),
}

/// What is left of a probe that was taken away. It stays listed until its place is
/// wanted.
pub struct Past {
    pub why: Arc<str>,
    pub watched: Option<Box<Watched>>,
}

/// A probe that is in place, or was.
pub struct Watched {
    pub found: Found,
    /// The number that the kernel side has for it.
    pub probe: u8,
    pub guard: Guard,
    pub limits: ProbeLimits,
    pub is_timed: bool,
    pub placed: Instant,
    /// When it was placed, on the clock of samples.
    pub placed_ns: u64,
    /// When its time is over, by the keeper's clock.
    pub expires: Instant,
    /// When it was taken away, also on the clock of samples. `None` while it is in
    /// place.
    pub gone: Option<(Instant, u64)>,
    /// Its first numbers were told.
    pub is_looked_at: bool,
    pub reading: Option<Reading>,
    /// When that was counted.
    read_at: Instant,
    pub texts: Texts,
    pub callers: Callers,
    /// How far the log of the run is with it; `None` if that has no more room.
    pub track: Option<Track>,
    /// What was counted at the end of each second, the newest last.
    marks: VecDeque<Mark>,
    /// What the BPF program does at each hit.
    orders: Orders,
    /// The processes that it was placed in; `None` for all.
    pids: Option<Vec<u32>>,
}

/// What was counted by a moment.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Instant,
    calls: u64,
    /// Calls, and those of others.
    hits: u64,
}

impl Mark {
    /// The moment at which nothing was counted yet.
    fn at(at: Instant) -> Self {
        Self {
            at,
            calls: 0,
            hits: 0,
        }
    }
}

impl Entry {
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

    /// The function in words.
    pub fn shown(&self) -> &Arc<str> {
        self.place.shown()
    }

    /// What there is of it, in place or not any more.
    pub fn watched(&self) -> Option<&Watched> {
        match &self.state {
            EntryState::Sought => None,
            EntryState::InPlace(watched) => Some(watched),
            EntryState::Gone(past) => past.watched.as_deref(),
        }
    }

    /// What there is of it, to add to it.
    pub fn watched_mut(&mut self) -> Option<&mut Watched> {
        match &mut self.state {
            EntryState::Sought => None,
            EntryState::InPlace(watched) => Some(watched),
            EntryState::Gone(past) => past.watched.as_deref_mut(),
        }
    }

    /// Who called it, if it ever was in place.
    pub fn callers(&self) -> Option<&Callers> {
        Some(&self.watched()?.callers)
    }

    /// Puts it into the kernel. The error says why it cannot be.
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
            // Until it is known how often it is called.
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
        // The scope is exactly whom it is meant for, so the kernel need not look at who
        // calls.
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

    /// Takes it out of the kernel, and keeps what was counted.
    pub fn take_away(&mut self, calls: &mut Calls, recorder: &mut Recorder, why: &str) {
        if let EntryState::InPlace(_) = &self.state
            && let EntryState::InPlace(mut watched) =
                std::mem::replace(&mut self.state, EntryState::Sought)
        {
            // Once more before it goes, so that the last calls count.
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

    /// Whether all processes that it was placed in are gone.
    pub fn has_ended(&self, reach: &Reach) -> bool {
        match &self.whose {
            Whose::Target => reach.has_ended(),
            Whose::Processes { pids, .. } => pids.iter().all(|pid| has_ended(*pid)),
        }
    }

    /// Which samples are CPU time of it.
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
    /// Reads what was counted.
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

    /// Reads what was counted, and says whether it was too much since the last time, so
    /// long ago. Keeps stacks few.
    pub fn judge(
        &mut self,
        calls: &mut Calls,
        recorder: &mut Recorder,
        since: Duration,
    ) -> Option<TooMuch> {
        self.look(calls, recorder);
        let reading = self.reading.as_ref()?;
        let hits = reading.calls + reading.others;
        // A probe that was placed in between has not been there for all of it.
        let since = since.min(self.placed.elapsed());
        let per_second = self.guard.per_second(hits, since);
        let too_much = self.guard.judge(hits, since);
        self.set_odds(calls, per_second);
        too_much
    }

    /// The first look at it, soon after it was placed: nothing is judged yet.
    pub fn look_first(&mut self, calls: &mut Calls, recorder: &mut Recorder) {
        self.look(calls, recorder);
        let hits = self.reading.as_ref().map_or(0, |reading| reading.calls);
        let seconds = self.placed.elapsed().as_secs_f64().max(1e-3);
        self.set_odds(calls, hits as f64 / seconds);
    }

    /// Has so many calls give their stack that there are enough of them.
    fn set_odds(&mut self, calls: &mut Calls, per_second: f64) {
        let odds = (STACKS_PER_SECOND / per_second.max(1.0)).min(1.0);
        self.orders.stack_odds = (odds * f64::from(u32::MAX)) as u32;
        // Then there are more stacks, or fewer.
        let _ = calls.set_orders(self.probe, &self.orders);
    }

    /// How long it has been in place, or was.
    pub fn time(&self) -> Duration {
        let end = self.gone.map_or_else(Instant::now, |(at, _)| at);
        end.saturating_duration_since(self.placed)
    }

    /// Calls in a second, in the last whole one.
    pub fn calls_per_second(&self) -> f64 {
        self.rates().0
    }

    /// Hits in a second, in the last whole one: calls, and those of others. All of them cost.
    pub fn hits_per_second(&self) -> f64 {
        self.rates().1
    }

    /// Calls and hits in a second, of the same time.
    fn rates(&self) -> (f64, f64) {
        let (Some(reading), None) = (&self.reading, self.gone) else {
            return (0.0, 0.0);
        };
        // What was called since the reading is not in it.
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

    /// Whether stacks came of calls that are newer than the reading.
    pub fn has_newer_stacks(&self) -> bool {
        let calls = self.reading.as_ref().map_or(0, |reading| reading.calls);
        self.callers.all() > calls
    }

    /// Calls of each of the last seconds.
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
