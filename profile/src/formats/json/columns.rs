//! Lists and columns of JSON documents that store tables by column. Each has a bound: three
//! characters of JSON can stand for a structure of many bytes.
//!
//! Tools differ in how they write an unknown value: `null`, -1, `false`, or a missing key. All of
//! these are read as an absent value instead of an error, because one such cell must not make a
//! whole recording unreadable.

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// A list of at most `MAX` elements.
#[derive(Debug, Clone)]
pub(in super::super) struct List<T, const MAX: usize>(pub(in super::super) Vec<T>);

impl<T, const MAX: usize> Default for List<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

struct ListVisitor<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for ListVisitor<T, MAX> {
    type Value = List<T, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX} things")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(thing) = list.next_element()? {
            if all.len() >= MAX {
                return Err(A::Error::custom(format!("a list of more than {MAX}")));
            }
            all.push(thing);
        }
        Ok(List(all))
    }

    /// `null` in place of a list is read as an empty list.
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(List::default())
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for List<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ListVisitor(PhantomData))
    }
}

/// A number that may be absent: `null`, negative numbers and text are read as `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Number(Option<f64>);

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or null")
    }

    fn visit_f64<E>(self, number: f64) -> Result<Number, E> {
        Ok(Number(Some(number)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
        Ok(Number(Some(number as f64)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Number, E> {
        Ok(Number(Some(number as f64)))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Number, E> {
        Ok(Number(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Number, E> {
        Ok(Number(None))
    }

    fn visit_unit<E>(self) -> Result<Number, E> {
        Ok(Number(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Number, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Number(None))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NumberVisitor)
    }
}

/// Row numbers of another table; an absent one is [`Column::NONE`].
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Column(Vec<u32>);

impl Column {
    const NONE: u32 = u32::MAX;

    /// The number in row `at`; `None` if there is no such row or no number in it.
    pub(in super::super) fn get(&self, at: usize) -> Option<usize> {
        let number = *self.0.get(at)?;
        (number != Self::NONE).then_some(number as usize)
    }

    /// Number of rows, including those without a number.
    pub(in super::super) fn len(&self) -> usize {
        self.0.len()
    }
}

struct ColumnVisitor;

impl<'de> Visitor<'de> for ColumnVisitor {
    type Value = Column;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Column, A::Error> {
        let mut all = Vec::new();
        while let Some(Number(number)) = list.next_element()? {
            all.push(match number {
                // The largest 32-bit number is reserved for an absent value.
                Some(number @ 0.0..4_294_967_295.0) => number as u32,
                _ => Column::NONE,
            });
        }
        Ok(Column(all))
    }

    fn visit_unit<E>(self) -> Result<Column, E> {
        Ok(Column::default())
    }
}

impl<'de> Deserialize<'de> for Column {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ColumnVisitor)
    }
}

/// Numbers with fractions; an absent one is stored as NaN.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Times(Vec<f64>);

impl Times {
    /// The number in row `at`; `None` if there is no such row or no number in it.
    pub(in super::super) fn get(&self, at: usize) -> Option<f64> {
        self.0.get(at).copied().filter(|number| number.is_finite())
    }

    /// Number of rows, including those without a number.
    pub(in super::super) fn len(&self) -> usize {
        self.0.len()
    }
}

struct TimesVisitor;

impl<'de> Visitor<'de> for TimesVisitor {
    type Value = Times;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Times, A::Error> {
        let mut all = Vec::new();
        while let Some(Number(number)) = list.next_element()? {
            all.push(number.unwrap_or(f64::NAN));
        }
        Ok(Times(all))
    }

    fn visit_unit<E>(self) -> Result<Times, E> {
        Ok(Times::default())
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TimesVisitor)
    }
}

/// A pid or tid: a number, or a text such as `123`, or `123.1` for a number that was reused.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Id(pub(in super::super) String);

impl Id {
    /// The number at its beginning; 0 if there is none.
    pub(in super::super) fn number(&self) -> u32 {
        let digits = self.0.split('.').next().unwrap_or_default();
        digits.parse().unwrap_or(0)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a text")
    }

    fn visit_str<E>(self, text: &str) -> Result<Id, E> {
        Ok(Id(text.chars().take(64).collect()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Id, E> {
        Ok(Id(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Id, E> {
        Ok(Id(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Id, E> {
        Ok(Id(number.to_string()))
    }

    fn visit_unit<E>(self) -> Result<Id, E> {
        Ok(Id::default())
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(IdVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_bounded_and_numbers_forgiving() {
        assert_eq!(
            serde_json::from_str::<List<u8, 2>>("[1,2]").unwrap().0,
            [1, 2]
        );
        let error = serde_json::from_str::<List<u8, 2>>("[1,2,3]").unwrap_err();
        assert!(error.to_string().contains("more than 2"));
        let column: Column = serde_json::from_str("[3,null,-1,4.0,1e300,\"x\"]").unwrap();
        let read: Vec<_> = (0..7).map(|at| column.get(at)).collect();
        assert_eq!(read, [Some(3), None, None, Some(4), None, None, None]);
        let times: Times = serde_json::from_str("[0.5,null]").unwrap();
        assert_eq!((times.get(0), times.get(1)), (Some(0.5), None));
        assert_eq!(
            serde_json::from_str::<Id>("\"123.1\"").unwrap().number(),
            123
        );
        assert_eq!(serde_json::from_str::<Id>("77").unwrap().number(), 77);
    }
}
