//! `proftop symbolize`: prints the functions and lines of addresses.
//!
//! ```text
//! $ proftop symbolize ./server 0x1209
//! 0x1209  mix at src/mix.c:4
//!         inlined into work at src/work.c:17
//! $ proftop symbolize ./server < crash.log      every address in place
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `modules` | files and tables by path, name or build-id, each opened once |
//! | `process` | the mappings of a process |
//! | `lines` | standard input, line by line |
//! | `log` | text that contains addresses |
//! | `find` | finds them in a line |
//! | `upcoming` | the addresses that are going to be answered |
//! | `format` | the formats of answers |
//! | `ahead` | making tables ahead of time |
//! | `tables` | a directory of such tables |
//! | `fetch` | debug files from debuginfod servers |

mod ahead;
mod fetch;
mod find;
mod format;
mod lines;
mod log;
mod modules;
mod process;
mod tables;
mod upcoming;

use crate::cli::{SymbolFormat, SymbolizeConfig, SymbolizeTask};
use crate::failure::{Exit, Failure};
use crate::stderr;
use engine::debuginfod::client;
use format::Style;
use lines::Lines;
use modules::Modules;
use probe::confine;
use probe::files::Opening;
use process::Process;
use std::io::{self, BufWriter, Write};
use symbolize::LinkAddr;
use symbolize::resolver::Resolved;
use upcoming::Upcoming;

/// Runs `symbolize`: answers the addresses on the command line, or those in standard input, or
/// makes tables ahead of time.
pub fn run(config: &SymbolizeConfig) -> Result<Exit, Failure> {
    let style = Style {
        format: config.format,
        demangle: config.demangle,
    };
    give_up_rights(&config.task)?;
    match &config.task {
        SymbolizeTask::BuildCache { directory, files } => ahead::build(directory, files),
        SymbolizeTask::Process { pid, addresses } => {
            let place = LookupScope::Process(Process::read(*pid)?);
            answer(&place, Modules::of_files(), style, addresses)
        }
        SymbolizeTask::File {
            file,
            cache,
            addresses,
        } => {
            let modules = match cache {
                Some(directory) => Modules::of_cache(directory)?,
                None => Modules::of_files(),
            };
            let place = match file {
                Some(file) => LookupScope::File(modules.open_named(file)?),
                None => LookupScope::Anywhere,
            };
            answer(&place, modules, style, addresses)
        }
    }
}

/// Gives up the rights that the task does not need. It takes no samples, and reads files and text that
/// others may have written. Only files that another process has mapped take more rights than those of
/// the user; they are opened by processes that do nothing else.
fn give_up_rights(task: &SymbolizeTask) -> Result<(), Failure> {
    let opening = match task {
        SymbolizeTask::Process { .. } => Opening::LikeBefore,
        SymbolizeTask::File { .. } | SymbolizeTask::BuildCache { .. } => Opening::LikeUser,
    };
    super::become_user(opening)?;
    // The client of debuginfod is a program of the user.
    if !client::is_wanted() {
        confine::start_nothing();
    }
    Ok(())
}

/// Where an address is looked up if the text does not name its file.
enum LookupScope {
    File(modules::Module),
    Process(Process),
    Anywhere,
}

impl LookupScope {
    /// Returns functions and lines of an address. None if there is no code at it.
    fn resolve(&self, addr: u64, modules: &Modules) -> Option<Resolved> {
        match self {
            LookupScope::File(module) => {
                modules.prepare(module, b"");
                Some(module.resolve(LinkAddr(addr)))
            }
            LookupScope::Process(process) => process.resolve(addr, modules),
            LookupScope::Anywhere => None,
        }
    }

    /// Whether there is code at this address: only then a number in a text may be an address.
    fn has_code_at(&self, addr: u64) -> bool {
        match self {
            LookupScope::File(module) => module.segments().is_executable(LinkAddr(addr)),
            LookupScope::Process(process) => process.has_code_at(addr),
            LookupScope::Anywhere => false,
        }
    }
}

/// Standard output. It marks its errors, to tell them from errors of reading the input.
struct Answers<W>(W);

/// An error of writing to standard output.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unwritten(io::Error);

impl<W: Write> Write for Answers<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes);
        written.map_err(|error| io::Error::new(error.kind(), Unwritten(error)))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.0.flush();
        flushed.map_err(|error| io::Error::new(error.kind(), Unwritten(error)))
    }
}

fn answer(
    place: &LookupScope,
    modules: Modules,
    style: Style,
    addresses: &[String],
) -> Result<Exit, Failure> {
    let mut out = BufWriter::new(Answers(io::stdout().lock()));
    let written = if !addresses.is_empty() {
        let text: String = addresses.iter().map(|word| format!("{word}\n")).collect();
        modules.expect(Upcoming::of(text.as_bytes(), style.format));
        addresses
            .iter()
            .try_for_each(|word| answer_word(word, place, &modules, style, &mut out))
    } else {
        answer_input(place, &modules, style, &mut out)
    };
    let written = written.and_then(|()| out.flush());
    drop(out);
    for sentence in modules.missed().into_iter().chain(modules.unread()) {
        stderr::say(sentence);
    }
    if written.is_ok() {
        modules.keep();
    }
    match written {
        // A reader that closes the output is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let is_ours = error.get_ref().is_some_and(|error| error.is::<Unwritten>());
            Err(Failure::failed(if is_ours {
                format!("failed to write to standard output: {error}")
            } else {
                format!("failed to symbolize standard input: {error}")
            }))
        }
        _ => Ok(Exit::Done),
    }
}

/// Answers one word of the command line, or a line that contains only an address. Any other text is
/// searched for addresses.
fn answer_word(
    word: &str,
    place: &LookupScope,
    modules: &Modules,
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    match number(word.trim(), style.format) {
        Some(addr) => {
            let resolved = place.resolve(addr, modules);
            format::answer(addr, resolved.as_ref(), style, out)
        }
        None => log::line(word.as_bytes(), place, modules, style, out),
    }
}

/// Answers standard input line by line. The output is flushed whenever all input that was read is
/// answered, so that a program can write an address and wait for the answer.
fn answer_input(
    place: &LookupScope,
    modules: &Modules,
    style: Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut input = Lines::of_input();
    let expect = |text: &[u8]| modules.expect(Upcoming::of(text, style.format));
    while let Some(line) = input.next(expect)? {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        match std::str::from_utf8(text) {
            Ok(word) if number(word.trim(), style.format).is_some() => {
                answer_word(word, place, modules, style, out)?;
            }
            _ => log::line(text, place, modules, style, out)?,
        }
        if input.is_all_answered() {
            out.flush()?;
        }
    }
    Ok(())
}

/// Parses a number. It is hexadecimal, with or without `0x`; but in the format of llvm-symbolizer a
/// number without `0x` is decimal.
fn number(word: &str, format: SymbolFormat) -> Option<u64> {
    let hex = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    match (hex, format) {
        (Some(digits), _) => u64::from_str_radix(digits, 16).ok(),
        (None, SymbolFormat::Llvm) => word.parse().ok(),
        (None, _) => u64::from_str_radix(word, 16).ok(),
    }
}
