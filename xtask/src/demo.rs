//! Draws the picture of the README: the real screen on the demo recording, in an invisible
//! terminal. It is made by the program itself, so that it cannot show what does not exist.

use crate::fingerprint::workspace;
use crate::picture;
use crate::terminal::{Terminal, build};
use anyhow::Result;

pub const PICTURE: &str = "assets/demo.svg";

/// The keys to press in each step, and a text that is on the screen once it has been drawn.
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
