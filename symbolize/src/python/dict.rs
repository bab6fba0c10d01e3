//! Reads dictionaries and the attributes of objects from memory (`Include/internal/pycore_dict.h`,
//! `pycore_object.h`).

use super::layout::{Attributes, Layout};
use super::memory::{Lack, Memory, pointer, word};

/// Maximum number of entries of a dictionary; larger ones are not read.
const ENTRIES_MAX: u64 = 1 << 14;

/// Offsets of `ma_keys` and `ma_values` in `PyDictObject`.
const KEYS: u32 = 32;
const VALUES: u32 = 40;

/// Offsets of `ob_type` in an object; of `tp_basicsize` and `tp_dictoffset` in a type.
const TYPE: u64 = 8;
const BASIC_SIZE: u64 = 32;
const DICT_OFFSET: u64 = 288;

/// One entry of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// The hash of the key; `None` if all keys are strings, which contain their own hash.
    pub hash: Option<u64>,
    /// Address of the key.
    pub key: u64,
    /// Address of the value; 0 if there is none.
    pub value: u64,
}

/// Reads the entries of a dictionary.
pub fn read_dict(memory: &impl Memory, dict: u64, layout: &Layout) -> Result<Vec<Item>, Lack> {
    let fields = memory.read(dict, VALUES + 8)?;
    let items = read_keys(memory, pointer(&fields, KEYS)?, layout)?;
    match word(&fields, VALUES)? {
        0 => Ok(items),
        values => {
            let values = values.wrapping_add(layout.objects.values_start());
            with_values(memory, values, items)
        }
    }
}

/// Reads the attributes of an object whose class was defined in Python.
pub fn read_attributes(
    memory: &impl Memory,
    object: u64,
    layout: &Layout,
) -> Result<Vec<Item>, Lack> {
    let kind = read_word(memory, object.wrapping_add(TYPE))?;
    let before = |words: u64| read_word(memory, object.wrapping_sub(8 * words));
    let values = match layout.objects.attributes {
        Attributes::Dict => {
            let offset = read_word(memory, kind.wrapping_add(DICT_OFFSET))?;
            let dict = read_word(memory, object.wrapping_add(offset))?;
            return read_dict(memory, dict, layout);
        }
        Attributes::TwoPointers => match before(3)? {
            0 => before(4)?,
            dict => return read_dict(memory, dict, layout),
        },
        Attributes::OnePointer => match before(3)? {
            values if values & 1 != 0 => values.wrapping_add(1),
            dict => return read_dict(memory, dict, layout),
        },
        Attributes::Inline => match before(3)? {
            0 => object.wrapping_add(read_word(memory, kind.wrapping_add(BASIC_SIZE))?),
            dict => return read_dict(memory, dict, layout),
        },
    };
    let keys = read_word(memory, kind.wrapping_add(layout.objects.cached_keys.into()))?;
    let items = read_keys(memory, keys, layout)?;
    let values = values.wrapping_add(layout.objects.values_start());
    with_values(memory, values, items)
}

/// Reads the entries of a table of keys (`PyDictKeysObject`).
fn read_keys(memory: &impl Memory, keys: u64, layout: &Layout) -> Result<Vec<Item>, Lack> {
    const IMPLAUSIBLE: Lack = Lack::Implausible("a dictionary");
    let head = memory.read(keys, 40)?;
    let (count, start, has_hashes) = match layout.objects.attributes {
        Attributes::Dict => {
            let size = word(&head, 8)?;
            let index_bytes = match size {
                0..=0xff => 1,
                0x100..=0xffff => 2,
                0x1_0000..=0xffff_ffff => 4,
                _ => return Err(IMPLAUSIBLE),
            };
            (word(&head, 32)?, 40 + size * index_bytes, true)
        }
        _ => {
            let index_bytes = 1u64.checked_shl(head[9].into()).ok_or(IMPLAUSIBLE)?;
            let start = index_bytes.checked_add(32).ok_or(IMPLAUSIBLE)?;
            (word(&head, 24)?, start, head[10] == 0)
        }
    };
    if count > ENTRIES_MAX {
        return Err(IMPLAUSIBLE);
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    let hash_bytes = if has_hashes { 8 } else { 0 };
    let step = 16 + hash_bytes;
    let bytes = memory.read(keys.wrapping_add(start), count as u32 * step)?;
    let item = |at: u32| {
        Ok(Item {
            hash: has_hashes.then(|| word(&bytes, at)).transpose()?,
            key: word(&bytes, at + hash_bytes)?,
            value: word(&bytes, at + hash_bytes + 8)?,
        })
    };
    (0..count as u32)
        .map(|number| item(number * step))
        .collect()
}

/// Replaces the values of entries by those of an array.
fn with_values(memory: &impl Memory, values: u64, items: Vec<Item>) -> Result<Vec<Item>, Lack> {
    if items.is_empty() {
        return Ok(items);
    }
    let bytes = memory.read(values, 8 * items.len() as u32)?;
    let item = |(number, item): (u32, Item)| {
        Ok(Item {
            value: word(&bytes, 8 * number)?,
            ..item
        })
    };
    (0..).zip(items).map(item).collect()
}

/// Reads the word at an address.
pub fn read_word(memory: &impl Memory, address: u64) -> Result<u64, Lack> {
    word(&memory.read(address, 8)?, 0)
}
