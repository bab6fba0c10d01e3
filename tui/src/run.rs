//! The *run* of the screen is a loop: wait for an event, hand it to the app, carry out the
//! effects that it returns, draw. It draws only if something happened, and at most thirty
//! times a second. All keys that have come by then are handled first, so that the newest
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
use crossterm::event::{
    Event as Input, EventStream, KeyEvent, MouseButton, MouseEvent, MouseEventKind,
};
use engine::Command;
use engine::snapshot::{Baseline, Snapshot, Span};
use faults::{Fault, Patience};
use futures_util::StreamExt;
use profile::Filter;
use rustix::process::Signal;
use std::future::{pending, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, sleep_until};

/// The threads that answer the questions of views.
pub mod answers;
/// The user's editor, for a while.
mod editor;
/// When frames are drawn, and how they reach the terminal.
mod frames;
/// Ends a screen whose terminal is gone, where its own loop cannot.
mod hang_up;
/// When the screen first showed something.
mod milestones;
/// The signals that end or stop a program, and the one that continues it.
mod signals;
/// Colors, as they are asked for.
pub mod themes;
/// Writing files.
pub mod writing;

use answers::Workers;
use frames::Frames;
use hang_up::HangUp;
use signals::{Caught, Signals};
use themes::Colors;
use writing::Writing;

pub use milestones::Milestones;

/// What the screen has to know at its start.
#[derive(Debug)]
pub struct ScreenOptions {
    pub theme: Theme,
    pub mouse: bool,
    /// The view, order, unit and layout at the start.
    pub begin: Kept,
    pub filter: Filter,
    /// What is counted, by number, until another metric is chosen.
    pub metric: usize,
    /// What to compare with from the start.
    pub baseline: Option<Baseline>,
    pub keymap: Keymap,
    /// What is wrong with the configuration, if anything.
    pub complaint: Option<String>,
    /// The window that the engine starts with.
    pub window: Span,
    /// Freeze the screen this long after the first samples.
    pub freeze_after: Option<Duration>,
    /// Where to look for source text.
    pub sources: SourceMap,
}

/// Why the screen was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Quit,
    Signal(i32),
    /// The terminal is gone.
    TerminalLost,
}

/// What is left when the screen was closed.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    pub exit: Exit,
    /// View, order, unit and layout at the end.
    pub kept: Kept,
    /// Whether debug files may be fetched; None if the user was not asked.
    pub fetches: Option<bool>,
    pub milestones: Milestones,
}

/// After a signal, how long we wait for files that are being written.
const WRITING_WAIT: Duration = Duration::from_millis(300);
/// How often the app gets a tick, for what changes by itself: the clock of the state line,
/// rows that wait to be sorted.
const TICK_EVERY: Duration = Duration::from_millis(250);

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
        app.detail = Detail::Notice(why);
    }
    app.keymap = options.keymap;
    app.freeze_after(options.freeze_after);
    app.terminal.is_remote = std::env::var_os("SSH_CONNECTION").is_some();
    if let Some(what) = options.complaint {
        app.detail = Detail::Notice(Notice::Configuration(what));
    }
    let (colors, question) = Colors::new(options.theme);
    let run = Run {
        app,
        frames: Frames::new(size, question)?,
        workers: Workers::start(options.sources)?,
        writing: Writing::new(),
        colors,
        input: Some(EventStream::new()),
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

/// The screen while it runs: the app, what feeds it, and what carries out its effects.
struct Run {
    app: App,
    /// What is on the terminal, and when it is drawn next.
    frames: Frames,
    colors: Colors,
    /// The threads that answer the questions of views.
    workers: Workers,
    writing: Writing,
    /// The keys and clicks; None while another program has the terminal.
    input: Option<EventStream>,
    signals: Signals,
    /// The snapshots; None once the engine has ended. Its last snapshot stays on the
    /// screen.
    feed: Option<watch::Receiver<Arc<Snapshot>>>,
    control: mpsc::UnboundedSender<Command>,
    /// Puts the terminal back, however the run ends.
    guard: TerminalGuard,
    /// Ends the program if the terminal is gone and the loop does not see it.
    hang_up: HangUp,
    started: Instant,
    milestones: Milestones,
    faults: Faults,
}

/// Panics that were caught.
#[derive(Debug, Default)]
struct Faults {
    /// How many of them the user was told of.
    told: u64,
    updating: Patience,
    drawing: Patience,
}

/// What woke the loop up.
enum Woken {
    Input(Option<io::Result<Input>>),
    Signal(Caught),
    Feed(bool),
    Answer(Answer),
    /// News of a file that is written, or of a folder.
    Told(Event),
    Tick,
    FrameDue,
    /// The terminal has taken a frame, which took this long.
    Written(Duration),
}

impl Run {
    /// Runs until the screen is left, puts the terminal back, and waits for files that are
    /// being written: after a quit as long as they take, else a moment.
    async fn live(mut self) -> io::Result<Ended> {
        let exit = match self.turn().await {
            Ok(exit) => exit,
            Err(error) if is_terminal_lost(&error) => Exit::TerminalLost,
            Err(error) => return Err(error),
        };
        self.hang_up.loop_has_ended();
        self.leave().await;
        let patience = if exit == Exit::Quit {
            None
        } else {
            Some(WRITING_WAIT)
        };
        tokio::select! {
            () = self.writing.finish(patience) => {}
            // A second signal ends the wait. A file that is not whole leaves nothing
            // behind, as it has no name yet.
            _ = self.signals.next() => {}
        }
        Ok(Ended {
            exit,
            kept: Kept::of(&self.app),
            fetches: self.app.fetching.answer,
            milestones: self.milestones,
        })
    }

    /// Runs the loop until there is a reason to leave. What waits is served in a fixed
    /// order: signals first, then keys, so that a busy engine cannot keep the user from
    /// leaving.
    async fn turn(&mut self) -> io::Result<Exit> {
        self.draw()?;
        self.take_snapshot().await?;
        let mut tick = interval(TICK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            self.draw_if_due()?;
            let frame_at = self.frames.due_at();
            let woken = tokio::select! {
                biased;
                caught = self.signals.next() => Woken::Signal(caught),
                input = next_input(&mut self.input) => Woken::Input(input),
                alive = next_snapshot(&mut self.feed) => Woken::Feed(alive),
                answer = self.workers.answered() => Woken::Answer(answer),
                event = self.writing.told() => Woken::Told(event),
                _ = tick.tick() => Woken::Tick,
                written = self.frames.written() => Woken::Written(written?),
                () = frame_due(frame_at) => Woken::FrameDue,
            };
            if let Some(exit) = self.handle(woken).await? {
                return Ok(exit);
            }
        }
    }

    /// Handles what woke the loop up. Returns why the screen is to be left; None to go on.
    async fn handle(&mut self, woken: Woken) -> io::Result<Option<Exit>> {
        match woken {
            Woken::FrameDue => Ok(None),
            Woken::Written(took) => {
                self.pace(took)?;
                Ok(None)
            }
            // The input stream does not report a terminal that is gone; it would read it in
            // a busy loop.
            Woken::Tick if terminal::is_gone() => Ok(Some(Exit::TerminalLost)),
            Woken::Tick => self.tick().await,
            Woken::Feed(true) => self.take_snapshot().await,
            Woken::Told(event) => self.handle_event(event).await,
            Woken::Answer(answer) => self.handle_event(Event::Answer(answer)).await,
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
            // We were stopped by SIGSTOP without having left the terminal, and a shell may
            // have changed its modes: enter it again.
            Woken::Signal(Caught::Continue) => {
                self.leave().await;
                self.guard.enter()?;
                self.repaint()?;
                Ok(None)
            }
        }
    }

    /// Handles this input and all that waits behind it, so that keys that are held down do
    /// not wait for frames.
    async fn take_input(&mut self, first: Option<io::Result<Input>>) -> io::Result<Option<Exit>> {
        let mut next = Some(first);
        while let Some(input) = next {
            // The stream ends, or fails, when the terminal is gone.
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
            next = self.waiting_input().await;
        }
        Ok(None)
    }

    /// Handles a key. Some are no keys but parts of the terminal's answer to the question
    /// for its background.
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

    /// Returns input that is there already. The stream is polled with the waker of this
    /// task: it keeps the first waker for which it had nothing, and with a waker that wakes
    /// nobody the next key would be seen only at the next tick.
    async fn waiting_input(&mut self) -> Option<Option<io::Result<Input>>> {
        let input = self.input.as_mut()?;
        poll_fn(|context| match input.poll_next_unpin(context) {
            Poll::Ready(input) => Poll::Ready(Some(input)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    /// Turns a click on a head, a frame or a step of the path into its own event. Only the
    /// code that draws knows where these are.
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

    /// Takes a new size of the terminal, in which nothing on it can be relied on.
    async fn resize(&mut self, size: Size) -> io::Result<Option<Exit>> {
        self.frames.start_again(size)?;
        self.handle_event(Event::Resize(size)).await
    }

    /// Hands a tick to the app, after telling the user of panics that were caught on any
    /// thread.
    async fn tick(&mut self) -> io::Result<Option<Exit>> {
        let seen = faults::seen();
        let count = seen.iter().map(|fault| fault.count).sum();
        if let Some(last) = seen.last().filter(|_| count > self.faults.told) {
            self.faults.told = count;
            // If it happened while drawing, half a frame may be on the screen.
            self.repaint()?;
            if let Some(exit) = self.handle_event(Event::Fault(last.to_string())).await? {
                return Ok(Some(exit));
            }
        }
        self.handle_event(Event::Tick).await
    }

    /// Hands an event to the app. A panic there is caught: only this event has no effect.
    fn update(&mut self, event: Event) -> io::Result<Vec<Effect>> {
        let now = self.started.elapsed();
        let effects = faults::catch("answering an event", || self.app.update(event, now));
        let effects = self.faults.updating.take(effects).map_err(again)?;
        self.frames.request();
        Ok(effects.unwrap_or_default())
    }

    /// Hands an event to the app and carries out the effects that it returns, in their
    /// order.
    async fn handle_event(&mut self, event: Event) -> io::Result<Option<Exit>> {
        let effects = self.update(event)?;
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
                // Sending fails if the engine has ended. Then nothing is to be done.
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

    /// Applies an event that is no key: its effects can only be questions.
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

    /// Gives the terminal back, after the present frame if the terminal takes it in time.
    async fn leave(&mut self) {
        self.frames.finish().await;
        self.guard.leave();
    }

    /// Stops the whole process group, as the terminal does at ^Z when it is not in raw
    /// mode.
    async fn suspend(&mut self) -> io::Result<()> {
        self.leave().await;
        rustix::process::kill_current_process_group(Signal::STOP)?;
        self.come_back().await
    }

    /// Takes the terminal again after a stop. With several threads the stop can take effect
    /// a moment late, so that getting here does not mean that we were continued: only the
    /// signal does.
    async fn come_back(&mut self) -> io::Result<()> {
        self.signals.wait_for_continue().await;
        self.guard.enter()?;
        self.repaint()
    }

    /// Draws every cell again, in the size that the terminal has now.
    fn repaint(&mut self) -> io::Result<()> {
        let size = terminal_size()?;
        self.frames.start_again(size)?;
        self.handle_quiet_event(Event::Resize(size))
    }

    /// Takes the newest snapshot. Those between it and the last one are never seen.
    async fn take_snapshot(&mut self) -> io::Result<Option<Exit>> {
        let Some(feed) = &mut self.feed else {
            return Ok(None);
        };
        let snapshot = feed.borrow_and_update().clone();
        self.handle_event(Event::Snapshot(snapshot)).await
    }

    /// Draws if something has changed and the last frame is long enough ago.
    fn draw_if_due(&mut self) -> io::Result<()> {
        match self.frames.due_at() {
            Some(at) if at <= Instant::now() => self.draw(),
            _ => Ok(()),
        }
    }

    /// Notes how long the terminal took for a frame, and tells the app if it is too slow,
    /// or no longer.
    fn pace(&mut self, took: Duration) -> io::Result<()> {
        let behind = self.frames.pace(took);
        if behind.is_some() || self.app.terminal.behind.is_some() {
            self.handle_quiet_event(Event::Behind(behind))?;
        }
        Ok(())
    }

    /// Draws a frame and gives it to the terminal. If a view panics, the functions are
    /// opened in its place.
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
            // Drawing panicked: another view may work.
            self.app.show_functions();
            self.frames.put_off();
            return Ok(());
        };
        self.frames.write(frame?, begun)?;
        self.milestones.note(&self.app.shown, Instant::now());
        Ok(())
    }
}

/// Waits for the next key, click or size. Never returns while another program has the
/// terminal.
async fn next_input(input: &mut Option<EventStream>) -> Option<io::Result<Input>> {
    let Some(input) = input else {
        return pending().await;
    };
    // A read from a terminal that is gone returns nothing at once, and the stream then
    // reads again and again without ever returning. It is not polled any more when the
    // terminal is gone.
    poll_fn(|cx| {
        if terminal::is_gone() {
            Poll::Ready(None)
        } else {
            input.poll_next_unpin(cx)
        }
    })
    .await
}

/// Waits for the next snapshot. Returns false when the engine has ended.
async fn next_snapshot(feed: &mut Option<watch::Receiver<Arc<Snapshot>>>) -> bool {
    match feed {
        Some(feed) => feed.changed().await.is_ok(),
        None => pending().await,
    }
}

/// Waits until a frame is due. Never returns if none is.
async fn frame_due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at.into()).await,
        None => pending().await,
    }
}

fn terminal_size() -> io::Result<Size> {
    // Not `size`, which starts the program `tput` where the terminal is gone.
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

/// Whether an error of the terminal says that nobody is there any more.
fn is_terminal_lost(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, NotConnected, WriteZero};
    let gone = [rustix::io::Errno::IO, rustix::io::Errno::NXIO];
    matches!(error.kind(), BrokenPipe | NotConnected | WriteZero)
        || gone
            .iter()
            .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
