//! Reads the memory of a process, and the reasons why Python's frames cannot be read.

use super::Version;
use crate::Reason;
use crate::wire::Taken;

/// The memory of a process.
pub trait Memory {
    /// Reads this many bytes from an address on, all of them or none.
    fn read(&self, address: u64, length: u32) -> Result<Vec<u8>, Reason>;

    /// Announces pieces that will be read soon, as first address and length, so that all can be
    /// read at once.
    fn announce(&self, ranges: &[(u64, u32)]) {
        _ = ranges;
    }
}

impl<F: Fn(u64, u32) -> Result<Vec<u8>, Reason>> Memory for F {
    fn read(&self, address: u64, length: u32) -> Result<Vec<u8>, Reason> {
        self(address, length)
    }
}

/// Why the Python frames or names of a process cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Lack {
    /// A CPython version whose structures are unknown.
    #[error("the structures of Python {0} are not known")]
    UnknownVersion(Version),
    /// A build without the global lock, which stores its frames differently.
    #[error("free-threaded builds of Python are not supported")]
    FreeThreaded,
    /// Memory has impossible contents; the text says what.
    #[error("what is in its memory does not look like {0}")]
    Implausible(&'static str),
    /// Memory could not be read.
    #[error("its memory cannot be read")]
    Unreadable(Reason),
}

/// Everything that memory can fail to look like, for [`Lack::write`].
const EXPECTED: [&str; 9] = [
    "a structure of Python",
    "a pointer",
    "a string",
    "a table of lines",
    "a dictionary",
    "an object that is in use",
    "a thread of the module threading",
    "the offsets of its version",
    "threads of Python",
];

const UNKNOWN_VERSION: u8 = 0;
const FREE_THREADED: u8 = 1;
const IMPLAUSIBLE: u8 = 2;
const UNREADABLE: u8 = 3;

impl Lack {
    /// Encodes it for another process.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Lack::UnknownVersion(Version { major, minor }) => {
                out.extend([UNKNOWN_VERSION, major, minor]);
            }
            Lack::FreeThreaded => out.push(FREE_THREADED),
            Lack::Implausible(expected) => {
                let number = EXPECTED.iter().position(|known| *known == expected);
                debug_assert!(number.is_some(), "{expected} is not in the list");
                out.extend([IMPLAUSIBLE, number.unwrap_or_default() as u8]);
            }
            Lack::Unreadable(reason) => out.extend([UNREADABLE, reason as u8]),
        }
    }

    /// Decodes the result of [`Lack::write`]; `None` if it is malformed.
    pub(crate) fn take(bytes: &mut Taken<'_>) -> Option<Lack> {
        Some(match bytes.u8()? {
            UNKNOWN_VERSION => Lack::UnknownVersion(Version::take(bytes)?),
            FREE_THREADED => Lack::FreeThreaded,
            IMPLAUSIBLE => Lack::Implausible(EXPECTED.get(usize::from(bytes.u8()?))?),
            UNREADABLE => Lack::Unreadable(*Reason::ALL.get(usize::from(bytes.u8()?))?),
            _ => return None,
        })
    }
}

impl From<Reason> for Lack {
    fn from(reason: Reason) -> Self {
        Lack::Unreadable(reason)
    }
}

/// Whether an object is in use, by its reference count. In a freed object the count is overwritten
/// by a pointer of the allocator, or is 0.
pub(super) fn is_alive(object: &[u8]) -> bool {
    // The largest count, `_Py_IMMORTAL_REFCNT`, is `UINT_MAX`. From 3.14 on the highest 16 bits are
    // flags, which no pointer has.
    const COUNT: u64 = (1 << 48) - 1;
    let count = word(object, 0).map(|word| word & COUNT);
    count.is_ok_and(|count| (1..=u32::MAX.into()).contains(&count))
}

/// Returns the word at an offset of bytes that were read; an error if they are too short.
pub(super) fn word(bytes: &[u8], at: u32) -> Result<u64, Lack> {
    let field = bytes
        .get(at as usize..)
        .and_then(|rest| rest.first_chunk())
        .ok_or(Lack::Implausible("a structure of Python"))?;
    Ok(u64::from_le_bytes(*field))
}

/// Returns the 32-bit number at an offset of bytes that were read.
pub(super) fn half(bytes: &[u8], at: u32) -> Result<u32, Lack> {
    let field = bytes
        .get(at as usize..)
        .and_then(|rest| rest.first_chunk())
        .ok_or(Lack::Implausible("a structure of Python"))?;
    Ok(u32::from_le_bytes(*field))
}

/// Returns a pointer, which has to be in user space.
pub(super) fn pointer(bytes: &[u8], at: u32) -> Result<u64, Lack> {
    let address = word(bytes, at)?;
    match address {
        0x1000..0x0080_0000_0000_0000 => Ok(address),
        _ => Err(Lack::Implausible("a pointer")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lack_arrives_as_it_was() {
        let version = Version {
            major: 3,
            minor: 99,
        };
        let mut all = vec![Lack::UnknownVersion(version), Lack::FreeThreaded];
        all.extend(EXPECTED.map(Lack::Implausible));
        all.extend(Reason::ALL.map(Lack::Unreadable));
        for lack in all {
            let mut bytes = Vec::new();
            lack.write(&mut bytes);
            assert_eq!(Lack::take(&mut Taken(&bytes)), Some(lack));
            assert_eq!(Lack::take(&mut Taken(&bytes[..bytes.len() - 1])), None);
        }
        assert_eq!(Lack::take(&mut Taken(&[IMPLAUSIBLE, u8::MAX])), None);
        assert_eq!(Lack::take(&mut Taken(&[UNREADABLE, u8::MAX])), None);
    }
}
