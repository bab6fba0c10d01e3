//! Compares with gimli, on units of every form, damaged ones too.

use super::*;
use gimli::constants::*;
use gimli::{AttributeValue, DebugAbbrev, DebugInfo, DwAt, DwTag, Dwarf, LittleEndian};
use proptest::prelude::*;

const TAGS: [DwTag; 5] = [
    DW_TAG_subprogram,
    DW_TAG_inlined_subroutine,
    DW_TAG_lexical_block,
    DW_TAG_structure_type,
    DW_TAG_variable,
];

const NAMES: [DwAt; 10] = [
    DW_AT_low_pc,
    DW_AT_high_pc,
    DW_AT_ranges,
    DW_AT_abstract_origin,
    DW_AT_call_file,
    DW_AT_call_line,
    DW_AT_call_column,
    DW_AT_name,
    DW_AT_type,
    DW_AT_location,
];

const FORMS: [DwForm; 44] = [
    DW_FORM_addr,
    DW_FORM_block2,
    DW_FORM_block4,
    DW_FORM_data2,
    DW_FORM_data4,
    DW_FORM_data8,
    DW_FORM_string,
    DW_FORM_block,
    DW_FORM_block1,
    DW_FORM_data1,
    DW_FORM_flag,
    DW_FORM_sdata,
    DW_FORM_strp,
    DW_FORM_udata,
    DW_FORM_ref_addr,
    DW_FORM_ref1,
    DW_FORM_ref2,
    DW_FORM_ref4,
    DW_FORM_ref8,
    DW_FORM_ref_udata,
    DW_FORM_indirect,
    DW_FORM_sec_offset,
    DW_FORM_exprloc,
    DW_FORM_flag_present,
    DW_FORM_strx,
    DW_FORM_addrx,
    DW_FORM_ref_sup4,
    DW_FORM_strp_sup,
    DW_FORM_data16,
    DW_FORM_line_strp,
    DW_FORM_ref_sig8,
    DW_FORM_implicit_const,
    DW_FORM_loclistx,
    DW_FORM_rnglistx,
    DW_FORM_ref_sup8,
    DW_FORM_strx1,
    DW_FORM_strx3,
    DW_FORM_addrx1,
    DW_FORM_addrx2,
    DW_FORM_addrx3,
    DW_FORM_addrx4,
    DW_FORM_GNU_ref_alt,
    DW_FORM_GNU_strp_alt,
    DwForm(0x7e),
];

/// A kind of entry: its tag, whether it has children, and its attributes.
type Kind = (usize, bool, Vec<(usize, usize)>);

fn leb(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Makes `.debug_abbrev`; every third code is far from the others.
fn abbreviations(kinds: &[Kind]) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, (tag, has_children, attributes)) in kinds.iter().enumerate() {
        leb(code(index), &mut out);
        leb(TAGS[*tag].0.into(), &mut out);
        out.push((*has_children).into());
        for (name, form) in attributes {
            leb(NAMES[*name].0.into(), &mut out);
            leb(FORMS[*form].0.into(), &mut out);
            if FORMS[*form] == DW_FORM_implicit_const {
                out.push(if *name == 5 { 0x7f } else { 0x2a });
            }
        }
        out.extend([0, 0]);
    }
    out.push(0);
    out
}

fn code(index: usize) -> u64 {
    if index % 3 == 2 {
        1 << (20 + index)
    } else {
        index as u64 + 1
    }
}

/// Makes `.debug_info` of one unit: entries of these kinds (or the end of children),
/// with random bytes as values, which may be invalid.
fn unit(version: u16, entries: &[(usize, Vec<u8>)], kinds: &[Kind]) -> Vec<u8> {
    let mut out = vec![0; 4];
    out.extend(version.to_le_bytes());
    match version {
        5 => out.extend([1, 8, 0, 0, 0, 0]),
        _ => out.extend([0, 0, 0, 0, 8]),
    }
    for (kind, values) in entries {
        match kinds.get(*kind) {
            Some(_) => leb(code(*kind), &mut out),
            None => out.push(0),
        }
        out.extend(values);
    }
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_le_bytes());
    out
}

/// An entry: its offset, its depth, whether it is inlined, and the attributes that are read.
type Told = (u64, isize, bool, Vec<(DwAt, Value)>);

fn by_gimli(unit: &Unit<Slice<'_>>) -> Vec<Told> {
    let mut told = Vec::new();
    let mut entries = unit.entries_raw(None).unwrap();
    while !entries.is_empty() {
        let (depth, offset) = (entries.next_depth(), entries.next_offset());
        let Ok(abbreviation) = entries.read_abbreviation() else {
            break;
        };
        let Some(abbreviation) = abbreviation else {
            continue;
        };
        let mut values = Vec::new();
        for &spec in abbreviation.attributes() {
            let Ok(attribute) = entries.read_attribute(spec) else {
                return told;
            };
            if NAMES[..7].contains(&attribute.name()) {
                values.push((attribute.name(), value(attribute.raw_value())));
            }
        }
        let tag = abbreviation.tag();
        if tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine {
            // Of two attributes with the same name the last one counts.
            values.reverse();
            values.sort_by_key(|(name, _)| name.0);
            values.dedup_by_key(|(name, _)| *name);
            let is_inlined = tag == DW_TAG_inlined_subroutine;
            told.push((offset.0 as u64, depth, is_inlined, values));
        }
    }
    told
}

fn value(value: AttributeValue<Slice<'_>>) -> Value {
    match value {
        AttributeValue::Addr(address) => Value::Address(address),
        AttributeValue::DebugAddrIndex(index) => Value::AddressIndex(index.0 as u64),
        AttributeValue::Data1(number) => Value::Number(number.into()),
        AttributeValue::Data2(number) => Value::Number(number.into()),
        AttributeValue::Data4(number) => Value::Number(number.into()),
        AttributeValue::Data8(number) | AttributeValue::Udata(number) => Value::Number(number),
        AttributeValue::Sdata(number) => signed(number),
        AttributeValue::SecOffset(offset) => Value::Number(offset as u64),
        AttributeValue::DebugRngListsIndex(index) => Value::RangesIndex(index.0 as u64),
        AttributeValue::UnitRef(offset) => Value::InUnit(offset.0 as u64),
        AttributeValue::DebugInfoRef(offset) => Value::InSection(offset.0 as u64),
        AttributeValue::DebugInfoRefSup(offset) => Value::InSupplementary(offset.0 as u64),
        _ => Value::Other,
    }
}

fn by_us(unit: &Unit<Slice<'_>>) -> Vec<Told> {
    let mut told = Vec::new();
    let mut entries = Entries::new(unit).unwrap();
    while let Some(event) = entries.next() {
        if event == Event::Closed {
            continue;
        }
        let function = entries.function();
        let mut values: Vec<_> = [
            (DW_AT_low_pc, function.low),
            (DW_AT_high_pc, function.high),
            (DW_AT_ranges, function.ranges),
            (DW_AT_abstract_origin, function.origin),
            (DW_AT_call_file, function.call_file),
            (DW_AT_call_line, function.call_line),
            (DW_AT_call_column, function.call_column),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
        values.sort_by_key(|(name, _)| name.0);
        told.push((
            function.offset,
            entries.depth(),
            function.is_inlined,
            values,
        ));
    }
    told
}

proptest! {
    #[test]
    fn the_same_as_gimli(
        version in 2u16..=5,
        kinds in proptest::collection::vec(
            (0..TAGS.len(), any::<bool>(), proptest::collection::vec((0..NAMES.len(), 0..FORMS.len()), 0..6)),
            1..6,
        ),
        entries in proptest::collection::vec(
            (0usize..7, proptest::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..24)),
            0..12,
        ),
    ) {
        let abbreviations = abbreviations(&kinds);
        let info = unit(version, &entries, &kinds);
        let dwarf = Dwarf::<Slice<'_>> {
            debug_abbrev: DebugAbbrev::new(&abbreviations, LittleEndian),
            debug_info: DebugInfo::new(&info, LittleEndian),
            ..Dwarf::default()
        };
        let header = dwarf.units().next();
        let Ok(Some(header)) = header else { return Ok(()) };
        // A unit whose root cannot be read is invalid.
        let Ok(unit) = dwarf.unit(header) else { return Ok(()) };
        prop_assert_eq!(by_us(&unit), by_gimli(&unit));
    }
}
