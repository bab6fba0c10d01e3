//! How large a file will be, before it is written.

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

/// The size of a file of one shape. It is asked for once, so that samples that come later
/// are not in it.
#[derive(Debug, Default)]
pub struct Size {
    asked: Option<Shape>,
    bytes: Option<u64>,
}

impl Size {
    /// Whether the size for this shape has to be asked for. An answer for another shape is
    /// dropped from now on.
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

    /// Takes the size in bytes, if it is for the shape that was asked for last.
    pub fn set(&mut self, shape: Shape, bytes: u64) {
        if self.asked == Some(shape) {
            self.bytes = Some(bytes);
        }
    }

    /// Returns the size in bytes. None while it is not known.
    pub fn of(&self, shape: Shape) -> Option<u64> {
        self.bytes.filter(|_| self.asked == Some(shape))
    }
}
