//! Decodes a record of the side band to an event. Pure functions that never panic.

use crate::bytes::{u16_at, u32_at, u64_at, until_zero};

/// A change of a process or thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When it happened, in nanoseconds on `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    pub what: What,
}

/// The kinds of changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A task got a name; with `exec` because of an exec.
    Comm {
        pid: u32,
        tid: u32,
        comm: Vec<u8>,
        exec: bool,
    },
    /// Executable memory was mapped.
    Map(Map),
    /// A process was started.
    Fork {
        /// The new process.
        pid: u32,
        /// The process that has started it.
        parent_pid: u32,
    },
    /// A thread has ended.
    Exit {
        /// The process of the thread.
        pid: u32,
        tid: u32,
    },
    /// Number of records that did not fit.
    Lost(u64),
}

impl What {
    /// Whether the event is of a process outside of our pid namespace. Such processes have no
    /// number here, so that they would all look like one.
    pub fn is_outside(&self) -> bool {
        match self {
            What::Comm { pid, .. } | What::Fork { pid, .. } | What::Exit { pid, .. } => *pid == 0,
            What::Map(map) => map.pid == 0,
            What::Lost(_) => false,
        }
    }
}

/// A new executable mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// The process that has mapped it.
    pub pid: u32,
    /// The first address.
    pub start: u64,
    /// Length in bytes.
    pub length: u64,
    /// Position in the file of the first byte.
    pub file_offset: u64,
    /// The path as the kernel reports it, or a name such as `[vdso]`.
    pub path: Vec<u8>,
    /// The identity of the file.
    pub identity: Identity,
}

/// The kernel's identification of the mapped file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// The inode number.
    pub inode: u64,
    /// Distinguishes files that had the same inode number one after the other; 0 if it is not
    /// reported.
    pub generation: u64,
}

// Values of `perf_event_header.type`.
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const MMAP2: u32 = 10;

const MISC_COMM_EXEC: u16 = 1 << 13;

const PROT_EXEC: u32 = 4;

/// `{ u32 pid, tid; u64 time; u32 cpu, reserved }` at the end of each record.
const TRAILER: usize = 24;
const TRAILER_TIME: usize = 8;

/// Decodes one record, including its header. `None` if it is irrelevant or malformed.
pub fn parse(bytes: &[u8]) -> Option<Event> {
    let kind = u32_at(bytes, 0)?;
    let misc = u16_at(bytes, 4)?;
    let body_end = bytes.len().checked_sub(TRAILER)?;
    let time_ns = u64_at(bytes, body_end + TRAILER_TIME)?;
    let body = bytes.get(8..body_end)?;
    let what = match kind {
        COMM => What::Comm {
            pid: u32_at(body, 0)?,
            tid: u32_at(body, 4)?,
            comm: until_zero(body.get(8..)?).to_vec(),
            exec: misc & MISC_COMM_EXEC != 0,
        },
        MMAP2 => What::Map(parse_map(body)?),
        FORK => {
            let (pid, parent_pid) = (u32_at(body, 0)?, u32_at(body, 4)?);
            if pid == parent_pid {
                return None; // A thread of a known process.
            }
            What::Fork { pid, parent_pid }
        }
        EXIT => What::Exit {
            pid: u32_at(body, 0)?,
            tid: u32_at(body, 8)?,
        },
        LOST => What::Lost(u64_at(body, 8)?),
        _ => return None,
    };
    Some(Event { time_ns, what })
}

/// `PERF_RECORD_MISC_MMAP_BUILD_ID` is ignored: proftop does not request it, but the kernel also
/// sets it if another program does.
fn parse_map(body: &[u8]) -> Option<Map> {
    if u32_at(body, 56)? & PROT_EXEC == 0 {
        return None;
    }
    Some(Map {
        pid: u32_at(body, 0)?,
        start: u64_at(body, 8)?,
        length: u64_at(body, 16)?,
        file_offset: u64_at(body, 24)?,
        path: until_zero(body.get(64..)?).to_vec(),
        identity: Identity {
            device: (u32_at(body, 32)?, u32_at(body, 36)?),
            inode: u64_at(body, 40)?,
            generation: u64_at(body, 48)?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(kind.to_le_bytes());
        bytes.extend(misc.to_le_bytes());
        bytes.extend(((8 + body.len() + TRAILER) as u16).to_le_bytes());
        bytes.extend(body);
        bytes.extend([7u32.to_le_bytes(), 8u32.to_le_bytes()].concat());
        bytes.extend(123_456u64.to_le_bytes());
        bytes.extend([0; 8]);
        bytes
    }

    fn words(values: &[u64]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    }

    fn map_body(identity: [u64; 3], protection: u32, path: &[u8]) -> Vec<u8> {
        let mut body = words(&[42 | 43 << 32, 0x1000, 0x2000, 0x3000]);
        body.extend(words(&identity));
        body.extend([protection.to_le_bytes(), 2u32.to_le_bytes()].concat());
        body.extend(path);
        body
    }

    #[test]
    fn an_exec() {
        let body = [
            words(&[42 | 42 << 32]),
            b"postgres\0\0\0\0\0\0\0\0".to_vec(),
        ]
        .concat();
        let event = parse(&record(COMM, MISC_COMM_EXEC, &body)).unwrap();
        assert_eq!(event.time_ns, 123_456);
        let what = What::Comm {
            pid: 42,
            tid: 42,
            comm: b"postgres".to_vec(),
            exec: true,
        };
        assert_eq!(event.what, what);
    }

    #[test]
    fn a_mapping_by_inode() {
        let body = map_body([8 | 1 << 32, 99, 7], 5, b"/lib/x.so\0\0\0\0\0\0\0");
        let Some(Event {
            what: What::Map(map),
            ..
        }) = parse(&record(MMAP2, 2, &body))
        else {
            panic!("no mapping");
        };
        assert_eq!(map.path, b"/lib/x.so");
        assert_eq!(
            (map.pid, map.start, map.length, map.file_offset),
            (42, 0x1000, 0x2000, 0x3000)
        );
        assert_eq!(
            map.identity,
            Identity {
                device: (8, 1),
                inode: 99,
                generation: 7
            }
        );
    }

    /// The record that the kernel writes if another program requests build-ids.
    #[test]
    fn a_mapping_with_a_flag_that_is_not_ours() {
        const MISC_BUILD_ID: u16 = 1 << 14;
        let body = map_body([8 | 1 << 32, 99, 7], 5, b"/lib/x.so\0\0\0\0\0\0\0");
        let plain = parse(&record(MMAP2, 2, &body));
        assert!(plain.is_some());
        assert_eq!(parse(&record(MMAP2, 2 | MISC_BUILD_ID, &body)), plain);
    }

    #[test]
    fn data_is_of_no_interest() {
        let body = map_body([0, 0, 0], 1, b"/lib/x.so\0\0\0\0\0\0\0");
        assert_eq!(parse(&record(MMAP2, 0, &body)), None);
    }

    #[test]
    fn a_new_thread_is_no_new_process() {
        let body = words(&[42 | 42 << 32, 50 | 42 << 32, 0]);
        assert_eq!(parse(&record(FORK, 0, &body)), None);
        let body = words(&[50 | 42 << 32, 50 | 42 << 32, 0]);
        let event = parse(&record(FORK, 0, &body)).unwrap();
        assert_eq!(
            event.what,
            What::Fork {
                pid: 50,
                parent_pid: 42
            }
        );
    }

    #[test]
    fn losses_are_counted() {
        let event = parse(&record(LOST, 0, &words(&[1, 17]))).unwrap();
        assert_eq!(event.what, What::Lost(17));
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0u32..12) {
            let _ = parse(&bytes);
            let _ = parse(&record(kind, u16::from_le_bytes([0, 0x60]), &bytes));
        }
    }
}
