//! proftop: top for code.

#![forbid(unsafe_code)]

mod action;
mod app;
mod batch;
mod calendar;
mod choices;
mod cli;
mod code;
mod commands;
mod config;
mod context;
mod desk;
mod dialogs;
mod failure;
/// Made-up snapshots.
#[cfg(test)]
mod fixture;
mod geometry;
mod kept;
mod knobs;
mod lists;
mod mapped;
mod notice;
mod order;
mod output;
mod plain;
mod reader;
mod run;
mod screen;
mod target;
mod terminal;
mod trace;
mod user_files;
mod values;
mod view_id;
mod views;
mod widgets;
mod words;

use std::process::ExitCode;

fn main() -> ExitCode {
    trace::process_begins();
    // While there is one thread. Without readers files are opened here.
    _ = probe::files::start_readers();
    probe::memory::share_arenas();
    let outcome = cli::parse(std::env::args_os(), config::load).and_then(commands::run);
    probe::files::end_readers();
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprint!("{failure}");
            failure.exit.into()
        }
    }
}
