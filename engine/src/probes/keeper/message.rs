//! Messages to the thread that owns the probes, and what it reports.

use crate::naming::NamedModule;
use crate::probes::Extent;
use crate::probes::finder::Answer;
use crate::probes::order::ProbeOrder;
use crate::probes::shown::{OnCpu, Probes};
use probe::call::Calls;
use profile::Ending;
use profile::probes::ProbeLog;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// A message to the thread.
pub enum Message {
    /// An order of a user. The module is that of a function that has samples.
    Order(ProbeOrder, Option<Arc<NamedModule>>),
    /// The probes of the source of samples, which were asked for, or why it has none.
    Calls(Result<Box<Calls>, String>),
    /// A call whose stack was taken.
    Stack(Stack),
    /// What the finder of functions found.
    Found(Answer),
    /// CPU time of a probed function that was found since the last time.
    OnCpu {
        /// The number of the probe.
        number: u64,
        /// When it was placed: it may have been placed anew since.
        from_ns: u64,
        /// Samples, and the time that they stand for.
        time: OnCpu,
    },
    /// Read all probes now, and tell. With a number that comes back.
    Look(u64),
    /// Take all probes away, and end.
    End,
}

/// What the thread asks of the source of samples.
pub enum Asked {
    /// Its probes, as a [`Message::Calls`] to this sender.
    Calls(Sender<Message>),
    /// That the command may run: the probes that were ordered so far are in place, or there
    /// are none.
    Begin,
}

/// The stack of a call.
pub struct Stack {
    /// The number that the kernel side has for the probe.
    pub probe: u8,
    /// Innermost first.
    pub frames: Vec<(Arc<NamedModule>, u64)>,
    /// The thread that called.
    pub tid: u32,
    /// The name of that thread.
    pub comm: Arc<str>,
    /// Why it does not reach the thread's first function; `None` if it does.
    pub cut: Option<Ending>,
}

/// What the thread reports.
pub struct News {
    /// Every probe, with what was seen of it.
    pub probes: Probes,
    /// Where samples are counted as CPU time of a probe.
    pub counted: Arc<Vec<Counted>>,
    /// What all probes of the run have counted in each second.
    pub log: Arc<ProbeLog>,
    /// The number of the last [`Message::Look`] that was carried out.
    pub look: u64,
    /// Somebody waits for it: it was ordered, or has gone.
    pub is_urgent: bool,
}

/// Whose samples are CPU time of a probe.
pub struct Counted {
    /// The number of the probe.
    pub number: u64,
    /// Where its function is.
    pub extents: Vec<Extent>,
    /// `None`: of all that are sampled.
    pub pids: Option<Vec<u32>>,
    /// Since then, on the clock of the samples.
    pub from_ns: u64,
    /// `None` while it is in place.
    pub until_ns: Option<u64>,
}

impl Counted {
    /// Whether a sample of a process counts.
    pub fn has(&self, pid: Option<u32>, time_ns: u64) -> bool {
        let is_process = |pids: &Vec<u32>| pid.is_some_and(|pid| pids.contains(&pid));
        time_ns >= self.from_ns
            && self.until_ns.is_none_or(|until_ns| time_ns < until_ns)
            && self.pids.as_ref().is_none_or(is_process)
    }
}
