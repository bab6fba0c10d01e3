//! `merge`: joins several recordings in one.

use super::apart::{self, Made};
use super::input::{self, Input};
use super::resolve::Places;
use super::{export, open_file};
use crate::cli::MergeConfig;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::stderr;
use crate::words::units;
use profile::merge::merge;
use profile::{Cancel, Query, View};

/// Runs `merge`: reads several recordings and writes one file with all samples.
pub fn run(config: &MergeConfig) -> Result<Exit, Failure> {
    if config
        .files
        .iter()
        .filter(|file| input::is_stdin(file))
        .count()
        > 1
    {
        return Err(Failure::usage("only one of them can be standard input"));
    }
    // `-` stands for standard input and for standard output.
    let is_stdout = input::is_stdin(&config.output);
    if is_stdout && config.format.is_bytes() {
        output::refuse_terminal()?;
    }
    let inputs = config.files.iter().map(|file| Input::open(file));
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let places = Places::of_this_machine();
    let made = apart::make(
        &apart::descriptors(&inputs, places.descriptors()),
        move || make(config, inputs, &places),
    )?;
    // The file is made in memory and written whole, so that an error leaves an existing file
    // unchanged.
    let path = (!is_stdout).then_some(config.output.as_path());
    made.write(path, config.overwrite)
}

/// Makes the file with all samples.
fn make(config: &MergeConfig, inputs: Vec<Input>, places: &Places) -> Result<Made, Failure> {
    let mut views: Vec<View> = Vec::new();
    for input in inputs {
        let name = input.name().to_owned();
        let opened = open_file::open(input, places)?;
        for note in &opened.notes {
            stderr::say(format_args!("{name}: {note}"));
        }
        views.push(opened.view);
    }
    let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("cannot merge: {error}"));
    let merged = merge(&views, input::limits()).map_err(|error| failed(&error))?;
    export::say_what_is_lost(config.format, &merged.view());
    let stats = merged.stats();
    let left_out = stats.refused_late + stats.refused_memory;
    if left_out > 0 {
        stderr::say(format_args!("{left_out} samples did not fit into memory"));
    }
    let selection = merged
        .view()
        .select(&Query::default(), &Cancel::new())
        .expect("nobody cancels it");
    let mut bytes = Vec::new();
    let written = config
        .format
        .write_as(&config.output, false, &selection, &mut bytes);
    written.map_err(|error| failed(&error))?;
    let told = format!(
        "{} of {}, {} for {}",
        units::counted(selection.samples(), "sample"),
        units::counted(views.len() as u64, "recording"),
        units::bytes(bytes.len() as u64),
        if input::is_stdin(&config.output) {
            "standard output".to_string()
        } else {
            input::name(&config.output)
        }
    );
    let exit = match merged.stats().samples {
        0 if merged.view().probes().is_empty() => Exit::NoSamples,
        _ => Exit::Done,
    };
    Ok(Made {
        bytes,
        exit,
        told: vec![told],
    })
}
