//! Writes a table from many files. The engine cannot read hundreds of thousands of files at once: so
//! some are made one at a time, and then these are made one, until there is a single file.
//!
//! ```text
//! 960,000 files ── 20,000 at a time ─► 48 files ─► one file
//! ```
//!
//! That works for statements that give the same when they are asked of their own results: rows that
//! are ordered, distinct rows, and the greatest of several names.

use super::Made;
use crate::engine::{Bounds, Embedded, Engine as _, Folder, Place, Span, Table};
use crate::failure::{Failure, shown};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the folder for files between two steps. It is hidden, so that nobody reads it as a
/// table.
const BETWEEN: &str = ".steps";

/// Where and how steps are done.
pub struct Steps<'a> {
    /// The folder that is being written.
    out: &'a Path,
    /// Maximum number of files that are read at once, two at least.
    at_once: usize,
    bounds: Bounds,
}

impl<'a> Steps<'a> {
    pub fn new(out: &'a Path, at_once: usize, bounds: Bounds) -> Self {
        Self {
            out,
            at_once,
            bounds,
        }
    }

    /// Starts an engine with these tables.
    pub fn engine(&self, tables: Vec<Table>) -> Result<Embedded, Failure> {
        Embedded::new(&Folder { tables }, self.bounds)
    }

    /// Writes the file of a folder, from the files of a table and from `others`, which are read in
    /// each step. Returns the number of its rows; no file is written if there are none.
    pub fn write(
        &self,
        made: &Made,
        table: &Table,
        others: &[Table],
        span: Span,
        folder: &Path,
    ) -> Result<u64, Failure> {
        let between = self.out.join(BETWEEN);
        let mut table = table.clone();
        let mut level = 0;
        while table.files.len() > self.at_once {
            let mut files: Vec<PathBuf> = Vec::new();
            for (number, part) in table.parts(self.at_once).enumerate() {
                let place = between.join(format!("{level}-{number}"));
                let engine = self.engine(together(part, others))?;
                if write(&engine, made, span, &place)? > 0 {
                    files.push(place.join(made.file_name()));
                }
            }
            if level > 0 {
                // What the step before has written is no longer needed.
                remove(&table.files);
            }
            level += 1;
            if files.is_empty() {
                // The files of an hour may have windows of the next one only. The engine takes no
                // table without files.
                fs::remove_dir_all(&between).map_err(|error| cannot_write(&between, &error))?;
                return Ok(0);
            }
            table = Table::of_files(&Place::Folder(between.clone()), made.table, files)?;
        }
        let engine = self.engine(together(table, others))?;
        let rows = write(&engine, made, span, folder)?;
        if level > 0 {
            fs::remove_dir_all(&between).map_err(|error| cannot_write(&between, &error))?;
        }
        Ok(rows)
    }
}

/// Returns all tables of an engine.
fn together(table: Table, others: &[Table]) -> Vec<Table> {
    let mut tables = vec![table];
    tables.extend_from_slice(others);
    tables
}

/// Removes files between two steps. What cannot be removed now is removed with their folder.
fn remove(files: &[PathBuf]) {
    for file in files {
        let _ = fs::remove_file(file);
    }
}

/// Writes a file of a folder, which gets its name only when it is complete; no file if there are no
/// rows. Returns the number of its rows.
pub fn write(engine: &Embedded, made: &Made, span: Span, folder: &Path) -> Result<u64, Failure> {
    let failed = |error: io::Error| cannot_write(folder, &error);
    fs::create_dir_all(folder).map_err(failed)?;
    let part = folder.join(".compact.parquet");
    let place = std::path::absolute(&part).map_err(failed)?;
    let place = place
        .to_str()
        .filter(|it| !it.chars().any(char::is_control))
        .ok_or_else(|| {
            Failure::usage(format!(
                "{} cannot stand in SQL: choose another folder",
                shown(&part)
            ))
        })?;
    let dialect = crate::sql::DataFusion;
    let statement = made.write(&dialect, span, place);
    let answer = engine.rows(&statement)?;
    let rows = answer.only()?.whole("count");
    if rows == 0 {
        // Without rows the engine makes an empty file, or none.
        let _ = fs::remove_file(&part);
        let _ = fs::remove_dir(folder);
        return Ok(0);
    }
    fs::rename(&part, folder.join(made.file_name())).map_err(failed)?;
    Ok(rows)
}

fn cannot_write(folder: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot write into {}: {error}", shown(folder)))
}
