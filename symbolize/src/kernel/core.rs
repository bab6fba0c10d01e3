//! `/proc/kcore`: the memory of the running kernel as a core file, from which code is read. It is
//! the code as it runs: alternatives and static branches are patched.
//!
//! Opening it takes root with `CAP_SYS_RAWIO`, and a kernel that is not locked down.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Size of the ELF file header; below that of one program header; elf(5).
const HEADER_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;

/// Maximum number of segments: a machine has one for each contiguous part of its memory.
const SEGMENTS_MAX: usize = 4_096;

/// Maximum size of one read; no function is longer.
const READ_MAX: u64 = 1 << 20;

/// The memory of the running kernel.
#[derive(Debug)]
pub struct KernelCore {
    file: File,
    segments: Vec<Segment>,
}

/// A contiguous part of memory, and its offset in the file.
#[derive(Debug, Clone, Copy)]
struct Segment {
    start: u64,
    len: u64,
    offset: u64,
}

impl KernelCore {
    /// Opens `/proc/kcore`.
    pub fn open() -> io::Result<KernelCore> {
        KernelCore::open_at(Path::new("/proc/kcore"))
    }

    /// Opens another file in the same format.
    pub fn open_at(path: &Path) -> io::Result<KernelCore> {
        let file = File::open(path)?;
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0)?;
        // 64 bits, little endian.
        if header[..6] != *b"\x7fELF\x02\x01" {
            return Err(invalid("it is no core file of 64 bits"));
        }
        let count = usize::from(u16::from_le_bytes([header[56], header[57]]));
        let size = usize::from(u16::from_le_bytes([header[54], header[55]]));
        if size != SEGMENT_BYTES {
            return Err(invalid("its segments have another form"));
        }
        let mut table = vec![0; count.min(SEGMENTS_MAX) * SEGMENT_BYTES];
        file.read_exact_at(&mut table, word(&header, 32))?;
        let segments = table.chunks_exact(SEGMENT_BYTES).filter_map(Segment::read);
        Ok(KernelCore {
            segments: segments.collect(),
            file,
        })
    }

    /// Reads bytes from an address on. Unmapped memory reads as zeros, which is returned as an
    /// error: no code is all zeros.
    pub fn read(&self, start: u64, len: u64) -> io::Result<Vec<u8>> {
        let found = self.segments.iter().find_map(|segment| {
            let within = start.checked_sub(segment.start)?;
            let left = segment.len.checked_sub(within).filter(|left| *left > 0)?;
            Some((segment.offset.checked_add(within)?, left))
        });
        let (offset, left) = found.ok_or_else(|| invalid("it does not have that address"))?;
        let mut bytes = vec![0; len.min(left).min(READ_MAX) as usize];
        self.file.read_exact_at(&mut bytes, offset)?;
        if bytes.iter().any(|byte| *byte != 0) {
            Ok(bytes)
        } else {
            Err(invalid("it has nothing at that address"))
        }
    }
}

impl Segment {
    /// Parses a program header; `None` for notes and empty segments.
    fn read(entry: &[u8]) -> Option<Segment> {
        const LOAD: [u8; 4] = 1_u32.to_le_bytes();
        let segment = Segment {
            offset: word(entry, 8),
            start: word(entry, 16),
            len: word(entry, 32),
        };
        (entry[..4] == LOAD && segment.len > 0).then_some(segment)
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes[at..at + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(word)
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// A core file with these parts of memory, for tests.
#[doc(hidden)]
pub fn made_up(memory: &[(u64, &[u8])]) -> Vec<u8> {
    let mut file = vec![0; HEADER_BYTES];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    file[32..40].copy_from_slice(&(HEADER_BYTES as u64).to_le_bytes());
    file[54..56].copy_from_slice(&(SEGMENT_BYTES as u16).to_le_bytes());
    file[56..58].copy_from_slice(&(memory.len() as u16 + 1).to_le_bytes());
    let mut offset = (HEADER_BYTES + (memory.len() + 1) * SEGMENT_BYTES) as u64;
    // The kernel's file begins with a note.
    let mut note = [0; SEGMENT_BYTES];
    note[0] = 4;
    file.extend(note);
    for (start, bytes) in memory {
        let mut entry = [0; SEGMENT_BYTES];
        entry[0] = 1;
        entry[8..16].copy_from_slice(&offset.to_le_bytes());
        entry[16..24].copy_from_slice(&start.to_le_bytes());
        entry[32..40].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        file.extend(entry);
        offset += bytes.len() as u64;
    }
    memory.iter().for_each(|(_, bytes)| file.extend(*bytes));
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::Scratch;

    const TEXT: u64 = 0xffff_ffff_8100_0000;

    fn open(bytes: &[u8]) -> io::Result<KernelCore> {
        let scratch = Scratch::new();
        KernelCore::open_at(&scratch.write("kcore", bytes))
    }

    #[test]
    fn code_is_read_by_its_address() {
        let code: Vec<u8> = (1..=200).collect();
        let core = open(&made_up(&[(TEXT - 0x1000, &[7; 16]), (TEXT, &code)])).unwrap();
        assert_eq!(core.read(TEXT + 3, 4).unwrap(), [4, 5, 6, 7]);
        // Nothing beyond the end of the segment is returned.
        assert_eq!(core.read(TEXT + 198, 10).unwrap(), [199, 200]);
        assert_eq!(core.read(TEXT - 0x1000, 2).unwrap(), [7, 7]);
        for nowhere in [TEXT + 200, TEXT - 1, 0, u64::MAX] {
            assert!(core.read(nowhere, 4).is_err(), "{nowhere:#x}");
        }
        let empty = open(&made_up(&[(TEXT, &[0; 64])])).unwrap();
        assert!(empty.read(TEXT, 16).is_err(), "zeros are no code");
    }

    #[test]
    fn files_of_another_form_are_refused() {
        let good = made_up(&[(TEXT, &[1; 64])]);
        for (at, byte) in [(0, 0), (4, 1), (5, 2), (54, 32)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert!(open(&bad).is_err(), "{at}");
        }
        // A file that is cut anywhere neither causes a panic nor gives missing bytes.
        for len in 0..good.len() {
            if let Ok(core) = open(&good[..len]) {
                assert!(core.read(TEXT, 64).is_err(), "{len}");
            }
        }
        let mut far = good.clone();
        far[HEADER_BYTES + SEGMENT_BYTES + 8..][..8].fill(0xff);
        assert!(open(&far).unwrap().read(TEXT + 1, 8).is_err());
    }
}
