//! Files in which functions are searched for probes, in the process that reads them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::searched_file::SearchedFile;
use super::sites_order::SitesOrder;
use crate::Reason;
use crate::cache::Cache;
use crate::files::Reply;

/// Maximum memory of what was read of all files, except the one that was used last.
const BYTES_MAX: usize = 96 << 20;

/// What was read of the files that were used last, by their numbers.
#[derive(Debug)]
pub struct KeptSites {
    files: Cache<u64, Arc<SearchedFile>>,
    asked: Mutex<Instant>,
}

impl Default for KeptSites {
    fn default() -> KeptSites {
        KeptSites {
            files: Cache::with_bytes_max(BYTES_MAX),
            asked: Mutex::new(Instant::now()),
        }
    }
}

impl KeptSites {
    /// Answers a question about the file with that number.
    pub fn answer(&self, number: u64, order: SitesOrder) -> Result<Reply, Reason> {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let slot = self.files.slot(number);
        let file = slot.get_or_init(|| Arc::new(SearchedFile::new(order.file)));
        let bytes = file.answer(&order.question, order.places);
        self.files.trim(|file| file.heap_bytes());
        Ok(Reply {
            bytes: bytes?,
            file: None,
        })
    }

    /// Drops everything if there was no question for so long. Returns whether nothing is left to
    /// drop.
    pub fn forget_unused(&self, unused_for: Duration) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unused = asked.elapsed() >= unused_for;
        drop(asked);
        if is_unused {
            self.files.clear();
        }
        is_unused || self.files.values().is_empty()
    }
}
