//! `export`: writes a recording in another format.

use super::apart::{self, Made};
use super::input::Input;
use super::open_file;
use super::resolve::Places;
use crate::cli::ExportConfig;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::stderr;
use profile::formats::Format;
use profile::{Cancel, Query, View};

/// Tells the user what a file of this format cannot hold, unless it holds everything.
pub fn say_what_is_lost(format: Format, view: &View) {
    let probes = (!format.has_probes() && !view.probes().is_empty()).then_some(&PROBES);
    let loses: Vec<&str> = format.loses().iter().chain(probes).copied().collect();
    if !loses.is_empty() {
        let loses = loses.join(", ");
        stderr::say(format_args!("{} does not hold: {loses}", format.word()));
    }
}

/// What a format without a place for probes loses, if the recording has some.
const PROBES: &str = "what probes counted";

/// Runs `export`: reads a recording, filters it, and writes it in another format.
pub fn run(config: &ExportConfig) -> Result<Exit, Failure> {
    let to_stdout = config.output.as_os_str() == "-";
    let format = config.format.or_else(|| Format::of_path(&config.output));
    let Some(format) = format else {
        let words = Format::ALL.map(Format::word).join(", ");
        return Err(Failure::usage(format!(
            "the name of the file tells no format: add --format ({words})"
        )));
    };
    let narrowing = match (config.filter.is_empty(), config.last) {
        (false, _) => Some("--filter"),
        (true, Some(_)) => Some("--last"),
        (true, None) => None,
    };
    if let Some(option) = narrowing.filter(|_| format == Format::Pft) {
        return Err(Failure::usage(format!(
            "a .pft always holds everything: give {option} when you read it"
        )));
    }
    if to_stdout && format.is_bytes() {
        output::refuse_terminal()?;
    }
    let (input, places) = (Input::open(&config.input)?, Places::of_this_machine());
    let made = apart::make(
        &apart::descriptors([&input], places.descriptors()),
        move || make(config, format, input, &places),
    )?;
    let path = (!to_stdout).then_some(config.output.as_path());
    // The file is made in memory and written whole: after an error, an existing file is unchanged.
    made.write(path, config.overwrite)
}

/// Makes the file in the other format.
fn make(
    config: &ExportConfig,
    format: Format,
    input: Input,
    places: &Places,
) -> Result<Made, Failure> {
    let name = input.name().to_owned();
    let opened = open_file::open_metric(input, config.metric.as_deref(), places)?;
    for note in &opened.notes {
        stderr::say(format_args!("{name}: {note}"));
    }
    let query = Query {
        window: open_file::last(&opened.view, config.last),
        filter: config.filter.clone(),
        ..Query::default()
    };
    let selection = opened.view.select(&query, &Cancel::new());
    let selection = config.manner.apply(selection.expect("nobody cancels it"));
    say_what_is_lost(format, &opened.view);
    let mut bytes = Vec::new();
    format
        .write_as(
            &config.output,
            config.manner.by_thread,
            &selection,
            &mut bytes,
        )
        .map_err(|error| Failure::failed(format!("cannot write: {error}")))?;
    let told = (selection.samples() == 0).then(|| match selection.offered() {
        0 => "no samples in what was written: the recording has none".to_owned(),
        all => format!("no samples in what was written: the filter keeps none of {all}"),
    });
    let exit = match selection.samples() {
        0 if opened.view.probes().is_empty() => Exit::NoSamples,
        _ => Exit::Done,
    };
    Ok(Made {
        bytes,
        exit,
        told: told.into_iter().collect(),
    })
}
