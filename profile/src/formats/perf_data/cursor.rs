//! Reads little-endian numbers of fixed size one after the other. Reading beyond the end is an
//! error and consumes nothing.

use crate::formats::FormatError;

/// The bytes that were not read yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], FormatError> {
        let Some((taken, rest)) = self.0.split_at_checked(len) else {
            return Err(FormatError::Damaged("a record ends too soon".into()));
        };
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn skip(&mut self, len: usize) -> Result<(), FormatError> {
        self.take(len).map(|_| ())
    }

    pub(super) fn u16(&mut self) -> Result<u16, FormatError> {
        let bytes = self.take(2)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn u32(&mut self) -> Result<u32, FormatError> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub(super) fn u64(&mut self) -> Result<u64, FormatError> {
        let (low, high) = (self.u32()?, self.u32()?);
        Ok(u64::from(high) << 32 | u64::from(low))
    }
}
