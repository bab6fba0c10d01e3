//! *Words*: numbers, units and texts as the screen, the plain dialog and reports write them.

/// Why a row that was shown before is gone.
pub mod absence;
/// The difference from a baseline in words.
pub mod compared;
/// Lists of CPU numbers.
pub mod cpus;
/// A number explained in a sentence.
pub mod explain;
/// Text shortened to fit into a line.
pub mod fit;
/// The meaning of words and signs.
pub mod glossary;
/// The threads that other threads wait for.
pub mod held;
/// The keys that sentences name.
pub mod keys;
/// Markdown of a given maximum length, for language models.
pub mod markdown;
/// What is counted, in words.
pub mod metric;
/// Names as they are shown in rows.
pub mod names;
/// Notices as sentences.
pub mod notice;
/// The owner of a process.
pub mod person;
/// Text without characters that a terminal acts on.
pub mod plain;
/// Samples that a timer took too late, and so counted for a function that ran after the right one.
pub mod skid;
/// Places in source text.
pub mod source;
/// What threads were doing.
pub mod states;
/// Tasks of asyncio.
pub mod tasks;
/// Text from other programs, made safe and short.
pub mod text;
/// Numbers as text.
pub mod units;
/// Why a frame has no name.
pub mod unnamed;
/// Waits in numbers.
pub mod waits;
