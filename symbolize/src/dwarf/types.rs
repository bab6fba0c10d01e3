//! Types of a program: the parameters of functions, and the offsets of structure members.
//!
//! ```text
//! address of a function ─► its unit ─┐
//! name of a function ────► directory ┴► entry ─► parameters ─► shape, members
//! name of a type ────────► directory ─────────► entry ───────► shape, members
//! ```
//!
//! Units are read on demand, one at a time. Types in `.dwo` files (split DWARF) and in
//! `.debug_types` (DWARF 4) are not read.

mod directory;
mod look;
mod passing;
mod signature;

use std::sync::OnceLock;

use gimli::UnitOffset;

use super::DebugInfo;
use super::names::{EntryPlace, REFERENCES_MAX};
use super::unit::Window;
use crate::OpenError;
use crate::debug_file::DebugFiles;
use crate::object::Object;
use crate::types::{Bits, Member, NoMember, Shape, TypeId, Types, Variants};

use directory::Directory;
use look::{Look, Reference};
pub use passing::{Convention, Passed};
pub use signature::{NoSignature, Parameter, Signature};

/// Maximum length of a chain of typedefs before it is considered circular.
const NAMES_MAX: usize = 32;

/// Maximum number of base classes and unnamed structures that are searched for a member.
const NESTED_MAX: u32 = 64;

/// Maximum number of values of an enumeration that are kept.
const VALUES_MAX: usize = 1024;

/// Maximum number of parts of a structure that are checked to find out how it is passed.
const PARTS_MAX: usize = 32;

/// The types of one file.
#[derive(Debug)]
pub struct DebugTypes {
    info: DebugInfo,
    build_id: Vec<u8>,
    /// Whether there are types in `.debug_types`.
    has_type_units: bool,
    directory: OnceLock<Directory>,
}

/// Where types are that are not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOut {
    /// Types in `.dwo` files (split DWARF).
    InSplitFiles,
    /// Types in `.debug_types` (type units of DWARF 4).
    InTypeUnits,
}

/// A structure as a whole.
#[derive(Debug, Clone, Copy)]
struct Structure {
    bytes: u64,
    /// Whether it has a copy constructor or the like, so that functions receive its address.
    is_by_address: bool,
}

impl DebugTypes {
    /// Reads the types that a file, or its debug file, describes. At most `bytes_max` are in memory
    /// at once. `None` if there are none.
    pub fn of_file(
        main: &Object,
        files: DebugFiles,
        bytes_max: u64,
    ) -> Result<Option<DebugTypes>, OpenError> {
        let separate = if main.has_debug_info() {
            None
        } else {
            files.separate(main)
        };
        let object = separate.as_ref().unwrap_or(main);
        let info = DebugInfo::read(object, files, bytes_max)?;
        Ok(info.map(|info| DebugTypes {
            info,
            build_id: main.build_id().unwrap_or_default(),
            has_type_units: object.section_by_name(b".debug_types").is_some(),
            directory: OnceLock::new(),
        }))
    }

    /// The build-id of the file that describes the types; empty if unknown.
    pub fn build_id(&self) -> &[u8] {
        &self.build_id
    }

    /// Where there are types that are not read; `None` if all are read. Looks through all units.
    pub fn left_out(&self) -> Option<LeftOut> {
        match (self.directory().is_split, self.has_type_units) {
            (true, _) => Some(LeftOut::InSplitFiles),
            (false, true) => Some(LeftOut::InTypeUnits),
            (false, false) => None,
        }
    }

    /// Bytes of heap in use, without the names of types.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.info.heap_bytes()
    }

    fn directory(&self) -> &Directory {
        let read = || Directory::read(&self.info.reader());
        self.directory.get_or_init(read)
    }

    /// Opens the unit of an entry, and calls back with it.
    fn look<T>(
        &self,
        place: EntryPlace,
        take: impl FnOnce(&Look<'_, '_, '_>, UnitOffset) -> Option<T>,
    ) -> Option<T> {
        let reader = self.info.reader();
        let mut window = Window::default();
        let opened = reader.open_numbered(reader.unit_of(place)?, &mut window)?;
        let look = Look::new(&opened);
        let offset = look.offset_of(place)?;
        take(&look, offset)
    }

    fn place_of(&self, id: TypeId) -> Option<EntryPlace> {
        match Reference::of(id) {
            Reference::Place(place) => Some(place),
            Reference::Signature(number) => self.directory().of_signature(number),
        }
    }

    /// Resolves typedefs and qualifiers such as `const`. `None` if the type is `void` or missing.
    fn bare(&self, id: TypeId) -> Option<EntryPlace> {
        let mut place = self.place_of(id)?;
        for _ in 0..NAMES_MAX {
            let next = self.look(place, |look, offset| {
                let entry = look.entry(offset)?;
                let names = matches!(
                    entry.tag(),
                    gimli::DW_TAG_typedef
                        | gimli::DW_TAG_const_type
                        | gimli::DW_TAG_volatile_type
                        | gimli::DW_TAG_restrict_type
                        | gimli::DW_TAG_atomic_type
                        | gimli::DW_TAG_immutable_type
                        | gimli::DW_TAG_packed_type
                );
                if names {
                    look.kind(&entry).map(Some)
                } else {
                    Some(None)
                }
            })?;
            match next {
                Some(next) => place = self.place_of(next)?,
                None => return Some(place),
            }
        }
        None
    }

    /// Returns the definition of a structure, if the entry only declares it.
    fn definition(&self, place: EntryPlace) -> Option<EntryPlace> {
        enum Found {
            Here,
            Called(String),
            At(TypeId),
        }
        let found = self.look(place, |look, offset| {
            let entry = look.entry(offset)?;
            if !look::has(&entry, gimli::DW_AT_declaration) {
                return Some(Found::Here);
            }
            if let Some(signature) = look.reference(&entry, gimli::DW_AT_signature) {
                return Some(Found::At(signature.id()));
            }
            // Its name with namespaces identifies it.
            let mut entries = look.unit.entries();
            let mut scopes: Vec<(isize, String)> = Vec::new();
            while let Ok(Some(entry)) = entries.next_dfs() {
                while scopes
                    .last()
                    .is_some_and(|(depth, _)| *depth >= entry.depth())
                {
                    scopes.pop();
                }
                if entry.offset() == offset {
                    let scopes: Vec<String> = scopes.into_iter().map(|(_, name)| name).collect();
                    let name = directory::qualified(&scopes, &look.name(entry)?);
                    return Some(Found::Called(name));
                }
                if entry.offset() > offset {
                    break;
                }
                let is_scope = [
                    gimli::DW_TAG_namespace,
                    gimli::DW_TAG_module,
                    gimli::DW_TAG_structure_type,
                    gimli::DW_TAG_class_type,
                    gimli::DW_TAG_union_type,
                ];
                if is_scope.contains(&entry.tag()) {
                    scopes.push((entry.depth(), look.name(entry).unwrap_or_default()));
                }
            }
            None
        })?;
        match found {
            Found::Here => Some(place),
            Found::Called(name) => self.directory().type_of(&name),
            Found::At(id) => self.place_of(id),
        }
    }

    fn structure(&self, id: TypeId) -> Option<Structure> {
        let place = self.definition(self.bare(id)?)?;
        self.look(place, |look, offset| {
            let entry = look.entry(offset)?;
            Some(Structure {
                bytes: look::number(&entry, gimli::DW_AT_byte_size)?,
                is_by_address: look::convention(&entry) == Some(gimli::DW_CC_pass_by_reference),
            })
        })
    }

    /// Returns the types of all members and base classes of a structure.
    fn parts(&self, id: TypeId) -> Vec<TypeId> {
        let Some(place) = self.bare(id).and_then(|place| self.definition(place)) else {
            return Vec::new();
        };
        let mut parts = Vec::new();
        self.look(place, |look, offset| {
            look.find_child::<()>(offset, |child| {
                if is_part(child) {
                    parts.extend(look.kind(child));
                }
                (parts.len() == PARTS_MAX).then_some(())
            })
        });
        parts
    }

    fn shape_of(&self, id: TypeId) -> Option<Shape> {
        let place = self.bare(id)?;
        // The type of its characters is another entry, maybe in another unit.
        let (shape, element) = self.look(place, |look, offset| {
            let entry = look.entry(offset)?;
            let bytes = look::number(&entry, gimli::DW_AT_byte_size);
            let alone = |shape| Some((shape, None));
            match entry.tag() {
                gimli::DW_TAG_base_type => alone(base(&entry, bytes?)),
                gimli::DW_TAG_pointer_type
                | gimli::DW_TAG_reference_type
                | gimli::DW_TAG_rvalue_reference_type => alone(Shape::Pointer(look.kind(&entry))),
                gimli::DW_TAG_unspecified_type => alone(Shape::Pointer(None)),
                gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type => alone(Shape::Structure),
                gimli::DW_TAG_enumeration_type => {
                    let shape = enumeration(look, offset, &entry, bytes);
                    // The size is missing here, so it is that of the underlying integer type.
                    Some((shape, look.kind(&entry).filter(|_| bytes.is_none())))
                }
                gimli::DW_TAG_array_type => {
                    let count = look.find_child(offset, count_of);
                    Some((Shape::Letters(count.unwrap_or(0)), look.kind(&entry)))
                }
                _ => alone(Shape::Other),
            }
        })?;
        match (shape, element) {
            (Shape::Letters(count), element) => {
                if element.is_some_and(|it| self.is_letter(it)) {
                    Some(Shape::Letters(count))
                } else {
                    Some(Shape::Other)
                }
            }
            (
                Shape::Number {
                    is_signed, names, ..
                },
                Some(of),
            ) => match self.shape_of(of)? {
                Shape::Number { bytes, .. } => Some(Shape::Number {
                    bytes,
                    is_signed,
                    names,
                }),
                _ => Some(Shape::Other),
            },
            (shape, _) => Some(shape),
        }
    }

    fn is_letter(&self, id: TypeId) -> bool {
        let is_it = self.bare(id).and_then(|place| {
            self.look(place, |look, offset| {
                let entry = look.entry(offset)?;
                let letters = [gimli::DW_ATE_signed_char, gimli::DW_ATE_unsigned_char];
                Some(
                    entry.tag() == gimli::DW_TAG_base_type
                        && look::number(&entry, gimli::DW_AT_byte_size) == Some(1)
                        && encoding(&entry).is_some_and(|it| letters.contains(&it)),
                )
            })
        });
        is_it.unwrap_or(false)
    }

    fn member_within(&self, of: TypeId, name: &str, left: &mut u32) -> Result<Member, NoMember> {
        let place = self.bare(of).ok_or(NoMember::NoSuchName)?;
        let place = self.definition(place).ok_or(NoMember::Undefined)?;
        // Base classes and unnamed structures, each with its offset.
        let mut nested: Vec<(Option<u64>, TypeId)> = Vec::new();
        let found = self.look(place, |look, offset| {
            look.find_child(offset, |child| {
                if !is_part(child) {
                    return None;
                }
                let kind = look.kind(child)?;
                let is_base = child.tag() == gimli::DW_TAG_inheritance;
                let its = look.name(child).filter(|_| !is_base);
                match its {
                    Some(its) if is_called(&its, name) => {
                        let whole_bytes = || match self.shape_of(kind)? {
                            Shape::Number { bytes, .. } => Some(u64::from(bytes)),
                            _ => None,
                        };
                        Some(member(child, kind, whole_bytes))
                    }
                    Some(_) => None,
                    None => {
                        let is_virtual =
                            look::number(child, gimli::DW_AT_virtuality).is_some_and(|it| it != 0);
                        let at = offset_of(child).filter(|_| !is_virtual);
                        nested.push((at, kind));
                        None
                    }
                }
            })
        });
        if let Some(found) = found {
            return found.ok_or(NoMember::NoSuchName);
        }
        for (at, kind) in nested {
            if *left == 0 {
                break;
            }
            *left -= 1;
            let Ok(inner) = self.member_within(kind, name, left) else {
                continue;
            };
            let at = at.ok_or(NoMember::InVirtualBase)?;
            let offset = at.checked_add(inner.offset).ok_or(NoMember::NoSuchName)?;
            return Ok(Member { offset, ..inner });
        }
        Err(NoMember::NoSuchName)
    }
}

impl Types for DebugTypes {
    fn shape(&self, of: TypeId) -> Option<Shape> {
        self.shape_of(of)
    }

    fn member(&self, of: TypeId, name: &str) -> Result<Member, NoMember> {
        self.member_within(of, name, &mut { NESTED_MAX })
    }

    fn variants(&self, of: TypeId) -> Option<Variants> {
        let place = self.definition(self.bare(of)?)?;
        let (offset, kind, told) = self.look(place, tell_variants)?;
        let Shape::Number { bytes, .. } = self.shape_of(kind)? else {
            return None;
        };
        let unused = 64 - bytes * 8;
        let mut variants = Variants {
            offset,
            bytes,
            names: Vec::new(),
            other: None,
        };
        for (number, name) in told {
            match number {
                Some(number) => variants.names.push((number << unused >> unused, name)),
                None => variants.other = Some(name),
            }
        }
        Some(variants)
    }

    fn named(&self, name: &str) -> Option<TypeId> {
        let place = self.directory().type_of(name)?;
        Some(Reference::Place(place).id())
    }
}

/// The variants by their discriminant; `None` for the one that has all other values.
type ToldVariants = Vec<(Option<i64>, String)>;

/// Returns the offset and the type of the discriminant of a Rust enumeration, and the variants.
fn tell_variants(
    look: &Look<'_, '_, '_>,
    offset: UnitOffset,
) -> Option<(u64, TypeId, ToldVariants)> {
    let (part, teller) = look.find_child(offset, |child| {
        let is_it = child.tag() == gimli::DW_TAG_variant_part;
        is_it.then(|| (child.offset(), look.reference(child, gimli::DW_AT_discr)))
    })?;
    let Reference::Place(teller) = teller? else {
        return None;
    };
    let teller = look.entry(look.offset_of(teller)?)?;
    let mut told = Vec::new();
    look.find_child::<()>(part, |variant| {
        if variant.tag() != gimli::DW_TAG_variant {
            return None;
        }
        let number = look::number(variant, gimli::DW_AT_discr_value)
            .map(|number| number as i64)
            .or_else(|| look::signed(variant, gimli::DW_AT_discr_value));
        let name = look.find_child(variant.offset(), |member| look.name(member));
        told.extend(name.map(|name| (number, name)));
        (told.len() == VALUES_MAX).then_some(())
    });
    Some((offset_of(&teller)?, look.kind(&teller)?, told))
}

/// Whether an entry is a part of each object, and not a static variable or a function of the class.
fn is_part(entry: &look::Entry<'_>) -> bool {
    let is_of_class =
        || look::has(entry, gimli::DW_AT_external) || look::has(entry, gimli::DW_AT_declaration);
    match entry.tag() {
        gimli::DW_TAG_inheritance => true,
        gimli::DW_TAG_member => !is_of_class(),
        _ => false,
    }
}

/// Whether a member has this name. The members of Rust tuples are named `__0` and written `0`.
fn is_called(its: &str, name: &str) -> bool {
    its == name || its.strip_prefix("__") == Some(name)
}

/// Describes a member; `None` if its offset is unknown. `whole_bytes` is the size of its type.
fn member(
    entry: &look::Entry<'_>,
    kind: TypeId,
    whole_bytes: impl FnOnce() -> Option<u64>,
) -> Option<Member> {
    let count = look::number(entry, gimli::DW_AT_bit_size);
    let count = count.map(|count| u32::try_from(count).unwrap_or(u32::MAX).min(BITS_MAX));
    let of = |offset, bits| Some(Member { offset, kind, bits });
    if let Some(at) = look::number(entry, gimli::DW_AT_data_bit_offset) {
        let skip = (at % 8) as u32;
        return of(
            at / 8,
            Some(Bits {
                skip,
                count: count.unwrap_or(0),
            }),
        );
    }
    let offset = offset_of(entry)?;
    let Some(count) = count else {
        return of(offset, None);
    };
    // Before DWARF 4, bits are counted from the highest bit of a word of this size, which may begin
    // before the member. If the attribute is missing, the bits begin with the first byte.
    let skip = match look::signed(entry, gimli::DW_AT_bit_offset) {
        Some(behind) => {
            let bytes = match look::number(entry, gimli::DW_AT_byte_size) {
                Some(bytes) => bytes,
                None => whole_bytes()?,
            };
            let bits = i64::try_from(bytes).ok()?.checked_mul(8)?;
            bits.checked_sub(behind)?.checked_sub(i64::from(count))?
        }
        None => 0,
    };
    let offset = i64::try_from(offset)
        .ok()?
        .checked_add(skip.div_euclid(8))?;
    let skip = skip.rem_euclid(8) as u32;
    of(u64::try_from(offset).ok()?, Some(Bits { skip, count }))
}

/// Maximum size of a bit field, larger than any integer.
const BITS_MAX: u32 = 1 << 16;

/// Returns the offset of a member. Members of unions may have no offset attribute.
fn offset_of(entry: &look::Entry<'_>) -> Option<u64> {
    let Some(value) = entry.attr_value(gimli::DW_AT_data_member_location) else {
        return Some(0);
    };
    if let gimli::AttributeValue::Exprloc(expression) = value {
        // `DW_OP_plus_uconst`, as compilers wrote it before DWARF 3.
        let mut bytes = expression.0;
        let first = gimli::Reader::read_u8(&mut bytes).ok()?;
        let offset = gimli::Reader::read_uleb128(&mut bytes).ok()?;
        let is_plain = first == gimli::DW_OP_plus_uconst.0 && bytes.is_empty();
        return is_plain.then_some(offset);
    }
    value.udata_value()
}

fn encoding(entry: &look::Entry<'_>) -> Option<gimli::DwAte> {
    match entry.attr_value(gimli::DW_AT_encoding)? {
        gimli::AttributeValue::Encoding(encoding) => Some(encoding),
        value => value.u8_value().map(gimli::DwAte),
    }
}

fn base(entry: &look::Entry<'_>, bytes: u64) -> Shape {
    let Some(bytes) = u32::try_from(bytes)
        .ok()
        .filter(|it| [1, 2, 4, 8].contains(it))
    else {
        return Shape::Other;
    };
    let number = |is_signed| Shape::Number {
        bytes,
        is_signed,
        names: Vec::new(),
    };
    match encoding(entry) {
        Some(gimli::DW_ATE_signed | gimli::DW_ATE_signed_char) => number(true),
        Some(
            gimli::DW_ATE_unsigned
            | gimli::DW_ATE_unsigned_char
            | gimli::DW_ATE_boolean
            | gimli::DW_ATE_address
            | gimli::DW_ATE_UTF
            | gimli::DW_ATE_UCS
            | gimli::DW_ATE_ASCII,
        ) => number(false),
        Some(gimli::DW_ATE_float) if bytes >= 4 => Shape::Float(bytes),
        _ => Shape::Other,
    }
}

fn enumeration(
    look: &Look<'_, '_, '_>,
    offset: UnitOffset,
    entry: &look::Entry<'_>,
    bytes: Option<u64>,
) -> Shape {
    let bytes = match bytes {
        // The size follows from its underlying integer type.
        None => 4,
        Some(bytes @ (1 | 2 | 4 | 8)) => bytes as u32,
        Some(_) => return Shape::Other,
    };
    let mut names = Vec::new();
    look.find_child::<()>(offset, |child| {
        if child.tag() == gimli::DW_TAG_enumerator {
            let value = look::signed(child, gimli::DW_AT_const_value);
            let value = value.or_else(|| {
                let value = look::number(child, gimli::DW_AT_const_value);
                value.map(|value| value as i64)
            });
            names.extend(value.zip(look.name(child)));
        }
        (names.len() == VALUES_MAX).then_some(())
    });
    let has_signed = encoding(entry) == Some(gimli::DW_ATE_signed);
    let is_signed = has_signed || names.iter().any(|(value, _)| *value < 0);
    Shape::Number {
        bytes,
        is_signed,
        names,
    }
}

/// Returns the number of elements of an array.
fn count_of(entry: &look::Entry<'_>) -> Option<u64> {
    if entry.tag() != gimli::DW_TAG_subrange_type {
        return None;
    }
    let count = look::number(entry, gimli::DW_AT_count);
    let last = || look::number(entry, gimli::DW_AT_upper_bound)?.checked_add(1);
    count.or_else(last)
}
