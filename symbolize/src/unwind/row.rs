//! A row of a table: an address, and the number of the rule from there on.

/// `rule` is valid from `start` up to the next row's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// A link address.
    pub start: u32,
    /// The number of the rule.
    pub rule: RuleId,
}

/// An index in [`UnwindTable::rules`](super::UnwindTable::rules).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RuleId(pub u16);

impl RuleId {
    /// The number of [`UnwindRule::Hole`](super::UnwindRule::Hole) in every table.
    pub const HOLE: RuleId = RuleId(0);
}
