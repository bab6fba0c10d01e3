//! The dictionary of rules that all tables share: a row refers to a rule by its number here. It
//! only grows, so that a number keeps its meaning as long as it may be read.

use super::encode::Packed;
use crate::shared::Shared;
use crate::shares::may_have_more;
use probe_ebpf::rule::{Extended, Rule, kind};
use probe_ebpf::table::{EXTENDED_MAX, RULES_MAX};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Number of words of an extended rule.
pub const EXTENDED_WORDS: usize = size_of::<Extended>() / 4;

/// All rules that were ever needed.
#[derive(Debug)]
pub struct Dictionary {
    rules: Arc<Shared>,
    extended: Arc<Shared>,
    numbers: HashMap<Packed, u16>,
    rules_used: usize,
    extended_used: usize,
    /// For each user the number of added rules, and of those that had no room.
    users: BTreeMap<u32, Brought>,
    dropped: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Brought {
    rules: usize,
    extended: usize,
    over_share: usize,
}

/// The user to whom the rules that everybody needs are charged.
const ROOT: u32 = 0;

impl Dictionary {
    /// Makes a dictionary in the values of the maps `RULES` and `EXTENDED`.
    pub fn new(rules: Arc<Shared>, extended: Arc<Shared>) -> Self {
        let mut dictionary = Self {
            rules,
            extended,
            numbers: HashMap::new(),
            rules_used: 0,
            extended_used: 0,
            users: BTreeMap::new(),
            dropped: 0,
        };
        // These two always exist, whatever else is dropped.
        dictionary.number_of(Packed::HOLE, ROOT);
        dictionary.number_of(Packed::UNSUPPORTED, ROOT);
        dictionary
    }

    /// Returns the number of a rule in a file of a user. If there is no room for a new one, or only
    /// for others, it is the number of `UNSUPPORTED`.
    pub fn number_of(&mut self, rule: Packed, user: u32) -> u16 {
        if let Some(number) = self.numbers.get(&rule) {
            return *number;
        }
        if !self.may_append(rule, user) {
            self.users.entry(user).or_default().over_share += 1;
            return self.numbers[&Packed::UNSUPPORTED];
        }
        let Some(number) = self.append(rule) else {
            self.dropped += 1;
            return self.numbers[&Packed::UNSUPPORTED];
        };
        let brought = self.users.entry(user).or_default();
        brought.rules += 1;
        brought.extended += usize::from(matches!(rule, Packed::Extended(_)));
        self.numbers.insert(rule, number);
        number
    }

    /// Number of rules that are one word.
    pub fn rules(&self) -> usize {
        self.rules_used
    }

    /// Number of rules that take more than a word.
    pub fn extended(&self) -> usize {
        self.extended_used
    }

    /// Number of rules that had no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns users whose rules were left out because they have used up their share, and how many
    /// those were.
    pub fn over_share(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        let users = self
            .users
            .iter()
            .map(|(user, brought)| (*user, brought.over_share));
        users.filter(|(_, over_share)| *over_share > 0)
    }

    /// Whether a user may add a rule. If there is no room at all, the reason is another one.
    fn may_append(&self, rule: Packed, user: u32) -> bool {
        let own = self.users.get(&user).copied().unwrap_or_default();
        let may = |own, all, max| all >= max || may_have_more(own, all, max);
        let is_extended = matches!(rule, Packed::Extended(_));
        may(own.rules, self.rules_used, RULES_MAX)
            && (!is_extended || may(own.extended, self.extended_used, EXTENDED_MAX))
    }

    fn append(&mut self, rule: Packed) -> Option<u16> {
        if self.rules_used >= RULES_MAX.min(self.rules.words().len()) {
            return None;
        }
        let word = match rule {
            Packed::Word(word) => word,
            Packed::Extended(extended) => self.append_extended(extended)?,
        };
        let number = self.rules_used;
        self.rules.words()[number].store(word.0, Ordering::Release);
        self.rules_used += 1;
        u16::try_from(number).ok()
    }

    fn append_extended(&mut self, extended: Extended) -> Option<Rule> {
        let number = self.extended_used;
        if number >= EXTENDED_MAX {
            return None;
        }
        let first = number * EXTENDED_WORDS;
        let place = self.extended.words().get(first..first + EXTENDED_WORDS)?;
        for (place, word) in place.iter().zip(extended_to_words(extended)) {
            place.store(word, Ordering::Release);
        }
        self.extended_used += 1;
        Some(Rule::new(kind::EXTENDED, number as u32, 0, 0))
    }
}

/// Converts an extended rule to its words in memory.
pub fn extended_to_words(rule: Extended) -> [u32; EXTENDED_WORDS] {
    let head = [rule.base, rule.deref, rule.caller_rbp, rule.caller_rbx];
    [
        u32::from_ne_bytes(head),
        rule.offset.cast_unsigned(),
        rule.addend.cast_unsigned(),
        rule.rbp_offset.cast_unsigned(),
    ]
}

/// Converts the words in the map to an extended rule.
pub fn extended_from_words(words: [u32; EXTENDED_WORDS]) -> Extended {
    let [base, deref, caller_rbp, caller_rbx] = words[0].to_ne_bytes();
    Extended {
        base,
        deref,
        caller_rbp,
        caller_rbx,
        offset: words[1].cast_signed(),
        addend: words[2].cast_signed(),
        rbp_offset: words[3].cast_signed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe_ebpf::rule::{base, special};

    fn dictionary() -> Dictionary {
        let rules = Arc::new(Shared::heap(RULES_MAX * 4));
        let extended = Arc::new(Shared::heap(EXTENDED_MAX * size_of::<Extended>()));
        Dictionary::new(rules, extended)
    }

    fn word_at(dictionary: &Dictionary, number: u16) -> Rule {
        Rule(dictionary.rules.words()[usize::from(number)].load(Ordering::Acquire))
    }

    fn extended(offset: i32) -> Packed {
        Packed::Extended(Extended {
            base: base::R10,
            offset,
            rbp_offset: -8,
            ..Extended::default()
        })
    }

    #[test]
    fn a_rule_has_one_number_and_is_there() {
        let mut dictionary = dictionary();
        let rule = Rule::new(kind::SP, 3, 1, 2);
        let number = dictionary.number_of(Packed::Word(rule), 0);
        assert_eq!(dictionary.number_of(Packed::Word(rule), 0), number);
        assert_eq!(word_at(&dictionary, number), rule);
        assert_eq!(dictionary.rules(), 3);
    }

    #[test]
    fn an_extended_rule_is_numbered_by_a_word() {
        let mut dictionary = dictionary();
        dictionary.number_of(extended(1), 0);
        let number = dictionary.number_of(extended(2), 0);
        let word = word_at(&dictionary, number);
        assert_eq!((word.kind(), word.offset()), (kind::EXTENDED, 1));
        let words: Vec<u32> = dictionary.extended.words()[4..8]
            .iter()
            .map(|word| word.load(Ordering::Acquire))
            .collect();
        let there = extended_from_words(words.try_into().unwrap());
        assert_eq!(Packed::Extended(there), extended(2));
    }

    #[test]
    fn the_words_are_the_record() {
        let rule = Extended {
            base: 1,
            deref: 2,
            caller_rbp: 3,
            caller_rbx: 0,
            offset: -4,
            addend: 5,
            rbp_offset: -6,
        };
        let words = extended_to_words(rule);
        assert_eq!(words[0].to_ne_bytes(), [1, 2, 3, 0]);
        assert_eq!(extended_from_words(words), rule);
    }

    #[test]
    fn a_full_dictionary_says_unsupported() {
        let mut dictionary = dictionary();
        // Each of these users has less than a share.
        let user_of = |at: usize, max: usize| (at * 9 / max) as u32;
        for offset in 0..EXTENDED_MAX {
            let user = user_of(offset, EXTENDED_MAX);
            dictionary.number_of(extended(offset as i32), user);
        }
        let unsupported = dictionary.number_of(Packed::UNSUPPORTED, 0);
        assert_eq!(dictionary.dropped(), 0);
        assert_eq!(dictionary.number_of(extended(-1), 9), unsupported);
        assert_eq!(dictionary.dropped(), 1);
        let words = (0..=Rule::OFFSET_MAX)
            .flat_map(|offset| [0, 1].map(|kind| Packed::Word(Rule::new(kind, offset, 0, 0))));
        let numbers: Vec<u16> = words
            .take(RULES_MAX)
            .enumerate()
            .map(|(at, word)| dictionary.number_of(word, user_of(at, RULES_MAX)))
            .collect();
        assert_eq!(dictionary.rules(), RULES_MAX);
        assert_eq!(numbers.last(), Some(&unsupported));
        let rule = word_at(&dictionary, unsupported);
        assert_eq!(rule, Rule::special(special::UNSUPPORTED));
        assert_eq!(dictionary.over_share().count(), 0);
    }

    #[test]
    fn a_user_leaves_an_eighth_to_others() {
        let mut dictionary = dictionary();
        let unsupported = dictionary.number_of(Packed::UNSUPPORTED, 0);
        for offset in 0..EXTENDED_MAX {
            dictionary.number_of(extended(offset as i32), 7);
        }
        let share = EXTENDED_MAX / 8;
        assert_eq!(dictionary.extended(), EXTENDED_MAX - share);
        assert_eq!(dictionary.over_share().collect::<Vec<_>>(), [(7, share)]);
        let number = dictionary.number_of(extended(-1), 8);
        assert_ne!(number, unsupported);
        // Existing rules can be used by everybody.
        assert_eq!(dictionary.number_of(extended(-1), 7), number);
    }
}
