//! Names that C++ compilers mangled (Itanium C++ ABI, chapter 5.1).
//!
//! The demangler recurses and backtracks. A name of a hundred bytes, made for
//! it, keeps it busy for hours or overflows the stack; so names are looked at
//! before, and those that nest deeply get a stack of their own.

use std::fmt::Write;
use std::thread;

use cpp_demangle::error::Error;
use cpp_demangle::{BorrowedSymbol, DemangleOptions, DemangleWrite, ParseOptions};

use super::capped::Capped;

/// Enough for nearly all names, in at most half a MiB of stack; without
/// optimisation, where frames are ten times larger, in at most one.
const SHALLOW: Depth = Depth(if cfg!(debug_assertions) { 32 } else { 96 });

/// Enough for the deepest expression templates known (Qt's string builder
/// needs more than 160).
const DEEP: Depth = Depth(256);

/// [`DEEP`] takes up to 2 MiB, and up to 16 MiB without optimisation (names of
/// 1000 nested `ad`). Only the pages used cost memory.
const DEEP_STACK_BYTES: usize = 24 << 20;

/// How many turns of the kind that [`is_costly`] counts a name may have. Each
/// can double the time. None of the 127 000 names in libLLVM and node has
/// more. Without the limit 88 bytes of `nananaat…` took 55 ms and 149 took 5 s;
/// with it none of 13 million random changes to real names took 25 ms, on a
/// busy machine.
const COSTLY_MAX: usize = 12;

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

fn demangle(stem: &str, options: fn() -> DemangleOptions) -> Option<String> {
    if is_costly(stem.as_bytes()) {
        return None;
    }
    match demangle_within(stem, options(), SHALLOW) {
        // Not a thread that runs beside the caller's: the only way to a larger
        // stack.
        Err(TooDeep) => thread::scope(|scope| {
            let deep = thread::Builder::new()
                .stack_size(DEEP_STACK_BYTES)
                .spawn_scoped(scope, || demangle_within(stem, options(), DEEP));
            deep.ok()?.join().ok()?.ok()?
        }),
        Ok(demangled) => demangled,
    }
}

/// The name nests more deeply than was allowed.
struct TooDeep;

fn demangle_within(
    stem: &str,
    options: DemangleOptions,
    depth: Depth,
) -> Result<Option<String>, TooDeep> {
    let parse = ParseOptions::default().recursion_limit(depth.0);
    let options = options.recursion_limit(depth.0);
    // No input is known to panic, but any could come.
    let demangled = faults::catch("demangling a name", || {
        let symbol = match BorrowedSymbol::new_with_options(stem.as_bytes(), &parse) {
            Ok(symbol) => symbol,
            Err(Error::TooMuchRecursion) => return Err(TooDeep),
            // Without the type of what is returned, which is the part not understood.
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

/// Whether the name holds an expression about a template of `std` (`XsrSt6__and_I…E5value`),
/// as GCC writes the types that `enable_if` chooses; `cpp_demangle` knows them of no other
/// namespace than one that is spelled out.
fn is_of_std(stem: &str) -> bool {
    stem.contains("XsrSt")
}

/// Whether the name has too many of the constructs that the demangler may try
/// in two ways, one inside of the other: `new` and `delete`, conversions,
/// scope resolution, lambdas, local names. They are counted wherever the
/// letters are, in identifiers too: where identifiers are is what a hostile
/// name can hide.
fn is_costly(stem: &[u8]) -> bool {
    let is_turn = |pair: &&[u8; 2]| {
        matches!(
            *pair,
            b"nw" | b"na" | b"dl" | b"da" | b"gs" | b"sr" | b"cv" | b"Ul" | b"Ut" | b"Tn" | b"Ty"
        )
    };
    let local_names = stem.iter().skip(2).filter(|&&byte| byte == b'Z').count();
    local_names + stem.array_windows().filter(is_turn).count() > COSTLY_MAX
}

struct Writer(Capped);

impl DemangleWrite for Writer {
    fn write_string(&mut self, text: &str) -> std::fmt::Result {
        self.0.write_str(text)
    }
}
