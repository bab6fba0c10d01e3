//! Questions about the machines whose samples are in a folder, or in the tables of a server.

/// Parses arguments: where samples are, which are selected, and the format of the answer.
mod arguments;
/// Compares two sides.
mod diff;
/// Writes the selected stacks.
mod flame;
/// Lists the hosts on which a function is hot.
mod hosts;
/// Reads what the hosts report about themselves.
mod machines;
/// Suggests existing values when a selection is empty.
mod nearby;
/// Prints an answer as a table, CSV or JSON.
mod report;
/// Totals of a selection.
mod summary;
/// Lists functions by their time.
mod top;
/// Writes tables derived from other tables.
mod write;

pub use arguments::{Asked, Format, Source};
pub use flame::recording;

use crate::bucket::BucketUrl;
use crate::engine::{ClickHouse, Embedded, Engine, Folder, Place, Span};
use crate::failure::{Failure, shown};
use crate::interrupt;
use crate::output::print;
use crate::sql::{self, DataFusion, Dialect, DuckDb, Spark};
use arguments::EngineName;
use clap::Subcommand;

/// What is asked.
#[derive(Debug, Subcommand)]
pub enum Question {
    /// Print the functions that take most time on all machines
    Top(top::Top),
    /// Print on which machines a function takes most time
    Hosts(hosts::Hosts),
    /// Print which functions have another share of the time on one side than on the other
    Diff(diff::Diff),
    /// Write the stacks as a file that `proftop open` reads, or as a flame graph
    Flame(flame::Flame),
    /// Write a folder with the same samples in few files, which are read faster
    Compact(write::Compact),
    /// Write what each service had in each hour, without its hosts: for years
    Rollup(write::Written),
}

/// Answers a question.
pub fn run(question: &Question) -> Result<(), Failure> {
    interrupt::watch()?;
    match question {
        Question::Top(top) => top::run(top),
        Question::Hosts(hosts) => hosts::run(hosts),
        Question::Diff(diff) => diff::run(diff),
        Question::Flame(flame) => flame::run(flame),
        Question::Compact(compact) => write::compact(compact),
        Question::Rollup(written) => write::rollup(written),
    }
}

/// Returns the SQL dialect of the selected engine.
fn dialect(source: &Source) -> &'static dyn Dialect {
    match source.engine {
        EngineName::Embedded | EngineName::Ballista => &DataFusion,
        EngineName::ClickHouse(_) => &sql::ClickHouse,
        EngineName::DuckDb => &DuckDb,
        EngineName::Spark => &Spark,
    }
}

/// Whether the engine is the embedded one.
fn is_embedded(source: &Source) -> bool {
    source.engine == EngineName::Embedded
}

/// Makes the engine for questions about that time.
fn engine(source: &Source, span: Span) -> Result<Box<dyn Engine>, Failure> {
    match &source.engine {
        EngineName::Embedded => {
            let folder = Folder::look(&Place::read(source.folder()?)?, span)?;
            Ok(Box::new(Embedded::for_questions(&folder, source.bounds())?))
        }
        EngineName::ClickHouse(address) => {
            if source.dir.is_some() {
                return Err(Failure::usage(
                    "a server has tables of its own: leave out the folder, or --engine",
                ));
            }
            let (token_file, ca) = (source.token_file.clone(), source.ca.clone());
            Ok(Box::new(ClickHouse::new(address, token_file, ca)?))
        }
        EngineName::Ballista | EngineName::DuckDb | EngineName::Spark => {
            Err(Failure::usage(format!(
                "{} is not started from here: take the SQL of --print to it",
                source.engine.word()
            )))
        }
    }
}

/// Prints statements instead of running them.
fn print_statements(source: &Source, statements: &[String]) -> Result<(), Failure> {
    let mut text = String::new();
    let has_tables = match source.engine {
        EngineName::Embedded => true,
        // A server may have tables of its own: then no folder is given.
        EngineName::ClickHouse(_) => source.dir.is_none(),
        EngineName::Ballista | EngineName::DuckDb | EngineName::Spark => false,
    };
    if !has_tables {
        let mut dir = source.folder()?.to_owned();
        if !BucketUrl::is_meant(&dir) {
            // The engine has another working directory.
            dir = std::path::absolute(&dir).map_err(|error| {
                Failure::failed(format!("cannot tell where {} is: {error}", shown(&dir)))
            })?;
        }
        let dir = dir.to_str().ok_or_else(|| {
            Failure::usage("the folder's name is not UTF-8, and cannot stand in SQL")
        })?;
        crate::sql::check(dir)?;
        text += &dialect(source).tables(dir);
    }
    for statement in statements {
        text += statement;
        text += ";\n";
    }
    print(&text)
}
