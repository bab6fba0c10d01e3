//! What a function is given, and what it returns.

use super::directory::{Named, name_of, origin_of};
use super::look::{self, Look};
use super::passing::{Convention, Passed, Places};
use super::{DebugTypes, EntryPlace, REFERENCES_MAX};
use crate::LinkAddr;
use crate::types::TypeId;

/// A function's parameters and what it returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// In their order; `this` is the first one of a method.
    pub parameters: Vec<Parameter>,
    /// `None` if it returns nothing, or it is not known what.
    pub returns: Option<TypeId>,
}

/// One parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// As the source text has it; empty if it has none.
    pub name: String,
    /// What it is. `None` if that is not told.
    pub kind: Option<TypeId>,
    /// Where it is when a call begins.
    pub place: Passed,
}

/// Why nothing is known of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSignature {
    /// The debug information does not tell of it.
    NoSuchFunction,
    /// It tells of several that are called so, and not which one it is.
    Several,
    /// The compiler made a copy of it with other parameters.
    IsChanged,
}

/// Marks of copies that have other parameters than what they are copies of.
const CHANGED: [&str; 3] = [".isra.", ".constprop.", ".part."];

/// Parameters that are looked at.
const PARAMETERS_MAX: usize = 64;

/// What one entry tells of a function.
struct Told {
    parameters: Vec<(String, Option<TypeId>)>,
    /// Where the compiler has put each, as far as one place tells.
    places: Vec<Put>,
    /// Callers keep to no convention: the compiler knows all of them.
    is_changed: bool,
    returns: Option<TypeId>,
    origin: Option<EntryPlace>,
}

/// Where the compiler has put a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Put {
    /// In a register all the time, numbered as in instructions.
    InRegister(u32),
    /// It is a constant.
    IsConstant,
    /// Elsewhere, or in several places one after the other.
    Elsewhere,
}

/// The registers of instructions by their numbers in DWARF (System V ABI for x86-64, 3.6.2).
const REGISTERS: [u32; 16] = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

impl DebugTypes {
    /// The signature of a function of the file itself, which is known by where it is.
    /// `raw` is its name as the compiler wrote it, if it has one.
    pub fn signature_at(
        &self,
        start: LinkAddr,
        raw: &[u8],
        convention: Convention,
    ) -> Result<Signature, NoSignature> {
        let name = std::str::from_utf8(raw).unwrap_or_default();
        let place = self
            .place_at(start, name)
            .ok_or(NoSignature::NoSuchFunction)?;
        self.signature(place, name, convention)
    }

    /// The signature of a function of another build, which is known by its name.
    pub fn signature_of(
        &self,
        raw: &[u8],
        convention: Convention,
    ) -> Result<Signature, NoSignature> {
        let name = std::str::from_utf8(raw).unwrap_or_default();
        // A name of a version: `memcpy@@GLIBC_2.14`.
        let name = name.split('@').next().unwrap_or(name);
        if name.is_empty() {
            return Err(NoSignature::NoSuchFunction);
        }
        if CHANGED.iter().any(|mark| name.contains(mark)) {
            return Err(NoSignature::IsChanged);
        }
        match self.directory().function(name) {
            Named::One(place) => self.signature(place, name, convention),
            Named::Several => Err(NoSignature::Several),
            Named::Nothing => Err(NoSignature::NoSuchFunction),
        }
    }

    fn signature(
        &self,
        place: EntryPlace,
        name: &str,
        convention: Convention,
    ) -> Result<Signature, NoSignature> {
        if CHANGED.iter().any(|mark| name.contains(mark)) {
            return Err(NoSignature::IsChanged);
        }
        let is_go = convention == Convention::Go;
        let (mut parameters, mut returns) = (Vec::new(), None);
        // Of the function itself, not of what it is an instance of.
        let mut own: Option<(Vec<Put>, bool)> = None;
        let mut next = Some(place);
        for _ in 0..REFERENCES_MAX {
            let Some(place) = next else { break };
            let told = self.look(place, |look, offset| told(look, offset, is_go));
            let Some(told) = told else { break };
            // The names are where the function is defined, the types at the latest there.
            let is_named = |them: &[(String, Option<TypeId>)]| {
                them.iter()
                    .any(|(name, kind)| !name.is_empty() && kind.is_some())
            };
            if !told.parameters.is_empty() && !is_named(&parameters) {
                parameters = told.parameters;
            }
            returns = returns.or(told.returns);
            own.get_or_insert((told.places, told.is_changed));
            next = told.origin;
        }
        let (put, is_changed) = own.unwrap_or_default();
        let mut places = Places::new(self, convention, returns);
        let parameters = parameters
            .into_iter()
            .enumerate()
            .map(|(at, (name, kind))| {
                let by_convention = places.next(kind);
                Parameter {
                    place: match (put.get(at), is_changed) {
                        (Some(Put::InRegister(number)), true) => Passed::Register(*number),
                        (Some(Put::IsConstant), _) | (_, true) => Passed::Nowhere,
                        (_, false) => by_convention,
                    },
                    name,
                    kind,
                }
            })
            .collect();
        Ok(Signature {
            parameters,
            returns,
        })
    }

    /// The entry of the function that begins at an address.
    fn place_at(&self, start: LinkAddr, name: &str) -> Option<EntryPlace> {
        let reader = self.info.reader();
        let mut window = super::Window::default();
        let opened = reader.open_numbered(self.info.unit_at(start.0)?, &mut window)?;
        let look = Look::new(&opened);
        let mut entries = opened.unit.entries();
        let mut by_name = None;
        while let Ok(Some(entry)) = entries.next_dfs() {
            if entry.tag() != gimli::DW_TAG_subprogram {
                continue;
            }
            let place = look.place_of(entry.offset());
            if look.address(entry, gimli::DW_AT_low_pc) == Some(start.0) {
                return Some(place);
            }
            // Of one in several pieces the first need not be the one that it begins with.
            if by_name.is_none() && entry.has_attr(gimli::DW_AT_ranges) {
                let told = name_of(&look, entry);
                by_name = told.filter(|told| told.name == name).map(|_| place);
            }
        }
        by_name
    }
}

/// LLVM says so of functions whose parameters it has changed.
fn is_changed(entry: &look::Entry<'_>) -> bool {
    look::convention(entry) == Some(gimli::DW_CC_nocall)
}

fn put(parameter: &look::Entry<'_>) -> Put {
    if parameter.has_attr(gimli::DW_AT_const_value) {
        return Put::IsConstant;
    }
    let Some(gimli::AttributeValue::Exprloc(expression)) =
        parameter.attr_value(gimli::DW_AT_location)
    else {
        return Put::Elsewhere;
    };
    let mut bytes = expression.0;
    let first = gimli::Reader::read_u8(&mut bytes).ok();
    let number = first.and_then(|first| first.checked_sub(gimli::DW_OP_reg0.0));
    match number.and_then(|number| REGISTERS.get(usize::from(number))) {
        Some(number) if bytes.is_empty() => Put::InRegister(*number),
        _ => Put::Elsewhere,
    }
}

fn told(look: &Look<'_, '_, '_>, offset: gimli::UnitOffset, is_go: bool) -> Option<Told> {
    let entry = look.entry(offset)?;
    let mut told = Told {
        parameters: Vec::new(),
        places: Vec::new(),
        is_changed: is_changed(&entry),
        returns: look.kind(&entry),
        origin: origin_of(look, &entry),
    };
    let mut is_first_result = true;
    look.find_child::<()>(offset, |child| {
        if child.tag() != gimli::DW_TAG_formal_parameter {
            return None;
        }
        // In Go these are results.
        if is_go && look::has(child, gimli::DW_AT_variable_parameter) {
            if is_first_result {
                told.returns = look.kind(child);
            }
            is_first_result = false;
            return None;
        }
        if told.parameters.len() == PARAMETERS_MAX {
            return Some(());
        }
        let name = look.name(child).unwrap_or_default();
        told.parameters.push((name, look.kind(child)));
        told.places.push(put(child));
        None
    });
    Some(told)
}
