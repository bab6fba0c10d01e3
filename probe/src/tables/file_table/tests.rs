use super::*;
use crate::tables::maps::TableMaps;
use crate::tables::reader::Reader;
use probe_ebpf::rule::{Rule, special};
use probe_ebpf::table::Mapping;
use proptest::prelude::*;
use symbolize::unwind::{RbpRule, Register, RuleId};

fn rule(words: u32) -> UnwindRule {
    UnwindRule::frame(Register::Rsp, words as i32 * 8, RbpRule::Same)
}

/// Builds a table from `(address, rule)`; the rules are 0..=8, and 0 is the hole.
fn build(rows: &[(u32, u32)]) -> Result<FileTable, NoTable> {
    let rules: Vec<UnwindRule> = (0..9)
        .map(|number| match number {
            0 => UnwindRule::Hole,
            number => rule(number),
        })
        .collect();
    let rows: Vec<Row> = rows.iter().map(|row| self::row(row.0, row.1)).collect();
    FileTable::build(&rows, &rules, &Segments::default())
}

fn row(start: u32, rule: u32) -> Row {
    Row {
        start,
        rule: RuleId(rule as u16),
    }
}

/// Loads a table into a pool that already holds another one; also returns a reader of it.
fn load(table: &FileTable) -> (Loaded, Reader) {
    let maps = TableMaps::in_memory();
    let mut pool = Pool::new(maps.chunks, 64 << 20);
    let mut dictionary = Dictionary::new(maps.rules.clone(), maps.extended.clone());
    let before = build(&[(0x1000, 8), (0x1010, 3)]).unwrap();
    before.load(&mut pool, &mut dictionary, 0).unwrap();
    let loaded = table.load(&mut pool, &mut dictionary, 0).unwrap();
    let reader = Reader::new(
        pool.chunks().clone(),
        maps.rules,
        maps.extended,
        maps.mappings,
    );
    (loaded, reader)
}

/// Returns the rule of an address, by a linear search of the rows.
fn naive(rows: &[(u32, u32)], address: u32) -> Rule {
    let after = rows.partition_point(|(start, _)| *start <= address);
    let number = after.checked_sub(1).map_or(0, |index| rows[index].1);
    let rule = match number {
        0 => UnwindRule::Hole,
        number => rule(number),
    };
    match encode(&rule) {
        Packed::Word(rule) => rule,
        Packed::Extended(_) => unreachable!("not used here"),
    }
}

/// Checks that every one of these addresses has the expected rule.
fn check(rows: &[(u32, u32)], addresses: impl Iterator<Item = u32>) {
    let (loaded, reader) = load(&build(rows).unwrap());
    let mapping = Mapping {
        start: 0,
        end: 1 << 32,
        table: loaded.handle.table,
        first_page: loaded.handle.first_page,
        pages: loaded.handle.pages,
        ..Mapping::default()
    };
    for address in addresses {
        let expected = naive(rows, address);
        let found = reader.rule_at(&mapping, u64::from(address));
        assert_eq!(found, expected, "at {address:#x}");
    }
}

#[test]
fn a_function_in_the_middle_of_nothing() {
    check(&[(0x1_1000, 1), (0x1_1010, 2), (0x1_1020, 0)], 0..0x3_0000);
}

#[test]
fn a_rule_holds_across_pages() {
    check(&[(0xfff8, 1), (0x4_0000, 2), (0x4_0001, 0)], 0..0x6_0000);
}

#[test]
fn pages_of_holes_cost_one_word() {
    let built = build(&[(0x100, 1), (0x200, 0), (0x7_0000, 2), (0x7_0001, 0)]).unwrap();
    assert_eq!(built.page_rows, [3, 0, 0, 0, 0, 0, 0, 2]);
    assert_eq!(built.words.len(), 64 + 3 + 64 + 2);
    let high = build(&[(0xffff_ff00, 1), (0xffff_fff0, 0)]).unwrap();
    assert_eq!((high.first_page, high.page_rows.len()), (0xffff, 1));
}

#[test]
fn rows_that_say_the_same_are_one() {
    let built = build(&[(0, 1), (8, 1), (16, 2), (16, 1), (24, 0), (32, 0)]).unwrap();
    assert_eq!(built.page_rows, [2]);
}

#[test]
fn a_row_for_every_byte() {
    let rows: Vec<(u32, u32)> = (0..0xffff).map(|at| (at, at % 2 + 1)).collect();
    check(&rows, 0..0x1_0000);
    let rows: Vec<(u32, u32)> = (0..0x1_0000).map(|at| (at, at % 2 + 1)).collect();
    assert_eq!(build(&rows), Err(NoTable::TooLarge));
}

#[test]
fn what_cannot_be() {
    assert_eq!(build(&[]), Err(NoTable::NoUnwindInfo));
    assert_eq!(build(&[(5, 0)]), Err(NoTable::NoUnwindInfo));
    assert_eq!(build(&[(5, 1), (4, 0)]), Err(NoTable::Damaged));
    assert_eq!(build(&[(5, 99)]), Err(NoTable::Damaged));
}

#[test]
fn more_rules_than_numbers() {
    let rows: Vec<Row> = (0..65_536).map(|rule| row(rule * 2, rule)).collect();
    let rules: Vec<UnwindRule> = (0..65_536).map(rule).collect();
    let built = FileTable::build(&rows, &rules, &Segments::default()).unwrap();
    assert_eq!(built.rules.len(), 65_536);
    let unsupported = Packed::Word(Rule::special(special::UNSUPPORTED));
    assert_eq!(built.rules[1], unsupported);
    assert_eq!(rule_of(*built.words.last().unwrap()), 1);
}

#[test]
fn a_full_pool_is_left_as_it_was() {
    let maps = TableMaps::in_memory();
    let mut pool = Pool::new(maps.chunks, 1 << 20);
    let mut dictionary = Dictionary::new(maps.rules, maps.extended);
    let rows: Vec<(u32, u32)> = (0..300_000).map(|at| (at * 2, at % 2 + 1)).collect();
    assert!(
        build(&rows)
            .unwrap()
            .load(&mut pool, &mut dictionary, 0)
            .is_none()
    );
    let all = (1 << 18) - 1;
    assert!(pool.allocate(all).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn as_the_rows_say(
        gaps in proptest::collection::vec((prop_oneof![1u32..20, 1u32..3000, 60_000u32..200_000], 0u32..9), 1..80),
        first in 0u32..200_000,
    ) {
        let mut at = first;
        let mut rows = Vec::new();
        for (gap, rule) in gaps {
            rows.push((at, rule));
            at += gap;
        }
        rows.push((at, 0));
        prop_assume!(rows.iter().any(|(_, rule)| *rule != 0));
        let near = rows.iter().flat_map(|(start, _)| [start.saturating_sub(1), *start, start + 1]);
        let near: Vec<u32> = near.collect();
        let everywhere = (0..at + 70_000).step_by(997);
        check(&rows, everywhere.chain(near));
    }
}
