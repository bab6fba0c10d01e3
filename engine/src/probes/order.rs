//! Commands about the probes of a run.

use super::expression::{Expression, Values};
use super::guard::ProbeLimits;
use profile::ModuleId;
use std::sync::Arc;

/// An order about probes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeOrder {
    /// Place a probe. If there is one for the same function and processes, its lifetime is
    /// restarted.
    Place {
        /// The function.
        place: ProbedFunction,
        /// The processes whose calls count.
        whose: Whose,
    },
    /// Place a probe that stays for the whole run. If there is no such function yet, it is looked
    /// up again and again.
    Keep {
        /// The function, as the user typed it.
        name: Arc<str>,
        /// The values to read at each call.
        values: Values,
        /// Limits at which it is removed.
        limits: ProbeLimits,
    },
    /// Restart the lifetime of probes; removed ones are placed again.
    Renew(Which),
    /// Remove probes, and drop their counts.
    Remove(Which),
    /// Suggest names for what the user has typed.
    Suggest(Arc<str>),
    /// Read only these values at each call. Counting starts again.
    Values {
        /// The number of the probe.
        number: u64,
        /// What to read; empty for nothing.
        values: Vec<Expression>,
    },
}

impl ProbeOrder {
    /// Whether it is one of the orders whose number [`Probes::turn`](super::Probes::turn) is: those
    /// that change probes.
    pub fn is_counted(&self) -> bool {
        !matches!(self, ProbeOrder::Suggest(_))
    }
}

/// The probes that an order is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Every probe there is.
    All,
    /// The probe with that number.
    One(u64),
}

impl Which {
    /// Whether the probe with this number is included.
    pub fn is(self, number: u64) -> bool {
        match self {
            Which::All => true,
            Which::One(one) => one == number,
        }
    }
}

/// Specifies a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbedFunction {
    /// A function that has samples.
    Sampled(Sampled),
    /// A typed text: see [`Wanted`](super::Wanted).
    Named(Arc<str>),
}

/// A function that has samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// The module that contains it, as numbered in the profile.
    pub module: ModuleId,
    /// The address of one of its samples.
    pub address: u64,
    /// Its name; `None` if it has none.
    pub name: Option<Arc<str>>,
    /// Its displayed name, or its address.
    pub shown: Arc<str>,
    /// The displayed name of the file.
    pub file: Arc<str>,
}

impl ProbedFunction {
    /// Displayed name of the function.
    pub fn shown(&self) -> &Arc<str> {
        match self {
            ProbedFunction::Sampled(sampled) => &sampled.shown,
            ProbedFunction::Named(name) => name,
        }
    }

    /// Whether both are the same function, as far as that is known.
    pub fn is_as(&self, other: &ProbedFunction) -> bool {
        match (self, other) {
            (ProbedFunction::Sampled(a), ProbedFunction::Sampled(b)) => {
                let is_same_name = a.name.is_some() && a.name == b.name;
                a.module == b.module && (is_same_name || a.shown == b.shown)
            }
            _ => self == other,
        }
    }
}

/// The processes whose calls count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// All targets of the run.
    Target,
    /// These processes.
    Processes {
        /// Pids in the initial pid namespace.
        pids: Vec<u32>,
        /// `postgres[4121]`, `3 processes`
        words: Arc<str>,
    },
}
