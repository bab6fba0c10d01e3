//! Tables made of tables: many small files as few large ones, and hours without their hosts.
//!
//! The new tables have the layout of the old ones, and are written into a folder of their own. So a question
//! that reads the old folder meanwhile finds each sample exactly once. The user replaces the old folder by the
//! new one afterwards.

use super::arguments::Source;
use crate::dates;
use crate::engine::{Embedded, Engine as _, Folder, Span, has_samples};
use crate::failure::{Failure, safe, shown};
use crate::output::print;
use crate::sql::{Dialect, Statement};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// The most days of one run: a folder whose times are nonsense would be looked through for years.
const DAYS_MAX: i64 = 4000;

#[derive(Debug, Args)]
pub struct Written {
    #[command(flatten)]
    pub source: Source,
    /// The folder to write, which must not be there yet
    #[arg(short, long, value_name = "FOLDER", required_unless_present = "print")]
    output: Option<PathBuf>,
}

/// What is made of a table, and the table that it becomes.
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
    /// The rows of a time.
    fn rows(&self, dialect: &dyn Dialect, span: Span) -> String {
        Statement::new(dialect, self.text)
            .with("where_begin", &condition(span))
            .finish()
    }
}

/// The windows that begin in a time.
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

/// Writes the samples again, an hour to a file.
pub fn compact(written: &Written) -> Result<(), Failure> {
    let span = written.source.span()?;
    if written.source.print {
        return written.print_all(&[STACKS, FRAMES, HOSTS, SAMPLES], span);
    }
    written.each_day(span, |engine, out, day, of_day| {
        let date = dates::date_and_hour(day).0;
        let mut counted = 0;
        for made in [FRAMES, STACKS, HOSTS] {
            let folder = out.join(made.table).join(format!("date={date}"));
            write(engine, &made, of_day, &folder)?;
        }
        for hour in 0..24 {
            let begin = day + hour * HOUR_MS;
            let of_hour = within(of_day, begin, begin + HOUR_MS);
            let folder = out
                .join("samples")
                .join(format!("date={date}"))
                .join(format!("hour={hour:02}"));
            if is_empty(of_hour) {
                continue;
            }
            counted += write(engine, &SAMPLES, of_hour, &folder)?;
        }
        Ok(counted)
    })
}

/// Writes hours without their hosts, a day to a file.
pub fn rollup(written: &Written) -> Result<(), Failure> {
    let span = written.source.span()?;
    if written.source.print {
        return written.print_all(&[ROLLUP], span);
    }
    written.each_day(span, |engine, out, day, of_day| {
        let date = dates::date_and_hour(day).0;
        let folder = out.join(ROLLUP.table).join(format!("date={date}"));
        write(engine, &ROLLUP, of_day, &folder)
    })
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

    /// Does something for each day that has samples, and prints how many rows it made of how many.
    fn each_day(
        &self,
        span: Span,
        work: impl Fn(&Embedded, &Path, i64, Span) -> Result<u64, Failure>,
    ) -> Result<(), Failure> {
        if !super::is_embedded(&self.source) {
            return Err(Failure::usage(
                "only the embedded engine writes files from here: take the SQL of --print to another one",
            ));
        }
        let dir = self.source.folder()?;
        let out = self.output.as_deref().unwrap_or(Path::new(""));
        // Whether the folder is one is said by the first look.
        let (first, last) = days(dir, span)?;
        fs::create_dir(out).map_err(|error| {
            Failure::usage(format!("cannot make the folder {}: {error}", shown(out)))
        })?;
        let (mut read, mut made) = (0, 0);
        let mut day = first;
        while day <= last {
            let of_day = within(span, day, day + DAY_MS);
            if has_samples(dir, of_day)? {
                let folder = Folder::look(dir, of_day)?;
                let engine = Embedded::new(&folder, self.source.bounds())?;
                read += folder.sample_rows;
                made += work(&engine, out, day, of_day)?;
            }
            day += DAY_MS;
        }
        print(&format!(
            "{}: {made} rows, of {read} in the files that were read\n",
            shown(out)
        ))
    }
}

/// The first and the last day that a folder has samples of.
fn days(dir: &Path, span: Span) -> Result<(i64, i64), Failure> {
    let folder = Folder::look(dir, span)?;
    let dates = folder.tables.iter().filter(|it| it.name == "samples");
    let dates = dates.flat_map(|it| &it.files).filter_map(|file| {
        let mut names = file.iter().rev().filter_map(|it| it.to_str());
        let date = names.find_map(|it| it.strip_prefix("date="))?;
        dates::day_ms(date)
    });
    let dates: Vec<i64> = dates.collect();
    let (Some(first), Some(last)) = (dates.iter().min(), dates.iter().max()) else {
        return Err(Failure::failed(format!(
            "no folder in {} is named after a date",
            shown(dir)
        )));
    };
    if (last - first) / DAY_MS > DAYS_MAX {
        return Err(Failure::failed(format!(
            "there are more than {DAYS_MAX} days from the first to the last: say which (--since, --until)"
        )));
    }
    // A file that begins in the last hour of a day may have windows of the next one.
    Ok((*first, *last + DAY_MS))
}

/// The part of a time that is in another one.
fn within(span: Span, begin_ms: i64, end_ms: i64) -> Span {
    Span {
        since_ms: Some(span.since_ms.map_or(begin_ms, |it| it.max(begin_ms))),
        until_ms: Some(span.until_ms.map_or(end_ms, |it| it.min(end_ms))),
    }
}

fn is_empty(span: Span) -> bool {
    span.since_ms >= span.until_ms
}

/// Writes a file of a folder, which has its name only once it is whole; none if there are no rows. Returns
/// its rows.
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
        // The engine makes a file for no rows, or makes none.
        let _ = fs::remove_file(&part);
        let _ = fs::remove_dir(folder);
        return Ok(0);
    }
    let name = format!("compact-{}.parquet", safe(made.table));
    fs::rename(&part, folder.join(name)).map_err(failed)?;
    Ok(rows)
}
