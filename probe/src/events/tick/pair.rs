//! The two clocks of a CPU, or of a thread on a CPU, and their rhythm.

use super::rhythm::Rhythm;
use crate::perf_event::PerfEvent;
use crate::time::now_ns;
use std::io;

/// Two clocks whose frequencies add up to one rate. Closing them detaches them.
#[derive(Debug)]
pub struct Pair {
    clocks: [PerfEvent; 2],
    rhythm: Rhythm,
}

impl Pair {
    /// Opens both clocks with `open`, which gets their periods in nanoseconds. They do not tick
    /// yet.
    pub fn open(rate_hz: u32, open: impl Fn(u64) -> io::Result<PerfEvent>) -> io::Result<Self> {
        let rhythm = Rhythm::new(rate_hz);
        let [first, second] = rhythm.periods();
        Ok(Self {
            clocks: [open(first)?, open(second)?],
            rhythm,
        })
    }

    /// Both clocks. If they share a ring, it belongs to the first one.
    pub fn clocks(&self) -> &[PerfEvent; 2] {
        &self.clocks
    }

    /// Lets both clocks tick.
    pub fn enable(&mut self) -> io::Result<()> {
        let began_ns = self.each(|clock, _| clock.enable())?;
        self.rhythm.begin(began_ns);
        Ok(())
    }

    /// Stops both clocks.
    pub fn disable(&self) -> io::Result<()> {
        self.clocks.iter().try_for_each(PerfEvent::disable)
    }

    /// Continues with other periods, for about `next_ns`.
    pub fn turn(&mut self, next_ns: u64) -> io::Result<()> {
        let periods = self.rhythm.next_periods(now_ns(), next_ns);
        let began_ns = self.each(|clock, index| clock.set_period(periods[index]))?;
        self.rhythm.turn(periods, began_ns);
        Ok(())
    }

    /// Changes the rate from now on.
    pub fn set_rate(&mut self, rate_hz: u32) -> io::Result<()> {
        self.rhythm.set_rate(rate_hz);
        let periods = self.rhythm.periods();
        let began_ns = self.each(|clock, index| clock.set_period(periods[index]))?;
        self.rhythm.begin(began_ns);
        Ok(())
    }

    /// Calls `change` for each clock, with its number; returns the times at which that was done.
    fn each(&self, change: impl Fn(&PerfEvent, usize) -> io::Result<()>) -> io::Result<[u64; 2]> {
        let mut done_ns = [0; 2];
        for (index, clock) in self.clocks.iter().enumerate() {
            change(clock, index)?;
            done_ns[index] = now_ns();
        }
        Ok(done_ns)
    }
}
