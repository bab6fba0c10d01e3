//! Handles keys by the mode of the app: the find line takes text, the help and the output scroll,
//! and everywhere else a key starts an action.

use super::{Action, App, Effect};
use crate::app::mode::{Detail, FilterPrompt, Mode};
use crate::context::DetailRoom;
use crate::dialogs::help;
use crate::dialogs::line_edit::LineEdit;
use crate::lists::find::{Find, Prompt};
use crate::lists::motion::Motion;
use crate::lists::table::Sort;
use crate::notice::{FETCH, NEVER, Notice};
use crate::order::{Order, ProbeChoice};
use crate::view_id::ViewId;
use crate::views::PaneId;
use crate::widgets::theme::{Theme, ThemeChoice};
use crate::words::text;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use profile::{Filter, few};
use std::cmp::Reverse;
use std::time::Duration;

/// Maximum length of a pattern, in bytes. A longer text was pasted by mistake.
const FIND_LENGTH_MAX: usize = 200;

/// Handles a key press in any mode.
pub fn press(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    // A notice disappears with the next key, whatever that key does.
    let said = std::mem::take(&mut app.lines.detail);
    if matches!(app.mode, Mode::Browse)
        && let Some(Action::DetailLeft | Action::DetailRight) = asked(app, key)
    {
        let is_right = asked(app, key) == Some(Action::DetailRight);
        app.shift_detail(is_right);
        return Vec::new();
    }
    if app.is_typed_in_vain(key) {
        app.lines.detail = said;
        return Vec::new();
    }
    app.lines.detail_shift = 0;
    // Esc first closes what is open, or a notice. The notice about a step that was just undone is
    // an exception, so that Esc can undo several steps in a row.
    let is_open = !matches!(said, Detail::Row | Detail::Notice(Notice::Undone(_)));
    let is_closed_first = is_open && app.find().is_none();
    let is_question = matches!(said, Detail::Notice(Notice::MayFetch { .. }));
    if key.code == KeyCode::Esc && is_closed_first && matches!(app.mode, Mode::Browse) {
        app.fetching.is_put_away |= is_question;
        return Vec::new();
    }
    // The two letters answer the question only while it is on the screen. Otherwise they are
    // ordinary keys.
    if is_question && let KeyCode::Char(answer @ (FETCH | NEVER)) = key.code {
        return app.apply_for_key(Order::Fetch(answer == FETCH));
    }
    // In a mode that takes text, letters are text. Keys without a meaning in the mode may still
    // quit, suspend or redraw (see `leave_anyway`).
    match app.mode {
        Mode::Find(_) => type_find(app, key),
        Mode::Filter(_) => type_filter(app, key),
        Mode::Palette(_) => app.press_in_palette(key),
        Mode::Write(_) => match app.press_in_dialog(key) {
            Some(effects) => effects,
            None => leave_anyway(app, key),
        },
        Mode::Sampling(_) => match app.press_in_sampling(key) {
            Some(effects) => effects,
            None => leave_anyway(app, key),
        },
        Mode::Browse => match asked(app, key) {
            Some(action) => act(app, action),
            None => {
                app.say_where_it_works(key);
                Vec::new()
            }
        },
        Mode::Help { .. } | Mode::Output { .. } if key.code == KeyCode::Char('q') => {
            app.mode = Mode::Browse;
            Vec::new()
        }
        // A user who searches the help is looking for an action.
        Mode::Help { .. } if key.code == KeyCode::Char('/') => {
            app.open_palette();
            Vec::new()
        }
        Mode::Help { .. } | Mode::Output { .. } => {
            asked(app, key).map_or_else(Vec::new, |a| act_in_pane(app, a))
        }
    }
}

/// Returns the action of a key in the view that has the keys, if any.
fn asked(app: &App, key: KeyEvent) -> Option<Action> {
    app.input.keymap.find(key, app.focus())
}

/// Carries out an action in the view that has the keys. Clicks and the palette call it as well.
pub(super) fn act(app: &mut App, action: Action) -> Vec<Effect> {
    if let Some(motion) = as_motion(action) {
        app.go(motion);
        return Vec::new();
    }
    match action {
        Action::View(view) => return app.apply_for_key(Order::View(view)),
        Action::NextView => return app.apply_for_key(Order::View(app.view.next())),
        Action::PreviousView => return app.apply_for_key(Order::View(app.view.previous())),
        Action::Find if app.difference_here().is_some() => {
            app.lines.detail = Detail::Notice(Notice::NotInDifference);
            app.input.find_in_vain = Some(app.now);
        }
        Action::Find => open_find(app),
        Action::FindNext => app.select_found(true, false),
        Action::FindPrevious => app.select_found(false, false),
        Action::SortRight => app.sort(Sort::Shift(1)),
        Action::SortLeft => app.sort(Sort::Shift(-1)),
        Action::Invert => app.invert(),
        Action::Freeze => {
            return app.apply_for_key(Order::Freeze(app.feed.freezing.frozen.is_none()));
        }
        Action::Explain => app.lines.detail = Detail::Explain,
        Action::Page => app.open_page(),
        Action::Code => app.open_code(),
        Action::Pane => app.toggle_pane(),
        Action::OtherPane => app.move_focus(),
        Action::Callers => app.open_callers(),
        Action::Machines => app.open_machines(),
        Action::Back => return go_back(app),
        Action::Forward => return app.apply_for_key(Order::Forward),
        Action::Narrow => return app.narrow(),
        Action::MarkRow => app.toggle_mark(),
        Action::Help => app.mode = Mode::Help { scroll: 0 },
        Action::Output => open_output(app),
        Action::ShorterWindow => return app.step_window(false),
        Action::LongerWindow => return app.step_window(true),
        Action::Mark => return app.apply_for_key(Order::Mark),
        Action::Write => app.open_write(),
        Action::Sampling => app.open_sampling(),
        Action::Unit => return app.next_unit(),
        Action::Metric => return app.next_metric(),
        Action::Baseline => return app.apply_for_key(Order::Baseline),
        Action::Difference => {
            return app.apply_for_key(Order::Difference(!app.knobs.shows_difference));
        }
        Action::EditFilter => open_filter(app),
        Action::Palette => app.open_palette(),
        Action::Filter(action) => return app.filter_by(action),
        Action::Probe => return app.probe_here(),
        Action::Renew => return app.apply_for_key(Order::Renew(ProbeChoice::Selected)),
        Action::Unprobe => return app.apply_for_key(Order::Unprobe(ProbeChoice::Selected)),
        Action::UnprobeAll => return app.apply_for_key(Order::Unprobe(ProbeChoice::All)),
        Action::Value => app.open_value(),
        Action::Kill => app.lines.detail = Detail::Notice(Notice::NoKill),
        _ => return ask(app, action),
    }
    Vec::new()
}

/// Carries out the actions that need something outside of the app, and those that only one view
/// knows.
fn ask(app: &mut App, action: Action) -> Vec<Effect> {
    match action {
        Action::Quit => vec![Effect::Quit],
        Action::Suspend => vec![Effect::Suspend],
        Action::Redraw => vec![Effect::Redraw],
        Action::Copy => copy(app, App::selected_name),
        Action::Syntax => app.apply_for_key(Order::Syntax(app.views.code.syntax().other())),
        Action::Mouse => {
            app.input.mouse.is_captured = !app.input.mouse.is_captured;
            app.lines.detail = Detail::Notice(Notice::Mouse(app.input.mouse.is_captured));
            vec![Effect::CaptureMouse(app.input.mouse.is_captured)]
        }
        _ => app.act_in_view(action),
    }
}

/// Closes what was opened last, or else undoes the last step.
fn go_back(app: &mut App) -> Vec<Effect> {
    if close_innermost(app) {
        return Vec::new();
    }
    app.apply_for_key(Order::Back)
}

/// Closes what was opened last: a search, a zoom, marks, the focus on the second view. Returns
/// false if none of these is open.
fn close_innermost(app: &mut App) -> bool {
    if app.find().is_some() {
        app.set_find(None);
        return true;
    }
    // What the view had open before the newest step of the history is closed by undoing that step.
    let here = app.pane_here();
    let before = app.history.last().and_then(|place| place.of(here));
    if app.views.get_mut(here).close_innermost(before) {
        return true;
    }
    if app.views.get(here).marked() > 0 {
        app.views.get_mut(here).unmark();
        return true;
    }
    if app.in_pane().is_some() {
        app.move_focus();
        return true;
    }
    let has_marks = PaneId::ALL
        .iter()
        .any(|pane| app.views.get(*pane).marked() > 0);
    if has_marks {
        app.unmark_all();
    }
    has_marks
}

/// Returns the movement of an action, or `None` if it is not a movement.
pub(super) fn as_motion(action: Action) -> Option<Motion> {
    let page = |down, half| Motion::Page { down, half };
    Some(match action {
        Action::Up => Motion::Up(1),
        Action::Down => Motion::Down(1),
        Action::PageUp => page(false, false),
        Action::PageDown => page(true, false),
        Action::HalfUp => page(false, true),
        Action::HalfDown => page(true, true),
        Action::Top => Motion::Top,
        Action::Bottom => Motion::Bottom,
        _ => return None,
    })
}

/// Copies a text to the terminal's clipboard, and shows that in a notice. Does nothing without a
/// text.
fn copy(app: &mut App, what: impl Fn(&App) -> Option<String>) -> Vec<Effect> {
    let Some(name) = what(app) else {
        return Vec::new();
    };
    app.lines.detail = Detail::Notice(Notice::Copied(name.clone()));
    vec![Effect::Copy(name)]
}

/// Opens the line for a pattern. The previous search is stored for Esc.
fn open_find(app: &mut App) {
    let before = app.find().map(|found| found.find.clone());
    app.mode = Mode::Find(Prompt {
        before,
        ..Prompt::default()
    });
}

/// Opens the line in which the filter is edited, filled with the present filter.
fn open_filter(app: &mut App) {
    let text = app.knobs.filter.to_string();
    app.mode = Mode::Filter(FilterPrompt {
        line: LineEdit::new(&text),
        error: None,
    });
}

/// Handles a key while the filter is edited: Enter applies it, Esc leaves the filter unchanged.
fn type_filter(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    let Mode::Filter(prompt) = &mut app.mode else {
        return Vec::new();
    };
    let is_empty = prompt.line.text().is_empty();
    match key.code {
        KeyCode::Esc => app.mode = Mode::Browse,
        KeyCode::Backspace if is_empty => app.mode = Mode::Browse,
        KeyCode::Enter => match prompt.line.text().parse() {
            Ok(filter) => {
                app.mode = Mode::Browse;
                return app.apply_for_key(Order::Filter(filter));
            }
            Err(error) => prompt.error = Some(error),
        },
        _ if prompt.line.press(key) => {
            prompt.error = prompt.line.text().parse::<Filter>().err();
        }
        _ => return leave_anyway(app, key),
    }
    Vec::new()
}

/// Opens the output of the started command, or shows a notice that there is none.
fn open_output(app: &mut App) {
    if app.shown.run.command_output.is_empty() {
        app.lines.detail = Detail::Notice(Notice::NoOutput);
    } else {
        app.mode = Mode::Output { scroll: 0 };
    }
}

/// Handles a key while a pattern is typed. Each key searches again, so that the matching rows are
/// highlighted while the pattern grows. Esc, and Backspace in an empty line, bring back the
/// previous search.
fn type_find(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    let Mode::Find(prompt) = &mut app.mode else {
        return Vec::new();
    };
    // Keys with Ctrl are not text: Ctrl-U empties the line, others go to `leave_anyway`.
    let control = key
        .modifiers
        .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    match key.code {
        KeyCode::Char('u') if control => prompt.text.clear(),
        KeyCode::Char(c) if !control && !c.is_control() => {
            if prompt.text.len() + c.len_utf8() <= FIND_LENGTH_MAX {
                prompt.text.push(c);
            }
        }
        KeyCode::Backspace if !prompt.text.is_empty() => {
            prompt.text.pop();
        }
        KeyCode::Esc | KeyCode::Backspace => {
            let before = prompt.before.take();
            app.mode = Mode::Browse;
            app.set_find(before);
            return Vec::new();
        }
        KeyCode::Enter => {
            if prompt.error.is_none() {
                let empty = prompt.text.is_empty();
                app.mode = Mode::Browse;
                // As in less, an empty pattern repeats the last search.
                if app.find().is_some() {
                    app.select_found(true, !empty);
                }
            }
            return Vec::new();
        }
        _ => return leave_anyway(app, key),
    }
    find_as_typed(app);
    Vec::new()
}

/// Carries out the actions that work while a line is being typed: quitting, suspending, redrawing.
pub(super) fn leave_anyway(app: &mut App, key: KeyEvent) -> Vec<Effect> {
    match asked(app, key) {
        Some(action @ (Action::Quit | Action::Suspend | Action::Redraw)) => ask(app, action),
        _ => Vec::new(),
    }
}

/// Searches for the typed pattern. An invalid pattern leaves the last search unchanged, because it
/// may be incomplete, such as an open bracket.
fn find_as_typed(app: &mut App) {
    let Mode::Find(prompt) = &mut app.mode else {
        return;
    };
    let find = if prompt.text.is_empty() {
        prompt.error = None;
        None
    } else {
        match Find::new(&prompt.text) {
            Ok(find) => {
                prompt.error = None;
                Some(find)
            }
            Err(error) => {
                prompt.error = Some(error);
                return;
            }
        }
    };
    app.set_find(find);
}

/// Carries out an action while the help or the output is open: it closes, changes or scrolls what
/// is open, or leaves the screen.
fn act_in_pane(app: &mut App, action: Action) -> Vec<Effect> {
    match action {
        Action::Back => app.mode = Mode::Browse,
        Action::Help => {
            app.mode = match app.mode {
                Mode::Help { .. } => Mode::Browse,
                _ => Mode::Help { scroll: 0 },
            }
        }
        Action::Output if matches!(app.mode, Mode::Output { .. }) => app.mode = Mode::Browse,
        _ => {
            if let Some(motion) = as_motion(action) {
                scroll(app, motion);
                return Vec::new();
            }
            return ask(app, action);
        }
    }
    Vec::new()
}

/// Scrolls the help or the output. The help counts lines from its start, the output from its end.
fn scroll(app: &mut App, motion: Motion) {
    let page = usize::from(app.terminal.size.height.saturating_sub(4)).max(1);
    let two_columns = help::has_two_columns(app.terminal.size.width);
    let view = app.focus();
    // `upwards` says that a larger number means further up.
    let (scroll, max, upwards) = match &mut app.mode {
        Mode::Help { scroll } => {
            let lines = help::line_count(&app.input.keymap, view, two_columns);
            // The frame takes two lines.
            let shown = usize::from(app.terminal.size.height.saturating_sub(2));
            (scroll, lines.saturating_sub(shown), false)
        }
        Mode::Output { scroll } => {
            let lines = app.shown.run.command_output.len();
            (scroll, lines.saturating_sub(1), true)
        }
        Mode::Browse
        | Mode::Find(_)
        | Mode::Filter(_)
        | Mode::Palette(_)
        | Mode::Write(_)
        | Mode::Sampling(_) => return,
    };
    let (down, lines) = match motion {
        Motion::Up(lines) => (false, lines),
        Motion::Down(lines) => (true, lines),
        Motion::Page { down, half } => (down, if half { page / 2 } else { page }),
        Motion::Top => (false, usize::MAX),
        Motion::Bottom => (true, usize::MAX),
    };
    *scroll = if down == upwards {
        scroll.saturating_sub(lines)
    } else {
        scroll.saturating_add(lines)
    }
    .min(max);
}

/// Maximum time between two letters of a word that the user is typing.
const TYPED_WITHIN: Duration = Duration::from_millis(700);

impl App {
    /// Whether a key belongs to a pattern that the user types although the view has no search. Its
    /// letters must not be taken for actions.
    fn is_typed_in_vain(&mut self, key: KeyEvent) -> bool {
        let Some(last) = self.input.find_in_vain.take() else {
            return false;
        };
        let is_text = matches!(
            key.code,
            KeyCode::Char(_) | KeyCode::Enter | KeyCode::Backspace
        );
        let is_plain = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let is_soon = self.now.saturating_sub(last) < TYPED_WITHIN;
        let is_it = is_text && is_plain && is_soon && matches!(self.mode, Mode::Browse);
        if is_it && key.code != KeyCode::Enter {
            self.input.find_in_vain = Some(self.now);
        }
        is_it
    }

    /// Shows in which views a key works that does nothing in this one. A key may mean different
    /// things in different views: the meaning with most views is explained, and of the others the
    /// views are named.
    fn say_where_it_works(&mut self, key: KeyEvent) {
        let mut label = None;
        let mut meanings: Vec<(&'static str, Vec<ViewId>)> = Vec::new();
        for binding in self
            .input
            .keymap
            .all()
            .iter()
            .filter(|it| !it.help.is_empty())
        {
            let Some(found) = binding.keys.iter().find(|each| each.is(key)) else {
                continue;
            };
            label.get_or_insert_with(|| found.label(true));
            let all = ViewId::ALL.into_iter().chain([ViewId::Page]);
            let views = all.filter(|view| binding.scope.holds(*view));
            match meanings.iter_mut().find(|(help, _)| *help == binding.help) {
                Some((_, known)) => known.extend(views),
                None => meanings.push((binding.help, views.collect())),
            }
        }
        let finds = self
            .input
            .keymap
            .all()
            .iter()
            .filter(|it| it.action == Action::Find);
        if finds.flat_map(|it| &it.keys).any(|each| each.is(key)) {
            self.input.find_in_vain = Some(self.now);
        }
        // If several meanings have equally many views, the first one in the table comes first.
        few::sort_by_key(&mut meanings, |(_, views)| Reverse(views.len()));
        let Some(((what, views), others)) = meanings.split_first() else {
            self.lines.detail = Detail::Notice(Notice::NoSuchKey);
            return;
        };
        let others = others.iter().flat_map(|(_, views)| views);
        self.lines.detail = Detail::Notice(Notice::WorksElsewhere {
            key: label.unwrap_or_default(),
            what,
            views: view_names(views),
            also: view_names(others),
        });
    }

    /// Scrolls the detail line by half its width, if there is more text in that direction.
    fn shift_detail(&mut self, is_right: bool) {
        if !is_right {
            self.lines.detail_shift = self.lines.detail_shift.saturating_sub(1);
            return;
        }
        let pane = self.pane_here();
        let width = usize::from(self.terminal.size.width);
        let room = DetailRoom {
            line: usize::MAX / 2,
            view: self
                .part()
                .map_or(self.terminal.size.width, |part| part.width),
        };
        let theme = Theme::detect(ThemeChoice::default(), |_| None);
        let drawn = self.views.drawn(pane);
        let whole = text::width(&drawn.detail(&self.context_of(pane), room, &theme));
        // After a step the line starts at (shift + 1) half widths, which has to be inside the text.
        if (self.lines.detail_shift + 2) * width / 2 < whole + width / 2 && whole > width {
            self.lines.detail_shift += 1;
        }
    }

    /// Carries out the order of a key, and shows the result in the detail line.
    pub(super) fn apply_for_key(&mut self, order: Order) -> Vec<Effect> {
        match self.apply(order) {
            Ok(applied) => self.show_applied(applied),
            Err(why) => {
                self.lines.detail = Detail::Notice(why);
                Vec::new()
            }
        }
    }
}

/// Returns the names of views as on their tabs, in the order of the tabs.
fn view_names<'a>(views: impl IntoIterator<Item = &'a ViewId>) -> String {
    let wanted: Vec<ViewId> = views.into_iter().copied().collect();
    let all = ViewId::ALL.into_iter().chain([ViewId::Page]);
    let names = all
        .filter(|view| wanted.contains(view))
        .map(|view| match view {
            // This view has no tab.
            ViewId::Page => "page",
            view => view.short_name(),
        });
    names.collect::<Vec<_>>().join(", ")
}
