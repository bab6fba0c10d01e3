//! What runs SQL: the engine that is built in, or a server.

/// ClickHouse, over HTTP.
mod clickhouse;
/// DataFusion, in this process, on a folder of Parquet files.
mod embedded;
/// The files of a folder, each checked before anything is asked of it.
mod files;

pub use clickhouse::{Address, ClickHouse};
pub use embedded::{Bounds, Embedded};
pub use files::{Folder, Span, has_samples};

use crate::failure::Failure;
use crate::rows::Rows;

/// The most bytes of texts and numbers that an answer may have: they are in memory together.
pub const ANSWER_BYTES_MAX: usize = 512 << 20;

/// What runs SQL.
pub trait Engine {
    /// The answer to a statement.
    fn rows(&self, sql: &str) -> Result<Rows, Failure>;
}

/// The failure of an answer that is too long.
fn too_long() -> Failure {
    Failure::failed(format!(
        "the answer has more than {} MB: ask for less time, one service or fewer rows",
        ANSWER_BYTES_MAX >> 20
    ))
}
