//! Arrows beside instructions: where the selected instruction jumps to, what jumps to it, and the
//! loops with most samples. An arrow is drawn only if both of its ends are on the screen and a lane
//! is free.

use crate::views::code::{Code, Jump};
use profile::few;

/// Returns the number of lanes for arrows to the left of the code. `room` is the number of cells
/// for arrows and code together. Returns 0 if there are no jumps, or if the code needs all of the
/// room.
pub fn lanes(code: &Code, room: usize) -> usize {
    match room {
        _ if code.jumps().is_empty() => 0,
        0..44 => 0,
        44..64 => 2,
        _ => 3,
    }
}

/// Returns the width of the lanes in cells, including one cell for the arrow's point and one blank.
pub fn width(lanes: usize) -> usize {
    if lanes == 0 { 0 } else { lanes + 2 }
}

/// Returns the text before the code of each row on the screen, which is as wide as the lanes:
///
/// ```text
/// ┌─►  lane 1, the outer one: a loop around
/// │
/// │┌►  lane 0, next to the code: a loop in it
/// │└─
/// └──
/// ```
pub fn gutters(code: &Code, lanes: usize) -> Vec<String> {
    let rows = code.rows_shown();
    if lanes == 0 {
        return vec![String::new(); rows.len()];
    }
    let is_seen = |jump: &&Jump| rows.contains(&jump.from) && rows.contains(&jump.to);
    let seen: Vec<Jump> = code.jumps().iter().filter(is_seen).copied().collect();
    let chosen = choose(&seen, code.selected_row(), lanes);
    let mut grid = vec![vec![' '; width(lanes)]; rows.len()];
    for (jump, lane) in &chosen {
        draw(&mut grid, jump, *lane, lanes, rows.start);
    }
    // Arrow points are drawn last: a row may be the end of one jump and the start of another.
    for (jump, _) in &chosen {
        grid[jump.to - rows.start][lanes] = '►';
    }
    grid.into_iter().map(String::from_iter).collect()
}

/// Returns the jumps that are drawn, each with its lane; lane 0 is next to the code. Jumps are
/// tried in this order, and left out if no lane is free beside the earlier ones:
/// 1. jumps from or to the selected row,
/// 2. loops that have samples, most samples first.
///
/// Among equals the shorter one comes first, then the upper one. Forward jumps are drawn only in
/// case 1.
fn choose(seen: &[Jump], selected: Option<usize>, lanes: usize) -> Vec<(Jump, usize)> {
    let is_own = |jump: &Jump| Some(jump.from) == selected || Some(jump.to) == selected;
    let is_hot = |jump: &Jump| jump.is_loop() && jump.samples > 0;
    let mut wanted: Vec<&Jump> = seen
        .iter()
        .filter(|jump| is_own(jump) || is_hot(jump))
        .collect();
    few::sort_by_key(&mut wanted, |jump| {
        let (first, last) = jump.ends();
        let samples = std::cmp::Reverse(jump.samples);
        (!is_own(jump), samples, last - first, first)
    });
    let mut chosen: Vec<Jump> = Vec::new();
    let mut placed = Vec::new();
    for jump in wanted {
        chosen.push(*jump);
        match place(&chosen, lanes) {
            Some(all) => placed = all,
            None => drop(chosen.pop()),
        }
    }
    placed
}

/// Assigns a lane to each jump: short jumps first, each to the free lane nearest to the code. A
/// lane is free if all jumps in it end above, begin below, or lead to the same row. Returns `None`
/// if there are too few lanes.
fn place(jumps: &[Jump], lanes: usize) -> Option<Vec<(Jump, usize)>> {
    let mut jumps = jumps.to_vec();
    few::sort_by_key(&mut jumps, |jump| {
        let (first, last) = jump.ends();
        (last - first, first)
    });
    let mut placed: Vec<(Jump, usize)> = Vec::new();
    for jump in jumps {
        let (first, last) = jump.ends();
        let is_free = |lane: &usize| {
            let mut others = placed.iter().filter(|(_, taken)| taken == lane);
            // Jumps to the same row may share a lane.
            others.all(|(other, _)| {
                let (above, below) = other.ends();
                below < first || last < above || other.to == jump.to
            })
        };
        let lane = (0..lanes).find(is_free)?;
        placed.push((jump, lane));
    }
    Some(placed)
}

fn draw(grid: &mut [Vec<char>], jump: &Jump, lane: usize, lanes: usize, start: usize) {
    let (first, last) = jump.ends();
    let x = lanes - 1 - lane;
    for (y, corner) in [(first, '┌'), (last, '└')] {
        let row = &mut grid[y - start];
        row[x] = joined(row[x], corner);
        for cell in &mut row[x + 1..=lanes] {
            *cell = joined(*cell, '─');
        }
    }
    for row in &mut grid[first + 1 - start..(last - start).max(first + 1 - start)] {
        row[x] = joined(row[x], '│');
    }
}

/// Returns the character for a cell in which two lines meet or cross.
fn joined(before: char, now: char) -> char {
    match (before, now) {
        (' ', now) => now,
        (before, now) if before == now => now,
        ('┌', '│') | ('│', '┌') | ('└', '│') | ('│', '└') | ('┌', '└') | ('└', '┌') | ('├', _) => {
            '├'
        }
        ('─', '┌') | ('┌', '─') | ('┬', _) => '┬',
        ('─', '└') | ('└', '─') | ('┴', _) => '┴',
        _ => '┼',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jump(from: usize, to: usize, samples: u64) -> Jump {
        Jump { from, to, samples }
    }

    fn drawn(jumps: &[Jump], selected: Option<usize>, lanes: usize, rows: usize) -> String {
        let chosen = choose(jumps, selected, lanes);
        let mut grid = vec![vec![' '; width(lanes)]; rows];
        for (jump, lane) in &chosen {
            draw(&mut grid, jump, *lane, lanes, 0);
        }
        for (jump, _) in &chosen {
            grid[jump.to][lanes] = '►';
        }
        let lines = grid.into_iter().map(String::from_iter);
        lines
            .map(|line: String| line.trim_end().to_owned() + "\n")
            .collect()
    }

    #[test]
    fn a_loop_inside_a_loop() {
        let jumps = [jump(3, 2, 9), jump(5, 0, 10)];
        assert_eq!(drawn(&jumps, None, 2, 6), "┌─►\n│\n│┌►\n│└─\n│\n└──\n");
    }

    #[test]
    fn what_crosses_is_seen_to_cross() {
        let jumps = [jump(3, 0, 9), jump(5, 2, 8)];
        assert_eq!(drawn(&jumps, None, 2, 6), " ┌►\n │\n┌┼►\n│└─\n│\n└──\n");
    }

    #[test]
    fn what_is_selected_comes_first_and_forward_jumps_only_then() {
        let jumps = [jump(1, 4, 0), jump(5, 0, 90), jump(3, 2, 50)];
        assert_eq!(drawn(&jumps, None, 1, 6), "┌►\n│\n│\n│\n│\n└─\n");
        assert_eq!(drawn(&jumps, Some(1), 1, 6), "\n┌─\n│\n│\n└►\n\n");
        assert_eq!(drawn(&jumps, Some(4), 1, 6), "\n┌─\n│\n│\n└►\n\n");
        assert_eq!(drawn(&[jump(2, 4, 7)], None, 3, 6), "\n\n\n\n\n\n");
    }

    #[test]
    fn ways_to_one_row_are_shared_and_a_jump_to_itself_is_one_row() {
        let jumps = [jump(2, 0, 9), jump(4, 0, 10)];
        assert_eq!(drawn(&jumps, None, 1, 5), "┌►\n│\n├─\n│\n└─\n");
        assert_eq!(drawn(&[jump(1, 1, 3)], None, 1, 2), "\n├►\n");
    }

    #[test]
    fn any_jumps_are_drawn() {
        // All pairs of rows, with and without a selected row.
        let mut all = Vec::new();
        for from in 0..7 {
            all.extend((0..7).map(|to| jump(from, to, (from * to) as u64)));
        }
        for selected in [None, Some(0), Some(3)] {
            for lanes in 1..4 {
                let text = drawn(&all, selected, lanes, 7);
                assert!(text.lines().all(|line| line.chars().count() <= lanes + 1));
                assert!(text.contains('►'));
            }
        }
    }
}
