//! The table of what was measured.

use std::fmt;

/// A measurement.
#[derive(Debug)]
pub struct Row {
    pub what: String,
    pub load: String,
    pub figure: String,
    /// What the figure should be; empty if there is no such number.
    pub aim: String,
    /// `None` if there is no aim, or if this run is too small to tell.
    pub is_reached: Option<bool>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reached = match self.is_reached {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        let cells = [&*self.what, &self.load, &self.figure, &self.aim, reached];
        write!(f, "| {} |", cells.join(" | "))
    }
}

/// Prints all measurements as a table of Markdown.
pub fn print(rows: &[Row]) {
    println!("| what | load | figure | aim | reached |");
    println!("| --- | --- | --- | --- | --- |");
    rows.iter().for_each(|row| println!("{row}"));
}
