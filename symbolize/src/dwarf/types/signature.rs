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
    returns: Option<TypeId>,
    origin: Option<EntryPlace>,
}

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
        let place = { self.place_at(start, name) }.ok_or(NoSignature::NoSuchFunction)?;
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
        let mut next = Some(place);
        for _ in 0..REFERENCES_MAX {
            let Some(place) = next else { break };
            let told = self.look(place, |look, offset| told(look, offset, is_go));
            let Some(told) = told else { break };
            // The names are where the function is defined, the types at the latest there.
            let is_named = |them: &[(String, Option<TypeId>)]| {
                { them.iter() }.any(|(name, kind)| !name.is_empty() && kind.is_some())
            };
            if !told.parameters.is_empty() && !is_named(&parameters) {
                parameters = told.parameters;
            }
            returns = returns.or(told.returns);
            next = told.origin;
        }
        let mut places = Places::new(self, convention, returns);
        let parameters = { parameters.into_iter() }
            .map(|(name, kind)| Parameter {
                place: places.next(kind),
                name,
                kind,
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

fn told(look: &Look<'_, '_, '_>, offset: gimli::UnitOffset, is_go: bool) -> Option<Told> {
    let entry = look.entry(offset)?;
    let mut told = Told {
        parameters: Vec::new(),
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
        None
    });
    Some(told)
}
