//! How many frames are colored: a change of color costs more bytes than a narrow
//! frame has letters, and the picture has to fit through a slow line. The
//! narrowest frames go without first.

use super::words;
use crate::context::Context;
use crate::views::flame::{Bar, Flame};
use crate::widgets::theme::Tint;

/// What all changes of color of a picture may cost: with the text of 160 by 45
/// cells that is less than 16 kB.
const BYTES_MAX: usize = 7_000;

/// Bytes that color a frame, as `ESC [38;5;16;48;5;110m` and `ESC [39;49m`.
const TO_COLOR: usize = 21;
const TO_NONE: usize = 10;

/// From which width on frames are colored.
pub struct Tints(u16);

/// A frame, and the color that it would have.
struct Colored {
    start: u16,
    end: u16,
    tint: Tint,
}

impl Tints {
    pub fn new(flame: &Flame, cx: &Context<'_>) -> Self {
        // What a frame's color is takes names to compare: once for each of them.
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

/// The narrowest width that has to go without color, plus one; `None` if the
/// picture is cheap enough with color from `narrowest` on.
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
