//! Values of a call: from the text that the user typed to what the kernel reads.
//!
//! ```text
//! arg1 … arg9   ret   this   %r8
//! *(arg1+16):u32          memory, here four bytes of it; without a type eight
//! *(*(arg1+8)+4):i16      memory behind memory
//! str(arg1)               a text that ends with a zero, up to 64 bytes of it
//! str(%r8, %r9)           one whose length is known
//! prev.comm  prev->mm     members by their names, where types are known
//! this->size  ret->error  the same of an object, and of what is returned
//! arg1:job.id             the same of the address of a `job`
//! ```
//!
//! The grammar, with blanks between any two words:
//!
//! ```text
//! expression = sum | "str(" sum ["," sum] ")"
//! sum        = primary (("+" | "-") number)*
//! primary    = "*" (primary | "(" sum ")") of | "(" sum ")" of | number
//!            | ("%" register | name) of
//! of         = [":" type] | [":" structure] (("." | "->") member)+ [":" type]
//! ```
//!
//! The kernel reads a chain: it starts at a base, then repeatedly adds a number and reads memory,
//! and adds a number at the end. Every expression is converted to one such chain:
//!
//! ```text
//! *(*(arg1+8)+4):i16      base rdi, step (+8, 8 bytes), step (+4, 2 bytes), then +0
//! ```

/// Names of the errors that functions return.
mod errors;
mod fields;

use fields::{Fields, What};
pub use fields::{Known, KnownParameter};
use probe::call_orders::{
    Chain, Orders, STEPS_MAX, Step, VALUES_MAX, Value, order, register, value,
};
use symbolize::dwarf::Passed;
use symbolize::kernel::{Tracepoint, Tracepoints};
use symbolize::sites::{Argument, ArgumentPlace, Language};
use symbolize::types::Bits;

/// A value to be read and shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// The text as typed.
    pub text: String,
    kind: Kind,
    /// How its number is shown; unused for texts.
    pub number: NumberType,
    /// The operand of a marker's argument, in assembler syntax. Empty for functions.
    operand: String,
    /// Names of numbers, if it is an enumeration.
    names: Vec<(i64, String)>,
    /// The name for all other numbers, if it is an enumeration whose variants have members.
    other: Option<String>,
    /// Whether its type is known from debug information.
    is_known: bool,
}

/// What is shown: a number, a text that ends with a zero, or a text with a given length.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Number(Path),
    Text(Path),
    CountedText(Path, Path),
}

/// A register or argument, memory that is read through it, and a number that is added.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Path {
    base: Base,
    /// For each read the number added before it, and the number of bytes.
    steps: Vec<(i64, u64)>,
    /// The number added after all reads.
    then: i64,
    /// Names before the steps, which have to be resolved before the path can be read.
    fields: Option<Box<Fields>>,
    /// Which bits of the value that was read last count; `None` for all.
    bits: Option<Bits>,
}

/// Where a path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    /// The argument with this number, from 1 on.
    Argument(u32),
    Return,
    /// The register with this number, as in instructions: see [`REGISTERS`].
    Register(u32),
    /// The constant 0, to which a typed number is added.
    Number,
}

/// How a number is displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberType {
    /// Size in bytes: 1, 2, 4 or 8.
    pub bytes: u32,
    /// Whether its highest bit is the sign.
    pub is_signed: bool,
    /// Whether it is an address, displayed in hexadecimal.
    pub is_pointer: bool,
    /// Whether it is a floating-point number, of 4 or 8 bytes.
    pub is_float: bool,
    /// Number of bits, if it is smaller than its bytes; else 0.
    pub bits: u32,
}

/// Remark about a register that is shown whole, because its type and so its size are unknown.
const UNTYPED: &str = "whole, as its type is not known";

/// The type of a number for which no type was typed.
const WORD: NumberType = NumberType {
    bytes: 8,
    is_signed: false,
    is_pointer: false,
    is_float: false,
    bits: 0,
};

impl NumberType {
    /// Formats the number according to its type.
    pub fn show(self, number: u64) -> String {
        // Shifting left and back fills the bits above the number's own with its sign, or with
        // zeros.
        let unused = match self.bits {
            bits @ 1..=64 => 64 - bits,
            _ => 64 - self.bytes.clamp(1, 8) * 8,
        };
        if self.is_pointer {
            return format!("{number:#x}");
        }
        if self.is_float {
            return match self.bytes {
                4 => f32::from_bits(number as u32).to_string(),
                _ => f64::from_bits(number).to_string(),
            };
        }
        if self.is_signed {
            return (((number << unused) as i64) >> unused).to_string();
        }
        let number = number << unused >> unused;
        // Negative numbers and addresses are easier to recognize in hexadecimal.
        if number > u64::from(u32::MAX) {
            format!("{number:#x}")
        } else {
            number.to_string()
        }
    }
}

/// The values of one probe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Values(Vec<Expression>);

impl Values {
    /// Makes the values of a probe; an error if there are more than one probe can have.
    pub fn new(expressions: Vec<Expression>) -> Result<Values, String> {
        if expressions.len() > VALUES_MAX {
            return Err(format!("a probe has {VALUES_MAX} values at most"));
        }
        Ok(Values(expressions))
    }

    /// The values, in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = &Expression> {
        self.0.iter()
    }

    /// Whether no value is read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The registers that must be unchanged where the call is seen, one bit each.
    pub fn registers_at_entry(&self, language: Language) -> u16 {
        let mut registers = 0;
        for expression in self.iter().filter(|expression| !expression.is_at_end()) {
            for path in expression.paths() {
                let base = path.base.lower(language).0;
                if base < 16 {
                    registers |= 1 << base;
                }
            }
        }
        registers
    }

    /// Whether some values are read at the end of a call.
    pub fn has_results(&self) -> bool {
        self.iter().any(Expression::is_at_end)
    }

    /// Whether the kernel does the same for these values and for `others`.
    pub fn is_read_alike(&self, others: &Values, language: Language) -> bool {
        let orders = |values: &Values| {
            let mut orders = Orders::default();
            values.lower(language, &mut orders).map(|()| orders)
        };
        orders(self) == orders(others)
    }

    /// Adds what the kernel has to do for them, for a function in this language.
    pub fn lower(&self, language: Language, orders: &mut Orders) -> Result<(), String> {
        for (slot, expression) in orders.values.iter_mut().zip(self.iter()) {
            *slot = expression.lower(language)?;
            orders.flags |= if expression.is_at_end() {
                order::RESULTS
            } else {
                order::VALUES
            };
        }
        Ok(())
    }
}

impl Expression {
    /// Parses an expression. The error is a sentence.
    pub fn parse(text: &str) -> Result<Expression, String> {
        let failed = |why: String| format!("`{text}`: {why}");
        let mut words = Words { rest: text };
        let (kind, number) = words.expression().map_err(failed)?;
        words.skip_blanks();
        if !words.rest.is_empty() {
            return Err(failed(format!("`{}` is too much", words.rest)));
        }
        let expression = Expression {
            text: text.to_string(),
            kind,
            number,
            operand: String::new(),
            names: Vec::new(),
            other: None,
            is_known: false,
        };
        let is_end = |path: &&Path| path.base == Base::Return;
        let ends = expression.paths().filter(is_end).count();
        let bases = expression
            .paths()
            .filter(|path| path.base != Base::Number)
            .count();
        // All parts of a value are read at one moment: when the call is seen, or when it ends.
        if ends != 0 && ends != bases {
            return Err(failed("arguments are gone when the call returns".into()));
        }
        // One step less than the kernel allows, as an argument on the stack needs a step itself.
        if expression.paths().any(|path| path.steps.len() >= STEPS_MAX) {
            return Err(failed(format!(
                "memory is read {} times at most",
                STEPS_MAX - 1
            )));
        }
        Ok(expression)
    }

    /// The path of the value, and that of the length of a text.
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let (first, second) = match &self.kind {
            Kind::Number(path) | Kind::Text(path) => (path, None),
            Kind::CountedText(path, length) => (path, Some(length)),
        };
        std::iter::once(first).chain(second)
    }

    /// Whether the value is read when the call returns, and not when it begins.
    pub fn is_at_end(&self) -> bool {
        self.paths().any(|path| path.base == Base::Return)
    }

    /// Whether the value is a text.
    pub fn is_text(&self) -> bool {
        !matches!(self.kind, Kind::Number(_))
    }

    /// Converts the value to what the kernel does.
    fn lower(&self, language: Language) -> Result<Value, String> {
        let chain = |path: &Path| path.lower(language);
        let mut lowered = Value {
            at_end: u32::from(self.is_at_end()),
            ..Value::default()
        };
        match &self.kind {
            Kind::Number(path) => {
                lowered.kind = value::NUMBER;
                lowered.chain = chain(path)?;
                // The upper bits of a register are undefined for a shorter number: they are masked,
                // so that equal numbers are counted as equal.
                let own = Bits {
                    skip: 0,
                    count: self.number.bytes.clamp(1, 8) * 8,
                };
                let bits = path.bits.unwrap_or(own);
                lowered.above = 64 - (bits.skip + bits.count).min(64);
                lowered.down = 64 - bits.count.min(64);
            }
            Kind::Text(path) => {
                lowered.kind = value::TEXT;
                lowered.chain = chain(path)?;
            }
            Kind::CountedText(path, length) => {
                lowered.kind = value::COUNTED_TEXT;
                lowered.chain = chain(path)?;
                lowered.length = chain(length)?;
            }
        }
        Ok(lowered)
    }

    /// Returns the expression for a marker, whose arguments are at the places in its note. A number
    /// without a type gets the type of its argument.
    pub fn at_marker(&self, arguments: &[Argument]) -> Result<Expression, String> {
        if self.has_names() {
            let why = "nothing tells of names at a marker: its arguments are arg1, arg2 …";
            return Err(format!("`{}`: {why}", self.text));
        }
        let mut operands = Vec::new();
        let mut place = |path: &Path| {
            let mut placed = path.clone();
            if let Base::Argument(number) = path.base {
                let argument = arguments.get(number as usize - 1);
                let argument =
                    argument.ok_or_else(|| format!("it has {} arguments", arguments.len()))?;
                placed.take(argument)?;
                operands.push(argument.text.clone());
            }
            Ok::<Path, String>(placed)
        };
        let kind = match &self.kind {
            Kind::Number(path) => Kind::Number(place(path)?),
            Kind::Text(path) => Kind::Text(place(path)?),
            Kind::CountedText(path, length) => Kind::CountedText(place(path)?, place(length)?),
        };
        let is_bare = match &self.kind {
            Kind::Number(path) => path.steps.is_empty() && path.then == 0,
            _ => false,
        };
        let argument = match self.paths().next().map(|path| path.base) {
            Some(Base::Argument(number)) => arguments.get(number as usize - 1),
            _ => None,
        };
        let number = match argument.filter(|_| is_bare && self.number == WORD) {
            Some(argument) => NumberType {
                bytes: argument.bytes,
                is_signed: argument.is_signed,
                ..WORD
            },
            None => self.number,
        };
        Ok(Expression {
            text: self.text.clone(),
            kind,
            number,
            operand: operands.join(", "),
            names: Vec::new(),
            other: None,
            is_known: false,
        })
    }

    /// Whether it contains names that have to be resolved by types.
    pub fn has_names(&self) -> bool {
        self.paths().any(Path::has_names)
    }

    /// Returns the expression for a function about which this is known. The error is a clause.
    pub fn at_function(&self, known: Known<'_>) -> Result<Expression, String> {
        self.with_types(known)
    }

    /// Returns the expression for a tracepoint of the kernel, whose arguments have names and types.
    pub fn at_point(
        &self,
        types: &Tracepoints<'_>,
        point: &Tracepoint,
    ) -> Result<Expression, String> {
        let parameters: Vec<KnownParameter> = point
            .parameters
            .iter()
            .zip(1..)
            .map(|(it, number)| KnownParameter {
                name: it.name.clone(),
                kind: Some(it.kind),
                place: Passed::Argument(number),
            })
            .collect();
        let known = Known {
            types,
            parameters: &parameters,
            returns: None,
        };
        let mut at_point = self.with_types(known)?;
        let mut operands = Vec::new();
        let mut place = |path: &mut Path| {
            match path.base {
                Base::Number => {}
                Base::Argument(number) => {
                    let at = number as usize - 1;
                    let parameter = parameters.get(at);
                    let parameter = parameter
                        .ok_or_else(|| format!("it has {} arguments", parameters.len()))?;
                    operands.push(parameter.name.clone());
                    path.base = Base::Register(at as u32);
                }
                Base::Return => return Err("a tracepoint returns nothing".into()),
                Base::Register(_) => return Err("a tracepoint has no registers".to_string()),
            }
            Ok(())
        };
        match &mut at_point.kind {
            Kind::Number(path) | Kind::Text(path) => place(path)?,
            Kind::CountedText(path, length) => {
                place(path)?;
                place(length)?;
            }
        }
        at_point.operand = operands.join(", ");
        Ok(at_point)
    }

    /// Returns the expression with names resolved, and with display types. The error is a clause.
    fn with_types(&self, known: Known<'_>) -> Result<Expression, String> {
        let mut typed = self.clone();
        match &self.kind {
            Kind::Number(path) => {
                let resolved = path.resolve(known)?;
                typed.kind = Kind::Number(resolved.path.clone());
                match resolved.what {
                    What::Unknown => {}
                    What::Number(number, names) => {
                        typed.is_known = true;
                        if self.number == WORD {
                            typed.number = number;
                            typed.names = names;
                        }
                    }
                    What::Variant(number, names, other) => {
                        if self.number == WORD {
                            (typed.number, typed.names, typed.other) = (number, names, other);
                        }
                    }
                    What::Letters => typed.kind = Kind::Text(resolved.path),
                    What::Text(length) => typed.kind = Kind::CountedText(resolved.path, length),
                    What::Structure => {
                        return Err(format!("`{}` is a structure: name a member", self.text));
                    }
                }
            }
            // A text is read from an address: that of an array of characters, or the value of a
            // pointer.
            Kind::Text(path) => {
                let resolved = path.resolve(known)?;
                let path = resolved.path.without_bits()?;
                typed.kind = match resolved.what {
                    What::Text(length) => Kind::CountedText(path, length),
                    What::Structure | What::Variant(..) => {
                        return Err("it is a structure, and no text: name a member".into());
                    }
                    What::Unknown | What::Number(..) | What::Letters => Kind::Text(path),
                };
            }
            Kind::CountedText(path, length) => {
                let (path, length) = (path.resolve(known)?, length.resolve(known)?);
                if let What::Structure | What::Variant(..) = path.what {
                    return Err("it is a structure, and no text: name a member".into());
                }
                let (path, length) = (path.path.without_bits()?, length.path.without_bits()?);
                typed.kind = Kind::CountedText(path, length);
            }
        }
        Ok(typed)
    }

    /// Formats a number: by its name, if it has one.
    pub fn show(&self, number: u64) -> String {
        let shown = self.number.show(number);
        let value = shown.parse::<i64>().ok();
        if let Some(name) = value.and_then(|value| self.name_of(value)) {
            return symbolize::sanitize(name.as_bytes()).into_owned();
        }
        if let Some(other) = &self.other {
            return symbolize::sanitize(other.as_bytes()).into_owned();
        }
        let returned = matches!(&self.kind, Kind::Number(path) if path.is_bare(Base::Return));
        let is_whole = !self.number.is_pointer && !self.number.is_float && self.names.is_empty();
        match errors::returned(number, self.number.bytes).filter(|_| returned && is_whole) {
            Some(name) => format!("{shown} (-{name})"),
            None => shown,
        }
    }

    /// Returns the name of an enumeration value; for a combination of flags all names, and the
    /// number.
    fn name_of(&self, value: i64) -> Option<String> {
        let is_it = |(it, _): &&(i64, String)| *it == value;
        if let Some((_, name)) = self.names.iter().find(is_it) {
            return Some(name.clone());
        }
        if value <= 0 || !has_flags(&self.names) {
            return None;
        }
        let flags = self.names.iter().filter(|(flag, _)| is_flag(*flag));
        let mut rest = value;
        let mut set: Vec<&str> = Vec::new();
        for (flag, name) in flags {
            if rest & flag != 0 {
                set.push(name);
                rest &= !flag;
            }
        }
        (rest == 0).then(|| format!("{} ({value:#x})", set.join("|")))
    }

    /// Returns the register of an argument, or its place, in words.
    pub fn register(&self, language: Language) -> String {
        if !self.operand.is_empty() {
            return self.operand.clone();
        }
        let path = self.paths().next().expect("an expression has a path");
        let (base, step) = path.base.lower(language);
        match step {
            Some(offset) => format!("stack+{offset}"),
            None if self.is_untyped_result() => format!("{}, {UNTYPED}", REGISTERS[0]),
            None => REGISTERS.get(base as usize).unwrap_or(&"").to_string(),
        }
    }

    /// Whether it is the return value without a known type: then the whole register is shown,
    /// although only the lower bits of a shorter value are defined.
    fn is_untyped_result(&self) -> bool {
        let is_bare = matches!(&self.kind, Kind::Number(path) if path.is_bare(Base::Return));
        // `ret:u64` has the same type as a number of which nothing is known.
        is_bare && !self.is_known && !self.text.contains(':')
    }
}

impl Path {
    fn of(base: Base) -> Path {
        Path {
            base,
            steps: Vec::new(),
            then: 0,
            fields: None,
            bits: None,
        }
    }

    /// Whether it is only this base, without steps.
    fn is_bare(&self, base: Base) -> bool {
        self.base == base && self.steps.is_empty() && self.then == 0 && self.fields.is_none()
    }

    /// Replaces the base by the place of a marker's argument.
    fn take(&mut self, argument: &Argument) -> Result<(), String> {
        match argument.place {
            Some(ArgumentPlace::Register(number)) => self.base = Base::Register(number),
            Some(ArgumentPlace::Memory(number, offset)) => {
                self.base = Base::Register(number);
                self.steps.insert(0, (offset, u64::from(argument.bytes)));
            }
            Some(ArgumentPlace::Constant(constant)) => {
                self.base = Base::Number;
                match self.steps.first_mut() {
                    Some((add, _)) => *add = add.wrapping_add(constant),
                    None => self.then = self.then.wrapping_add(constant),
                }
            }
            None => return Err(format!("its argument {} is not understood", argument.text)),
        }
        Ok(())
    }

    /// Converts the path to the kernel's chain; an argument on the stack needs one more read.
    fn lower(&self, language: Language) -> Result<Chain, String> {
        let (base, on_stack) = self.base.lower(language);
        let mut chain = Chain {
            base,
            then: self.then,
            ..Chain::default()
        };
        let first = on_stack.map(|offset| (offset, 8));
        let steps = first.into_iter().chain(self.steps.iter().copied());
        for (add, bytes) in steps {
            let slot = chain.step.get_mut(chain.steps as usize);
            *slot.ok_or("memory is read too often")? = Step { add, bytes };
            chain.steps += 1;
        }
        Ok(chain)
    }
}

/// Whether a value has exactly one bit set.
fn is_flag(value: i64) -> bool {
    value > 0 && value & (value - 1) == 0
}

/// Whether an enumeration consists of flags that can be combined: three bits or more, and at most
/// half as many other values. In an enumeration with consecutive values, half of them are not
/// single bits.
fn has_flags(names: &[(i64, String)]) -> bool {
    let values = || names.iter().map(|(value, _)| *value).filter(|it| *it != 0);
    let flags = values().filter(|value| is_flag(*value)).count();
    let others = values().count() - flags;
    let highest = values().max().unwrap_or(0);
    let is_counted_up = highest as usize <= values().count();
    flags >= 3 && others <= flags / 2 && !is_counted_up
}

/// Registers of integer arguments: System V ABI for x86-64, 3.2.3, and Go's
/// cmd/compile/abi-internal.md.
const SYSTEM_V: [u32; 6] = [7, 6, 2, 1, 8, 9];
const GO: [u32; 9] = [0, 3, 1, 7, 6, 8, 9, 10, 11];

const REGISTERS: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

impl Base {
    /// Returns the register and, for a value in memory, its offset from there.
    fn lower(self, language: Language) -> (u32, Option<i64>) {
        match self {
            Base::Register(number) => (number, None),
            Base::Return => (0, None),
            Base::Number => (register::ZERO, None),
            Base::Argument(number) => {
                let registers = if language == Language::Go {
                    &GO[..]
                } else {
                    &SYSTEM_V[..]
                };
                let index = number as usize - 1;
                match registers.get(index) {
                    Some(register) => (*register, None),
                    // On the stack, above the return address.
                    None => {
                        let above = index - registers.len() + 1;
                        (register::ENTRY_SP, Some(above as i64 * 8))
                    }
                }
            }
        }
    }
}

/// The text that is still to be parsed.
///
/// A parser by recursive descent; each method consumes what it parses.
struct Words<'t> {
    rest: &'t str,
}

impl<'t> Words<'t> {
    /// Parses a whole expression: a text, or a sum.
    fn expression(&mut self) -> Result<(Kind, NumberType), String> {
        if self.take("str(") {
            let pointer = self.sum()?.0;
            let kind = if self.take(",") {
                Kind::CountedText(pointer, self.sum()?.0)
            } else {
                Kind::Text(pointer)
            };
            self.expect(")")?;
            return Ok((kind, WORD));
        }
        let (path, number) = self.sum()?;
        Ok((Kind::Number(path), number))
    }

    /// `primary [+ number] …`
    fn sum(&mut self) -> Result<(Path, NumberType), String> {
        let (mut path, number) = self.primary()?;
        loop {
            let sign = if self.take("+") {
                1
            } else if self.take("-") {
                -1
            } else {
                return Ok((path, number));
            };
            let unsigned = self.number().ok_or("behind + and - comes a number")?;
            let amount = i64::try_from(unsigned).map_err(|_| "that number is too large")?;
            path.then = path.then.wrapping_add(sign * amount);
        }
    }

    /// Parses a base, a memory access, or an expression in parentheses, with its type.
    fn primary(&mut self) -> Result<(Path, NumberType), String> {
        if self.take("*") {
            let mut path = if self.take("(") {
                let path = self.sum()?.0;
                self.expect(")")?;
                path
            } else {
                self.primary()?.0
            };
            let (number, cast) = self.number_type()?;
            path.steps.push((path.then, u64::from(number.bytes)));
            path.then = 0;
            return self.members(path, number, cast, None);
        }
        if self.take("(") {
            let (path, number) = self.sum()?;
            self.expect(")")?;
            return if self.rest.starts_with([':', '.']) || self.rest.starts_with("->") {
                let (_, cast) = self.number_type()?;
                self.members(path, number, cast, None)
            } else {
                Ok((path, number))
            };
        }
        if let Some(number) = self.number() {
            let then = i64::try_from(number).map_err(|_| "that number is too large")?;
            let path = Path {
                then,
                ..Path::of(Base::Number)
            };
            return Ok((path, WORD));
        }
        let is_register = self.take("%");
        let word = self.word();
        let mut parameter = None;
        let base = if is_register {
            let number = REGISTERS
                .iter()
                .position(|name| *name == word)
                .ok_or_else(|| format!("`%{word}` is no 64-bit register"))?;
            Base::Register(number as u32)
        } else if is_name(word) {
            parameter = Some(word.to_string());
            Base::Number
        } else {
            named(word)?
        };
        let (number, cast) = self.number_type()?;
        self.members(Path::of(base), number, cast, parameter)
    }

    /// Parses any number of `.member` or `->member`, and a type after them.
    fn members(
        &mut self,
        of: Path,
        mut number: NumberType,
        cast: Option<String>,
        parameter: Option<String>,
    ) -> Result<(Path, NumberType), String> {
        let mut members = Vec::new();
        while self.take(".") || self.take("->") {
            let word = self.word();
            if word.is_empty() {
                return Err("behind a dot comes the name of a member".into());
            }
            members.push(word.to_string());
        }
        if members.is_empty() && cast.is_none() && parameter.is_none() {
            return Ok((of, number));
        }
        if !members.is_empty() {
            let (typed, other) = self.number_type()?;
            if let Some(word) = other {
                return Err(format!("`{word}` is no type of a number"));
            }
            number = typed;
        }
        let path = Path {
            fields: Some(Box::new(Fields {
                of: of.clone(),
                parameter,
                cast,
                members,
            })),
            ..Path::of(of.base)
        };
        Ok((path, number))
    }

    /// Parses `:u32`; without it the type is a whole word. Before a member it is the name of a
    /// structure.
    fn number_type(&mut self) -> Result<(NumberType, Option<String>), String> {
        if !self.take(":") {
            return Ok((WORD, None));
        }
        let word = self.type_name();
        let sized = |bytes, is_signed| NumberType {
            bytes,
            is_signed,
            ..WORD
        };
        let number = match word {
            "u8" => sized(1, false),
            "u16" => sized(2, false),
            "u32" => sized(4, false),
            "u64" => sized(8, false),
            "i8" => sized(1, true),
            "i16" => sized(2, true),
            "i32" => sized(4, true),
            "i64" => sized(8, true),
            "f32" | "f64" => NumberType {
                is_float: true,
                ..sized(if word == "f32" { 4 } else { 8 }, false)
            },
            "ptr" => NumberType {
                is_pointer: true,
                ..WORD
            },
            _ if self.rest.starts_with(['.', '-']) => return Ok((WORD, Some(word.to_string()))),
            _ => {
                return Err(format!(
                    "`{word}` is no type: u8 to u64, i8 to i64, f32, f64, ptr"
                ));
            }
        };
        Ok((number, None))
    }

    /// Parses the name of a type: `job`, `ns::Job`.
    fn type_name(&mut self) -> &'t str {
        self.skip_blanks();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        let end = self.rest.find(|c: char| !is_part(c));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    /// Parses a number, decimal or with `0x`; `None` if there is none, or if it has more than 64
    /// bits.
    fn number(&mut self) -> Option<u64> {
        self.skip_blanks();
        if !self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let word = self.word();
        match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        }
    }

    /// Parses letters and digits; `_` counts as a letter.
    fn word(&mut self) -> &'t str {
        self.skip_blanks();
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    /// Consumes these characters if they are next, after blanks.
    fn take(&mut self, what: &str) -> bool {
        self.skip_blanks();
        match self.rest.strip_prefix(what) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Returns an error if these characters are not next.
    fn expect(&mut self, what: &str) -> Result<(), String> {
        if self.take(what) {
            return Ok(());
        }
        Err(format!("`{what}` is missing before `{}`", self.rest))
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

/// Whether a word can be the name of a parameter: it is not one of the built-in words.
fn is_name(word: &str) -> bool {
    let digits = word.strip_prefix("arg").unwrap_or_default();
    let is_argument = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && !is_argument
        && !["ret", "this", "str"].contains(&word)
}

/// Returns the base that a word stands for.
fn named(word: &str) -> Result<Base, String> {
    match word {
        "ret" => Ok(Base::Return),
        "this" => Ok(Base::Argument(1)),
        _ => {
            let number = word.strip_prefix("arg").and_then(|n| n.parse().ok());
            match number {
                Some(number @ 1..=9) => Ok(Base::Argument(number)),
                _ => Err(format!(
                    "`{word}` is no value: arg1 to arg9, ret, this, %r8 …"
                )),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lower(text: &str, language: Language) -> Value {
        Expression::parse(text).unwrap().lower(language).unwrap()
    }

    #[test]
    fn arguments_are_where_the_language_puts_them() {
        assert_eq!(lower("arg1", Language::C).chain.base, 7);
        assert_eq!(lower("this", Language::Cpp).chain.base, 7);
        assert_eq!(lower("arg6", Language::C).chain.base, 9);
        assert_eq!(lower("arg1", Language::Go).chain.base, 0);
        let seventh = lower("arg7", Language::C).chain;
        assert_eq!((seventh.base, seventh.steps), (register::ENTRY_SP, 1));
        assert_eq!(seventh.step[0], Step { add: 8, bytes: 8 });
        assert_eq!(lower("arg8", Language::C).chain.step[0].add, 16);
        assert_eq!(lower("arg9", Language::C).chain.step[0].add, 24);
        // In Go the ninth argument is in the last register.
        assert_eq!(lower("arg9", Language::Go).chain.base, 11);
        assert_eq!(lower("%r8", Language::C).chain.base, 8);
    }

    #[test]
    fn memory_is_read_through_memory() {
        let chain = lower("*(*(arg1+8)+4):i16", Language::C).chain;
        assert_eq!((chain.base, chain.steps, chain.then), (7, 2, 0));
        assert_eq!(chain.step[0], Step { add: 8, bytes: 8 });
        assert_eq!(chain.step[1], Step { add: 4, bytes: 2 });
        let chain = lower("*arg2 - 3", Language::C).chain;
        assert_eq!((chain.base, chain.steps, chain.then), (6, 1, -3));
    }

    #[test]
    fn texts_have_an_end_or_a_length() {
        let text = lower("str(%r8, %r9)", Language::C);
        assert_eq!(
            (text.kind, text.chain.base, text.length.base),
            (value::COUNTED_TEXT, 8, 9)
        );
        let text = lower("str(*(arg1+16))", Language::C);
        assert_eq!((text.kind, text.chain.steps), (value::TEXT, 1));
        let text = lower("str(arg1, 5)", Language::C);
        assert_eq!((text.length.base, text.length.then), (register::ZERO, 5));
        assert_eq!(lower("str(ret)", Language::C).at_end, 1);
    }

    #[test]
    fn of_a_short_number_its_own_bits_are_kept() {
        let kept = |text: &str, register: u64| {
            let value = lower(text, Language::Go);
            register << value.above >> value.down
        };
        // A function that returns a bool leaves the register like this: only the lowest byte is
        // defined.
        let register = 0x00c0_0001_2345_ab01;
        assert_eq!(kept("ret:u8", register), 1);
        assert_eq!(kept("ret:i32", register), 0x2345_ab01);
        assert_eq!(kept("ret", register), register);
        assert_eq!(kept("arg1:i16", u64::MAX), 0xffff);
        let is_negative = Expression::parse("arg1:i16").unwrap().show(0xffff);
        assert_eq!(is_negative, "-1");
    }

    #[test]
    fn a_result_of_unknown_type_says_that_all_of_its_register_is_shown() {
        let place = |text: &str| Expression::parse(text).unwrap().register(Language::C);
        assert_eq!(place("ret"), format!("rax, {UNTYPED}"));
        assert_eq!(place("ret:u8"), "rax");
        assert_eq!(place("ret:u64"), "rax");
        assert_eq!(place("*(ret+8)"), "rax");
        assert_eq!(place("arg1"), "rdi");
        assert_eq!(place("str(ret)"), "rax");
    }

    #[test]
    fn numbers_are_shown_as_they_are_meant() {
        let show = |text: &str, number| Expression::parse(text).unwrap().number.show(number);
        assert_eq!(show("arg1:i32", 0xffff_ffff), "-1");
        assert_eq!(show("*(arg1):u8", 200), "200");
        assert_eq!(show("arg1:u32", 0x1_0000_0002), "2");
        assert_eq!(show("arg1", u64::MAX), "0xffffffffffffffff");
        assert_eq!(show("ret:ptr", 16), "0x10");
        assert_eq!(show("*(arg1):f32", u64::from(1.5f32.to_bits())), "1.5");
        assert_eq!(show("*(arg1+8):f64", (-0.25f64).to_bits()), "-0.25");
        let show = |text: &str, number| Expression::parse(text).unwrap().show(number);
        assert_eq!(show("ret:i32", 0xffff_fffe), "-2 (-ENOENT)");
        assert_eq!(show("ret:i32", 0xffff_ffff), "-1");
        assert_eq!(show("ret", 0xffff_fff4), "4294967284 (-ENOMEM)");
        assert_eq!(show("ret", 2), "2");
        assert_eq!(show("arg1:i32", 0xffff_fffe), "-2");
    }

    #[test]
    fn enumerations_have_names_and_flags_several() {
        let of = |names: &[(i64, &str)]| Expression {
            names: names
                .iter()
                .map(|(it, name)| (*it, name.to_string()))
                .collect(),
            ..Expression::parse("arg1").unwrap()
        };
        let flags = of(&[
            (0, "NONE"),
            (1, "READ"),
            (2, "WRITE"),
            (4, "RUN"),
            (7, "ALL"),
        ]);
        let shown = [0, 4, 5, 7, 8].map(|number| flags.show(number));
        assert_eq!(shown, ["NONE", "RUN", "READ|RUN (0x5)", "ALL", "8"]);
        let counted = of(&[(0, "A"), (1, "B"), (2, "C"), (3, "D"), (4, "E")]);
        assert_eq!([4, 5].map(|number| counted.show(number)), ["E", "5"]);
    }

    #[test]
    fn what_is_no_value_says_so() {
        for text in [
            "",
            "arg0",
            "arg10",
            "%eax",
            "*(arg1",
            "arg1 arg2",
            "str(arg1",
            "arg1:u7",
            "str(ret, arg1)",
            "****arg1",
        ] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
        assert!(Values::new(vec![Expression::parse("ret").unwrap(); 9]).is_err());
    }
}
