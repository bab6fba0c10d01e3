//! Writes windows as files of Parquet, to a folder or to object storage, which an SQL engine reads
//! (docs/fleet.md has the schema):
//!
//! ```text
//! samples/date=2026-11-21/hour=14/HOST-ID-NUMBER.parquet
//! stacks/date=2026-11-21/HOST-ID-NUMBER.parquet
//! frames/…, hosts/…
//! ```
//!
//! The name is that of the first window in the file: if it is written again, it replaces the first
//! one. Samples are written last, so that if they exist, stacks and frames exist as well.

/// Stacks and frames that were already written.
mod known;
/// The columns of each table.
mod tables;
/// Where files are written.
mod target;

use crate::config::Labels;
use crate::window::Window;
use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use ::parquet::basic::{Compression, Encoding, ZstdLevel};
use ::parquet::file::metadata::SortingColumn;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::schema::types::ColumnPath;
use arrow::array::RecordBatch;
use std::path::{Path, PathBuf};

pub use known::Known;
pub use target::{Target, Unwritten};

/// The columns by which samples are sorted, here and by `compact`.
pub const SORTED_BY: [&str; 5] = ["service", "version", "stack_id", "host", "begin_ms"];

/// Level of compression: a higher one costs more time than it saves bytes.
const ZSTD_LEVEL: i32 = 7;

/// Columns that have no dictionary, of each table. Values that are nearly all different are smaller
/// without one, as zstd then finds runs that are equal; numbers that mostly rise are smallest as
/// differences, and so are those in any order, which have no more than their 48 bits then.
const ENCODED: [(&str, &str, Encoding); 6] = [
    ("samples", "stack_id", Encoding::DELTA_BINARY_PACKED),
    ("stacks", "stack_id", Encoding::DELTA_BINARY_PACKED),
    ("stacks", "frames.list.item", Encoding::PLAIN),
    ("frames", "frame_id", Encoding::DELTA_BINARY_PACKED),
    ("frames", "file_off", Encoding::DELTA_BINARY_PACKED),
    ("frames", "function", Encoding::PLAIN),
];

/// Maximum size of a page: the longer, the more of it is compressed together.
const PAGE_BYTES: usize = 8 << 20;

/// The place of a date's files, and the name of a file.
pub struct TableFile<'a> {
    pub to: &'a Target,
    /// The date, for example `2026-11-21`.
    pub date: &'a str,
    pub hour: u32,
    /// The name without its ending.
    pub name: &'a str,
}

impl TableFile<'_> {
    /// Returns the path of a table's file below the target.
    pub fn path(&self, table: &str) -> PathBuf {
        let mut path = Path::new(table).join(format!("date={}", self.date));
        if table == "samples" {
            path.push(format!("hour={:02}", self.hour));
        }
        path.join(format!("{}.parquet", self.name))
    }
}

/// Writes windows of one host to one file of each table. Stacks and frames are written only if the
/// day's files do not have them yet, and there is no file if nothing is new. Returns the total size
/// of the files.
pub fn write(
    place: &TableFile,
    windows: &[Window],
    labels: &Labels,
    lost_windows: u64,
    known: &mut Known,
) -> Result<u64, Unwritten> {
    known.begin(place.date);
    // If something cannot be written, everything is written again, replacing these files.
    let before = std::mem::take(known);
    let mut bytes = 0;
    let mut files = Vec::new();
    for (table, batch) in [
        ("frames", tables::frames(windows, &before)?),
        ("stacks", tables::stacks(windows, &before)?),
        ("hosts", tables::hosts(windows, lost_windows)?),
        ("samples", tables::samples(windows, labels)?),
    ] {
        if batch.num_rows() == 0 {
            continue;
        }
        let (file, path) = (encode(table, &batch)?, place.path(table));
        bytes += file.len() as u64;
        place.to.put(&path, file)?;
        if matches!(table, "frames" | "stacks") {
            files.extend(place.to.watched(&path));
        }
    }
    *known = before;
    known.add(
        windows.iter().flat_map(|it| &it.stacks),
        windows.iter().flat_map(|it| &it.frames),
        files,
    );
    Ok(bytes)
}

/// Returns the content of a file.
fn encode(table: &str, batch: &RecordBatch) -> ::parquet::errors::Result<Vec<u8>> {
    let level = ZstdLevel::try_new(ZSTD_LEVEL)?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_data_page_size_limit(PAGE_BYTES)
        .set_data_page_row_count_limit(usize::MAX)
        // A column is one page, so that places and bounds of pages say nothing more than those of columns.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_created_by(concat!("proftop-fleet ", env!("CARGO_PKG_VERSION")).into());
    for (_, column, encoding) in ENCODED.iter().filter(|it| it.0 == table) {
        let column = ColumnPath::new(column.split('.').map(String::from).collect());
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, *encoding);
    }
    if table == "samples" {
        // `compact` merges files whose ends say that their rows are sorted.
        let schema = batch.schema();
        let column = |name: &str| SortingColumn {
            column_idx: schema.index_of(name).map_or(-1, |it| it as i32),
            descending: false,
            nulls_first: false,
        };
        let columns = SORTED_BY.map(column).into();
        properties = properties.set_sorting_columns(Some(columns));
    }
    // Arrow's own description of the columns has nothing that Parquet's has not, and is longer than it.
    let options = ArrowWriterOptions::new()
        .with_properties(properties.build())
        .with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), batch.schema(), options)?;
    writer.write(batch)?;
    writer.into_inner()
}

#[cfg(test)]
mod tests;
