//! Figures for the health view.

/// How much there is, and what did not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableStats {
    /// Files that have a table.
    pub tables: usize,
    /// Rows of all tables.
    pub rows: usize,
    /// Files whose tables are to be built.
    pub waiting: usize,
    /// Pieces of the pool that are made.
    pub chunks: usize,
    /// All memory of the maps.
    pub kernel_bytes: u64,
    /// What of the chunks is used.
    pub used_bytes: u64,
    /// Different rules that the rows have.
    pub rules: usize,
    /// Different extended rules.
    pub extended_rules: usize,
    /// Processes that have a list.
    pub processes: usize,
    /// Processes with the same mappings share one.
    pub lists: usize,

    /// Files for whose tables there is no room now.
    pub files_without_room: usize,
    /// How often the kernel had no memory for a chunk.
    pub chunks_refused: u64,
    /// Rules that became unsupported because the dictionary is full.
    pub rules_dropped: u64,
    /// Processes that lost their lists to others.
    pub processes_evicted: u64,
    /// Updates of a process's list that the kernel did not take.
    pub processes_refused: u64,
    /// Lists that were not written because their user has a share already.
    pub lists_over_share: u64,
    /// Lists that had to wait for room.
    pub lists_postponed: u64,
    /// Lists that were longer than the walk can search.
    pub lists_cut: u64,
    /// Tables that were read from the cache.
    pub cache_hits: u64,
    /// Files of the cache that were damaged, and made anew.
    pub cache_damaged: u64,
}
