//! Finds the types and functions with a name in the debug information.
//!
//! It is built by visiting every entry that is not inside of a function, and only when something is
//! looked up by name. It holds hashes of names with the places of entries.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry as Slot};
use std::hash::{Hash as _, Hasher as _};

use gimli::{EntriesTreeNode, UnitType};

use super::super::names::{EntryPlace, REFERENCES_MAX};
use super::super::reader::Reader;
use super::super::sections::Slice;
use super::super::unit::Window;
use super::look::{self, Look, SIGNATURE_BITS};

/// Maximum number of types, and of functions, that are kept: the largest known programs have half
/// as many.
const NAMES_MAX: usize = 4 << 20;

/// Maximum nesting of namespaces and classes.
const DEPTH_MAX: usize = 64;

/// Places of entries by name.
#[derive(Debug, Default)]
pub struct Directory {
    types: HashMap<u64, EntryPlace>,
    functions: HashMap<u64, Of>,
    /// Types in units of their own, by signature.
    signatures: HashMap<u64, EntryPlace>,
    /// Whether some units are in other files (split DWARF).
    pub is_split: bool,
}

/// What is known about the functions with one name.
#[derive(Debug, Clone, Copy)]
enum Of {
    /// One function, or several that are the same: it is visible to all units, or its text is in a
    /// header. With the line at which it begins.
    One(EntryPlace, Option<u64>),
    /// Several functions, each visible only to its own unit.
    Several,
}

/// The result of looking up a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// No function has the name.
    Nothing,
    /// The entry of the only function with the name, or of one of several that are the same.
    One(EntryPlace),
    /// Several functions have the name, so that it does not identify any.
    Several,
}

impl Directory {
    /// Visits all entries that are not inside of a function.
    pub fn read(reader: &Reader<'_>) -> Directory {
        let mut directory = Directory::default();
        let mut window = Window::default();
        for number in 0..reader.all_units() {
            let Some(opened) = reader.open_numbered(number, &mut window) else {
                continue;
            };
            let look = Look::new(&opened);
            directory.is_split |= opened.unit.dwo_id.is_some();
            if let UnitType::Type {
                type_signature,
                type_offset,
            } = opened.unit.header.type_()
            {
                let place = look.place_of(type_offset);
                let number = type_signature.0 & SIGNATURE_BITS;
                directory.signatures.insert(number, place);
            }
            let Ok(mut tree) = opened.unit.entries_tree(None) else {
                continue;
            };
            if let Ok(root) = tree.root() {
                directory.walk(&look, root, &mut Vec::new());
            }
        }
        directory
    }

    /// Finds the definition of a type by its name with namespaces.
    pub fn type_of(&self, name: &str) -> Option<EntryPlace> {
        self.types.get(&hash(name)).copied()
    }

    /// Finds a function by its linkage name.
    pub fn function(&self, name: &str) -> Named {
        match self.functions.get(&hash(name)) {
            None => Named::Nothing,
            Some(Of::One(place, _)) => Named::One(*place),
            Some(Of::Several) => Named::Several,
        }
    }

    /// Returns the entry of a type unit by its signature.
    pub fn of_signature(&self, number: u64) -> Option<EntryPlace> {
        self.signatures.get(&number).copied()
    }

    fn walk<'w>(
        &mut self,
        look: &Look<'_, 'w, '_>,
        node: EntriesTreeNode<'_, '_, Slice<'w>>,
        scopes: &mut Vec<String>,
    ) {
        let mut children = node.children();
        while let Ok(Some(child)) = children.next() {
            let entry = child.entry();
            match entry.tag() {
                gimli::DW_TAG_subprogram => self.add_function(look, entry),
                gimli::DW_TAG_namespace | gimli::DW_TAG_module => {
                    // The contents of an unnamed namespace are named as if it did not exist.
                    let name = look.name(entry);
                    self.enter(look, child, name, scopes);
                }
                gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type => {
                    let name = look.name(entry);
                    if let Some(name) = &name {
                        self.add_type(look, entry, scopes, name, true);
                    }
                    if name.is_some() {
                        self.enter(look, child, name, scopes);
                    }
                }
                gimli::DW_TAG_typedef | gimli::DW_TAG_enumeration_type => {
                    if let Some(name) = look.name(entry) {
                        self.add_type(look, entry, scopes, &name, false);
                    }
                }
                _ => {}
            }
        }
    }

    fn enter<'w>(
        &mut self,
        look: &Look<'_, 'w, '_>,
        node: EntriesTreeNode<'_, '_, Slice<'w>>,
        name: Option<String>,
        scopes: &mut Vec<String>,
    ) {
        if scopes.len() >= DEPTH_MAX {
            return;
        }
        // An unnamed scope counts for the depth as well.
        scopes.push(name.unwrap_or_default());
        self.walk(look, node, scopes);
        scopes.pop();
    }

    /// Adds a type. In C a structure and a typedef may have the same name: the structure is
    /// preferred.
    fn add_type(
        &mut self,
        look: &Look<'_, '_, '_>,
        entry: &look::Entry<'_>,
        scopes: &[String],
        name: &str,
        is_structure: bool,
    ) {
        if look::has(entry, gimli::DW_AT_declaration) || self.types.len() >= NAMES_MAX {
            return;
        }
        let place = look.place_of(entry.offset());
        match self.types.entry(hash(&qualified(scopes, name))) {
            Slot::Vacant(slot) => {
                slot.insert(place);
            }
            Slot::Occupied(mut slot) if is_structure => {
                slot.insert(place);
            }
            Slot::Occupied(_) => {}
        }
    }

    /// Adds a function with its parameters, if it is compiled here or was inlined.
    fn add_function(&mut self, look: &Look<'_, '_, '_>, entry: &look::Entry<'_>) {
        let is_defined = entry.has_attr(gimli::DW_AT_low_pc)
            || entry.has_attr(gimli::DW_AT_ranges)
            || entry.has_attr(gimli::DW_AT_inline);
        if !is_defined || self.functions.len() >= NAMES_MAX {
            return;
        }
        let Some(told) = name_of(look, entry) else {
            return;
        };
        let place = look.place_of(entry.offset());
        match self.functions.entry(hash(&told.name)) {
            Slot::Vacant(slot) => {
                slot.insert(Of::One(place, told.line));
            }
            Slot::Occupied(mut slot) if !told.is_external => {
                // A concrete instance follows its abstract one, in the same unit.
                let is_same = match slot.get() {
                    Of::One(first, line) => {
                        look.offset_of(*first).is_some() || *line == told.line && line.is_some()
                    }
                    Of::Several => true,
                };
                if !is_same {
                    slot.insert(Of::Several);
                }
            }
            Slot::Occupied(_) => {}
        }
    }
}

/// What an entry says about a function as a whole.
pub struct Told {
    /// The linkage name.
    pub name: String,
    /// Whether other units can see it.
    is_external: bool,
    /// Line at which it begins in its file.
    line: Option<u64>,
}

/// Returns the linkage name of a function; `None` if this unit does not have it.
pub fn name_of(look: &Look<'_, '_, '_>, entry: &look::Entry<'_>) -> Option<Told> {
    let mut is_external = false;
    let (mut name, mut plain, mut line) = (None, None, None);
    let mut take = |entry: &look::Entry<'_>| {
        is_external |= look::has(entry, gimli::DW_AT_external);
        line = line.or_else(|| look::number(entry, gimli::DW_AT_decl_line));
        name = name.take().or_else(|| look.linkage_name(entry));
        plain = plain.take().or_else(|| look.name(entry));
        origin_of(look, entry).filter(|_| name.is_none() || line.is_none())
    };
    let mut origin = take(entry);
    for _ in 0..REFERENCES_MAX {
        // An origin in another unit is handled with that unit.
        let here = origin.and_then(|place| look.offset_of(place));
        let Some(entry) = here.and_then(|offset| look.entry(offset)) else {
            break;
        };
        origin = take(&entry);
    }
    Some(Told {
        name: name.or(plain)?,
        is_external,
        line,
    })
}

/// Returns the entry with the rest of a function's description.
pub fn origin_of(look: &Look<'_, '_, '_>, entry: &look::Entry<'_>) -> Option<EntryPlace> {
    let names = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification];
    let found = names
        .into_iter()
        .find_map(|name| look.reference(entry, name))?;
    match found {
        look::Reference::Place(place) => Some(place),
        look::Reference::Signature(_) => None,
    }
}

/// Joins scopes and a name: `ns::Class::name`.
pub fn qualified(scopes: &[String], name: &str) -> String {
    let mut all = String::new();
    for scope in scopes.iter().filter(|scope| !scope.is_empty()) {
        all.push_str(scope);
        all.push_str("::");
    }
    all + name
}

fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
