//! What can be asked of the probes of a run.

use super::expression::{Expression, Values};
use super::guard::ProbeLimits;
use profile::ModuleId;
use std::sync::Arc;

/// An order about probes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeOrder {
    /// Place one. If the same function has one in the same processes, that goes on as if
    /// it had just been placed.
    Place {
        /// The function.
        place: ProbedFunction,
        /// The processes whose calls count.
        whose: Whose,
    },
    /// Place one that stays as long as the run. If there is no such function yet, it is looked
    /// for again and again.
    Keep {
        /// The function, as somebody typed it.
        name: Arc<str>,
        /// Read these values at each call.
        values: Values,
        /// When it is taken away.
        limits: ProbeLimits,
    },
    /// Let them live as if they had just been placed; those that are gone are placed again.
    Renew(Which),
    /// Take them away, and forget what they counted.
    Remove(Which),
    /// Look for names that somebody may mean who has typed this.
    Suggest(Arc<str>),
    /// Read these values at each call, and none else. What was counted begins anew.
    Values {
        /// The number of the probe.
        number: u64,
        /// What to read; empty for nothing.
        values: Vec<Expression>,
    },
}

/// Which probes an order is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Every probe there is.
    All,
    /// The one of that number.
    One(u64),
}

impl Which {
    /// Whether the probe with this number is meant.
    pub fn is(self, number: u64) -> bool {
        match self {
            Which::All => true,
            Which::One(one) => one == number,
        }
    }
}

/// Which function is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbedFunction {
    /// One that has samples.
    Sampled(Sampled),
    /// What somebody typed: see [`Wanted`](super::Wanted).
    Named(Arc<str>),
}

/// A function that has samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// The file that it is in, as the profile numbers it.
    pub module: ModuleId,
    /// The address of a sample in it.
    pub address: u64,
    /// `None` of a function without a name.
    pub name: Option<Arc<str>>,
    /// Its name, or its place, in words.
    pub shown: Arc<str>,
    /// The file in words.
    pub file: Arc<str>,
}

impl ProbedFunction {
    /// The function in words.
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

/// Whose calls count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// Of all targets of the run.
    Target,
    /// Of these processes.
    Processes {
        /// As the first pid namespace numbers them.
        pids: Vec<u32>,
        /// `postgres[4121]`, `3 processes`
        words: Arc<str>,
    },
}
