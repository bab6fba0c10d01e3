//! Converts addresses of a process to places in modules, by the mappings that the process had when
//! the sample was taken.

use crate::decode::{RawSample, comm_bytes};
use crate::exec::ExecCode;
use crate::ids::{ModuleId, ProcessId};
use crate::mappings::{Backing, Mappings};
use crate::process::ProcessTable;
use crate::python::PythonParts;
use crate::sample::{Ending, Frame, Sample};
use foldhash::HashMap;
use std::sync::Arc;
use symbolize::sanitize;

/// Maximum number of thread names that are stored as one string each; with more, all are dropped.
const COMMS_MAX: usize = 65_536;

/// The process of a sample, as it was at that time.
#[derive(Debug, Clone)]
pub struct Located {
    pub process: ProcessId,
    /// The user to whom it is charged.
    pub user: u32,
    /// Its executable mappings.
    pub mappings: Arc<Mappings>,
    /// Whether it was in exec: then there was no user stack.
    pub in_exec: bool,
    /// Whether its stack was not walked because its user's processes have used up their share.
    pub over_share: bool,
    /// Whether its stack was walked before the table of a file that it came through was read.
    pub tables_late: bool,
    /// Whether it is outside of our pid namespace.
    pub outside: bool,
    /// Its frames of Python.
    pub python: PythonParts,
}

/// The name of the processes outside of our pid namespace, as their numbers are unknown.
const OUTSIDE: &[u8] = b"[outside]";

/// Converts raw samples to samples.
#[derive(Debug, Default)]
pub struct Resolver {
    exec: ExecCode,
    comms: HashMap<[u8; 16], Arc<str>>,
}

impl Resolver {
    /// Finds the process of a sample, and its mappings at that time.
    pub fn locate(
        &mut self,
        raw: &RawSample,
        processes: &mut ProcessTable,
        now_ns: u64,
    ) -> Located {
        // The kernel has no number for it in our namespace: 0 stands for many processes, which have
        // different mappings.
        let outside = raw.tgid == 0 && !raw.user.is_empty();
        let comm = match raw.tgid {
            0 => OUTSIDE,
            _ => comm_bytes(&raw.comm),
        };
        let leaf = raw.user.first().map(|frame| frame.address_for_lookup());
        let process = processes.at(raw.tgid, comm, raw.time_ns, now_ns);
        let (id, user, has_execed) = (process.id, process.user(), process.has_execed());
        let mut mappings = process.mappings.clone();
        let is_left = process.is_left_for_later();
        let mut over_share = is_left;
        if outside {
            mappings = Arc::default();
        }
        let is_lost = |mappings: &Mappings| leaf.is_some_and(|leaf| mappings.find(leaf).is_none());
        // During exec the registers are those of the old program.
        let in_exec = !outside
            && !is_left
            && is_lost(&mappings)
            && !raw.kernel.is_empty()
            && (has_execed || self.exec.is_in(&raw.kernel));
        // The interrupted address must be mapped: if it is not found, an event was missed, and
        // /proc still has the mapping if the process lives. Of a process that was left for later only
        // what it has mapped since then is known.
        if (is_left || is_lost(&mappings)) && !in_exec && !outside {
            processes.rescan(raw.tgid, now_ns);
            let process = processes.at(raw.tgid, comm, raw.time_ns, now_ns);
            mappings = process.mappings.clone();
            over_share = process.is_left_for_later();
        }
        Located {
            process: id,
            user,
            mappings,
            in_exec,
            over_share,
            tables_late: false,
            outside,
            python: PythonParts::default(),
        }
    }

    /// Finds the modules of the frames of a sample.
    pub fn resolve(
        &mut self,
        raw: &RawSample,
        located: &Located,
        processes: &mut ProcessTable,
    ) -> Sample {
        let id = located.process;
        let mut frames = Vec::with_capacity(raw.kernel.len() + raw.user.len());
        frames.extend(kernel_frames(&raw.kernel));
        let kernel_frames = frames.len();
        let (mut ending, mut stopped_at) = match raw.ending {
            whole @ (Ending::Root | Ending::NoUserStack) => (whole, 0),
            cut => (cut, raw.stopped_at),
        };
        // Its known mappings are still those of the old program, whose stack is gone.
        let has_no_stack = raw.ending == Ending::ReadFault && raw.user.len() <= 1;
        let in_exec = located.in_exec || has_no_stack && self.exec.is_in(&raw.kernel);
        if in_exec {
            (ending, stopped_at) = (Ending::Exec, 0);
        }
        let mut over_share = located.over_share;
        let has_no_user_part = in_exec || located.outside;
        let user = if has_no_user_part {
            &[]
        } else {
            raw.user.as_slice()
        };
        for (index, frame) in user.iter().enumerate() {
            let address = frame.address_for_lookup();
            match located.mappings.find(address) {
                Some(mapping) => {
                    let module = match mapping.backing {
                        Backing::Module(module) => module,
                        Backing::Anonymous | Backing::Trampolines { .. } => {
                            let user = located.user;
                            processes.modules.anonymous(id, raw.tgid, user)
                        }
                    };
                    frames.push(Frame {
                        module,
                        address: mapping.offset_of(address),
                    });
                }
                None if index == 0 => {
                    over_share |= located.mappings.is_cut();
                    let module = processes.modules.unmapped(id);
                    frames.push(Frame { module, address });
                    (ending, stopped_at) = (Ending::NoMapping, address);
                    break;
                }
                // There is no code: what looked like a chain of frames was not one.
                None => {
                    let by_table = ending == Ending::NoMapping;
                    ending = if by_table {
                        ending
                    } else {
                        Ending::BrokenChain
                    };
                    stopped_at = frame.address();
                    break;
                }
            }
        }
        Sample {
            event: raw.event,
            weight: raw.weight,
            time_ns: raw.time_ns,
            cpu: raw.cpu,
            process: id,
            tid: raw.tid,
            comm: self.comm(&raw.comm),
            cgroup_id: raw.cgroup_id,
            frames,
            kernel_frames,
            over_share: over_share && !matches!(ending, Ending::Root | Ending::NoUserStack),
            tables_late: located.tables_late
                && matches!(
                    ending,
                    Ending::Root | Ending::NoFramePointer | Ending::BrokenChain
                ),
            outside: located.outside,
            ending,
            stopped_at,
            wait: raw.wait,
        }
    }

    fn comm(&mut self, bytes: &[u8; 16]) -> Arc<str> {
        if let Some(comm) = self.comms.get(bytes) {
            return comm.clone();
        }
        if self.comms.len() >= COMMS_MAX {
            self.comms.clear();
        }
        let comm: Arc<str> = sanitize(comm_bytes(bytes)).into();
        self.comms.insert(*bytes, comm.clone());
        comm
    }
}

/// The first address is where the CPU was; the others are return addresses.
fn kernel_frames(addresses: &[u64]) -> impl Iterator<Item = Frame> {
    addresses.iter().enumerate().map(|(index, address)| Frame {
        module: ModuleId::KERNEL,
        address: if index == 0 {
            *address
        } else {
            address.wrapping_sub(1)
        },
    })
}
