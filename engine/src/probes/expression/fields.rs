//! Members of structures by their names: from `prev.mm.owner` to where that lies.
//!
//! ```text
//! prev            what a parameter is called
//! prev.mm.owner   a member of the structure there, and one of the structure that it leads to
//! arg1:job.id     the same of a number that is known to be the address of a `job`
//! ```
//!
//! A path with such names is not complete until types are there that know them. Each name
//! adds its offset; a pointer on the way is one more reading of memory.

use super::{Base, NumberType, Path, WORD};
use probe::call_orders::register;
use symbolize::dwarf::Passed;
use symbolize::types::{NoMember, Shape, TypeId, Types};

/// Names that lead from a value to a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields {
    /// What has the members. Of a parameter that is named, nothing.
    pub of: Path,
    /// The name of a parameter.
    pub parameter: Option<String>,
    /// The structure whose address it is, if that was typed.
    pub cast: Option<String>,
    /// Each is one of the structure before it.
    pub members: Vec<String>,
}

/// What is known of the values at a place.
#[derive(Clone, Copy)]
pub struct Known<'k> {
    /// Knows what types are, and their members.
    pub types: &'k dyn Types,
    /// What the place is given, in the order of its source text.
    pub parameters: &'k [KnownParameter],
    /// The type of what a function returns, if it is known.
    pub returns: Option<TypeId>,
}

/// What is known of one parameter.
#[derive(Debug, Clone)]
pub struct KnownParameter {
    /// Empty if it has none.
    pub name: String,
    /// `None` if its type is not known.
    pub kind: Option<TypeId>,
    /// Where it is when the call begins.
    pub place: Passed,
}

impl Known<'_> {
    /// The type of an argument by its number.
    fn of_argument(&self, number: u32) -> Option<TypeId> {
        let is_it = |it: &&KnownParameter| it.place == Passed::Argument(number);
        self.parameters.iter().find(is_it)?.kind
    }
}

/// What a path leads to.
#[derive(Debug, Clone, Copy)]
enum Reached {
    /// A value of that type, or nobody knows of which.
    Value(Option<TypeId>),
    /// The address of one.
    Place(TypeId),
}

/// A path without names, and what it leads to.
pub struct Resolved {
    pub path: Path,
    pub what: What,
}

/// What a path leads to, as far as types tell.
pub enum What {
    /// Nothing is known of it.
    Unknown,
    Number(NumberType, Vec<(i64, String)>),
    /// The path ends at its first letter.
    Letters,
    /// The path ends where it begins.
    Structure,
}

impl Path {
    /// Whether names are in it.
    pub fn has_names(&self) -> bool {
        self.fields.is_some()
    }

    /// Finds the names. The error is a clause.
    pub fn resolve(&self, known: Known<'_>) -> Result<Resolved, String> {
        let (mut path, reached) = self.follow(known)?;
        let what = match reached {
            Reached::Value(None) => What::Unknown,
            Reached::Value(Some(kind)) => shown(&shape(known, kind)?)?,
            Reached::Place(kind) => match shape(known, kind)? {
                Shape::Structure => What::Structure,
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

    /// The path up to its last name, and what is there.
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
            let kind = known.types.named(cast);
            let kind = kind.ok_or_else(|| format!("no type is called `{cast}`"))?;
            if let Reached::Place(_) = reached {
                path.read(8);
            }
            reached = Reached::Place(kind);
        }
        for name in &fields.members {
            let structure = into_structure(known, &mut path, reached)
                .ok_or_else(|| format!("what `{name}` is a member of is not known"))?;
            let member = { known.types.member(structure, name) }.map_err(|why| match why {
                NoMember::NoSuchName => format!("there is no member `{name}`"),
                NoMember::InVirtualBase => format!(
                    "`{name}` is in a virtual base class, whose place only the object knows"
                ),
                NoMember::Undefined => format!(
                    "what `{name}` would be a member of is declared here, and defined elsewhere"
                ),
            })?;
            if member.is_bits {
                return Err(format!("`{name}` has only some bits of its bytes"));
            }
            path.then = path.then.wrapping_add(member.offset as i64);
            reached = Reached::Place(member.kind);
        }
        if !self.steps.is_empty() || self.then != 0 {
            // The numbers that were typed behind the names go on from their value.
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

    /// Reads memory at the end of the path.
    fn read(&mut self, bytes: u64) {
        self.steps.push((self.then, bytes));
        self.then = 0;
    }

    /// Goes on with the steps of another path.
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

/// Where the parameter of a name is.
fn parameter(known: Known<'_>, name: &str) -> Result<(Path, Reached), String> {
    let found = known.parameters.iter().find(|it| it.name == name);
    let found = found.ok_or_else(|| {
        let names = known.parameters.iter().map(|it| it.name.as_str());
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        match names.is_empty() {
            true => format!("no parameter is called `{name}`"),
            false => format!("no parameter is called `{name}`: {}", names.join(", ")),
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
        Passed::Several(first, words) => {
            let parts = (first..first + words).map(|number| format!("arg{number}"));
            let parts: Vec<String> = parts.collect();
            Err(format!("the parts of `{name}` are {}", parts.join(", ")))
        }
        Passed::Float => Err(format!(
            "`{name}` is in a register of floating point numbers, which probes do not see"
        )),
        Passed::Unknown => Err(format!("where `{name}` is passed is not known")),
    }
}

/// Goes on to the structure that is there, or that the pointer there leads to.
fn into_structure(known: Known<'_>, path: &mut Path, reached: Reached) -> Option<TypeId> {
    let (kind, is_place) = match reached {
        Reached::Value(kind) => (kind?, false),
        Reached::Place(kind) => (kind, true),
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

/// How many bytes a value has that sums go on from.
fn bytes_of(shape: &Shape) -> Option<u64> {
    match shape {
        Shape::Number { bytes, .. } => Some(u64::from(*bytes)),
        Shape::Pointer(_) => Some(8),
        _ => None,
    }
}

/// How a value is written.
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
