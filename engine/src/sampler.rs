//! The *sampler* thread: it owns the source of samples and never waits for names, files or the
//! store.

use crate::beat::Beat;
use crate::probes::Message;
use crate::settings::Schedule;
use crate::waking::Waking;
use faults::Patience;
use probe::alarm::Alarm;
use probe::channel::{Receiver, Sender, SyncSender};
use probe::{Batch, Source};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Creates the source, on the thread that will read it. The error is the whole sentence for the
/// user.
pub type MakeSource = Box<dyn FnOnce() -> Result<Box<dyn Source>, String> + Send>;

/// Requests to the sampler.
pub enum Wish {
    /// Sample at another rate.
    Rate(u32),
    /// Count waits as well.
    Waits,
    /// Send the probes of the source to the thread that owns probes.
    Calls(Sender<Message>),
    /// The first probes are in place, or have been refused: the command may run.
    Ready,
    /// Read the source now.
    Read,
}

/// Sends requests to the sampler.
pub type Wishes = Waking<Sender<Wish>>;

/// Maximum time that a command is held back until the first probes are in place.
const HELD_MAX: Duration = Duration::from_secs(10);

/// A function that is called once everything is attached.
pub struct Ready {
    run: Option<Box<dyn FnOnce() + Send>>,
    /// Until when it waits for probes; `None`: it does not wait.
    held_until: Option<Instant>,
}

impl Ready {
    /// Wraps the function. With `has_probes` it is called only when the first probes are in place,
    /// or after ten seconds.
    pub fn new(run: Box<dyn FnOnce() + Send>, has_probes: bool) -> Self {
        Self {
            run: Some(run),
            held_until: has_probes.then(|| Instant::now() + HELD_MAX),
        }
    }

    /// Calls the function, if that was not done and nothing has to be waited for.
    fn run_if_due(&mut self) {
        let is_held = self.held_until.is_some_and(|until| Instant::now() < until);
        if let Some(run) = self.run.take_if(|_| !is_held) {
            run();
        }
    }
}

/// Messages of the sampler to the model.
#[derive(Debug)]
pub enum News {
    /// Sampling has started.
    Started {
        info: probe::SourceInfo,
        /// When it began, on the clock of the samples.
        at_ns: u64,
    },
    /// The samples and events since the last batch.
    Batch(Box<Batch>),
    /// The rate has changed, at that time on the clock of the samples.
    Rate {
        info: probe::SourceInfo,
        from_ns: u64,
    },
    /// The rate could not be changed: a sentence.
    RateKept(String),
    /// The description of the source has changed: something turned out to be unavailable.
    Noted(probe::SourceInfo),
    /// Waits are counted from that time on, on the clock of the samples.
    Waits {
        info: probe::SourceInfo,
        since_ns: u64,
    },
    /// Waits cannot be counted: a sentence.
    WaitsRefused(String),
    /// The source could not be started, or has failed: a sentence. It is the last message.
    Failed(String),
}

/// What the sampler thread is connected with.
pub struct Ends {
    /// Leads to the model.
    pub news: Waking<SyncSender<News>>,
    /// Requests of the model.
    pub wishes: Receiver<Wish>,
    /// Rings when there is a request, or `stop` was set.
    pub alarm: Arc<Alarm>,
    /// Set at the end of the run.
    pub stop: Arc<AtomicBool>,
    /// When reports are made.
    pub schedule: Schedule,
}

/// Runs the sampler thread: creates the source, reads it until `stop` is set or the source fails,
/// and sends the results to the model.
pub fn sample(make_source: MakeSource, mut ready: Ready, ends: &Ends) {
    let Ends { news, wishes, .. } = ends;
    let made = faults::catch("starting to sample", make_source);
    let mut source = match made.unwrap_or_else(|fault| Err(fault.final_word())) {
        Ok(source) => source,
        Err(sentence) => {
            // If the model has ended, the failure is of no interest.
            let _ = news.send(News::Failed(sentence));
            return;
        }
    };
    source.wake_by(Arc::clone(&ends.alarm));
    // Determined here: a later time would make the first samples look older than the beginning.
    let at_ns = probe::now_ns();
    let beat = Beat::new(&ends.schedule, at_ns);
    let started = News::Started {
        info: source.info(),
        at_ns,
    };
    if news.send(started).is_err() {
        return;
    }
    let mut patience = Patience::default();
    while !ends.stop.load(Ordering::Relaxed) {
        ready.run_if_due();
        let mut rate = None;
        let mut wants_waits = false;
        let mut is_hurried = false;
        for wish in wishes.try_iter() {
            match wish {
                // Of several requests the last one counts.
                Wish::Rate(hz) => rate = Some(hz),
                Wish::Waits => wants_waits = true,
                // If the run is ending, there is no receiver.
                Wish::Calls(keeper) => {
                    let notes = source.info().notes.len();
                    let calls = source.calls().map(Box::new);
                    _ = keeper.send(Message::Calls(calls));
                    let info = source.info();
                    if info.notes.len() > notes && news.send(News::Noted(info)).is_err() {
                        return;
                    }
                }
                Wish::Ready => ready.held_until = None,
                Wish::Read => is_hurried = true,
            }
        }
        // Samples that are read from here on may still have been taken before: their times tell.
        if let Some(hz) = rate {
            let changed = match source.set_rate(hz) {
                Ok(from_ns) => News::Rate {
                    info: source.info(),
                    from_ns,
                },
                Err(error) => News::RateKept(error.to_string()),
            };
            if news.send(changed).is_err() {
                return;
            }
        }
        if wants_waits {
            let counted = faults::catch("following waits", || source.count_waits());
            let told = match counted.unwrap_or_else(|fault| Err(fault.to_string())) {
                Ok(since_ns) => News::Waits {
                    info: source.info(),
                    since_ns,
                },
                Err(sentence) => News::WaitsRefused(sentence),
            };
            if news.send(told).is_err() {
                return;
            }
        }
        // What was read in a turn before a panic is lost; the ring and the lists of processes are
        // not affected.
        let wait = if is_hurried {
            Duration::ZERO
        } else {
            beat.wait(probe::now_ns())
        };
        let polled = faults::catch("taking samples", || source.poll(wait));
        let next = match patience.take(polled) {
            Ok(Some(Ok(batch))) => News::Batch(Box::new(batch)),
            Ok(None) => continue,
            Ok(Some(Err(error))) => News::Failed(error.to_string()),
            Err(fault) => News::Failed(format!("sampling has ended: {}", fault.repeated())),
        };
        let is_last = matches!(next, News::Failed(_));
        if news.send(next).is_err() || is_last {
            return;
        }
    }
}
