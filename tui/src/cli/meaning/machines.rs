//! `open ssh://…`: which machines to connect to, and what proftop is to record there.

use super::super::args::{self, Open, Sub};
use super::super::{Look, MachinesConfig};
use super::WINDOW_DEFAULT;
use crate::address::{self, Address, SCHEME};
use crate::failure::Failure;
use std::ffi::OsString;

/// Whether any argument of `open` is the address of a machine.
pub fn are_named(words: &Open) -> bool {
    let mut files = words.files.iter();
    files.any(|file| file.to_string_lossy().starts_with(SCHEME))
}

/// Reads the addresses and the options that are meant for the machines.
pub fn config(words: Open, look: Look) -> Result<MachinesConfig, Failure> {
    let addresses = words
        .files
        .iter()
        .map(|file| {
            let text = file.to_str().ok_or_else(|| {
                Failure::usage(format!(
                    "{} is no address of a machine",
                    file.to_string_lossy()
                ))
            })?;
            Address::parse(text)
        })
        .collect::<Result<Vec<Address>, Failure>>()?;
    let names = address::names(&addresses)?;
    Ok(MachinesConfig {
        addresses,
        names,
        record: record(words.metric, words.options)?,
        window: words.last.unwrap_or(WINDOW_DEFAULT),
        look,
    })
}

/// Returns the arguments of proftop on the machines. They are parsed here, too, so that a mistake
/// is reported before anything connects.
fn record(metric: Option<String>, options: Vec<OsString>) -> Result<Vec<String>, Failure> {
    let texts = options
        .into_iter()
        .map(OsString::into_string)
        .collect::<Result<Vec<String>, OsString>>()
        .map_err(|word| {
            Failure::usage(format!("{} is no option of record", word.to_string_lossy()))
        })?;
    let mut line = vec!["record".to_owned(), "--output=-".to_owned()];
    line.extend(metric.map(|metric| format!("--metric={metric}")));
    line.extend(texts);
    let typed = std::iter::once("proftop").chain(line.iter().map(String::as_str));
    let read = args::read(typed.map(OsString::from).collect());
    let record = match read.map(|words| words.subcommand) {
        Ok(Some(Sub::Record(record))) => record,
        Ok(_) => {
            return Err(Failure::usage(
                "what stands behind -- are options of record",
            ));
        }
        Err(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            let why = first.trim_start_matches("error: ");
            return Err(Failure::usage(format!(
                "of the options of record behind --: {why}"
            )));
        }
    };
    let refused = [
        (!record.command.is_empty(), "start a command"),
        (record.ring.is_some(), "keep a ring"),
        (!record.probes.is_empty(), "place probes"),
        (record.format.is_some(), "write another format"),
    ];
    match refused.iter().find(|(is_asked, _)| *is_asked) {
        Some((_, what)) => Err(Failure::usage(format!(
            "on several machines at once proftop does not {what}"
        ))),
        None => Ok(line),
    }
}
