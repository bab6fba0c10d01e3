//! `open`: the screen on a recording, or on one that is still being made at the
//! other end of a pipe.
//!
//! A thread reads the file and publishes what has come so far. The screen opens
//! when it is known to be a recording: until then whoever writes into the pipe,
//! ssh for one, may have to ask something on this terminal.

use super::open_file::{Opened, Progress};
use super::{open_file, recorded, top};
use crate::cli::OpenConfig;
use crate::commands::input;
use crate::failure::{Exit, Failure};
use crate::run::ScreenOptions;
use crate::words::units;
use crate::{kept, plain, run, terminal};
use engine::snapshot::{Lacks, Metered, Snapshot, Span, TargetState};
use profile::{Cancel, Query, Store, View};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// A file that takes longer to read is watched while it does.
const OPENS_AFTER: Duration = Duration::from_millis(300);

/// What comes in is shown that often at most.
const SHOW_EVERY: Duration = Duration::from_millis(400);

/// Counting takes so small a part of the time that reading takes.
const COUNTING_PART: u32 = 4;

/// A file is read once for each metric, and kept: so many at most. The notes name all,
/// and `--metric` opens the file in any.
const METRICS_MAX: usize = 12;

pub fn run(config: &OpenConfig) -> Result<Exit, Failure> {
    if !config.look.plain {
        let name = config.file.to_string_lossy();
        top::check_terminal(&match config.is_demo {
            true => top::Remedies::Demo,
            false => top::Remedies::Recording(&name),
        })?;
    }
    let options = top::screen_options(&config.look, Span::All)?;
    let (publish, feed) = watch::channel(Arc::new(waiting(&config.file)));
    let (began, begins) = sync_channel(1);
    let (fail, failed) = oneshot::channel();
    let (path, is_demo) = (config.file.clone(), config.is_demo);
    let metric = config.metric.clone();
    thread::Builder::new()
        .name("reader".into())
        .spawn(move || {
            let mut reading = Reading::new(&path, publish, began);
            let read = faults::catch("reading the file", || match is_demo {
                true => reading.read_demo(),
                false => reading.read(metric.as_deref()),
            });
            let read = read.unwrap_or_else(|fault| Err(Failure::failed(fault.to_string())));
            if let Err(failure) = read {
                reading.fails(failure, fail);
            }
        })
        .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
    let patience = match input::is_stdin(&config.file) {
        true => Duration::MAX,
        false => OPENS_AFTER,
    };
    match begins.recv_timeout(patience) {
        Ok(Err(failure)) => return Err(failure),
        Ok(Ok(())) | Err(RecvTimeoutError::Timeout) => {}
        Err(RecvTimeoutError::Disconnected) => {
            return Err(Failure::failed("the thread that reads has ended"));
        }
    }
    top::runtime()?.block_on(screen(config, feed, failed, options))
}

async fn screen(
    config: &OpenConfig,
    feed: watch::Receiver<Arc<Snapshot>>,
    failed: oneshot::Receiver<Failure>,
    mut options: ScreenOptions,
) -> Result<Exit, Failure> {
    let target = format!("file {}", kept::name(&short_name(&config.file)));
    options.begin = top::begin(&config.look, &target);
    let began = options.begin;
    let last = feed.clone();
    // There is no engine to be asked for anything.
    let (control, _) = mpsc::unbounded_channel();
    let source = match input::is_stdin(&config.file) && !config.is_demo {
        true => plain::Source::StandardInput,
        false => plain::Source::File,
    };
    let screen = async {
        match config.look.plain {
            true => plain::run(feed, control, options, source).await,
            false => run::run(feed, control, options).await,
        }
    };
    let ended = tokio::select! {
        ended = screen => ended.map_err(|error| Failure::failed(format!("the screen failed: {error}")))?,
        Ok(failure) = failed => return Err(failure),
    };
    top::remember(&config.look, &target, began, ended.kept);
    say_goodbye(&last.borrow());
    Ok(match ended.exit {
        run::Exit::Signal(signal) => Exit::Signal(signal as u8),
        run::Exit::Quit | run::Exit::TerminalLost => Exit::Done,
    })
}

fn say_goodbye(last: &Snapshot) {
    let Some(recording) = &last.source.recording else {
        return;
    };
    if terminal::is_writable() {
        // The terminal may be gone as well.
        let _ = writeln!(
            std::io::stdout(),
            "proftop: {} in {}",
            units::counted(last.report.samples, "sample"),
            recording.name
        );
    }
}

/// The snapshot that is shown before anything is known of the file.
fn waiting(path: &Path) -> Snapshot {
    let view = Store::new(profile::Limits::default()).view();
    let recording = recorded::recording(&short_name(path), &view, Lacks::default(), None);
    let mut snapshot = Snapshot::default();
    snapshot.asked.window = Span::All;
    snapshot.run.target = TargetState::Running;
    snapshot.source.recording = Some(recording);
    snapshot
}

/// The last part of the path: the header has no room for more.
fn short_name(path: &Path) -> String {
    let last = path.file_name().map(Path::new).unwrap_or(path);
    input::name(last)
}

/// Tells the screen, or whoever waits for it to open, what became of reading.
struct Reading {
    path: Arc<Path>,
    publish: watch::Sender<Arc<Snapshot>>,
    began: Option<SyncSender<Result<(), Failure>>>,
    generation: u64,
    /// When the last part was asked for, and when parts were shown last.
    asked: Instant,
    shown: Instant,
    counting: Duration,
    metrics: Arc<[Metered]>,
}

impl Progress for Reading {
    fn begins(&mut self) {
        // A file is read at once, or else the screen opens by itself.
        if input::is_stdin(&self.path) {
            self.open_the_screen();
        }
        self.asked = Instant::now();
    }

    fn comes(&mut self, store: &Store) {
        // Who waited for this part wants to see it: the next may take as long.
        let waited = self.asked.elapsed() >= SHOW_EVERY / 2;
        let wait = SHOW_EVERY.max(self.counting * COUNTING_PART);
        if waited || self.shown.elapsed() >= wait {
            let began = Instant::now();
            self.show(&store.view(), &[], Lacks::default(), None);
            self.counting = began.elapsed();
            self.shown = Instant::now();
        }
        self.asked = Instant::now();
    }
}

impl Reading {
    fn new(
        path: &Path,
        publish: watch::Sender<Arc<Snapshot>>,
        began: SyncSender<Result<(), Failure>>,
    ) -> Self {
        Reading {
            path: path.into(),
            publish,
            began: Some(began),
            generation: 0,
            asked: Instant::now(),
            shown: Instant::now(),
            counting: Duration::ZERO,
            metrics: Arc::default(),
        }
    }

    fn read_demo(&mut self) -> Result<(), Failure> {
        let opened = open_file::open_demo(self)?;
        self.ends(&opened)
    }

    /// Reads the file, counted by that metric; the others follow when the screen is open.
    fn read(&mut self, metric: Option<&str>) -> Result<(), Failure> {
        let path = Arc::clone(&self.path);
        let opened = open_file::open_by_parts(&path, metric, self)?;
        self.metrics = metered(&opened).into();
        self.ends(&opened)?;
        if !input::is_stdin(&path) {
            self.count_others(&opened);
        }
        Ok(())
    }

    /// Reads the file once more for each of its other metrics. One by which it cannot be
    /// read is left out: it and those after it could not be chosen yet.
    fn count_others(&mut self, opened: &Opened) {
        let mut metrics = metered(opened);
        let mut next = 1;
        while let Some(metric) = metrics.get_mut(next) {
            metric.view = open_file::count_again(&self.path, opened, &metric.name);
            match metric.view {
                Some(_) => next += 1,
                None => _ = metrics.remove(next),
            }
            self.metrics = metrics.as_slice().into();
            let shown = self.publish.borrow().clone();
            self.generation += 1;
            self.publish.send_replace(Arc::new(Snapshot {
                generation: self.generation,
                metrics: Arc::clone(&self.metrics),
                ..(*shown).clone()
            }));
        }
    }

    fn fails(&mut self, failure: Failure, fail: oneshot::Sender<Failure>) {
        match self.began.take() {
            // Nobody waits any more: the screen is open.
            Some(began) if began.send(Err(failure.clone())).is_ok() => {}
            _ => self.breaks(failure, fail),
        }
    }

    fn open_the_screen(&mut self) {
        if let Some(began) = self.began.take() {
            // It opens by itself after a while.
            let _ = began.send(Ok(()));
        }
    }

    fn ends(&mut self, opened: &Opened) -> Result<(), Failure> {
        if opened.view.samples() == 0 {
            let name = input::name(&self.path);
            let failure = Failure::new(Exit::NoSamples, format!("{name} has no samples"));
            return Err(opened.notes.iter().fold(failure, Failure::detail));
        }
        let broken = opened.notes.first().filter(|_| opened.is_broken);
        self.show(
            &opened.view,
            &opened.notes,
            opened.lacks,
            Some(broken.map(String::as_str)),
        );
        self.open_the_screen();
        Ok(())
    }

    /// Tells what broke the reading; samples that are on the screen stay there.
    fn breaks(&mut self, failure: Failure, fail: oneshot::Sender<Failure>) {
        let shown = self.publish.borrow().clone();
        if shown.report.samples == 0 {
            let _ = fail.send(failure);
            return;
        }
        let mut broken = (*shown).clone();
        broken.run.target = TargetState::Failed(failure.message);
        self.publish.send_replace(Arc::new(broken));
    }

    /// `end`: all has come, and perhaps it is broken.
    fn show(&mut self, view: &View, notes: &[String], lacks: Lacks, end: Option<Option<&str>>) {
        let selection = view.select(&Query::default(), &Cancel::new());
        let selection = selection.expect("nobody cancels it");
        let recording =
            recorded::recording(&short_name(&self.path), view, lacks, end.unwrap_or(None));
        self.generation += 1;
        let is_over = end.is_some();
        self.publish.send_replace(Arc::new(Snapshot {
            generation: self.generation,
            metrics: Arc::clone(&self.metrics),
            ..recorded::snapshot(view, notes, recording, is_over, &selection)
        }));
    }
}

/// What a file counts, what it is shown in first and the others still to be read; nothing
/// where that is one thing.
fn metered(opened: &Opened) -> Vec<Metered> {
    let shown = &opened.view.info().metric.name;
    let others = { opened.metrics.iter() }.filter(|name| *name != shown);
    let mut metrics = vec![Metered {
        name: shown.as_str().into(),
        view: Some(opened.view.clone()),
    }];
    metrics.extend(others.take(METRICS_MAX - 1).map(|name| Metered {
        name: name.as_str().into(),
        view: None,
    }));
    match metrics.len() {
        1 => Vec::new(),
        _ => metrics,
    }
}

/// The recording that is built in, as the screen shows it when all is read.
#[cfg(test)]
pub fn demo_snapshot() -> Snapshot {
    struct Quiet;
    impl Progress for Quiet {}
    let Ok(opened) = open_file::open_demo(&mut Quiet) else {
        panic!("it is whole");
    };
    let selection = opened.view.select(&Query::default(), &Cancel::new());
    let selection = selection.expect("nobody cancels it");
    let recording = recorded::recording("demo.pft", &opened.view, opened.lacks, None);
    let (view, notes) = (&opened.view, &opened.notes);
    Snapshot {
        generation: 1,
        ..recorded::snapshot(view, notes, recording, true, &selection)
    }
}
