//! The *sampler* thread: it owns the source of samples and never waits for names,
//! files or the store.

use probe::{Batch, Source};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

/// How often the source is drained. The ring holds seconds.
const DRAIN: Duration = Duration::from_millis(50);

/// Makes the source, on the thread that will drain it. The error is the whole
/// sentence for the user.
pub type MakeSource = Box<dyn FnOnce() -> Result<Box<dyn Source>, String> + Send>;

/// What the sampler tells the model.
#[derive(Debug)]
pub enum News {
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

/// Runs the sampler thread: makes the source, drains it until `stop` is set or the
/// source fails, and sends what came to the model.
pub fn sample(
    make_source: MakeSource,
    ready: Box<dyn FnOnce() + Send>,
    news: &SyncSender<News>,
    rates: &Receiver<u32>,
    stop: &AtomicBool,
) {
    let mut source = match make_source() {
        Ok(source) => source,
        Err(sentence) => {
            // The model has ended; then the failure is of no use.
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
