//! The picture of the README: the real screen on the recording that everybody
//! can open, in a terminal that nobody sees. It is drawn anew from the program,
//! so that it cannot show what is not there.

use crate::fingerprint::workspace;
use crate::picture;
use crate::terminal::{Terminal, build};
use anyhow::Result;

pub const PICTURE: &str = "assets/demo.svg";

/// What is pressed, and what is on the screen once it has been drawn.
const STEPS: [(&[&str], &str); 5] = [
    (&[], "FUNCTION"),
    (&["3"], "TOP-DOWN"),
    (&["2", "*"], "hot path"),
    (&["1", "Enter"], "CALLERS"),
    (&["BSpace", "6"], "scale"),
];

pub fn draw() -> Result<()> {
    let program = build()?;
    let terminal = Terminal::start(&format!("{} demo", program.display()))?;
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
