//! Engines that run SQL: the embedded one, or a server.

/// Replaces the embedded engine's SQL function `any_value`.
mod any_value;
/// Queries ClickHouse over HTTP.
mod clickhouse;
/// Runs DataFusion in this process on Parquet files.
mod embedded;
/// The files of tables, each of which is checked before any query.
mod files;
/// Where tables are: a folder or a bucket.
mod place;

pub use clickhouse::{Address, ClickHouse};
pub use embedded::{Bounds, Embedded};
pub use files::{FILES_MAX, Folder, Span, Table, days, nothing};
pub use place::{Place, is_parquet};

use crate::failure::Failure;
use crate::rows::Rows;

/// Maximum bytes of texts and numbers in an answer, which is in memory as a whole.
pub const ANSWER_BYTES_MAX: usize = 512 << 20;

/// An engine that runs SQL.
pub trait Engine {
    /// Returns the result of a statement.
    fn rows(&self, sql: &str) -> Result<Rows, Failure>;

    /// Returns the results of statements in their order. An engine may run them at the same time.
    fn rows_of_all(&self, statements: &[&str]) -> Result<Vec<Rows>, Failure> {
        statements.iter().map(|sql| self.rows(sql)).collect()
    }
}

/// Makes the failure for an answer that is too long.
fn too_long() -> Failure {
    Failure::failed(format!(
        "the answer has more than {} MB: ask for less time, one service or fewer rows",
        ANSWER_BYTES_MAX >> 20
    ))
}
