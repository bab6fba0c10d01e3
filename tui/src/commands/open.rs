//! `open`: the screen for a recording, for one that is still being made at the other end of a
//! pipe, or for what proftop-fleet fetches.
//!
//! A thread reads the file and publishes the part that it has read. The screen opens as soon as the
//! first bytes show that it is a recording. Before that, the program that writes to the pipe may
//! need the terminal, as ssh does to ask for a password.

use super::fleet::{Ending, Fetched, Fetching};
use super::input::{self, Input};
use super::open_file::{Opened, Progress};
use super::resolve::Places;
use super::{open_file, recorded, top};
use crate::cli::{Look, OpenConfig, RecordingSource};
use crate::failure::{Exit, Failure};
use crate::run::ScreenOptions;
use crate::view_id::ViewId;
use crate::words::metric;
use crate::{kept, plain, run, terminal};
use engine::snapshot::{Lacks, Metered, Snapshot, Span, TargetState};
use probe::channel::{RecvTimeoutError, SyncSender, sync_channel};
use probe::confine::{self, Duty};
use probe::files::Opening;
use profile::formats::FormatError;
use profile::{Cancel, Query, Store, View};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// If reading a file takes longer than this, the screen opens and shows the part that was read so
/// far.
const OPENS_AFTER: Duration = Duration::from_millis(300);

/// The minimum time between two updates of the screen while a file is read.
const SHOW_EVERY: Duration = Duration::from_millis(400);

/// Maximum number of metrics between which the user can switch on the screen: each is read and kept
/// separately. The notes name all metrics, and `--metric` opens the file with any of them.
const METRICS_MAX: usize = 12;

/// The name of the built-in recording.
const DEMO: &str = "demo.pft";

/// Runs `open` and `demo`: shows a recording on the screen, or in the dialog of `--plain`.
pub fn run(config: &OpenConfig) -> Result<Exit, Failure> {
    let source = &config.source;
    // The path is checked before the terminal: advice on terminals does not help if the name is
    // mistyped.
    if let RecordingSource::File(path) = source {
        input::check_is_there(path)?;
    }
    if !config.look.plain {
        let name = match source {
            RecordingSource::File(path) => path.to_string_lossy(),
            RecordingSource::BuiltIn | RecordingSource::Fleet(_) => "".into(),
        };
        top::check_terminal(&match source {
            RecordingSource::File(_) => top::Remedies::Recording(&name),
            RecordingSource::BuiltIn => top::Remedies::Demo,
            RecordingSource::Fleet(_) => top::Remedies::Fleet,
        })?;
    }
    let span = match config.last {
        Some(time) => Span::Seconds(u32::try_from(time.as_secs()).unwrap_or(u32::MAX)),
        None => Span::All,
    };
    // Files that the user may not open are opened before our own rights are given up, and read after
    // that.
    let places = Places::of_this_machine();
    let baseline = top::open_baseline(&config.look)?;
    let file = match source {
        RecordingSource::File(path) => Some((Input::open(path)?, path.clone())),
        RecordingSource::BuiltIn | RecordingSource::Fleet(_) => None,
    };
    super::become_user(Opening::LikeUser)?;
    let options = top::screen_options(&config.look, baseline, span)?;
    // Dropping this ends proftop-fleet, however this function returns.
    let (_fetching, recording) = recording_of(source, file)?;
    let (publish, feed) = watch::channel(Arc::new(waiting(source)));
    // What is sent is taken by this thread, or comes back if this thread no longer waits for it.
    let (began, begins) = sync_channel(0);
    let (fail, failed) = oneshot::channel();
    let mut reading = Reading::new(source.clone(), publish, began);
    let metric = config.metric.clone();
    thread::Builder::new()
        .name("reader".into())
        .spawn(move || {
            confine::thread(Duty::Parsing);
            let read = faults::catch("reading the file", || {
                reading.read(recording, metric.as_deref(), &places)
            })
            .unwrap_or_else(|fault| Err(Failure::failed(fault.final_word())));
            if let Err(failure) = read {
                reading.fails(failure, fail);
            }
        })
        .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
    // The program at the other end of a pipe may take any time, for a password for example. The
    // terminal is not touched until it has sent the first bytes.
    let patience = if is_stdin(source) {
        Duration::MAX
    } else {
        OPENS_AFTER
    };
    let beginning = begins.recv_timeout(patience);
    // A failure from now on goes to the screen.
    drop(begins);
    match beginning {
        Ok(Err(failure)) => return Err(failure),
        Ok(Ok(())) | Err(RecvTimeoutError::Timeout) => {}
        Err(RecvTimeoutError::Disconnected) => {
            return Err(Failure::failed("the thread that reads has ended"));
        }
    }
    let shown = Shown {
        target: format!("file {}", kept::name(&short_name(source))),
        source: if is_stdin(source) {
            plain::Source::StandardInput
        } else {
            plain::Source::File
        },
    };
    super::event_loop()?.block_on(screen(&config.look, shown, feed, failed, options))
}

/// What the reading thread reads.
enum Recording {
    /// A file and its path; `-` means standard input.
    File(Input, PathBuf),
    BuiltIn,
    Fleet(Fetched, Ending),
}

/// Returns what to read: the file that is open, or else what is built in, or what proftop-fleet
/// fetches, which is started here.
fn recording_of(
    source: &RecordingSource,
    file: Option<(Input, PathBuf)>,
) -> Result<(Option<Fetching>, Recording), Failure> {
    match (source, file) {
        (RecordingSource::Fleet(address), _) => {
            let (fetching, fetched, ending) = Fetching::start(address)?;
            Ok((Some(fetching), Recording::Fleet(fetched, ending)))
        }
        (_, Some((input, path))) => Ok((None, Recording::File(input, path))),
        (_, None) => Ok((None, Recording::BuiltIn)),
    }
}

/// What the screen shows.
pub struct Shown {
    /// The name under which the layout of the screen is remembered.
    pub target: String,
    /// For the dialog of `--plain`.
    pub source: plain::Source,
}

/// Runs the screen or the dialog until the user leaves it, or until reading fails before
/// there is anything to show.
pub async fn screen(
    look: &Look,
    Shown { target, source }: Shown,
    feed: watch::Receiver<Arc<Snapshot>>,
    failed: oneshot::Receiver<Failure>,
    mut options: ScreenOptions,
) -> Result<Exit, Failure> {
    options.begin = top::begin(look, &target);
    options.begin.view = first_view(options.begin.view, &feed.borrow());
    let began = options.begin;
    let last = feed.clone();
    // A file has no engine that could carry out commands: the receiver is dropped.
    let (control, _) = mpsc::unbounded_channel();
    let is_file = source == plain::Source::File;
    let source = look.plain.then_some(source);
    let screen = top::show(source, feed, control, options);
    let ended = tokio::select! {
        ended = screen => ended?,
        Ok(failure) = failed => return Err(failure),
    };
    top::remember(look, &target, began, ended.kept);
    say_goodbye(&last.borrow(), is_file);
    // The screen has shown it as the state of what was read; the dialog says only what it is asked.
    if look.plain
        && is_file
        && let TargetState::Failed(why) = &last.borrow().run.target
    {
        return Err(Failure::failed(why.clone()));
    }
    Ok(match ended.exit {
        run::Exit::Signal(signal) => Exit::Signal(signal as u8),
        run::Exit::Quit | run::Exit::TerminalLost => Exit::Done,
    })
}

/// Returns the view that opens. A file that has only probes opens with the view of probes, unless
/// the user asks for another view than the default.
fn first_view(asked: ViewId, snapshot: &Snapshot) -> ViewId {
    let has_only_probes = snapshot.report.samples == 0 && !snapshot.probes.list.is_empty();
    match asked {
        ViewId::Functions if has_only_probes => ViewId::Probes,
        asked => asked,
    }
}

/// Prints the line that remains on the terminal after the screen.
fn say_goodbye(last: &Snapshot, is_file: bool) {
    let Some(recording) = &last.source.recording else {
        return;
    };
    if terminal::is_writable() {
        let view = last.view.as_ref();
        let is_part = matches!(
            last.run.target,
            TargetState::Running | TargetState::Failed(_)
        );
        let so_far = if is_file && is_part {
            ", as far as it was read"
        } else {
            ""
        };
        // Writing fails if the terminal is gone as well.
        let _ = writeln!(
            std::io::stdout(),
            "proftop: {} in {}{so_far}",
            metric::counted_by(view.map(|view| &view.info().metric), last.report.samples),
            recording.name
        );
    }
}

/// Returns the snapshot that is shown before anything of the recording is read.
fn waiting(source: &RecordingSource) -> Snapshot {
    let view = Store::new(profile::Limits::default()).view();
    let recording = recorded::recording(
        &short_name(source),
        path_of(source),
        &view,
        Lacks::default(),
        None,
    );
    let mut snapshot = Snapshot::default();
    snapshot.asked.window = Span::All;
    snapshot.run.target = TargetState::Running;
    snapshot.source.recording = Some(recording);
    snapshot
}

fn is_stdin(source: &RecordingSource) -> bool {
    matches!(source, RecordingSource::File(path) if input::is_stdin(path))
}

/// Returns the path of the file, which is empty if there is none.
fn path_of(source: &RecordingSource) -> &Path {
    match source {
        RecordingSource::File(path) if !input::is_stdin(path) => path,
        RecordingSource::BuiltIn => Path::new(DEMO),
        RecordingSource::File(_) | RecordingSource::Fleet(_) => Path::new(""),
    }
}

/// Returns the last part of the path, as the header has no room for more; for proftop-fleet the
/// address.
fn short_name(source: &RecordingSource) -> String {
    match source {
        RecordingSource::File(path) => {
            input::name(path.file_name().map_or(path.as_path(), Path::new))
        }
        RecordingSource::BuiltIn => DEMO.into(),
        RecordingSource::Fleet(fleet) => symbolize::sanitize(fleet.address.as_bytes()).into_owned(),
    }
}

/// Returns the name for a message.
fn long_name(source: &RecordingSource) -> String {
    match source {
        RecordingSource::File(path) => input::name(path),
        RecordingSource::BuiltIn | RecordingSource::Fleet(_) => short_name(source),
    }
}

/// The state of the thread that reads. It publishes the part that it has read, and reports success
/// or failure to the main thread until the screen is open, and to the screen from then on.
struct Reading {
    source: RecordingSource,
    publish: watch::Sender<Arc<Snapshot>>,
    /// Tells the main thread that the screen may open, or why it must not. None once that is sent.
    began: Option<SyncSender<Result<(), Failure>>>,
    /// The number of the last snapshot, which increases with each one.
    generation: u64,
    /// When reading the next block began, and when the last snapshot was published.
    asked: Instant,
    shown: Instant,
    /// How long it took to make the last snapshot.
    counting: Duration,
    /// The metrics of the file; see [`metered`].
    metrics: Arc<[Metered]>,
}

impl Progress for Reading {
    fn begins(&mut self) {
        // The screen for a file opens when all of it is read, or after `OPENS_AFTER`.
        if is_stdin(&self.source) {
            self.open_the_screen();
        }
        self.asked = Instant::now();
    }

    fn comes(&mut self, store: &Store) {
        // A block that took long to arrive is shown at once: the next one may take as long again.
        let waited = self.asked.elapsed() >= SHOW_EVERY / 2;
        let wait = SHOW_EVERY.max(self.counting * recorded::COUNTING_PART);
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
        source: RecordingSource,
        publish: watch::Sender<Arc<Snapshot>>,
        began: SyncSender<Result<(), Failure>>,
    ) -> Self {
        Reading {
            source,
            publish,
            began: Some(began),
            generation: 0,
            asked: Instant::now(),
            shown: Instant::now(),
            counting: Duration::ZERO,
            metrics: Arc::default(),
        }
    }

    /// Reads the recording with the given metric, and publishes it.
    fn read(
        &mut self,
        recording: Recording,
        metric: Option<&str>,
        places: &Places,
    ) -> Result<(), Failure> {
        match recording {
            Recording::BuiltIn => {
                let opened = open_file::open_demo(self)?;
                self.ends(&opened)
            }
            Recording::File(input, path) => self.read_file(input, &path, metric, places),
            Recording::Fleet(fetched, ending) => {
                self.read_fetched(fetched, &ending, metric, places)
            }
        }
    }

    /// Reads a file, then once more with each of its other metrics.
    fn read_file(
        &mut self,
        input: Input,
        path: &Path,
        metric: Option<&str>,
        places: &Places,
    ) -> Result<(), Failure> {
        let opened = open_file::open_by_parts(input, metric, places, self)?;
        self.metrics = metered(&opened).into();
        self.ends(&opened)?;
        if !input::is_stdin(path) {
            self.count_others(path, &opened);
        }
        Ok(())
    }

    /// Reads what proftop-fleet writes. If proftop-fleet has failed, the error is the reason that it
    /// gives, and not that its output ends too early.
    fn read_fetched(
        &mut self,
        fetched: Fetched,
        ending: &Ending,
        metric: Option<&str>,
        places: &Places,
    ) -> Result<(), Failure> {
        let read = open_file::read_by_parts(Box::new(fetched), metric, places, self);
        if let Some(failure) = ending.failure() {
            return Err(failure);
        }
        match read {
            Ok(opened) => self.ends(&opened),
            Err(error) => {
                let failure = input::unread("what proftop-fleet has sent", &error);
                let is_of_other_version =
                    matches!(error, FormatError::Unknown | FormatError::Newer(..));
                Err(if is_of_other_version {
                    ending.of_other_version(failure)
                } else {
                    failure
                })
            }
        }
    }

    /// Reads the file once more for each of its other metrics, and publishes the list of
    /// metrics after each. A metric with which reading fails is removed from the list.
    fn count_others(&mut self, path: &Path, opened: &Opened) {
        let mut metrics = metered(opened);
        // The first metric is the one on the screen, which is read already.
        let mut next = 1;
        while let Some(metric) = metrics.get_mut(next) {
            metric.view = open_file::count_again(path, opened, &metric.name);
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

    /// Reports why reading failed: to the main thread if it still waits to open the screen,
    /// else to the screen.
    fn fails(&mut self, failure: Failure, fail: oneshot::Sender<Failure>) {
        match self.began.take() {
            // If sending fails, the main thread no longer waits, because the screen is open.
            Some(began) if began.send(Err(failure.clone())).is_ok() => {}
            _ => self.breaks(failure, fail),
        }
    }

    /// Lets the main thread open the screen, unless it has done so already because reading took
    /// long.
    fn open_the_screen(&mut self) {
        if let Some(began) = self.began.take() {
            // Sending fails if the screen opened before this.
            let _ = began.send(Ok(()));
        }
    }

    /// Publishes the whole recording as the final snapshot. A file without samples is an error,
    /// with the notes on it.
    fn ends(&mut self, opened: &Opened) -> Result<(), Failure> {
        if opened.view.samples() == 0 && opened.view.probes().is_empty() {
            let name = long_name(&self.source);
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

    /// Reports why reading stopped. If samples are on the screen they stay there, with the reason
    /// as the state; otherwise the screen is closed.
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

    /// Publishes a snapshot of the part that was read. `end` is None if there is more to read. At
    /// the end it is the damage of the file, or None if the file is whole.
    fn show(&mut self, view: &View, notes: &[String], lacks: Lacks, end: Option<Option<&str>>) {
        let selection = view
            .select(&Query::default(), &Cancel::new())
            .expect("nobody cancels it");
        let recording = recorded::recording(
            &short_name(&self.source),
            path_of(&self.source),
            view,
            lacks,
            end.unwrap_or(None),
        );
        self.generation += 1;
        let is_over = end.is_some();
        self.publish.send_replace(Arc::new(Snapshot {
            generation: self.generation,
            metrics: Arc::clone(&self.metrics),
            ..recorded::snapshot(view, notes, recording, is_over, &selection)
        }));
    }
}

/// Returns the metrics of a file: first the one on the screen, then the others, which are not read
/// yet. Empty if there is only one.
fn metered(opened: &Opened) -> Vec<Metered> {
    let shown = &opened.view.info().metric.name;
    let others = opened.metrics.iter().filter(|name| *name != shown);
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

/// Returns the last snapshot of the built-in recording.
#[cfg(test)]
pub fn demo_snapshot() -> Snapshot {
    struct Quiet;
    impl Progress for Quiet {}
    let Ok(opened) = open_file::open_demo(&mut Quiet) else {
        panic!("it is whole");
    };
    let selection = opened
        .view
        .select(&Query::default(), &Cancel::new())
        .expect("nobody cancels it");
    let recording =
        recorded::recording("demo.pft", Path::new(""), &opened.view, opened.lacks, None);
    let (view, notes) = (&opened.view, &opened.notes);
    Snapshot {
        generation: 1,
        ..recorded::snapshot(view, notes, recording, true, &selection)
    }
}
