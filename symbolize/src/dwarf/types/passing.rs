//! Where the caller of a function puts each of its parameters.
//!
//! | language | rules |
//! |---|---|
//! | C, C++ | System V ABI for x86-64, 3.2.3: six registers for integers, the rest on the stack |
//! | Rust | the same for numbers and addresses; anything larger than two of them by address |
//! | Go | cmd/compile/abi-internal.md: nine registers, parts of structures one by one |
//!
//! What cannot be determined for sure is [`Passed::Unknown`], and so is everything after it that
//! depends on it.

use super::DebugTypes;
use crate::types::{Shape, TypeId};

/// The calling convention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Convention {
    /// C and C++, and languages that use their convention.
    C,
    /// Rust's own convention.
    Rust,
    /// Go's register convention (since 1.17).
    Go,
}

/// Where a parameter is when a call begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// In the argument with this number, from 1 on: a register for integers, or after these a word
    /// of the stack.
    Argument(u32),
    /// Its address is in the argument with this number.
    Address(u32),
    /// In several arguments: the first one, their number, and whether each holds eight of its
    /// bytes, in their order. In Go each part that is smaller has an argument of its own.
    Several(u32, u32, bool),
    /// On the stack, this many bytes above the return address.
    Stack(u64),
    /// In a floating-point register.
    Float,
    /// In a register that the compiler chose, numbered as in instructions.
    Register(u32),
    /// Not passed: the compiler made it a constant, or passes it in another way than callers in
    /// other files would.
    Nowhere,
    /// Not known.
    Unknown,
}

/// Number of registers for integers.
const SYSTEM_V: u32 = 6;
const GO: u32 = 9;

/// Maximum number of nested structures that are checked to find out what a structure consists of.
const NESTED_MAX: u32 = 32;

/// Maximum size in words of a structure whose parts are passed in registers.
const WORDS_MAX: u64 = 2;

/// What a value consists of, as far as it decides where it is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    /// This many words of integers.
    Words(u32),
    Float,
    /// This many bytes that are passed on the stack.
    Bytes(u64),
    /// Its address is passed.
    Address,
    Nothing,
    Unknown,
}

/// Assigns a place to each parameter, in their order.
#[derive(Debug)]
pub struct Places<'t> {
    types: &'t DebugTypes,
    convention: Convention,
    /// Number of used integer registers; `None` if unknown after some parameter.
    registers: Option<u32>,
    /// Number of used bytes of the stack; `None` if unknown after some parameter.
    stack: Option<u64>,
}

impl<'t> Places<'t> {
    /// Starts with all registers free. If `returns` is returned through memory, the first register
    /// is used for its address.
    pub fn new(types: &'t DebugTypes, convention: Convention, returns: Option<TypeId>) -> Self {
        let first = match (convention, returns) {
            (Convention::Go, _) | (_, None) => Some(0),
            (_, Some(kind)) => match types.made(kind, convention) {
                Made::Bytes(_) | Made::Address => Some(1),
                Made::Unknown => None,
                Made::Words(_) | Made::Float | Made::Nothing => Some(0),
            },
        };
        Places {
            types,
            convention,
            registers: first,
            stack: Some(0),
        }
    }

    /// Returns the place of the next parameter.
    pub fn next(&mut self, kind: Option<TypeId>) -> Passed {
        let made = kind.map_or(Made::Unknown, |kind| self.types.made(kind, self.convention));
        match made {
            Made::Words(words) => match self.words(words) {
                Passed::Argument(number) if kind.is_some_and(|it| self.types.is_structure(it)) => {
                    Passed::Several(number, 1, self.is_even(kind, 1))
                }
                Passed::Several(number, words, _) => {
                    Passed::Several(number, words, self.is_even(kind, words))
                }
                place => place,
            },
            Made::Address => match self.words(1) {
                Passed::Argument(number) => Passed::Address(number),
                place => place,
            },
            Made::Bytes(bytes) => self.on_stack(bytes),
            Made::Float => Passed::Float,
            Made::Nothing => Passed::Unknown,
            Made::Unknown => {
                // It may have used registers, stack, or neither.
                (self.registers, self.stack) = (None, None);
                Passed::Unknown
            }
        }
    }

    fn words(&mut self, words: u32) -> Passed {
        let Some(taken) = self.registers else {
            return Passed::Unknown;
        };
        let all = match self.convention {
            Convention::Go => GO,
            _ => SYSTEM_V,
        };
        if taken + words <= all {
            self.registers = Some(taken + words);
            return match words {
                1 => Passed::Argument(taken + 1),
                _ => Passed::Several(taken + 1, words, false),
            };
        }
        match (self.convention, self.on_stack(u64::from(words) * 8)) {
            // In Go other values can be on the stack, too.
            (Convention::Go, _) => Passed::Unknown,
            (_, Passed::Stack(above)) if words == 1 => {
                Passed::Argument(SYSTEM_V + (above / 8) as u32)
            }
            (_, place) => place,
        }
    }

    /// Whether each word holds eight bytes of the value.
    fn is_even(&self, kind: Option<TypeId>, words: u32) -> bool {
        let bytes = || Some(self.types.structure(kind?)?.bytes);
        self.convention != Convention::Go || bytes() == Some(u64::from(words) * 8)
    }

    fn on_stack(&mut self, bytes: u64) -> Passed {
        let Some(taken) = self.stack else {
            return Passed::Unknown;
        };
        let words = bytes.div_ceil(8).checked_mul(8);
        self.stack = words.and_then(|bytes| taken.checked_add(bytes));
        // The return address is below them.
        Passed::Stack(taken.saturating_add(8))
    }
}

impl DebugTypes {
    fn is_structure(&self, kind: TypeId) -> bool {
        self.shape_of(kind) == Some(Shape::Structure)
    }

    fn made(&self, kind: TypeId, convention: Convention) -> Made {
        match self.shape_of(kind) {
            Some(Shape::Number { .. } | Shape::Pointer(_)) => Made::Words(1),
            Some(Shape::Float(_)) => Made::Float,
            Some(Shape::Structure) => self.made_of_parts(kind, convention),
            // A `long double`, or another number of 16 bytes: the two cannot be distinguished here.
            Some(Shape::Letters(_) | Shape::Other) | None => Made::Unknown,
        }
    }

    fn made_of_parts(&self, kind: TypeId, convention: Convention) -> Made {
        let Some(whole) = self.structure(kind) else {
            return Made::Unknown;
        };
        if convention == Convention::Go {
            return match self.go_words(kind, &mut { NESTED_MAX }) {
                Some(0) => Made::Nothing,
                Some(words) => Made::Words(words),
                None => Made::Unknown,
            };
        }
        match (whole.bytes, convention) {
            // Rust passes nothing; C++ passes a placeholder.
            (0, Convention::Rust) => Made::Nothing,
            (0, _) => Made::Unknown,
            (bytes, Convention::Rust) if bytes > WORDS_MAX * 8 => Made::Address,
            _ if whole.is_by_address => Made::Address,
            (bytes, _) if bytes > WORDS_MAX * 8 => Made::Bytes(bytes),
            (bytes, _) if self.has_only_integers(kind, &mut { NESTED_MAX }) => {
                let words = bytes.div_ceil(8) as u32;
                // Two parts of a Rust structure may be in two registers.
                match (convention, words, self.parts(kind).len()) {
                    (Convention::Rust, 1, 2..) => Made::Unknown,
                    _ => Made::Words(words),
                }
            }
            _ => Made::Unknown,
        }
    }

    /// Whether the type consists only of integers and addresses, checking at most `left`
    /// structures.
    fn has_only_integers(&self, kind: TypeId, left: &mut u32) -> bool {
        let parts = self.parts(kind);
        let mut is_integer = |part: &TypeId| match self.shape_of(*part) {
            Some(Shape::Number { .. } | Shape::Pointer(_) | Shape::Letters(_)) => true,
            Some(Shape::Structure) => take_one(left) && self.has_only_integers(*part, left),
            _ => false,
        };
        !parts.is_empty() && parts.iter().all(&mut is_integer)
    }

    /// Returns the number of registers for the parts of a Go value; `None` if some are not
    /// integers, or if more than `left` structures would have to be checked.
    fn go_words(&self, kind: TypeId, left: &mut u32) -> Option<u32> {
        match self.shape_of(kind)? {
            Shape::Number { .. } | Shape::Pointer(_) => Some(1),
            Shape::Structure if take_one(left) => {
                let mut words = 0u32;
                for part in self.parts(kind) {
                    words += self.go_words(part, left)?;
                }
                Some(words)
            }
            _ => None,
        }
    }
}

/// Counts one more checked structure; false if none is left.
fn take_one(left: &mut u32) -> bool {
    let is_left = *left > 0;
    *left = left.saturating_sub(1);
    is_left
}
