//! Encodes questions about the types of a file, and the answers.
//!
//! ```text
//! question: its kind; an address or a number of a type; texts
//! answer:   whether there is one; what was asked for
//! ```
//!
//! The reading side does not trust the writing side: numbers of bytes and bits that a value cannot
//! have make an answer malformed.

use super::chain::{read_text, write_text};
use crate::LinkAddr;
use crate::dwarf::{Convention, DebugTypes, LeftOut, NoSignature, Parameter, Passed, Signature};
use crate::types::{Bits, Member, NoMember, Shape, TypeId, Types, Variants};
use crate::wire::{Taken, put_bytes, put_some_u64, put_u32, put_u64};

/// Maximum size of a name in an answer; longer ones are cut.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// Maximum number of names of an enumeration, or of parameters, in an answer.
const NAMES_MAX: usize = 1024;

const IS_THERE: u8 = 0;
const SIGNATURE_AT: u8 = 1;
const SIGNATURE_OF: u8 = 2;
const LEFT_OUT: u8 = 3;
const SHAPE: u8 = 4;
const MEMBER: u8 = 5;
const VARIANTS: u8 = 6;
const NAMED: u8 = 7;

const CONVENTIONS: [Convention; 3] = [Convention::C, Convention::Rust, Convention::Go];
const NO_SIGNATURES: [NoSignature; 3] = [
    NoSignature::NoSuchFunction,
    NoSignature::Several,
    NoSignature::IsChanged,
];
const NO_MEMBERS: [NoMember; 3] = [
    NoMember::NoSuchName,
    NoMember::InVirtualBase,
    NoMember::Undefined,
];
const LEFT_OUTS: [LeftOut; 2] = [LeftOut::InSplitFiles, LeftOut::InTypeUnits];

/// A question about the types of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypesQuestion {
    /// Are there any?
    IsThere,
    /// What are the parameters of the function of this file that starts there?
    SignatureAt(LinkAddr, Vec<u8>, Convention),
    /// What are the parameters of the function with this name?
    SignatureOf(Vec<u8>, Convention),
    /// Are there types that are not read?
    LeftOut,
    /// What kind of type is it?
    Shape(TypeId),
    /// Where is the member with this name?
    Member(TypeId, String),
    /// How are its variants distinguished?
    Variants(TypeId),
    /// Which type has this name?
    Named(String),
}

impl TypesQuestion {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            TypesQuestion::IsThere => out.push(IS_THERE),
            TypesQuestion::LeftOut => out.push(LEFT_OUT),
            TypesQuestion::SignatureAt(start, raw, convention) => {
                out.push(SIGNATURE_AT);
                put_u64(out, start.0);
                put_bytes(out, raw);
                out.push(*convention as u8);
            }
            TypesQuestion::SignatureOf(raw, convention) => {
                out.push(SIGNATURE_OF);
                put_bytes(out, raw);
                out.push(*convention as u8);
            }
            TypesQuestion::Shape(id) => {
                out.push(SHAPE);
                put_u64(out, *id);
            }
            TypesQuestion::Member(id, name) => {
                out.push(MEMBER);
                put_u64(out, *id);
                put_bytes(out, name.as_bytes());
            }
            TypesQuestion::Variants(id) => {
                out.push(VARIANTS);
                put_u64(out, *id);
            }
            TypesQuestion::Named(name) => {
                out.push(NAMED);
                put_bytes(out, name.as_bytes());
            }
        }
    }

    pub(super) fn read(message: &mut Taken<'_>) -> Option<TypesQuestion> {
        let convention =
            |message: &mut Taken<'_>| CONVENTIONS.get(usize::from(message.u8()?)).copied();
        let text = |message: &mut Taken<'_>| String::from_utf8(message.bytes()?.to_vec()).ok();
        Some(match message.u8()? {
            IS_THERE => TypesQuestion::IsThere,
            LEFT_OUT => TypesQuestion::LeftOut,
            SIGNATURE_AT => {
                let start = LinkAddr(message.u64()?);
                let raw = message.bytes()?.to_vec();
                TypesQuestion::SignatureAt(start, raw, convention(message)?)
            }
            SIGNATURE_OF => {
                let raw = message.bytes()?.to_vec();
                TypesQuestion::SignatureOf(raw, convention(message)?)
            }
            SHAPE => TypesQuestion::Shape(message.u64()?),
            MEMBER => TypesQuestion::Member(message.u64()?, text(message)?),
            VARIANTS => TypesQuestion::Variants(message.u64()?),
            NAMED => TypesQuestion::Named(text(message)?),
            _ => return None,
        })
    }

    /// Answers the question from the types of the file; `types` is `None` if it has none.
    pub(super) fn answer(&self, types: Option<&DebugTypes>) -> Vec<u8> {
        let mut out = Vec::new();
        let Some(types) = types else {
            out.push(0);
            return out;
        };
        out.push(1);
        match self {
            TypesQuestion::IsThere => {}
            TypesQuestion::SignatureAt(start, raw, convention) => {
                let signature = types.signature_at(*start, raw, *convention);
                write_signature(&mut out, &signature);
            }
            TypesQuestion::SignatureOf(raw, convention) => {
                write_signature(&mut out, &types.signature_of(raw, *convention));
            }
            TypesQuestion::LeftOut => out.push(match types.left_out() {
                None => u8::MAX,
                Some(left_out) => left_out as u8,
            }),
            TypesQuestion::Shape(id) => write_shape(&mut out, types.shape(*id)),
            TypesQuestion::Member(id, name) => write_member(&mut out, types.member(*id, name)),
            TypesQuestion::Variants(id) => write_variants(&mut out, types.variants(*id)),
            TypesQuestion::Named(name) => put_some_u64(&mut out, types.named(name)),
        }
        out
    }
}

/// What comes after the first byte of an answer; the first `None` if the bytes are malformed, the
/// second if the file has no types.
#[expect(clippy::option_option, reason = "the outer one is about the bytes")]
pub(super) fn told(bytes: &[u8]) -> Option<Option<Taken<'_>>> {
    let mut bytes = Taken(bytes);
    match bytes.u8()? {
        0 => Some(None),
        1 => Some(Some(bytes)),
        _ => None,
    }
}

/// Reads the number of a type, if there is one.
#[expect(clippy::option_option, reason = "the outer one is about the bytes")]
pub(super) fn read_id(bytes: &mut Taken<'_>) -> Option<Option<TypeId>> {
    bytes.some_u64()
}

/// Reads which types are left out, if any.
#[expect(clippy::option_option, reason = "the outer one is about the bytes")]
pub(super) fn read_left_out(bytes: &mut Taken<'_>) -> Option<Option<LeftOut>> {
    match bytes.u8()? {
        u8::MAX => Some(None),
        left_out => LEFT_OUTS.get(usize::from(left_out)).copied().map(Some),
    }
}

fn write_signature(out: &mut Vec<u8>, signature: &Result<Signature, NoSignature>) {
    match signature {
        Err(why) => out.extend([0, *why as u8]),
        Ok(signature) => {
            out.push(1);
            let parameters = &signature.parameters;
            let parameters = &parameters[..parameters.len().min(NAMES_MAX)];
            put_u32(out, parameters.len() as u32);
            for parameter in parameters {
                write_text(out, &parameter.name, TEXT_BYTES_MAX);
                put_some_u64(out, parameter.kind);
                write_passed(out, parameter.place);
            }
            put_some_u64(out, signature.returns);
        }
    }
}

pub(super) fn read_signature(bytes: &mut Taken<'_>) -> Option<Result<Signature, NoSignature>> {
    match bytes.u8()? {
        0 => {
            let why = NO_SIGNATURES.get(usize::from(bytes.u8()?))?;
            Some(Err(*why))
        }
        1 => {
            let count = bytes.u32()? as usize;
            if count > NAMES_MAX {
                return None;
            }
            let parameter = |_| {
                Some(Parameter {
                    name: read_text(bytes)?,
                    kind: read_id(bytes)?,
                    place: read_passed(bytes)?,
                })
            };
            let parameters = (0..count).map(parameter).collect::<Option<_>>()?;
            Some(Ok(Signature {
                parameters,
                returns: read_id(bytes)?,
            }))
        }
        _ => None,
    }
}

fn write_passed(out: &mut Vec<u8>, passed: Passed) {
    let (kind, first, count) = match passed {
        Passed::Argument(number) => (0, number.into(), 0),
        Passed::Address(number) => (1, number.into(), 0),
        Passed::Several(first, count, false) => (2, first.into(), count),
        Passed::Several(first, count, true) => (3, first.into(), count),
        Passed::Stack(bytes) => (4, bytes, 0),
        Passed::Float => (5, 0, 0),
        Passed::Register(number) => (6, number.into(), 0),
        Passed::Nowhere => (7, 0, 0),
        Passed::Unknown => (8, 0, 0),
    };
    out.push(kind);
    put_u64(out, first);
    put_u32(out, count);
}

/// Maximum number of an argument; of more, none is read.
const ARGUMENT_MAX: u64 = 1 << 16;

/// Number of registers for integers.
const REGISTERS: u64 = 16;

fn read_passed(bytes: &mut Taken<'_>) -> Option<Passed> {
    let (kind, first, count) = (bytes.u8()?, bytes.u64()?, bytes.u32()?);
    let number = |max: u64| u32::try_from(first).ok().filter(|_| first <= max);
    Some(match kind {
        0 => Passed::Argument(number(ARGUMENT_MAX)?),
        1 => Passed::Address(number(ARGUMENT_MAX)?),
        2 | 3 if u64::from(count) <= ARGUMENT_MAX => {
            Passed::Several(number(ARGUMENT_MAX)?, count, kind == 3)
        }
        4 => Passed::Stack(first),
        5 => Passed::Float,
        6 => Passed::Register(number(REGISTERS - 1)?),
        7 => Passed::Nowhere,
        8 => Passed::Unknown,
        _ => return None,
    })
}

fn write_shape(out: &mut Vec<u8>, shape: Option<Shape>) {
    match shape {
        None => out.push(0),
        Some(Shape::Number {
            bytes,
            is_signed,
            names,
        }) => {
            out.push(1);
            put_u32(out, bytes);
            out.push(is_signed.into());
            write_names(out, &names);
        }
        Some(Shape::Pointer(target)) => {
            out.push(2);
            put_some_u64(out, target);
        }
        Some(Shape::Float(bytes)) => {
            out.push(3);
            put_u32(out, bytes);
        }
        Some(Shape::Structure) => out.push(4),
        Some(Shape::Letters(count)) => {
            out.push(5);
            put_u64(out, count);
        }
        Some(Shape::Other) => out.push(6),
    }
}

#[expect(clippy::option_option, reason = "the outer one is about the bytes")]
pub(super) fn read_shape(bytes: &mut Taken<'_>) -> Option<Option<Shape>> {
    Some(Some(match bytes.u8()? {
        0 => return Some(None),
        1 => Shape::Number {
            bytes: read_size(bytes, &[1, 2, 4, 8])?,
            is_signed: bytes.u8()? != 0,
            names: read_names(bytes)?,
        },
        2 => Shape::Pointer(read_id(bytes)?),
        3 => Shape::Float(read_size(bytes, &[4, 8])?),
        4 => Shape::Structure,
        5 => Shape::Letters(bytes.u64()?),
        6 => Shape::Other,
        _ => return None,
    }))
}

fn read_size(bytes: &mut Taken<'_>, allowed: &[u32]) -> Option<u32> {
    bytes.u32().filter(|size| allowed.contains(size))
}

fn write_names(out: &mut Vec<u8>, names: &[(i64, String)]) {
    let names = &names[..names.len().min(NAMES_MAX)];
    put_u32(out, names.len() as u32);
    for (value, name) in names {
        put_u64(out, value.cast_unsigned());
        write_text(out, name, TEXT_BYTES_MAX);
    }
}

fn read_names(bytes: &mut Taken<'_>) -> Option<Vec<(i64, String)>> {
    let count = bytes.u32()? as usize;
    if count > NAMES_MAX {
        return None;
    }
    let name = |_| Some((bytes.u64()?.cast_signed(), read_text(bytes)?));
    (0..count).map(name).collect()
}

fn write_member(out: &mut Vec<u8>, member: Result<Member, NoMember>) {
    match member {
        Err(why) => out.extend([0, why as u8]),
        Ok(member) => {
            out.push(1);
            put_u64(out, member.offset);
            put_u64(out, member.kind);
            out.push(member.bits.is_some().into());
            let bits = member.bits.unwrap_or(Bits { skip: 0, count: 0 });
            put_u32(out, bits.skip);
            put_u32(out, bits.count);
        }
    }
}

pub(super) fn read_member(bytes: &mut Taken<'_>) -> Option<Result<Member, NoMember>> {
    match bytes.u8()? {
        0 => {
            let why = NO_MEMBERS.get(usize::from(bytes.u8()?))?;
            Some(Err(*why))
        }
        1 => {
            let (offset, kind) = (bytes.u64()?, bytes.u64()?);
            let has_bits = bytes.u8()? != 0;
            let bits = Bits {
                skip: bytes.u32()?,
                count: bytes.u32()?,
            };
            if bits.skip > 7 || bits.count > u64::BITS {
                return None;
            }
            Some(Ok(Member {
                offset,
                kind,
                bits: has_bits.then_some(bits),
            }))
        }
        _ => None,
    }
}

fn write_variants(out: &mut Vec<u8>, variants: Option<Variants>) {
    let Some(variants) = variants else {
        out.push(0);
        return;
    };
    out.push(1);
    put_u64(out, variants.offset);
    put_u32(out, variants.bytes);
    write_names(out, &variants.names);
    out.push(variants.other.is_some().into());
    write_text(
        out,
        variants.other.as_deref().unwrap_or_default(),
        TEXT_BYTES_MAX,
    );
}

#[expect(clippy::option_option, reason = "the outer one is about the bytes")]
pub(super) fn read_variants(bytes: &mut Taken<'_>) -> Option<Option<Variants>> {
    match bytes.u8()? {
        0 => return Some(None),
        1 => {}
        _ => return None,
    }
    let (offset, size) = (bytes.u64()?, read_size(bytes, &[1, 2, 4, 8])?);
    let names = read_names(bytes)?;
    let has_other = bytes.u8()? != 0;
    let other = read_text(bytes)?;
    Some(Some(Variants {
        offset,
        bytes: size,
        names,
        other: has_other.then_some(other),
    }))
}

/// Decodes bytes as each kind of answer.
///
/// # Panics
///
/// If there is more in an answer than in the bytes.
pub(super) fn check_any_answer(bytes: &[u8]) {
    let Some(Some(answer)) = told(bytes) else {
        return;
    };
    if let Some(Ok(signature)) = read_signature(&mut answer.clone()) {
        assert!(signature.parameters.len() <= bytes.len());
    }
    if let Some(Some(Shape::Number { names, .. })) = read_shape(&mut answer.clone()) {
        assert!(names.len() <= bytes.len());
    }
    _ = (
        read_member(&mut answer.clone()),
        read_variants(&mut answer.clone()),
        read_id(&mut answer.clone()),
        read_left_out(&mut answer.clone()),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T: PartialEq + std::fmt::Debug>(
        value: T,
        write: impl Fn(&mut Vec<u8>, &T),
        read: impl Fn(&mut Taken<'_>) -> Option<T>,
    ) {
        let mut out = Vec::new();
        write(&mut out, &value);
        let mut taken = Taken(&out);
        assert_eq!(read(&mut taken), Some(value));
        assert!(taken.0.is_empty());
        for len in 0..out.len() {
            assert_eq!(read(&mut Taken(&out[..len])), None, "{len}");
        }
    }

    #[test]
    fn answers_arrive_as_they_were_given() {
        let names = || vec![(-1, "NONE".to_string()), (i64::MAX, "ALL".into())];
        let shapes = [
            None,
            Some(Shape::Number {
                bytes: 4,
                is_signed: true,
                names: names(),
            }),
            Some(Shape::Pointer(None)),
            Some(Shape::Pointer(Some(u64::MAX))),
            Some(Shape::Float(8)),
            Some(Shape::Structure),
            Some(Shape::Letters(16)),
            Some(Shape::Other),
        ];
        for shape in shapes {
            check(shape, |out, it| write_shape(out, it.clone()), read_shape);
        }
        let places = [
            Passed::Argument(1),
            Passed::Address(2),
            Passed::Several(1, 2, false),
            Passed::Several(3, 2, true),
            Passed::Stack(u64::MAX),
            Passed::Float,
            Passed::Register(15),
            Passed::Nowhere,
            Passed::Unknown,
        ];
        let parameter = |place| Parameter {
            name: "size".into(),
            kind: Some(9),
            place,
        };
        let signature = Signature {
            parameters: places.map(parameter).to_vec(),
            returns: None,
        };
        for signature in [Ok(signature), Err(NoSignature::IsChanged)] {
            check(signature, write_signature, read_signature);
        }
        let member = |bits| Member {
            offset: 16,
            kind: 7,
            bits,
        };
        let bits = Some(Bits { skip: 3, count: 5 });
        for found in [Ok(member(None)), Ok(member(bits)), Err(NoMember::Undefined)] {
            check(found, |out, it| write_member(out, *it), read_member);
        }
        for other in [None, Some("Some".to_string())] {
            let variants = Variants {
                offset: 8,
                bytes: 1,
                names: names(),
                other,
            };
            check(
                Some(variants),
                |out, it| write_variants(out, it.clone()),
                read_variants,
            );
        }
    }

    #[test]
    fn sizes_that_no_value_has_are_refused() {
        let mut out = Vec::new();
        let number = |bytes| Shape::Number {
            bytes,
            is_signed: false,
            names: Vec::new(),
        };
        write_shape(&mut out, Some(number(3)));
        assert_eq!(read_shape(&mut Taken(&out)), None);
        out.clear();
        let bits = Some(Bits { skip: 8, count: 1 });
        write_member(
            &mut out,
            Ok(Member {
                offset: 0,
                kind: 0,
                bits,
            }),
        );
        assert_eq!(read_member(&mut Taken(&out)), None);
        out.clear();
        write_passed(&mut out, Passed::Register(16));
        assert_eq!(read_passed(&mut Taken(&out)), None);
    }
}
