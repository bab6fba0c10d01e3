//! The accounts of a run: number of samples taken and lost, where walks stopped, what did not fit
//! into limits, and what sampling costs.

use super::modules::Modules;
use super::python;
use crate::cost::Meter;
use crate::losses::Losses;
use crate::stops::Stops;
use crate::users::Users;
use probe::shares::NOBODY;
use probe::{Batch, Counters, OverShare, PythonStats, Scarce, TableStats};
use profile::{Busy, Ending, Health, ModuleId, OwnMemory, Window};
use std::sync::Arc;
use std::time::Duration;

/// The accounts; the model adds the numbers of each batch and puts them into snapshots.
pub struct Account {
    meter: Meter,
    /// Counters of the source for the whole run, from the newest batch.
    counters: Counters,
    /// When samples were lost, and on which CPUs.
    losses: Arc<Losses>,
    /// Where stack walks ended before the root.
    stops: Stops,
    tables: TableStats,
    /// Users by name, with what of theirs is cut because they exceed their share, or because one of
    /// their processes has more than is kept of one.
    over_share: Vec<(Arc<str>, OverShare)>,
    python: PythonStats,
}

impl Account {
    /// Creates the accounts. `sampled_cpus` are the CPUs whose load is measured; empty for all.
    pub fn new(sampled_cpus: &[u16]) -> Self {
        Self {
            meter: Meter::new(sampled_cpus),
            counters: Counters::default(),
            losses: Arc::default(),
            stops: Stops::default(),
            tables: TableStats::default(),
            over_share: Vec::new(),
            python: PythonStats::default(),
        }
    }

    /// Takes the counters of a batch. They are sums of the whole run, so the newest ones replace
    /// earlier ones.
    pub fn add(&mut self, batch: &Batch, users: &mut Users) {
        self.counters = batch.counters;
        self.tables = batch.tables;
        self.python.clone_from(&batch.python);
        let named = batch.over_share.iter().map(|over| {
            let user = match over.user {
                NOBODY => "users that are not known".into(),
                uid => users.name(uid),
            };
            (user, *over)
        });
        self.over_share = named.collect();
        let lost = batch.counters.lost;
        if self.losses.is_news(lost) {
            Arc::make_mut(&mut self.losses).note(batch.complete_until_ns, lost, &batch.lost_by_cpu);
        }
    }

    /// CPU time that proftop has used.
    pub fn spent(&self) -> Duration {
        Meter::spent(&self.counters)
    }

    /// Counts how a walk ended, and in which module.
    pub fn note_ending(&mut self, ending: Ending, module: Option<ModuleId>) {
        self.stops.note(ending, module);
    }

    /// Number of samples lost in the whole run.
    pub fn lost(&self) -> u64 {
        self.counters.lost
    }

    /// The losses, for a snapshot: they are copied only if more samples are lost while a snapshot
    /// is held.
    pub fn losses(&self) -> Arc<Losses> {
        Arc::clone(&self.losses)
    }

    /// How much CPU time was used since the start, by any program.
    pub fn used(&mut self) -> Busy {
        self.meter.look(&self.counters);
        self.meter.used()
    }

    /// How far the numbers of a window can be trusted, and how many CPUs were busy.
    pub fn health(
        &mut self,
        window: Window,
        modules: &Modules,
        notes: Vec<String>,
    ) -> (Health, f64) {
        let cost = self.meter.look(&self.counters);
        let health = Health {
            lost: self.losses.between(window.start_ns, window.end_ns),
            taken_run: self.counters.taken,
            lost_run: self.counters.lost,
            own_cpu_percent: cost.own_cpu_percent,
            own_rss_bytes: cost.own_rss_bytes,
            own_memory: OwnMemory::default(),
            table_bytes: self.tables.kernel_bytes,
            stops: self.stops.top(|module| modules.name(module)),
            languages: python::stacks(&self.python).into_iter().collect(),
            notes,
        };
        (health, cost.busy_cpus)
    }

    /// Sentences about what is missing because limits were reached.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.counters.events_lost > 0 {
            notes.push(format!(
                "{} process events were lost: some addresses may lack a module",
                self.counters.events_lost
            ));
        }
        if self.counters.unsampled_ns > 0 {
            notes.push(format!(
                "CPUs were turned on during the run, or the machine was suspended: up to {:.1} s of their \
                 time is missing, before that was noticed",
                self.counters.unsampled_ns as f64 / 1e9
            ));
        }
        let tables = &self.tables;
        if tables.files_without_room > 0 {
            notes.push(format!(
                "there was no room for the unwind tables of {} files: their stacks are cut",
                tables.files_without_room
            ));
        }
        if tables.rules_dropped + tables.processes_refused + tables.lists_cut > 0 {
            notes.push("some unwind rules or mappings did not fit: stacks may be cut".into());
        }
        notes.extend(python::notes(&self.python));
        let over_share = self.over_share.iter();
        notes.extend(over_share.map(|(user, over)| told(user, *over)));
        notes
    }
}

/// Says what of a user's processes is cut, and why.
fn told(user: &str, over: OverShare) -> String {
    let count = over.count;
    match over.what {
        Scarce::Mappings => format!(
            "the stacks of {} of {user} are cut: together they map more than an eighth \
             of what can be followed, and others want room",
            processes(count)
        ),
        Scarce::OfOneProcess => format!(
            "{} of {user} map more code than is followed of one process: stacks in the rest are cut",
            processes(count)
        ),
        Scarce::Scans => format!(
            "the mappings of {} of {user} are not known now, so their stacks are cut: together they map \
             more code than is read in a second, or than is kept",
            processes(count)
        ),
        Scarce::Tables => format!(
            "{count} files of {user} have no unwind tables, so their stacks are cut: those of \
             other files of {user} take an eighth of the memory for tables, and others want room"
        ),
        Scarce::Rules => format!(
            "{count} unwind rules in files of {user} were left out, so their stacks are cut: \
             those files brought more than an eighth of all rules that there can be"
        ),
        Scarce::Stacks => format!(
            "{count} stacks of new processes of {user} were walked early, and may be cut: copies \
             of their stacks took more than an eighth of the memory for copies"
        ),
        Scarce::Python => format!(
            "Python functions of processes of {user} were not read {count} times: reading those \
             of others came first"
        ),
    }
}

fn processes(count: usize) -> String {
    match count {
        1 => "1 process".into(),
        count => format!("{count} processes"),
    }
}
