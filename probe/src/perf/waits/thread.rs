//! The state of one thread: its sums, which are exact because of its switches, and those of its
//! waits that a look has met.
//!
//! ```text
//!  leaves ─────────── look ─────────── joins    met: its state and its stack are known
//!  leaves ─ joins                               not met: it counts as those that are
//! ```
//!
//! 1. Looks come at random moments, at a mean distance, the *period*. A wait of one and a half
//!    periods is always met, and stands for itself.
//! 2. The probability that a shorter one is met is its length divided by the period. All shorter
//!    ones, met or not, go into the *pool* of their state; one that is met stands for what was in
//!    the pool before it, whatever its own length, so that each of them stands for a period of
//!    waiting on average.
//! 3. A wait that is not met has the state of the last short one that was met, or of the last one
//!    that left its CPU at the same instruction, if that is known.
//! 4. No switch shows when a thread could have gone on. The kernel counts the total time that it
//!    was in the queue (`/proc/PID/task/TID/schedstat`): the part of it that is not yet accounted
//!    for is taken from the ends of the waits since then, the same amount from each.

use super::look::Look;
use crate::events::wait::{ThreadTotals, WaitState};
use probe_ebpf::waits::{DELAY_SLOTS, delay_slot, state};
use std::collections::HashMap;
use std::sync::Arc;

/// A pool for which no short wait was met is emptied after this number of periods of waiting,
const POOL_PERIODS: u64 = 16;
/// or after this time: its content counts for the second in which it is emptied, and a second must
/// not have much of the time before it.
const POOL_NS: u64 = 250_000_000;
/// A pool without any met wait of its state, so that it has no stack, is kept longer.
const POOL_UNMET_NS: u64 = 2_000_000_000;

/// A wait that no look has met yet is settled when one has, or when it is this old.
const UNMET_NS: u64 = 100_000_000;

/// What threads wait for that leave their CPU at an instruction of a process.
pub type Places = HashMap<(u32, u64), WaitState>;

/// The state of a thread.
#[derive(Debug)]
pub struct Thread {
    /// The process of the thread.
    pub pid: u32,
    /// The thread's name.
    pub comm: Arc<str>,
    /// When the thread was first seen.
    since_ns: u64,
    /// Time until which everything is in the sums, or is to be settled.
    until_ns: u64,
    /// When it began to run or left its CPU.
    changed_ns: u64,
    away: Option<Away>,
    /// The instruction at which it is about to leave its CPU; 0 if unknown.
    leaves_from: u64,
    ns: [u64; state::COUNT],
    times: [u32; state::COUNT],
    delays: [u32; DELAY_SLOTS],
    /// The time in the queue that the kernel had counted when the thread was first seen. `None` if
    /// the kernel does not report it.
    delay_base_ns: Option<u64>,
    unsettled: Vec<Unsettled>,
    /// Pools, by state.
    pools: [Pool; state::COUNT],
    ended: Vec<Ended>,
    /// State of the last wait that a look met, if possible a short one.
    usual: Option<WaitState>,
}

/// A thread that is on no CPU.
#[derive(Debug)]
struct Away {
    is_preempted: bool,
    /// The instruction at which it left its CPU; 0 if unknown.
    ip: u64,
    look: Option<Box<Look>>,
}

/// Time of waits of which the part in the queue is not known yet.
#[derive(Debug)]
struct Unsettled {
    /// State of the waits; `None` if no look has met them.
    state: Option<WaitState>,
    ip: u64,
    ns: u64,
    /// Number of these waits that are over.
    ends: u32,
}

/// Short waits for which no sample stands yet.
#[derive(Debug, Default)]
struct Pool {
    ns: u64,
    waits: u64,
    /// When the first of these waits ended.
    since_ns: u64,
    /// The look at the last short wait that was met.
    last: Option<Box<Look>>,
}

impl Pool {
    /// Whether the pool has been kept for too long without a short wait that was met.
    fn is_due(&self, time_ns: u64, period_ns: u64) -> bool {
        let age_ns = time_ns.saturating_sub(self.since_ns);
        let age_max_ns = match self.last {
            Some(_) => POOL_NS,
            None => POOL_UNMET_NS,
        };
        self.ns > POOL_PERIODS * period_ns || age_ns >= age_max_ns
    }
}

/// The data of a sample of waits that ended.
#[derive(Debug)]
pub struct Ended {
    /// A look at such a wait; `None` if no look met one.
    pub look: Option<Box<Look>>,
    /// What the thread waited for.
    pub state: WaitState,
    /// When the wait ended, or the pool was emptied: in nanoseconds on `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The CPU on which the thread ran again; 0 for what was left in a pool.
    pub cpu: u32,
    /// Waiting time in nanoseconds for which the sample stands.
    pub ns: u64,
    /// Number of waits for which the sample stands.
    pub waits: u64,
    /// Length of the wait itself; for what was left in a pool, the mean length.
    pub away_ns: u64,
    /// Part of `ns` that was spent in the queue.
    pub queued_ns: u64,
    /// Whether it is what was left in a pool.
    pub is_rest: bool,
}

impl Thread {
    /// Makes the state of a thread that was first seen while it runs.
    pub fn running(pid: u32, comm: Arc<str>, time_ns: u64, delay_ns: Option<u64>) -> Self {
        Self {
            pid,
            comm,
            since_ns: time_ns,
            until_ns: time_ns,
            changed_ns: time_ns,
            away: None,
            leaves_from: 0,
            ns: [0; state::COUNT],
            times: [0; state::COUNT],
            delays: [0; DELAY_SLOTS],
            delay_base_ns: delay_ns,
            unsettled: Vec::new(),
            pools: Default::default(),
            ended: Vec::new(),
            usual: None,
        }
    }

    /// Sets what it waits for, which is known from another source.
    pub fn expect(&mut self, state: WaitState) {
        self.usual = Some(state);
    }

    /// Sets the instruction at which it will leave its CPU.
    pub fn leaves_from(&mut self, ip: u64) {
        self.leaves_from = ip;
    }

    /// Returns the time until which its actions are known.
    pub fn known_until_ns(&self) -> u64 {
        self.until_ns
    }

    /// Whether waits have ended whose part in the queue is not known yet.
    pub fn has_unsettled_ends(&self) -> bool {
        self.unsettled.iter().any(|part| part.ends > 0)
    }

    /// Records that it leaves its CPU.
    pub fn leave(&mut self, time_ns: u64, is_preempted: bool) {
        if self.away.is_some() {
            // A record was lost: its previous state lasts until now.
            self.join(time_ns, 0, u64::MAX, &Places::new());
        }
        self.cut(time_ns);
        self.times[WaitState::Run.number()] = self.times[WaitState::Run.number()].wrapping_add(1);
        self.changed_ns = time_ns;
        self.away = Some(Away {
            is_preempted,
            ip: std::mem::take(&mut self.leaves_from),
            look: None,
        });
    }

    /// Assigns a look to the current wait. Returns the look if it may belong to a later wait.
    pub fn offer(&mut self, look: Box<Look>) -> Option<Box<Look>> {
        match &mut self.away {
            Some(away) if look.begun_ns >= self.changed_ns => {
                let is_of_queue = look.state == WaitState::Queue;
                if is_of_queue != away.is_preempted {
                    return Some(look);
                }
                away.look = Some(look);
                None
            }
            None if look.begun_ns >= self.until_ns => Some(look),
            _ => None,
        }
    }

    /// Records that it gets a CPU; a wait of `long_ns` stands for itself. Returns a look that
    /// belongs to a later wait.
    pub fn join(
        &mut self,
        time_ns: u64,
        cpu: u32,
        long_ns: u64,
        places: &Places,
    ) -> Option<Box<Look>> {
        let later = match &mut self.away {
            Some(away) => {
                let later = away.look.take_if(|look| look.seen_ns > time_ns);
                later.filter(|look| look.begun_ns >= time_ns)
            }
            None => None,
        };
        self.cut(time_ns);
        let Some(away) = self.away.take() else {
            return later;
        };
        let away_ns = time_ns.saturating_sub(self.changed_ns);
        self.changed_ns = time_ns;
        if away.is_preempted {
            self.count_queue(away_ns, 1);
        } else if let Some(last) = self.unsettled.last_mut() {
            last.ends += 1;
        }
        let state = match (&away.look, away.is_preempted) {
            (_, true) => WaitState::Queue,
            (Some(look), false) => look.state,
            (None, false) => self.guess(away.ip, places),
        };
        let is_long = away_ns >= long_ns;
        self.pool(state, away, (time_ns, away_ns), cpu, is_long);
        later
    }

    fn pool(
        &mut self,
        state: WaitState,
        away: Away,
        (time_ns, away_ns): (u64, u64),
        cpu: u32,
        is_long: bool,
    ) {
        if away.look.is_some() && !away.is_preempted && self.usual.is_none() {
            // The waits before it, of which nothing was known, are assumed to be of the same state.
            let unknown = std::mem::take(&mut self.pools[WaitState::Other.number()]);
            let pool = &mut self.pools[state.number()];
            pool.ns += unknown.ns;
            pool.waits += unknown.waits;
            pool.since_ns = unknown.since_ns;
        }
        let pool = &mut self.pools[state.number()];
        if pool.waits == 0 {
            pool.since_ns = time_ns;
        }
        let Some(look) = away.look.map(|look| look.of_wait(time_ns)) else {
            pool.ns += away_ns;
            pool.waits += 1;
            return;
        };
        if !away.is_preempted && (!is_long || self.usual.is_none()) {
            self.usual = Some(look.state);
        }
        let (ns, waits) = if is_long {
            (away_ns, 1)
        } else {
            (pool.ns, pool.waits)
        };
        if ns > 0 {
            self.ended.push(Ended {
                state,
                look: Some(look.clone()),
                time_ns,
                cpu,
                ns,
                waits,
                away_ns,
                queued_ns: 0,
                is_rest: false,
            });
        }
        if !is_long {
            *pool = Pool {
                ns: away_ns,
                waits: 1,
                since_ns: time_ns,
                last: Some(look),
            };
        }
    }

    /// Records that it has ended, now or before.
    pub fn end(&mut self, time_ns: u64) {
        self.cut(time_ns);
        self.away = None;
    }

    /// Settles what it did until `time_ns`, except for a wait that has just begun. The kernel has
    /// counted `delay_ns` of its time in the queue by now.
    pub fn settle(&mut self, time_ns: u64, delay_ns: Option<u64>, places: &Places) {
        let is_new = |away: &Away| {
            let age_ns = time_ns.saturating_sub(self.changed_ns);
            !away.is_preempted && away.look.is_none() && age_ns < UNMET_NS
        };
        if !self.away.as_ref().is_some_and(is_new) {
            self.cut(time_ns);
        }
        let parts: Vec<(u64, u32)> = self
            .unsettled
            .iter()
            .map(|part| (part.ns, part.ends))
            .collect();
        let counted_ns = delay_ns.zip(self.delay_base_ns);
        let queue_ns = self.ns[WaitState::Queue.number()];
        let more_ns = counted_ns.map_or(0, |(delay_ns, base_ns)| {
            delay_ns.saturating_sub(base_ns).saturating_sub(queue_ns)
        });
        let queued = shares_of(more_ns, &parts);
        let ends: u64 = parts.iter().map(|(_, ends)| u64::from(*ends)).sum();
        let each_ns = queued.iter().sum::<u64>() / ends.max(1);
        for (part, queued_ns) in std::mem::take(&mut self.unsettled).into_iter().zip(queued) {
            let state = part.state.unwrap_or_else(|| self.guess(part.ip, places));
            self.ns[state.number()] += part.ns - queued_ns;
            self.times[state.number()] = self.times[state.number()].wrapping_add(part.ends);
            self.ns[WaitState::Queue.number()] += queued_ns;
            if counted_ns.is_some() && part.ends > 0 {
                self.count_delays(queued_ns / u64::from(part.ends), part.ends);
                if queued_ns > 0 {
                    let queue = &mut self.times[WaitState::Queue.number()];
                    *queue = queue.wrapping_add(part.ends);
                }
            }
        }
        for ended in &mut self.ended {
            ended.queued_ns = match ended.state {
                WaitState::Queue => ended.ns,
                _ => ended.ns.min(each_ns.saturating_mul(ended.waits)),
            };
        }
    }

    /// Whether a pool has been kept for too long.
    pub fn has_rest(&self, time_ns: u64, period_ns: u64) -> bool {
        let mut pools = self.pools.iter();
        pools.any(|pool| pool.ns > 0 && pool.is_due(time_ns, period_ns))
    }

    /// Whether samples of ended waits are to be made.
    pub fn has_ended_waits(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Returns the data of samples to make. Empties pools that were kept for too long, or all.
    pub fn take_ended(&mut self, time_ns: u64, period_ns: u64, all: bool) -> Vec<Ended> {
        let mut ended = std::mem::take(&mut self.ended);
        for (state, pool) in WaitState::ALL.into_iter().zip(&mut self.pools) {
            if pool.ns == 0 || !pool.is_due(time_ns, period_ns) && !all {
                continue;
            }
            let is_queue = state == WaitState::Queue;
            ended.push(Ended {
                look: pool.last.clone(),
                state,
                time_ns,
                cpu: 0,
                ns: pool.ns,
                waits: pool.waits,
                away_ns: pool.ns / pool.waits.max(1),
                queued_ns: if is_queue { pool.ns } else { 0 },
                is_rest: true,
            });
            (pool.ns, pool.waits) = (0, 0);
        }
        ended
    }

    /// Returns its sums, as last settled.
    pub fn totals(&self, tid: u32, has_ended: bool, places: &Places) -> ThreadTotals {
        let look = self.away.as_ref().and_then(|away| away.look.as_ref());
        ThreadTotals {
            pid: self.pid,
            tid,
            comm: Arc::clone(&self.comm),
            since_ns: self.since_ns,
            until_ns: self.until_ns,
            has_ended,
            state: self.state(places),
            state_since_ns: self.changed_ns,
            owner: look.and_then(|look| look.owner),
            ns: self.ns,
            times: self.times,
            delays: self.delays,
        }
    }

    /// Returns the begin of the current wait, and the look that has met it, if there is one.
    pub fn open(&self) -> Option<(u64, &Look)> {
        let away = self.away.as_ref().filter(|away| !away.is_preempted)?;
        Some((self.changed_ns, away.look.as_deref()?))
    }

    /// Returns what it is doing.
    fn state(&self, places: &Places) -> WaitState {
        match &self.away {
            None => WaitState::Run,
            Some(away) if away.is_preempted => WaitState::Queue,
            Some(Away {
                look: Some(look), ..
            }) => look.state,
            Some(away) => self.guess(away.ip, places),
        }
    }

    fn guess(&self, ip: u64, places: &Places) -> WaitState {
        let known = places.get(&(self.pid, ip)).copied();
        known.or(self.usual).unwrap_or(WaitState::Other)
    }

    /// Adds everything until that time to the sums, or to what is to be settled.
    fn cut(&mut self, time_ns: u64) {
        let ns = time_ns.saturating_sub(self.until_ns);
        self.until_ns = self.until_ns.max(time_ns);
        match &self.away {
            None => self.ns[WaitState::Run.number()] += ns,
            Some(away) if away.is_preempted => self.ns[WaitState::Queue.number()] += ns,
            Some(away) => {
                let state = away.look.as_ref().map(|look| look.state);
                match self.unsettled.last_mut() {
                    Some(last) if last.state == state && last.ip == away.ip => last.ns += ns,
                    _ => self.unsettled.push(Unsettled {
                        state,
                        ip: away.ip,
                        ns,
                        ends: 0,
                    }),
                }
            }
        }
    }

    /// Counts a time in the queue that is over.
    fn count_queue(&mut self, ns: u64, times: u32) {
        let queue = &mut self.times[WaitState::Queue.number()];
        *queue = queue.wrapping_add(times);
        self.count_delays(ns, times);
    }

    fn count_delays(&mut self, each_ns: u64, times: u32) {
        let slot = &mut self.delays[delay_slot(each_ns)];
        *slot = slot.wrapping_add(times);
    }
}

/// Divides `all` among parts, which are given by their length and the number of waits that ended in
/// them: each end gets the same, but a part gets no more than its length. What no part can take is
/// left out.
fn shares_of(all: u64, parts: &[(u64, u32)]) -> Vec<u64> {
    let mut shares = vec![0; parts.len()];
    let mut left = all;
    // Each round fills a part, or distributes everything that is left.
    for _ in 0..=parts.len() {
        let room = |index: usize, shares: &[u64]| match parts[index] {
            (_, 0) => 0,
            (ns, _) => ns - shares[index],
        };
        let open = |shares: &[u64]| -> Vec<usize> {
            let indices = 0..parts.len();
            indices.filter(|index| room(*index, shares) > 0).collect()
        };
        let places = open(&shares);
        let ends: u64 = places.iter().map(|index| u64::from(parts[*index].1)).sum();
        if left == 0 || ends == 0 {
            break;
        }
        let each = (left / ends).max(1);
        for index in places {
            let wanted = each.saturating_mul(u64::from(parts[index].1));
            let share = wanted.min(room(index, &shares)).min(left);
            shares[index] += share;
            left -= share;
        }
    }
    shares
}

#[cfg(test)]
mod tests;
