//! proftop: top for code.

mod action;
mod app;
mod run;
mod screen;
mod snapshot;
mod terminal;
mod view;

use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = cli::parse(std::env::args_os()).and_then(commands::run);
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprint!("{failure}");
            failure.exit.into()
        }
    }
}
