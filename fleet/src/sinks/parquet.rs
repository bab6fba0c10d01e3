//! Windows as files of Parquet, in a folder that an SQL engine reads (docs/fleet.md has the schema):
//!
//! ```text
//! samples/date=2026-11-21/hour=14/HOST-ID-NUMBER.parquet
//! stacks/date=2026-11-21/HOST-ID-NUMBER.parquet
//! frames/…, hosts/…
//! ```
//!
//! The name is that of the first window in the file: what is written once more takes its own place.
//! Samples are written last, so that where they are, stacks and frames are as well.

/// The columns of each table.
mod tables;

use crate::config::Labels;
use crate::window::Window;
use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::properties::WriterProperties;
use arrow::array::RecordBatch;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The folder that a date's files are in, and the name of one.
pub struct TableFile<'a> {
    pub dir: &'a Path,
    /// As in `2026-11-21`.
    pub date: &'a str,
    pub hour: u32,
    /// Without its ending.
    pub name: &'a str,
}

impl TableFile<'_> {
    /// The file of a table.
    pub fn path(&self, table: &str) -> PathBuf {
        let mut path = self.dir.join(table).join(format!("date={}", self.date));
        if table == "samples" {
            path.push(format!("hour={:02}", self.hour));
        }
        path.join(format!("{}.parquet", self.name))
    }
}

/// Writes windows of one host to one file of each table. Returns their bytes together.
pub fn write(
    place: &TableFile,
    windows: &[Window],
    labels: &Labels,
    lost_windows: u64,
) -> io::Result<u64> {
    let mut bytes = 0;
    bytes += put(&place.path("frames"), tables::frames(windows)?)?;
    bytes += put(&place.path("stacks"), tables::stacks(windows)?)?;
    bytes += put(&place.path("hosts"), tables::hosts(windows, lost_windows)?)?;
    bytes += put(&place.path("samples"), tables::samples(windows, labels)?)?;
    Ok(bytes)
}

/// Writes a file that has its name only once it is whole.
fn put(path: &Path, batch: RecordBatch) -> io::Result<u64> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // Engines leave out what begins with a point.
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(path.file_name().unwrap_or_default());
    let part = folder.join(hidden);
    let file = File::create(&part)?;
    let level = ZstdLevel::try_new(3).map_err(io::Error::other)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_created_by(concat!("proftop-fleet ", env!("CARGO_PKG_VERSION")).into())
        .build();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    let file = writer.into_inner()?;
    file.sync_all()?;
    let bytes = file.metadata()?.len();
    fs::rename(&part, path)?;
    // The name as well has to be there after a crash of the machine: the spool is not asked again.
    File::open(folder)?.sync_all()?;
    Ok(bytes)
}
