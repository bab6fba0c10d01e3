//! Tracepoints of the kernel, and the types of their arguments, from its BTF.
//!
//! Each tracepoint `foo` has, by `include/linux/tracepoint.h`,
//!
//! - a typedef `btf_trace_foo` for the type of its programs: it gives the types of the arguments;
//! - a function `__traceiter_foo` that runs them: it gives the names of the arguments.
//!
//! The first argument of both is an internal pointer of the kernel, and not an argument of the
//! tracepoint.

use super::btf::{Btf, BtfType, kind};
use crate::bytes::u32_in;
use crate::types::{Bits, Member, NoMember, Shape, TypeId, Types};

/// Prefix of the names of program types.
const TYPE: &[u8] = b"btf_trace_";

/// Prefix of the functions that run the programs. Kernels before 5.10 have none.
const RUNNER: &[u8] = b"__traceiter_";

/// Maximum length of a chain of typedefs before it is considered circular.
const NAMES_MAX: usize = 32;

/// Maximum nesting of unnamed structures that are searched.
const NESTED_MAX: u32 = 8;

/// The kernel's BTF with an index of its types.
#[derive(Debug)]
pub struct Tracepoints<'b> {
    btf: Btf<'b>,
    /// Types by number minus one.
    types: Vec<BtfType<'b>>,
}

/// A tracepoint of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracepoint {
    /// Its name, without that of the subsystem.
    pub name: String,
    /// The arguments that its programs receive.
    pub parameters: Vec<Parameter>,
}

/// An argument of a tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Name in the kernel's source; empty if unknown.
    pub name: String,
    /// Its type.
    pub kind: TypeId,
}

impl<'b> Tracepoints<'b> {
    /// Parses BTF; `None` if it does not have this machine's byte order.
    pub fn parse(bytes: &'b [u8]) -> Option<Tracepoints<'b>> {
        let btf = Btf::parse(bytes)?;
        let types = btf.types().collect();
        Some(Tracepoints { btf, types })
    }

    /// The names of all tracepoints, unsorted.
    pub fn names(&self) -> impl Iterator<Item = &'b str> + '_ {
        let named = self.types.iter().filter(|it| it.kind == kind::TYPEDEF);
        let names = named.filter_map(|it| self.name(it)?.strip_prefix(TYPE));
        names.filter_map(|name| std::str::from_utf8(name).ok())
    }

    /// Returns the tracepoint of this name.
    pub fn find(&self, name: &str) -> Option<Tracepoint> {
        let is_called = |it: &&BtfType<'b>, before: &[u8]| {
            let rest = self.name(it).and_then(|it| it.strip_prefix(before));
            rest == Some(name.as_bytes())
        };
        let kind_of = |wanted: u32| self.types.iter().filter(move |it| it.kind == wanted);
        let program = kind_of(kind::TYPEDEF).find(|it| is_called(it, TYPE))?;
        let pointer = self.bare(program.size_or_type)?;
        let program = self.get(pointer.size_or_type)?;
        let runner = kind_of(kind::FUNC).find(|it| is_called(it, RUNNER));
        let runner = runner.and_then(|runner| self.get(runner.size_or_type));
        let mut parameters = parameters(*program);
        if let Some(named) = runner.map(|runner| self::parameters(*runner))
            && named.len() == parameters.len()
        {
            parameters = named;
        }
        Some(Tracepoint {
            name: name.to_string(),
            parameters: parameters
                .iter()
                .skip(1)
                .map(|(name, kind)| Parameter {
                    name: self.text(*name),
                    kind: (*kind).into(),
                })
                .collect(),
        })
    }

    fn get(&self, number: u32) -> Option<&BtfType<'b>> {
        self.types.get((number as usize).checked_sub(1)?)
    }

    fn name(&self, of: &BtfType<'b>) -> Option<&'b [u8]> {
        self.btf.string(of.name)
    }

    fn text(&self, at: u32) -> String {
        let bytes = self.btf.string(at).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Resolves typedefs and qualifiers such as `const`.
    fn bare(&self, mut number: u32) -> Option<&BtfType<'b>> {
        const NAMES: [u32; 5] = [
            kind::TYPEDEF,
            kind::VOLATILE,
            kind::CONST,
            kind::RESTRICT,
            kind::TYPE_TAG,
        ];
        for _ in 0..NAMES_MAX {
            let found = self.get(number)?;
            if !NAMES.contains(&found.kind) {
                return Some(found);
            }
            number = found.size_or_type;
        }
        None
    }

    fn of_id(&self, id: TypeId) -> Option<&BtfType<'b>> {
        self.bare(u32::try_from(id).ok()?)
    }

    /// Whether a type is a character: an integer of one byte named so.
    fn is_letter(&self, number: u32) -> bool {
        self.bare(number).is_some_and(|found| {
            let is_byte = found.kind == kind::INT && found.size_or_type == 1;
            is_byte && self.name(found).is_some_and(|name| name.ends_with(b"char"))
        })
    }

    /// Returns the values of an enumeration with their names.
    fn values(&self, of: &BtfType<'b>) -> Vec<(i64, String)> {
        let is_wide = of.kind == kind::ENUM64;
        let bytes = if is_wide { 12 } else { 8 };
        let values = of.rest.chunks_exact(bytes).filter_map(|value| {
            let low = u32_in(value, 4)?;
            let number = if is_wide {
                (u64::from(u32_in(value, 8)?) << 32 | u64::from(low)) as i64
            } else if of.flag {
                i64::from(low as i32)
            } else {
                i64::from(low)
            };
            Some((number, self.text(u32_in(value, 0)?)))
        });
        values.collect()
    }

    fn member_within(&self, of: &BtfType<'b>, name: &str, depth: u32) -> Option<Member> {
        let members = || of.rest.chunks_exact(12);
        let place = |member: &[u8]| {
            let word = u32_in(member, 8)?;
            // If the structure has bit fields, the size in bits is in the upper byte.
            let (bits, size) = if of.flag {
                (word & 0xff_ffff, word >> 24)
            } else {
                (word, 0)
            };
            Some(Member {
                offset: u64::from(bits / 8),
                kind: u32_in(member, 4)?.into(),
                bits: (bits % 8 != 0 || size != 0).then_some(Bits {
                    skip: bits % 8,
                    count: size,
                }),
            })
        };
        let is_called = |member: &&[u8]| {
            u32_in(member, 0).and_then(|at| self.btf.string(at)) == Some(name.as_bytes())
        };
        if let Some(member) = members().find(is_called) {
            return place(member);
        }
        let mut unnamed = members().filter(|member| u32_in(member, 0) == Some(0) && depth > 0);
        unnamed.find_map(|member| {
            let place = place(member)?;
            let nested = self.of_id(place.kind)?;
            let is_nested = [kind::STRUCT, kind::UNION].contains(&nested.kind);
            let inner = is_nested.then(|| self.member_within(nested, name, depth - 1))??;
            Some(Member {
                offset: place.offset.checked_add(inner.offset)?,
                ..inner
            })
        })
    }
}

impl Types for Tracepoints<'_> {
    fn shape(&self, of: TypeId) -> Option<Shape> {
        let found = self.of_id(of)?;
        Some(match found.kind {
            kind::INT => {
                let encoding = u32_in(found.rest, 0)?;
                let (offset, bits) = (encoding >> 16 & 0xff, encoding & 0xff);
                match bits {
                    8 | 16 | 32 | 64 if offset == 0 => Shape::Number {
                        bytes: bits / 8,
                        // `BTF_INT_SIGNED`
                        is_signed: encoding >> 24 & 1 != 0,
                        names: Vec::new(),
                    },
                    _ => Shape::Other,
                }
            }
            kind::ENUM | kind::ENUM64 => match found.size_or_type {
                bytes @ (1 | 2 | 4 | 8) => Shape::Number {
                    bytes,
                    is_signed: found.flag,
                    names: self.values(found),
                },
                _ => Shape::Other,
            },
            // 0 is `void`.
            kind::PTR => Shape::Pointer(match found.size_or_type {
                0 => None,
                to => Some(to.into()),
            }),
            kind::STRUCT | kind::UNION => Shape::Structure,
            kind::ARRAY if self.is_letter(u32_in(found.rest, 0)?) => {
                Shape::Letters(u32_in(found.rest, 8)?.into())
            }
            _ => Shape::Other,
        })
    }

    fn member(&self, of: TypeId, name: &str) -> Result<Member, NoMember> {
        let structure = self.of_id(of).ok_or(NoMember::NoSuchName)?;
        if structure.kind == kind::FWD {
            return Err(NoMember::Undefined);
        }
        self.member_within(structure, name, NESTED_MAX)
            .ok_or(NoMember::NoSuchName)
    }

    fn named(&self, name: &str) -> Option<TypeId> {
        let is_it = |found: &BtfType<'_>| {
            let can_be = [kind::STRUCT, kind::UNION, kind::TYPEDEF].contains(&found.kind);
            can_be && self.name(found) == Some(name.as_bytes())
        };
        let at = self.types.iter().position(is_it)?;
        Some(at as TypeId + 1)
    }
}

/// Returns offset of the name and number of the type for each parameter of a function type.
fn parameters(of: BtfType<'_>) -> Vec<(u32, u32)> {
    if of.kind != kind::FUNC_PROTO {
        return Vec::new();
    }
    let all = of.rest.chunks_exact(8);
    all.filter_map(|it| Some((u32_in(it, 0)?, u32_in(it, 4)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::btf::tests::btf;
    use proptest::prelude::*;

    const STRINGS: &[u8] = b"\0int\0char\0task\0pid\0comm\0btf_trace_go\0__traceiter_go\0\
        __data\0who\0how\0STOP\0state\0";

    fn at(name: &str) -> u32 {
        let with_end = [name.as_bytes(), b"\0"].concat();
        let found = STRINGS
            .windows(with_end.len())
            .position(|it| it == with_end);
        found.unwrap() as u32
    }

    /// `trace_go(task *who, enum state how)`
    fn go() -> Vec<u8> {
        let types = [
            at("int"),
            kind::INT << 24,
            4,
            1 << 24 | 32, // 1: int
            at("char"),
            kind::INT << 24,
            1,
            1 << 24 | 8, // 2: char
            0,
            kind::ARRAY << 24,
            0,
            2,
            1,
            16, // 3: char[16]
            at("task"),
            kind::STRUCT << 24 | 2,
            24,
            at("pid"),
            1,
            64,
            at("comm"),
            3,
            96, // 4
            0,
            kind::PTR << 24,
            4, // 5: struct task *
            at("state"),
            kind::ENUM << 24 | 1,
            4,
            at("STOP"),
            7, // 6: enum state
            0,
            kind::PTR << 24,
            0, // 7: void *
            0,
            kind::FUNC_PROTO << 24 | 3,
            0,
            0,
            7,
            0,
            5,
            0,
            6, // 8
            0,
            kind::PTR << 24,
            8, // 9
            at("btf_trace_go"),
            kind::TYPEDEF << 24,
            9, // 10
            0,
            kind::FUNC_PROTO << 24 | 3,
            1,
            at("__data"),
            7,
            at("who"),
            5,
            at("how"),
            6, // 11
            at("__traceiter_go"),
            kind::FUNC << 24,
            11, // 12
        ];
        btf(&types, STRINGS)
    }

    #[test]
    fn a_tracepoint_has_named_arguments_with_members() {
        let bytes = go();
        let all = Tracepoints::parse(&bytes).unwrap();
        assert_eq!(all.names().collect::<Vec<_>>(), ["go"]);
        assert_eq!(all.find("g"), None);
        let go = all.find("go").unwrap();
        let names: Vec<&str> = go.parameters.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["who", "how"]);
        let Some(Shape::Pointer(Some(task))) = all.shape(go.parameters[0].kind) else {
            panic!("not a pointer: {:?}", all.shape(go.parameters[0].kind));
        };
        assert_eq!(all.named("task"), Some(task));
        let pid = all.member(task, "pid").unwrap();
        assert_eq!((pid.offset, pid.bits), (8, None));
        let comm = all.member(task, "comm").unwrap();
        assert_eq!(
            (comm.offset, all.shape(comm.kind)),
            (12, Some(Shape::Letters(16)))
        );
        assert_eq!(all.member(task, "name"), Err(NoMember::NoSuchName));
        let Some(Shape::Number { bytes, names, .. }) = all.shape(go.parameters[1].kind) else {
            panic!("not a number");
        };
        assert_eq!((bytes, names), (4, vec![(7, "STOP".to_string())]));
    }

    proptest! {
        #[test]
        fn a_damaged_one_is_harmless(
            damage in proptest::collection::vec((0usize..400, any::<u8>()), 1..8),
            number in any::<u64>(),
        ) {
            let mut bytes = go();
            for (at, value) in damage {
                let at = at % bytes.len();
                bytes[at] = value;
            }
            if let Some(all) = Tracepoints::parse(&bytes) {
                let _ = all.names().count();
                let kinds = all.find("go").map(|go| go.parameters).unwrap_or_default();
                for id in kinds.iter().map(|it| it.kind).chain([number % 14]) {
                    let _ = (all.shape(id), all.member(id, "pid"), all.named("task"));
                }
            }
        }
    }
}
