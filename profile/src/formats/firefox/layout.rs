//! The document as it is read: of each structure what matters here.

use crate::formats::json::{Column, Id, List, Times};
use serde::Deserialize;

/// Threads, libraries and categories of one document.
pub(super) const THREADS_MAX: usize = 1 << 16;

/// Texts of one table.
const TEXTS_MAX: usize = 4 << 20;

/// The whole document.
#[derive(Deserialize)]
pub(super) struct Profile {
    pub(super) meta: Meta,
    #[serde(default)]
    pub(super) libs: List<Lib, THREADS_MAX>,
    pub(super) threads: List<Thread, THREADS_MAX>,
    /// From version 55 on, more and more tables are here and not in threads.
    #[serde(default)]
    pub(super) shared: Thread,
}

/// What holds for all threads.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta {
    pub(super) preprocessed_profile_version: Option<u32>,
    /// In ms.
    #[serde(default)]
    pub(super) interval: f64,
    /// In ms since 1970.
    #[serde(default)]
    pub(super) start_time: f64,
    #[serde(default)]
    pub(super) product: String,
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
    /// Of ELF files the whole build-id.
    pub(super) code_id: Option<String>,
}

/// A thread, or what all of them share: each table is here or there.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Thread {
    pub(super) name: String,
    pub(super) process_name: Option<String>,
    pub(super) pid: Id,
    pub(super) tid: Id,
    pub(super) samples: Samples,
    /// Up to version 40.
    pub(super) libs: List<Lib, THREADS_MAX>,
    pub(super) stack_table: Option<StackTable>,
    pub(super) frame_table: Option<FrameTable>,
    pub(super) func_table: Option<FuncTable>,
    pub(super) resource_table: Option<ResourceTable>,
    /// Where functions are from, since version 57.
    pub(super) sources: Option<SourceTable>,
    #[serde(alias = "stringTable")]
    pub(super) string_array: Option<List<String, TEXTS_MAX>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Samples {
    pub(super) stack: Column,
    /// In ms since the start; newer ones tell the differences.
    pub(super) time: Times,
    pub(super) time_deltas: Times,
    pub(super) weight: Times,
    pub(super) weight_type: Option<String>,
}

/// By number of a stack: the stack of its caller, none for the outermost, and its
/// frame.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct StackTable {
    pub(super) prefix: Column,
    pub(super) frame: Column,
}

/// By number of a frame: where it is, and its function. Inlined frames have a depth
/// from 1 on; -1 stands for no address.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FrameTable {
    pub(super) address: Times,
    pub(super) inline_depth: Column,
    pub(super) category: Column,
    pub(super) func: Column,
    pub(super) line: Column,
}

/// By number of a function: its name and file as strings, and its resource.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FuncTable {
    pub(super) name: Column,
    pub(super) resource: Column,
    /// Up to version 56.
    pub(super) file_name: Column,
    pub(super) source: Column,
    #[serde(rename = "isJS")]
    pub(super) is_js: List<bool, TEXTS_MAX>,
}

/// By number of a resource: its library, or its name if it is none.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ResourceTable {
    pub(super) lib: Column,
    pub(super) name: Column,
}

/// By number of a source: the name of its file, as a string.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct SourceTable {
    pub(super) filename: Column,
}
