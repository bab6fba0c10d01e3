//! A row of a table: an address, and the number of the rule from there on.

/// From `start` to the next row's, `rule` applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// A link address.
    pub start: u32,
    /// The number of the rule that applies from there on.
    pub rule: RuleId,
}

/// A place in [`UnwindTable::rules`](super::UnwindTable::rules).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RuleId(pub u16);

impl RuleId {
    /// [`UnwindRule::Hole`](super::UnwindRule::Hole) in every table.
    pub const HOLE: RuleId = RuleId(0);
}
