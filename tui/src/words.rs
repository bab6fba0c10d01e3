//! *Words*: numbers, units and texts as the screen, the plain dialog and reports
//! write them.

/// Why a row that was there is gone.
pub mod absence;
/// What differs from a baseline.
pub mod compared;
/// CPUs by their numbers.
pub mod cpus;
/// A number as a sentence.
pub mod explain;
/// Text that has to fit into a line.
pub mod fit;
/// What words and signs mean.
pub mod glossary;
/// For whom threads wait.
pub mod held;
/// Keys that sentences name.
pub mod keys;
/// Text with headings of a given length, for programs that read language.
pub mod markdown;
/// What is counted.
pub mod metric;
/// Names as they are shown in rows.
pub mod names;
/// Notices as sentences.
pub mod notice;
/// Who owns a process.
pub mod person;
/// Text without characters that a terminal acts on.
pub mod plain;
/// Samples that a timer counts too late, for a function that ran after the one it was for.
pub mod skid;
/// Places in source text.
pub mod source;
/// What threads did.
pub mod states;
/// Tasks of asyncio.
pub mod tasks;
/// Text of other programs, made safe and short.
pub mod text;
/// Numbers as text.
pub mod units;
/// Why there is no name.
pub mod unnamed;
/// Waits in numbers.
pub mod waits;
