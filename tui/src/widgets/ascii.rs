//! The finished frame *folded* to ASCII: one place, so that no sign and no name
//! can slip through. Cells keep their width.

use ratatui::buffer::Buffer;

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
        _ => '?',
    }
}
