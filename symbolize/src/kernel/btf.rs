//! BTF, the kernel's compact description of types (Documentation/bpf/btf.rst). Only types with
//! names are used, of the kernel and of programs; programs are not trusted.

use crate::bytes::u32_in;

const MAGIC: &[u8] = &[0x9f, 0xeb];
const HEADER_BYTES: usize = 24;

/// Length of the head of every type: name, kind and count, size or type.
const TYPE_BYTES: usize = 12;

/// Kinds of types, with the kernel's numbers (uapi/linux/btf.h).
pub mod kind {
    /// `BTF_KIND_INT`
    pub const INT: u32 = 1;
    /// `BTF_KIND_PTR`
    pub const PTR: u32 = 2;
    /// `BTF_KIND_ARRAY`
    pub const ARRAY: u32 = 3;
    /// `BTF_KIND_STRUCT`
    pub const STRUCT: u32 = 4;
    /// `BTF_KIND_UNION`
    pub const UNION: u32 = 5;
    /// `BTF_KIND_ENUM`
    pub const ENUM: u32 = 6;
    /// `BTF_KIND_FWD`
    pub const FWD: u32 = 7;
    /// `BTF_KIND_TYPEDEF`
    pub const TYPEDEF: u32 = 8;
    /// `BTF_KIND_VOLATILE`
    pub const VOLATILE: u32 = 9;
    /// `BTF_KIND_CONST`
    pub const CONST: u32 = 10;
    /// `BTF_KIND_RESTRICT`
    pub const RESTRICT: u32 = 11;
    /// `BTF_KIND_FUNC`
    pub const FUNC: u32 = 12;
    /// `BTF_KIND_FUNC_PROTO`
    pub const FUNC_PROTO: u32 = 13;
    /// `BTF_KIND_VAR`
    pub const VAR: u32 = 14;
    /// `BTF_KIND_DATASEC`
    pub const DATASEC: u32 = 15;
    /// `BTF_KIND_DECL_TAG`
    pub const DECL_TAG: u32 = 17;
    /// `BTF_KIND_TYPE_TAG`
    pub const TYPE_TAG: u32 = 18;
    /// `BTF_KIND_ENUM64`
    pub const ENUM64: u32 = 19;
}

/// One BTF object.
#[derive(Debug, Clone, Copy)]
pub struct Btf<'b> {
    types: &'b [u8],
    strings: &'b [u8],
}

/// One type, with the data after its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BtfType<'b> {
    /// Offset of its name among the strings.
    pub name: u32,
    /// One of [`kind`].
    pub kind: u32,
    /// Whether offsets of members contain the sizes of bit fields.
    pub flag: bool,
    /// Its size in bytes or, for some kinds, the number of another type: the target of a pointer,
    /// the type behind a typedef, the result of a function.
    pub size_or_type: u32,
    /// Members, parameters or values, depending on the kind.
    pub rest: &'b [u8],
}

impl<'b> Btf<'b> {
    /// Parses an object; `None` if it does not have this machine's byte order.
    pub fn parse(bytes: &'b [u8]) -> Option<Btf<'b>> {
        let magic = bytes.get(..MAGIC.len())?;
        let field = |at| u32_in(bytes, at).map(|value| value as usize);
        let body = bytes.get(field(4)?.max(HEADER_BYTES)..)?;
        let whole = magic == MAGIC;
        let part = |at: usize, len: usize| body.get(at..at.checked_add(len)?);
        whole.then_some(Btf {
            types: part(field(8)?, field(12)?)?,
            strings: part(field(16)?, field(20)?)?,
        })
    }

    /// Iterates over the types in the order of their numbers, up to the first one that is cut. The
    /// first has number 1, or follows the last one of the base of a split BTF.
    pub fn types(&self) -> impl Iterator<Item = BtfType<'b>> + use<'b> {
        let mut left = self.types;
        std::iter::from_fn(move || {
            let (info, name) = (u32_in(left, 4)?, u32_in(left, 0)?);
            let size_or_type = u32_in(left, 8)?;
            let kind = info >> 24 & 31;
            let end = TYPE_BYTES + bytes_behind(kind, info as usize & 0xffff);
            let rest = left.get(TYPE_BYTES..end)?;
            left = &left[end..];
            Some(BtfType {
                name,
                kind,
                flag: info >> 31 == 1,
                size_or_type,
                rest,
            })
        })
    }

    /// Returns the string at offset `at`.
    pub fn string(&self, at: u32) -> Option<&'b [u8]> {
        let rest = self.strings.get(at as usize..)?;
        memchr::memchr(0, rest).map(|len| &rest[..len])
    }

    /// Returns the name of the type with this number.
    pub fn type_name(&self, number: u32) -> Option<&'b [u8]> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.string(self.types().nth(index)?.name)
    }

    /// Returns the name of a type in BTF whose numbers continue those of `base`, as a kernel
    /// module's do.
    pub fn type_name_above(&self, base: &Btf<'b>, number: u32) -> Option<&'b [u8]> {
        let below = u32::try_from(base.types().count()).ok()?;
        let Some(index) = number.checked_sub(below + 1) else {
            return base.type_name(number);
        };
        let name = self.types().nth(index as usize)?.name;
        let strings = u32::try_from(base.strings.len()).ok()?;
        match name.checked_sub(strings) {
            Some(name) => self.string(name),
            None => base.string(name),
        }
    }
}

fn bytes_behind(of_kind: u32, count: usize) -> usize {
    match of_kind {
        kind::INT | kind::VAR | kind::DECL_TAG => 4,
        kind::ARRAY => 12,
        kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 12 * count,
        kind::ENUM | kind::FUNC_PROTO => 8 * count,
        _ => 0,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Builds BTF from types as words, and strings.
    pub fn btf(types: &[u32], strings: &[u8]) -> Vec<u8> {
        let types: Vec<u8> = types.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        let (types_len, strings_len) = (types.len() as u32, strings.len() as u32);
        for word in [24, 0, types_len, types_len, strings_len] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(types);
        bytes.extend(strings);
        bytes
    }

    /// `int`, `struct task { int a; int tgid; }`, then the function `wake`.
    const TYPES: [u32; 16] = [
        1,
        kind::INT << 24,
        4,
        32,
        5,
        kind::STRUCT << 24 | 2,
        8,
        10,
        1,
        0,
        12,
        1,
        32,
        17,
        kind::FUNC << 24,
        1,
    ];
    const STRINGS: &[u8] = b"\0int\0task\0a\0tgid\0wake\0";

    #[test]
    fn types_have_names_and_numbers() {
        let bytes = btf(&TYPES, STRINGS);
        let btf = Btf::parse(&bytes).unwrap();
        let kinds: Vec<u32> = btf.types().map(|t| t.kind).collect();
        assert_eq!(kinds, [kind::INT, kind::STRUCT, kind::FUNC]);
        assert_eq!(btf.type_name(3), Some(&b"wake"[..]));
        for outside in [0, 4, u32::MAX] {
            assert_eq!(btf.type_name(outside), None);
        }
    }

    #[test]
    fn a_modules_types_follow_the_kernels() {
        let base = btf(&TYPES, STRINGS);
        let base = Btf::parse(&base).unwrap();
        let own = STRINGS.len() as u32;
        let func = kind::FUNC << 24;
        let split = btf(&[own + 1, func, 1, 17, func, 1], b"\0read\0");
        let split = Btf::parse(&split).unwrap();
        let name = |number| split.type_name_above(&base, number);
        assert_eq!(name(4), Some(&b"read"[..]));
        assert_eq!(name(5), Some(&b"wake"[..]), "a name of the kernel's");
        assert_eq!(name(3), Some(&b"wake"[..]), "a type of the kernel's");
        assert_eq!(name(6), None);
    }

    proptest! {
        #[test]
        fn a_damaged_one_is_harmless(
            damage in proptest::collection::vec((0usize..120, any::<u8>()), 1..6),
            number in any::<u32>(),
        ) {
            let mut bytes = btf(&TYPES, STRINGS);
            for (at, value) in damage {
                let at = at % bytes.len();
                bytes[at] = value;
            }
            if let Some(btf) = Btf::parse(&bytes) {
                prop_assert!(btf.types().count() <= bytes.len() / TYPE_BYTES);
                _ = btf.type_name(number % 8);
                _ = btf.type_name_above(&btf, number);
            }
        }
    }
}
