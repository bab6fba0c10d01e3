//! Protocol buffers: a message is a run of fields, each a key (number and kind)
//! and a value. <https://protobuf.dev/programming-guides/encoding/>

use crate::formats::FormatError;
use crate::formats::wire::{Bytes, put, put_bytes};

/// Wire types, the lower three bits of a key. Types 3 and 4 are groups, which no profile has.
const NUMBER: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const BYTES: u64 = 2;
const FOUR_BYTES: u64 = 5;

/// A message that is being written. Fields that are 0 or empty are left out, as that is the value a
/// reader assumes.
#[derive(Debug, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    /// Adds a `varint` field.
    pub(super) fn number(&mut self, field: u64, value: u64) -> &mut Self {
        if value != 0 {
            put(&mut self.0, field << 3 | NUMBER);
            put(&mut self.0, value);
        }
        self
    }

    /// Adds a repeated field of numbers, packed into one run.
    pub(super) fn numbers(&mut self, field: u64, values: &[u64]) -> &mut Self {
        let mut packed = Vec::with_capacity(values.len() * 2);
        values.iter().for_each(|value| put(&mut packed, *value));
        self.bytes(field, &packed)
    }

    /// Adds a field of bytes or text, even an empty one: the empty string has to be written.
    pub(super) fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        put(&mut self.0, field << 3 | BYTES);
        put_bytes(&mut self.0, bytes);
        self
    }

    /// Adds a message inside this one.
    pub(super) fn message(&mut self, field: u64, message: &Message) -> &mut Self {
        self.bytes(field, &message.0)
    }
}

/// The value of a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A wire type that no field of a profile has.
    Other,
}

impl<'a> Value<'a> {
    pub(super) fn number(self) -> Result<u64, FormatError> {
        match self {
            Value::Number(number) => Ok(number),
            _ => Err(FormatError::Damaged("a number is something else".into())),
        }
    }

    pub(super) fn bytes(self) -> Result<&'a [u8], FormatError> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(FormatError::Damaged("a part is something else".into())),
        }
    }

    pub(super) fn fields(self) -> Result<Fields<'a>, FormatError> {
        self.bytes().map(Fields::new)
    }

    /// Calls back for each number of a repeated field, which is stored either alone or packed with
    /// others.
    pub(super) fn each_number(
        self,
        mut take: impl FnMut(u64) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        match self {
            Value::Number(number) => take(number),
            _ => {
                let mut packed = Bytes(self.bytes()?);
                while !packed.is_empty() {
                    take(packed.number()?)?;
                }
                Ok(())
            }
        }
    }
}

/// Reads the fields of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(Bytes<'a>);

impl<'a> Fields<'a> {
    /// The fields of the message with these bytes.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(Bytes(bytes))
    }

    /// Returns number and value of the next field; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, FormatError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = self.0.number()?;
        let value = match key & 7 {
            NUMBER => Value::Number(self.0.number()?),
            BYTES => Value::Bytes(self.0.bytes()?),
            EIGHT_BYTES => self.0.take(8).map(|_| Value::Other)?,
            FOUR_BYTES => self.0.take(4).map(|_| Value::Other)?,
            _ => return Err(FormatError::Damaged("a field of no known kind".into())),
        };
        Ok(Some((key >> 3, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut inner = Message::default();
        inner.number(1, 300).number(2, 0);
        let mut message = Message::default();
        message.numbers(1, &[1, u64::MAX]).message(7, &inner);
        assert_eq!(&message.0[message.0.len() - 5..], [0x3a, 3, 0x08, 0xac, 2]);
        let mut fields = Fields::new(&message.0);
        let mut numbers = Vec::new();
        let (field, value) = fields.next().unwrap().unwrap();
        let collected = value.each_number(|number| {
            numbers.push(number);
            Ok(())
        });
        collected.unwrap();
        assert_eq!((field, &numbers[..]), (1, &[1, u64::MAX][..]));
        let (field, value) = fields.next().unwrap().unwrap();
        let inner = value.fields().unwrap().next().unwrap().unwrap();
        assert!(matches!((field, inner), (7, (1, Value::Number(300)))));
        assert!(value.number().is_err());
        assert!(fields.next().unwrap().is_none());
        assert!(Fields::new(&[0x0b]).next().is_err(), "a group");
        assert!(Fields::new(&[0x0a, 9]).next().is_err(), "cut");
    }
}
