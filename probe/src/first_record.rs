//! Has the first record in a BPF ring wake its reader, if something has to be read about it soon
//! ([`SampleHeader::is_urgent`](probe_ebpf::SampleHeader::is_urgent)).

use aya::maps::{Array, MapData};
use std::time::{Duration, Instant};

/// Records are rare if there was none for so long: then each of them may wake the reader.
const RARE: Duration = Duration::from_millis(300);

/// The setting of the BPF programs.
pub struct FirstRecord {
    map: Array<MapData, u32>,
    wakes: bool,
    /// When it was set, or since the last record.
    since: Instant,
}

impl FirstRecord {
    /// Takes the map of the programs. Records do not wake the reader until it is set.
    pub fn new(map: Array<MapData, u32>) -> Self {
        Self {
            map,
            wakes: false,
            since: Instant::now(),
        }
    }

    /// Whether the next record wakes the reader. Those that are there already have not.
    pub fn wakes(&self) -> bool {
        self.wakes
    }

    /// Sets whether the next record wakes the reader.
    pub fn set_waking(&mut self, wakes: bool) {
        self.since = Instant::now();
        // If this fails, all remains as it is: the ring is looked at as often as before, or the
        // reader is woken up more often than it has to be.
        if wakes != self.wakes && self.map.set(0, u32::from(wakes), 0).is_ok() {
            self.wakes = wakes;
        }
    }

    /// Notes that there is a record. The next one does not wake the reader if they come often.
    pub fn came(&mut self) {
        let is_rare = self.since.elapsed() >= RARE;
        self.set_waking(is_rare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alarm::is_readable;
    use crate::clocks::Clocks;
    use crate::events::Event;
    use crate::loader::{self, Settings};
    use crate::target::Target;
    use crate::time::now_ns;
    use crate::wakeup::Wakeup;
    use std::os::fd::{AsRawFd as _, BorrowedFd};

    /// Runs until this is true, or for ten seconds; returns whether it is.
    fn burn_until(mut is_so: impl FnMut() -> bool) -> bool {
        let begun = now_ns();
        while now_ns() - begun < 10_000_000_000 {
            if is_so() {
                return true;
            }
        }
        false
    }

    #[test]
    fn a_record_wakes_the_reader_only_if_it_was_asked_to() {
        let settings = Settings {
            ring_bytes: 1 << 24,
            ..Settings::FOR_TESTS
        };
        let mut loaded = match loader::load(&settings, &Target::default()) {
            Ok(loaded) => loaded,
            Err(error) => {
                test_support::skip(format_args!("no BPF programs here: {error}"));
                return;
            }
        };
        // SAFETY: the ring's descriptor is open as long as `loaded.samples` is there.
        let ring = unsafe { BorrowedFd::borrow_raw(loaded.samples.as_raw_fd()) };
        let wakeup = Wakeup::of(ring).unwrap();
        let tick = loaded.events.remove(&Event::Tick).unwrap();
        let _clocks = Clocks::start(tick, 999, None).unwrap();
        let mut first_record = FirstRecord::new(loaded.is_resting);
        for _ in 0..2 {
            assert!(burn_until(|| loaded.samples.next().is_some()));
            assert!(burn_until(|| loaded.samples.next().is_some()));
            assert!(!is_readable(&wakeup));
            first_record.set_waking(true);
            assert!(first_record.wakes());
            assert!(burn_until(|| is_readable(&wakeup)));
            first_record.set_waking(false);
            while loaded.samples.next().is_some() {}
            wakeup.clear();
        }
    }
}
