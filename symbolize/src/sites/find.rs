//! Finds the functions of a file that the user specified.

use std::borrow::Cow;
use std::collections::HashSet;

use memchr::memmem;

use super::function::{Function, Language};
use super::refusal::Refusal;
use crate::demangle::{Scheme, demangle};
use crate::{ElfSymbols, LinkAddr, sanitize};

/// How the user specified a function.
#[derive(Clone, Copy)]
pub enum Wanted<'a> {
    /// By a name: as the compiler wrote it, or demangled, with or without parameters, template
    /// arguments, and the namespaces before it.
    Named(&'a str),
    /// By a predicate on the demangled name.
    Matching(&'a dyn Fn(&str) -> bool),
    /// By the address of the function, or of an instruction.
    At(LinkAddr),
}

/// How well a name matches, best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// Only without its namespaces.
    Tail,
    /// Only without its template arguments.
    Plain,
    /// As a whole.
    Whole,
}

impl Fit {
    /// Every degree, in the order of the enum.
    pub const ALL: [Fit; 3] = [Fit::Tail, Fit::Plain, Fit::Whole];
}

/// A function whose name matches.
struct Named {
    fit: Fit,
    raw: Vec<u8>,
    start: LinkAddr,
    is_go: bool,
}

/// Returns all matching functions of a file. If a name matches several functions in different ways,
/// only the best matches are returned. A compiler's copies of a function (`.constprop.0`) count as
/// functions; parts that it split off (`.cold`, `.part.0`) do not. Code with several matching
/// names, such as one for each version of a library, is one function.
pub fn functions(symbols: &ElfSymbols, wanted: Wanted<'_>) -> Result<Vec<Function>, Refusal> {
    match wanted {
        Wanted::At(addr) => at(symbols, addr).map(|function| vec![function]),
        Wanted::Named(name) => Ok(fitting(symbols, name).map_or_else(Vec::new, |(_, found)| found)),
        Wanted::Matching(is_meant) => {
            let mut found = Vec::new();
            each(symbols, None, &mut |raw, start, is_go| {
                if !is_part(raw) && is_meant(&shown(raw, is_go)) {
                    found.push((raw.to_vec(), start, is_go));
                }
            });
            let mut known = HashSet::new();
            let found = found.into_iter().filter(|(raw, start, is_go)| {
                known.insert((shown(raw, *is_go).into_owned(), *start))
            });
            Ok(found
                .filter_map(|(raw, start, is_go)| function(symbols, raw, start, is_go))
                .collect())
        }
    }
}

/// Returns the functions of a file that match a name best, and how well; `None` if none matches.
pub fn fitting(symbols: &ElfSymbols, name: &str) -> Option<(Fit, Vec<Function>)> {
    let mut found = named(symbols, name);
    let best = found.iter().map(|named| named.fit).max()?;
    let mut starts = HashSet::new();
    found.retain(|named| named.fit == best && starts.insert(named.start));
    let found = found.into_iter();
    let functions =
        found.filter_map(|named| function(symbols, named.raw, named.start, named.is_go));
    Some((best, functions.collect()))
}

/// Returns the functions that match best over all files, for each file. If a function has exactly
/// the name, such as `read` of the C library, then one with this name in a class or package of
/// another file, such as `std::istream::read`, is not meant.
pub fn best_of(files: Vec<Option<(Fit, Vec<Function>)>>) -> Vec<Vec<Function>> {
    let best = files.iter().flatten().map(|(fit, _)| *fit).max();
    let of_file = |found: Option<(Fit, Vec<Function>)>| match found {
        Some((fit, functions)) if Some(fit) == best => functions,
        _ => Vec::new(),
    };
    files.into_iter().map(of_file).collect()
}

/// Returns the functions of a file whose name matches in any way.
fn named(symbols: &ElfSymbols, name: &str) -> Vec<Named> {
    let fitting = |raw: &[u8], start, is_go| {
        let (fit, raw) = (fit(raw, name, is_go)?, raw.to_vec());
        Some(Named {
            fit,
            raw,
            start,
            is_go,
        })
    };
    let mut found = Vec::new();
    each(symbols, Some(last_word(name)), &mut |raw, start, is_go| {
        found.extend(fitting(raw, start, is_go));
    });
    if found.is_empty() {
        // For a function with several names only one is displayed, which may not be the matching
        // one.
        symbols.for_each_name(last_word(name), &mut |raw, start| {
            if symbols.go().is_none_or(|go| go.extent(start).is_none()) {
                found.extend(fitting(raw, start, false));
            }
        });
    }
    found
}

/// Calls `take` with each function whose name contains `word`.
fn each(symbols: &ElfSymbols, word: Option<&str>, take: &mut dyn FnMut(&[u8], LinkAddr, bool)) {
    let finder = word.map(|word| memmem::Finder::new(word.as_bytes()));
    let has_word = |raw: &[u8]| finder.as_ref().is_none_or(|word| word.find(raw).is_some());
    if let Some(go) = symbols.go() {
        for start in go.starts() {
            if let Some(raw) = go.name_at(start).filter(|raw| has_word(raw)) {
                take(&raw, start, true);
            }
        }
    }
    let is_go = |addr| symbols.go().is_some_and(|go| go.extent(addr).is_some());
    for symbol in symbols.functions() {
        if has_word(symbol.name) && !is_go(symbol.start) {
            take(symbol.name, symbol.start, false);
        }
    }
}

/// Returns the function that starts at `addr`, or contains the instruction there.
fn at(symbols: &ElfSymbols, addr: LinkAddr) -> Result<Function, Refusal> {
    let extent = symbols.extent(addr).ok_or(Refusal::NoCode)?;
    let is_go = symbols.go().is_some_and(|go| go.extent(addr).is_some());
    let raw = match symbols.go().filter(|_| is_go) {
        Some(go) => go.name_at(extent.start).unwrap_or_default(),
        None => symbols
            .find_link(addr)
            .map_or_else(|_| Vec::new(), |symbol| symbol.name.to_vec()),
    };
    Ok(Function {
        name: shown(&raw, is_go).into_owned(),
        language: language_of(&raw, is_go),
        raw,
        start: extent.start,
        len: extent.end.0 - extent.start.0,
        inside: (addr != extent.start).then_some(addr),
    })
}

fn function(symbols: &ElfSymbols, raw: Vec<u8>, start: LinkAddr, is_go: bool) -> Option<Function> {
    let extent = symbols
        .extent(start)
        .filter(|extent| extent.start == start)?;
    Some(Function {
        name: shown(&raw, is_go).into_owned(),
        language: language_of(&raw, is_go),
        raw,
        start,
        len: extent.end.0 - extent.start.0,
        inside: None,
    })
}

fn language_of(raw: &[u8], is_go: bool) -> Language {
    match demangle(raw).scheme() {
        _ if is_go => Language::Go,
        Scheme::Cpp => Language::Cpp,
        Scheme::Rust => Language::Rust,
        Scheme::Raw => Language::C,
    }
}

/// Returns the displayed name; in C++ with parameters, by which overloads differ.
fn shown(raw: &[u8], is_go: bool) -> Cow<'_, str> {
    if is_go {
        sanitize(raw)
    } else {
        demangle(raw).full()
    }
}

/// Whether a function with this mangled name matches the name that a user gave. `is_go` says that
/// the program is written in Go.
pub fn is_meant(raw: &[u8], name: &str, is_go: bool) -> bool {
    // Most names are excluded by a search for the last word.
    memmem::find(raw, last_word(name).as_bytes()).is_some() && fit(raw, name, is_go).is_some()
}

fn fit(raw: &[u8], name: &str, is_go: bool) -> Option<Fit> {
    if raw == name.as_bytes() {
        return Some(Fit::Whole);
    }
    if is_part(raw) {
        return None;
    }
    if is_go {
        let shown = sanitize(raw);
        return tail_fit(&shown, name, '/');
    }
    let demangled = demangle(raw);
    let (full, short) = (demangled.full(), demangled.short());
    let short = without_clone_suffix(&short);
    if full == name || short == name {
        return Some(Fit::Whole);
    }
    let plain = without_tags(&without_template_arguments(short));
    if plain == name {
        return Some(Fit::Plain);
    }
    // The parameters as they were written, without the return type of a template.
    if name.ends_with(')') && full.ends_with(name) {
        return Some(Fit::Plain);
    }
    tail_fit(short, name, ':').or_else(|| tail_fit(&plain, name, ':'))
}

/// Whether `name` is `whole`, or its end after a separator.
fn tail_fit(whole: &str, name: &str, separator: char) -> Option<Fit> {
    let before = whole.strip_suffix(name)?;
    if before.is_empty() {
        return Some(Fit::Whole);
    }
    before.ends_with(separator).then_some(Fit::Tail)
}

/// Whether the name belongs to a part of a function, which has no calls of its own.
pub fn is_part(raw: &[u8]) -> bool {
    [&b".cold"[..], b".part."]
        .iter()
        .any(|mark| memmem::find(raw, mark).is_some())
}

fn without_clone_suffix(short: &str) -> &str {
    let marks = [".constprop", ".isra", ".llvm.", ".lto_priv"];
    let at = marks.iter().filter_map(|mark| short.find(mark)).min();
    at.map_or(short, |at| &short[..at])
}

/// Converts `a<b<c>>::d` to `a::d`.
fn without_template_arguments(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    let mut depth = 0u32;
    for character in name.chars() {
        match character {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            _ if depth == 0 => plain.push(character),
            _ => {}
        }
    }
    plain
}

/// Converts `a::b[abi:cxx11]` to `a::b`: users do not write the mark of the newer string type.
fn without_tags(name: &str) -> String {
    let mut plain = name.to_string();
    while let Some(start) = plain.find("[abi:") {
        match plain[start..].find(']') {
            Some(len) => plain.replace_range(start..=start + len, ""),
            None => break,
        }
    }
    plain
}

/// Returns the part of a name that its mangled form contains as well: the last identifier.
fn last_word(name: &str) -> &str {
    let head = name.split(['(', '<']).next().unwrap_or(name);
    let is_identifier = |c: char| c.is_alphanumeric() || c == '_';
    let head = head.trim_end_matches(|c| !is_identifier(c));
    match head.rfind(|c| !is_identifier(c)) {
        // An operator: its mangled form has two letters.
        _ if head.ends_with("operator") || head.contains("operator") => "",
        Some(at) => {
            let behind = at + head[at..].chars().next().map_or(1, char::len_utf8);
            &head[behind..]
        }
        None => head,
    }
}
