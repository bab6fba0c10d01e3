//! What is known of one thread: its sums, exact by its switches, and of its waits those that a
//! look has met.
//!
//! ```text
//!  leaves ─────────── look ─────────── joins    met: its state and its stack are known
//!  leaves ─ joins                               not met: it counts as those that are
//! ```
//!
//! 1. Looks come at random moments, at a mean distance, the *period*. A wait of one and a half
//!    periods is always met, and stands for itself.
//! 2. A shorter one is met as often as it is a part of the period. All shorter ones, met or not,
//!    go into the *pool* of their state; one that is met stands for what was in the pool before it,
//!    whatever its own length, so that each of them stands for a period of waiting on average.
//! 3. A wait that is not met has the state of the last short one that was, or of the
//!    last one that left its CPU at the same instruction, where that is known.
//! 4. From when on a thread could go on again no switch tells. How long it was in the queue all in
//!    all the kernel counts (`/proc/PID/task/TID/schedstat`): what is more of that than is known
//!    already is taken from the ends of the waits since, from each as much as from the others.

use super::look::Look;
use crate::events::wait::{ThreadTotals, WaitState};
use probe_ebpf::waits::{DELAY_SLOTS, delay_slot, state};
use std::collections::HashMap;
use std::sync::Arc;

/// A pool for which no short wait was met is emptied after this number of periods of waiting,
const POOL_PERIODS: u64 = 16;
/// or after this time: what is in it counts for the second in which it is emptied, and a second must
/// not have much of the time before it.
const POOL_NS: u64 = 250_000_000;
/// A pool of whose state no short wait was ever met, so that it has no stack, waits longer for one.
const POOL_UNMET_NS: u64 = 2_000_000_000;

/// A wait that no look has met yet is settled when one has, or it is so old.
const UNMET_NS: u64 = 100_000_000;

/// What threads wait for that leave their CPU at an instruction of a process.
pub type Places = HashMap<(u32, u64), WaitState>;

/// A thread.
#[derive(Debug)]
pub struct Thread {
    pub pid: u32,
    pub comm: Arc<str>,
    /// Since when it is known.
    since_ns: u64,
    /// Until when all is in the sums, or to be settled.
    until_ns: u64,
    /// Since when it runs or is away.
    changed_ns: u64,
    away: Option<Away>,
    /// The instruction that it is about to leave its CPU at; 0 if that is not known.
    leaves_from: u64,
    ns: [u64; state::COUNT],
    times: [u32; state::COUNT],
    delays: [u32; DELAY_SLOTS],
    /// What the kernel had counted of its time in the queue when it was met. `None` if it does
    /// not tell.
    delay_base_ns: Option<u64>,
    unsettled: Vec<Unsettled>,
    /// By state.
    pools: [Pool; state::COUNT],
    ended: Vec<Ended>,
    /// What the last wait was for that a look met, if possible a short one.
    usual: Option<WaitState>,
}

/// The thread is on no CPU.
#[derive(Debug)]
struct Away {
    is_preempted: bool,
    /// The instruction that it left its CPU at; 0 if that is not known.
    ip: u64,
    look: Option<Box<Look>>,
}

/// Time of waits whose part in the queue is not known yet.
#[derive(Debug)]
struct Unsettled {
    /// `None` if no look has met it.
    state: Option<WaitState>,
    ip: u64,
    ns: u64,
    /// How many of them are over.
    ends: u32,
}

/// Short waits that no sample stands for yet.
#[derive(Debug, Default)]
struct Pool {
    ns: u64,
    waits: u64,
    /// When the first of them ended.
    since_ns: u64,
    /// The last short one that was met.
    last: Option<Box<Look>>,
}

impl Pool {
    /// Whether it has waited for too long for something short to be met.
    fn is_due(&self, time_ns: u64, period_ns: u64) -> bool {
        let age_ns = time_ns.saturating_sub(self.since_ns);
        let age_max_ns = match self.last {
            Some(_) => POOL_NS,
            None => POOL_UNMET_NS,
        };
        self.ns > POOL_PERIODS * period_ns || age_ns >= age_max_ns
    }
}

/// What a sample is to be made of.
#[derive(Debug)]
pub struct Ended {
    /// `None` if no look met such a wait.
    pub look: Option<Box<Look>>,
    pub state: WaitState,
    pub time_ns: u64,
    pub cpu: u32,
    /// What it stands for, in time and waits.
    pub ns: u64,
    pub waits: u64,
    /// How long it was itself.
    pub away_ns: u64,
    /// Of `ns`, what was in the queue.
    pub queued_ns: u64,
    /// It is what was left in a pool.
    pub is_rest: bool,
}

impl Thread {
    /// A thread that is met while it runs.
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

    /// What it waits for is known from elsewhere.
    pub fn expect(&mut self, state: WaitState) {
        self.usual = Some(state);
    }

    /// It will leave its CPU at this instruction.
    pub fn leaves_from(&mut self, ip: u64) {
        self.leaves_from = ip;
    }

    /// Until when it is known what it did.
    pub fn known_until_ns(&self) -> u64 {
        self.until_ns
    }

    /// Whether waits have ended of which it is not known yet how much was in the queue.
    pub fn has_unsettled_ends(&self) -> bool {
        self.unsettled.iter().any(|part| part.ends > 0)
    }

    /// It leaves its CPU.
    pub fn leave(&mut self, time_ns: u64, is_preempted: bool) {
        if self.away.is_some() {
            // A record of it was lost: what it was in goes on until now.
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

    /// Takes a look that was taken at it. Gives it back if it may be of a later wait.
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

    /// It joins a CPU; a wait of `long_ns` stands for itself. Gives back a look that is of a later
    /// wait.
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
            // Those before it, of which nothing was known, are taken for the same.
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

    /// It has ended, at most now.
    pub fn end(&mut self, time_ns: u64) {
        self.cut(time_ns);
        self.away = None;
    }

    /// Settles what it did until `time_ns`, but for a wait that has just begun. The kernel has
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

    /// Whether a pool waits for too long.
    pub fn has_rest(&self, time_ns: u64, period_ns: u64) -> bool {
        let mut pools = self.pools.iter();
        pools.any(|pool| pool.ns > 0 && pool.is_due(time_ns, period_ns))
    }

    /// Whether a sample is to be made of a wait.
    pub fn has_ended_waits(&self) -> bool {
        !self.ended.is_empty()
    }

    /// What samples are to be made of. Pools are emptied that wait for too long, or all.
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

    /// Its sums, as they were settled last.
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

    /// The wait that is not over, and since when, if a look has met it.
    pub fn open(&self) -> Option<(u64, &Look)> {
        let away = self.away.as_ref().filter(|away| !away.is_preempted)?;
        Some((self.changed_ns, away.look.as_deref()?))
    }

    /// What it is doing.
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

    /// Everything until then goes into the sums, or waits to be settled.
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

/// Divides `all` among parts, which are given as their length and the number of waits that ended in
/// them: each end gets the same, and a part no more than its length. What no part can take is left
/// out.
fn shares_of(all: u64, parts: &[(u64, u32)]) -> Vec<u64> {
    let mut shares = vec![0; parts.len()];
    let mut left = all;
    // Each round fills a part up, or gives away all that is left.
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
