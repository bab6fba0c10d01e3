//! One line: `ffffffffc0211000 t name [module]`.

/// Maximum length of a name, the kernel's own limit (KSYM_NAME_LEN).
const NAME_BYTES_MAX: usize = 512;

/// A parsed line.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'t> {
    /// Address in the running kernel; 0 for readers without the right to see it.
    pub addr: u64,
    /// The letter that nm(1) prints for the kind of symbol, such as `t`.
    pub kind: u8,
    /// Name of the symbol; for a BPF program that has a name, that alone.
    pub name: &'t str,
    /// Name of the module; `None` for the kernel itself.
    pub module: Option<&'t str>,
}

impl<'t> Line<'t> {
    /// Parses a line; `None` for malformed ones, and for names that are not useful: `__pfx_` marks
    /// the padding before a function, and a `$` the labels of the ARM ABIs.
    pub fn parse(line: &'t [u8]) -> Option<Line<'t>> {
        let (addr, rest) = hexadecimal(line)?;
        let [b' ', kind, b' ', rest @ ..] = rest else {
            return None;
        };
        let space = |byte: &u8| matches!(byte, b' ' | b'\t');
        let end = rest.iter().position(space).unwrap_or(rest.len());
        let (name, module) = rest.split_at(end);
        if name.starts_with(b"__pfx_") || memchr::memchr(b'$', name).is_some() {
            return None;
        }
        let module = module
            .trim_ascii()
            .strip_prefix(b"[")
            .and_then(|m| m.strip_suffix(b"]"));
        let module = module.and_then(|module| std::str::from_utf8(module).ok());
        let name = std::str::from_utf8(&name[..name.len().min(NAME_BYTES_MAX)]).ok()?;
        Some(Line {
            addr,
            kind: *kind,
            name: match module {
                Some("bpf") => bpf_name(name),
                _ => name,
            },
            module,
        })
    }

    /// How good the name is for its address; 0 if it does not name a function: data, and the marks
    /// that the linker script puts around parts of the text.
    pub fn rank(&self) -> u8 {
        match self.kind {
            _ if self.name.is_empty() || is_mark(self.name) => 0,
            b'T' => 3,
            b'W' => 2,
            b't' | b'w' => 1,
            _ => 0,
        }
    }
}

fn is_mark(name: &str) -> bool {
    matches!(
        name,
        "_text" | "_stext" | "_etext" | "_sinittext" | "_einittext"
    ) || name.starts_with("__") && (name.ends_with("_text_start") || name.ends_with("_text_end"))
}

/// Splits off the number at the start of `line`.
fn hexadecimal(line: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    let mut digits = 0;
    while let Some(digit) = line.get(digits).and_then(|&byte| digit(byte)) {
        number = number << 4 | digit;
        digits += 1;
    }
    (1..=16)
        .contains(&digits)
        .then(|| (number, &line[digits..]))
}

fn digit(byte: u8) -> Option<u64> {
    match byte {
        b'0'..=b'9' => Some(u64::from(byte - b'0')),
        b'a'..=b'f' => Some(u64::from(byte - b'a' + 10)),
        _ => None,
    }
}

/// Returns the name in `bpf_prog_<tag>_<name>`. For a program without a name the whole symbol is
/// returned.
fn bpf_name(symbol: &str) -> &str {
    const TAG: usize = 16;
    let name = symbol
        .strip_prefix("bpf_prog_")
        .filter(|rest| rest.bytes().take(TAG).all(|b| b.is_ascii_hexdigit()))
        .and_then(|rest| rest.get(TAG..)?.strip_prefix('_'));
    name.filter(|name| !name.is_empty()).unwrap_or(symbol)
}
