//! Where in debug information the types and functions of a name are.
//!
//! It is made by a look at every entry that is not inside of a function, and only if something
//! is asked for by its name. Kept are hashes of names, with places.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry as Slot};
use std::hash::{Hash as _, Hasher as _};

use gimli::{EntriesTreeNode, UnitType};

use super::super::names::{EntryPlace, REFERENCES_MAX};
use super::super::reader::Reader;
use super::super::sections::Slice;
use super::super::unit::Window;
use super::look::{self, Look, SIGNATURE_BITS};

/// Types, or functions, that are kept: the largest known programs have half as many.
const NAMES_MAX: usize = 4 << 20;

/// How deeply namespaces and classes lie in one another.
const DEPTH_MAX: usize = 64;

/// Places by name.
#[derive(Debug, Default)]
pub struct Directory {
    types: HashMap<u64, EntryPlace>,
    functions: HashMap<u64, Of>,
    /// Types in units of their own, by their numbers.
    signatures: HashMap<u64, EntryPlace>,
    /// Some units are of other files (split DWARF).
    pub is_split: bool,
}

/// The functions of one name.
#[derive(Debug, Clone, Copy)]
enum Of {
    /// This one, or several that are the same: all units see it, or its text in a header. With
    /// the line where it begins there.
    One(EntryPlace, Option<u64>),
    /// Several that only their own units see.
    Several,
}

/// What is at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    Nothing,
    One(EntryPlace),
    Several,
}

impl Directory {
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

    /// The definition of a type, by its name with namespaces.
    pub fn type_of(&self, name: &str) -> Option<EntryPlace> {
        self.types.get(&hash(name)).copied()
    }

    /// A function, as the linker knows it.
    pub fn function(&self, name: &str) -> Named {
        match self.functions.get(&hash(name)) {
            None => Named::Nothing,
            Some(Of::One(place, _)) => Named::One(*place),
            Some(Of::Several) => Named::Several,
        }
    }

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
                    // What has no namespace's name is called as if it had none.
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
        // An unnamed one counts for the depth as well.
        scopes.push(name.unwrap_or_default());
        self.walk(look, node, scopes);
        scopes.pop();
    }

    /// In C a structure and a name for a type may be called alike: the structure is meant.
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

    /// A function with its parameters: what is compiled here, or was put into others.
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
                // An instance follows what it is an instance of, in the same unit.
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

/// What an entry says of a function as a whole.
pub struct Told {
    /// What the linker calls it.
    pub name: String,
    /// Other units see it.
    is_external: bool,
    /// Where in its file it begins.
    line: Option<u64>,
}

/// What the linker calls a function. `None` if that is not told in this unit.
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
        // One of another unit is that unit's to tell.
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

/// The entry that a function's entry goes on with.
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

/// `ns::Class::name`
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
