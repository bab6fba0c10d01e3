//! The files of a folder of Parquet. Engines do not check what they find: a folder of something
//! else would look like empty tables, and a truncated file causes an error about bytes. So the end
//! of each file, which lists its columns, is read first.

use crate::failure::{Failure, safe, shown};
use crate::interrupt;
use ::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of files of a table that a question reads: for more, only reading the list would
/// take too long.
pub const FILES_MAX: usize = 500_000;

/// A file begins in its hour, and may have windows of the next hour: `roll` is at most an hour.
const ROLL_MAX_MS: i64 = 3_600_000;

/// The selected time range, in ms since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    pub since_ms: Option<i64>,
    pub until_ms: Option<i64>,
}

/// A table: its columns and its files.
#[derive(Debug, Clone)]
pub struct Table {
    pub name: &'static str,
    pub schema: SchemaRef,
    pub files: Vec<PathBuf>,
    /// Number of rows of each file.
    rows: Vec<u64>,
}

/// The tables of a folder.
#[derive(Debug)]
pub struct Folder {
    pub tables: Vec<Table>,
}

impl Folder {
    /// Lists the files of a time range, and reads the end of each.
    pub fn look(dir: &Path, span: Span) -> Result<Self, Failure> {
        is_folder(dir)?;
        let tables = columns().map(|(name, _)| Table::look(dir, name, span, FILES_MAX));
        let tables = tables
            .into_iter()
            .collect::<Result<Vec<Table>, Failure>>()?;
        let missing = tables.iter().find(|it| it.files.is_empty());
        if let Some(table) = missing {
            return Err(nothing(dir, table.name, span));
        }
        Ok(Self { tables })
    }

    /// Returns the number of rows of samples.
    pub fn sample_rows(&self) -> u64 {
        let tables = self.tables.iter().filter(|it| it.name == "samples");
        tables.flat_map(|it| &it.rows).sum()
    }
}

impl Table {
    /// Lists the files of a table of a time range, and reads the end of each. It is an error if
    /// there are more than `files_max`.
    pub fn look(
        dir: &Path,
        name: &'static str,
        span: Span,
        files_max: usize,
    ) -> Result<Self, Failure> {
        Self::of_files(name, list(dir, name, span, files_max)?)
    }

    /// Reads the end of each of these files.
    pub fn of_files(name: &'static str, files: Vec<PathBuf>) -> Result<Self, Failure> {
        let found = columns().into_iter().find(|(table, _)| *table == name);
        let (name, columns) = found.expect("a table of ours");
        let mut rows = Vec::with_capacity(files.len());
        for file in &files {
            interrupt::check()?;
            rows.push(check(file, &columns)?);
        }
        Ok(Self {
            name,
            schema: Arc::new(Schema::new(columns)),
            files,
            rows,
        })
    }

    /// Iterates over parts of the table, each with `files_max` of its files at most.
    pub fn parts(&self, files_max: usize) -> impl Iterator<Item = Self> {
        let files = self.files.chunks(files_max);
        let parts = files.zip(self.rows.chunks(files_max));
        parts.map(|(files, rows)| Self {
            name: self.name,
            schema: Arc::clone(&self.schema),
            files: files.to_vec(),
            rows: rows.to_vec(),
        })
    }

    /// Iterates over the files, and the number of rows of each.
    pub fn rows(&self) -> impl Iterator<Item = (&PathBuf, u64)> {
        self.files.iter().zip(self.rows.iter().copied())
    }
}

/// Returns the days, as their beginning in ms since 1970, of which a folder may have samples of a
/// time range, judging by the names of its subfolders. It is an error if there are none.
pub fn days(dir: &Path, span: Span) -> Result<Vec<i64>, Failure> {
    is_folder(dir)?;
    let place = dir.join("samples");
    let found = match entries(&place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        found => found.map_err(|error| unlisted(&place, &error))?,
    };
    let names = found.iter().filter_map(|it| named(it, "date="));
    let fits = names.filter(|day| may_have(day, 0, 24, span));
    let days: Vec<i64> = fits.filter_map(|day| crate::dates::day_ms(&day)).collect();
    if days.is_empty() {
        return Err(nothing(dir, "samples", span));
    }
    Ok(days)
}

/// Checks that a path is a folder.
fn is_folder(dir: &Path) -> Result<(), Failure> {
    let told = fs::metadata(dir)
        .map_err(|error| Failure::failed(format!("cannot look into {}: {error}", shown(dir))))?;
    if told.is_dir() {
        Ok(())
    } else {
        Err(Failure::usage(format!("{} is no folder", shown(dir))))
    }
}

/// Returns why a table has no files.
pub fn nothing(dir: &Path, table: &str, span: Span) -> Failure {
    let shown = shown(dir);
    let dates = dates(&dir.join(table));
    match (&dates[..], table) {
        ([], "samples") => Failure::failed(format!(
            "{shown} has no samples: the sink `parquet` writes them into {shown}/samples/date=…/hour=…/"
        )),
        ([], _) => Failure::failed(format!(
            "{shown} has samples and nothing in {shown}/{table}/: copy the whole folder"
        )),
        ([first, .., last], _) if span != Span::default() => Failure::failed(format!(
            "{shown} has no {table} of that time, but of {first} to {last} (UTC)"
        )),
        ([only], _) if span != Span::default() => Failure::failed(format!(
            "{shown} has no {table} of that time, but of {only} (UTC)"
        )),
        _ => Failure::failed(format!("{shown} has no {table}")),
    }
}

/// Returns the columns that are queried, with the types that queries assume.
fn columns() -> [(&'static str, Vec<Field>); 4] {
    let field = |name: &str, kind: DataType| Field::new(name, kind, true);
    let text = |name: &str| field(name, DataType::Utf8View);
    let list = DataType::List(Arc::new(Field::new("item", DataType::UInt64, true)));
    [
        (
            "samples",
            vec![
                field(
                    "ts",
                    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
                ),
                field("begin_ms", DataType::Int64),
                field("dur_ms", DataType::UInt32),
                text("host"),
                text("service"),
                text("namespace"),
                text("version"),
                text("container"),
                text("event"),
                field("stack_id", DataType::UInt64),
                field("value", DataType::UInt64),
                field("period_ns", DataType::UInt64),
                field("weight", DataType::Float32),
            ],
        ),
        (
            "stacks",
            vec![field("stack_id", DataType::UInt64), field("frames", list)],
        ),
        (
            "frames",
            vec![
                field("frame_id", DataType::UInt64),
                field("build_id", DataType::BinaryView),
                field("file_off", DataType::UInt64),
                text("module"),
                text("function"),
                text("file"),
                field("line", DataType::UInt32),
                field("inline_depth", DataType::UInt8),
                field("kind", DataType::UInt8),
            ],
        ),
        (
            "hosts",
            vec![
                text("host"),
                field(
                    "first_seen",
                    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
                ),
                field(
                    "last_seen",
                    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
                ),
                field("begin_ms", DataType::Int64),
                field("end_ms", DataType::Int64),
                field("recorded_ms", DataType::UInt64),
                field("cores", DataType::UInt16),
                text("kernel"),
                text("arch"),
                text("agent_version"),
                field("rate_hz", DataType::UInt16),
                field("lost_samples", DataType::UInt64),
                field("lost_windows", DataType::UInt32),
            ],
        ),
    ]
}

/// Returns the files of a table, sorted by name.
fn list(dir: &Path, table: &str, span: Span, files_max: usize) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    let place = dir.join(table);
    let found = match entries(&place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
        found => found.map_err(|error| unlisted(&place, &error))?,
    };
    for date in found {
        let Some(day) = named(&date, "date=") else {
            continue;
        };
        if !may_have(&day, 0, 24, span) {
            continue;
        }
        let inner = match table {
            "samples" => {
                let hours = entries(&date).map_err(|error| unlisted(&date, &error))?;
                let fits = |it: &PathBuf| {
                    let hour = named(it, "hour=").and_then(|it| it.parse().ok());
                    hour.is_some_and(|hour| may_have(&day, hour, 1, span))
                };
                hours.into_iter().filter(fits).collect()
            }
            _ => vec![date],
        };
        for folder in inner {
            for file in entries(&folder).map_err(|error| unlisted(&folder, &error))? {
                if is_parquet(&file) {
                    files.push(file);
                }
            }
        }
        if files.len() > files_max {
            return Err(Failure::failed(format!(
                "{} has more than {files_max} files of that time: ask for less (--since, --until), or compact \
                 it before",
                shown(&place)
            )));
        }
    }
    files.sort();
    Ok(files)
}

fn unlisted(place: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot look into {}: {error}", shown(place)))
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let found = fs::read_dir(folder)?;
    found.map(|it| Ok(it?.path())).collect()
}

/// Returns the text after `date=` or `hour=` in a folder's name.
fn named(path: &Path, key: &str) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix(key).map(String::from)
}

/// Whether it is a complete file of Parquet: incomplete files have names that begin with a dot.
fn is_parquet(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.ends_with(b".parquet") && !name.starts_with(b".") && !name.starts_with(b"_")
}

/// Whether files may have windows of the time range `span`: files of `hours` hours of `date`,
/// beginning at `hour`. True if `date` is not a date.
fn may_have(date: &str, hour: i64, hours: i64, span: Span) -> bool {
    let Some(day_ms) = crate::dates::day_ms(date) else {
        return true;
    };
    let begin = day_ms + hour * 3_600_000;
    let end = begin + hours * 3_600_000 + ROLL_MAX_MS;
    span.since_ms.is_none_or(|since| end > since) && span.until_ms.is_none_or(|until| begin < until)
}

/// Returns the dates of a table, sorted.
fn dates(place: &Path) -> Vec<String> {
    let found = entries(place).unwrap_or_default();
    let has_files = |it: &PathBuf| entries(it).is_ok_and(|it| !it.is_empty());
    let found = found.iter().filter(|it| has_files(it));
    let mut dates: Vec<String> = found.filter_map(|it| named(it, "date=")).collect();
    dates.sort();
    dates.iter().map(|it| safe(it)).collect()
}

/// Reads the end of a file and checks that it has the columns. Returns the number of its rows.
fn check(path: &Path, columns: &[Field]) -> Result<u64, Failure> {
    let name = shown(path);
    let told = fs::metadata(path)
        .map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))?;
    if !told.is_file() {
        return Err(Failure::failed(format!("{name} is no file")));
    }
    let file = File::open(path)
        .map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))?;
    let metadata = read_end(&file).map_err(|error| {
        Failure::failed(format!(
            "{name} is damaged, or no file of Parquet ({}): remove it, or write it again",
            safe(&error.to_string())
        ))
    })?;
    let description = metadata.file_metadata().schema_descr();
    for column in columns {
        let roots = description.root_schema().get_fields();
        let Some(found) = roots.iter().find(|it| it.name() == column.name()) else {
            return Err(Failure::failed(format!(
                "{name} has no column {}: it was not written by the sink `parquet`",
                column.name()
            )));
        };
        let is_list = matches!(column.data_type(), DataType::List(_));
        let is_text = matches!(
            column.data_type(),
            DataType::Utf8View | DataType::BinaryView
        );
        let fits = if found.is_primitive() {
            !is_list && is_text == is_bytes(found)
        } else {
            is_list
        };
        if !fits {
            return Err(Failure::failed(format!(
                "{name} has something else in its column {}: it was not written by the sink `parquet`",
                column.name()
            )));
        }
    }
    Ok(metadata.file_metadata().num_rows().max(0) as u64)
}

fn is_bytes(column: &::parquet::schema::types::Type) -> bool {
    column.get_physical_type() == ::parquet::basic::Type::BYTE_ARRAY
}

fn read_end(file: &File) -> Result<ParquetMetaData, ::parquet::errors::ParquetError> {
    ParquetMetaDataReader::new().parse_and_finish(file)
}
