//! The line of keys: the most useful keys of the view, from the table of keys, as many as fit.
//! While a find is being typed it is the find line.

use crate::action::{Action, Binding, FoldAction};
use crate::app::App;
use crate::app::mode::FilterPrompt;
use crate::lists::find::Prompt;
use crate::widgets::theme::Theme;
use crate::words::notice::finding;
use crate::words::text;
use profile::few;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

/// Draws the line of keys for the view that has the keys.
pub fn render(app: &App, theme: &Theme, frame: &mut Frame, area: Rect) {
    let buffer = frame.buffer_mut();
    let mut x = area.x;
    for binding in hints(app, usize::from(area.width), theme.is_ascii()) {
        let key = key(app, binding, theme.is_ascii());
        buffer.set_string(x, area.y, &key, theme.title());
        x += text::width(&key) as u16 + 1;
        buffer.set_string(x, area.y, binding.hint, Style::new());
        x += binding.hint.len() as u16 + 2;
    }
}

/// Returns the hints that fit into this width. The hint for quitting is always kept; the key for
/// help is in the line of tabs.
fn hints(app: &App, width: usize, ascii: bool) -> Vec<&Binding> {
    let pane = app.pane_here();
    let (view, cx) = (app.views.get(pane), &app.context_of(pane));
    let here = view.selected_function(cx);
    let has_page = here.as_ref().is_some_and(|it| it.id.is_some());
    let has_function = has_page && here.is_some_and(|it| it.named.is_some());
    let can_probe = app.can_probe_here();
    let mut hints: Vec<&Binding> = app
        .input
        .keymap
        .of(app.focus())
        .filter(|binding| !binding.hint.is_empty() && !binding.keys.is_empty())
        .filter(|binding| app.difference_here().is_none() || works_in_difference(binding.action))
        .filter(|binding| has_function || !needs_function(binding.action))
        .filter(|binding| has_page || !needs_page(binding.action))
        .filter(|binding| binding.action != Action::Probe || can_probe)
        .filter(|binding| view.offers(cx, binding.action))
        .collect();
    // The hint for quitting is at the end, where other programs have it as well.
    few::sort_by_key(&mut hints, |binding| binding.action == Action::Quit);
    let needed = |hints: &[&Binding]| -> usize {
        let widths = hints
            .iter()
            .map(|b| text::width(&key(app, b, ascii)) + b.hint.len() + 3);
        widths.sum::<usize>().saturating_sub(2)
    };
    // The last hint is left out first: the table of keys is in the order of usefulness.
    while needed(&hints) > width {
        let last = hints
            .iter()
            .rposition(|binding| binding.action != Action::Quit);
        match last {
            Some(at) => hints.remove(at),
            None => return hints,
        };
    }
    hints
}

/// Whether an action needs a selected function.
fn needs_function(action: Action) -> bool {
    use crate::action::FilterAction::{Exclude, Focus};
    let is_filter = matches!(action, Action::Filter(Focus | Exclude));
    is_filter || action == Action::Code
}

/// Whether an action shows the callers of the selected row. Ends of stacks have callers too.
fn needs_page(action: Action) -> bool {
    matches!(action, Action::Page | Action::Callers)
}

/// Whether an action works in the list of differences, which has only one order and no search.
fn works_in_difference(action: Action) -> bool {
    !matches!(action, Action::Find | Action::SortRight | Action::Invert)
}

/// Returns the first key of an action, and that of the opposite action if one hint stands for both.
fn key(app: &App, binding: &Binding, ascii: bool) -> String {
    let other = |action| app.input.keymap.key_of(action);
    let (before, after) = match binding.action {
        Action::LongerWindow => (other(Action::ShorterWindow), None),
        Action::SortRight => (other(Action::SortLeft), None),
        Action::Fold(FoldAction::OpenAll) => (None, other(Action::Fold(FoldAction::CloseAll))),
        _ => (None, None),
    };
    let keys = [before, binding.keys.first().copied(), after];
    let labels = keys.into_iter().flatten().map(|key| key.label(ascii));
    labels.collect::<Vec<_>>().join(" ")
}

/// Draws the find line, with the cursor where the next letter will be.
pub fn render_find(app: &App, prompt: &Prompt, theme: &Theme, frame: &mut Frame, area: Rect) {
    let result = result(app, prompt);
    render_prompt("/", (&prompt.text, ""), &result, theme, frame, area);
}

/// Draws the line in which a filter is typed, with what is wrong with the filter.
pub fn render_filter(prompt: &FilterPrompt, theme: &Theme, frame: &mut Frame, area: Rect) {
    let result = match &prompt.error {
        Some(error) => error.to_string(),
        None if prompt.line.text().is_empty() => {
            "name !name hide:name mod:x fn~RE comm:x tid:1 cpu:0-3".into()
        }
        None => "Enter: apply, Esc: leave it".into(),
    };
    let before = prompt.line.before();
    let after = &prompt.line.text()[before.len()..];
    render_prompt("\\", (before, after), &result, theme, frame, area);
}

/// Draws a line that is being typed: a sign, the text before and after the caret, and a remark at
/// the right end.
pub fn render_prompt(
    sign: &str,
    (before, after): (&str, &str),
    result: &str,
    theme: &Theme,
    frame: &mut Frame,
    area: Rect,
) {
    let room = usize::from(area.width);
    let result = text::cut_end(result, room * 2 / 3);
    let typed_room = room.saturating_sub(text::width(&result) + 4).max(10);
    let (before, after) = (text::clean(before), text::clean(after));
    // The end of the text before the caret is always visible.
    let mut start = before.len();
    let mut used = 1;
    for (at, c) in before.char_indices().rev() {
        used += text::width(c.encode_utf8(&mut [0; 4]));
        if used > typed_room {
            break;
        }
        start = at;
    }
    let buffer = frame.buffer_mut();
    buffer.set_stringn(area.x, area.y, " ".repeat(room), room, Style::new());
    buffer.set_string(area.x, area.y, sign, theme.title());
    let x = area.x + text::width(sign) as u16;
    let (caret, _) = buffer.set_stringn(x, area.y, &before[start..], typed_room, Style::new());
    let left = typed_room.saturating_sub(usize::from(caret - x));
    let (end, _) = buffer.set_stringn(caret, area.y, &*after, left, Style::new());
    let start = area
        .right()
        .saturating_sub(text::width(&result) as u16)
        .max(end + 2)
        .min(area.right());
    let left = usize::from(area.right() - start);
    buffer.set_stringn(start, area.y, &*result, left, theme.dim());
    frame.set_cursor_position(Position::new(caret.min(area.right() - 1), area.y));
}

/// Returns the remark about a pattern that is being typed: what is wrong with it, or how many rows
/// it matches.
fn result(app: &App, prompt: &Prompt) -> String {
    if let Some(error) = &prompt.error {
        return format!("{} at {}", error.message, error.position);
    }
    match app.find() {
        None => "regular expression; Enter: select, Esc: end".into(),
        Some(matches) => finding(&app.context(), matches.rows, matches.samples),
    }
}
