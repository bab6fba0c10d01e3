//! Writes a table from many files. The engine cannot read hundreds of thousands of files at once, nor
//! have all of their rows in memory. So the files are divided into parts, and a step makes one file of
//! each part. The next step does the same with these files, until a single one is left.
//!
//! ```text
//! 960,000 files ── 20,000 at a time ─► 48 files ─► one file
//! ```
//!
//! Statements of steps are such that it does not matter how often rows went through them: they sort
//! rows, keep one row of several with the same number, or take the greatest of several names. The
//! last step can also leave out rows that no other table refers to.
//!
//! Files of samples are sorted. If all files of a step are, the engine merges them, for which it needs
//! a few thousand rows of each file in memory, and no temporary files.

use super::Made;
use crate::engine::{Bounds, Embedded, Engine as _, Folder, Place, Span, Table};
use crate::failure::{Failure, shown};
use crate::sql::{DataFusion, Dialect as _, Statement};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the folder for files between two steps. It is hidden, so that nobody reads it as a
/// table.
const BETWEEN: &str = ".steps";

/// Maximum number of files that are merged at once.
const MERGED_MAX: usize = 128;

/// Memory of the engine for each file that is merged.
const MERGED_BYTES: usize = 4 << 20;

/// Memory of the engine for each row that is read in a step if files are not merged. A stack has some
/// 200 bytes.
const ROW_BYTES: usize = 256;

/// Where and how steps are done.
pub struct Steps<'a> {
    /// The folder that is being written.
    out: &'a Path,
    /// Maximum number of files that are read at once, two at least.
    at_once: usize,
    /// Maximum number of files that are merged at once.
    merged_max: usize,
    /// Maximum number of rows that are read in a step if files are not merged. A step with only two
    /// files may have more.
    rows_max: u64,
    bounds: Bounds,
}

impl<'a> Steps<'a> {
    pub fn new(out: &'a Path, at_once: usize, bounds: Bounds) -> Self {
        Self {
            out,
            at_once,
            merged_max: (bounds.memory_bytes / MERGED_BYTES).clamp(2, MERGED_MAX),
            rows_max: (bounds.memory_bytes / ROW_BYTES) as u64,
            bounds,
        }
    }

    /// Starts an engine with these tables.
    pub fn engine(&self, tables: Vec<Table>) -> Result<Embedded, Failure> {
        Embedded::new(&Folder { tables }, self.bounds)
    }

    /// Writes a file from the files of a table and from `others`, which are read in the last step.
    /// Returns the number of its rows; no file is written if there are none.
    pub fn write(
        &self,
        made: &Made,
        mut table: Table,
        others: &[Table],
        span: Span,
        file: &Path,
    ) -> Result<u64, Failure> {
        let between = self.out.join(BETWEEN);
        let folder = |level: u32| between.join(level.to_string());
        let mut level = 0;
        loop {
            let mut parts = self.parts(&table);
            if parts.len() < 2
                && let Some(part) = parts.pop()
            {
                let tables = [&[part], others].concat();
                let rows = self.step(made.table, tables, &made.rows(&DataFusion, span), file)?;
                remove_folder(&between)?;
                return Ok(rows);
            }
            let files = self.write_parts(made, parts, span, &folder(level))?;
            if level > 0 {
                remove_folder(&folder(level - 1))?;
            }
            if files.is_empty() {
                // The files of an hour may have windows of the next one only. The engine takes no
                // table without files.
                remove_folder(&between)?;
                return Ok(0);
            }
            table = Table::of_files(&Place::Folder(between.clone()), made.table, files)?;
            level += 1;
        }
    }

    /// Divides a table into parts, each for a step. A part has two files at least: with fewer files
    /// after each step there is a single one in the end.
    fn parts(&self, table: &Table) -> Vec<Table> {
        if table.is_sorted() {
            table.parts(2, self.at_once.min(self.merged_max), u64::MAX)
        } else {
            table.parts(2, self.at_once, self.rows_max)
        }
    }

    /// Writes a file from each part, into a folder. Returns those that have rows.
    fn write_parts(
        &self,
        made: &Made,
        parts: Vec<Table>,
        span: Span,
        folder: &Path,
    ) -> Result<Vec<PathBuf>, Failure> {
        let statement = match made.between {
            Some(text) => Statement::new(&DataFusion, text).finish(),
            None => made.rows(&DataFusion, span),
        };
        let mut files = Vec::new();
        for (number, part) in parts.into_iter().enumerate() {
            let file = folder.join(format!("{number}.parquet"));
            if self.step(made.table, vec![part], &statement, &file)? > 0 {
                files.push(file);
            }
        }
        Ok(files)
    }

    /// Writes the rows of a statement to a file. The first table is the one that was divided into parts.
    /// `--rows-max` does not apply: it limits questions, whose user waits for the answer.
    fn step(
        &self,
        name: &str,
        mut tables: Vec<Table>,
        statement: &str,
        file: &Path,
    ) -> Result<u64, Failure> {
        if let Some(part) = tables.first_mut() {
            part.is_merged = part.is_sorted();
        }
        let bounds = Bounds {
            rows_max: u64::MAX,
            ..self.bounds
        };
        let engine = Embedded::new(&Folder { tables }, bounds)?;
        write(&engine, name, statement, file)
    }
}

/// Removes a folder of files between two steps, if there is one.
fn remove_folder(folder: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot_write(folder, &error)),
        _ => Ok(()),
    }
}

/// Writes the rows of a statement to a file, which gets its name only when it is complete; no file if
/// there are no rows. Returns their number.
pub fn write(engine: &Embedded, table: &str, statement: &str, file: &Path) -> Result<u64, Failure> {
    let folder = file.parent().unwrap_or(Path::new("."));
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
    let answer = engine.rows(&DataFusion.write(statement, table, place))?;
    let rows = answer.only()?.whole("count");
    if rows == 0 {
        // Without rows the engine makes an empty file, or none.
        let _ = fs::remove_file(&part);
        let _ = fs::remove_dir(folder);
        return Ok(0);
    }
    fs::rename(&part, file).map_err(failed)?;
    Ok(rows)
}

fn cannot_write(folder: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot write into {}: {error}", shown(folder)))
}

#[cfg(test)]
mod tests {
    use super::super::{FRAMES_OF_STACKS, HOSTS, SAMPLES, STACKS};
    use super::*;
    use crate::generate::Fleet;
    use crate::rows::Rows;
    use tempfile::TempDir;

    const BOUNDS: Bounds = Bounds {
        memory_bytes: 256 << 20,
        rows_max: 1_000_000,
    };

    /// A folder with the files of some hosts.
    struct Written {
        folder: TempDir,
        place: Place,
    }

    impl Written {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let fleet = Fleet {
                seed: 1,
                hosts: 5,
                windows: 40,
                services: 2,
                stacks: 30,
                samples: 100,
                versions: 2,
                planted: 0.0,
            };
            fleet.write(folder.path()).unwrap();
            let place = Place::Folder(folder.path().into());
            Self { folder, place }
        }

        fn table(&self, name: &'static str) -> Table {
            Table::look(&self.place, name, Span::default(), 1000).unwrap()
        }

        /// Writes a table in steps, each of which reads `files_max` files and `rows_max` rows at most.
        /// Returns the table of the new file.
        fn write(
            &self,
            made: &Made,
            table: Table,
            others: &[Table],
            (files_max, rows_max): (usize, u64),
        ) -> Table {
            let steps = Steps {
                rows_max,
                ..Steps::new(self.folder.path(), files_max, BOUNDS)
            };
            let file = self
                .folder
                .path()
                .join(format!("{files_max}-{}.parquet", made.table));
            let rows = steps.write(made, table, others, Span::default(), &file);
            assert!(rows.unwrap() > 0);
            assert!(!self.folder.path().join(BETWEEN).exists());
            Table::of_files(&self.place, made.table, vec![file]).unwrap()
        }
    }

    fn rows_of(table: &Table) -> Rows {
        let name = table.name;
        let tables = vec![table.clone()];
        let engine = Embedded::new(&Folder { tables }, BOUNDS).unwrap();
        engine.rows(&format!("SELECT * FROM {name}")).unwrap()
    }

    #[test]
    fn many_steps_write_the_same_as_one() {
        let written = Written::new();
        let samples = written.table("samples");
        let mut stacks = None;
        for made in [SAMPLES, STACKS, FRAMES_OF_STACKS, HOSTS] {
            let others: Vec<Table> = match made.table {
                "stacks" => vec![samples.clone()],
                "frames" => stacks.iter().cloned().collect(),
                _ => Vec::new(),
            };
            let table = || written.table(made.table);
            let once = written.write(&made, table(), &others, (1000, 1_000_000));
            let few = written.write(&made, table(), &others, (3, 70));
            assert_eq!(rows_of(&few), rows_of(&once), "{}", made.table);
            if made.table == "stacks" {
                stacks = Some(once);
            }
        }
    }

    #[test]
    fn files_of_writers_that_did_not_sort_are_sorted() {
        let written = Written::new();
        let sorted = written.table("samples");
        assert!(sorted.is_sorted());
        let once = written.write(&SAMPLES, sorted.clone(), &[], (1000, 1_000_000));
        let engine = Steps::new(written.folder.path(), 1000, BOUNDS).engine(vec![sorted]);
        let file = written.folder.path().join("unsorted.parquet");
        let statement = "SELECT * FROM samples ORDER BY begin_ms DESC";
        write(&engine.unwrap(), "samples", statement, &file).unwrap();
        let unsorted = Table::of_files(&written.place, "samples", vec![file]).unwrap();
        assert!(!unsorted.is_sorted());
        assert_ne!(rows_of(&unsorted), rows_of(&once));
        let again = written.write(&SAMPLES, unsorted, &[], (2, 70));
        assert!(again.is_sorted());
        assert_eq!(rows_of(&again), rows_of(&once));
    }
}
