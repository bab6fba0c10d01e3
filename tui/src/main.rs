//! proftop: top for code.
//!
//! In `fuzz/` this file is a library, because a fuzz target cannot reach the readers of a binary.
//! The program itself stays a binary, of which nothing is public: as a library it is larger.

#![forbid(unsafe_code)]
// The macros `print!` and `eprint!` panic if nothing can be written. Use `stderr` and
// `commands::print`.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]
#![cfg_attr(
    feature = "fuzz",
    allow(dead_code, reason = "the fuzz targets call readers, and never main")
)]

mod action;
mod address;
mod advice;
mod app;
mod batch;
mod calendar;
mod choices;
mod cli;
mod code;
mod commands;
mod condition;
mod config;
mod context;
mod desk;
mod dialogs;
mod failure;
/// Made-up snapshots for tests.
#[cfg(test)]
mod fixture;
mod geometry;
mod kept;
mod knobs;
mod lists;
mod notice;
mod order;
mod output;
mod plain;
mod reader;
mod run;
mod screen;
mod status;
mod stderr;
mod target;
mod terminal;
mod trace;
mod user_files;
mod values;
mod view_id;
mod views;
mod widgets;
mod words;

#[cfg(feature = "fuzz")]
pub use config::check_any_configuration;
#[cfg(feature = "fuzz")]
pub use kept::check_any_state;

use failure::Exit;
use std::process::ExitCode;

fn main() -> ExitCode {
    trace::process_begins();
    terminal::restore_on_panic();
    probe::memory::keep_small();
    // The readers are started while there is only one thread. If that fails, files are opened in
    // this process.
    _ = probe::start_readers(commands::read_recording);
    calendar::use_system_zone();
    let outcome = faults::catch("doing what was asked for", || {
        cli::parse(std::env::args_os(), config::load).and_then(commands::run)
    });
    // Caught panics are reported below.
    let outcome = outcome.unwrap_or(Ok(Exit::Failed));
    probe::files::end_readers();
    probe::call::leave_to_exit();
    for fault in faults::seen() {
        stderr::say(format_args!("{}", fault.report()));
    }
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => {
            stderr::write(&failure);
            failure.exit.into()
        }
    }
}
