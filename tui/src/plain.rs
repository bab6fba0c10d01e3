//! The *plain* dialog: a line in, lines out, for screen readers and terminals
//! that can do nothing else. It has the screen's app and answers, and no screen:
//! nothing is drawn over, and no byte means anything but its letter.

/// Lines, some of them numbered.
mod answer;
mod calls;
mod code;
/// Which commands there are: the table.
pub mod command;
/// A line in, an answer out.
mod dialog;
/// Where lines come from.
mod input;
mod interrupt;
mod knobs;
mod lists;
mod probes;
/// One line and its answer.
mod reply;
/// The app without a screen.
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
use profile::Cancel;
use session::{Session, Sources};
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::thread;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};

const PROMPT: &str = "proftop> ";

/// The size of the screen that is never drawn. Views need one to work.
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
    /// A pipe, so that commands have to come from the terminal itself.
    StandardInput,
}

/// Runs the dialog until the user leaves it, or a signal ends it. The error is the whole
/// sentence for the user.
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
            // Sending fails if a signal has ended the dialog.
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
                // After the ^C that the terminal has written.
                let _ = writeln!(io::stdout());
                break number(SignalKind::interrupt());
            },
        }
    };
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
    // Lists open their view themselves.
    app.view = ViewId::Functions;
    if let Err(why) = app.begin_with(options.filter, options.metric, None) {
        app.detail = Detail::Notice(why);
    }
    // Shown by `diff`.
    app.begin_with_baseline(options.baseline);
    if let Some(what) = options.complaint {
        app.detail = Detail::Notice(Notice::Configuration(what));
    }
    app
}

/// Reads and answers lines until the end of input, or until nobody reads the answers.
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
                }
                return Ok(Exit::Quit);
            }
            Err(_) => return Ok(Exit::TerminalLost),
        };
        // A long one is stopped while it is written, too.
        let cancel = dialog.session.interrupt.begin();
        let said = say(&lines, &cancel);
        dialog.session.end();
        if let Err(error) = said {
            return unsaid(error);
        }
    }
    Ok(Exit::Quit)
}

/// Returns how the dialog ends when an answer cannot be written. It is no failure if nobody
/// reads it: a pipe was closed (EPIPE), or a terminal has gone (EIO).
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
