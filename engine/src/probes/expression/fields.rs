//! Resolves structure members by name: `prev.mm.owner` becomes offsets.
//!
//! ```text
//! prev            what a parameter is called
//! prev.mm.owner   a member of the structure there, and one of the structure that it leads to
//! arg1:job.id     the same of a number that is known to be the address of a `job`
//! ```
//!
//! A path with such names is incomplete until it is resolved with types. Each name adds its offset;
//! each pointer on the way is one more read of memory.

use super::{Base, NumberType, Path, WORD};
use probe::call_orders::register;
use symbolize::dwarf::Passed;
use symbolize::types::{Bits, NoMember, Shape, TypeId, Types};

/// The names that lead from a value to a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields {
    /// The value with the members; unused if `parameter` names it.
    pub of: Path,
    /// The name of a parameter, if the path begins with one.
    pub parameter: Option<String>,
    /// The structure that the value points to, if that was typed.
    pub cast: Option<String>,
    /// The member names; each is a member of the structure before it.
    pub members: Vec<String>,
}

/// What is known about the values at a place.
#[derive(Clone, Copy)]
pub struct Known<'k> {
    /// The source of types and members.
    pub types: &'k dyn Types,
    /// The parameters, in the order of the source text.
    pub parameters: &'k [KnownParameter],
    /// The return type of the function, if known.
    pub returns: Option<TypeId>,
}

/// What is known about one parameter.
#[derive(Debug, Clone)]
pub struct KnownParameter {
    /// Name; empty if it has none.
    pub name: String,
    /// Type; `None` if unknown.
    pub kind: Option<TypeId>,
    /// Where it is when the call begins.
    pub place: Passed,
}

impl Known<'_> {
    /// Returns the type of an argument by its number.
    fn of_argument(&self, number: u32) -> Option<TypeId> {
        let is_it = |it: &&KnownParameter| it.place == Passed::Argument(number);
        self.parameters.iter().find(is_it)?.kind
    }
}

/// What a path leads to.
#[derive(Debug, Clone, Copy)]
enum Reached {
    /// A value of that type; `None` if the type is unknown.
    Value(Option<TypeId>),
    /// The address of a value of that type.
    Place(TypeId),
    /// The address of a bit field.
    Bits(TypeId, Bits),
    /// A structure that is passed in several arguments: its type, the number of arguments from the
    /// base on, and whether each of them has eight bytes of it.
    Parts(TypeId, u32, bool),
}

/// Members of a structure that lead to the characters of a text, and to its length.
type TextMembers = (&'static [&'static str], &'static [&'static str]);

/// Structures that are texts: strings of Go, of Rust, and of C++ in GCC's library.
const TEXTS: [TextMembers; 5] = [
    (&["str"], &["len"]),
    (&["data_ptr"], &["length"]),
    (
        &["vec", "buf", "inner", "ptr", "pointer", "pointer"],
        &["vec", "len"],
    ),
    (
        &["vec", "buf", "ptr", "pointer", "pointer"],
        &["vec", "len"],
    ),
    (&["_M_dataplus", "_M_p"], &["_M_string_length"]),
];

/// A path without names, and what it leads to.
pub struct Resolved {
    /// The path with offsets in place of names.
    pub path: Path,
    /// What the path leads to.
    pub what: What,
}

/// What a path leads to, as far as types are known.
pub enum What {
    /// Nothing is known.
    Unknown,
    /// A number, with the names of its values if it is an enumeration.
    Number(NumberType, Vec<(i64, String)>),
    /// The discriminant of an enumeration, with the names of its variants, and the name of the
    /// variant for all other values.
    Variant(NumberType, Vec<(i64, String)>, Option<String>),
    /// Characters; the path ends at the first one.
    Letters,
    /// A text; the path ends at its first character, and the path in here at its length.
    Text(Path),
    /// A structure; the path ends at its start.
    Structure,
}

impl Path {
    /// Whether names are in it.
    pub fn has_names(&self) -> bool {
        self.fields.is_some()
    }

    /// Resolves the names. The error is a clause.
    pub fn resolve(&self, known: Known<'_>) -> Result<Resolved, String> {
        let (mut path, reached) = self.follow(known)?;
        let what = match reached {
            Reached::Value(None) => What::Unknown,
            Reached::Value(Some(kind)) => shown(&shape(known, kind)?)?,
            Reached::Parts(_, words, _) => match texts(known, &path, reached) {
                Some((letters, length)) => {
                    path = letters;
                    What::Text(length)
                }
                None => return Err(parts_of(&path, words)),
            },
            Reached::Bits(kind, bits) => {
                path.read_bits(bits)?;
                match shown(&shape(known, kind)?)? {
                    What::Number(number, names) => {
                        let bits = bits.count;
                        What::Number(NumberType { bits, ..number }, names)
                    }
                    what => what,
                }
            }
            Reached::Place(kind) => match shape(known, kind)? {
                Shape::Structure => match texts(known, &path, reached) {
                    Some((letters, length)) => {
                        path = letters;
                        What::Text(length)
                    }
                    None => match known.types.variants(kind) {
                        Some(variants) => {
                            path.then = path.then.wrapping_add(variants.offset as i64);
                            path.read(u64::from(variants.bytes));
                            let number = NumberType {
                                bytes: variants.bytes,
                                is_signed: true,
                                ..WORD
                            };
                            What::Variant(number, variants.names, variants.other)
                        }
                        None => What::Structure,
                    },
                },
                Shape::Letters(_) => What::Letters,
                shape => {
                    let what = shown(&shape)?;
                    if let What::Number(number, _) = &what {
                        path.read(u64::from(number.bytes));
                    }
                    what
                }
            },
        };
        Ok(Resolved { path, what })
    }

    /// Follows the path up to its last name; returns what is there.
    fn follow(&self, known: Known<'_>) -> Result<(Path, Reached), String> {
        let Some(fields) = &self.fields else {
            let is_bare = self.steps.is_empty() && self.then == 0;
            let kind = match self.base {
                Base::Argument(number) if is_bare => known.of_argument(number),
                Base::Return if is_bare => known.returns,
                _ => None,
            };
            return Ok((self.clone(), Reached::Value(kind)));
        };
        let (mut path, mut reached) = match &fields.parameter {
            Some(name) => parameter(known, name)?,
            None => fields.of.follow(known)?,
        };
        if let Some(cast) = &fields.cast {
            let kind = known
                .types
                .named(cast)
                .ok_or_else(|| format!("no type is called `{cast}`"))?;
            if let Reached::Place(_) = reached {
                path.read(8);
            }
            reached = Reached::Place(kind);
        }
        for name in &fields.members {
            if let Reached::Parts(kind, words, is_even) = reached {
                (path, reached) = part(known, &path, (kind, words, is_even), name)?;
                continue;
            }
            let structure = into_structure(known, &mut path, reached)
                .ok_or_else(|| format!("what `{name}` is a member of is not known"))?;
            let member = known
                .types
                .member(structure, name)
                .map_err(|why| no_member(why, name))?;
            path.then = path.then.wrapping_add(member.offset as i64);
            reached = match member.bits {
                Some(bits) => Reached::Bits(member.kind, bits),
                None => Reached::Place(member.kind),
            };
        }
        if !self.steps.is_empty() || self.then != 0 {
            match reached {
                Reached::Bits(..) => {
                    return Err("nothing can be added to a member of some bits".into());
                }
                Reached::Parts(_, words, _) => return Err(parts_of(&path, words)),
                Reached::Value(_) | Reached::Place(_) => {}
            }
            // Numbers that were typed after the names apply to the value.
            if let Reached::Place(kind) = reached
                && let Some(bytes) = bytes_of(&shape(known, kind)?)
            {
                path.read(bytes);
            }
            path.go_on(self);
            reached = Reached::Value(None);
        }
        Ok((path, reached))
    }

    /// Appends a read of memory to the path.
    fn read(&mut self, bytes: u64) {
        self.steps.push((self.then, bytes));
        self.then = 0;
    }

    /// Appends a read of a bit field to the path.
    fn read_bits(&mut self, bits: Bits) -> Result<(), String> {
        match (bits.count, bits.bytes()) {
            (0, _) => Err("how many bits it has is not told".into()),
            (_, bytes @ 1..=8) => {
                self.read(u64::from(bytes));
                self.bits = Some(bits);
                Ok(())
            }
            (_, bytes) => Err(format!("its bits lie in {bytes} bytes, and 8 can be read")),
        }
    }

    /// Returns the path of an address or a length, which cannot be a bit field.
    pub fn without_bits(self) -> Result<Path, String> {
        match self.bits {
            None => Ok(self),
            Some(_) => Err("a member of some bits is no address and no length".into()),
        }
    }

    /// Appends the steps of another path.
    fn go_on(&mut self, with: &Path) {
        let mut steps = with.steps.iter().copied();
        if let Some((add, bytes)) = steps.next() {
            self.steps.push((self.then.wrapping_add(add), bytes));
            self.steps.extend(steps);
            self.then = with.then;
        } else {
            self.then = self.then.wrapping_add(with.then);
        }
    }
}

/// Returns the place of the parameter with this name.
fn parameter(known: Known<'_>, name: &str) -> Result<(Path, Reached), String> {
    let found = known
        .parameters
        .iter()
        .find(|it| it.name == name)
        .ok_or_else(|| {
            let names = known.parameters.iter().map(|it| it.name.as_str());
            let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
            if names.is_empty() {
                format!("no parameter is called `{name}`")
            } else {
                format!("no parameter is called `{name}`: {}", names.join(", "))
            }
        })?;
    match found.place {
        Passed::Argument(number) => {
            let path = Path::of(Base::Argument(number));
            Ok((path, Reached::Value(found.kind)))
        }
        Passed::Address(number) => {
            let kind = found.kind.ok_or("its type is not known")?;
            let path = Path::of(Base::Argument(number));
            Ok((path, Reached::Place(kind)))
        }
        Passed::Stack(above) => {
            let mut path = Path::of(Base::Register(register::ENTRY_SP));
            path.then = above as i64;
            let kind = found.kind.ok_or("its type is not known")?;
            Ok((path, Reached::Place(kind)))
        }
        Passed::Several(first, words, is_even) => {
            let kind = found.kind.ok_or("its type is not known")?;
            let path = Path::of(Base::Argument(first));
            Ok((path, Reached::Parts(kind, words, is_even)))
        }
        Passed::Register(number) => {
            let path = Path::of(Base::Register(number));
            Ok((path, Reached::Value(found.kind)))
        }
        Passed::Nowhere => Err(format!(
            "`{name}` is not passed as it stands in the source text: the compiler made a constant \
             of it, or left it out"
        )),
        Passed::Float => Err(format!(
            "`{name}` is in a register of floating point numbers, which probes do not see"
        )),
        Passed::Unknown => Err(format!("where `{name}` is passed is not known")),
    }
}

fn no_member(why: NoMember, name: &str) -> String {
    match why {
        NoMember::NoSuchName => format!("there is no member `{name}`"),
        NoMember::InVirtualBase => {
            format!("`{name}` is in a virtual base class, whose place only the object knows")
        }
        NoMember::Undefined => {
            format!("what `{name}` would be a member of is declared here, and defined elsewhere")
        }
    }
}

/// Describes where the parts of a structure are.
fn parts_of(path: &Path, words: u32) -> String {
    let Base::Argument(first) = path.base else {
        return "its parts are in several registers".into();
    };
    let parts = (first..first.saturating_add(words)).map(|number| format!("arg{number}"));
    let parts: Vec<String> = parts.collect();
    format!("its parts are {}", parts.join(", "))
}

/// Returns a member of a structure whose parts are arguments.
fn part(
    known: Known<'_>,
    path: &Path,
    (kind, words, is_even): (TypeId, u32, bool),
    name: &str,
) -> Result<(Path, Reached), String> {
    let member = known
        .types
        .member(kind, name)
        .map_err(|why| no_member(why, name))?;
    let word = member.offset / 8;
    let is_whole = is_even && member.offset.is_multiple_of(8) && member.bits.is_none();
    let (Base::Argument(first), true) = (path.base, is_whole && word < u64::from(words)) else {
        return Err(parts_of(path, words));
    };
    let path = Path::of(Base::Argument(first + word as u32));
    let reached = match shape(known, member.kind)? {
        Shape::Structure => Reached::Parts(member.kind, words - word as u32, is_even),
        _ => Reached::Value(Some(member.kind)),
    };
    Ok((path, reached))
}

/// Returns the paths to the characters and to the length of a text, if a structure is one.
fn texts(known: Known<'_>, path: &Path, reached: Reached) -> Option<(Path, Path)> {
    let kind = match reached {
        Reached::Place(kind) | Reached::Parts(kind, _, true) => kind,
        _ => return None,
    };
    let inside = |members: &[&str]| {
        members
            .iter()
            .try_fold((0u64, kind), |(offset, kind), name| {
                let is_structure = known.types.shape(kind)? == Shape::Structure;
                let member = is_structure.then(|| known.types.member(kind, name).ok())??;
                let offset = offset.checked_add(member.offset)?;
                member.bits.is_none().then_some((offset, member.kind))
            })
    };
    let is_letter = |kind| {
        matches!(
            known.types.shape(kind),
            Some(Shape::Number { bytes: 1, .. })
        )
    };
    let goes_to = |offset: u64| match (reached, path.base) {
        (Reached::Parts(_, words, _), Base::Argument(first)) => {
            let word = u32::try_from(offset / 8)
                .ok()
                .filter(|word| *word < words)?;
            offset
                .is_multiple_of(8)
                .then(|| Path::of(Base::Argument(first + word)))
        }
        (Reached::Place(_), _) => {
            let mut path = path.clone();
            path.then = path.then.wrapping_add(offset as i64);
            path.read(8);
            Some(path)
        }
        _ => None,
    };
    TEXTS.iter().find_map(|(letters, length)| {
        let (letters, pointer) = inside(letters)?;
        let (length, number) = inside(length)?;
        let is_text = match (known.types.shape(pointer)?, known.types.shape(number)?) {
            (Shape::Pointer(Some(to)), Shape::Number { bytes: 8, .. }) => is_letter(to),
            _ => false,
        };
        is_text.then(|| Some((goes_to(letters)?, goes_to(length)?)))?
    })
}

/// Follows the path to the structure that is there, or that a pointer there leads to.
fn into_structure(known: Known<'_>, path: &mut Path, reached: Reached) -> Option<TypeId> {
    let (kind, is_place) = match reached {
        Reached::Value(kind) => (kind?, false),
        Reached::Place(kind) => (kind, true),
        Reached::Bits(..) | Reached::Parts(..) => return None,
    };
    match known.types.shape(kind)? {
        Shape::Structure if is_place => Some(kind),
        Shape::Pointer(Some(to)) => {
            if is_place {
                path.read(8);
            }
            Some(to)
        }
        _ => None,
    }
}

fn shape(known: Known<'_>, kind: TypeId) -> Result<Shape, String> {
    let shape = known.types.shape(kind);
    shape.ok_or_else(|| "its type is not known".to_string())
}

/// Returns the size of a value from which sums are computed.
fn bytes_of(shape: &Shape) -> Option<u64> {
    match shape {
        Shape::Number { bytes, .. } => Some(u64::from(*bytes)),
        Shape::Pointer(_) => Some(8),
        _ => None,
    }
}

/// Returns how a value is displayed.
fn shown(shape: &Shape) -> Result<What, String> {
    match shape {
        Shape::Number {
            bytes,
            is_signed,
            names,
        } => {
            let number = NumberType {
                bytes: *bytes,
                is_signed: *is_signed,
                ..WORD
            };
            Ok(What::Number(number, names.clone()))
        }
        Shape::Pointer(_) => {
            let number = NumberType {
                is_pointer: true,
                ..WORD
            };
            Ok(What::Number(number, Vec::new()))
        }
        Shape::Float(bytes) => {
            let number = NumberType {
                bytes: *bytes,
                is_float: true,
                ..WORD
            };
            Ok(What::Number(number, Vec::new()))
        }
        Shape::Letters(_) | Shape::Structure | Shape::Other => {
            Err("it is neither a number nor a text".into())
        }
    }
}
