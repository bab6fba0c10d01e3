//! Demangles the names of C++ compilers (Itanium C++ ABI, chapter 5.1).
//!
//! The demangler recurses and tries alternatives, one inside of the other. With its own limits a
//! malicious name of a hundred bytes keeps it busy for hours or overflows the stack. How long it
//! takes depends on how deeply it may nest, so that nearly all names get little depth, and the few
//! others a thread with a large stack that is left alone if it takes too long.

use std::fmt::Write;

use cpp_demangle::error::Error;
use cpp_demangle::{BorrowedSymbol, DemangleOptions, DemangleWrite, ParseOptions};

use super::apart::Apart;
use super::capped::Capped;

/// Nesting limit that is enough for nearly all names: 166 of 278,463 names in libLLVM, libstdc++ and
/// node are deeper. None of ten million names made to take long took more than 5 ms; with a limit of
/// 64 one took 10 ms, and with 96 some take hours. It needs at most a quarter of a MiB of stack; in
/// builds without optimisation, whose frames are ten times larger, at most one MiB.
const SHALLOW: Depth = Depth(if cfg!(debug_assertions) { 32 } else { 48 });

/// Nesting limit for the deepest expression templates known (Qt's string builder needs more than
/// 160). It needs up to 2 MiB of stack, and up to 16 MiB without optimisation (names of 1000 nested
/// `ad`).
const DEEP: Depth = Depth(256);

/// The work on deep names, some of which may be hostile.
static DEEP_NAMES: Apart = Apart::new();

/// A limit on the nesting, when parsing and when printing.
#[derive(Debug, Clone, Copy)]
struct Depth(u32);

/// `ns::Class<T>::method`.
pub(super) fn short(stem: &str) -> Option<String> {
    demangle(stem, || DemangleOptions::new().no_params().no_return_type())
}

/// `int ns::Class<T>::method(char const*) const`.
pub(super) fn full(stem: &str) -> Option<String> {
    demangle(stem, DemangleOptions::new)
}

/// Whether a thread of this process is still busy with a name that takes too long, or slow names have
/// used up their time.
pub(super) fn is_worn() -> bool {
    DEEP_NAMES.is_worn()
}

fn demangle(stem: &str, options: fn() -> DemangleOptions) -> Option<String> {
    match demangle_within(stem, options(), SHALLOW) {
        Err(TooDeep) => {
            let stem = stem.to_owned();
            let deep = DEEP_NAMES.run(move || demangle_within(&stem, options(), DEEP));
            deep?.ok()?
        }
        Ok(demangled) => demangled,
    }
}

/// The name nests more deeply than allowed.
struct TooDeep;

fn demangle_within(
    stem: &str,
    options: DemangleOptions,
    depth: Depth,
) -> Result<Option<String>, TooDeep> {
    let parse = ParseOptions::default().recursion_limit(depth.0);
    let options = options.recursion_limit(depth.0);
    // No input is known to cause a panic, but some may exist.
    let demangled = faults::catch("demangling a name", || {
        let symbol = match BorrowedSymbol::new_with_options(stem.as_bytes(), &parse) {
            Ok(symbol) => symbol,
            Err(Error::TooMuchRecursion) => return Err(TooDeep),
            // Retried without the return type, which is the part that is not understood.
            Err(_) if is_of_std(stem) => {
                match BorrowedSymbol::with_tail_and_options(stem.as_bytes(), &parse) {
                    Ok((symbol, _)) => symbol,
                    Err(Error::TooMuchRecursion) => return Err(TooDeep),
                    Err(_) => return Ok(None),
                }
            }
            Err(_) => return Ok(None),
        };
        let mut out = Writer(Capped::default());
        match symbol.structured_demangle(&mut out, &options) {
            Ok(()) => Ok(Some(out.0.into_string())),
            Err(_) if out.0.is_full() => Ok(None),
            Err(_) => Err(TooDeep),
        }
    });
    demangled.unwrap_or(Ok(None))
}

/// Whether the name holds an expression about a template of `std` (`XsrSt6__and_I…E5value`), as GCC
/// writes the types that `enable_if` chooses. `cpp_demangle` accepts such expressions only for
/// namespaces that are spelled out.
fn is_of_std(stem: &str) -> bool {
    stem.contains("XsrSt")
}

struct Writer(Capped);

impl DemangleWrite for Writer {
    fn write_string(&mut self, text: &str) -> std::fmt::Result {
        self.0.write_str(text)
    }
}
