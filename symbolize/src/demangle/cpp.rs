//! Names that C++ compilers mangled (Itanium C++ ABI, chapter 5.1).

use cpp_demangle::{BorrowedSymbol, DemangleOptions, DemangleWrite, ParseOptions};
use std::fmt::Write;

use super::capped::Capped;

/// Enough for deeply nested expression templates (Qt's string builder needs
/// more than 160).
const RECURSION_MAX: u32 = 256;

/// `ns::Class<T>::method`.
pub(super) fn short(stem: &str) -> Option<String> {
    demangle(stem, DemangleOptions::new().no_params().no_return_type())
}

/// `int ns::Class<T>::method(char const*) const`.
pub(super) fn full(stem: &str) -> Option<String> {
    demangle(stem, DemangleOptions::new())
}

fn demangle(stem: &str, options: DemangleOptions) -> Option<String> {
    let limits = ParseOptions::default().recursion_limit(RECURSION_MAX);
    let symbol = BorrowedSymbol::new_with_options(stem.as_bytes(), &limits).ok()?;
    let mut out = Writer(Capped::default());
    let options = options.recursion_limit(RECURSION_MAX);
    symbol.structured_demangle(&mut out, &options).ok()?;
    Some(out.0.into_string())
}

struct Writer(Capped);

impl DemangleWrite for Writer {
    fn write_string(&mut self, text: &str) -> std::fmt::Result {
        self.0.write_str(text)
    }
}
