//! Reads a ring that is written to meanwhile.
//!
//! Reading until there is nothing more may never end: on a slow machine records come faster than
//! they are read, and what has been read takes memory until it is handled.

use aya::maps::{MapData, RingBuf};

/// A ring of records.
pub trait Records {
    /// Passes the oldest record to `handle`, and frees its place. Returns its length, or `None` if
    /// there is none.
    fn read_next(&mut self, handle: &mut impl FnMut(&[u8])) -> Option<usize>;
}

impl Records for RingBuf<MapData> {
    fn read_next(&mut self, handle: &mut impl FnMut(&[u8])) -> Option<usize> {
        let record = self.next()?;
        handle(&record);
        Some(record.len())
    }
}

/// Reads everything that was in a ring of `ring_bytes` when this was called. Of what comes meanwhile
/// it reads no more than would have fitted in beside that, and the rest of one record. Returns whether
/// there may be more.
pub fn read_what_is_there(
    ring: &mut impl Records,
    ring_bytes: usize,
    mut handle: impl FnMut(&[u8]),
) -> bool {
    let mut read = 0;
    while read < ring_bytes {
        match ring.read_next(&mut handle) {
            Some(length) => read += length,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring to which records are added as fast as they are read.
    struct Refilled {
        records: Vec<Vec<u8>>,
        added: Option<usize>,
    }

    impl Records for Refilled {
        fn read_next(&mut self, handle: &mut impl FnMut(&[u8])) -> Option<usize> {
            let record = self.records.pop()?;
            handle(&record);
            if let Some(added) = self.added {
                self.records.insert(0, vec![1; added]);
            }
            Some(record.len())
        }
    }

    /// Reads a ring of 100 bytes that holds some records of ten bytes. Returns whether there may be
    /// more, and how many were read that were there, and that were added.
    fn read(records: usize, added: Option<usize>) -> (bool, usize, usize) {
        let mut ring = Refilled {
            records: vec![vec![0; 10]; records],
            added,
        };
        let (mut old, mut new) = (0, 0);
        let is_more = read_what_is_there(&mut ring, 100, |record| match record[0] {
            0 => old += 1,
            _ => new += 1,
        });
        (is_more, old, new)
    }

    #[test]
    fn reading_ends_when_there_is_nothing_more() {
        assert_eq!(read(9, None), (false, 9, 0));
    }

    #[test]
    fn a_ring_that_is_filled_as_fast_does_not_keep_its_reader() {
        // What was there is read in any case.
        assert_eq!(read(10, Some(10)), (true, 10, 0));
        assert_eq!(read(9, Some(1)), (true, 9, 10));
        assert_eq!(read(9, Some(60)), (true, 9, 1));
    }
}
