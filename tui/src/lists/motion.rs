//! A *motion* is a movement of the selection, and computes where it leads in a list.

/// A movement of the selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Motion {
    Up(usize),
    Down(usize),
    Page { down: bool, half: bool },
    Top,
    Bottom,
}

impl Motion {
    /// Returns the row that the motion leads to from row `at`, in a list of `rows` rows of which
    /// `page` fit on the screen.
    pub fn target(self, at: usize, page: usize, rows: usize) -> usize {
        let lines = |half| (if half { page / 2 } else { page }).max(1);
        let target = match self {
            Motion::Top => 0,
            Motion::Bottom => usize::MAX,
            Motion::Up(lines) => at.saturating_sub(lines),
            Motion::Down(lines) => at.saturating_add(lines),
            Motion::Page { down: false, half } => at.saturating_sub(lines(half)),
            Motion::Page { down: true, half } => at.saturating_add(lines(half)),
        };
        target.min(rows.saturating_sub(1))
    }

    /// Whether the motion goes up from the first row, or to the top. Then the cursor watches the
    /// top.
    pub fn watches_top(self, at: usize) -> bool {
        match self {
            Motion::Top => true,
            Motion::Up(_) => at == 0,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_motion_leaves_the_list() {
        let page = |down, half| Motion::Page { down, half };
        for (motion, target) in [
            (Motion::Up(1), 4),
            (Motion::Up(9), 0),
            (Motion::Down(usize::MAX), 19),
            (page(true, false), 15),
            (page(true, true), 10),
            (page(false, false), 0),
            (Motion::Top, 0),
            (Motion::Bottom, 19),
        ] {
            assert_eq!(motion.target(5, 10, 20), target, "{motion:?}");
            assert_eq!(motion.target(0, 0, 0), 0, "{motion:?}");
        }
        assert!(Motion::Top.watches_top(3) && Motion::Up(1).watches_top(0));
        assert!(!Motion::Up(1).watches_top(1) && !Motion::Down(1).watches_top(0));
    }
}
