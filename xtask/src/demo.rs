//! The picture of the README: the real screen on the recording that everybody
//! can open, in a terminal that nobody sees. It is drawn anew from the program,
//! so that it cannot show what is not there.

use crate::fingerprint::workspace;
use crate::picture::{self, Scene};
use anyhow::{Context as _, Result, bail};
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub const PICTURE: &str = "assets/demo.svg";

const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

/// What is pressed, and what is on the screen once it has been drawn.
const STEPS: [(&[&str], &str); 5] = [
    (&[], "FUNCTION"),
    (&["3"], "TOP-DOWN"),
    (&["2", "*"], "hot path"),
    (&["1", "Enter"], "CALLERS"),
    (&["BSpace", "6"], "scale"),
];

/// The longest that a step may take.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn draw() -> Result<()> {
    let program = build()?;
    let terminal = Terminal::start(&program)?;
    let mut scenes = Vec::new();
    for (keys, awaited) in STEPS {
        for key in keys {
            terminal.press(key)?;
        }
        scenes.push(terminal.scene(awaited)?);
    }
    let svg = picture::svg(&scenes);
    std::fs::write(workspace().join(PICTURE), &svg)?;
    println!("{PICTURE}: {} scenes, {} bytes", scenes.len(), svg.len());
    Ok(())
}

fn build() -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--package", "proftop"]);
    if !cargo.current_dir(workspace()).status()?.success() {
        bail!("proftop does not build");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| workspace().join("target"), PathBuf::from);
    Ok(target.join("debug/proftop"))
}

/// A server of tmux of our own, with one window. Dropping it ends both.
struct Terminal {
    socket: String,
}

impl Terminal {
    fn start(program: &std::path::Path) -> Result<Terminal> {
        let socket = format!("proftop-demo-{}", std::process::id());
        let terminal = Terminal { socket };
        let (columns, rows) = (COLUMNS.to_string(), ROWS.to_string());
        let command = format!(
            "LC_ALL=C.UTF-8 {} demo --fresh --theme dark",
            program.to_string_lossy()
        );
        let size = ["-x", columns.as_str(), "-y", rows.as_str()];
        let arguments = [&["new-session", "-d"][..], &size, &[command.as_str()]].concat();
        terminal.tmux(&arguments)?;
        Ok(terminal)
    }

    fn press(&self, key: &str) -> Result<()> {
        self.tmux(&["send-keys", key]).map(drop)
    }

    /// What is shown once the text is there and nothing moves any more.
    fn scene(&self, awaited: &str) -> Result<Scene> {
        let began = Instant::now();
        let mut before = String::new();
        loop {
            let shown = self.tmux(&["capture-pane", "-p", "-e"])?;
            if shown == before && shown.contains(awaited) {
                return Ok(Scene::of_terminal(&shown, COLUMNS, ROWS));
            }
            if began.elapsed() > PATIENCE {
                bail!("`{awaited}` does not come on the screen:\n{shown}");
            }
            before = shown;
            sleep(Duration::from_millis(700));
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
