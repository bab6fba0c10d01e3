//! The size of a file before it is written.

use super::Manner;
use profile::formats::Format;

/// What the size of a file depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub format: Format,
    pub manner: Manner,
    /// Whether all samples that are kept are written, and not only those that are shown.
    pub is_whole: bool,
}

/// The size of a file of one shape. It is asked for only once, so that it does not include samples
/// that come later.
#[derive(Debug, Default)]
pub struct Size {
    asked: Option<Shape>,
    bytes: Option<u64>,
}

impl Size {
    /// Whether the size for this shape has to be asked for. From now on answers for other shapes
    /// are dropped.
    pub fn ask(&mut self, shape: Shape) -> bool {
        let is_new = self.asked != Some(shape);
        if is_new {
            *self = Size {
                asked: Some(shape),
                bytes: None,
            };
        }
        is_new
    }

    /// Takes the size in bytes, if it belongs to the shape of the last question.
    pub fn set(&mut self, shape: Shape, bytes: u64) {
        if self.asked == Some(shape) {
            self.bytes = Some(bytes);
        }
    }

    /// Returns the size in bytes, or `None` while it is not known.
    pub fn of(&self, shape: Shape) -> Option<u64> {
        self.bytes.filter(|_| self.asked == Some(shape))
    }
}
