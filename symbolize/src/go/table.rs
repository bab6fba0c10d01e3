//! The table. Its list of functions is in memory, everything else is read from the file on demand:
//! a provider of Terraform has a table of 186 MB.

use std::sync::Arc;

use super::header::{Header, Layout};
use crate::object::Object;

/// Maximum number of functions, whose list takes 64 MiB. The largest known program has half a
/// million.
const FUNCTIONS_MAX: u64 = 8 << 20;

/// Maximum length of a name; longer ones are cut. Those of generic functions repeat their types.
pub const NAME_BYTES_MAX: usize = 4 << 10;

/// Number of functions that are checked to tell a table from other data that looks like one.
const TRIED: u64 = 64;

/// A part of the file, and its address in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedPart {
    /// Offset in the file.
    pub offset: u64,
    /// Link address.
    pub addr: u64,
    /// Up to where the table can reach.
    pub len: u64,
}

/// The table of one file.
#[derive(Debug)]
pub struct Table {
    object: Arc<Object>,
    place: MappedPart,
    pub header: Header,
    /// Start of the text: all addresses below are relative to it.
    pub text: u64,
    /// Start and record offset of each function; the last entry is the end of the last function.
    pub(super) list: Vec<(u32, u32)>,
}

impl Table {
    /// Loads the table. `text` is the start of the text, if the header does not have it.
    pub fn load(
        object: &Arc<Object>,
        place: MappedPart,
        header: Header,
        text: impl FnOnce() -> Option<u64>,
    ) -> Option<Table> {
        let mut list = read_list(object, place, &header)?;
        let first = list.first()?.0;
        let text = match header.layout {
            Layout::Go1_2 | Layout::Go1_16 => first,
            _ if header.text_start != 0 => header.text_start,
            _ => text()?,
        };
        if header.list_word() == 8 {
            list.iter_mut()
                .for_each(|(start, _)| *start = start.wrapping_sub(text));
        }
        let list: Option<Vec<_>> = list
            .into_iter()
            .map(|(start, told)| Some((u32::try_from(start).ok()?, u32::try_from(told).ok()?)))
            .collect();
        let list = list.filter(|list| list.is_sorted_by_key(|entry| entry.0))?;
        // No function may exceed the address space.
        text.checked_add(list.last()?.0.into())?;
        Some(Table {
            object: object.clone(),
            place,
            header,
            text,
            list,
        })
    }

    /// Where each function starts.
    pub fn starts(&self) -> impl Iterator<Item = u64> {
        let functions = self.list.len() - 1;
        let starts = self.list[..functions].iter();
        starts.map(|(start, _)| self.text + u64::from(*start))
    }

    /// Returns the name at an offset.
    pub fn name(&self, offset: u32) -> Option<Vec<u8>> {
        let name = self.string(self.header.names.checked_add(offset.into())?)?;
        (!name.is_empty()).then_some(name)
    }

    /// Returns the path of a file, by its number in the function's compilation unit.
    pub fn file(&self, unit: u32, number: i32) -> Option<Vec<u8>> {
        let number = u64::try_from(number).ok()?;
        match self.header.layout {
            Layout::Go1_2 => {
                // The table of files follows the list.
                let list_end = self.header.list.checked_add(self.header.list_bytes()?)?;
                let files = u64::from(self.u32(list_end)?);
                let name = self.u32(files.checked_add(number * 4)?)?;
                self.string(name.into())
            }
            _ => {
                let index = u64::from(unit) + number;
                let name = self.u32(self.header.units.checked_add(index * 4)?)?;
                self.string(self.header.files.checked_add(name.into())?)
            }
        }
    }

    /// Reads a number of 4 bytes at an offset of the table; None if it ends before.
    pub fn u32(&self, offset: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        let have = self.read(offset, &mut bytes);
        (have == bytes.len()).then(|| u32::from_le_bytes(bytes))
    }

    /// Reads from the table at `offset`, as far as it goes; returns the number of bytes.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let left = self.place.len.saturating_sub(offset);
        let want = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        let offset = self.place.offset.saturating_add(offset);
        self.object.source().read_some(offset, &mut buffer[..want])
    }

    /// The file that the table is in.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// Bytes of heap in use, for the list of functions; the file is not counted.
    pub fn heap_bytes(&self) -> usize {
        self.list.capacity() * size_of::<(u32, u32)>()
    }

    fn string(&self, offset: u64) -> Option<Vec<u8>> {
        let mut short = [0; 256];
        let have = self.read(offset, &mut short);
        if let Some(end) = memchr::memchr(0, &short[..have]) {
            return Some(short[..end].to_vec());
        }
        let mut long = vec![0; NAME_BYTES_MAX];
        let have = self.read(offset, &mut long);
        let end = memchr::memchr(0, &long[..have]).unwrap_or(have);
        long.truncate(end);
        (have > 0).then_some(long)
    }
}

/// Reads the list as it is in the file: starts may be absolute.
fn read_list(object: &Object, place: MappedPart, header: &Header) -> Option<Vec<(u64, u64)>> {
    if header.functions > FUNCTIONS_MAX || !header.is_within(place.len) {
        return None;
    }
    let offset = place.offset.checked_add(header.list)?;
    let bytes = object
        .source()
        .read(offset, header.list_bytes()?, "functions of Go")
        .ok()?;
    let word = |bytes: &[u8]| match bytes.len() {
        4 => u64::from(u32::from_le_bytes(bytes.try_into().unwrap_or_default())),
        _ => u64::from_le_bytes(bytes.try_into().unwrap_or_default()),
    };
    let size = header.list_word() as usize;
    let pairs = bytes
        .chunks(size * 2)
        .map(|pair| match pair.split_at_checked(size) {
            Some((start, told)) if !told.is_empty() => (word(start), word(told)),
            _ => (word(pair), 0),
        });
    Some(pairs.collect())
}

/// Whether data that looks like a table is one: its first functions ascend, and have names.
pub fn is_plausible(object: &Object, place: MappedPart, header: &Header) -> bool {
    let few = Header {
        functions: header.functions.min(TRIED),
        ..*header
    };
    let Some(list) = read_list(object, place, &few) else {
        return false;
    };
    let mut bytes = [0; 1];
    let names = place.offset.saturating_add(header.names);
    let has_names = object.source().read_some(names, &mut bytes) == 1;
    has_names && list.is_sorted_by_key(|entry| entry.0)
}
