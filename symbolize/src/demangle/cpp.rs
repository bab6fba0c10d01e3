//! Demangles the names of C++ compilers (Itanium C++ ABI, chapter 5.1).
//!
//! The demangler recurses and backtracks. A malicious name of a hundred bytes keeps it busy for
//! hours or overflows the stack. So names are checked before, and deeply nested ones are demangled
//! on a larger stack.

use std::fmt::Write;
use std::thread;

use cpp_demangle::error::Error;
use cpp_demangle::{BorrowedSymbol, DemangleOptions, DemangleWrite, ParseOptions};

use super::capped::Capped;

/// Nesting limit that is enough for nearly all names and needs at most half a MiB of stack; in
/// builds without optimisation, whose frames are ten times larger, at most one MiB.
const SHALLOW: Depth = Depth(if cfg!(debug_assertions) { 32 } else { 96 });

/// Nesting limit for the deepest expression templates known (Qt's string builder needs more than
/// 160).
const DEEP: Depth = Depth(256);

/// Stack size for [`DEEP`], which needs up to 2 MiB, and up to 16 MiB without optimisation (names
/// of 1000 nested `ad`). Only the used pages take memory.
const DEEP_STACK_BYTES: usize = 24 << 20;

/// Maximum number of constructs counted by [`is_costly`] in a name. Each can double the time. None
/// of the 127 000 names in libLLVM and node has more. Without the limit 88 bytes of `nananaat…`
/// took 55 ms and 149 took 5 s; with it none of 13 million random changes to real names took 25 ms,
/// on a busy machine.
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
        // The thread does not run concurrently with the caller: it is only a way to get a larger
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

/// Whether the name has too many constructs that the demangler may try in two ways, one inside of
/// the other: `new` and `delete`, conversions, scope resolution, lambdas, local names. Their
/// letters are counted everywhere, also in identifiers, because a hostile name can hide where its
/// identifiers are.
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
