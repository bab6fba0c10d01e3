//! Turns a finished frame into ASCII. The whole frame passes through here, so that no sign and no
//! name is missed. Cells keep their width.

use ratatui::buffer::Buffer;

/// Replaces every character of the frame that is not ASCII.
pub fn fold(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let mut chars = cell.symbol().chars();
        let first = chars.next();
        let plain = first.map_or(' ', plain);
        if chars.next().is_some() || first != Some(plain) {
            cell.set_char(plain);
        }
    }
}

/// Returns the ASCII character that stands for this one, or `?` if there is none.
pub fn plain(c: char) -> char {
    match c {
        ' '..='~' => c,
        '▁' => '_',
        '▂' => '.',
        '▃' => ':',
        '▄' => '-',
        '▅' => '=',
        '▆' => '+',
        '▇' => '*',
        '█' => '#',
        '▌' => '-',
        '░' => '.',
        '·' => '.',
        '▲' | '↑' => '^',
        '▼' | '↓' => 'v',
        '▽' | '△' => '-',
        '…' => '~',
        '›' => '>',
        '■' => '!',
        '⟳' => '*',
        '–' | '─' => '-',
        '│' | '├' => '|',
        '▾' => 'v',
        '▸' | '→' => '+',
        '◄' | '←' => '<',
        '┌' | '┐' | '└' | '┘' | '┬' | '┴' | '┼' | '±' => '+',
        '►' => '>',
        '×' => 'x',
        _ => '?',
    }
}
