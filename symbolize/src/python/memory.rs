//! Reading the memory of a process, and why Python's frames cannot be had of it.

use crate::files::Request;
use crate::{Files, Reason};

/// The memory of a process.
pub trait Memory {
    /// Reads this many bytes from an address on, all of them or none.
    fn read(&self, address: u64, length: u32) -> Result<Vec<u8>, Reason>;

    /// Takes note of what will be read soon, first address and length of each piece, to read
    /// all of it at once.
    fn announce(&self, ranges: &[(u64, u32)]) {
        _ = ranges;
    }
}

impl<F: Fn(u64, u32) -> Result<Vec<u8>, Reason>> Memory for F {
    fn read(&self, address: u64, length: u32) -> Result<Vec<u8>, Reason> {
        self(address, length)
    }
}

/// The memory of a process, read by whoever may wait for it.
pub fn memory_of(pid: u32, way: &Files) -> impl Memory + '_ {
    move |start: u64, len: u32| {
        let reply = way.perform(&Request::Memory { pid, start, len })?;
        if reply.bytes.len() == len as usize {
            Ok(reply.bytes)
        } else {
            Err(Reason::Refused)
        }
    }
}

/// Why Python's frames or names cannot be had of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Lack {
    /// A version of CPython whose structures are not known here.
    #[error("the structures of Python {0} are not known")]
    UnknownVersion(super::Version),
    /// A build without the global lock, which keeps its frames otherwise.
    #[error("free-threaded builds of Python are not supported")]
    FreeThreaded,
    /// What is in memory cannot be what it should be.
    #[error("what is in its memory does not look like {0}")]
    Implausible(&'static str),
    /// Memory could not be read.
    #[error("its memory cannot be read")]
    Unreadable(Reason),
}

impl From<Reason> for Lack {
    fn from(reason: Reason) -> Self {
        Lack::Unreadable(reason)
    }
}

/// Whether an object is in use, by its count of references. That of one that was freed is
/// overwritten by a pointer of the allocator's, or 0.
pub(super) fn is_alive(object: &[u8]) -> bool {
    // `_Py_IMMORTAL_REFCNT`, the largest, is `UINT_MAX`. From 3.14 on the highest 16 bits are
    // flags, which are no part of a pointer.
    const COUNT: u64 = (1 << 48) - 1;
    let count = word(object, 0).map(|word| word & COUNT);
    count.is_ok_and(|count| (1..=u32::MAX.into()).contains(&count))
}

/// The word at a place of bytes that were read; an error if they are too short.
pub(super) fn word(bytes: &[u8], at: u32) -> Result<u64, Lack> {
    let field = bytes
        .get(at as usize..)
        .and_then(|rest| rest.first_chunk())
        .ok_or(Lack::Implausible("a structure of Python"))?;
    Ok(u64::from_le_bytes(*field))
}

/// The 32 bits at a place of bytes that were read.
pub(super) fn half(bytes: &[u8], at: u32) -> Result<u32, Lack> {
    let field = bytes
        .get(at as usize..)
        .and_then(|rest| rest.first_chunk())
        .ok_or(Lack::Implausible("a structure of Python"))?;
    Ok(u32::from_le_bytes(*field))
}

/// A pointer to somewhere in user space.
pub(super) fn pointer(bytes: &[u8], at: u32) -> Result<u64, Lack> {
    let address = word(bytes, at)?;
    match address {
        0x1000..0x0080_0000_0000_0000 => Ok(address),
        _ => Err(Lack::Implausible("a pointer")),
    }
}
