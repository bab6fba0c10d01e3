//! The numbers by which everything after the probe knows modules and processes. (A
//! profile has numbers of its own for both: of a live one the engine gives it these.)

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
