//! The notes above the code, which say what part of it is missing, and why.

use super::{CodeAnswer, Layout};
use crate::code::Body;
use unicode_width::UnicodeWidthStr;

/// Returns sentences that say what is missing and why, broken into at most `lines` lines of at most
/// `width` cells.
pub fn notes(answer: &CodeAnswer, layout: Layout, width: u16, lines: usize) -> Vec<String> {
    if answer.code.addresses.is_empty() {
        return Vec::new();
    }
    let room = usize::from(width).saturating_sub(2).max(1);
    let mut notes = sentences(&answer.body, layout);
    notes.extend(other_build(answer, layout));
    let mut notes: Vec<String> = notes.iter().flat_map(|note| wrap(note, room)).collect();
    if notes.len() > lines {
        notes.truncate(lines);
        if let Some(last) = notes.last_mut() {
            last.truncate(last.floor_char_boundary(room.saturating_sub(1)));
            last.push('…');
        }
    }
    notes
}

/// Returns the sentences, however long they are. What the layout does not show anyway is not
/// mentioned, and if source text and instructions are missing for the same reason, there is one
/// sentence for both.
fn sentences(body: &Body, layout: Layout) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(why) = &body.no_text
        && body.no_assembly.as_ref() == Some(why)
    {
        return vec![format!("neither source text nor instructions: {why}")];
    }
    if layout != Layout::Assembly
        && body.text.is_none()
        && let Some(why) = &body.no_text
    {
        let hint = match body.file {
            Some(_) => "; --source-map FROM=TO tells where it is",
            None => "",
        };
        notes.push(format!("no source text: {why}{hint}"));
    }
    if layout != Layout::Source
        && let Some(why) = &body.no_assembly
    {
        notes.push(format!("no instructions: {why}"));
    }
    let cuts = body.pieces.iter().map(|piece| piece.cut);
    let cut = cuts.fold(0, u64::saturating_add);
    if layout != Layout::Source && cut > 0 {
        notes.push(format!("the last {cut} bytes of it are not written out"));
    }
    notes.extend(body.notes.iter().cloned());
    notes
}

/// Returns a sentence if the baseline comes from another build of the file, otherwise `None`.
fn other_build(answer: &CodeAnswer, layout: Layout) -> Option<String> {
    let before = answer.before.as_ref()?;
    (!before.is_same_build).then(|| match layout {
        Layout::Assembly => {
            "A is of another build of the file: its addresses are others".to_owned()
        }
        _ => "A is of another build of the file: lines are compared by their numbers".to_owned(),
    })
}

/// Breaks a text into lines at spaces. Words that are longer than a line, such as paths, are broken
/// as well.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is always a last line");
        let gap = usize::from(!last.is_empty());
        if last.width() + gap + word.width() <= width {
            last.push_str(&" ".repeat(gap));
            last.push_str(word);
            continue;
        }
        if !last.is_empty() {
            lines.push(String::new());
        }
        for c in word.chars() {
            let last = lines.last_mut().expect("there is always a last line");
            let letter = c.to_string();
            if last.width() + letter.width() <= width {
                last.push(c)
            } else {
                lines.push(letter)
            }
        }
    }
    lines
}
