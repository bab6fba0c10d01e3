//! Types of values: the meaning of a number, and the offsets of structure members.
//!
//! There are two sources, the kernel's BTF and debug information of programs, and both implement
//! the same few queries. Their contents are not trusted: nothing is used as an index without a
//! check, and chains of typedefs have a limit.

/// The number of a type in its source.
pub type TypeId = u64;

/// The kind of a type, after typedefs were resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// An integer; booleans are integers, too.
    Number {
        /// Size in bytes: 1, 2, 4 or 8.
        bytes: u32,
        /// Whether its highest bit is the sign.
        is_signed: bool,
        /// The names of its values, if it is an enumeration.
        names: Vec<(i64, String)>,
    },
    /// A pointer to that type; `None` if the target type is unknown.
    Pointer(Option<TypeId>),
    /// A floating-point number of 4 or 8 bytes.
    Float(u32),
    /// It has members.
    Structure,
    /// An array of characters with this capacity.
    Letters(u64),
    /// Values that cannot be shown: other arrays, complex numbers, functions.
    Other,
}

/// Why a member cannot be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoMember {
    /// The structure has no member with this name.
    NoSuchName,
    /// The member is in a virtual base class, whose offset only the object itself has.
    InVirtualBase,
    /// The structure is declared but not defined.
    Undefined,
}

/// A member of a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Offset in bytes from the start of the structure.
    pub offset: u64,
    /// Its type.
    pub kind: TypeId,
    /// Its bits, if it is a bit field.
    pub bits: Option<Bits>,
}

/// The position of a bit field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bits {
    /// Number of bits before it in its first byte, 0 to 7, counted from the lowest.
    pub skip: u32,
    /// Number of bits; 0 if unknown.
    pub count: u32,
}

impl Bits {
    /// Number of bytes that contain its bits.
    pub fn bytes(self) -> u32 {
        (self.skip + self.count).div_ceil(8)
    }
}

/// How the variants of a value are distinguished, for a Rust enumeration whose variants have
/// members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variants {
    /// Offset of the discriminant in bytes from the start of the value.
    pub offset: u64,
    /// Size of the discriminant: 1, 2, 4 or 8 bytes.
    pub bytes: u32,
    /// The variants by discriminant, which is read as a signed number.
    pub names: Vec<(i64, String)>,
    /// The variant for all other discriminants, in which it is a part of the variant's members.
    pub other: Option<String>,
}

/// A source of types.
pub trait Types {
    /// Returns the kind of a type; `None` if there is no such type.
    fn shape(&self, of: TypeId) -> Option<Shape>;
    /// Returns a member of a structure, including members of unnamed structures in it.
    fn member(&self, of: TypeId, name: &str) -> Result<Member, NoMember>;
    /// Returns how the variants of a structure are distinguished; `None` if it has none.
    fn variants(&self, _of: TypeId) -> Option<Variants> {
        None
    }
    /// Returns the structure or other type with a name.
    fn named(&self, name: &str) -> Option<TypeId>;
}
