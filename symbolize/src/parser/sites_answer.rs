//! Encodes answers about the functions of a file that may be probed. The reading side does not
//! trust the writing side: texts are made safe to print, and instructions outside of their function
//! make an answer malformed.
//!
//! ```text
//! functions: the number of functions found, the number of those in the answer, then each of them
//! sites:     the number of functions asked about; then for each of them its site (where calls are
//!            counted, and how their ends are seen), or why it has none
//! ```

use super::chain::{read_text, write_text};
use crate::elf::Needed;
use crate::object::Class;
use crate::sites::spelling::Meant;
use crate::sites::{
    Argument, ArgumentPlace, Fit, Function, Inlined, Kind, Language, Marker, Placed, Refusal,
    Returns, Site,
};
use crate::sites::{Class as SiteClass, NoLine};
use crate::wire::{Taken, put_bytes, put_some_u64, put_u32, put_u64};
use crate::{LinkAddr, Segments};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// From this size on, no more is added to an answer: what is left is asked for again, or left out.
const BYTES_MAX: usize = 8 << 20;

/// Maximum number of functions in an answer. Many times more than can be probed at a time.
pub const FUNCTIONS_MAX: usize = 65_536;

/// Maximum size of a text. A name has at most 64 KiB, and each byte of it may become eight that are
/// safe to print.
const TEXT_BYTES_MAX: usize = 512 << 10;

/// Maximum size of a build-id; those of linkers have 20 bytes.
const BUILD_ID_BYTES_MAX: usize = 4 << 10;

/// Maximum number of ends of one function. With more, the ends of its calls are not seen.
const ENDS_MAX: usize = 16_384;

/// What the headers of a file tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SitesFacts {
    /// The build-id; empty if it has none.
    pub build_id: Vec<u8>,
    /// Where it is loaded.
    pub segments: Segments,
    /// Whether its addresses have 32 bits or 64.
    pub class: Class,
    /// The processor that it is for (`e_machine`).
    pub machine: u16,
}

/// Functions of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Functions {
    /// The functions, at most [`FUNCTIONS_MAX`].
    pub told: Vec<Function>,
    /// Number of all of them.
    pub all: u64,
}

/// The language of the function at each marker, and the site, or why there is none.
pub type MarkerSites = Vec<Result<(Language, Site), Refusal>>;

/// Where a line of source text begins in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineFunctions {
    /// The file has no lines.
    NoLines,
    /// In these functions, or nowhere.
    Known(Result<Functions, NoLine>),
}

pub fn write_facts(facts: &SitesFacts) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(
        &mut out,
        &facts.build_id[..facts.build_id.len().min(BUILD_ID_BYTES_MAX)],
    );
    facts.segments.write(&mut out);
    out.push((facts.class == Class::Wide).into());
    put_u32(&mut out, facts.machine.into());
    out
}

pub fn read_facts(bytes: &[u8]) -> Option<SitesFacts> {
    whole(bytes, |bytes| {
        Some(SitesFacts {
            build_id: bytes
                .bytes()
                .filter(|id| id.len() <= BUILD_ID_BYTES_MAX)?
                .to_vec(),
            segments: Segments::take(bytes)?,
            class: if bytes.u8()? != 0 {
                Class::Wide
            } else {
                Class::Narrow
            },
            machine: bytes.u32()?.try_into().ok()?,
        })
    })
}

pub fn write_needed(needed: &Needed) -> Vec<u8> {
    let mut out = Vec::new();
    for text in [&needed.loader, &needed.rpath, &needed.runpath] {
        // An empty text stands for `None`, as none is empty.
        put_bytes(&mut out, text.as_deref().unwrap_or_default().as_bytes());
    }
    put_u32(&mut out, needed.libraries.len() as u32);
    for library in &needed.libraries {
        put_bytes(&mut out, library.as_bytes());
    }
    out
}

pub fn read_needed(bytes: &[u8]) -> Option<Needed> {
    whole(bytes, |bytes| {
        let mut text = || bytes.bytes().map(|text| OsString::from_vec(text.to_vec()));
        let some = |text: OsString| (!text.is_empty()).then_some(text);
        let (loader, rpath, runpath) = (some(text()?), some(text()?), some(text()?));
        let count = bytes.u32()?;
        let library = |_| bytes.bytes().map(|text| OsString::from_vec(text.to_vec()));
        Some(Needed {
            loader,
            libraries: (0..count).map(library).collect::<Option<_>>()?,
            rpath,
            runpath,
        })
    })
}

/// Encodes as many functions as fit.
fn put_functions(out: &mut Vec<u8>, functions: &[Function]) {
    put_u64(out, functions.len() as u64);
    let at = out.len();
    put_u32(out, 0);
    let mut count = 0u32;
    for function in functions.iter().take(FUNCTIONS_MAX) {
        if out.len() > BYTES_MAX {
            break;
        }
        put_function(out, function);
        count += 1;
    }
    out[at..at + 4].copy_from_slice(&count.to_le_bytes());
}

fn take_functions(bytes: &mut Taken<'_>) -> Option<Functions> {
    let (all, count) = (bytes.u64()?, bytes.u32()?);
    if count as usize > FUNCTIONS_MAX || u64::from(count) > all {
        return None;
    }
    let told = (0..count).map(|_| take_function(bytes));
    Some(Functions {
        told: told.collect::<Option<_>>()?,
        all,
    })
}

fn put_function(out: &mut Vec<u8>, function: &Function) {
    write_text(out, &function.name, TEXT_BYTES_MAX);
    put_bytes(out, &function.raw);
    put_u64(out, function.start.0);
    put_u64(out, function.len);
    out.push(function.language as u8);
    put_some_u64(out, function.inside.map(|addr| addr.0));
}

fn take_function(bytes: &mut Taken<'_>) -> Option<Function> {
    Some(Function {
        name: read_text(bytes)?,
        raw: bytes.bytes()?.to_vec(),
        start: LinkAddr(bytes.u64()?),
        len: bytes.u64()?,
        language: language(bytes)?,
        inside: bytes.some_u64()?.map(LinkAddr),
    })
}

fn language(bytes: &mut Taken<'_>) -> Option<Language> {
    Language::ALL.get(usize::from(bytes.u8()?)).copied()
}

fn refusal(bytes: &mut Taken<'_>) -> Option<Refusal> {
    Refusal::ALL.get(usize::from(bytes.u8()?)).copied()
}

pub fn write_functions(functions: &[Function]) -> Vec<u8> {
    let mut out = Vec::new();
    put_functions(&mut out, functions);
    out
}

pub fn read_functions(bytes: &[u8]) -> Option<Functions> {
    whole(bytes, take_functions)
}

const NOTHING: u8 = u8::MAX;

/// Encodes the functions that match a name, and how well they do.
pub fn write_fitting(found: Option<&(Fit, Vec<Function>)>) -> Vec<u8> {
    let mut out = vec![found.map_or(NOTHING, |(fit, _)| *fit as u8)];
    if let Some((_, functions)) = found {
        put_functions(&mut out, functions);
    }
    out
}

#[expect(clippy::option_option, reason = "the outer one is about the bytes")]
pub fn read_fitting(bytes: &[u8]) -> Option<Option<(Fit, Functions)>> {
    whole(bytes, |bytes| match bytes.u8()? {
        NOTHING => Some(None),
        fit => {
            let fit = *Fit::ALL.get(usize::from(fit))?;
            Some(Some((fit, take_functions(bytes)?)))
        }
    })
}

/// Encodes the function at a place.
pub fn write_at(found: &Result<Function, Refusal>) -> Vec<u8> {
    let mut out = Vec::new();
    match found {
        Ok(function) => {
            out.push(1);
            put_function(&mut out, function);
        }
        Err(reason) => out.extend([0, *reason as u8]),
    }
    out
}

pub fn read_at(bytes: &[u8]) -> Option<Result<Function, Refusal>> {
    whole(bytes, |bytes| match bytes.u8()? {
        0 => refusal(bytes).map(Err),
        1 => take_function(bytes).map(Ok),
        _ => None,
    })
}

/// Encodes where a line begins; `None` if the file has no lines.
pub fn write_line(found: Option<&Result<Vec<Function>, NoLine>>) -> Vec<u8> {
    let mut out = Vec::new();
    match found {
        None => out.push(0),
        Some(Ok(functions)) => {
            out.push(1);
            put_functions(&mut out, functions);
        }
        Some(Err(NoLine::NoSuchFile)) => out.push(2),
        Some(Err(NoLine::NoCode(None))) => out.push(3),
        Some(Err(NoLine::NoCode(Some(next)))) => {
            out.push(4);
            put_u32(&mut out, *next);
        }
    }
    out
}

pub fn read_line(bytes: &[u8]) -> Option<LineFunctions> {
    whole(bytes, |bytes| {
        Some(LineFunctions::Known(match bytes.u8()? {
            0 => return Some(LineFunctions::NoLines),
            1 => Ok(take_functions(bytes)?),
            2 => Err(NoLine::NoSuchFile),
            3 => Err(NoLine::NoCode(None)),
            4 => Err(NoLine::NoCode(Some(bytes.u32()?))),
            _ => return None,
        }))
    })
}

pub fn write_inlined(inlined: Option<&Inlined>) -> Vec<u8> {
    let mut out = Vec::new();
    let Some(inlined) = inlined else {
        out.push(0);
        return out;
    };
    out.push(1);
    put_texts(&mut out, &inlined.hosts);
    put_u64(&mut out, inlined.more);
    out.push(inlined.line.is_some().into());
    let (line, file) = inlined.line.clone().unwrap_or_default();
    put_u32(&mut out, line);
    write_text(&mut out, &file, TEXT_BYTES_MAX);
    out
}

#[expect(clippy::option_option, reason = "the outer one is about the bytes")]
pub fn read_inlined(bytes: &[u8]) -> Option<Option<Inlined>> {
    whole(bytes, |bytes| match bytes.u8()? {
        0 => Some(None),
        1 => {
            let (hosts, more) = (take_texts(bytes)?, bytes.u64()?);
            let has_line = bytes.u8()? != 0;
            let line = (bytes.u32()?, read_text(bytes)?);
            Some(Some(Inlined {
                hosts,
                more,
                line: has_line.then_some(line),
            }))
        }
        _ => None,
    })
}

fn put_texts(out: &mut Vec<u8>, texts: &[String]) {
    put_u32(out, texts.len() as u32);
    texts
        .iter()
        .for_each(|text| write_text(out, text, TEXT_BYTES_MAX));
}

fn take_texts(bytes: &mut Taken<'_>) -> Option<Vec<String>> {
    let count = bytes.u32()?;
    (0..count).map(|_| read_text(bytes)).collect()
}

pub fn write_names(names: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    put_texts(&mut out, names);
    out
}

pub fn read_names(bytes: &[u8]) -> Option<Vec<String>> {
    whole(bytes, take_texts)
}

pub fn write_meant(meant: &Meant) -> Vec<u8> {
    let mut out = Vec::new();
    let distance = meant.near.as_ref().map(|(distance, _)| *distance as u64);
    put_some_u64(&mut out, distance);
    let near = meant.near.as_ref().map(|(_, name)| name);
    for name in [near, meant.begun.as_ref()] {
        // An empty text stands for `None`.
        write_text(&mut out, name.map_or("", String::as_str), TEXT_BYTES_MAX);
    }
    out
}

pub fn read_meant(bytes: &[u8]) -> Option<Meant> {
    whole(bytes, |bytes| {
        let distance = bytes.some_u64()?;
        let distance = distance.map(usize::try_from).transpose().ok()?;
        let (near, begun) = (read_text(bytes)?, read_text(bytes)?);
        Some(Meant {
            near: distance.map(|distance| (distance, near)),
            begun: (!begun.is_empty()).then_some(begun),
        })
    })
}

fn put_site(out: &mut Vec<u8>, site: &Site) {
    put_u64(out, site.addr.0);
    out.extend([site.kind as u8, u8::from(site.class == SiteClass::Stepped)]);
    put_u32(out, site.pushed);
    out.extend([u8::from(site.unless_taken), u8::from(site.repeats)]);
}

/// Reads a site, which has to be in this range. Its place in the file follows from the segments.
fn take_site(
    bytes: &mut Taken<'_>,
    range: &std::ops::Range<u64>,
    segments: &Segments,
) -> Option<Site> {
    let addr = LinkAddr(bytes.u64()?);
    let kind = *Kind::ALL.get(usize::from(bytes.u8()?))?;
    let is_stepped = bytes.u8()? != 0;
    let site = Site {
        addr,
        offset: segments.to_file(addr)?,
        kind,
        class: if is_stepped {
            SiteClass::Stepped
        } else {
            SiteClass::Emulated
        },
        pushed: bytes.u32()?,
        unless_taken: bytes.u8()? != 0,
        repeats: bytes.u8()? != 0,
    };
    range.contains(&addr.0).then_some(site)
}

/// Encodes the sites of as many functions as fit.
pub fn write_placed(all: impl Iterator<Item = Result<Placed, Refusal>>) -> Vec<u8> {
    let mut out = Vec::new();
    put_u32(&mut out, 0);
    let mut count = 0u32;
    for placed in all {
        match placed {
            Err(reason) => out.extend([0, reason as u8]),
            Ok(placed) => {
                out.push(1);
                put_site(&mut out, &placed.entry);
                match placed.returns {
                    Some(Returns::Replaced) => out.push(1),
                    Some(Returns::At(ends)) if ends.len() <= ENDS_MAX => {
                        out.push(2);
                        put_u32(&mut out, ends.len() as u32);
                        ends.iter().for_each(|end| put_site(&mut out, end));
                    }
                    Some(Returns::At(_)) | None => out.push(0),
                }
            }
        }
        count += 1;
        if out.len() > BYTES_MAX {
            break;
        }
    }
    out[..4].copy_from_slice(&count.to_le_bytes());
    out
}

/// Reads the sites of the first ones of these functions.
pub fn read_placed<'f>(
    bytes: &[u8],
    functions: impl Iterator<Item = &'f Function>,
    segments: &Segments,
) -> Option<Vec<Result<Placed, Refusal>>> {
    whole(bytes, |bytes| {
        let count = bytes.u32()? as usize;
        let placed = functions.take(count).map(|function| {
            let start = function.start.0;
            let range = start..start.saturating_add(function.len);
            take_placed(bytes, &range, segments)
        });
        let placed: Vec<_> = placed.collect::<Option<_>>()?;
        (placed.len() == count).then_some(placed)
    })
}

fn take_placed(
    bytes: &mut Taken<'_>,
    range: &std::ops::Range<u64>,
    segments: &Segments,
) -> Option<Result<Placed, Refusal>> {
    match bytes.u8()? {
        0 => return refusal(bytes).map(Err),
        1 => {}
        _ => return None,
    }
    let entry = take_site(bytes, range, segments)?;
    let returns = match bytes.u8()? {
        0 => None,
        1 => Some(Returns::Replaced),
        2 => {
            let count = bytes.u32()? as usize;
            if count > ENDS_MAX {
                return None;
            }
            let ends = (0..count).map(|_| take_site(bytes, range, segments));
            Some(Returns::At(ends.collect::<Option<_>>()?))
        }
        _ => return None,
    };
    Some(Ok(Placed { entry, returns }))
}

/// Encodes as many markers as fit.
pub fn write_markers(markers: &[Marker]) -> Vec<u8> {
    let mut out = Vec::new();
    put_u32(&mut out, 0);
    let mut count = 0u32;
    for marker in markers {
        if out.len() > BYTES_MAX {
            break;
        }
        write_text(&mut out, &marker.name, TEXT_BYTES_MAX);
        put_u64(&mut out, marker.addr.0);
        put_some_u64(&mut out, marker.semaphore.map(|addr| addr.0));
        put_u32(&mut out, marker.arguments.len() as u32);
        for argument in &marker.arguments {
            put_argument(&mut out, argument);
        }
        count += 1;
    }
    out[..4].copy_from_slice(&count.to_le_bytes());
    out
}

pub fn read_markers(bytes: &[u8]) -> Option<Vec<Marker>> {
    whole(bytes, |bytes| {
        let count = bytes.u32()?;
        (0..count).map(|_| take_marker(bytes)).collect()
    })
}

fn take_marker(bytes: &mut Taken<'_>) -> Option<Marker> {
    Some(Marker {
        name: read_text(bytes)?,
        addr: LinkAddr(bytes.u64()?),
        semaphore: bytes.some_u64()?.map(LinkAddr),
        arguments: {
            let count = bytes.u32()?;
            (0..count)
                .map(|_| take_argument(bytes))
                .collect::<Option<_>>()?
        },
    })
}

fn put_argument(out: &mut Vec<u8>, argument: &Argument) {
    write_text(out, &argument.text, TEXT_BYTES_MAX);
    put_u32(out, argument.bytes);
    out.push(argument.is_signed.into());
    let (kind, register, number) = match argument.place {
        None => (0, 0, 0),
        Some(ArgumentPlace::Register(register)) => (1, register, 0),
        Some(ArgumentPlace::Memory(register, offset)) => (2, register, offset),
        Some(ArgumentPlace::Constant(number)) => (3, 0, number),
    };
    out.push(kind);
    put_u32(out, register);
    put_u64(out, number.cast_unsigned());
}

/// Number of registers for integers.
const REGISTERS: u32 = 16;

fn take_argument(bytes: &mut Taken<'_>) -> Option<Argument> {
    let text = read_text(bytes)?;
    let size = bytes.u32().filter(|size| [1, 2, 4, 8].contains(size))?;
    let is_signed = bytes.u8()? != 0;
    let (kind, register, number) = (bytes.u8()?, bytes.u32()?, bytes.u64()?.cast_signed());
    let place = match kind {
        0 => None,
        1 if register < REGISTERS => Some(ArgumentPlace::Register(register)),
        2 if register < REGISTERS => Some(ArgumentPlace::Memory(register, number)),
        3 => Some(ArgumentPlace::Constant(number)),
        _ => return None,
    };
    Some(Argument {
        text,
        bytes: size,
        is_signed,
        place,
    })
}

/// Encodes the function that contains each marker, as far as it decides the place of the marker, and
/// the site.
pub fn write_marker_sites(
    all: impl ExactSizeIterator<Item = Result<(Function, Site), Refusal>>,
) -> Vec<u8> {
    let mut out = Vec::new();
    put_u32(&mut out, all.len() as u32);
    for found in all {
        match found {
            Err(reason) => out.extend([0, reason as u8]),
            Ok((function, site)) => {
                out.extend([1, function.language as u8]);
                put_site(&mut out, &site);
            }
        }
    }
    out
}

/// Reads the language and the site of each of these markers.
pub fn read_marker_sites(
    bytes: &[u8],
    addrs: &[LinkAddr],
    segments: &Segments,
) -> Option<MarkerSites> {
    whole(bytes, |bytes| {
        if bytes.u32()? as usize != addrs.len() {
            return None;
        }
        let one = |addr: &LinkAddr| match bytes.u8()? {
            0 => refusal(bytes).map(Err),
            1 => {
                let range = addr.0..addr.0.checked_add(1)?;
                Some(Ok((language(bytes)?, take_site(bytes, &range, segments)?)))
            }
            _ => None,
        };
        addrs.iter().map(one).collect()
    })
}

/// Reads an answer, after which there must be no more bytes.
fn whole<T>(bytes: &[u8], read: impl FnOnce(&mut Taken<'_>) -> Option<T>) -> Option<T> {
    let mut bytes = Taken(bytes);
    let read = read(&mut bytes)?;
    bytes.0.is_empty().then_some(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileOffset, Segment};
    use proptest::prelude::*;

    fn segments() -> Segments {
        Segments::new(vec![Segment {
            offset: 0x1000,
            vaddr: 0x401000,
            filesz: 0x1000,
            executable: true,
        }])
    }

    fn function() -> Function {
        Function {
            name: "work(int)".into(),
            raw: b"_Z4worki".to_vec(),
            start: LinkAddr(0x401100),
            len: 0x40,
            language: Language::Cpp,
            inside: None,
        }
    }

    fn site(addr: u64) -> Site {
        Site {
            addr: LinkAddr(addr),
            offset: FileOffset(addr - 0x400000),
            kind: Kind::AfterPrologue,
            class: SiteClass::Stepped,
            pushed: 8,
            unless_taken: true,
            repeats: false,
        }
    }

    #[track_caller]
    fn check<T: PartialEq + std::fmt::Debug>(
        bytes: &[u8],
        expected: T,
        read: impl Fn(&[u8]) -> Option<T>,
    ) {
        assert_eq!(read(bytes), Some(expected));
        for len in 0..bytes.len() {
            assert_eq!(read(&bytes[..len]), None, "{len}");
        }
        assert_eq!(read(&[bytes, &[0]].concat()), None);
    }

    #[test]
    fn answers_arrive_as_they_were_given() {
        let facts = SitesFacts {
            build_id: vec![7; 20],
            segments: segments(),
            class: Class::Wide,
            machine: 62,
        };
        check(&write_facts(&facts), facts, read_facts);
        let needed = Needed {
            loader: Some("/lib/ld.so".into()),
            libraries: vec!["libc.so.6".into()],
            rpath: None,
            runpath: Some("$ORIGIN".into()),
        };
        check(&write_needed(&needed), needed, read_needed);
        let functions = Functions {
            told: vec![function()],
            all: 1,
        };
        check(
            &write_functions(&functions.told),
            functions.clone(),
            read_functions,
        );
        check(&write_fitting(None), None, read_fitting);
        let fitting = (Fit::Plain, vec![function()]);
        let expected = Some((Fit::Plain, functions.clone()));
        check(&write_fitting(Some(&fitting)), expected, read_fitting);
        for at in [Ok(function()), Err(Refusal::Inlined)] {
            check(&write_at(&at), at, read_at);
        }
        check(&write_line(None), LineFunctions::NoLines, read_line);
        for no_line in [
            NoLine::NoSuchFile,
            NoLine::NoCode(None),
            NoLine::NoCode(Some(7)),
        ] {
            let expected = LineFunctions::Known(Err(no_line));
            check(&write_line(Some(&Err(no_line))), expected, read_line);
        }
        let expected = LineFunctions::Known(Ok(functions));
        check(
            &write_line(Some(&Ok(vec![function()]))),
            expected,
            read_line,
        );
        for line in [None, Some((12, "clamp.c".to_string()))] {
            let inlined = Some(Inlined {
                hosts: vec!["main".into()],
                more: 2,
                line,
            });
            check(&write_inlined(inlined.as_ref()), inlined, read_inlined);
        }
        check(
            &write_names(&["work".into()]),
            vec!["work".to_string()],
            read_names,
        );
        for near in [None, Some((1, "work".to_string()))] {
            let begun = near.is_none().then(|| "worker".to_string());
            let meant = Meant { near, begun };
            check(&write_meant(&meant), meant, read_meant);
        }
    }

    #[test]
    fn markers_arrive_as_they_were_given() {
        let places = [
            None,
            Some(ArgumentPlace::Register(15)),
            Some(ArgumentPlace::Memory(5, -16)),
            Some(ArgumentPlace::Constant(-1)),
        ];
        let argument = |place| Argument {
            text: "-4@%eax".into(),
            bytes: 4,
            is_signed: true,
            place,
        };
        let marker = Marker {
            name: "app:begin".into(),
            addr: LinkAddr(0x401110),
            semaphore: Some(LinkAddr(0x601000)),
            arguments: places.map(argument).to_vec(),
        };
        let markers = vec![marker];
        check(&write_markers(&markers), markers, read_markers);
        let found = vec![Ok((function(), site(0x401110))), Err(Refusal::NoCode)];
        let bytes = write_marker_sites(found.into_iter());
        let addrs = [LinkAddr(0x401110), LinkAddr(1)];
        let expected = vec![Ok((Language::Cpp, site(0x401110))), Err(Refusal::NoCode)];
        check(&bytes, expected, |bytes| {
            read_marker_sites(bytes, &addrs, &segments())
        });
        // A site anywhere else than at the marker.
        let others = [LinkAddr(0x401111), LinkAddr(1)];
        assert_eq!(read_marker_sites(&bytes, &others, &segments()), None);
    }

    #[test]
    fn sites_are_inside_of_their_functions() {
        let placed = |returns| Placed {
            entry: site(0x401104),
            returns,
        };
        let all = [
            Ok(placed(None)),
            Ok(placed(Some(Returns::Replaced))),
            Ok(placed(Some(Returns::At(vec![
                site(0x401120),
                site(0x40113f),
            ])))),
            Err(Refusal::TooShort),
        ];
        let bytes = write_placed(all.iter().cloned());
        let functions = [function(), function(), function(), function()];
        let read = |bytes: &[u8]| read_placed(bytes, functions.iter(), &segments());
        check(&bytes, all.to_vec(), read);
        for outside in [0x4010ff, 0x401140] {
            let placed = Placed {
                entry: site(outside),
                returns: None,
            };
            assert_eq!(read(&write_placed([Ok(placed)].into_iter())), None);
            let placed = placed_with_end(outside);
            assert_eq!(read(&write_placed([Ok(placed)].into_iter())), None);
        }
        // More than was asked for.
        let five = (0..5).map(|_| Err(Refusal::TooShort));
        assert_eq!(read(&write_placed(five)), None);
    }

    fn placed_with_end(addr: u64) -> Placed {
        Placed {
            entry: site(0x401104),
            returns: Some(Returns::At(vec![site(addr)])),
        }
    }

    #[test]
    fn many_functions_are_counted_and_the_first_ones_told() {
        let functions = vec![function(); FUNCTIONS_MAX + 5];
        let bytes = write_functions(&functions);
        assert!(bytes.len() <= BYTES_MAX + TEXT_BYTES_MAX, "{}", bytes.len());
        let read = read_functions(&bytes).unwrap();
        assert_eq!(read.all, FUNCTIONS_MAX as u64 + 5);
        assert_eq!(read.told.len(), FUNCTIONS_MAX);
        let long = Function {
            name: "x".repeat(100_000),
            ..function()
        };
        let bytes = write_functions(&vec![long; 1000]);
        assert!(bytes.len() <= BYTES_MAX + TEXT_BYTES_MAX, "{}", bytes.len());
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            super::super::check_any_answer(&bytes);
        }
    }
}
