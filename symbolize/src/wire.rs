//! Numbers and texts as exchanged between the processes of this program. A hostile file may have
//! taken over the sender, so nothing that is read is trusted.

/// Appends a number.
pub(crate) fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend(number.to_le_bytes());
}

/// Appends a number.
pub(crate) fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend(number.to_le_bytes());
}

/// Appends a number that may be missing.
pub(crate) fn put_some_u64(out: &mut Vec<u8>, number: Option<u64>) {
    out.push(number.is_some().into());
    if let Some(number) = number {
        put_u64(out, number);
    }
}

/// Appends the number of elements, and each element.
pub(crate) fn put_u64s(out: &mut Vec<u8>, numbers: impl ExactSizeIterator<Item = u64>) {
    put_u32(out, numbers.len() as u32);
    numbers.for_each(|number| put_u64(out, number));
}

/// Appends the number of bytes, and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(out, bytes.len() as u32);
    out.extend(bytes);
}

/// The bytes that were not read yet. Every method returns `None` if the bytes end too soon.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken<'b>(pub &'b [u8]);

impl<'b> Taken<'b> {
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a number that may be missing. The outer `None` if the bytes are malformed.
    #[expect(clippy::option_option, reason = "the outer one is about the bytes")]
    pub(crate) fn some_u64(&mut self) -> Option<Option<u64>> {
        match self.u8()? {
            0 => Some(None),
            1 => self.u64().map(Some),
            _ => None,
        }
    }

    pub(crate) fn u64s(&mut self) -> Option<Vec<u64>> {
        let count = self.u32()?;
        (0..count).map(|_| self.u64()).collect()
    }

    pub(crate) fn bytes(&mut self) -> Option<&'b [u8]> {
        let len = self.u32()?;
        let (bytes, rest) = self.0.split_at_checked(len as usize)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_taken_and_no_more() {
        let mut out = vec![7];
        put_u32(&mut out, 8);
        put_u64(&mut out, u64::MAX);
        put_bytes(&mut out, b"text");
        put_u64s(&mut out, [3, 5].into_iter());
        put_some_u64(&mut out, None);
        put_some_u64(&mut out, Some(9));
        let mut taken = Taken(&out);
        assert_eq!(taken.u8(), Some(7));
        assert_eq!(taken.u32(), Some(8));
        assert_eq!(taken.u64(), Some(u64::MAX));
        assert_eq!(taken.bytes(), Some(&b"text"[..]));
        assert_eq!(taken.u64s(), Some(vec![3, 5]));
        assert_eq!(taken.some_u64(), Some(None));
        assert_eq!(taken.some_u64(), Some(Some(9)));
        assert_eq!(Taken(&[2]).some_u64(), None);
        assert_eq!(taken.u8(), None);
        assert_eq!(Taken(&[9, 0, 0, 0, 1]).bytes(), None);
        assert_eq!(Taken(&[255, 255, 255, 255, 1]).u64s(), None);
    }
}
