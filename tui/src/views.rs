//! The *views*: a room for each, with its state, what it asks of the profile, its
//! words and its drawing.

pub mod code;
pub mod cpus;
pub mod flame;
pub mod functions;
pub mod health;
pub mod page;
pub mod processes;
pub mod question;
pub mod seconds;
pub mod threads;
pub mod time;
pub mod tree;

use crate::lists::table;
use profile::{FunctionRow, ProcessRow, ThreadRow};

/// The state of every view. Switching views forgets nothing.
#[derive(Debug, Default)]
pub struct Views {
    pub functions: table::Table<FunctionRow>,
    pub difference: functions::difference::Difference,
    /// Beside the functions.
    pub beside: page::Page,
    pub tree: tree::Tree,
    /// The other way round, beside it.
    pub other_tree: tree::Tree,
    pub flame: flame::Flame,
    /// Of a stretch of time, below its map.
    pub stretch_flame: flame::Flame,
    /// Beside what differs.
    pub difference_flame: flame::Flame,
    pub page: page::Page,
    /// Below the functions.
    pub seconds: seconds::Seconds,
    pub time: time::Time,
    pub code: code::Code,
    /// Its instructions, beside the source text.
    pub other_code: code::Code,
    pub processes: table::Table<ProcessRow>,
    /// Those of the selected process, beside the processes.
    pub own_threads: table::Table<ThreadRow>,
    pub threads: table::Table<ThreadRow>,
    pub health: health::Health,
}
