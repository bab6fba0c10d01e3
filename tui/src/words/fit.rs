//! Fits a line of *segments* into a width: each segment has shorter forms, and the least important
//! one is shortened first.

use super::text;

/// A part of a line.
#[derive(Debug)]
pub struct Segment {
    /// The forms of the text, from the longest to the shortest; the last may be empty.
    forms: Vec<String>,
    /// Segments with a lower rank are shortened first.
    rank: u8,
    taken: usize,
}

impl Segment {
    /// Creates a segment with its forms, from the longest to the shortest.
    pub fn new(rank: u8, forms: impl IntoIterator<Item = String>) -> Self {
        Segment {
            forms: forms.into_iter().collect(),
            rank,
            taken: 0,
        }
    }

    /// Returns the present form.
    pub fn text(&self) -> &str {
        self.forms.get(self.taken).map_or("", String::as_str)
    }

    fn can_shrink(&self) -> bool {
        self.taken + 1 < self.forms.len()
    }
}

/// Shortens segments until they fit into `width`, with `gap` cells between them.
pub fn fit(segments: &mut [Segment], width: usize, gap: usize) {
    while needed(segments, gap) > width {
        let Some(segment) = segments
            .iter_mut()
            .filter(|segment| segment.can_shrink())
            .min_by_key(|segment| segment.rank)
        else {
            return;
        };
        segment.taken += 1;
    }
}

fn needed(segments: &[Segment], gap: usize) -> usize {
    let shown = segments.iter().filter(|s| !s.text().is_empty());
    let (count, width) = shown.fold((0, 0), |(count, width), segment| {
        (count + 1, width + text::width(segment.text()))
    });
    width + gap * usize::saturating_sub(count, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_important_gives_way() {
        let forms = |forms: &[&str]| forms.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>();
        let mut segments = [
            Segment::new(9, forms(&["3,277 samples", "3,277 smp"])),
            Segment::new(1, forms(&["own cost 0.8%", "own 0.8%", ""])),
        ];
        fit(&mut segments, 24, 2);
        assert_eq!(segments[1].text(), "own 0.8%");
        fit(&mut segments, 14, 2);
        assert_eq!(
            (segments[0].text(), segments[1].text()),
            ("3,277 samples", "")
        );
        fit(&mut segments, 1, 2);
        assert_eq!(segments[0].text(), "3,277 smp");
    }
}
