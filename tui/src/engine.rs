//! The engine joins the parts: a source of samples, the profile store, and the
//! workers that find names. It publishes snapshots and draws nothing.
//!
//! Two threads of its own: the *sampler* drains the source and never waits for
//! anything else; the *model* owns the store. Between them is a bounded channel:
//! when the model falls behind, samples wait in the kernel's ring, and what does
//! not fit there is counted as lost.

mod clock;
mod cost;
mod debuginfod;
mod host;
mod model;
mod naming;
mod sources;
mod stops;
mod users;

use crate::snapshot::{Snapshot, Span};
use model::Model;
pub use naming::shown;
use probe::{Batch, Source};
use profile::Limits;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often the source is drained. The ring holds seconds.
const DRAIN: Duration = Duration::from_millis(50);

/// Batches between the two threads: less than a second of them.
const BATCHES_MAX: usize = 16;

/// What the engine is to do.
#[derive(Debug, Clone)]
pub struct Settings {
    pub limits: Limits,
    pub schedule: Schedule,
    /// What is sampled, in words.
    pub scope: Arc<str>,
    /// The only CPUs that are; empty: all.
    pub cpus: Vec<u32>,
    pub rate_hz: u32,
}

/// When snapshots are made, and of which time.
#[derive(Debug, Clone)]
pub enum Schedule {
    /// Every `refresh`, of the last `window`.
    Live { window: Span, refresh: Duration },
    /// One for each `delay`, of just that time, up to `count` of them.
    Reports {
        delay: Duration,
        count: Option<u64>,
        names: AwaitNames,
    },
}

/// Which reports wait a moment for the names of their frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AwaitNames {
    Each,
    /// A recording's names may come later than their samples.
    Last,
}

/// What the engine can be told while it runs.
#[derive(Debug)]
pub enum Command {
    SetWindow(Span),
    /// Take so many samples per second of a busy CPU from now on.
    SetRate(u32),
    /// The started command has ended: in these words, at this time on the clock
    /// of the samples.
    TargetEnded {
        words: String,
        at_ns: u64,
    },
    /// Lines that it printed.
    Output(Vec<String>),
    /// Nobody wants to wait any longer: report what there is.
    Finish,
}

/// Makes the source, on the thread that will drain it. The error is the whole
/// sentence for the user.
pub type MakeSource = Box<dyn FnOnce() -> Result<Box<dyn Source>, String> + Send>;

/// A running engine. Dropping it stops sampling and detaches.
#[derive(Debug)]
pub struct Engine {
    stop: Arc<AtomicBool>,
    failure: Arc<Mutex<Option<String>>>,
    sampler: Option<JoinHandle<()>>,
    model: Option<JoinHandle<()>>,
}

impl Engine {
    /// Starts sampling. `ready` runs once the clocks tick, before the first
    /// batch; `publish` gets every snapshot, and says whether it wants more.
    pub fn start(
        settings: Settings,
        make_source: MakeSource,
        ready: Box<dyn FnOnce() + Send>,
        commands: Receiver<Command>,
        publish: Box<dyn FnMut(Arc<Snapshot>) -> bool + Send>,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let failure = Arc::new(Mutex::new(None));
        let (batches, received) = sync_channel(BATCHES_MAX);
        let (rates, wanted) = channel();
        let flag = stop.clone();
        let sampler = thread::Builder::new()
            .name("sampler".into())
            .spawn(move || sample(make_source, ready, &batches, &wanted, &flag))?;
        let (flag, why) = (stop.clone(), failure.clone());
        let model = thread::Builder::new().name("model".into()).spawn(move || {
            let mut model = Model::new(settings, rates, publish);
            model.run(&received, &commands, &flag);
            *why.lock().expect("nobody panics with it") = model.failure();
            // The sampler must not wait for a reader that is gone.
            flag.store(true, Ordering::Relaxed);
        })?;
        Ok(Self {
            stop,
            failure,
            sampler: Some(sampler),
            model: Some(model),
        })
    }
}

impl Engine {
    /// Stops, detaches, and says why it had stopped by itself, if it had.
    pub fn finish(mut self) -> Option<String> {
        self.stop_and_join();
        self.failure.lock().expect("nobody panics with it").take()
    }

    fn stop_and_join(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in [self.sampler.take(), self.model.take()]
            .into_iter()
            .flatten()
        {
            // A thread that panicked has said so already.
            let _ = thread.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop_and_join();
    }
}

/// What the sampler tells the model.
#[derive(Debug)]
enum News {
    /// From that moment on, on the clock of the samples.
    Started {
        info: probe::SourceInfo,
        at_ns: u64,
    },
    Batch(Box<Batch>),
    /// The rate is another since a moment, on the clock of the samples.
    Rate {
        info: probe::SourceInfo,
        from_ns: u64,
    },
    /// It could not be changed: a sentence.
    RateKept(String),
    Failed(String),
}

fn sample(
    make_source: MakeSource,
    ready: Box<dyn FnOnce() + Send>,
    news: &SyncSender<News>,
    rates: &Receiver<u32>,
    stop: &AtomicBool,
) {
    let mut source = match make_source() {
        Ok(source) => source,
        Err(sentence) => {
            // Nobody listens any more: then nobody wants to know.
            let _ = news.send(News::Failed(sentence));
            return;
        }
    };
    // Told from here: whoever hears it late would take the first samples for older
    // than the beginning.
    let started = News::Started {
        info: source.info(),
        at_ns: probe::now_ns(),
    };
    if news.send(started).is_err() {
        return;
    }
    ready();
    while !stop.load(Ordering::Relaxed) {
        // Of several the last is meant. Samples that are read from here on may still
        // be of before: their times tell.
        if let Some(hz) = rates.try_iter().last() {
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
        let next = match source.poll(DRAIN) {
            Ok(batch) => News::Batch(Box::new(batch)),
            Err(error) => News::Failed(error.to_string()),
        };
        let is_last = matches!(next, News::Failed(_));
        if news.send(next).is_err() || is_last {
            return;
        }
    }
}
