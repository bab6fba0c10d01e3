//! One line: `7f60a3c012e0 1b4 LazyCompile:*handle /srv/app.js:12:3`.

/// Maximum length of names; Scala and C++ templates have longer ones, which are cut.
pub const NAME_BYTES_MAX: usize = 4 << 10;

/// Longest line that is read when a name is read again.
pub const LINE_BYTES_MAX: usize = NAME_BYTES_MAX + 64;

/// A parsed line: the code of `size` bytes at address `start` of the process. The name is not safe
/// to display.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'t> {
    pub start: u64,
    pub size: u64,
    pub name: &'t [u8],
}

impl<'t> Line<'t> {
    /// Parses a line. Both numbers are hexadecimal, with `0x` (the JVM) or without.
    pub fn parse(line: &'t [u8]) -> Option<Line<'t>> {
        let (start, rest) = hexadecimal(line)?;
        let (size, rest) = hexadecimal(rest.strip_prefix(b" ")?)?;
        let name = rest.strip_prefix(b" ")?.trim_ascii();
        let name = &name[..name.len().min(NAME_BYTES_MAX)];
        (size > 0 && !name.is_empty()).then_some(Line { start, size, name })
    }

    /// Whether the code of this line contains an address.
    pub fn has(&self, addr: u64) -> bool {
        addr >= self.start && addr - self.start < self.size
    }
}

fn hexadecimal(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.strip_prefix(b"0x").unwrap_or(text);
    let mut number = 0;
    let mut digits = 0;
    for byte in text {
        let digit = DIGITS[usize::from(*byte)];
        if digit == NO_DIGIT {
            break;
        }
        number = number << 4 | u64::from(digit);
        digits += 1;
    }
    (1..=16)
        .contains(&digits)
        .then(|| (number, &text[digits..]))
}

const NO_DIGIT: u8 = u8::MAX;

/// A look-up table, because a map consists mostly of digits.
const DIGITS: [u8; 256] = {
    let mut table = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        table[b"0123456789abcdef"[digit] as usize] = digit as u8;
        table[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runtimes_write() {
        for (text, start, size, name) in [
            (
                "7f60a3c012e0 1b4 LazyCompile:*handle /srv/a b.js:12:3",
                0x7f60_a3c0_12e0,
                0x1b4,
                "LazyCompile:*handle /srv/a b.js:12:3",
            ),
            (
                "0x00007f05d0f10be0 0x0000000000000038 StubRoutines (1)",
                0x7f05_d0f1_0be0,
                0x38,
                "StubRoutines (1)",
            ),
            ("7FFF 0A py::f:/x.py\r", 0x7fff, 10, "py::f:/x.py"),
            ("ffffffffffffffff 1 end", u64::MAX, 1, "end"),
        ] {
            let name = name.as_bytes();
            let expected = Line { start, size, name };
            assert_eq!(Line::parse(text.as_bytes()), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_line() {
        for text in [
            "",
            "1000",
            "1000 ",
            "1000 10",
            "1000 10 ",
            "1000 10   ",
            "1000 0 nothing",
            "1000  10 two spaces",
            "g000 10 f",
            "00000000000000001 1 seventeen digits",
            " 1000 10 f",
        ] {
            assert_eq!(Line::parse(text.as_bytes()), None, "{text}");
        }
        let long = format!("1 1 {}", "x".repeat(NAME_BYTES_MAX + 1));
        let line = Line::parse(long.as_bytes()).unwrap();
        assert_eq!(line.name.len(), NAME_BYTES_MAX);
    }
}
