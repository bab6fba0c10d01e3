//! How to read the entries of one abbreviation.

use std::collections::HashMap;

use gimli::constants::*;
use gimli::{Abbreviation, Abbreviations, DwAt, DwForm, DwTag, Encoding};

/// Compilers number abbreviations from 1 on; the largest units have some
/// thousands.
const CODES_MAX: usize = 1 << 16;

/// The kind of an entry, as far as code is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `DW_TAG_subprogram`: a function, or its declaration.
    Function,
    /// `DW_TAG_inlined_subroutine`: a call that was inlined.
    Inlined,
    /// Anything else, of which no attribute is read.
    Other,
}

/// An attribute that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// `DW_AT_low_pc`.
    Low,
    /// `DW_AT_high_pc`.
    High,
    /// `DW_AT_ranges`.
    Ranges,
    /// `DW_AT_abstract_origin`.
    Origin,
    /// `DW_AT_call_file`.
    CallFile,
    /// `DW_AT_call_line`.
    CallLine,
    /// `DW_AT_call_column`.
    CallColumn,
}

/// How to skip or read one or several attributes.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Skips this many bytes.
    Bytes(u32),
    /// Skips a number of variable length.
    Leb,
    /// Skips up to and including a zero byte.
    Text,
    /// Skips a length and that many bytes; the length has this many bytes, or is of variable length
    /// (0).
    Block(u8),
    /// The form precedes the value.
    Indirect,
    /// Reads the value, in that form; `DW_FORM_implicit_const` has it here.
    Take(Field, DwForm, i64),
}

/// How to read the entries of one abbreviation.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Whether the entry is a function.
    pub kind: Kind,
    pub has_children: bool,
    /// Number of bytes to skip before the steps.
    pub bytes: u32,
    first: u32,
    behind: u32,
}

impl Plan {
    /// Returns the numbers of the steps, which [`Plans::step`] takes.
    pub fn steps(self) -> std::ops::Range<u32> {
        self.first..self.behind
    }
}

/// The plans of a unit, each made when it is first needed.
#[derive(Debug, Default)]
pub struct Plans {
    /// Index in `plans` plus one, by abbreviation code.
    by_code: Vec<u32>,
    /// Plans of codes that are above [`CODES_MAX`], which compilers do not write.
    by_odd_code: HashMap<u64, u32>,
    plans: Vec<Plan>,
    steps: Vec<Step>,
}

impl Plans {
    /// Returns the plan for an abbreviation code, which is made at the first call. Returns None if
    /// the unit has no such abbreviation, or one of its forms is unknown.
    #[inline]
    pub fn of(
        &mut self,
        code: u64,
        abbreviations: &Abbreviations,
        encoding: Encoding,
    ) -> Option<Plan> {
        let known = usize::try_from(code).ok().and_then(|c| self.by_code.get(c));
        match known {
            Some(&number @ 1..) => self.plans.get(number as usize - 1).copied(),
            _ => self.find_or_make(code, abbreviations, encoding),
        }
    }

    /// Returns a step by its number in [`Plan::steps`].
    #[inline]
    pub fn step(&self, index: u32) -> Option<Step> {
        self.steps.get(index as usize).copied()
    }

    #[cold]
    fn find_or_make(
        &mut self,
        code: u64,
        abbreviations: &Abbreviations,
        encoding: Encoding,
    ) -> Option<Plan> {
        if let Some(&number) = self.by_odd_code.get(&code) {
            return self.plans.get(number as usize - 1).copied();
        }
        let plan = self.make(abbreviations.get(code)?, encoding)?;
        self.plans.push(plan);
        let number = u32::try_from(self.plans.len()).ok()?;
        match usize::try_from(code).ok().filter(|&code| code < CODES_MAX) {
            Some(code) => {
                let codes = self.by_code.len().max(code + 1);
                self.by_code.resize(codes, 0);
                self.by_code[code] = number;
            }
            None => _ = self.by_odd_code.insert(code, number),
        }
        Some(plan)
    }

    /// Makes a plan; `None` if it has an unknown form, as the length of its values is unknown.
    fn make(&mut self, abbreviation: &Abbreviation, encoding: Encoding) -> Option<Plan> {
        let kind = kind(abbreviation.tag());
        let first = self.steps.len();
        let mut bytes = 0_u32;
        for attribute in abbreviation.attributes() {
            let form = attribute.form();
            let step = step_over(form, encoding)?;
            let wanted = match kind {
                Kind::Other => None,
                _ => field(attribute.name()),
            };
            let constant = attribute.implicit_const_value().unwrap_or(0);
            let step = wanted.map_or(step, |field| Step::Take(field, form, constant));
            match (step, self.steps[first..].last_mut()) {
                (Step::Bytes(more), None) => bytes = bytes.saturating_add(more),
                (Step::Bytes(more), Some(Step::Bytes(before))) => {
                    *before = before.saturating_add(more);
                }
                (step, _) => self.steps.push(step),
            }
        }
        Some(Plan {
            kind,
            has_children: abbreviation.has_children(),
            bytes,
            first: first.try_into().ok()?,
            behind: self.steps.len().try_into().ok()?,
        })
    }
}

#[expect(non_upper_case_globals, reason = "as the standard writes them")]
fn kind(tag: DwTag) -> Kind {
    match tag {
        DW_TAG_subprogram => Kind::Function,
        DW_TAG_inlined_subroutine => Kind::Inlined,
        _ => Kind::Other,
    }
}

#[expect(non_upper_case_globals, reason = "as the standard writes them")]
fn field(name: DwAt) -> Option<Field> {
    match name {
        DW_AT_low_pc => Some(Field::Low),
        DW_AT_high_pc => Some(Field::High),
        DW_AT_ranges => Some(Field::Ranges),
        DW_AT_abstract_origin => Some(Field::Origin),
        DW_AT_call_file => Some(Field::CallFile),
        DW_AT_call_line => Some(Field::CallLine),
        DW_AT_call_column => Some(Field::CallColumn),
        _ => None,
    }
}

/// How to skip a value in that form (DWARF 5, 7.5.6, and GNU's forms); `None` if the form is
/// unknown.
#[expect(non_upper_case_globals, reason = "as the standard writes them")]
pub fn step_over(form: DwForm, encoding: Encoding) -> Option<Step> {
    let step = match form {
        DW_FORM_implicit_const | DW_FORM_flag_present => Step::Bytes(0),
        DW_FORM_data1 | DW_FORM_flag | DW_FORM_strx1 | DW_FORM_ref1 | DW_FORM_addrx1 => {
            Step::Bytes(1)
        }
        DW_FORM_data2 | DW_FORM_ref2 | DW_FORM_addrx2 | DW_FORM_strx2 => Step::Bytes(2),
        DW_FORM_addrx3 | DW_FORM_strx3 => Step::Bytes(3),
        DW_FORM_data4 | DW_FORM_ref_sup4 | DW_FORM_ref4 | DW_FORM_strx4 | DW_FORM_addrx4 => {
            Step::Bytes(4)
        }
        DW_FORM_data8 | DW_FORM_ref8 | DW_FORM_ref_sig8 | DW_FORM_ref_sup8 => Step::Bytes(8),
        DW_FORM_data16 => Step::Bytes(16),
        DW_FORM_addr => Step::Bytes(encoding.address_size.into()),
        DW_FORM_ref_addr if encoding.version == 2 => Step::Bytes(encoding.address_size.into()),
        DW_FORM_ref_addr | DW_FORM_sec_offset | DW_FORM_GNU_ref_alt | DW_FORM_strp
        | DW_FORM_strp_sup | DW_FORM_GNU_strp_alt | DW_FORM_line_strp => {
            Step::Bytes(encoding.format.word_size().into())
        }
        DW_FORM_udata
        | DW_FORM_sdata
        | DW_FORM_ref_udata
        | DW_FORM_strx
        | DW_FORM_addrx
        | DW_FORM_loclistx
        | DW_FORM_rnglistx
        | DW_FORM_GNU_str_index
        | DW_FORM_GNU_addr_index => Step::Leb,
        DW_FORM_string => Step::Text,
        DW_FORM_block1 => Step::Block(1),
        DW_FORM_block2 => Step::Block(2),
        DW_FORM_block4 => Step::Block(4),
        DW_FORM_block | DW_FORM_exprloc => Step::Block(0),
        DW_FORM_indirect => Step::Indirect,
        _ => return None,
    };
    Some(step)
}
