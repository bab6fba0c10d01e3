//! Makes text of others safe and short: names are from programs that anybody may have written, and
//! may be longer than any column.

use std::borrow::Cow;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns the text without characters that a terminal acts on or that change the reading order.
/// They are replaced by their code, as in `\x1b`.
pub fn clean(text: &str) -> Cow<'_, str> {
    if is_plain(text) || !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_unsafe(c) {
            safe.push_str(&format!("\\x{:02x}", u32::from(c)));
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// Whether a terminal acts on a character, or shows it at another place.
fn is_unsafe(c: char) -> bool {
    let bidi = matches!(c,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    // A character without a width would be hidden in the cell of its neighbour.
    c.is_control() || bidi || c.width() == Some(0)
}

/// Returns how many cells the text takes on the screen.
pub fn width(text: &str) -> usize {
    if is_plain(text) {
        text.len()
    } else {
        text.width()
    }
}

/// Whether all characters are printable ASCII: each is one byte and one cell, and none is unsafe.
/// Most names are like that, and each is measured several times per frame, so this saves time.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Cuts the text in the middle to `room` cells. The last part of a path is kept if it fits:
/// `core::ptr…drop_in_place`.
pub fn cut_middle(text: &str, room: usize) -> Cow<'_, str> {
    let text = clean(text);
    if width(&text) <= room {
        return text;
    }
    if room <= 1 {
        return Cow::Owned("…".repeat(room));
    }
    // One `…` is enough: that of this cut also stands for an earlier one at the end.
    let text = match text.strip_suffix('…') {
        Some(rest) => rest.trim_end_matches('.'),
        None => &text,
    };
    if width(text) < room {
        return Cow::Owned(format!("{text}…"));
    }
    // The last part is kept if a fourth of the room is left for the beginning. Otherwise the end
    // gets a third of the room.
    let last = text[telling_part(text)..].width();
    let tail = if last + 1 < room * 3 / 4 && last < text.width() {
        last
    } else {
        room / 3
    };
    let head = room - 1 - tail;
    Cow::Owned(format!("{}…{}", first(text, head), end(text, tail)))
}

/// Returns the text with `…` in place of its first cells.
pub fn from(text: &str, cells: usize) -> String {
    let text = clean(text);
    let left = width(&text).saturating_sub(cells.saturating_sub(1));
    format!("…{}", end(&text, left.saturating_sub(1)))
}

/// Cuts the text at its end to `room` cells.
pub fn cut_end(text: &str, room: usize) -> Cow<'_, str> {
    let text = clean(text);
    if width(&text) <= room {
        return text;
    }
    if room == 0 {
        return Cow::Borrowed("");
    }
    Cow::Owned(format!("{}…", first(&text, room - 1)))
}

/// Returns the most significant part of a name for `room` cells: the whole name, or else its last
/// part, cut at the end if necessary. This is `push` for `alloc::vec::Vec<T>::push`, but not `0`
/// for `copy.isra.0`.
pub fn short_name(text: &str, room: usize) -> String {
    let text = clean(text);
    if width(&text) <= room {
        return text.into_owned();
    }
    let is_path = text.contains("::") || text.contains('/');
    let start = if is_path { telling_part(&text) } else { 0 };
    cut_end(&text[start..], room).into_owned()
}

/// Returns where the last part of a name begins that distinguishes a function from others.
/// `{closure#0}`, `<…>` and `operator()` alone do not, so the part before them is included.
fn telling_part(text: &str) -> usize {
    let mut end = text.len();
    loop {
        let start = last_part(&text[..end]);
        let before = text[..start].trim_end_matches(':').len();
        if before == 0 || before == start || !tells_nothing(&text[start..]) {
            return start;
        }
        end = before;
    }
}

/// Whether a part of a name does not distinguish functions without the part before it.
fn tells_nothing(part: &str) -> bool {
    part.starts_with(['<', '{']) || part.starts_with("operator()")
}

/// Returns where the last part of a name or path begins. Separators inside brackets belong to
/// parameters.
fn last_part(text: &str) -> usize {
    let mut depth = 0i32;
    let bytes = text.as_bytes();
    for at in (0..bytes.len()).rev() {
        match bytes[at] {
            b'>' | b')' | b']' | b'}' => depth += 1,
            b'<' | b'(' | b'[' | b'{' => depth -= 1,
            b':' | b'/' | b'.' if depth <= 0 && at + 1 < bytes.len() => return at + 1,
            _ => {}
        }
    }
    0
}

/// Returns as much of the beginning as fits into `room` cells.
fn first(text: &str, room: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > room {
            return &text[..at];
        }
    }
    text
}

/// Returns as much of the end as fits into `room` cells.
fn end(text: &str, room: usize) -> &str {
    let mut used = 0;
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        used += c.width().unwrap_or(0);
        if used > room {
            break;
        }
        start = at;
    }
    &text[start..]
}

/// Breaks a text at spaces into lines of at most `width` cells.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let text = clean(text);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is always a last line");
        if last.is_empty() {
            last.push_str(word);
        } else if crate::words::text::width(last) + 1 + crate::words::text::width(word) <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cuts_keep_the_last_part() {
        assert_eq!(cut_middle("short", 10), "short");
        assert_eq!(
            cut_middle("alloc::collections::btree::insert", 16),
            "alloc::co…insert"
        );
        assert_eq!(
            cut_middle("hash_search_with_hash_value", 12),
            "hash_se…alue"
        );
        let name = "core::ptr::drop_in_place<a::b::C>";
        assert_eq!(cut_middle(name, 32), "core::ptr…drop_in_place<a::b::C>");
        assert_eq!(cut_middle("/usr/lib/x86_64/libc.so.6", 1), "…");
        assert_eq!(cut_middle("finish_task_switch.…", 17), "finish_task…witch");
        assert_eq!(
            cut_middle("finish_task_switch.…", 19),
            "finish_task_switch…"
        );
        assert_eq!(cut_end("abcdef", 4), "abc…");
        assert_eq!(short_name("alloc::vec::Vec<T>::push", 6), "push");
        assert_eq!(short_name("list_encode.isra.0", 6), "list_…");
        assert_eq!(
            short_name("std::thread::spawn::<…>::{closure#0}", 20),
            "spawn::<…>::{closur…"
        );
    }

    #[test]
    fn nothing_a_terminal_would_obey() {
        assert_eq!(clean("a\x1b[2Jb"), "a\\x1b[2Jb");
        assert_eq!(clean("x\u{202e}y\u{200b}"), "x\\x202ey\\x200b");
        assert_eq!(clean("\u{9b}31m"), "\\x9b31m");
    }

    proptest! {
        #[test]
        fn a_cut_fits(text in "\\PC{0,40}|[a-z:<>./日本\u{1b}\u{301}]{0,40}", room in 0usize..30) {
            prop_assert!(cut_middle(&text, room).width() <= room);
            prop_assert!(cut_end(&text, room).width() <= room);
        }
    }
}
