//! `config`: what can be set, what is, and where it is written down.

use super::{complain, print};
use crate::cli::ConfigTask;
use crate::config;
use crate::config::Place;
use crate::failure::{Exit, Failure};
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};

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
    text
}

/// The user's own file, which comes last.
fn init() -> Result<Exit, Failure> {
    let Some(place) = config::files().pop() else {
        return Err(Failure::failed("there is no home directory to write to"));
    };
    if probe::privilege::InvokingUser::under_sudo().is_some() {
        return Err(Failure::usage(format!(
            "{} is yours, not root's: run it without sudo",
            place.name()
        )));
    }
    write(&place).map_err(|error| {
        let what = format!("cannot write {}: {error}", place.name());
        Failure::failed(what)
    })?;
    print(&format!(
        "wrote {}: everything in it is a comment\n",
        place.name()
    ))
}

fn write(place: &Place) -> io::Result<()> {
    if let Some(folder) = place.path.parent() {
        fs::create_dir_all(folder)?;
    }
    // What is there already is somebody's work.
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&place.path)?;
    file.write_all(config::template().as_bytes())
}
