//! `config`: prints the possible settings, those in effect, and the files that have them.

use super::{complain, print};
use crate::cli::ConfigTask;
use crate::config;
use crate::config::ConfigFile;
use crate::failure::{Exit, Failure};
use crate::user_files::Refusal;
use std::fmt::Write as _;

/// Runs `config`: prints the settings in effect, prints where they are read from, or writes
/// a file with all of them commented out.
pub fn run(task: ConfigTask) -> Result<Exit, Failure> {
    match task {
        ConfigTask::Show => {
            let (settings, complaints) = config::load();
            complain(&complaints);
            print(&config::effective(&settings))
        }
        ConfigTask::Path => print(&places()),
        ConfigTask::Init => init(),
    }
}

/// Returns a line for each configuration file, saying whether it was read.
fn places() -> String {
    let mut text = String::new();
    for place in config::files() {
        let is_there = match place.read() {
            Ok(Some(_)) => "is read".to_owned(),
            Ok(None) => "is not there".to_owned(),
            Err(why) => why,
        };
        let _ = writeln!(text, "{}  {is_there}", place.name());
    }
    if text.is_empty() {
        text.push_str("no file is read: PROFTOP_CONFIG is /dev/null\n");
    }
    text
}

/// Writes the user's own configuration file, which is the last of the files that are read. An
/// existing file is never overwritten.
fn init() -> Result<Exit, Failure> {
    let Some(place) = config::files().pop().filter(ConfigFile::is_users) else {
        return Err(Failure::failed(
            "there is no place to write to: no home directory, or PROFTOP_CONFIG is /dev/null",
        ));
    };
    place.write_new(&config::template()).map_err(|refusal| {
        let failure = Failure::failed(format!("cannot write {}: {refusal}", place.name()));
        match refusal {
            Refusal::Exists => failure.more("Edit it, or move it away and do this again."),
            _ => failure,
        }
    })?;
    print(&format!(
        "wrote {}: all settings in it are commented out\n",
        place.name()
    ))
}
