//! `merge`: several recordings as one.

use super::open_file;
use crate::cli::MergeConfig;
use crate::commands::input;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use profile::View;
use profile::formats::pft;
use profile::merge::merge;

/// Runs `merge`: reads several recordings and writes one .pft with the samples of all.
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
    let mut views: Vec<View> = Vec::new();
    for file in &config.files {
        let opened = open_file::open(file)?;
        for note in &opened.notes {
            eprintln!("proftop: {}: {note}", input::name(file));
        }
        views.push(opened.view);
    }
    let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("cannot merge: {error}"));
    let merged = merge(&views, input::limits()).map_err(|error| failed(&error))?;
    let stats = merged.stats();
    let left_out = stats.refused_late + stats.refused_memory;
    if left_out > 0 {
        eprintln!("proftop: {left_out} samples did not fit into memory");
    }
    let mut bytes = Vec::new();
    pft::write(&merged.view(), &mut bytes).map_err(|error| failed(&error))?;
    let path = (!input::is_stdin(&config.output)).then_some(config.output.as_path());
    Output::write_whole(path, config.overwrite, &bytes)?;
    Ok(match merged.stats().samples {
        0 => Exit::NoSamples,
        _ => Exit::Done,
    })
}
