//! How large the file will be, as far as that is known while it is not written yet.

use super::Manner;
use profile::formats::Format;

/// What a size is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub format: Format,
    pub manner: Manner,
    /// All that is kept, whatever is looked at.
    pub is_whole: bool,
}

/// Asked for once a shape: of samples that come in meanwhile it does not know.
#[derive(Debug, Default)]
pub struct Size {
    asked: Option<Shape>,
    bytes: Option<u64>,
}

impl Size {
    /// Whether it has to be asked for; what was asked before is no longer wanted.
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

    pub fn set(&mut self, shape: Shape, bytes: u64) {
        if self.asked == Some(shape) {
            self.bytes = Some(bytes);
        }
    }

    /// The size of what is to be written; `None` while it is not known.
    pub fn of(&self, shape: Shape) -> Option<u64> {
        self.bytes.filter(|_| self.asked == Some(shape))
    }
}
