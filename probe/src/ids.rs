//! Numbers of modules and processes, as used by everything after the probe. (A profile has numbers
//! of its own for both; for a live profile the engine maps these to them.)

/// A file or region that holds code, numbered in the order of first sight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

impl ModuleId {
    /// The kernel, its modules and BPF programs: one address space.
    pub const KERNEL: ModuleId = ModuleId(0);
}

/// One life of a process; a pid that is used again gets another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);
