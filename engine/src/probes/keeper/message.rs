//! Messages to the thread that owns the probes, and its reports.

use crate::naming::NamedModule;
use crate::probes::Extent;
use crate::probes::finder::Answer;
use crate::probes::order::ProbeOrder;
use crate::probes::shown::{OnCpu, Probes};
use probe::call::Calls;
use probe::channel::Sender;
use profile::Ending;
use profile::probes::ProbeLog;
use std::sync::Arc;

/// A message to the thread.
pub enum Message {
    /// An order of a user. The module is set if the function has samples.
    Order(ProbeOrder, Option<Arc<NamedModule>>),
    /// The requested probes of the source of samples, or why it has none.
    Calls(Result<Box<Calls>, String>),
    /// A call whose stack was taken.
    Stack(Stack),
    /// An answer of the finder.
    Found(Answer),
    /// CPU time of a probed function since the last message.
    OnCpu {
        /// The number of the probe.
        number: u64,
        /// When it was placed: it may have been placed again since.
        from_ns: u64,
        /// Number of samples, and the time that they stand for.
        time: OnCpu,
    },
    /// Read all probes now, and send news with this number.
    Look(u64),
    /// Remove all probes, and end.
    End,
}

/// A request of the thread to the source of samples.
pub enum Asked {
    /// Send its probes, as a [`Message::Calls`], to this sender.
    Calls(Sender<Message>),
    /// The command may run: the probes that were ordered so far are in place, or cannot be placed.
    Begin,
}

/// The stack of a call.
pub struct Stack {
    /// The number of the probe on the kernel side.
    pub probe: u8,
    /// Frames, innermost first.
    pub frames: Vec<(Arc<NamedModule>, u64)>,
    /// The thread that called.
    pub tid: u32,
    /// The name of that thread.
    pub comm: Arc<str>,
    /// Why it does not reach the thread's first function; `None` if it does.
    pub cut: Option<Ending>,
}

/// A report of the thread.
pub struct News {
    /// Every probe, with its counts.
    pub probes: Probes,
    /// Which samples are counted as CPU time of a probe.
    pub counted: Arc<Vec<Counted>>,
    /// The counts of each second, of all probes of the run.
    pub log: Arc<ProbeLog>,
    /// The number of the last [`Message::Look`] that was handled.
    pub look: u64,
    /// Whether the user waits for it: a probe was ordered, or has been removed.
    pub is_urgent: bool,
}

/// Which samples are CPU time of a probe.
pub struct Counted {
    /// The number of the probe.
    pub number: u64,
    /// The ranges of its function's code.
    pub extents: Vec<Extent>,
    /// The processes whose samples count; `None` for all.
    pub pids: Option<Vec<u32>>,
    /// From this time on, on the clock of the samples.
    pub from_ns: u64,
    /// Up to this time; `None` while the probe is in place.
    pub until_ns: Option<u64>,
}

impl Counted {
    /// Whether a sample of a process at a time counts.
    pub fn has(&self, pid: Option<u32>, time_ns: u64) -> bool {
        let is_process = |pids: &Vec<u32>| pid.is_some_and(|pid| pids.contains(&pid));
        time_ns >= self.from_ns
            && self.until_ns.is_none_or(|until_ns| time_ns < until_ns)
            && self.pids.as_ref().is_none_or(is_process)
    }
}
