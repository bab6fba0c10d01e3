//! Finds the functions at an address, by debug information or by the tables of a Go program.

use engine::shown;
use std::sync::Arc;
use symbolize::{ElfSymbols, FileOffset, FileSource, Lines, Symbolizer, sanitize};

/// A function at an address, and its line. Both are safe to print.
#[derive(Debug)]
pub struct Frame {
    pub function: String,
    /// Empty if it is not known.
    pub file: String,
    /// 0 if it is not known.
    pub line: u32,
}

/// The source of the lines of one file.
#[derive(Debug)]
pub enum LineSource {
    Debug(Arc<Lines>),
    /// The Go tables among the symbols of the file.
    Go,
    /// There are no lines, for this reason.
    None(String),
}

impl LineSource {
    /// Opens the lines of a file. `debug_bytes_max` is the symbolizer's limit for debug
    /// information, which the message for larger ones contains.
    pub fn new(
        symbolizer: &Symbolizer,
        symbols: &ElfSymbols,
        source: FileSource<'_>,
        debug_bytes_max: u64,
    ) -> Self {
        if symbols.go().is_some() {
            return LineSource::Go;
        }
        match symbolizer.lines(source) {
            Ok(Some(lines)) => LineSource::Debug(lines),
            Ok(None) => LineSource::None("it has no debug information (gcc, clang: -g)".into()),
            Err(symbolize::Reason::Refused) => {
                let max = debug_bytes_max >> 20;
                LineSource::None(format!(
                    "it has more debug information than the {max} MB that there is memory for"
                ))
            }
            Err(reason) => {
                let why = reason.explain().trim_end_matches('.');
                LineSource::None(format!("its debug information cannot be read: {why}"))
            }
        }
    }

    /// Returns the functions at an offset in the file, innermost first. The last one contains the
    /// code; the others are inlined into it.
    pub fn find(&self, symbols: &ElfSymbols, offset: FileOffset) -> Vec<Frame> {
        match self {
            LineSource::Debug(lines) => {
                lines.find(offset).map_or_else(Vec::new, |(table, addr)| {
                    let frame = |frame: symbolize::table::SourceFrame<'_>| Frame {
                        function: frame.function.map_or_else(String::new, shown),
                        file: sanitize(&frame.path()).into_owned(),
                        line: frame.line,
                    };
                    table.find(addr).map(frame).collect()
                })
            }
            LineSource::Go => {
                let addr = symbols.segments().to_link(offset);
                let found = symbols.go().zip(addr).map(|(go, addr)| go.find(addr));
                let frame = |frame: symbolize::GoFrame| Frame {
                    function: sanitize(&frame.short_name()).into_owned(),
                    file: sanitize(&frame.file).into_owned(),
                    line: frame.line,
                };
                found.into_iter().flatten().map(frame).collect()
            }
            LineSource::None(_) => Vec::new(),
        }
    }
}
