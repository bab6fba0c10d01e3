//! The formats of answers.

use super::SymbolFormat;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};
use symbolize::resolver::Resolved;
use symbolize::{Reason, demangle, sanitize};

/// The format of answers, and whether names are demangled.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub format: SymbolFormat,
    pub demangle: bool,
}

/// One function of an answer.
struct Line<'r> {
    /// The printed name, demangled if the style says so. None if it is not known.
    name: Option<Cow<'r, str>>,
    /// The name in the symbol table.
    linkage_name: Option<Cow<'r, str>>,
    /// The source file. None if it is not known.
    path: Option<Cow<'r, str>>,
    /// 0 if it is not known, as is the column.
    line: u32,
    column: u32,
}

/// Writes the answer for one address in the chosen format. `resolved` is None if the address is in
/// no file.
pub fn answer(
    addr: u64,
    resolved: Option<&Resolved>,
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let lines = resolved
        .map(|resolved| lines(resolved, style))
        .unwrap_or_default();
    match style.format {
        SymbolFormat::Text => text(addr, &lines, why(resolved), out),
        SymbolFormat::Json => json(addr, &lines, why(resolved), out),
        SymbolFormat::Llvm => llvm(&lines, out),
        SymbolFormat::Addr2line => addr2line(&lines, out),
    }
}

/// Writes the answer that follows an address in a text, such as ` [mix at mix.c:4, inlined into
/// work at work.c:17]`.
pub fn in_place(resolved: &Resolved, style: Style, out: &mut impl Write) -> io::Result<()> {
    write!(out, " [")?;
    for (index, line) in lines(resolved, style).iter().enumerate() {
        let before = if index > 0 { ", inlined into " } else { "" };
        write!(out, "{before}{}", sentence(line))?;
    }
    write!(out, "]")
}

/// Returns why an address has no name. None if it has one.
fn why(resolved: Option<&Resolved>) -> Option<Reason> {
    match resolved {
        Some(resolved) => resolved.symbol.as_ref().err().copied(),
        None => Some(Reason::Unmapped),
    }
}

/// Returns the functions at an address, the innermost first: each was inlined into the next one.
/// For a file without debug information, only the symbol is known. Every string is made safe to
/// print.
fn lines(resolved: &Resolved, style: Style) -> Vec<Line<'_>> {
    let symbol = resolved.symbol.as_deref().ok();
    let name = |name: &[u8]| match (style.demangle, style.format) {
        (true, SymbolFormat::Text) => sanitize(demangle(name).short().as_bytes()).into_owned(),
        (true, _) => sanitize(demangle(name).full().as_bytes()).into_owned(),
        (false, _) => sanitize(name).into_owned(),
    };
    let line = |function: Option<&[u8]>, path: &[u8], line, column| Line {
        name: function.map(|function| name(function).into()),
        linkage_name: function.map(|function| sanitize(function).into_owned().into()),
        path: (!path.is_empty()).then(|| sanitize(path).into_owned().into()),
        line,
        column,
    };
    let last = resolved.frames.len().saturating_sub(1);
    let frames = resolved.frames.iter().enumerate();
    let mut lines: Vec<Line<'_>> = frames
        .map(|(index, frame)| {
            let own = Some(&frame.function[..]).filter(|name| !name.is_empty());
            // The last frame is the function that contains the code. Its name in the symbol table
            // is better, because it distinguishes clones (`.cold`, `.part.0`).
            let function = if index == last { symbol.or(own) } else { own };
            line(function, &frame.path, frame.line, frame.column)
        })
        .collect();
    if lines.is_empty() && symbol.is_some() {
        lines.push(line(symbol, &[], 0, 0));
    }
    lines
}

/// Returns a function with its place, as in `mix at mix.c:4`.
fn sentence(line: &Line<'_>) -> String {
    let mut sentence = line.name.as_deref().unwrap_or("?").to_owned();
    if let Some(path) = &line.path {
        sentence += &format!(" at {path}");
        if line.line > 0 {
            sentence += &format!(":{}", line.line);
        }
    }
    sentence
}

/// Writes the address and its function on one line, and below it, indented, each function into
/// which this was inlined. An address without a name gets `?` and the reason.
fn text(
    addr: u64,
    lines: &[Line<'_>],
    why: Option<Reason>,
    out: &mut impl Write,
) -> io::Result<()> {
    let addr = format!("{addr:#x}");
    let [first, callers @ ..] = lines else {
        let why = why.map_or("", Reason::explain);
        return writeln!(out, "{addr}  ?  {why}");
    };
    writeln!(out, "{addr}  {}", sentence(first))?;
    let indent = addr.len() + 2;
    callers
        .iter()
        .try_for_each(|line| writeln!(out, "{:indent$}inlined into {}", "", sentence(line)))
}

/// The answer for one address, as one object on a line.
#[derive(Serialize)]
struct JsonAnswer<'l> {
    address: String,
    frames: Vec<JsonFrame<'l>>,
    /// Why the address has no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_name: Option<&'static str>,
}

/// A function at the address. `inlined` is false only for the last one, which contains the code.
#[derive(Serialize)]
struct JsonFrame<'l> {
    function: Option<&'l str>,
    linkage_name: Option<&'l str>,
    file: Option<&'l str>,
    line: Option<u32>,
    column: Option<u32>,
    inlined: bool,
}

/// Writes an object on one line. A line or column that is 0, because it is not known, becomes null.
fn json(
    addr: u64,
    lines: &[Line<'_>],
    why: Option<Reason>,
    out: &mut impl Write,
) -> io::Result<()> {
    let known = |number| Some(number).filter(|&number| number > 0);
    let frames = lines.iter().enumerate().map(|(index, line)| JsonFrame {
        function: line.name.as_deref(),
        linkage_name: line.linkage_name.as_deref(),
        file: line.path.as_deref(),
        line: known(line.line),
        column: known(line.column),
        inlined: index + 1 < lines.len(),
    });
    let answer = JsonAnswer {
        address: format!("{addr:#x}"),
        frames: frames.collect(),
        no_name: why.filter(|_| lines.is_empty()).map(Reason::label),
    };
    serde_json::to_writer(&mut *out, &answer)?;
    writeln!(out)
}

/// Writes the format of llvm-symbolizer: for each function its name and its place on two lines,
/// then an empty line.
fn llvm(lines: &[Line<'_>], out: &mut impl Write) -> io::Result<()> {
    for line in lines {
        let (name, path) = (line.name.as_deref(), line.path.as_deref());
        writeln!(out, "{}", name.unwrap_or("??"))?;
        writeln!(
            out,
            "{}:{}:{}",
            path.unwrap_or("??"),
            line.line,
            line.column
        )?;
    }
    if lines.is_empty() {
        writeln!(out, "??\n??:0:0")?;
    }
    writeln!(out)
}

/// Writes the format of `addr2line -f -i`: `?` for an unknown line in a known file.
fn addr2line(lines: &[Line<'_>], out: &mut impl Write) -> io::Result<()> {
    for line in lines {
        writeln!(out, "{}", line.name.as_deref().unwrap_or("??"))?;
        match (&line.path, line.line) {
            (Some(path), 0) => writeln!(out, "{path}:?")?,
            (Some(path), number) => writeln!(out, "{path}:{number}")?,
            (None, _) => writeln!(out, "??:?")?,
        }
    }
    if lines.is_empty() {
        writeln!(out, "??\n??:0")
    } else {
        Ok(())
    }
}
