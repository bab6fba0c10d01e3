//! Types of values: what a number means, and where the members of a structure lie.
//!
//! Two sources tell of them, the kernel's BTF and debug information of programs, and both
//! answer the same few questions. What is read may be anybody's: nothing that it says is used
//! as an index without a check, and chains of names end.

/// The number of a type in its source.
pub type TypeId = u64;

/// What a type is, names of it left aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A number of so many bytes; a truth value is one.
    Number {
        /// 1, 2, 4 or 8.
        bytes: u32,
        /// Its highest bit is its sign.
        is_signed: bool,
        /// The names of its values, if it is an enumeration.
        names: Vec<(i64, String)>,
    },
    /// An address of something of that type. `None` if it is not known what is there.
    Pointer(Option<TypeId>),
    /// A floating point number of 4 or 8 bytes.
    Float(u32),
    /// It has members.
    Structure,
    /// Letters, one behind the other, and how many there is room for.
    Letters(u64),
    /// What cannot be shown: other arrays, complex numbers, functions.
    Other,
}

/// Why there is no member of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoMember {
    /// The structure has none.
    NoSuchName,
    /// It is in a virtual base class, whose place only the object itself knows.
    InVirtualBase,
    /// Of the structure only the name is known.
    Undefined,
}

/// A member of a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Bytes from the beginning of the structure.
    pub offset: u64,
    /// What it is.
    pub kind: TypeId,
    /// Which bits it is, if it is not all of its bytes.
    pub bits: Option<Bits>,
}

/// A member of a structure that is some bits of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bits {
    /// How many bits of its first byte are in front of it, 0 to 7: those that count least.
    pub skip: u32,
    /// How many it has. 0 if that is not told.
    pub count: u32,
}

impl Bits {
    /// Bytes that have some of its bits.
    pub fn bytes(self) -> u32 {
        (self.skip + self.count).div_ceil(8)
    }
}

/// What tells which of its variants a value is: an enumeration of Rust whose variants have
/// members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variants {
    /// Bytes from the beginning of the value to the number that tells.
    pub offset: u64,
    /// How many bytes that number has: 1, 2, 4 or 8.
    pub bytes: u32,
    /// Variants by that number, read with a sign.
    pub names: Vec<(i64, String)>,
    /// The variant that all other numbers tell: there it is a part of the variant's members.
    pub other: Option<String>,
}

/// A source of types.
pub trait Types {
    /// What a type is. `None` if there is no such type.
    fn shape(&self, of: TypeId) -> Option<Shape>;
    /// A member of a structure, also one of a structure without a name that lies in it.
    fn member(&self, of: TypeId, name: &str) -> Result<Member, NoMember>;
    /// What tells the variants of a structure apart. `None` if it has none.
    fn variants(&self, _of: TypeId) -> Option<Variants> {
        None
    }
    /// The structure, or other type, of a name.
    fn named(&self, name: &str) -> Option<TypeId>;
}
