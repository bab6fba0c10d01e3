//! A piece of run-time code: where its runtime put it, and what it tells of it.

/// What is read of one piece of code, wherever it is from: what people write has a tenth.
pub(super) const BYTES_MAX: u64 = 1 << 20;

/// What a runtime calls a piece of its code: not safe to display.
pub type JitName = Vec<u8>;

/// The code of one function, as its runtime wrote it down. Everything in it is the
/// target's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JitCode {
    /// As the runtime calls it: not safe to display.
    pub name: JitName,
    /// The address of its first byte in the process.
    pub start: u64,
    /// Number of bytes.
    pub len: u64,
    /// The code as it was when it was made, 1 MiB of it at most. Only a dump has it; of a
    /// map it is `None`.
    pub bytes: Option<Vec<u8>>,
}
