//! Probes that are in place, and those that are being removed.

use super::attach::Link;
use super::changing;
use crate::confine::{self, Duty};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::thread;

/// A probe that is in place. The beginnings of calls are attached last.
#[derive(Default)]
pub struct Placed {
    /// The breakpoints, those at ends of calls first.
    pub links: Vec<Link>,
    /// The link to a tracepoint of the kernel.
    pub point: Option<OwnedFd>,
    /// Number of hits that the kernel had skipped before it was placed.
    pub missed_before: u64,
}

impl Drop for Placed {
    /// The beginnings are detached before the ends: then the end of every counted call is detected,
    /// if it ends by then.
    fn drop(&mut self) {
        while let Some(link) = self.links.pop() {
            match changing::begin() {
                Some(_alone) => drop(link),
                // The kernel closes it when the process has ended.
                None => std::mem::forget(link),
            }
        }
    }
}

/// Probes that are being removed, on a thread of their own: the kernel waits until no one runs
/// their code, which takes 20 to 100 ms for each breakpoint.
#[derive(Default)]
pub struct Leaving {
    numbers: Arc<Mutex<BTreeSet<u8>>>,
}

impl Leaving {
    /// Whether the probe with this number is still being removed, so that the number is not free.
    pub fn has(&self, number: u8) -> bool {
        let numbers = self.numbers.lock().expect("nobody panics with it");
        numbers.contains(&number)
    }

    /// Removes a probe. Returns at once, unless no thread can be started.
    pub fn take_away(&self, number: u8, placed: Placed) {
        let numbers = Arc::clone(&self.numbers);
        numbers
            .lock()
            .expect("nobody panics with it")
            .insert(number);
        let thread = thread::Builder::new().name("unprobe".into());
        // If no thread can be started, the probe is dropped here with the closure.
        let started = thread.spawn(move || {
            confine::thread(Duty::Waiting);
            drop(placed);
            numbers
                .lock()
                .expect("nobody panics with it")
                .remove(&number);
        });
        if started.is_err() {
            let mut numbers = self.numbers.lock().expect("nobody panics with it");
            numbers.remove(&number);
        }
    }
}
