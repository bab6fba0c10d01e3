//! An invisible terminal, in which the real program draws its screen.

use crate::fingerprint::workspace;
use crate::picture::Scene;
use anyhow::{Context as _, Result, bail};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

/// Maximum time to wait until something is on the screen.
const PATIENCE: Duration = Duration::from_secs(40);

/// Builds proftop, and returns the path of the program.
pub fn build() -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--package", "proftop"]);
    if !cargo.current_dir(workspace()).status()?.success() {
        bail!("proftop does not build");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace().join("target"), PathBuf::from);
    Ok(target.join("debug/proftop"))
}

/// A private tmux server with one window. Dropping it ends both.
pub struct Terminal {
    socket: String,
}

impl Terminal {
    /// Starts proftop in it, with this command line.
    pub fn start(command: &str) -> Result<Terminal> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let socket = format!("proftop-picture-{}-{number}", std::process::id());
        let terminal = Terminal { socket };
        let (columns, rows) = (COLUMNS.to_string(), ROWS.to_string());
        let command = format!("LC_ALL=C.UTF-8 {command} --fresh --theme dark");
        let size = ["-x", columns.as_str(), "-y", rows.as_str()];
        let arguments = [&["new-session", "-d"][..], &size, &[command.as_str()]].concat();
        terminal.tmux(&arguments)?;
        Ok(terminal)
    }

    /// Presses a key, by its name in tmux.
    pub fn press(&self, key: &str) -> Result<()> {
        self.tmux(&["send-keys", key]).map(drop)
    }

    /// Waits for the text, and returns what is shown.
    pub fn scene(&self, awaited: &str) -> Result<Scene> {
        let began = Instant::now();
        loop {
            // The effect of a key may be drawn in two steps.
            sleep(Duration::from_millis(700));
            let shown = self.tmux(&["capture-pane", "-p", "-e"])?;
            if shown.contains(awaited) {
                sleep(Duration::from_millis(700));
                let settled = self.tmux(&["capture-pane", "-p", "-e"])?;
                return Ok(Scene::of_terminal(&settled, COLUMNS, ROWS));
            }
            if began.elapsed() > PATIENCE {
                bail!("`{awaited}` does not come on the screen:\n{shown}");
            }
        }
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new("tmux")
            .args(["-L", &self.socket, "-f", "/dev/null"])
            .args(arguments)
            .output()
            .context("cannot run tmux, in which the screen is drawn")?;
        if !output.status.success() {
            bail!("tmux: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        _ = self.tmux(&["kill-server"]);
    }
}
