//! The comparison of the displayed samples with a baseline.

use super::{Baseline, BaselineLacks, People};
use profile::diff::Diff;
use std::sync::Arc;

/// The baseline, and the results, which are computed later. All are `None` while nothing is
/// compared.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// The baseline.
    pub baseline: Option<Arc<Baseline>>,
    /// The differences by function.
    pub functions: Option<Arc<Diff>>,
    /// The differences by process and thread.
    pub people: Option<Arc<People>>,
    /// What the samples of the baseline lack.
    pub lacks: Option<Arc<BaselineLacks>>,
}
