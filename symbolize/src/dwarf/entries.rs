//! Iterates over the entries of a unit and decodes only those of functions.
//!
//! Nine of ten entries describe types and variables. For each abbreviation a *plan* is made when it
//! is first met (`plan`): how many bytes to skip, and which attributes to read.

mod plan;

use gimli::{Abbreviations, DwForm, Encoding, Unit, UnitOffset};

use super::names::EntryPlace;
use super::sections::Slice;
use plan::{Field, Kind, Plan, Plans, Step};

/// The value of an attribute, as far as functions need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A length, an offset, a line, a file.
    Number(u64),
    /// A link address.
    Address(u64),
    /// An index into the unit's list of addresses in `.debug_addr`.
    AddressIndex(u64),
    /// An index into the unit's table of range lists in `.debug_rnglists`.
    RangesIndex(u64),
    /// A reference to an entry of the same unit, as the offset from the unit's start.
    InUnit(u64),
    /// A reference to an entry of any unit, as the offset in `.debug_info`.
    InSection(u64),
    /// A reference to an entry of the supplementary file, as the offset in its `.debug_info`.
    InSupplementary(u64),
    /// A value that no attribute of a function should have.
    Other,
}

impl Value {
    /// The number; `None` if the value is of another kind.
    pub fn number(self) -> Option<u64> {
        match self {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }
}

/// An entry of a function, or of a function that was inlined.
#[derive(Debug, Clone, Copy, Default)]
pub struct Function {
    /// Whether it is an inlined call, and not a function of its own.
    pub is_inlined: bool,
    has_children: bool,
    /// Offset from the start of the unit.
    pub offset: u64,
    /// `DW_AT_low_pc`.
    pub low: Option<Value>,
    /// `DW_AT_high_pc`: an address, or a length as a number.
    pub high: Option<Value>,
    /// `DW_AT_ranges`.
    pub ranges: Option<Value>,
    /// `DW_AT_abstract_origin`.
    pub origin: Option<Value>,
    /// `DW_AT_call_file`: the number of the source file that contains the inlined call.
    pub call_file: Option<Value>,
    /// `DW_AT_call_line`.
    pub call_line: Option<Value>,
    /// `DW_AT_call_column`.
    pub call_column: Option<Value>,
}

impl Function {
    /// Whether entries below this one follow it, up to an [`Event::Closed`].
    pub fn has_children(&self) -> bool {
        self.has_children
    }

    fn set(&mut self, field: Field, value: Value) {
        let place = match field {
            Field::Low => &mut self.low,
            Field::High => &mut self.high,
            Field::Ranges => &mut self.ranges,
            Field::Origin => &mut self.origin,
            Field::CallFile => &mut self.call_file,
            Field::CallLine => &mut self.call_line,
            Field::CallColumn => &mut self.call_column,
        };
        *place = Some(value);
    }
}

/// The next thing of interest in a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A function: see [`Entries::function`].
    Function,
    /// The end of an entry's children, of whatever kind the entry is.
    Closed,
}

/// Iterates over all entries of a unit, in their order.
pub struct Entries<'u, 'd> {
    bytes: &'d [u8],
    at: usize,
    /// Offset in the unit at which `bytes` start.
    before: u64,
    encoding: Encoding,
    abbreviations: &'u Abbreviations,
    plans: Plans,
    depth: isize,
    function: Function,
}

impl<'u, 'd> Entries<'u, 'd> {
    /// Starts at the first entry; `None` if the header says that the unit ends before it.
    pub fn new(unit: &'u Unit<Slice<'d>>) -> Option<Entries<'u, 'd>> {
        let before = unit.header.size_of_header();
        let bytes = unit.header.range_from(UnitOffset(before)..).ok()?;
        Some(Entries {
            bytes: bytes.slice(),
            at: 0,
            before: before as u64,
            encoding: unit.encoding(),
            abbreviations: &unit.abbreviations,
            plans: Plans::default(),
            depth: 0,
            function: Function::default(),
        })
    }

    /// The function that was met last.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Depth of the function, or of the entry whose children have ended.
    pub fn depth(&self) -> isize {
        self.depth
    }

    /// Moves on to the next event. `None` at the end, and at bytes that are not an entry:
    /// everything after them is lost.
    pub fn next(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.function.has_children) {
            self.depth += 1;
        }
        while self.at < self.bytes.len() {
            let offset = self.before + self.at as u64;
            let code = self.leb()?;
            if code == 0 {
                self.depth -= 1;
                return Some(Event::Closed);
            }
            let plan = self.plans.of(code, self.abbreviations, self.encoding)?;
            self.advance(plan.bytes as usize)?;
            if plan.kind != Kind::Other {
                self.read_function(plan, offset)?;
                return Some(Event::Function);
            }
            self.depth += isize::from(plan.has_children);
            for index in plan.steps() {
                self.skip(self.plans.step(index)?)?;
            }
        }
        None
    }

    fn read_function(&mut self, plan: Plan, offset: u64) -> Option<()> {
        self.function = Function {
            is_inlined: plan.kind == Kind::Inlined,
            has_children: plan.has_children,
            offset,
            ..Function::default()
        };
        for index in plan.steps() {
            match self.plans.step(index)? {
                Step::Take(field, form, constant) => {
                    let value = self.value(form, constant)?;
                    self.function.set(field, value);
                }
                step => self.skip(step)?,
            }
        }
        Some(())
    }

    #[inline]
    fn skip(&mut self, step: Step) -> Option<()> {
        match step {
            Step::Bytes(bytes) => self.advance(bytes as usize),
            Step::Leb => self.skip_leb(),
            Step::Text => {
                let rest = self.bytes.get(self.at..)?;
                self.advance(memchr::memchr(0, rest)? + 1)
            }
            Step::Block(width) => {
                let len = match width {
                    0 => self.leb()?,
                    width => self.fixed(width.into())?,
                };
                self.advance(usize::try_from(len).ok()?)
            }
            Step::Indirect => {
                let form = self.indirect()?;
                let step = plan::step_over(form, self.encoding)?;
                // An indirect form may not be indirect again: that could go on endlessly.
                (!matches!(step, Step::Indirect)).then_some(())?;
                self.skip(step)
            }
            Step::Take(_, form, constant) => self.value(form, constant).map(drop),
        }
    }

    fn indirect(&mut self) -> Option<DwForm> {
        Some(DwForm(self.leb()?.try_into().ok()?))
    }

    #[expect(non_upper_case_globals, reason = "as the standard writes them")]
    fn value(&mut self, form: DwForm, constant: i64) -> Option<Value> {
        use gimli::constants::*;
        let word = usize::from(self.encoding.format.word_size());
        let value = match form {
            DW_FORM_implicit_const => signed(constant),
            DW_FORM_addr => Value::Address(self.fixed(self.encoding.address_size.into())?),
            DW_FORM_addrx | DW_FORM_GNU_addr_index => Value::AddressIndex(self.leb()?),
            DW_FORM_addrx1 => Value::AddressIndex(self.fixed(1)?),
            DW_FORM_addrx2 => Value::AddressIndex(self.fixed(2)?),
            DW_FORM_addrx3 => Value::AddressIndex(self.fixed(3)?),
            DW_FORM_addrx4 => Value::AddressIndex(self.fixed(4)?),
            DW_FORM_data1 => Value::Number(self.fixed(1)?),
            DW_FORM_data2 => Value::Number(self.fixed(2)?),
            DW_FORM_data4 => Value::Number(self.fixed(4)?),
            DW_FORM_data8 => Value::Number(self.fixed(8)?),
            DW_FORM_sec_offset => Value::Number(self.fixed(word)?),
            DW_FORM_udata => Value::Number(self.leb()?),
            DW_FORM_sdata => signed(self.signed_leb()?),
            DW_FORM_rnglistx => Value::RangesIndex(self.leb()?),
            DW_FORM_ref1 => Value::InUnit(self.fixed(1)?),
            DW_FORM_ref2 => Value::InUnit(self.fixed(2)?),
            DW_FORM_ref4 => Value::InUnit(self.fixed(4)?),
            DW_FORM_ref8 => Value::InUnit(self.fixed(8)?),
            DW_FORM_ref_udata => Value::InUnit(self.leb()?),
            DW_FORM_ref_addr if self.encoding.version == 2 => {
                Value::InSection(self.fixed(self.encoding.address_size.into())?)
            }
            DW_FORM_ref_addr => Value::InSection(self.fixed(word)?),
            DW_FORM_ref_sup4 => Value::InSupplementary(self.fixed(4)?),
            DW_FORM_ref_sup8 => Value::InSupplementary(self.fixed(8)?),
            DW_FORM_GNU_ref_alt => Value::InSupplementary(self.fixed(word)?),
            DW_FORM_indirect => {
                let form = self.indirect()?;
                (form != DW_FORM_indirect).then_some(())?;
                return self.value(form, 0);
            }
            form => {
                self.skip(plan::step_over(form, self.encoding)?)?;
                Value::Other
            }
        };
        Some(value)
    }

    fn advance(&mut self, bytes: usize) -> Option<()> {
        self.at = self.at.checked_add(bytes)?;
        (self.at <= self.bytes.len()).then_some(())
    }

    #[inline]
    fn fixed(&mut self, width: usize) -> Option<u64> {
        let from = self.at;
        self.advance(width)?;
        let mut bytes = [0; 8];
        bytes
            .get_mut(..width)?
            .copy_from_slice(self.bytes.get(from..self.at)?);
        Some(u64::from_le_bytes(bytes))
    }

    /// Reads a number of variable length that fits into 64 bits.
    #[inline]
    fn leb(&mut self) -> Option<u64> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        if byte < 0x80 {
            return Some(byte.into());
        }
        let (value, bits, last) = self.longer_leb(byte)?;
        (bits <= 63 || last <= 1).then_some(value)
    }

    fn signed_leb(&mut self) -> Option<i64> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        let (value, bits, last) = if byte < 0x80 {
            (u64::from(byte), 7, byte)
        } else {
            self.longer_leb(byte)?
        };
        (bits <= 63 || last == 0 || last == 0x7f).then_some(())?;
        let unused = 64_u32.saturating_sub(bits);
        Some(value.cast_signed() << unused >> unused)
    }

    fn skip_leb(&mut self) -> Option<()> {
        let rest = self.bytes.get(self.at..)?;
        self.advance(rest.iter().position(|byte| *byte < 0x80)? + 1)
    }

    /// Reads the number that starts with `first`, ten bytes at most. Returns it with the number of
    /// its bits and its last byte.
    fn longer_leb(&mut self, first: u8) -> Option<(u64, u32, u8)> {
        let mut value = u64::from(first & 0x7f);
        let mut bits = 7;
        while bits < 70 {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            value |= u64::from(byte & 0x7f) << bits;
            bits += 7;
            if byte < 0x80 {
                return Some((value, bits, byte));
            }
        }
        None
    }
}

fn signed(number: i64) -> Value {
    number.try_into().map_or(Value::Other, Value::Number)
}

impl Value {
    /// Returns the place of the entry that the value refers to, from a unit that starts at `unit`.
    pub fn entry(self, unit: usize) -> Option<EntryPlace> {
        let (supplementary, offset) = match self {
            Value::InUnit(offset) => (false, (unit as u64).checked_add(offset)?),
            Value::InSection(offset) => (false, offset),
            Value::InSupplementary(offset) => (true, offset),
            _ => return None,
        };
        let offset = usize::try_from(offset).ok()?;
        Some(EntryPlace {
            supplementary,
            offset,
        })
    }
}

#[cfg(test)]
mod tests;
