//! The engine connects a source of samples, the profile store, and the workers that find names. It
//! publishes snapshots; it draws nothing.
//!
//! It has two threads: the *sampler* reads from the source and never waits for anything else; the
//! *model* owns the store. Between them is a bounded channel: if the model is too slow, samples
//! wait in the kernel's ring buffer, and those that do not fit there are counted as lost.

#![warn(missing_docs)]

pub mod alike;
mod beat;
mod clock;
mod cost;
pub mod debuginfod;
mod governor;
mod host;
pub mod losses;
mod model;
mod naming;
pub mod probes;
pub mod process_end;
mod sampler;
mod settings;
pub mod snapshot;
mod sources;
mod stops;
mod users;
mod waking;

pub use governor::{Budget, Frugality};
pub use sampler::MakeSource;
pub use settings::{
    AwaitNames, Command, Consent, Counted, FirstProbes, LineReading, Rows, Schedule, Settings,
};
pub use symbolize::demangle::shown;
pub use symbolize::nearest::nearest;

use model::Model;
use probe::alarm::Alarm;
use probe::ask_kernel;
use probe::channel::{Sender, channel, sync_channel};
use probe::confine::{self, Duty};
use sampler::{Ends, Ready};
use snapshot::Snapshot;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use waking::Waking;

/// Maximum number of batches in the channel: less than a second of samples.
const BATCHES_MAX: usize = 16;

/// How long to wait for the threads to end. A thread that is still loading something, or waits for
/// a file, is left alone: it ends with the process, and the kernel detaches its programs.
const END_WAIT: Duration = Duration::from_millis(300);
const END_LOOK_EVERY: Duration = Duration::from_millis(2);

/// The machine we run on, all of its CPUs.
pub fn host() -> profile::Host {
    host::read(&[])
}

/// Sends commands to a running engine.
pub type Commands = Waking<Sender<Command>>;

/// A running engine. Dropping it stops sampling and detaches.
#[derive(Debug)]
pub struct Engine {
    stop: Arc<AtomicBool>,
    /// The alarms of both threads, which end their waits.
    alarms: [Arc<Alarm>; 2],
    commands: Commands,
    failure: Arc<Mutex<Option<String>>>,
    sampler: Option<JoinHandle<()>>,
    model: Option<JoinHandle<()>>,
}

impl Engine {
    /// Starts sampling. `ready` is called when the clocks tick and the first probes are in place,
    /// or have been refused; `publish` gets every snapshot, and returns whether it wants more.
    pub fn start(
        settings: Settings,
        make_source: MakeSource,
        ready: Box<dyn FnOnce() + Send>,
        publish: Box<dyn FnMut(Arc<Snapshot>) -> bool + Send>,
    ) -> std::io::Result<Self> {
        // Started first, because the other threads do not have the rights to query the kernel. An
        // error is ignored: functions of BPF programs then have no lines.
        _ = ask_kernel::start();
        let stop = Arc::new(AtomicBool::new(false));
        let failure = Arc::new(Mutex::new(None));
        let [for_sampler, for_model] = [Arc::new(Alarm::new()?), Arc::new(Alarm::new()?)];
        let (batches, received) = sync_channel(BATCHES_MAX);
        let (wishes, wanted) = channel();
        let (commands, ordered) = channel();
        let ends = Ends {
            news: Waking::new(batches, for_model.clone()),
            wishes: wanted,
            alarm: for_sampler.clone(),
            stop: stop.clone(),
            schedule: settings.schedule.clone(),
        };
        let wishes = Waking::new(wishes, for_sampler.clone());
        let commands = Waking::new(commands, for_model.clone());
        let ready = Ready::new(ready, !settings.probes.functions.is_empty());
        let sampler = thread::Builder::new()
            .name("sampler".into())
            .spawn(move || {
                confine::thread(Duty::Sampling);
                sampler::sample(make_source, ready, &ends);
            })?;
        let (flag, why) = (stop.clone(), failure.clone());
        let alarms = [for_sampler.clone(), for_model.clone()];
        let model = thread::Builder::new().name("model".into()).spawn(move || {
            confine::thread(Duty::Keeping);
            let mut model = Model::new(settings, wishes, publish);
            let run = faults::catch("keeping what was counted", || {
                model.run(&received, &ordered, &for_model, &flag);
            });
            let failed = run.err().map(|fault| fault.final_word());
            *why.lock().expect("nobody panics with it") = failed.or(model.failure());
            // The sampler must not wait for a receiver that is gone.
            flag.store(true, Ordering::Relaxed);
            for_sampler.ring();
        })?;
        Ok(Self {
            stop,
            alarms,
            commands,
            failure,
            sampler: Some(sampler),
            model: Some(model),
        })
    }
}

impl Engine {
    /// Returns the end by which commands are sent to it.
    pub fn commands(&self) -> &Commands {
        &self.commands
    }

    /// Stops sampling, detaches, and returns why it had stopped by itself, if it had.
    pub fn finish(mut self) -> Option<String> {
        self.stop_and_join();
        self.failure.lock().expect("nobody panics with it").take()
    }

    /// Signals both threads to end and waits for them, together at most [`END_WAIT`].
    fn stop_and_join(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.alarms.iter().for_each(|alarm| alarm.ring());
        let end = Instant::now() + END_WAIT;
        for thread in [self.sampler.take(), self.model.take()]
            .into_iter()
            .flatten()
        {
            while !thread.is_finished() && Instant::now() < end {
                thread::sleep(END_LOOK_EVERY);
            }
            if thread.is_finished() {
                // A thread that panicked has already reported that.
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop_and_join();
    }
}
