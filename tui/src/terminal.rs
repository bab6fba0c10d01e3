//! The *terminal* is borrowed: raw mode, the alternate screen and the mouse are taken when we enter
//! it. They are given back by `Drop`, before the process is stopped (^Z), and when a thread panics.

/// Separates Esc from a key that arrived together with it.
mod escape;
/// The background color of the terminal.
pub mod ground;
/// Turns a frame into bytes, which are written at once.
mod painter;
/// Writes frames on a thread of its own.
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

/// How long we wait at the end for a terminal that takes no bytes (it is stopped by ^S, or its
/// window hangs). After this time it is not restored.
pub const RESTORE_WAIT: Duration = Duration::from_millis(500);

/// Whether we have entered the terminal. It is global because a panic on any thread has to restore
/// the terminal.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// Keeps the terminal while it lives, except between [`leave`](TerminalGuard::leave) and
/// [`enter`](TerminalGuard::enter).
#[derive(Debug)]
pub struct TerminalGuard {
    /// Whether mouse events are sent to us.
    mouse: bool,
}

impl TerminalGuard {
    /// Enters the terminal. With `mouse`, mouse events are sent to us.
    pub fn new(mouse: bool) -> io::Result<Self> {
        let guard = TerminalGuard { mouse };
        guard.enter()?;
        Ok(guard)
    }

    /// Enters the terminal again after [`leave`](TerminalGuard::leave).
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

    /// Gives the terminal back for some time, to another program or before a stop.
    pub fn leave(&self) {
        restore();
    }

    /// Remembers whether mouse events are sent to us, and returns the bytes that switch them on or
    /// off.
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

/// Whether the terminal is gone, either the one that keys come from or the one we draw on. A signal
/// does not always report that: only the session that the terminal controls gets SIGHUP.
pub fn is_gone() -> bool {
    let (keys, screen) = (io::stdin(), io::stdout());
    keys.is_terminal() && reader::is_gone(keys.as_fd()) || reader::is_gone(screen.as_fd())
}

/// Whether the terminal takes bytes within [`RESTORE_WAIT`], so that a short message would not
/// block for long.
pub fn is_writable() -> bool {
    painter::is_writable_within(RESTORE_WAIT)
}

/// Gives the terminal back if we have entered it. Errors are ignored, because it may be gone.
fn restore() {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    if !is_writable() {
        // The terminal takes no bytes, and writing would block the end of the program.
        let _ = disable_raw_mode();
        return;
    }
    let mut bytes = Vec::new();
    let queued = queue!(
        bytes,
        EndSynchronizedUpdate,
        DisableMouseCapture,
        ResetColor,
        // Some terminals keep lines of the alternate screen if the window grew meanwhile.
        Clear(ClearType::All),
        LeaveAlternateScreen,
        Show
    );
    let _ = queued.and_then(|()| painter::write_all(&bytes));
    let _ = disable_raw_mode();
}

/// Installs a hook that restores the terminal before a panic ends the program, so that the message
/// can be read and the shell can be used. A panic that is caught is reported by the code that
/// catches it.
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

/// The longest text that is sent to the clipboard, in bytes of base64. Terminals drop longer ones.
const CLIPBOARD_BYTES_MAX: usize = 74_000;

/// Returns the bytes that put a text into the clipboard of the machine that the terminal runs on.
/// OSC 52: `ESC ] 52 ; c ; base64 BEL`.
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
