//! The distinct rules of a file. A million rows share a thousand rules.

use std::collections::HashMap;

use super::row::RuleId;
use super::rule::{RbpRule, Saved, Unsupported, UnwindRule};

/// Number of recent rules in a small cache: neighbouring functions are similar. Hashing the rule of
/// every row took a third of the time to read LLVM's table.
const RECENT: usize = 256;

/// Rules, numbered in the order in which they were met.
#[derive(Debug)]
pub struct Rules {
    list: Vec<UnwindRule>,
    ids: HashMap<UnwindRule, RuleId>,
    recent: [(UnwindRule, RuleId); RECENT],
}

impl Rules {
    /// Returns the number of a rule, which is added if it is new.
    pub fn id(&mut self, rule: UnwindRule) -> RuleId {
        let slot = slot(&rule);
        let (recent, id) = self.recent[slot];
        if recent == rule {
            return id;
        }
        let id = self.find_or_add(rule);
        self.recent[slot] = (rule, id);
        id
    }

    /// Returns all rules, each at the index that is its number.
    pub fn into_list(self) -> Vec<UnwindRule> {
        self.list
    }

    fn find_or_add(&mut self, rule: UnwindRule) -> RuleId {
        if let Some(id) = self.ids.get(&rule) {
            return *id;
        }
        // The last number is reserved for rules that do not get one.
        if self.list.len() == usize::from(u16::MAX) {
            let rest = UnwindRule::Unsupported(Unsupported::TooManyRules);
            self.list.push(rest);
        }
        let Ok(number) = u16::try_from(self.list.len()) else {
            return RuleId(u16::MAX);
        };
        self.list.push(rule);
        self.ids.insert(rule, RuleId(number));
        RuleId(number)
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            list: vec![UnwindRule::Hole],
            ids: HashMap::from([(UnwindRule::Hole, RuleId::HOLE)]),
            recent: [(UnwindRule::Hole, RuleId::HOLE); RECENT],
        }
    }
}

fn slot(rule: &UnwindRule) -> usize {
    // Offsets are multiples of 8.
    let mixed = match rule {
        UnwindRule::Frame { cfa, rbp } => {
            let saved = match rbp {
                RbpRule::Same => 0,
                RbpRule::AtCfa(offset) | RbpRule::AtRbp(offset) => offset.wrapping_mul(2),
            };
            (cfa.offset / 8) ^ saved ^ (cfa.base as i32) << 5
        }
        UnwindRule::Linked(frame) => {
            let saved = match frame.x30 {
                Saved::Not => 0,
                Saved::AtCfa(offset) => offset.wrapping_mul(2),
            };
            (frame.offset / 8) ^ saved ^ i32::from(frame.base) << 5
        }
        _ => 0,
    };
    mixed as usize % RECENT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unwind::Register;

    #[test]
    fn rules_keep_their_numbers() {
        let mut rules = Rules::default();
        let frame = |offset| UnwindRule::frame(Register::Rsp, offset, RbpRule::Same);
        assert_eq!(rules.id(UnwindRule::Hole), RuleId::HOLE);
        for round in 0..2 {
            for number in 1..=1000 {
                let id = rules.id(frame(i32::from(number)));
                assert_eq!(id, RuleId(number), "round {round}");
            }
        }
        assert_eq!(rules.into_list()[1000], frame(1000));
    }

    #[test]
    fn rules_beyond_the_numbers_are_unsupported() {
        let mut rules = Rules::default();
        let frame = |offset| UnwindRule::frame(Register::Rsp, offset, RbpRule::Same);
        let ids: Vec<RuleId> = (1..70_000).map(|offset| rules.id(frame(offset))).collect();
        assert_eq!(ids[65_533], RuleId(65_534));
        assert!(ids[65_534..].iter().all(|id| *id == RuleId(u16::MAX)));
        assert_eq!(rules.id(frame(1)), RuleId(1));
        let list = rules.into_list();
        assert_eq!(list.len(), 65_536);
        assert_eq!(
            list[65_535],
            UnwindRule::Unsupported(Unsupported::TooManyRules)
        );
    }
}
