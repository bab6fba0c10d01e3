//! A piece of run-time code: where its runtime put it, and what the runtime says about it.

/// Maximum number of bytes that are read of one piece of code, whatever the source: hand-written
/// functions have a tenth of it.
pub(super) const BYTES_MAX: u64 = 1 << 20;

/// The runtime's name for a piece of its code: not safe to display.
pub type JitName = Vec<u8>;

/// The code of one function, as its runtime described it. Nothing in it is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JitCode {
    /// Name given by the runtime: not safe to display.
    pub name: JitName,
    /// Address of its first byte in the process.
    pub start: u64,
    /// Number of bytes.
    pub len: u64,
    /// The code as it was when it was made, at most 1 MiB of it. Only dumps have it; `None` for
    /// code of a map.
    pub bytes: Option<Vec<u8>>,
}
