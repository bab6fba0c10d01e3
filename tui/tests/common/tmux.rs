//! A *terminal* is a tmux server of its own, with one window and a shell in it.
//! No function here sleeps for a fixed time: each waits until something is shown.

use super::PROFTOP;
use std::cell::RefCell;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use test_support::{skip, wait_for};

/// The prompt of the shell, which shows that it waits for a command.
pub const PROMPT: &str = "ready> ";

pub struct Terminal {
    socket: String,
    last: RefCell<String>,
}

impl Terminal {
    /// Opens a terminal of this size. Returns None where tmux is missing, and prints that.
    pub fn open(width: u16, height: u16) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if Command::new("tmux").arg("-V").output().is_err() {
            skip("needs tmux");
            return None;
        }
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let terminal = Self {
            socket: format!("proftop-test-{}-{count}", std::process::id()),
            last: RefCell::default(),
        };
        let shell = format!(
            "env -u ENV PS1='{PROMPT}' LC_ALL=C.UTF-8 PROFTOP_CONFIG=/dev/null XDG_STATE_HOME=/dev/null PROFTOP='{PROFTOP}' sh -i"
        );
        let mut command = Command::new("tmux");
        command.args(["-u", "-L", &terminal.socket, "-f", "/dev/null"]);
        command.args(["new-session", "-d"]);
        command.args(["-x", &width.to_string(), "-y", &height.to_string()]);
        let output = command.arg(shell).output().expect("tmux starts");
        assert!(
            output.status.success(),
            "{}",
            super::text(&output.stderr).trim_end()
        );
        terminal.wait_for(PROMPT.trim_end());
        Some(terminal)
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-u", "-L", &self.socket]).args(args);
        let output = command.output().expect("tmux starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Types a line into the shell.
    pub fn type_line(&self, line: &str) {
        self.type_text(line);
        self.keys(&["Enter"]);
    }

    /// Types a text.
    pub fn type_text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Clears the screen, and waits for that: a line typed before would be cleared as well, and the
    /// test could not see what the shell is doing.
    pub fn clear(&self) {
        self.type_line("clear");
        self.wait("an empty screen", |screen| screen.trim() == PROMPT.trim());
    }

    /// Starts proftop with these arguments, and waits for its screen.
    pub fn start(&self, args: &str) {
        self.type_line(&format!("\"$PROFTOP\" {args}"));
        self.wait("the screen", |screen| screen.starts_with("proftop "));
    }

    /// Presses keys, by their names in tmux: `q`, `C-z`, `Enter`.
    pub fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    pub fn resize(&self, width: u16, height: u16) {
        let (width, height) = (width.to_string(), height.to_string());
        self.tmux(&["resize-window", "-x", &width, "-y", &height]);
    }

    /// Returns the text that is on the screen now.
    pub fn screen(&self) -> String {
        let screen = self.tmux(&["capture-pane", "-p"]);
        self.last.replace(screen.clone());
        screen
    }

    /// Returns a property of the window by tmux's format, for example `#{cursor_y}`.
    pub fn property(&self, format: &str) -> String {
        self.tmux(&["display-message", "-p", format])
            .trim_end()
            .to_owned()
    }

    /// Waits for a screen of which `holds` returns true, and returns that screen.
    pub fn wait(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        wait_for(what, || {
            let screen = self.screen();
            holds(&screen).then_some(screen)
        })
    }

    pub fn wait_for(&self, marker: &str) -> String {
        self.wait(marker, |screen| screen.contains(marker))
    }

    /// Waits until the shell is back on the screen that it had before, and returns that screen.
    pub fn wait_for_shell(&self) -> String {
        let screen = self.wait("the shell", |screen| {
            screen.trim_end().ends_with(PROMPT.trim_end())
        });
        let modes = "#{alternate_on}#{mouse_any_flag}#{cursor_flag}";
        assert_eq!(self.property(modes), "001", "screen, mouse, cursor");
        screen
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("the last screen:\n{}", self.last.borrow());
        }
        let socket = self.tmux(&["display-message", "-p", "#{socket_path}"]);
        self.tmux(&["kill-server"]);
        // The server leaves it.
        _ = std::fs::remove_file(socket.trim_end());
    }
}
