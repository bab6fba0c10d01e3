//! Maps of generated code, in the process that reads them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::jit_order::{JitAnswer, JitQuestion};
use crate::demangle::shown;
use crate::files::Reply;
use crate::jit::maps::CodeMaps;

/// Maximum number of processes whose maps are kept; the least recently used ones are dropped and
/// read again on demand.
const PROCESSES_MAX: usize = 256;

/// The maps of processes, by the numbers assigned to them.
#[derive(Debug, Default)]
pub struct KeptMaps(Mutex<HashMap<u64, Kept>>);

#[derive(Debug)]
struct Kept {
    maps: CodeMaps,
    asked: Instant,
}

impl KeptMaps {
    /// Answers a question about the process with that number.
    pub fn answer(&self, number: u64, question: &JitQuestion) -> Reply {
        let mut all = self.lock();
        let kept = all.entry(number).or_insert_with(|| Kept {
            maps: CodeMaps::default(),
            asked: Instant::now(),
        });
        kept.asked = Instant::now();
        let maps = &mut kept.maps;
        maps.take([question.map.as_ref(), question.dump.as_ref()]);
        let is_new = question.how.reads_on && maps.update();
        let are_named = is_new || !question.how.only_if_new;
        let addresses = question.addresses.iter().filter(|_| are_named);
        let names = addresses.map(|address| Some(shown(&maps.find(*address)?)));
        let answer = JitAnswer {
            names: names.collect(),
            is_new,
            is_dump: maps.has_dump(),
            heap_bytes: maps.heap_bytes() as u64,
        };
        bound(&mut all);
        Reply {
            bytes: answer.write(),
            file: None,
        }
    }

    /// Drops maps that were not used for so long. Returns whether nothing is left to drop.
    pub fn forget_unused(&self, unused_for: Duration) -> bool {
        let mut all = self.lock();
        all.retain(|_, kept| kept.asked.elapsed() < unused_for);
        all.is_empty()
    }

    /// A panic while the lock is held would be a bug, after which this process ends.
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bound(all: &mut HashMap<u64, Kept>) {
    if all.len() > PROCESSES_MAX {
        let oldest = all.iter().min_by_key(|(_, kept)| kept.asked);
        if let Some(number) = oldest.map(|(number, _)| *number) {
            all.remove(&number);
        }
    }
}
