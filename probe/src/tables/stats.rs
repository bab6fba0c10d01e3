//! Statistics of tables for the Health page.

/// The amounts in use, and counts of what did not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableStats {
    /// Number of files that have a table.
    pub tables: usize,
    /// Number of rows of all tables.
    pub rows: usize,
    /// Number of files whose tables are to be built.
    pub waiting: usize,
    /// Number of chunks of the pool.
    pub chunks: usize,
    /// Memory of all maps, in bytes.
    pub kernel_bytes: u64,
    /// Used bytes of the chunks.
    pub used_bytes: u64,
    /// Number of different rules of the rows.
    pub rules: usize,
    /// Number of different extended rules.
    pub extended_rules: usize,
    /// Number of processes that have a list.
    pub processes: usize,
    /// Number of lists; processes with the same mappings share one.
    pub lists: usize,

    /// Number of files for whose tables there is no room now.
    pub files_without_room: usize,
    /// How often the kernel had no memory for a chunk.
    pub chunks_refused: u64,
    /// Rules that became unsupported because the dictionary is full.
    pub rules_dropped: u64,
    /// Processes that lost their lists to others.
    pub processes_evicted: u64,
    /// Updates of a process's list that the kernel refused.
    pub processes_refused: u64,
    /// Lists that were not written because their user has used up a share.
    pub lists_over_share: u64,
    /// Lists that had to wait for room.
    pub lists_postponed: u64,
    /// Lists that were longer than the walk can search.
    pub lists_cut: u64,
    /// Tables that were read from the cache.
    pub cache_hits: u64,
    /// Files of the cache that were damaged, and rebuilt.
    pub cache_damaged: u64,
}
