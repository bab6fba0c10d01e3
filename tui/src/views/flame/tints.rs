//! Limits the number of colored frames. A change of color takes more bytes than a narrow frame has
//! letters, and the picture has to fit through a slow connection. The narrowest frames lose their
//! colors first.

use super::words;
use crate::context::Context;
use crate::views::flame::{Bar, Flame};
use crate::widgets::theme::Tint;

/// Maximum size in bytes of all changes of color in a picture. Together with the text of 160 by 45
/// cells that is less than 16 kB.
const BYTES_MAX: usize = 7_000;

/// Bytes to start a color, as in `ESC [38;5;16;48;5;110m`.
const TO_COLOR: usize = 21;
/// Bytes to end a color: `ESC [39;49m`.
const TO_NONE: usize = 10;

/// The smallest width in cells from which on bars are colored.
pub struct Tints(u16);

/// A frame, and the color that it would have.
struct Colored {
    start: u16,
    end: u16,
    tint: Tint,
}

impl Tints {
    /// Finds the smallest width at which the colors of all visible bars take no more than
    /// [`BYTES_MAX`] bytes.
    pub fn new(flame: &Flame, cx: &Context<'_>) -> Self {
        // Finding a color compares names, so it is done once for each bar and not for each width.
        let all = Tints(0);
        let color = |bar: &Bar| Colored {
            start: bar.start,
            end: bar.end(),
            tint: all.of(bar, flame, cx),
        };
        let rows = flame.shown().map(|(_, row)| row.iter().map(color));
        let rows: Vec<Vec<Colored>> = rows.map(Iterator::collect).collect();
        let mut narrowest = 0;
        while let Some(next) = too_costly(&rows, narrowest) {
            narrowest = next;
        }
        Tints(narrowest)
    }

    /// Returns the color to draw a bar in:
    /// 1. none if it is merged or too narrow,
    /// 2. if two trees are compared: more or less, or none if the change is not significant,
    /// 3. otherwise the color of its module.
    pub fn of(&self, bar: &Bar, flame: &Flame, cx: &Context<'_>) -> Tint {
        if bar.node.is_none() || bar.width < self.0 {
            return Tint::None;
        }
        match (bar.before, flame.change(bar)) {
            (Some(_), change) if !words::is_sure(bar, flame, cx) || change == 0.0 => Tint::None,
            (Some(_), more) if more > 0.0 => Tint::More,
            (Some(_), _) => Tint::Less,
            (None, _) => flame.tint(bar),
        }
    }
}

/// Counts the bytes of color if bars of at least `from` cells are colored. Returns the next larger
/// width to try if those are too many; it takes the color from the narrowest colored bars. Returns
/// `None` if `from` is wide enough.
fn too_costly(rows: &[Vec<Colored>], from: u16) -> Option<u16> {
    let (mut bytes, mut narrowest) = (0, u16::MAX);
    for row in rows {
        let (mut before, mut end) = (Tint::None, 0);
        for bar in row {
            if bar.start > end && before != Tint::None {
                (before, bytes) = (Tint::None, bytes + TO_NONE);
            }
            let width = bar.end - bar.start;
            let tint = if width < from { Tint::None } else { bar.tint };
            if tint != before {
                bytes += if tint == Tint::None {
                    TO_NONE
                } else {
                    TO_COLOR
                };
            }
            if tint != Tint::None {
                narrowest = narrowest.min(width);
            }
            (before, end) = (tint, bar.end);
        }
    }
    (bytes > BYTES_MAX && narrowest < u16::MAX).then(|| narrowest + 1)
}
