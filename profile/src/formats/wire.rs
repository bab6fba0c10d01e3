//! Numbers and strings as bytes: LEB128 numbers, and lengths before contents. Input is not trusted:
//! every length is checked before memory is allocated for it.

use super::FormatError;

/// Writes an unsigned LEB128 number: seven bits in each byte, lowest first; the eighth bit says
/// that more bytes follow. Ten bytes at most.
pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes a signed number. The sign goes to the lowest bit, so that small numbers stay small.
pub(super) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, (number << 1 ^ number >> 63) as u64);
}

/// Writes the length as a number, then the bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The bytes that were not read yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

fn damaged(what: &str) -> FormatError {
    FormatError::Damaged(what.into())
}

impl<'a> Bytes<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads one byte; an error at the end.
    pub(super) fn byte(&mut self) -> Result<u8, FormatError> {
        let (first, rest) = self
            .0
            .split_first()
            .ok_or_else(|| damaged("it ends too soon"))?;
        self.0 = rest;
        Ok(*first)
    }

    /// Reads a number that [`put`] wrote. Returns an error at the end of the bytes, and for more
    /// than 64 bits.
    pub(super) fn number(&mut self) -> Result<u64, FormatError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(damaged("a number of more than 64 bits"))
    }

    /// Reads a number that [`put_signed`] wrote.
    pub(super) fn signed(&mut self) -> Result<i64, FormatError> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads a number that has to fit into 32 bits.
    pub(super) fn u32(&mut self) -> Result<u32, FormatError> {
        u32::try_from(self.number()?).map_err(|_| damaged("a number of more than 32 bits"))
    }

    /// Reads a count of things, each of which takes at least one byte: a larger count is an error.
    pub(super) fn count(&mut self) -> Result<usize, FormatError> {
        let count = self.number()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.0.len() => Ok(count),
            _ => Err(damaged("more things are announced than there is room for")),
        }
    }

    /// Returns the next `len` bytes without copying them.
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], FormatError> {
        if len > self.0.len() {
            return Err(damaged("it ends too soon"));
        }
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        Ok(taken)
    }

    /// Reads bytes that [`put_bytes`] wrote.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], FormatError> {
        let len = self.count()?;
        self.take(len)
    }

    /// Reads a text that is not trusted: invalid UTF-8 is replaced, and characters that could
    /// control a terminal are removed.
    pub(super) fn text(&mut self) -> Result<String, FormatError> {
        Ok(clean(&String::from_utf8_lossy(self.bytes()?)))
    }
}

/// Longest text that is kept, in bytes; a file may hold a million names.
const TEXT_MAX: usize = 8192;

/// Removes control characters, and those that change the direction of writing.
pub(super) fn clean(text: &str) -> String {
    let is_harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end]
        .chars()
        .map(|c| if is_harmful(c) { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(number in any::<u64>(), signed in any::<i64>()) {
            let mut out = Vec::new();
            put(&mut out, number);
            put_signed(&mut out, signed);
            put_bytes(&mut out, b"abc");
            let mut bytes = Bytes(&out);
            prop_assert_eq!(bytes.number().unwrap(), number);
            prop_assert_eq!(bytes.signed().unwrap(), signed);
            prop_assert_eq!(bytes.text().unwrap(), "abc");
            prop_assert!(bytes.is_empty());
        }
    }

    #[test]
    fn strangers_numbers_are_refused() {
        assert!(Bytes(&[0xff; 11]).number().is_err());
        assert!(Bytes(&[0x80]).number().is_err());
        assert!(Bytes(&[200, 1, 1]).bytes().is_err());
        assert_eq!(clean("a\u{1b}[2J\u{202e}b"), "a\u{fffd}[2J\u{fffd}b");
    }
}
