//! The comparison of what is shown with a baseline.

use super::{Baseline, BaselineLacks, People};
use profile::diff::Diff;
use std::sync::Arc;

/// What all is compared with, and the results, which come after it. All are `None`
/// while nothing is compared.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// The samples of before.
    pub baseline: Option<Arc<Baseline>>,
    /// The difference, function by function.
    pub functions: Option<Arc<Diff>>,
    /// The difference, process by process and thread by thread.
    pub people: Option<Arc<People>>,
    /// What the numbers of the baseline lack.
    pub lacks: Option<Arc<BaselineLacks>>,
}
