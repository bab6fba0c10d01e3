//! The live screen: starts the engine and the screen, watches the started command, and ends
//! everything in order when the user leaves.

use super::input::{self, Input};
use super::resolve::Places;
use super::{Subject, apart, open_file, sampling};
use crate::cli::{Config, Look};
use crate::config::Complaint;
use crate::failure::rights::{Invocation, quote};
use crate::failure::{Exit, Failure};
use crate::kept::Kept;
use crate::run::{Ended, ScreenOptions, themes};
use crate::trace::StartTrace;
use crate::{kept, plain, run, terminal};
use engine::process_end;
use engine::snapshot::{Baseline, Snapshot, Span, TargetState};
use engine::{Command, Commands, Consent, Schedule};
use probe::child::{RunningCommand, StartError};
use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::sync::{mpsc, oneshot, watch};

/// Maximum length of a line of the command's output in bytes; longer ones are cut.
const LINE_BYTES_MAX: usize = 4096;

/// Runs the live screen, or the dialog of `--plain`, until the user leaves it.
pub fn run(config: &Config, subject: Subject) -> Result<Exit, Failure> {
    let baseline = open_baseline(&config.look)?;
    let mut options = screen_options(&config.look, baseline, window(config))?;
    options.metric = config.sample.counted.number();
    super::event_loop()?.block_on(screen(config, subject, options))
}

/// The screen that could not be opened, which decides what to suggest instead.
pub enum Remedies<'a> {
    Live,
    /// The screen of a recording, with the name of its file.
    Recording(&'a str),
    /// The screen of the built-in recording.
    Demo,
    /// The screen of several machines.
    Machines,
    /// The screen of what proftop-fleet fetches.
    Fleet,
}

/// Returns an error with suggestions if there is no terminal to draw on. It is called before
/// anything else happens. For a recording, standard input may be a pipe: keys then come from
/// `/dev/tty`.
pub fn check_terminal(remedies: &Remedies<'_>) -> Result<(), Failure> {
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    let has_keys = std::io::stdin().is_terminal()
        || !matches!(remedies, Remedies::Live) && File::open("/dev/tty").is_ok();
    let why = if !std::io::stdout().is_terminal() || !has_keys {
        "standard input and output are not a terminal"
    } else if is_dumb {
        "TERM=dumb: this terminal cannot place text"
    } else {
        return Ok(());
    };
    let failure = Failure::new(Exit::NotPossible, format!("cannot open the screen: {why}"));
    let again = Invocation::current();
    let lines = "commands and answers, line by line";
    Err(match remedies {
        Remedies::Live => failure
            .remedy(again.with_option("--plain"), lines)
            .remedy(
                again.with_option("-b"),
                "reports as text, one after the other",
            )
            .remedy(
                again.with_option("-b -n 1 -d 10"),
                "one report of ten seconds",
            ),
        Remedies::Recording(file) => {
            let report = again.instead(&format!("report {}", quote(file)));
            failure
                .remedy(again.with_option("--plain"), lines)
                .remedy(report.to_string(), "the top functions as text")
                .remedy(report.with_option("--tree"), "the call tree as text")
        }
        Remedies::Demo | Remedies::Machines | Remedies::Fleet => {
            failure.remedy(again.with_option("--plain"), lines)
        }
    })
}

/// Returns the window of the screen in whole seconds, at least one: the engine counts in buckets of
/// a second.
fn window(config: &Config) -> Span {
    let seconds = config.show.window.as_secs();
    Span::Seconds(seconds.clamp(1, u64::from(u32::MAX) - 1) as u32)
}

/// Runs the screen until the user leaves it; with a `source`, runs the dialog of lines about this
/// source instead.
pub(super) async fn show(
    source: Option<plain::Source>,
    feed: watch::Receiver<Arc<Snapshot>>,
    control: mpsc::UnboundedSender<Command>,
    options: ScreenOptions,
) -> Result<Ended, Failure> {
    match source {
        Some(source) => {
            let ended = plain::run(feed, control, options, source).await;
            ended.map_err(|error| Failure::failed(error.to_string()))
        }
        None => {
            let ended = run::run(feed, control, options).await;
            ended.map_err(|error| Failure::failed(format!("the screen failed: {error}")))
        }
    }
}

/// Starts the engine and the screen, and ends both in order:
///
/// ```text
/// engine ── snapshots ──► screen          (a watch channel: only the newest one counts)
/// engine ◄── commands ─── screen          by `pass_on`
/// engine ◄── output, end ── the command   by `look_after`
/// ```
///
/// When the user leaves the screen, engine and command are ended before the summary is printed.
async fn screen(
    config: &Config,
    subject: Subject,
    mut options: ScreenOptions,
) -> Result<Exit, Failure> {
    let schedule = Schedule::Live {
        window: options.window,
        refresh: config.show.delay,
    };
    let (publish, feed) = watch::channel(Arc::new(Snapshot::default()));
    let last = feed.clone();
    // Sends an error that ends the screen from outside.
    let (fail, failed) = oneshot::channel();
    let mut fail = Some(fail);
    let publish = move |snapshot: Arc<Snapshot>| {
        // If sampling fails before there is a sample to look at, the screen is closed and the
        // reason is printed on the terminal.
        if let TargetState::Failed(why) = &snapshot.run.target
            && snapshot.health.taken_run == 0
            && let Some(fail) = fail.take()
        {
            return fail.send(why.clone()).is_err();
        }
        publish.send(snapshot).is_ok()
    };
    let mut sampling = sampling::start(
        config,
        subject,
        schedule,
        consent(&config.look),
        Box::new(publish),
    )?
    .give_up_rights();
    let (control, controls) = mpsc::unbounded_channel();
    let target = kept::name(&sampling.scope);
    options.begin = begin(&config.look, &target);
    options.freeze_after = config.show.freeze_after;
    let began = options.begin;
    let (stop, stopped) = oneshot::channel();
    let command = tokio::spawn(look_after(
        sampling.started.take(),
        sampling.commands.clone(),
        sampling.scope.clone(),
        stopped,
    ));
    tokio::spawn(pass_on(controls, sampling.commands.clone()));
    let source = config.look.plain.then_some(plain::Source::Live);
    let screen = show(source, feed, control, options);
    let ended = tokio::select! {
        ended = screen => ended,
        Ok(why) = failed => Err(Failure::of_sampling(&why)),
    };
    // This ends the command if it is still running: `look_after` waits for it.
    drop(stop);
    sampling.engine.finish();
    let command = command.await.unwrap_or(Ok(false));
    let ended = ended?;
    remember(&config.look, &target, began, ended.kept);
    if let Some(is_allowed) = ended.fetches {
        kept::save_fetching(is_allowed);
    }
    say_goodbye(
        &ended,
        &last.borrow(),
        command.as_ref().is_ok_and(|was_ended| *was_ended),
    );
    command?;
    Ok(match ended.exit {
        run::Exit::Signal(signal) => Exit::Signal(signal as u8),
        run::Exit::Quit | run::Exit::TerminalLost => Exit::Done,
    })
}

/// Prints the summary that remains on the terminal after the screen.
fn say_goodbye(ended: &Ended, last: &Snapshot, is_command_ended: bool) {
    let run = &last.health;
    let seconds = last.run.elapsed.as_secs();
    let line = format!(
        "proftop: {} of {} in {}:{:02}, {} lost",
        crate::words::units::counted(run.taken_run, "sample"),
        last.run.scope,
        seconds / 60,
        seconds % 60,
        run.lost_run
    );
    if !terminal::is_writable() {
        return;
    }
    // Writing fails if the terminal is gone; then the summary is of no use anyway.
    let _ = writeln!(std::io::stdout(), "{line}");
    if is_command_ended {
        let ended = format!("proftop: {} was asked to end (SIGTERM)", last.run.scope);
        let _ = writeln!(std::io::stdout(), "{ended}");
    }
    StartTrace {
        first_paint: ended.milestones.first_paint,
        first_samples: ended.milestones.first_samples,
        first_names: ended.milestones.first_names,
    }
    .print();
}

/// Passes commands of the screen on to the engine, until either of them ends.
async fn pass_on(mut controls: mpsc::UnboundedReceiver<Command>, commands: Commands) {
    while let Some(command) = controls.recv().await {
        if commands.send(command).is_err() {
            return;
        }
    }
}

/// Reads the output of the started command, tells the engine when the command ends, and ends the
/// command if the user leaves the screen before that. Returns whether it did.
async fn look_after(
    started: Option<oneshot::Receiver<Result<RunningCommand, StartError>>>,
    commands: Commands,
    scope: Arc<str>,
    mut stopped: oneshot::Receiver<()>,
) -> Result<bool, Failure> {
    // No command was given: the target runs already.
    let Some(started) = started else {
        return Ok(false);
    };
    // The engine ended before it let the command run.
    let Ok(result) = started.await else {
        return Ok(false);
    };
    let mut running = match result {
        Ok(running) => running,
        Err(error) => {
            let words = error.to_string();
            // The command never ran. The screen shows the reason until the user leaves; then
            // proftop ends with that error.
            let _ = commands.send(Command::TargetEnded { words, at_ns: 0 });
            let _ = stopped.await;
            return Err(error.into());
        }
    };
    if let Some((stdout, stderr)) = running.take_output() {
        for pipe in [
            std::os::fd::OwnedFd::from(stdout),
            std::os::fd::OwnedFd::from(stderr),
        ] {
            if let Ok(pipe) = tokio::net::unix::pipe::Receiver::from_owned_fd(pipe) {
                tokio::spawn(read_lines(pipe, commands.clone()));
            }
        }
    }
    let mut ticks = tokio::time::interval(std::time::Duration::from_millis(20));
    let status = loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = &mut stopped => {
                // The command was started for the user, who has now left.
                return Ok(running.terminate().unwrap_or(false));
            }
        }
        match running.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => break status,
            Err(error) => {
                return Err(Failure::failed(format!(
                    "cannot wait for the command: {error}"
                )));
            }
        }
    };
    let words = process_end::words(&scope, status);
    let _ = commands.send(Command::TargetEnded {
        words,
        at_ns: probe::now_ns(),
    });
    Ok(false)
}

/// Sends each line of the command's output to the engine, without characters that a terminal acts
/// on.
async fn read_lines(pipe: impl AsyncRead + Unpin, commands: Commands) {
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = &text[..text.len().min(LINE_BYTES_MAX)];
        let text = symbolize::sanitize(text).into_owned();
        if commands.send(Command::Output(vec![text])).is_err() {
            return;
        }
    }
}

/// Returns the options of the screen from the command line and the configuration. The first
/// complaint about the configuration is shown on the screen; all of them were printed before. It is
/// an error if the file of the baseline cannot be read or has no samples.
pub fn screen_options(
    look: &Look,
    baseline: Option<OpenBaseline>,
    window: Span,
) -> Result<ScreenOptions, Failure> {
    let baseline = baseline.map(OpenBaseline::read).transpose()?;
    let first = look.complaints.first().map(ToString::to_string);
    let mistakes: usize = look.complaints.iter().map(Complaint::mistakes).sum();
    Ok(ScreenOptions {
        theme: themes::theme(look.theme, look.color, look.ascii),
        mouse: look.mouse,
        begin: configured(look),
        filter: look.filter.clone(),
        metric: 0,
        baseline,
        keymap: look.keymap.clone(),
        complaint: first.map(|what| match mistakes {
            1 => what,
            count => format!("{what} (and {} more)", count - 1),
        }),
        window,
        freeze_after: None,
        sources: look.sources.clone(),
    })
}

/// The file of `--baseline`, and the places where names are looked up that it does not have.
pub struct OpenBaseline {
    input: Input,
    places: Places,
}

/// Opens the file of `--baseline`, if there is one. Standard input is refused, because keys come from
/// there.
pub fn open_baseline(look: &Look) -> Result<Option<OpenBaseline>, Failure> {
    let Some(path) = look.baseline.as_deref() else {
        return Ok(None);
    };
    if input::is_stdin(path) {
        return Err(Failure::usage(
            "--baseline reads a file, not standard input",
        ));
    }
    Ok(Some(OpenBaseline {
        input: Input::open(path)?,
        places: Places::of_this_machine(),
    }))
}

impl OpenBaseline {
    /// Has the file read by a process without rights, which hands it back as a recording of ours. That
    /// is read on a thread that has given up the rights that sampling takes.
    fn read(self) -> Result<Baseline, Failure> {
        let OpenBaseline { input, places } = self;
        let name = input.name().to_owned();
        let made = apart::make(
            &apart::descriptors([&input], places.descriptors()),
            move || apart::recording(&open_file::open(input, &places)?.view),
        )?;
        let opened = open_file::read_made(Box::new(io::Cursor::new(made.bytes)))
            .map_err(|why| Failure::failed(format!("cannot read {name}: {why}")))?;
        match opened.view.end_ns() {
            Some(_) => Ok(Baseline::of_file(opened.view, format!("all of {name}"))),
            None => Err(Failure::failed(format!(
                "there are no samples in {name} to compare with"
            ))),
        }
    }
}

/// Returns the initial layout of the screen by the command line and the configuration, which `look`
/// has merged already.
fn configured(look: &Look) -> Kept {
    Kept {
        view: look.start,
        sort: look.sort.into(),
        unit: look.unit,
        ..Kept::default()
    }
}

/// Returns whether debuginfod servers may be asked. The screen asks the user once and remembers the
/// answer.
fn consent(look: &Look) -> Consent {
    let answered = if look.fresh { None } else { kept::fetching() };
    match answered {
        // Without a screen the user cannot be asked.
        _ if look.plain => Consent::Given,
        Some(true) => Consent::Given,
        Some(false) => Consent::Refused,
        None => Consent::Ask,
    }
}

/// Returns the initial layout of the screen: as the command line says, else as this target was left
/// last time, else as the configuration says.
pub fn begin(look: &Look, target: &str) -> Kept {
    let configured = configured(look);
    if look.fresh || look.plain {
        return configured;
    }
    let mut begin = kept::load(target).unwrap_or(configured);
    // The view is that of the command line or the configuration, not the one that was left.
    begin.view = configured.view;
    if look.asks_sort {
        (begin.sort, begin.inverted) = (configured.sort, false);
    }
    if look.asks_unit {
        begin.unit = configured.unit;
    }
    begin
}

/// Saves the layout in which the screen of this target was left, if it has changed: options of the
/// command line alone are not kept for the next time.
pub fn remember(look: &Look, target: &str, began: Kept, ended: Kept) {
    if !look.fresh && began != ended {
        kept::save(target, ended);
    }
}
