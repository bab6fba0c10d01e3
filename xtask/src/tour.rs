//! Draws the pictures of docs/tour.md: the real screen on a running program, in an invisible
//! terminal. They are drawn again when a screen has changed; numbers differ each time.

use crate::dist;
use crate::fingerprint::workspace;
use crate::picture;
use crate::terminal::{Terminal, build};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const FOLDER: &str = "docs/tour";

/// A picture: its name, the keys that lead there from the previous one, and a text that is on the
/// screen then.
type Picture = (&'static str, &'static [&'static str], &'static str);

/// An entry in a list of keys that waits for some seconds, so that calls are counted.
const PAUSE: &str = "pause";

/// Pictures of a program that is slow. First the window of ten seconds is filled.
const SLOW: &[Picture] = &[
    ("functions", &[], "00:00:12"),
    ("callers", &["Enter"], "CALLERS"),
    ("code", &["7"], "discounts[i].customer"),
    ("flame", &["1", "3"], "TOP-DOWN"),
    ("write", &["1", "w"], "Format"),
];

/// Pictures of the same program with a faster search, compared with a recording of the slow one.
const FASTER: &[Picture] = &[("difference", &[], "00:00:12")];

/// Pictures of the waits of the faster program.
const WAITING: &[Picture] = &[
    ("waiting", &[], "00:00:12"),
    ("lock", &["Enter"], "CALLERS"),
    ("threads", &["BSpace", "5"], "STATES"),
    ("health", &["8"], "WHAT IS MISSING"),
];

/// Pictures of a function whose calls are measured.
const PROBE: &[Picture] = &[(
    "probe",
    &["1", "/", "append_journal", "Enter", "l", PAUSE],
    "HOW LONG",
)];

/// Draws all pictures. Requires root, a C compiler and tmux.
pub fn draw() -> Result<()> {
    let program = build()?;
    let work = dist::target_folder()?.join("tour");
    std::fs::create_dir_all(&work).context("cannot make a folder")?;
    let orders = compile(&work)?;
    let proftop = program.display();

    let slow = Running::start(&orders, &[])?;
    take(&format!("{proftop} -p {}", slow.pid()), SLOW)?;
    let before = work.join("before.pft");
    let pid = slow.pid().to_string();
    let record = ["record", "-d", "10s", "-p", &pid, "-o"];
    let recorded = Command::new(&program).args(record).arg(&before).status();
    if !recorded.context("cannot start proftop")?.success() {
        bail!("nothing was recorded");
    }
    drop(slow);

    let faster = Running::start(&orders, &["--sorted"])?;
    let pid = faster.pid();
    let before = before.display();
    take(&format!("{proftop} --baseline {before} -p {pid}"), FASTER)?;
    take(&format!("{proftop} --metric off-cpu -p {pid}"), WAITING)?;
    take(&format!("{proftop} --metric wall -p {pid}"), PROBE)
}

/// Starts proftop and draws its screens.
fn take(command: &str, pictures: &[Picture]) -> Result<()> {
    let terminal = Terminal::start(command)?;
    terminal.scene("FUNCTION")?;
    for (name, keys, awaited) in pictures {
        for key in *keys {
            if *key == PAUSE {
                sleep(Duration::from_secs(7));
            } else {
                terminal.press(key)?;
            }
        }
        let scene = terminal.scene(awaited)?;
        let path = workspace().join(FOLDER).join(name).with_extension("svg");
        std::fs::write(&path, picture::svg(&[scene]))?;
        println!("{}", path.display());
    }
    Ok(())
}

fn compile(folder: &Path) -> Result<PathBuf> {
    let program = folder.join("orders");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-g", "-pthread", "-o"]);
    cc.arg(&program);
    cc.arg(workspace().join(FOLDER).join("orders.c"));
    if !cc.status().context("cannot run cc")?.success() {
        bail!("orders.c does not compile");
    }
    Ok(program)
}

/// A program in the background. It is killed when this is dropped.
struct Running(Child);

impl Running {
    fn start(program: &Path, arguments: &[&str]) -> Result<Running> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        command.current_dir(program.parent().unwrap_or(Path::new("/")));
        command.spawn().map(Running).context("cannot start orders")
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}
