//! The parameters of a function, and what it returns.

use super::directory::{Named, name_of, origin_of};
use super::look::{self, Look};
use super::passing::{Convention, Passed, Places};
use super::{DebugTypes, EntryPlace, REFERENCES_MAX};
use crate::LinkAddr;
use crate::types::TypeId;

/// A function's parameters and what it returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Parameters in their order; `this` is the first one of a method.
    pub parameters: Vec<Parameter>,
    /// The returned type; `None` if it returns nothing, or if unknown.
    pub returns: Option<TypeId>,
}

/// One parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Name in the source text; empty if it has none.
    pub name: String,
    /// Its type; `None` if the debug information does not have it.
    pub kind: Option<TypeId>,
    /// Where it is when a call begins.
    pub place: Passed,
}

/// Why a function's signature is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSignature {
    /// The debug information does not have the function.
    NoSuchFunction,
    /// There are several functions with that name, and it is unclear which one is meant.
    Several,
    /// It is a copy with other parameters that the compiler made.
    IsChanged,
}

/// Suffixes of copies that have other parameters than the original.
const CHANGED: [&str; 3] = [".isra.", ".constprop.", ".part."];

/// Maximum number of parameters that are read.
const PARAMETERS_MAX: usize = 64;

/// What one entry says about a function.
struct Told {
    parameters: Vec<(String, Option<TypeId>)>,
    /// Where the compiler put each parameter, as far as one location says it.
    places: Vec<Put>,
    /// Whether the function keeps to no convention, as the compiler knows all callers.
    is_changed: bool,
    returns: Option<TypeId>,
    origin: Option<EntryPlace>,
}

/// Where the compiler put a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Put {
    /// In one register all the time, numbered as in instructions.
    InRegister(u32),
    /// It is a constant.
    IsConstant,
    /// In memory, or in several places one after the other.
    Elsewhere,
}

/// Register numbers in instructions by DWARF number (System V ABI for x86-64, 3.6.2).
const REGISTERS: [u32; 16] = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

impl DebugTypes {
    /// Returns the signature of a function of the file itself, found by its start. `raw` is its
    /// mangled name, if it has one.
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

    /// Returns the signature of a function of another build, found by its name.
    pub fn signature_of(
        &self,
        raw: &[u8],
        convention: Convention,
    ) -> Result<Signature, NoSignature> {
        let name = std::str::from_utf8(raw).unwrap_or_default();
        // Removes the version from names such as `memcpy@@GLIBC_2.14`.
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
        // The values of the function itself, and not of its abstract origin.
        let mut own: Option<(Vec<Put>, bool)> = None;
        let mut next = Some(place);
        for _ in 0..REFERENCES_MAX {
            let Some(place) = next else { break };
            let told = self.look(place, |look, offset| told(look, offset, is_go));
            let Some(told) = told else { break };
            // Names are given at the function's definition, types there at the latest.
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

    /// Finds the entry of the function that begins at an address.
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
            // A function in several pieces need not begin with the first of them.
            if by_name.is_none() && entry.has_attr(gimli::DW_AT_ranges) {
                let told = name_of(&look, entry);
                by_name = told.filter(|told| told.name == name).map(|_| place);
            }
        }
        by_name
    }
}

/// Whether LLVM marked the function as one whose parameters it changed.
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
