//! The definitions of a message: strings, mappings, functions, locations. They refer to each other
//! by number, in any order, so all are read before any is used. Samples, of which there may be many
//! more, stay in the message.

use super::field;
use super::proto::{Fields, Value};
use crate::FrameKind;
use crate::formats::FormatError;
use crate::formats::wire::clean;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of definitions of each kind in one file: several times what the largest programs
/// have. The limit is needed as they take more memory here than in the file.
const THINGS_MAX: usize = 1 << 21;

/// Longest part of the name of a program or thread that is kept, in bytes.
const COMM_MAX: usize = 128;

/// A mapping of a file into memory. File and build-id are numbers of strings.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) offset: u64,
    pub(super) file: u64,
    pub(super) build_id: u64,
}

/// A function. Name and file are numbers of strings, 0 if absent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Function {
    pub(super) name: u64,
    pub(super) file: u64,
}

/// A place that stacks go through; its lines are not decoded yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Location<'a> {
    /// Id of the mapping; 0 if absent.
    pub(super) mapping: u64,
    pub(super) address: u64,
    fields: Fields<'a>,
}

/// One of the functions at a location, and the line in it; 0 if unknown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    pub(super) function: u64,
    pub(super) line: u64,
}

/// What a value counts, and its unit, as numbers of strings.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ValueType {
    pub(super) name: u64,
    pub(super) unit: u64,
}

/// All definitions of a message. Strings and the lines of locations stay in the message and are
/// read when they are used, as a file may have many that no sample needs.
#[derive(Debug, Default)]
pub(super) struct Tables<'a> {
    strings: Vec<&'a [u8]>,
    /// Strings made safe for display, each once.
    texts: HashMap<u64, Arc<str>>,
    pub(super) mappings: HashMap<u64, Mapping>,
    pub(super) functions: HashMap<u64, Function>,
    /// In the order of the file, so that reading gives the same result each time.
    pub(super) locations: Vec<(u64, Location<'a>)>,
    pub(super) types: Vec<ValueType>,
    /// The type that viewers show first, as the number of its name; 0 if absent.
    pub(super) default_type: u64,
    /// Comments, as numbers of strings; at most 64.
    pub(super) comments: Vec<u64>,
    /// The unit of `period`, the distance between two samples: if it is `cpu` in `nanoseconds`, the
    /// rate follows from it.
    pub(super) period_type: ValueType,
    /// Distance between two samples, in units of `period_type`.
    pub(super) period: u64,
    /// When sampling began, in ns since 1970; 0 if absent.
    pub(super) time_ns: u64,
    /// Length of the recording in ns.
    pub(super) duration_ns: u64,
}

/// An error for a damaged message; `what` says which part.
pub(super) fn damaged(what: &str) -> FormatError {
    FormatError::Damaged(what.into())
}

/// Returns an error if one more thing would exceed [`THINGS_MAX`].
pub(super) fn room(count: usize) -> Result<(), FormatError> {
    if count < THINGS_MAX {
        Ok(())
    } else {
        Err(FormatError::TooLarge(
            "it describes more than two million things of a kind",
        ))
    }
}

impl<'a> Tables<'a> {
    /// Reads all definitions. The order of fields is free, so strings are only counted here, and
    /// numbers of strings are checked when they are used.
    pub(super) fn read(message: &'a [u8]) -> Result<Self, FormatError> {
        let mut tables = Self::default();
        let mut fields = Fields::new(message);
        while let Some((field, value)) = fields.next()? {
            tables.add(field, value)?;
        }
        // The format requires an empty first string; absent fields refer to it as 0.
        match tables.strings.first() {
            Some(first) if !first.is_empty() => Err(damaged("its first string is not empty")),
            _ => Ok(tables),
        }
    }

    /// Handles one field of the message; unknown fields are skipped.
    fn add(&mut self, field: u64, value: Value<'a>) -> Result<(), FormatError> {
        use field::profile as field;
        match field {
            field::STRING => {
                room(self.strings.len())?;
                self.strings.push(value.bytes()?);
            }
            field::SAMPLE_TYPE if self.types.len() < 64 => {
                self.types.push(value_type(value.fields()?)?);
            }
            field::SAMPLE_TYPE => {
                return Err(FormatError::TooLarge(
                    "its samples have more than 64 values",
                ));
            }
            field::MAPPING => self.add_mapping(value.fields()?)?,
            field::FUNCTION => self.add_function(value.fields()?)?,
            field::LOCATION => self.add_location(value.fields()?)?,
            field::TIME_NS => self.time_ns = value.number()?,
            field::DURATION_NS => self.duration_ns = value.number()?,
            field::PERIOD_TYPE => self.period_type = value_type(value.fields()?)?,
            field::PERIOD => self.period = value.number()?,
            field::DEFAULT_TYPE => self.default_type = value.number()?,
            field::COMMENT => value.each_number(|number| {
                // No more comments are used.
                if self.comments.len() < 64 {
                    self.comments.push(number);
                }
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    }

    /// Reads a mapping. Ids are arbitrary numbers but 0, each given once.
    fn add_mapping(&mut self, mut fields: Fields<'a>) -> Result<(), FormatError> {
        use field::mapping as field;
        let (mut id, mut mapping) = (0, Mapping::default());
        while let Some((field, value)) = fields.next()? {
            match field {
                field::ID => id = value.number()?,
                field::START => mapping.start = value.number()?,
                field::OFFSET => mapping.offset = value.number()?,
                field::FILE => mapping.file = value.number()?,
                field::BUILD_ID => mapping.build_id = value.number()?,
                _ => {}
            }
        }
        room(self.mappings.len())?;
        if id == 0 || self.mappings.insert(id, mapping).is_some() {
            Err(damaged("two mappings have one number"))
        } else {
            Ok(())
        }
    }

    /// Reads a function. Ids are arbitrary numbers but 0, each given once.
    fn add_function(&mut self, mut fields: Fields<'a>) -> Result<(), FormatError> {
        use field::function as field;
        let (mut id, mut function, mut system_name) = (0, Function::default(), 0);
        while let Some((field, value)) = fields.next()? {
            match field {
                field::ID => id = value.number()?,
                field::NAME => function.name = value.number()?,
                field::SYSTEM_NAME => system_name = value.number()?,
                field::FILE => function.file = value.number()?,
                _ => {}
            }
        }
        // Some writers set only the name as the linker has it.
        if function.name == 0 {
            function.name = system_name;
        }
        room(self.functions.len())?;
        if id == 0 || self.functions.insert(id, function).is_some() {
            Err(damaged("two functions have one number"))
        } else {
            Ok(())
        }
    }

    /// Reads a location except its lines: they refer to functions, which may come later.
    fn add_location(&mut self, fields: Fields<'a>) -> Result<(), FormatError> {
        use field::location as field;
        let (mut id, mut mapping, mut address) = (0, 0, 0);
        let mut rest = fields;
        while let Some((field, value)) = rest.next()? {
            match field {
                field::ID => id = value.number()?,
                field::MAPPING => mapping = value.number()?,
                field::ADDRESS => address = value.number()?,
                _ => {}
            }
        }
        room(self.locations.len())?;
        let location = Location {
            mapping,
            address,
            fields,
        };
        self.locations.push((id, location));
        Ok(())
    }

    /// Returns the bytes of a string as stored in the file.
    pub(super) fn bytes(&self, string: u64) -> Result<&'a [u8], FormatError> {
        let found = usize::try_from(string)
            .ok()
            .and_then(|at| self.strings.get(at));
        match found {
            Some(found) => Ok(found),
            // An absent field refers to string 0, which is empty.
            None if string == 0 => Ok(b""),
            None => Err(damaged("a string is used that it does not have")),
        }
    }

    /// Returns a string made safe for display.
    pub(super) fn text(&mut self, string: u64) -> Result<Arc<str>, FormatError> {
        if let Some(text) = self.texts.get(&string) {
            return Ok(Arc::clone(text));
        }
        let text: Arc<str> = clean(&String::from_utf8_lossy(self.bytes(string)?)).into();
        self.texts.insert(string, Arc::clone(&text));
        Ok(text)
    }

    /// Returns the name of a process or thread, shortened to the longest that is kept.
    pub(super) fn comm(&mut self, string: u64) -> Result<Arc<str>, FormatError> {
        let text = self.text(string)?;
        match text.char_indices().nth(COMM_MAX) {
            Some((end, _)) => Ok(text[..end].into()),
            None => Ok(text),
        }
    }

    /// Returns the function with an id; an error if there is none.
    pub(super) fn function(&self, id: u64) -> Result<Function, FormatError> {
        let function = self.functions.get(&id).copied();
        function.ok_or_else(|| damaged("a function is used that it does not have"))
    }
}

impl<'a> Location<'a> {
    /// Reads the lines of the location, innermost first.
    pub(super) fn lines(&self, lines: &mut Vec<Line>) -> Result<(), FormatError> {
        lines.clear();
        let mut fields = self.fields;
        while let Some((field, value)) = fields.next()? {
            if field == field::location::LINE {
                lines.push(line(value.fields()?)?);
            }
        }
        Ok(())
    }
}

fn line(mut fields: Fields<'_>) -> Result<Line, FormatError> {
    let mut line = Line::default();
    while let Some((field, value)) = fields.next()? {
        match field {
            field::line::FUNCTION => line.function = value.number()?,
            field::line::LINE => line.line = value.number()?,
            _ => {}
        }
    }
    Ok(line)
}

fn value_type(mut fields: Fields<'_>) -> Result<ValueType, FormatError> {
    let mut value_type = ValueType::default();
    while let Some((field, value)) = fields.next()? {
        match field {
            field::value_type::NAME => value_type.name = value.number()?,
            field::value_type::UNIT => value_type.unit = value.number()?,
            _ => {}
        }
    }
    Ok(value_type)
}

/// Returns the kind of code of a mapping, by its name.
pub(super) fn kind_of(file: &str, address: u64) -> FrameKind {
    let name = file.rsplit('/').next().unwrap_or_default();
    let is_kernel = file.starts_with("[kernel") || name.starts_with("vmlinux");
    match file {
        _ if is_kernel || name.ends_with(".ko") => FrameKind::Kernel,
        // On every 64-bit machine the addresses of processes are below this.
        "" if address >= 1 << 63 => FrameKind::Kernel,
        "[anon]" | "//anon" => FrameKind::Jit,
        _ => FrameKind::User,
    }
}
