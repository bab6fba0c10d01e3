//! Writes tables derived from other tables: many small files as few large ones, and hours without
//! their hosts.
//!
//! The new tables have the layout of the old ones, and are written into a new folder, which gets
//! its name only when it is complete. So a question finds each sample exactly once, in either
//! folder and at any moment. The user replaces days of the old folder by those of the new one
//! afterwards.

/// A folder that gets its name only when it is complete.
mod folder;
/// Compacts objects of a bucket where they are.
mod in_place;
/// Writes a table from many files, some at a time.
mod steps;

use super::arguments::Source;
use crate::bucket::{BucketUrl, new_run};
use crate::dates;
use crate::engine::{self, Engine as _, FILES_MAX, Place, Span, Table};
use crate::failure::{Failure, shown};
use crate::interrupt;
use crate::output::print;
use crate::sql::{Dialect, Statement};
use crate::words::counted;
use clap::Args;
use folder::NewFolder;
use std::collections::{BTreeSet, HashSet};
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use steps::Steps;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

#[derive(Debug, Args)]
pub struct Written {
    #[command(flatten)]
    pub source: Source,
    /// The folder to write, which must not be there yet
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// How many files are read at once: more are read in several steps
    #[arg(long, value_name = "FILES", default_value_t = AT_ONCE, value_parser = clap::value_parser!(u32).range(2..))]
    files_at_once: u32,
}

#[derive(Debug, Args)]
pub struct Compact {
    #[command(flatten)]
    written: Written,
    /// Of about how many rows of samples a file is made: of an hour with more, several files are made
    #[arg(long, value_name = "ROWS", default_value_t = ROWS_PER_FILE, value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "in_place")]
    rows_per_file: u64,
    /// Of object storage: put each hour and each day into one object in the place of many, while others write and
    /// ask; only days that are in the time as a whole
    #[arg(long, conflicts_with = "output")]
    in_place: bool,
}

/// Default of the number of files that are read at once. The engine opens them one after the other,
/// but has the list of all in memory several times.
const AT_ONCE: u32 = 20_000;

/// Default of the number of rows of a file of samples: a longer one would not be read faster.
const ROWS_PER_FILE: u64 = 8_000_000;

/// Maximum number of files of a table and a day: those of forty thousand hosts. Only their names are
/// in memory together.
const FILES_OF_DAY_MAX: usize = 4_000_000;

/// A derived table: its name, and the statement that makes it.
#[derive(Debug, Clone, Copy)]
struct Made {
    table: &'static str,
    text: &'static str,
    /// The statement of all steps but the last one, if that is another one (see `steps`).
    between: Option<&'static str>,
}

const SAMPLES: Made = Made {
    table: "samples",
    text: include_str!("../../sql/compact_samples.sql"),
    between: None,
};
const STACKS: Made = Made {
    table: "stacks",
    text: include_str!("../../sql/compact_stacks.sql"),
    between: Some(include_str!("../../sql/compact_all_stacks.sql")),
};
const FRAMES: Made = Made {
    table: "frames",
    text: include_str!("../../sql/compact_frames.sql"),
    between: Some(include_str!("../../sql/compact_all_frames.sql")),
};
/// The same frames where the table of stacks has no others than those of the samples.
const FRAMES_OF_STACKS: Made = Made {
    text: include_str!("../../sql/compact_frames_of_stacks.sql"),
    ..FRAMES
};
const HOSTS: Made = Made {
    table: "hosts",
    text: include_str!("../../sql/compact_hosts.sql"),
    between: None,
};
const ROLLUP: Made = Made {
    table: "rollup_h",
    text: include_str!("../../sql/rollup.sql"),
    between: None,
};

impl Made {
    /// Returns the statement for the rows of a time range.
    fn rows(&self, dialect: &dyn Dialect, span: Span) -> String {
        Statement::new(dialect, self.text)
            .with("where_begin", &condition(span))
            .finish()
    }

    /// Returns the name of a file in a folder that has `before` others.
    fn file_name(&self, before: u64) -> String {
        let table = self.table;
        match before {
            0 => format!("compact-{table}.parquet"),
            _ => format!("compact-{table}-{}.parquet", before + 1),
        }
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

/// Rewrites the samples, one file for each hour, or several if it has many rows.
pub fn compact(compact: &Compact) -> Result<(), Failure> {
    let written = &compact.written;
    let span = written.source.span()?;
    if written.source.print {
        return written.print_all(&[STACKS, FRAMES, HOSTS, SAMPLES], span);
    }
    if compact.in_place {
        return written.in_place(span);
    }
    written.each_day(span, |day, read| {
        let mut counts = Counts::default();
        for hour in 0..24 {
            let begin = day.begin_ms + hour * HOUR_MS;
            let of_hour = within(day.span, begin, begin + HOUR_MS);
            if is_empty(of_hour) {
                continue;
            }
            let samples = day.table(SAMPLES.table, of_hour)?;
            if samples.files.is_empty() {
                continue;
            }
            let folder = day.out.join(SAMPLES.table).join(day.folder());
            let folder = folder.join(format!("hour={hour:02}"));
            let mut counts_of_hour = Counts::default();
            for part in samples.parts(1, usize::MAX, compact.rows_per_file) {
                let file = SAMPLES.file_name(counts_of_hour.files);
                let rows = day
                    .steps
                    .write(&SAMPLES, part, &[], of_hour, &folder.join(file))?;
                counts_of_hour += Counts {
                    rows,
                    files: u64::from(rows > 0),
                    samples: rows,
                };
            }
            counts += counts_of_hour;
            read.add(&samples);
        }
        if counts.rows == 0 {
            return Ok(counts);
        }
        // Stacks are kept for the samples that were written, and frames for the stacks.
        let out = Place::Folder(day.out.into());
        let samples = Table::look(&out, SAMPLES.table, day.span, FILES_MAX)?;
        let stacks = day.write(&STACKS, &[samples])?.ok_or_else(|| {
            Failure::failed(format!(
                "{} has none of the stacks of its samples of {}: copy the whole folder",
                day.place.name(),
                dates::date_and_hour(day.begin_ms).0
            ))
        })?;
        day.write(&FRAMES_OF_STACKS, &[stacks])?;
        day.write(&HOSTS, &[])?;
        Ok(counts)
    })
}

/// Writes hours without their hosts, one file for each day.
pub fn rollup(written: &Written) -> Result<(), Failure> {
    let span = hours(written.source.span()?);
    if written.source.print {
        return written.print_all(&[ROLLUP], span);
    }
    written.each_day(span, |day, read| {
        let samples = Table::look(day.place, SAMPLES.table, day.span, FILES_MAX)?;
        if samples.files.is_empty() {
            return Ok(Counts::default());
        }
        let folder = day.out.join(ROLLUP.table).join(day.folder());
        let engine = day.steps.engine(vec![samples.clone()])?;
        let statement = ROLLUP.rows(&crate::sql::DataFusion, day.span);
        let file = folder.join(ROLLUP.file_name(0));
        let rows = steps::write(&engine, ROLLUP.table, &statement, &file)?;
        let count = format!(
            "SELECT count(*) AS counted FROM samples WHERE {}",
            condition(day.span)
        );
        read.add(&samples);
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
            let place = format!("{out}/{}", it.table);
            dialect.write(&it.rows(dialect, span), it.table, &place)
        };
        let statements: Vec<String> = made.iter().map(statement).collect();
        super::print_statements(&self.source, &statements)
    }

    /// Returns what is read.
    fn place(&self) -> Result<Place, Failure> {
        if !super::is_embedded(&self.source) {
            return Err(Failure::usage(
                "only the embedded engine writes files from here: take the SQL of --print to another one",
            ));
        }
        Place::read(self.source.folder()?)
    }

    /// Compacts objects where they are.
    fn in_place(&self, span: Span) -> Result<(), Failure> {
        let place = self.place()?;
        let name = format!("proftop-fleet-{}", new_run());
        // It never gets its name, and is removed at the end.
        let part = NewFolder::begin(&std::env::temp_dir().join(name))?;
        let at_once = self.files_at_once as usize;
        let steps = Steps::new(part.part(), at_once, self.source.bounds());
        in_place::run(&place, span, &steps, part.part())
    }

    /// Does something for each day that has samples, in a new folder.
    fn each_day(
        &self,
        span: Span,
        work: impl Fn(&Day<'_>, &mut Read) -> Result<Counts, Failure>,
    ) -> Result<(), Failure> {
        let place = &self.place()?;
        let path = self
            .output
            .as_deref()
            .ok_or_else(|| Failure::usage("the folder to write is missing: -o FOLDER"))?;
        if BucketUrl::is_meant(path) {
            return Err(Failure::usage(format!(
                "{}: a folder is written, as object storage has no names that appear at once: copy the \
                 folder there afterwards",
                shown(path)
            )));
        }
        let days = days(place, span)?;
        let out = NewFolder::begin(path)?;
        let steps = Steps::new(
            out.part(),
            self.files_at_once as usize,
            self.source.bounds(),
        );
        let (mut made, mut read) = (Counts::default(), Read::default());
        for begin_ms in days {
            interrupt::check()?;
            let day = Day {
                begin_ms,
                span: within(span, begin_ms, begin_ms + DAY_MS),
                place,
                out: out.part(),
                steps: &steps,
            };
            if !is_empty(day.span) {
                made += work(&day, &mut read).map_err(|failure| {
                    failure.about(format_args!("{} is not written", shown(path)))
                })?;
            }
        }
        if made.samples == 0 {
            return Err(Failure::failed(format!(
                "{} has no samples of that time",
                place.name()
            )));
        }
        if span == Span::default() && made.samples != read.rows {
            return Err(Failure::failed(format!(
                "{} has {} rows of samples, and {} of them are of the dates and hours that their folders are \
                 named after: nothing is written",
                place.name(),
                read.rows,
                made.samples
            )));
        }
        out.finish()?;
        print(&format!(
            "{}: {} in {}, made of {} of samples in {}\n",
            shown(path),
            counted(made.rows, "row"),
            counted(made.files, "file"),
            counted(made.samples, "row"),
            counted(read.files, "file")
        ))
    }
}

/// A day of which something is written.
struct Day<'a> {
    begin_ms: i64,
    /// The part of the day that was asked for.
    span: Span,
    /// What is read.
    place: &'a Place,
    /// The folder that is written.
    out: &'a Path,
    steps: &'a Steps<'a>,
}

impl Day<'_> {
    /// Writes the day's file of a table, with those of its rows that belong to `others`. Returns the new
    /// table, or `None` if it has no rows.
    fn write(&self, made: &Made, others: &[Table]) -> Result<Option<Table>, Failure> {
        let table = self.table(made.table, self.span)?;
        if table.files.is_empty() {
            return Err(engine::nothing(self.place, made.table, self.span));
        }
        let folder = self.out.join(made.table).join(self.folder());
        let file = folder.join(made.file_name(0));
        let rows = self.steps.write(made, table, others, self.span, &file)?;
        let new = || Table::of_files(&Place::Folder(self.out.into()), made.table, vec![file]);
        (rows > 0).then(new).transpose()
    }

    /// Returns the name of the day's folder.
    fn folder(&self) -> String {
        day_folder(self.begin_ms)
    }

    /// Lists the files of a table, however many there are.
    fn table(&self, name: &'static str, span: Span) -> Result<Table, Failure> {
        Table::look(self.place, name, span, FILES_OF_DAY_MAX)
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

/// The files of samples that were read. The last ones of an hour or a day are read for the next one
/// as well, and are counted once.
#[derive(Debug, Default)]
struct Read {
    rows: u64,
    files: u64,
    /// The files that were read last.
    last: HashSet<PathBuf>,
}

impl Read {
    /// Counts the files of the next hour or day.
    fn add(&mut self, samples: &Table) {
        for (_, rows) in samples.rows().filter(|it| !self.last.contains(it.0)) {
            self.rows += rows;
            self.files += 1;
        }
        self.last = samples.files.iter().cloned().collect();
    }
}

/// Returns the name of the folder of a day, of which the beginning is given.
fn day_folder(begin_ms: i64) -> String {
    format!("date={}", dates::date_and_hour(begin_ms).0)
}

/// Returns the days of which a folder may have samples.
fn days(place: &Place, span: Span) -> Result<BTreeSet<i64>, Failure> {
    let days = engine::days(place, span)?.into_iter();
    // A file that begins in the last hour of a day may have windows of the next day.
    Ok(days.flat_map(|day| [day, day + DAY_MS]).collect())
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
