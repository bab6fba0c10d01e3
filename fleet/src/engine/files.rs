//! The files of the tables in a folder or a bucket. Engines do not check what they find: a folder of something
//! else would look like empty tables, and a truncated file causes an error about bytes. So the end
//! of each file, which lists its columns, is read first.

use super::Place;
use crate::bucket::{self, Bucket};
use crate::failure::{Failure, safe};
use crate::interrupt;
use crate::sinks::parquet::SORTED_BY;
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, SortingColumn};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of files of a table that a question reads: for more, only reading the list would
/// take too long.
pub const FILES_MAX: usize = 500_000;

/// A file begins in its hour, and may have windows of the next hour: `roll` is at most an hour.
const ROLL_MAX_MS: i64 = 3_600_000;

/// The end of an object that is read first: in most files it is all that describes them.
const END_BYTES: u64 = 32 << 10;

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
    /// Where the files are.
    pub place: Place,
    pub files: Vec<PathBuf>,
    /// What the end of each file tells.
    ends: Vec<End>,
    /// Whether the engine merges the files by [`SORTED_BY`], for which each must be sorted, instead of
    /// sorting all rows.
    pub is_merged: bool,
}

/// What the end of a file tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    rows: u64,
    /// Whether its rows are sorted by [`SORTED_BY`].
    is_sorted: bool,
}

/// The tables of a folder.
#[derive(Debug)]
pub struct Folder {
    pub tables: Vec<Table>,
}

impl Folder {
    /// Lists the files of a time range, and reads the end of each.
    pub fn look(place: &Place, span: Span) -> Result<Self, Failure> {
        place.check()?;
        let tables = columns().map(|(name, _)| Table::look(place, name, span, FILES_MAX));
        let tables = tables
            .into_iter()
            .collect::<Result<Vec<Table>, Failure>>()?;
        let missing = tables.iter().find(|it| it.files.is_empty());
        if let Some(table) = missing {
            return Err(nothing(place, table.name, span));
        }
        Ok(Self { tables })
    }

    /// Returns the number of rows of samples.
    pub fn sample_rows(&self) -> u64 {
        let tables = self.tables.iter().filter(|it| it.name == "samples");
        tables.flat_map(Table::rows).map(|it| it.1).sum()
    }
}

impl Table {
    /// Lists the files of a table of a time range, and reads the end of each. It is an error if
    /// there are more than `files_max`.
    pub fn look(
        place: &Place,
        name: &'static str,
        span: Span,
        files_max: usize,
    ) -> Result<Self, Failure> {
        Self::of_files(place, name, list(place, name, span, files_max)?)
    }

    /// Reads the end of each of these files.
    pub fn of_files(
        place: &Place,
        name: &'static str,
        files: Vec<PathBuf>,
    ) -> Result<Self, Failure> {
        let found = columns().into_iter().find(|(table, _)| *table == name);
        let (name, columns) = found.expect("a table of ours");
        let ends = match place {
            Place::Folder(_) => {
                let checked = files.iter().map(|file| {
                    interrupt::check()?;
                    check(file, &columns)
                });
                checked.collect::<Result<_, _>>()?
            }
            Place::Bucket(bucket) => check_objects(bucket, &files, &columns)?,
        };
        Ok(Self {
            name,
            schema: Arc::new(Schema::new(columns)),
            place: place.clone(),
            files,
            ends,
            is_merged: false,
        })
    }

    /// Whether the rows of each file are sorted by [`SORTED_BY`].
    pub fn is_sorted(&self) -> bool {
        self.ends.iter().all(|it| it.is_sorted)
    }

    /// Divides the table into parts, each with at most `rows_max` rows in at most `files_max` files. A
    /// file is never divided, and a part has `files_min` files however many rows they have; only the
    /// last part may have fewer.
    pub fn parts(&self, files_min: usize, files_max: usize, rows_max: u64) -> Vec<Self> {
        let mut parts: Vec<Self> = Vec::new();
        let mut rows_of_part = 0;
        for (file, end) in self.files.iter().zip(&self.ends) {
            let part = parts.last_mut().filter(|it| {
                let is_short = rows_of_part + end.rows <= rows_max || it.files.len() < files_min;
                is_short && it.files.len() < files_max
            });
            match part {
                Some(part) => {
                    part.files.push(file.clone());
                    part.ends.push(*end);
                    rows_of_part += end.rows;
                }
                None => {
                    parts.push(Self {
                        files: vec![file.clone()],
                        ends: vec![*end],
                        schema: Arc::clone(&self.schema),
                        place: self.place.clone(),
                        ..*self
                    });
                    rows_of_part = end.rows;
                }
            }
        }
        parts
    }

    /// Iterates over the files, and the number of rows of each.
    pub fn rows(&self) -> impl Iterator<Item = (&PathBuf, u64)> {
        self.files.iter().zip(self.ends.iter().map(|it| it.rows))
    }
}

/// Returns the days, as their beginning in ms since 1970, of which there may be samples of a time
/// range, judging by the names of folders. It is an error if there are none.
pub fn days(place: &Place, span: Span) -> Result<Vec<i64>, Failure> {
    place.check()?;
    let found = place.entries(&place.table("samples"))?;
    let names = found.iter().filter_map(|it| named(it, "date="));
    let fits = names.filter(|day| may_have(day, 0, 24, span));
    let days: Vec<i64> = fits.filter_map(|day| crate::dates::day_ms(&day)).collect();
    if days.is_empty() {
        return Err(nothing(place, "samples", span));
    }
    Ok(days)
}

/// Returns why a table has no files.
pub fn nothing(place: &Place, table: &str, span: Span) -> Failure {
    let shown = place.name();
    let dates = match dates(place, table) {
        Ok(dates) => dates,
        Err(failure) => return failure,
    };
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
fn list(place: &Place, table: &str, span: Span, files_max: usize) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    let folder = place.table(table);
    for date in place.entries(&folder)? {
        let Some(day) = named(&date, "date=") else {
            continue;
        };
        if !may_have(&day, 0, 24, span) {
            continue;
        }
        let inner = match table {
            "samples" => {
                let hours = place.entries(&date)?;
                let fits = |it: &PathBuf| {
                    let hour = named(it, "hour=").and_then(|it| it.parse().ok());
                    hour.is_some_and(|hour| may_have(&day, hour, 1, span))
                };
                hours.into_iter().filter(fits).collect()
            }
            _ => vec![date],
        };
        for folder in inner {
            files.extend(place.files(&folder)?);
        }
        if files.len() > files_max {
            return Err(Failure::failed(format!(
                "{} has more than {files_max} files of that time: ask for less (--since, --until), or compact \
                 it before",
                place.shown(&folder)
            )));
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the text after `date=` or `hour=` in a folder's name.
fn named(path: &Path, key: &str) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix(key).map(String::from)
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
fn dates(place: &Place, table: &str) -> Result<Vec<String>, Failure> {
    let mut dates = Vec::new();
    for folder in place.entries(&place.table(table))? {
        if let Some(date) = named(&folder, "date=")
            && !place.entries(&folder)?.is_empty()
        {
            dates.push(safe(&date));
        }
    }
    dates.sort();
    Ok(dates)
}

/// Reads the end of a file and checks that it has the columns.
fn check(path: &Path, columns: &[Field]) -> Result<End, Failure> {
    let name = crate::failure::shown(path);
    let told = fs::metadata(path)
        .map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))?;
    if !told.is_file() {
        return Err(Failure::failed(format!("{name} is no file")));
    }
    let file = File::open(path)
        .map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))?;
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&file)
        .map_err(|error| damaged(&name, &error))?;
    fit(&name, &metadata, columns)
}

/// Reads the ends of objects and checks that they have the columns.
fn check_objects(
    bucket: &Bucket,
    keys: &[PathBuf],
    columns: &[Field],
) -> Result<Vec<End>, Failure> {
    bucket.ends(keys, END_BYTES, |key, end, size| {
        let name = bucket.shown(key);
        let mut reader = ParquetMetaDataReader::new();
        match reader.try_parse_sized(end, size) {
            Err(ParquetError::NeedMoreData(bytes)) => return Ok(bucket::End::Longer(bytes as u64)),
            parsed => parsed.map_err(|error| damaged(&name, &error))?,
        }
        let metadata = reader.finish().map_err(|error| damaged(&name, &error))?;
        fit(&name, &metadata, columns).map(bucket::End::Read)
    })
}

fn damaged(name: &str, error: &ParquetError) -> Failure {
    Failure::failed(format!(
        "{name} is damaged, or no file of Parquet ({}): remove it, or write it again",
        safe(&error.to_string())
    ))
}

/// Checks that a file has the columns.
fn fit(name: &str, metadata: &ParquetMetaData, columns: &[Field]) -> Result<End, Failure> {
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
    if !has_places(metadata) {
        let why = ParquetError::General("a column has a place before the file".into());
        return Err(damaged(name, &why));
    }
    Ok(End {
        rows: metadata.file_metadata().num_rows().max(0) as u64,
        is_sorted: is_sorted(metadata),
    })
}

/// Whether the places of all columns are numbers from 0 on: the engine's reader panics at others.
fn has_places(metadata: &ParquetMetaData) -> bool {
    let columns = metadata.row_groups().iter().flat_map(|it| it.columns());
    columns.into_iter().all(|it| {
        let begin = it.dictionary_page_offset().unwrap_or(it.data_page_offset());
        begin >= 0 && it.compressed_size() >= 0
    })
}

/// Whether the rows of a file are sorted by [`SORTED_BY`], which its writer has to say: files from
/// versions that did not are sorted by other columns.
fn is_sorted(metadata: &ParquetMetaData) -> bool {
    let columns = metadata.file_metadata().schema_descr().columns();
    let sorted_by = SORTED_BY.map(|name| columns.iter().position(|it| it.name() == name));
    // Other tables do not have the columns.
    let has_columns = sorted_by.iter().all(Option::is_some);
    let is_rising = |it: &SortingColumn| !it.descending && !it.nulls_first;
    let mut groups = metadata.row_groups().iter();
    has_columns
        && groups.all(|group| {
            group.sorting_columns().is_some_and(|sorting| {
                let indices = sorting.iter().map(|it| usize::try_from(it.column_idx).ok());
                sorting.iter().all(is_rising) && indices.eq(sorted_by)
            })
        })
}

fn is_bytes(column: &::parquet::schema::types::Type) -> bool {
    column.get_physical_type() == ::parquet::basic::Type::BYTE_ARRAY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_as_many_files_and_rows_as_they_may() {
        let end = |rows| End {
            rows,
            is_sorted: true,
        };
        let table = Table {
            name: "samples",
            schema: Arc::new(Schema::empty()),
            place: Place::Folder(PathBuf::new()),
            files: (0..6).map(|it| PathBuf::from(it.to_string())).collect(),
            ends: [5, 5, 20, 1, 1, 1].map(end).into(),
            is_merged: false,
        };
        let parts = |files_min, files_max, rows_max| -> Vec<Vec<u64>> {
            let parts = table.parts(files_min, files_max, rows_max);
            let files: Vec<&PathBuf> = parts.iter().flat_map(|it| &it.files).collect();
            assert_eq!(files, table.files.iter().collect::<Vec<_>>());
            parts
                .iter()
                .map(|it| it.rows().map(|it| it.1).collect())
                .collect()
        };
        assert_eq!(parts(1, 9, 100), [[5, 5, 20, 1, 1, 1]]);
        assert_eq!(parts(1, 4, 100), [vec![5, 5, 20, 1], vec![1, 1]]);
        assert_eq!(parts(1, 9, 10), [vec![5, 5], vec![20], vec![1, 1, 1]]);
        assert_eq!(parts(2, 9, 4), [vec![5, 5], vec![20, 1], vec![1, 1]]);
        assert_eq!(parts(1, 9, 4), [vec![5], vec![5], vec![20], vec![1, 1, 1]]);
    }
}
