//! The *geometry* is the place of each region of the screen: handling keys needs the length of a
//! page, drawing needs the places.
//!
//! ```text
//! header   3 lines, 1 in a small terminal
//! state    1 line, only if there is a state to show
//! tabs     1 line, from 15 lines on
//! heads    1 line
//! body     the rest
//! detail   1 line
//! keys     1 line, from 15 lines on
//! ```

/// The size of the terminal in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub width: u16,
    pub height: u16,
}

/// Minimum size of the screen. On a smaller terminal there is one line of text instead.
pub const SIZE_MIN: Size = Size {
    width: 40,
    height: 8,
};

/// Minimum size for all lines of the header.
const SIZE_WITH_HEADER: Size = Size {
    width: 60,
    height: 12,
};

/// Minimum height for a tab line and a key line.
const HEIGHT_WITH_KEYS: u16 = 15;

/// Minimum size for all regions.
pub const SIZE_FOR_ALL: Size = Size {
    width: SIZE_WITH_HEADER.width,
    height: HEIGHT_WITH_KEYS,
};

/// Minimum width of a view for the column of modules. A narrower view leaves more room for the
/// names of functions.
pub const WIDTH_WITH_MODULE: u16 = 60;

/// Minimum width for further columns.
pub const WIDTH_WIDE: u16 = 120;

/// The lines of each region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    pub width: u16,
    /// Number of lines of the header.
    pub header: u16,
    pub state: Option<u16>,
    pub tabs: Option<u16>,
    pub heads: u16,
    pub body: u16,
    pub body_height: u16,
    pub detail: u16,
    pub keys: Option<u16>,
}

/// The area of a view: a line of heads, and the body below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewArea {
    pub x: u16,
    pub heads: u16,
    pub width: u16,
    /// Number of lines of the body.
    pub height: u16,
}

impl ViewArea {
    /// Returns the first line of the body.
    pub fn body(&self) -> u16 {
        self.heads + 1
    }

    /// Converts a cell of the screen to its column and line in the body. None if it is
    /// outside.
    pub fn place(&self, column: u16, row: u16) -> Option<(u16, usize)> {
        let column = column.checked_sub(self.x).filter(|x| *x < self.width)?;
        let line = row
            .checked_sub(self.body())
            .filter(|line| *line < self.height)?;
        Some((column, line.into()))
    }

    /// Cuts off an area at the right and returns it. One column between the two areas is left for a
    /// line.
    pub fn split_right(&mut self, width: u16) -> ViewArea {
        self.width -= width + 1;
        ViewArea {
            x: self.x + self.width + 1,
            width,
            ..*self
        }
    }

    /// Cuts off the first lines and returns them. The first of these is a line of heads.
    pub fn split_above(&mut self, lines: u16) -> ViewArea {
        let above = ViewArea {
            height: lines - 1,
            ..*self
        };
        self.heads += lines;
        self.height -= lines;
        above
    }

    /// Cuts off the last lines and returns them. The first of these is a line of heads.
    pub fn split_below(&mut self, lines: u16) -> ViewArea {
        self.height -= lines;
        ViewArea {
            heads: self.body() + self.height,
            height: lines - 1,
            ..*self
        }
    }
}

impl Geometry {
    /// Returns the area between the tabs and the detail line.
    pub fn whole(&self) -> ViewArea {
        ViewArea {
            x: 0,
            heads: self.heads,
            width: self.width,
            height: self.body_height,
        }
    }

    /// Returns the geometry for a terminal of this size. None if it is too small.
    pub fn new(size: Size, has_state: bool) -> Option<Self> {
        if size.width < SIZE_MIN.width || size.height < SIZE_MIN.height {
            return None;
        }
        let is_large =
            size.width >= SIZE_WITH_HEADER.width && size.height >= SIZE_WITH_HEADER.height;
        let header = if is_large { 3 } else { 1 };
        let mut next = header;
        let mut line_if = |wanted: bool| {
            wanted.then(|| {
                next += 1;
                next - 1
            })
        };
        let state = line_if(has_state);
        let tabs = line_if(size.height >= HEIGHT_WITH_KEYS);
        let keys = (size.height >= HEIGHT_WITH_KEYS).then(|| size.height - 1);
        let detail = keys.unwrap_or(size.height) - 1;
        Some(Geometry {
            width: size.width,
            header,
            state,
            tabs,
            heads: next,
            body: next + 1,
            body_height: detail - next - 1,
            detail,
            keys,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_follow_one_another() {
        for height in SIZE_MIN.height..100 {
            for has_state in [false, true] {
                let size = Size { width: 80, height };
                let geometry = Geometry::new(size, has_state).expect("large enough");
                assert_eq!(geometry.body, geometry.heads + 1);
                assert_eq!(geometry.body + geometry.body_height, geometry.detail);
                assert_eq!(
                    geometry.keys.unwrap_or(geometry.detail) + 1,
                    height,
                    "nothing left over at the end"
                );
                assert!(geometry.body_height >= 4);
            }
        }
    }

    #[test]
    fn too_small_is_no_screen() {
        for (width, height) in [(39, 24), (80, 7), (1, 1), (0, 0)] {
            assert_eq!(Geometry::new(Size { width, height }, false), None);
        }
    }
}
