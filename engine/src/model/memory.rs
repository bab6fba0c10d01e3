//! Keeps proftop within its memory limit (`--mem`): samples get what everything else leaves.

use super::workers::Workers;
use probe::memory::room::Room;
use profile::{OwnMemory, Store};

/// Samples may use at least this fraction (1/n) of the limit, whatever the other parts use.
const SAMPLES_PART: u64 = 4;

/// The current memory use by part.
pub fn by_part(store: &Store, workers: &Workers) -> OwnMemory {
    OwnMemory {
        samples: store.memory_bytes() as u64,
        symbols: workers.symbolizer().heap_bytes() as u64,
        helpers: probe::files::memory_bytes(),
    }
}

/// Limits the store so that samples together with symbols, tables, reports and parser processes use
/// at most `bytes_max`. Memory that is mapped from files or shared with the kernel does not count:
/// it does not grow, or has limits of its own.
pub fn bound(store: &mut Store, parts: &OwnMemory, bytes_max: usize) {
    let own = probe::memory::own_bytes_of(std::process::id());
    let others = (own + parts.helpers).saturating_sub(parts.samples);
    store.set_memory_bytes_max(left(bytes_max as u64, others) as usize);
}

/// The note of a run in a control group with little memory; `None` if it has enough.
pub fn note(room: Room) -> Option<String> {
    let megabytes = room.group_bytes()? >> 20;
    let lines = if room.has_lines() {
        ""
    } else {
        ", and there are no lines of source text and no inlined functions"
    };
    Some(format!(
        "this control group may take {megabytes} MB of memory: there is less room for samples, names \
         and unwind tables, so some stacks may be cut and some samples leave sooner{lines}"
    ))
}

/// What `others` leave of the limit.
fn left(bytes_max: u64, others: u64) -> u64 {
    let least = bytes_max / SAMPLES_PART;
    bytes_max.saturating_sub(others).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_what_all_else_leaves_and_a_quarter_at_least() {
        assert_eq!(left(256, 0), 256);
        assert_eq!(left(256, 100), 156);
        assert_eq!(left(256, 200), 64);
        assert_eq!(left(256, 1000), 64);
    }
}
