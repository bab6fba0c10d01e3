//! The *plain* dialog reads commands as lines and answers with lines, for screen readers and for
//! terminals that can do nothing else. It uses the same app and the same answers as the screen, but
//! draws nothing: it writes only text, without escape sequences.

/// An answer: lines, some of them numbered.
mod answer;
mod calls;
mod code;
/// The table of commands.
pub mod command;
/// Turns a line that was typed into an answer.
mod dialog;
/// Reads lines from standard input or the terminal.
mod input;
mod interrupt;
mod knobs;
mod lists;
mod probes;
/// One line with its answer.
mod reply;
/// The app, without a screen.
mod session;
mod tell;
mod time;
mod tree;
mod write;

#[cfg(test)]
mod tests;

use crate::app::App;
use crate::app::mode::Detail;
use crate::code::FileLibrary;
use crate::geometry::Size;
use crate::notice::Notice;
use crate::reader::Reader;
use crate::run::{Ended, Exit, Milestones, ScreenOptions};
use crate::view_id::ViewId;
use dialog::Dialog;
use engine::Command;
use engine::snapshot::Snapshot;
use input::{Input, Line};
use interrupt::Interrupt;
use probe::haste;
use profile::Cancel;
use session::{Session, Sources};
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::thread;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};

const PROMPT: &str = "proftop> ";

/// The size of the screen that is never drawn. Views compute their rows with it.
const SIZE: Size = Size {
    width: 80,
    height: 24,
};

/// Where samples come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Live,
    /// A file, which is read to its end before the first answer.
    File,
    /// Standard input; commands are then read from the terminal itself.
    StandardInput,
}

/// Runs the dialog until the user leaves it or a signal ends it. The error is a complete sentence
/// for the user.
pub async fn run(
    feed: watch::Receiver<Arc<Snapshot>>,
    control: mpsc::UnboundedSender<Command>,
    options: ScreenOptions,
    source: Source,
) -> io::Result<Ended> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let interrupt = Interrupt::default();
    let input = Input::open(source == Source::StandardInput)?;
    let ascii = options.theme.is_ascii();
    let begin = options.begin;
    let sources = Sources {
        feed,
        control,
        library: Box::new(FileLibrary::new(options.sources.clone())),
        ends_soon: source == Source::File,
    };
    let session = Session::new(app(options), sources, interrupt.clone());
    let dialog = Dialog::new(session, ascii);
    let (tell, left) = oneshot::channel();
    thread::Builder::new()
        .name("dialog".into())
        .spawn(move || {
            // Sending fails if a signal has already ended the dialog.
            let _ = tell.send(converse(dialog, input));
        })?;
    let number = |kind: SignalKind| Exit::Signal(kind.as_raw_value());
    let reader = Reader::of(io::stdout())?;
    let mut left = left;
    let exit = loop {
        tokio::select! {
            left = &mut left => break left.unwrap_or(Ok(Exit::TerminalLost))?,
            () = reader.gone() => break Exit::TerminalLost,
            _ = terminate.recv() => break number(SignalKind::terminate()),
            _ = hangup.recv() => break number(SignalKind::hangup()),
            _ = interrupted.recv() => if !interrupt.press() {
                // The terminal has echoed ^C; the shell's prompt goes on the next line.
                let _ = writeln!(io::stdout());
                break number(SignalKind::interrupt());
            },
        }
    };
    haste::begin();
    Ok(Ended {
        exit,
        kept: begin,
        fetches: None,
        milestones: Milestones::default(),
    })
}

fn app(options: ScreenOptions) -> App {
    let mut app = App::new(SIZE, options.window, std::process::id(), false);
    options.begin.restore(&mut app);
    // The commands that list something open its view themselves.
    app.view = ViewId::Functions;
    if let Err(why) = app.begin_with(options.filter, options.metric, None) {
        app.lines.detail = Detail::Notice(why);
    }
    // The command `diff` shows it.
    app.begin_with_baseline(options.baseline);
    if let Some(what) = options.complaint {
        app.lines.detail = Detail::Notice(Notice::Configuration(what));
    }
    app
}

/// Reads and answers lines until the end of input, or until the reader of the answers is gone.
fn converse(mut dialog: Dialog, mut input: Input) -> io::Result<Exit> {
    let is_asked = input.is_terminal() && io::stdout().is_terminal();
    if is_asked && let Err(error) = say(&dialog.greet(), &Cancel::new()) {
        return unsaid(error);
    }
    while !dialog.is_over {
        if is_asked && let Err(error) = prompt() {
            return unsaid(error);
        }
        let lines = match input.read() {
            Ok(Line::Text(line)) => faults::catch("answering a line", || dialog.answer(&line))
                .unwrap_or_else(|fault| vec![fault.to_string()]),
            Ok(Line::TooLong) => vec!["that line is too long".into()],
            Ok(Line::End) => {
                if is_asked {
                    let _ = writeln!(io::stdout());
                } else {
                    // A script that asks nothing wants to know whether the file can be read. ^C ends
                    // the program, as no answer is running.
                    dialog.session.begin();
                    dialog.session.end();
                    dialog.session.await_end_of_file();
                }
                return Ok(Exit::Quit);
            }
            Err(_) => return Ok(Exit::TerminalLost),
        };
        // ^C also stops a long answer while it is being written.
        let cancel = dialog.session.interrupt.begin();
        let said = say(&lines, &cancel);
        dialog.session.end();
        if let Err(error) = said {
            return unsaid(error);
        }
    }
    Ok(Exit::Quit)
}

/// Returns how the dialog ends when an answer cannot be written. If its reader is gone, that is not
/// a failure: a pipe was closed (EPIPE), or a terminal was closed (EIO).
fn unsaid(error: io::Error) -> io::Result<Exit> {
    match rustix::io::Errno::from_io_error(&error) {
        Some(rustix::io::Errno::PIPE | rustix::io::Errno::IO) => Ok(Exit::TerminalLost),
        _ => Err(io::Error::other(format!(
            "failed to write to standard output: {error}"
        ))),
    }
}

fn prompt() -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(PROMPT.as_bytes())?;
    out.flush()
}

fn say(lines: &[String], cancel: &Cancel) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in lines {
        if cancel.is_cancelled() {
            writeln!(out, "stopped")?;
            break;
        }
        writeln!(out, "{line}")?;
    }
    out.flush()
}
