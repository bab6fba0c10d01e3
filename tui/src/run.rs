//! The loop that *runs* the screen: it waits for an event, hands it to the app, carries out the
//! effects that the app returns, and draws. It draws only if something has changed, and at most
//! thirty times a second. All keys that have arrived by then are handled first, so that the newest
//! state is drawn.

use crate::action::Keymap;
use crate::app::mode::Detail;
use crate::app::{App, Effect, Event};
use crate::code::SourceMap;
use crate::desk::Answer;
use crate::geometry::Size;
use crate::kept::Kept;
use crate::notice::Notice;
use crate::terminal::TerminalGuard;
use crate::terminal::ground::GroundKey;
use crate::widgets::theme::Theme;
use crate::{screen, terminal};
use crossterm::event::{Event as Input, KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use engine::Command;
use engine::snapshot::{Baseline, Snapshot, Span};
use faults::{Fault, Patience};
use probe::haste;
use profile::Filter;
use rustix::process::Signal;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep_until;

/// The threads that answer the questions of views.
pub mod answers;
/// Runs the user's editor in the terminal.
mod editor;
/// When frames are drawn, and how they reach the terminal.
mod frames;
/// Ends the program when the terminal is gone and the loop cannot notice it.
mod hang_up;
/// Keys and mouse events from the terminal.
mod keys;
/// When the screen first showed samples and names.
mod milestones;
/// The signals that end or stop a program, and the one that continues it.
mod signals;
/// The colors of the screen, and the question to the terminal for its background.
pub mod themes;
/// Writing files.
pub mod writing;

use answers::Workers;
use frames::Frames;
use hang_up::HangUp;
use keys::Keys;
use signals::{Caught, Signals};
use themes::Colors;
use writing::Writing;

pub use milestones::Milestones;

/// What the screen needs to know at its start.
#[derive(Debug)]
pub struct ScreenOptions {
    pub theme: Theme,
    pub mouse: bool,
    /// The view, sort order, unit and layout at the start.
    pub begin: Kept,
    pub filter: Filter,
    /// The number of the metric that is counted until the user chooses another one.
    pub metric: usize,
    /// The baseline that samples are compared with from the start.
    pub baseline: Option<Baseline>,
    pub keymap: Keymap,
    /// A sentence that says what is wrong with the configuration, if anything.
    pub complaint: Option<String>,
    /// The window that the engine reports at first.
    pub window: Span,
    /// Freeze the screen this long after the first samples.
    pub freeze_after: Option<Duration>,
    /// Where to look for source text.
    pub sources: SourceMap,
}

/// Why the screen ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Quit,
    /// This signal ended it.
    Signal(i32),
    /// The terminal is gone.
    TerminalLost,
}

/// What remains of the screen after it has ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    pub exit: Exit,
    /// View, sort order, unit and layout at the end.
    pub kept: Kept,
    /// Whether debug files may be fetched, or `None` if the user was not asked.
    pub fetches: Option<bool>,
    pub milestones: Milestones,
}

/// How long we wait after a signal for files that are still being written.
const WRITING_WAIT: Duration = Duration::from_millis(300);
/// Time between two ticks of the app while it waits for some time to pass: for rows to be sorted,
/// for a notice to be taken away.
const TICK_EVERY: Duration = Duration::from_millis(250);
/// The same while nothing but the clock of the state line changes with time alone.
const CALM_TICK_EVERY: Duration = Duration::from_secs(1);
/// A snapshot comes with a tick, and usually each second: the next tick is so much later, so that
/// no frame is drawn for the clock alone just before the next snapshot.
const SNAPSHOT_LATE_MAX: Duration = Duration::from_millis(500);

/// Shows the screen until it is left. The terminal is restored on return.
pub async fn run(
    feed: watch::Receiver<Arc<Snapshot>>,
    control: mpsc::UnboundedSender<Command>,
    options: ScreenOptions,
) -> io::Result<Ended> {
    // Signals are caught before the terminal is changed: one that comes in between must not
    // end the program without putting the terminal back.
    let signals = Signals::new()?;
    let guard = TerminalGuard::new(options.mouse)?;
    let hang_up = HangUp::watch()?;
    let size = terminal_size()?;
    let own_pid = std::process::id();
    let mut app = App::new(size, options.window, own_pid, options.mouse);
    options.begin.restore(&mut app);
    if let Err(why) = app.begin_with(options.filter, options.metric, options.baseline) {
        app.lines.detail = Detail::Notice(why);
    }
    app.input.keymap = options.keymap;
    app.freeze_after(options.freeze_after);
    app.terminal.is_remote = std::env::var_os("SSH_CONNECTION").is_some();
    if let Some(what) = options.complaint {
        app.lines.detail = Detail::Notice(Notice::Configuration(what));
    }
    let (colors, question) = Colors::new(options.theme);
    let run = Run {
        app,
        frames: Frames::new(size, question)?,
        workers: Workers::start(options.sources)?,
        writing: Writing::new(),
        colors,
        keys: Some(Keys::new()),
        signals,
        feed: Some(feed),
        control,
        guard,
        hang_up,
        started: Instant::now(),
        milestones: Milestones::default(),
        faults: Faults::default(),
    };
    run.live().await
}

/// The screen while it runs: the app, the sources of its events, and what carries out its effects.
struct Run {
    app: App,
    /// What is on the terminal, and when it is drawn next.
    frames: Frames,
    colors: Colors,
    /// The threads that answer the questions of views.
    workers: Workers,
    writing: Writing,
    /// Keys and mouse events. `None` while another program has the terminal.
    keys: Option<Keys>,
    signals: Signals,
    /// The snapshots. `None` once the engine has ended; its last snapshot stays on the screen.
    feed: Option<watch::Receiver<Arc<Snapshot>>>,
    /// Sends commands to the engine.
    control: mpsc::UnboundedSender<Command>,
    /// Puts the terminal back, however the run ends.
    guard: TerminalGuard,
    /// Ends the program if the terminal is gone and the loop does not see it.
    hang_up: HangUp,
    /// The start of the clock that the app is given.
    started: Instant,
    milestones: Milestones,
    faults: Faults,
}

/// Panics that were caught.
#[derive(Debug, Default)]
struct Faults {
    /// Number of panics that the user was informed about.
    told: u64,
    /// Limits how often handling an event may panic.
    updating: Patience,
    /// Limits how often drawing may panic.
    drawing: Patience,
}

/// What ended the loop's wait.
enum Woken {
    Input(Option<io::Result<Input>>),
    Signal(Caught),
    /// A new snapshot (true), or the end of the engine (false).
    Feed(bool),
    Answer(Answer),
    /// News about a file that is being written, or about a folder.
    Told(Event),
    Tick,
    FrameDue,
    /// The terminal has taken a frame, after this time.
    Written(Duration),
}

impl Run {
    /// Runs until the screen ends, restores the terminal, and waits for files that are still being
    /// written: after a quit until they are complete, otherwise for [`WRITING_WAIT`]. What is done
    /// after that wait, or after anything but a quit, is done in [`haste`].
    async fn live(mut self) -> io::Result<Ended> {
        let exit = match self.turn().await {
            Ok(exit) => exit,
            Err(error) if is_terminal_lost(&error) => Exit::TerminalLost,
            Err(error) => return Err(error),
        };
        self.hang_up.loop_has_ended();
        let is_quit = exit == Exit::Quit;
        if !is_quit {
            haste::begin();
        }
        self.leave().await;
        let patience = (!is_quit).then_some(WRITING_WAIT);
        tokio::select! {
            () = self.writing.finish(patience) => {}
            // A second signal ends the wait. An incomplete file leaves nothing behind, because it
            // has no name yet.
            _ = self.signals.next() => {}
        }
        // Not before the wait after a quit: files may take long, which they do at the normal priority.
        haste::begin();
        Ok(Ended {
            exit,
            kept: Kept::of(&self.app),
            fetches: self.app.fetching.answer,
            milestones: self.milestones,
        })
    }

    /// Runs the loop until there is a reason to end. If several events are ready, they are handled
    /// in a fixed order: signals first, then keys, so that a busy engine cannot keep the user from
    /// quitting.
    async fn turn(&mut self) -> io::Result<Exit> {
        self.draw()?;
        self.take_snapshot().await?;
        let (mut ticked, mut by_snapshot) = (Instant::now(), true);
        loop {
            self.draw_if_due()?;
            let frame_at = self.frames.due_at();
            let tick_at = ticked + self.tick_every(by_snapshot);
            let woken = tokio::select! {
                biased;
                caught = self.signals.next() => Woken::Signal(caught),
                input = next_input(&mut self.keys) => Woken::Input(input),
                alive = next_snapshot(&mut self.feed) => Woken::Feed(alive),
                answer = self.workers.answered() => Woken::Answer(answer),
                event = self.writing.told() => Woken::Told(event),
                () = self.hang_up.noticed() => return Ok(Exit::TerminalLost),
                () = sleep_until(tick_at.into()) => Woken::Tick,
                written = self.frames.written() => Woken::Written(written?),
                () = frame_due(frame_at) => Woken::FrameDue,
            };
            if matches!(woken, Woken::Tick | Woken::Feed(true)) {
                ticked = Instant::now();
                by_snapshot = matches!(woken, Woken::Feed(true));
            }
            if let Some(exit) = self.handle(woken).await? {
                return Ok(exit);
            }
        }
    }

    /// Returns the time until the next tick in the present state of the app, after one by itself or
    /// one that came with a snapshot.
    fn tick_every(&self, by_snapshot: bool) -> Duration {
        if self.app.waits_for_time() {
            TICK_EVERY
        } else if by_snapshot {
            CALM_TICK_EVERY + SNAPSHOT_LATE_MAX
        } else {
            CALM_TICK_EVERY
        }
    }

    /// Handles the event that ended the loop's wait. Returns why the screen has to end, or `None`
    /// to go on.
    async fn handle(&mut self, woken: Woken) -> io::Result<Option<Exit>> {
        match woken {
            Woken::FrameDue => Ok(None),
            Woken::Written(took) => {
                self.pace(took)?;
                Ok(None)
            }
            // The input stream does not report that the terminal is gone; it would read from it in
            // a busy loop.
            Woken::Tick | Woken::Feed(true) if terminal::is_gone() => Ok(Some(Exit::TerminalLost)),
            Woken::Tick => self.tick().await,
            // The snapshot first: rows that a tick has just sorted would stay as they are for it.
            Woken::Feed(true) => match self.take_snapshot().await? {
                Some(exit) => Ok(Some(exit)),
                None => self.tick().await,
            },
            Woken::Told(event) => self.handle_event(event).await,
            Woken::Answer(answer) => {
                self.frames.note_answer();
                self.handle_event(Event::Answer(answer)).await
            }
            Woken::Feed(false) => {
                self.feed = None;
                Ok(None)
            }
            Woken::Input(input) => self.take_input(input).await,
            Woken::Signal(Caught::End(signal)) => Ok(Some(Exit::Signal(signal))),
            Woken::Signal(Caught::Stop) => {
                self.leave().await;
                rustix::process::kill_process(rustix::process::getpid(), Signal::STOP)?;
                self.come_back().await?;
                Ok(None)
            }
            // SIGSTOP stopped us before we could leave the terminal, and a shell may have changed
            // its modes since: enter it again.
            Woken::Signal(Caught::Continue) => {
                self.leave().await;
                self.guard.enter()?;
                self.repaint()?;
                Ok(None)
            }
        }
    }

    /// Handles this input and all input that is ready behind it, so that keys which are held down
    /// do not wait for frames.
    async fn take_input(&mut self, first: Option<io::Result<Input>>) -> io::Result<Option<Exit>> {
        self.frames.wait_for_nothing();
        let mut next = Some(first);
        while let Some(input) = next {
            // The stream ends or fails when the terminal is gone.
            let Some(Ok(input)) = input else {
                return Ok(Some(Exit::TerminalLost));
            };
            let exit = match input {
                Input::Key(key) => self.take_key(key).await?,
                Input::Mouse(mouse) => self.handle_event(self.pointed(mouse)).await?,
                Input::Resize(width, height) => self.resize(Size { width, height }).await?,
                _ => None,
            };
            if exit.is_some() {
                return Ok(exit);
            }
            next = match &mut self.keys {
                Some(keys) => keys.waiting().await,
                None => None,
            };
        }
        Ok(None)
    }

    /// Handles a key. Some key events are really parts of the terminal's answer to the question for
    /// its background color.
    async fn take_key(&mut self, key: KeyEvent) -> io::Result<Option<Exit>> {
        match self.colors.handle_key(key) {
            GroundKey::Key => {
                for key in terminal::apart(key) {
                    let exit = self.handle_event(Event::Key(key)).await?;
                    if exit.is_some() {
                        return Ok(exit);
                    }
                }
                Ok(None)
            }
            GroundKey::Part => Ok(None),
            GroundKey::Ground(_) => {
                self.frames.request();
                Ok(None)
            }
        }
    }

    /// Turns a click on a column head, on a frame above the zoomed one or on a step of the path
    /// into an event of its own. Only the code that draws knows where these are.
    fn pointed(&self, mouse: MouseEvent) -> Event {
        let is_click = mouse.kind == MouseEventKind::Down(MouseButton::Left);
        let head = is_click
            .then(|| screen::head_at(&self.app, self.colors.theme(), mouse.column, mouse.row))
            .flatten();
        let ancestor = is_click
            .then(|| screen::ancestor_at(&self.app, mouse.column, mouse.row))
            .flatten();
        let crumb = is_click
            .then(|| screen::crumb_at(&self.app, mouse.column, mouse.row))
            .flatten();
        let event = head
            .map(Event::Head)
            .or(ancestor.map(Event::Ancestor))
            .or(crumb.map(Event::Crumb));
        event.unwrap_or(Event::Mouse(mouse))
    }

    /// Handles a new size of the terminal. The contents of the terminal are unknown then, so that
    /// all cells are drawn again.
    async fn resize(&mut self, size: Size) -> io::Result<Option<Exit>> {
        self.frames.start_again(size)?;
        self.handle_event(Event::Resize(size)).await
    }

    /// Hands a tick to the app. Before that, the user is informed about panics that were caught on
    /// any thread.
    async fn tick(&mut self) -> io::Result<Option<Exit>> {
        let seen = faults::seen();
        let count = seen.iter().map(|fault| fault.count).sum();
        if let Some(last) = seen.last().filter(|_| count > self.faults.told) {
            self.faults.told = count;
            // If the panic happened while drawing, half a frame may be on the screen.
            self.repaint()?;
            if let Some(exit) = self.handle_event(Event::Fault(last.to_string())).await? {
                return Ok(Some(exit));
            }
        }
        self.handle_event(Event::Tick).await
    }

    /// Hands an event to the app and returns the effects. A panic of the app is caught; then only
    /// this event has no effect.
    fn update(&mut self, event: Event) -> io::Result<Vec<Effect>> {
        let now = self.started.elapsed();
        let effects = faults::catch("answering an event", || self.app.update(event, now));
        let effects = self.faults.updating.take(effects).map_err(again)?;
        self.frames.request();
        Ok(effects.unwrap_or_default())
    }

    /// Hands an event to the app and carries out the effects that it returns, in order.
    async fn handle_event(&mut self, event: Event) -> io::Result<Option<Exit>> {
        let is_snapshot = matches!(event, Event::Snapshot(_));
        let effects = self.update(event)?;
        if is_snapshot {
            let is_asked =
                |effect: &&Effect| matches!(effect, Effect::Ask(_) | Effect::AskBeside(_));
            self.frames
                .wait_for_answers(effects.iter().filter(is_asked).count());
        }
        for effect in effects {
            match effect {
                Effect::Quit => return Ok(Some(Exit::Quit)),
                Effect::Suspend => self.suspend().await?,
                Effect::Redraw => self.repaint()?,
                Effect::Ask(question) => self.workers.ask(question),
                Effect::AskBeside(question) => self.workers.ask_beside(question),
                Effect::Write(job) => self.writing.start(job, &self.app, self.colors.theme()),
                Effect::Measure(folder) => self.writing.measure(folder),
                Effect::Weigh(content) => self.writing.weigh(content),
                Effect::Edit(path, line) => self.edit(&path, line).await?,
                Effect::Copy(name) => self.frames.add(terminal::clipboard(&name)),
                Effect::CaptureMouse(wanted) => {
                    self.frames.add(self.guard.capture_mouse(wanted)?);
                }
                // Sending fails if the engine has ended. Then there is nothing left to do.
                Effect::SetWindow(span) => drop(self.control.send(Command::SetWindow(span))),
                Effect::SetTheme(theme) => self.colors.set_theme(theme),
                Effect::SetRate(hz) => drop(self.control.send(Command::SetRate(hz))),
                Effect::CountWaits => drop(self.control.send(Command::CountWaits)),
                Effect::Fetch(wanted) => drop(self.control.send(Command::Fetch(wanted))),
                Effect::Probe(order) => drop(self.control.send(Command::Probe(order))),
            }
        }
        Ok(None)
    }

    /// Hands an event to the app that is not input. Of its effects only questions are carried out.
    fn handle_quiet_event(&mut self, event: Event) -> io::Result<()> {
        for effect in self.update(event)? {
            match effect {
                Effect::Ask(question) => self.workers.ask(question),
                Effect::AskBeside(question) => self.workers.ask_beside(question),
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives the terminal back; the frame that is being written is finished first if the terminal
    /// takes it in time.
    async fn leave(&mut self) {
        self.frames.finish().await;
        self.guard.leave();
    }

    /// Stops the whole process group, as the terminal itself does at ^Z when it is not in raw mode.
    async fn suspend(&mut self) -> io::Result<()> {
        self.leave().await;
        rustix::process::kill_current_process_group(Signal::STOP)?;
        self.come_back().await
    }

    /// Enters the terminal again after a stop. In a process with several threads the stop can take
    /// effect a moment later, so that reaching this line does not mean that we were continued: only
    /// SIGCONT does.
    async fn come_back(&mut self) -> io::Result<()> {
        self.signals.wait_for_continue().await;
        self.guard.enter()?;
        self.repaint()
    }

    /// Draws every cell again, in the present size of the terminal.
    fn repaint(&mut self) -> io::Result<()> {
        let size = terminal_size()?;
        self.frames.start_again(size)?;
        self.handle_quiet_event(Event::Resize(size))
    }

    /// Shows the newest snapshot. Snapshots between it and the one shown before are skipped.
    async fn take_snapshot(&mut self) -> io::Result<Option<Exit>> {
        let Some(feed) = &mut self.feed else {
            return Ok(None);
        };
        let snapshot = feed.borrow_and_update().clone();
        self.handle_event(Event::Snapshot(snapshot)).await
    }

    /// Draws if something has changed and the last frame was long enough ago.
    fn draw_if_due(&mut self) -> io::Result<()> {
        match self.frames.due_at() {
            Some(at) if at <= Instant::now() => self.draw(),
            _ => Ok(()),
        }
    }

    /// Notes how long the terminal took to read a frame, and informs the app when the terminal
    /// becomes too slow or keeps up again.
    fn pace(&mut self, took: Duration) -> io::Result<()> {
        let behind = self.frames.pace(took);
        if behind.is_some() || self.app.terminal.behind.is_some() {
            self.handle_quiet_event(Event::Behind(behind))?;
        }
        Ok(())
    }

    /// Draws a frame and passes it to the terminal. If a view panics while drawing, the functions
    /// are opened instead.
    fn draw(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        if let Some(cost) = &mut self.app.terminal.draw_cost {
            *cost = self.frames.cost();
        }
        let (app, theme) = (&self.app, self.colors.theme());
        let frames = &mut self.frames;
        let drawn = faults::catch("drawing the screen", || {
            frames.paint(|frame| screen::draw(app, theme, frame))
        });
        let Some(frame) = self.faults.drawing.take(drawn).map_err(again)? else {
            // Drawing panicked; another view may work.
            self.app.show_functions();
            self.frames.put_off();
            return Ok(());
        };
        self.frames.write(frame?, begun)?;
        self.milestones.note(&self.app.shown, Instant::now());
        Ok(())
    }
}

/// Waits for the next key, mouse event or size. Waits forever while another program has the
/// terminal.
async fn next_input(keys: &mut Option<Keys>) -> Option<io::Result<Input>> {
    match keys {
        Some(keys) => keys.next().await,
        None => pending().await,
    }
}

/// Waits for the next snapshot. Returns false when the engine has ended.
async fn next_snapshot(feed: &mut Option<watch::Receiver<Arc<Snapshot>>>) -> bool {
    match feed {
        Some(feed) => feed.changed().await.is_ok(),
        None => pending().await,
    }
}

/// Waits until a frame is due. Waits forever if none is.
async fn frame_due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at.into()).await,
        None => pending().await,
    }
}

fn terminal_size() -> io::Result<Size> {
    // crossterm's `size` would start the program `tput` if the terminal is gone.
    let crossterm::terminal::WindowSize { columns, rows, .. } = crossterm::terminal::window_size()?;
    Ok(Size {
        width: columns,
        height: rows,
    })
}

/// Turns a panic that happened too often into the error that ends the screen.
fn again(fault: Fault) -> io::Error {
    io::Error::other(fault.repeated())
}

/// Whether an error means that the terminal is gone.
fn is_terminal_lost(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, NotConnected, WriteZero};
    let gone = [rustix::io::Errno::IO, rustix::io::Errno::NXIO];
    matches!(error.kind(), BrokenPipe | NotConnected | WriteZero)
        || gone
            .iter()
            .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
