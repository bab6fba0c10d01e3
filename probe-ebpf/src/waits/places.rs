//! The table that says where in the array of threads each thread is kept.
//!
//! At each switch two threads are looked up, and one at each wake-up. The kernel's hash maps do
//! that by calls of helpers; here it is a few comparisons in one or two cache lines.
//!
//! The lower bits of a thread's number choose a *row* of sixteen words, and the number may stand in
//! any of them. The index of that word in the whole table is the thread's index in the array. The
//! kernel hands out numbers one after the other, so that rows fill evenly: where the largest number
//! is 32,768, there is room for every thread.
//!
//! The kernel side and user space both add threads:
//!
//! 1. A word that is [`FREE`] becomes [`BUSY`] in one step: whichever side did that has the place.
//! 2. The thread is written to the array.
//! 3. The word becomes its number, and the thread is found.
//!
//! Both may add the same thread at the same time. Then the first one in the row is found from
//! then on, and user space frees the others when it reads the rows.

use crate::atomic::{exchange_if, load};

/// Number of rows; a power of two.
pub const ROWS: usize = 2048;

/// Number of words in a row; a power of two.
pub const WAYS: usize = 16;

/// Maximum number of threads whose waits are followed, 272 bytes each.
pub const PLACES: usize = ROWS * WAYS;

/// The word of a free place. No thread has this number.
pub const FREE: u64 = 0;

/// The word of a place whose thread is still being written. No thread has this number either.
pub const BUSY: u64 = u64::MAX;

/// Returns the first place of a thread's row.
#[inline(always)]
pub const fn row_of(tid: u32) -> usize {
    (tid as usize & (ROWS - 1)) * WAYS
}

/// Returns which place of its row a thread has. Returns None if it is not in the row.
///
/// # Safety
///
/// `row` must be the first of [`WAYS`] words.
#[inline(always)]
pub unsafe fn find(row: *mut u64, tid: u32) -> Option<usize> {
    let mut way = 0;
    while way < WAYS {
        // SAFETY: inside of the row.
        if unsafe { load(row.add(way)) } == tid as u64 {
            return Some(way);
        }
        way += 1;
    }
    None
}

/// Claims a free place of a row. Returns None if there is none.
///
/// # Safety
///
/// As for [`find`].
#[inline(always)]
pub unsafe fn claim(row: *mut u64) -> Option<usize> {
    let mut way = 0;
    while way < WAYS {
        // SAFETY: inside of the row.
        let is_claimed =
            unsafe { load(row.add(way)) == FREE && exchange_if(row.add(way), FREE, BUSY) == FREE };
        if is_claimed {
            return Some(way);
        }
        way += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_one_after_the_other_fill_every_place() {
        let mut words = std::vec![FREE; PLACES];
        for tid in 1..=PLACES as u32 {
            let row = words[row_of(tid)..].as_mut_ptr();
            // SAFETY: a row of the table.
            let way = unsafe { claim(row) }.unwrap();
            words[row_of(tid) + way] = tid.into();
        }
        for tid in [1, 2, 2048, 2049, 32_767, 32_768] {
            // SAFETY: as above.
            let way = unsafe { find(words[row_of(tid)..].as_mut_ptr(), tid) };
            assert_eq!(words[row_of(tid) + way.unwrap()], tid.into());
        }
        // SAFETY: as above.
        unsafe {
            assert_eq!(find(words[row_of(40_000)..].as_mut_ptr(), 40_000), None);
            assert_eq!(claim(words[row_of(40_000)..].as_mut_ptr()), None);
        }
    }

    #[test]
    fn a_place_that_is_free_again_is_taken_again() {
        let mut row = [BUSY; WAYS];
        row[7] = FREE;
        // SAFETY: a whole row.
        unsafe {
            assert_eq!(claim(row.as_mut_ptr()), Some(7));
            assert_eq!(claim(row.as_mut_ptr()), None);
        }
        assert_eq!(row[7], BUSY);
    }

    #[test]
    fn two_that_claim_at_once_get_different_places() {
        let words = std::vec![FREE; WAYS].leak();
        let row = words.as_mut_ptr() as usize;
        let threads = (0..4).map(|_| {
            // SAFETY: words that are never freed, and only changed in single steps.
            std::thread::spawn(move || [(); 4].map(|()| unsafe { claim(row as *mut u64) }.unwrap()))
        });
        let threads: std::vec::Vec<_> = threads.collect();
        let mut ways: std::vec::Vec<_> = { threads.into_iter() }
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        ways.sort_unstable();
        assert!(ways.into_iter().eq(0..WAYS));
    }
}
