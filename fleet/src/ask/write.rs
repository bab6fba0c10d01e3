//! Writes tables derived from other tables: many small files as few large ones, and hours without
//! their hosts.
//!
//! The new tables have the layout of the old ones, and are written into a new folder, which gets
//! its name only when it is complete. So a question finds each sample exactly once, in either
//! folder and at any moment. The user replaces days of the old folder by those of the new one
//! afterwards.

/// A folder that gets its name only when it is complete.
mod folder;

use super::arguments::Source;
use crate::dates;
use crate::engine::{Embedded, Engine as _, Folder, Span, has_samples};
use crate::failure::{Failure, safe, shown};
use crate::interrupt;
use crate::output::print;
use crate::sql::{Dialect, Statement};
use clap::Args;
use folder::NewFolder;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

#[derive(Debug, Args)]
pub struct Written {
    #[command(flatten)]
    pub source: Source,
    /// The folder to write, which must not be there yet
    #[arg(short, long, value_name = "FOLDER", required_unless_present = "print")]
    output: Option<PathBuf>,
}

/// A derived table: its source and its name.
struct Made {
    table: &'static str,
    text: &'static str,
}

const SAMPLES: Made = Made {
    table: "samples",
    text: include_str!("../../sql/compact_samples.sql"),
};
const STACKS: Made = Made {
    table: "stacks",
    text: include_str!("../../sql/compact_stacks.sql"),
};
const FRAMES: Made = Made {
    table: "frames",
    text: include_str!("../../sql/compact_frames.sql"),
};
const HOSTS: Made = Made {
    table: "hosts",
    text: include_str!("../../sql/compact_hosts.sql"),
};
const ROLLUP: Made = Made {
    table: "rollup_h",
    text: include_str!("../../sql/rollup.sql"),
};

impl Made {
    /// Returns the statement for the rows of a time range.
    fn rows(&self, dialect: &dyn Dialect, span: Span) -> String {
        Statement::new(dialect, self.text)
            .with("where_begin", &condition(span))
            .finish()
    }
}

/// Returns the condition for windows that begin in a time range.
fn condition(span: Span) -> String {
    let since = span.since_ms.map(|it| format!("begin_ms >= {it}"));
    let until = span.until_ms.map(|it| format!("begin_ms < {it}"));
    let parts: Vec<String> = since.into_iter().chain(until).collect();
    if parts.is_empty() {
        "1 = 1".into()
    } else {
        parts.join(" AND ")
    }
}

/// Rewrites the samples, one file for each hour.
pub fn compact(written: &Written) -> Result<(), Failure> {
    let span = written.source.span()?;
    if written.source.print {
        return written.print_all(&[STACKS, FRAMES, HOSTS, SAMPLES], span);
    }
    written.each_day(span, |engine, out, day, of_day| {
        let date = format!("date={}", dates::date_and_hour(day).0);
        let mut counts = Counts::default();
        for made in [FRAMES, STACKS, HOSTS] {
            write(engine, &made, of_day, &out.join(made.table).join(&date))?;
        }
        for hour in 0..24 {
            let begin = day + hour * HOUR_MS;
            let of_hour = within(of_day, begin, begin + HOUR_MS);
            if is_empty(of_hour) {
                continue;
            }
            let folder = out.join("samples").join(&date);
            let folder = folder.join(format!("hour={hour:02}"));
            let rows = write(engine, &SAMPLES, of_hour, &folder)?;
            counts += Counts {
                rows,
                files: u64::from(rows > 0),
                samples: rows,
            };
        }
        Ok(counts)
    })
}

/// Writes hours without their hosts, one file for each day.
pub fn rollup(written: &Written) -> Result<(), Failure> {
    let span = hours(written.source.span()?);
    if written.source.print {
        return written.print_all(&[ROLLUP], span);
    }
    written.each_day(span, |engine, out, day, of_day| {
        let date = dates::date_and_hour(day).0;
        let folder = out.join(ROLLUP.table).join(format!("date={date}"));
        let rows = write(engine, &ROLLUP, of_day, &folder)?;
        let count = format!(
            "SELECT count(*) AS counted FROM samples WHERE {}",
            condition(of_day)
        );
        Ok(Counts {
            rows,
            files: u64::from(rows > 0),
            samples: engine.rows(&count)?.only()?.whole("counted"),
        })
    })
}

/// Rounds a time range to full hours: a row of a partial hour would look like that of a whole one.
fn hours(span: Span) -> Span {
    let full = |ms: Option<i64>| ms.map(|it| it - it.rem_euclid(HOUR_MS));
    Span {
        since_ms: full(span.since_ms),
        until_ms: full(span.until_ms),
    }
}

impl Written {
    fn print_all(&self, made: &[Made], span: Span) -> Result<(), Failure> {
        let dialect = super::dialect(&self.source);
        let out = self
            .output
            .as_deref()
            .unwrap_or(Path::new("compact"))
            .to_str()
            .ok_or_else(|| {
                Failure::usage("the folder's name is not UTF-8, and cannot stand in SQL")
            })?;
        crate::sql::check(out)?;
        let statement = |it: &Made| {
            let rows = it.rows(dialect, span);
            dialect.write(&rows, it.table, &format!("{out}/{}", it.table))
        };
        let statements: Vec<String> = made.iter().map(statement).collect();
        super::print_statements(&self.source, &statements)
    }

    /// Does something for each day that has samples, in a new folder.
    fn each_day(
        &self,
        span: Span,
        work: impl Fn(&Embedded, &Path, i64, Span) -> Result<Counts, Failure>,
    ) -> Result<(), Failure> {
        if !super::is_embedded(&self.source) {
            return Err(Failure::usage(
                "only the embedded engine writes files from here: take the SQL of --print to another one",
            ));
        }
        let dir = self.source.folder()?;
        let path = self.output.as_deref().unwrap_or(Path::new(""));
        let days = days(dir, span)?;
        let out = NewFolder::begin(path)?;
        let mut made = Counts::default();
        // Counted by file name, as the last file of a day is read for the next day as well.
        let mut read: HashMap<PathBuf, u64> = HashMap::new();
        for day in days {
            interrupt::check()?;
            let of_day = within(span, day, day + DAY_MS);
            if is_empty(of_day) || !has_samples(dir, of_day)? {
                continue;
            }
            let folder = Folder::look(dir, of_day)?;
            let engine = Embedded::new(&folder, self.source.bounds())?;
            made += work(&engine, out.part(), day, of_day)
                .map_err(|failure| failure.about(format_args!("{} is not written", shown(path))))?;
            read.extend(folder.samples());
        }
        let rows: u64 = read.values().sum();
        if made.samples == 0 {
            return Err(Failure::failed(format!(
                "{} has no samples of that time",
                shown(dir)
            )));
        }
        if span == Span::default() && made.samples != rows {
            return Err(Failure::failed(format!(
                "{} has {rows} rows of samples, and {} of them are of the dates and hours that their folders are \
                 named after: nothing is written",
                shown(dir),
                made.samples
            )));
        }
        out.finish()?;
        print(&format!(
            "{}: {} rows in {} files, made of {} rows of samples in {} files\n",
            shown(path),
            made.rows,
            made.files,
            made.samples,
            read.len()
        ))
    }
}

/// The written rows of a table.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Number of rows of the derived table, and of its files.
    rows: u64,
    files: u64,
    /// Number of rows of samples from which they were derived.
    samples: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.files += other.files;
        self.samples += other.samples;
    }
}

/// Returns the days of which a folder may have samples.
fn days(dir: &Path, span: Span) -> Result<BTreeSet<i64>, Failure> {
    // This checks whether it is a folder of samples.
    let folder = Folder::look(dir, span)?;
    let mut days = BTreeSet::new();
    for (file, _) in folder.samples() {
        let mut names = file.iter().rev().filter_map(|it| it.to_str());
        let date = names.find_map(|it| it.strip_prefix("date="));
        if let Some(day) = date.and_then(dates::day_ms) {
            // A file that begins in the last hour of a day may have windows of the next day.
            days.extend([day, day + DAY_MS]);
        }
    }
    Ok(days)
}

/// Returns the intersection of two time ranges.
fn within(span: Span, begin_ms: i64, end_ms: i64) -> Span {
    Span {
        since_ms: Some(span.since_ms.map_or(begin_ms, |it| it.max(begin_ms))),
        until_ms: Some(span.until_ms.map_or(end_ms, |it| it.min(end_ms))),
    }
}

fn is_empty(span: Span) -> bool {
    span.since_ms >= span.until_ms
}

/// Writes a file of a folder, which gets its name only when it is complete; no file if there are no
/// rows. Returns the number of its rows.
fn write(engine: &Embedded, made: &Made, span: Span, folder: &Path) -> Result<u64, Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(format!("cannot write into {}: {error}", shown(folder)))
    };
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
    let statement = dialect.write(&made.rows(&dialect, span), made.table, place);
    let answer = engine.rows(&statement)?;
    let rows = answer.only()?.whole("count");
    if rows == 0 {
        // Without rows the engine makes an empty file, or none.
        let _ = fs::remove_file(&part);
        let _ = fs::remove_dir(folder);
        return Ok(0);
    }
    let name = format!("compact-{}.parquet", safe(made.table));
    fs::rename(&part, folder.join(name)).map_err(failed)?;
    Ok(rows)
}
