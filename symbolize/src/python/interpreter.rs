//! Recognizes interpreters: version, address of their state, and location of their loop.

use std::fmt;
use std::ops::Range;

use super::parts::all_parts;
#[cfg(test)]
use crate::Segment;
use crate::object::{Object, PYTHON_STATE, Summary};
use crate::wire::{Taken, put_u64, put_u64s};
use crate::{FileOffset, LinkAddr, Mapping, OpenError, Segments, elf};

/// A version of CPython.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// 3.
    pub major: u8,
    /// Minor version: 12 for 3.12.
    pub minor: u8,
}

impl Version {
    /// Returns the version of a `PY_VERSION_HEX`: `0x030c01f0` is 3.12.1.
    pub fn of_number(number: u64) -> Option<Version> {
        let version = Version {
            major: (number >> 24) as u8,
            minor: (number >> 16) as u8,
        };
        (number >> 32 == 0 && version.major == 3).then_some(version)
    }

    /// Returns the version in the name of an interpreter's file: `python3.12`,
    /// `libpython3.12.so.1.0`. `None` for other names.
    pub fn of_file_name(name: &[u8]) -> Option<Version> {
        let rest = name.strip_prefix(b"lib").unwrap_or(name);
        let minor = rest.strip_prefix(b"python3.")?;
        let digits = minor.iter().take_while(|byte| byte.is_ascii_digit());
        let digits = &minor[..digits.count()];
        let minor = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some(Version { major: 3, minor })
    }

    /// Decodes two bytes; `None` if there are fewer.
    pub(crate) fn take(bytes: &mut Taken<'_>) -> Option<Version> {
        Some(Version {
            major: bytes.u8()?,
            minor: bytes.u8()?,
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A file with a Python interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// Its version.
    pub version: Version,
    /// How it was built, as far as its symbols show.
    pub build: Build,
    /// Link address of its `_PyRuntime`.
    pub runtime: LinkAddr,
    /// Whether the C part of asyncio is in this file, and not in a library.
    pub has_asyncio: bool,
    /// The ranges of its loop in the file, sorted.
    evaluation: Vec<Range<u64>>,
    /// The ranges of functions that only lead from one Python function to the next, sorted.
    glue: Vec<Range<u64>>,
    segments: Segments,
}

/// How an interpreter was built. Stripped files show less of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Build {
    /// Micro version: 1 for 3.12.1; `None` if no symbol has it, as before 3.11.
    pub micro: Option<u8>,
    /// Whether the program uses the interpreter as a library.
    pub is_shared: bool,
    /// Whether it counts references and checks itself: `--with-pydebug`.
    pub is_debug: bool,
    /// Whether each instruction has a function of its own, which ends by calling the next.
    pub has_tail_calls: bool,
    /// Whether it can compile often executed code to native code.
    pub has_jit: bool,
}

/// Symbol of the initialization of asyncio's C part.
const ASYNCIO: &[u8] = b"PyInit__asyncio";

/// Minor version of the first release with the symbol `Py_Version`: 3.11.
const TELLS_ITSELF: u8 = 11;

/// Returns the first version with this function, for those functions that distinguish versions
/// before 3.11.
fn minor_with(name: &[u8]) -> Option<u8> {
    Some(match name {
        b"PyConfig_InitPythonConfig" => 8,
        b"PyObject_CallNoArgs" => 9,
        b"PyModule_AddObjectRef" => 10,
        b"PyType_GetQualName" => TELLS_ITSELF,
        _ => return None,
    })
}

/// Names of the interpreter's loop. Compilers move its rarely executed parts elsewhere.
const EVALUATION: [&[u8]; 2] = [
    b"_PyEval_EvalFrameDefault",
    b"_PyEval_EvalFrameDefault.cold",
];

/// Functions between a Python function and what it calls, which are of no interest to users.
const GLUE: [&[u8]; 37] = [
    b"PyCFunction_Call",
    b"PyEval_EvalCode",
    b"PyEval_EvalCodeEx",
    b"PyEval_EvalFrame",
    b"PyEval_EvalFrameEx",
    b"PyObject_Call",
    b"PyObject_CallFunctionObjArgs",
    b"PyObject_CallMethodObjArgs",
    b"PyObject_CallObject",
    b"PyObject_CallOneArg",
    b"PyObject_Vectorcall",
    b"PyObject_VectorcallMethod",
    b"PyVectorcall_Call",
    b"_PyEval_EvalCode",
    b"_PyEval_EvalCodeWithName",
    b"_PyEval_EvalFrame",
    b"_PyEval_Vector",
    b"_PyFunction_FastCallDict",
    b"_PyFunction_Vectorcall",
    b"_PyMethodDef_RawFastCallKeywords",
    b"_PyMethodDescr_FastCallKeywords",
    b"_PyObject_Call",
    b"_PyObject_CallFunctionVa",
    b"_PyObject_CallMethod",
    b"_PyObject_Call_Prepend",
    b"_PyObject_FastCallDict",
    b"_PyObject_FastCallDictTstate",
    b"_PyObject_MakeTpCall",
    b"_PyObject_Vectorcall",
    b"_PyObject_VectorcallTstate",
    b"_PyVectorcall_Call",
    b"call_function",
    b"do_call_core",
    b"function_code_fastcall",
    b"method_vectorcall",
    b"object_vacall",
    b"py_trampoline_evaluator",
];

/// Prefix of the functions that execute one instruction.
const TAIL_CALL: &[u8] = b"_TAIL_CALL_";

/// Prefixes of further such functions.
const GLUE_BEGINNINGS: [&[u8]; 5] = [
    // Builds that have a function for each instruction. These call each other, and are below the
    // loop's function, which calls the first one.
    TAIL_CALL,
    b"cfunction_vectorcall_",
    b"cfunction_call",
    b"method_vectorcall_",
    b"_PyEval_EvalFrame.",
];

/// Maximum number of functions with these names: a hostile file could have any number.
const PLACES_MAX: usize = 4096;

/// Set in an encoded interpreter for each property of its build.
const IS_SHARED: u8 = 1;
const IS_DEBUG: u8 = 2;
const HAS_TAIL_CALLS: u8 = 4;
const HAS_JIT: u8 = 8;
const HAS_MICRO: u8 = 16;
const HAS_ASYNCIO: u8 = 32;

impl Interpreter {
    /// Whether a file may be an interpreter, whatever its name. Interpreters export their state for
    /// extensions: threads and everything else can be reached from there.
    pub fn may_be(summary: &Summary, file_name: &[u8]) -> bool {
        Version::of_file_name(file_name).is_some() || summary.has_python_state
    }

    /// Reads the properties of an interpreter; `None` if the file is not one, or if its version is
    /// unknown.
    pub fn find(object: &Object, file_name: &[u8]) -> Result<Option<Interpreter>, OpenError> {
        let (mut runtime, mut number) = (None, None);
        let mut by_functions = None;
        let (mut evaluation, mut glue) = (Vec::new(), Vec::new());
        let mut has_asyncio = false;
        let mut build = Build {
            is_shared: !object
                .program_headers()
                .iter()
                .any(|it| it.is_loader_name()),
            ..Build::default()
        };
        let segments = object.segments();
        elf::for_each_symbol(object, |name, start, size| {
            if name == PYTHON_STATE {
                runtime = Some(start);
            } else if name == b"Py_Version" {
                number = segments.to_file(start);
            }
            by_functions = by_functions.max(minor_with(name));
            has_asyncio |= name == ASYNCIO;
            build.is_debug |= name == b"_Py_NegativeRefcount";
            build.has_tail_calls |= name.starts_with(TAIL_CALL);
            build.has_jit |= name == b"_PyJIT_Compile";
            let places = if EVALUATION.contains(&name) {
                &mut evaluation
            } else if is_glue(name) {
                &mut glue
            } else {
                return;
            };
            if places.len() < PLACES_MAX {
                places.push(start.0..start.0.saturating_add(size));
            }
        })?;
        let told = number.and_then(|FileOffset(offset)| {
            let bytes = object
                .source()
                .read(offset, 4, "the version of Python")
                .ok()?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        });
        build.micro = told.map(|number| (number >> 8) as u8);
        let told = told.and_then(|number| Version::of_number(number.into()));
        let by_functions = || {
            let minor = by_functions.filter(|minor| *minor < TELLS_ITSELF)?;
            Some(Version { major: 3, minor })
        };
        let version = told
            .or_else(|| Version::of_file_name(file_name))
            .or_else(by_functions);
        sort(&mut evaluation);
        // If the parts cannot be determined, only those with symbols are used.
        let evaluation = all_parts(object, evaluation.clone()).unwrap_or(evaluation);
        let evaluation = in_file(segments, evaluation);
        let glue = in_file(segments, glue);
        Ok(match (runtime, version) {
            (Some(runtime), Some(version)) if !evaluation.is_empty() => Some(Interpreter {
                version,
                build,
                runtime,
                has_asyncio,
                evaluation,
                glue,
                segments: segments.clone(),
            }),
            _ => None,
        })
    }

    /// Encodes it for another process.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Build {
            micro,
            is_shared,
            is_debug,
            has_tail_calls,
            has_jit,
        } = self.build;
        let flags = [
            (is_shared, IS_SHARED),
            (is_debug, IS_DEBUG),
            (has_tail_calls, HAS_TAIL_CALLS),
            (has_jit, HAS_JIT),
            (micro.is_some(), HAS_MICRO),
            (self.has_asyncio, HAS_ASYNCIO),
        ];
        let set = flags.iter().filter(|(is_set, _)| *is_set);
        let flags = set.fold(0, |all, (_, flag)| all | flag);
        let Version { major, minor } = self.version;
        out.extend([flags, major, minor, micro.unwrap_or_default()]);
        put_u64(out, self.runtime.0);
        self.segments.write(out);
        for places in [&self.evaluation, &self.glue] {
            let ends = places.iter().flat_map(|place| [place.start, place.end]);
            put_u64s(out, ends.collect::<Vec<_>>().into_iter());
        }
    }

    /// Decodes what [`Interpreter::write`] has encoded; `None` if it is malformed.
    pub(super) fn take(bytes: &mut Taken<'_>) -> Option<Interpreter> {
        let flags = bytes.u8()?;
        let has = |flag| flags & flag != 0;
        let version = Version::take(bytes)?;
        let micro = bytes.u8()?;
        let interpreter = Interpreter {
            version,
            build: Build {
                micro: has(HAS_MICRO).then_some(micro),
                is_shared: has(IS_SHARED),
                is_debug: has(IS_DEBUG),
                has_tail_calls: has(HAS_TAIL_CALLS),
                has_jit: has(HAS_JIT),
            },
            runtime: LinkAddr(bytes.u64()?),
            has_asyncio: has(HAS_ASYNCIO),
            segments: Segments::take(bytes)?,
            evaluation: take_places(bytes)?,
            glue: take_places(bytes)?,
        };
        (!interpreter.evaluation.is_empty()).then_some(interpreter)
    }

    /// Returns the address of its `_PyRuntime` in a process that has this mapping of the file's
    /// code.
    pub fn runtime_at(&self, mapping: &Mapping) -> Option<u64> {
        let code = self.segments.to_link(mapping.file_offset)?;
        let bias = mapping.start.0.wrapping_sub(code.0);
        Some(self.runtime.0.wrapping_add(bias))
    }

    /// Whether the file offset is in the interpreter's loop.
    pub fn is_evaluation(&self, offset: u64) -> bool {
        holds(&self.evaluation, offset)
    }

    /// Whether the file offset is in a function that only leads to what Python code calls.
    pub fn is_glue(&self, offset: u64) -> bool {
        holds(&self.glue, offset)
    }
}

/// Takes sorted ranges.
fn take_places(bytes: &mut Taken<'_>) -> Option<Vec<Range<u64>>> {
    let ends = bytes.u64s()?;
    let (pairs, rest) = ends.as_chunks();
    if !rest.is_empty() || pairs.len() > PLACES_MAX {
        return None;
    }
    let mut places: Vec<_> = pairs.iter().map(|[start, end]| *start..*end).collect();
    let are_ranges = places.iter().all(|place| place.start <= place.end);
    sort(&mut places);
    are_ranges.then_some(places)
}

fn is_glue(name: &[u8]) -> bool {
    // The compiler adds a suffix to functions that it changed: `.constprop.0`, `.cold`.
    let plain = name.split(|byte| *byte == b'.').next().unwrap_or(name);
    GLUE.contains(&plain)
        || GLUE_BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning))
}

/// Converts link addresses to ranges in the file.
fn in_file(segments: &Segments, places: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let place = |place: Range<u64>| {
        let FileOffset(offset) = segments.to_file(LinkAddr(place.start))?;
        Some(offset..offset.saturating_add(place.end - place.start))
    };
    let mut places: Vec<_> = places.into_iter().filter_map(place).collect();
    sort(&mut places);
    places
}

/// Sorts ranges and removes duplicates: both symbol tables of a file have the same functions.
fn sort(places: &mut Vec<Range<u64>>) {
    places.sort_unstable_by_key(|place| (place.start, place.end));
    places.dedup();
}

fn holds(places: &[Range<u64>], offset: u64) -> bool {
    let after = places.partition_point(|place| place.start <= offset);
    places[..after]
        .last()
        .is_some_and(|place| offset < place.end)
}

/// An interpreter for tests.
#[cfg(test)]
pub(super) fn example() -> Interpreter {
    Interpreter {
        version: Version {
            major: 3,
            minor: 12,
        },
        build: Build {
            micro: Some(3),
            is_shared: true,
            has_jit: true,
            ..Build::default()
        },
        runtime: LinkAddr(u64::MAX),
        has_asyncio: true,
        evaluation: vec![10..20, 40..50],
        glue: Vec::new(),
        segments: Segments::new(vec![Segment {
            offset: 0,
            vaddr: 0x1000,
            filesz: u64::MAX,
            executable: true,
        }]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_file_names() {
        for (name, version) in [
            (&b"python3.12"[..], Some((3, 12))),
            (b"libpython3.8.so.1.0", Some((3, 8))),
            (b"libpython3.13t.so.1.0", Some((3, 13))),
            (b"python3", None),
            (b"libpython3.so", None),
            (b"python3.", None),
            (b"python3.999", None),
            (b"ipython3.9", None),
        ] {
            let found = Version::of_file_name(name).map(|v| (v.major, v.minor));
            assert_eq!(found, version, "{}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn versions_of_numbers() {
        let version = Version::of_number(0x030c_01f0).unwrap();
        assert_eq!(version.to_string(), "3.12");
        assert_eq!(Version::of_number(0x0207_12f0), None);
        assert_eq!(Version::of_number(u64::MAX), None);
    }

    #[test]
    fn places_are_found_by_any_offset_in_them() {
        let mut places = vec![40..50, 10..20, 10..20];
        sort(&mut places);
        assert_eq!(places.len(), 2);
        for (offset, expected) in [
            (9, false),
            (10, true),
            (19, true),
            (20, false),
            (45, true),
            (50, false),
        ] {
            assert_eq!(holds(&places, offset), expected, "{offset}");
        }
    }
}
