//! Writes the selected stacks as a file for `proftop open`: each host is a machine in it, and each
//! service a process of that machine.

/// Converts rows of samples, stacks and frames to a profile.
mod profile_of;

use super::arguments::{Asked, span};
use super::{nearby, summary};
use crate::failure::{Failure, safe, shown};
use crate::interrupt;
use crate::output::{self, print};
use crate::sql::{self, Dialect, Selection, Statement};
use crate::words::counted;
use clap::Args;
use profile::formats::Format;
use profile::{Cancel, Query};
use profile_of::Made;
use std::path::{Path, PathBuf};

/// Maximum number of rows of samples, stacks and frames that are written: they are in memory
/// together.
const ROWS_MAX: usize = 2_000_000;

#[derive(Debug, Args)]
pub struct Flame {
    #[command(flatten)]
    pub asked: Asked,
    /// Only stacks that have this function
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// The file to write; its end says the format: .pft (all of it), .folded, .pb.gz, .html, .svg, …
    #[arg(short, long, value_name = "FILE", required_unless_present = "print")]
    output: Option<PathBuf>,
    /// Replace the file if there is one
    #[arg(long)]
    force: bool,
}

/// Writes the file.
pub fn run(flame: &Flame) -> Result<(), Failure> {
    let asked = &flame.asked;
    let selection = asked.selection()?;
    let function = flame.function.as_deref();
    if let Some(function) = function {
        sql::check(function)?;
    }
    let dialect = super::dialect(&asked.source);
    let statements = statements(dialect, &selection, function);
    if asked.source.print {
        return super::print_statements(&asked.source, &statements);
    }
    let path = flame.output.as_deref().unwrap_or(Path::new(""));
    let format = Format::of_path(path).ok_or_else(|| {
        let endings: Vec<&str> = Format::ALL.iter().map(|it| it.endings()[0]).collect();
        Failure::usage(format!(
            "{} ends in none of {}",
            shown(path),
            endings.join(", ")
        ))
    })?;
    output::check_place(path, flame.force)?;
    let (made, stacks) = read_stacks(asked, &selection, &statements, function)?;
    let view = made.store.view();
    let query = Query::default();
    let all = view
        .select(&query, &Cancel::new())
        .expect("nobody cancels it");
    output::write_file(path, |file| {
        format
            .write_as(path, false, &all, file)
            .map_err(|error| error.to_string())
    })?;
    let mut text = format!(
        "{}: {} of {} on {}\n",
        shown(path),
        counted(stacks as u64, "stack"),
        counted(made.services as u64, "service"),
        counted(made.hosts as u64, "host")
    );
    for note in made.notes {
        text += &format!("{}\n", safe(&note));
    }
    if format == Format::Pft {
        let of_hosts = if made.hosts > 1 {
            "o in Processes puts those of a host together, @ leads from a function to its hosts, "
        } else {
            ""
        };
        text += &format!(
            "proftop open {} shows it: {of_hosts}? tells all keys\n",
            shown(path)
        );
    }
    print(&text)
}

/// Returns the selected stacks as a recording of proftop, for [`crate::open`].
pub fn recording(asked: &Asked, function: Option<&str>) -> Result<Vec<u8>, Failure> {
    let selection = asked.selection()?;
    if let Some(function) = function {
        sql::check(function)?;
    }
    let statements = statements(super::dialect(&asked.source), &selection, function);
    let (made, _) = read_stacks(asked, &selection, &statements, function)?;
    let mut bytes = Vec::new();
    profile::formats::pft::write(&made.store.view(), &mut bytes)
        .map_err(|error| Failure::failed(format!("cannot make a recording: {error}")))?;
    Ok(bytes)
}

/// Asks the engine for the selected stacks. Returns them as a profile, and their number.
fn read_stacks(
    asked: &Asked,
    selection: &Selection,
    statements: &[String; 3],
    function: Option<&str>,
) -> Result<(Made, usize), Failure> {
    let dialect = super::dialect(&asked.source);
    let engine = super::engine(&asked.source, span(selection))?;
    let engine = &*engine;
    let samples = engine.rows(&statements[0])?;
    if samples.cells.is_empty() {
        if summary::whole(engine, dialect, selection)?.is_none() {
            return Err(nearby::no_samples(engine, dialect, selection)?);
        }
        return Err(nearby::no_function(engine, function.unwrap_or_default())?);
    }
    let stacks = engine.rows(&statements[1])?;
    let frames = engine.rows(&statements[2])?;
    for (what, rows) in [
        ("samples", &samples),
        ("stacks", &stacks),
        ("frames", &frames),
    ] {
        if rows.cells.len() > ROWS_MAX {
            return Err(Failure::failed(format!(
                "there are more than {ROWS_MAX} rows of {what}: ask for less time (since, until), one host, \
                 one service or one function"
            )));
        }
    }
    interrupt::check()?;
    let made = profile_of::rows(&selection.event, &samples, &stacks, &frames);
    Ok((made, stacks.cells.len()))
}

/// Returns the statements about samples, stacks and frames.
fn statements(dialect: &dyn Dialect, selection: &Selection, function: Option<&str>) -> [String; 3] {
    let within = match function {
        Some(name) => Statement::new(dialect, include_str!("../../sql/within.sql"))
            .with("name", &dialect.text(name))
            .finish(),
        None => String::new(),
    };
    [
        include_str!("../../sql/samples.sql"),
        include_str!("../../sql/stacks.sql"),
        include_str!("../../sql/frames.sql"),
    ]
    .map(|file| {
        Statement::new(dialect, file)
            .of(selection)
            .with("of_samples", &within)
            .limit(ROWS_MAX + 1)
            .finish()
    })
}
