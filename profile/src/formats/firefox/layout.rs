//! The document as it is read. Each structure has only the fields that are used here.

use crate::formats::json::{Column, Id, List, Times};
use serde::Deserialize;

/// Maximum number of threads, libraries and categories of one document, each.
pub(super) const THREADS_MAX: usize = 1 << 16;

/// Maximum number of entries of one table.
const TEXTS_MAX: usize = 4 << 20;

/// The whole document.
#[derive(Deserialize)]
pub(super) struct Profile {
    /// Start time, interval and everything else about the recording.
    pub(super) meta: Meta,
    /// Libraries of all threads; up to version 40 threads have their own list.
    #[serde(default)]
    pub(super) libs: List<Lib, THREADS_MAX>,
    pub(super) threads: List<Thread, THREADS_MAX>,
    /// Tables shared by all threads: from version 55 on, more and more tables are here and not in
    /// threads.
    #[serde(default)]
    pub(super) shared: Thread,
}

/// Properties of the whole recording.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta {
    /// Version of the format; absent in documents that are not of the processed format.
    pub(super) preprocessed_profile_version: Option<u32>,
    /// Time between samples in ms.
    #[serde(default)]
    pub(super) interval: f64,
    /// Start of the recording, in ms since 1970.
    #[serde(default)]
    pub(super) start_time: f64,
    /// What was recorded: a browser or another program.
    #[serde(default)]
    pub(super) product: String,
    /// Operating system and CPU, as one text.
    pub(super) oscpu: Option<String>,
    #[serde(rename = "logicalCPUs")]
    pub(super) logical_cpus: Option<u32>,
    #[serde(default)]
    pub(super) categories: List<Category, THREADS_MAX>,
}

#[derive(Deserialize)]
pub(super) struct Category {
    pub(super) name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lib {
    #[serde(default)]
    pub(super) name: String,
    pub(super) path: Option<String>,
    /// For ELF files the whole build-id as hexadecimal digits.
    pub(super) code_id: Option<String>,
}

/// The tables of a thread, or those that all threads share: each table is in one of the two.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Thread {
    pub(super) name: String,
    pub(super) process_name: Option<String>,
    pub(super) pid: Id,
    pub(super) tid: Id,
    pub(super) samples: Samples,
    /// Libraries of the thread, up to version 40.
    pub(super) libs: List<Lib, THREADS_MAX>,
    pub(super) stack_table: Option<StackTable>,
    pub(super) frame_table: Option<FrameTable>,
    pub(super) func_table: Option<FuncTable>,
    pub(super) resource_table: Option<ResourceTable>,
    /// Source files of functions, since version 57.
    pub(super) sources: Option<SourceTable>,
    #[serde(alias = "stringTable")]
    pub(super) string_array: Option<List<String, TEXTS_MAX>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Samples {
    pub(super) stack: Column,
    /// Time of each sample in ms since the start; newer versions have `time_deltas` instead.
    pub(super) time: Times,
    /// Time between each sample and the one before, in ms.
    pub(super) time_deltas: Times,
    /// Weight of each sample, in the unit `weight_type`; without weights each sample counts 1.
    pub(super) weight: Times,
    pub(super) weight_type: Option<String>,
}

/// Stacks, indexed by number. Each row has the row of the caller (absent for the outermost frame)
/// and the number of its frame.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct StackTable {
    pub(super) prefix: Column,
    pub(super) frame: Column,
}

/// Frames, indexed by number. Each row has an address (-1 for none), the function, and the inline
/// depth, which is above 0 for inlined frames.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FrameTable {
    pub(super) address: Times,
    pub(super) inline_depth: Column,
    pub(super) category: Column,
    pub(super) func: Column,
    pub(super) line: Column,
}

/// Functions, indexed by number: name and file as numbers of strings, and the resource.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FuncTable {
    pub(super) name: Column,
    pub(super) resource: Column,
    /// Number of the file's name, up to version 56.
    pub(super) file_name: Column,
    /// Row of the source table, since version 57.
    pub(super) source: Column,
    #[serde(rename = "isJS")]
    pub(super) is_js: List<bool, TEXTS_MAX>,
}

/// Resources, indexed by number: the library, or the name if the resource is not a library.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ResourceTable {
    pub(super) lib: Column,
    pub(super) name: Column,
}

/// Source files, indexed by number: the file name as the number of a string.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct SourceTable {
    pub(super) filename: Column,
}
