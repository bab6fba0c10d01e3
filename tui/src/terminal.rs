//! The *terminal* is borrowed: raw mode, the alternate screen and the mouse are taken on
//! entering, and given back by `Drop`, before the process is stopped (^Z), and when
//! anything panics.

/// Esc in one piece with another key.
mod escape;
/// Its background.
pub mod ground;
/// One frame as bytes, written at once.
mod painter;
/// Writes frames on its own thread.
mod writer;

pub use escape::apart;
pub use painter::Painter;
pub use writer::Writer;

use crate::reader;
use crossterm::cursor::Show;
use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use crossterm::style::ResetColor;
use crossterm::terminal::{
    Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{Command, queue};
use std::io;
use std::io::IsTerminal as _;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long we wait, at the end, for a terminal that takes no bytes (it is stopped by ^S,
/// or its window hangs). After that it is not restored.
pub const RESTORE_WAIT: Duration = Duration::from_millis(500);

/// Whether the terminal is in our hands now. It is global because a panic on any thread has
/// to restore it.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// While this lives, the terminal is ours, but for the time between
/// [`leave`](TerminalGuard::leave) and [`enter`](TerminalGuard::enter).
#[derive(Debug)]
pub struct TerminalGuard {
    mouse: bool,
}

impl TerminalGuard {
    /// Takes the terminal; with `mouse`, clicks come to us.
    pub fn new(mouse: bool) -> io::Result<Self> {
        let guard = TerminalGuard { mouse };
        guard.enter()?;
        Ok(guard)
    }

    /// Takes the terminal again after [`leave`](TerminalGuard::leave).
    pub fn enter(&self) -> io::Result<()> {
        enable_raw_mode()?;
        ENTERED.store(true, Ordering::SeqCst);
        let mut bytes = Vec::new();
        queue!(bytes, EnterAlternateScreen)?;
        if self.mouse {
            queue!(bytes, EnableMouseCapture)?;
        }
        painter::write_all(&bytes)
    }

    /// Gives the terminal back for a while, to another program or before a stop.
    pub fn leave(&self) {
        restore();
    }

    /// Remembers whether clicks come to us, and returns the bytes that tell the terminal
    /// so.
    pub fn capture_mouse(&mut self, wanted: bool) -> io::Result<Vec<u8>> {
        self.mouse = wanted;
        if wanted {
            bytes_of(EnableMouseCapture)
        } else {
            bytes_of(DisableMouseCapture)
        }
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        restore();
    }
}

/// Whether the terminal is gone, where keys come from or where we draw. A signal does not
/// always tell that: only the session that the terminal controls gets one.
pub fn is_gone() -> bool {
    let (keys, screen) = (io::stdin(), io::stdout());
    keys.is_terminal() && reader::is_gone(keys.as_fd()) || reader::is_gone(screen.as_fd())
}

/// Whether the terminal takes bytes soon, so that a short message would not block for long.
pub fn is_writable() -> bool {
    painter::is_writable_within(RESTORE_WAIT)
}

/// Gives the terminal back, if it is ours. Errors are ignored, because it may be gone.
fn restore() {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    if !is_writable() {
        // Nobody reads: what we could say would keep us from ending.
        let _ = disable_raw_mode();
        return;
    }
    let mut bytes = Vec::new();
    let queued = queue!(
        bytes,
        EndSynchronizedUpdate,
        DisableMouseCapture,
        ResetColor,
        // Some terminals keep lines of a screen that grew while it was ours.
        Clear(ClearType::All),
        LeaveAlternateScreen,
        Show
    );
    let _ = queued.and_then(|()| painter::write_all(&bytes));
    let _ = disable_raw_mode();
}

/// Installs a hook that restores the terminal before a panic ends the program, so that its
/// message can be read and the shell can be used. A panic that is caught is reported by the
/// code that catches it.
pub fn restore_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        faults::note_place(info);
        if !faults::is_catching() {
            restore();
            before(info);
        }
    }));
}

fn bytes_of(command: impl Command) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    queue!(bytes, command)?;
    Ok(bytes)
}

/// The longest text, in bytes of base64, that is sent to the clipboard: terminals drop
/// longer ones.
const CLIPBOARD_BYTES_MAX: usize = 74_000;

/// Returns the bytes that put text into the clipboard of the terminal, on whatever machine
/// that runs. OSC 52: `ESC ] 52 ; c ; base64 BEL`.
pub fn clipboard(text: &str) -> Vec<u8> {
    let end = text.floor_char_boundary(CLIPBOARD_BYTES_MAX / 4 * 3);
    let mut bytes = b"\x1b]52;c;".to_vec();
    base64(&text.as_bytes()[..end], &mut bytes);
    bytes.push(0x07);
    bytes
}

/// Appends the input in base64 (RFC 4648, section 4).
fn base64(input: &[u8], output: &mut Vec<u8>) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in input.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            output.push(if at <= chunk.len() { letter } else { b'=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipboard_text_is_base64() {
        for (text, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            let bytes = clipboard(text);
            assert_eq!(bytes, format!("\x1b]52;c;{expected}\x07").into_bytes());
        }
        assert!(clipboard(&"é".repeat(100_000)).len() < 75_000);
    }
}
