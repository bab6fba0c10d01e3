//! The state that is *kept* from one run to the next, for each target: order, unit and layout.
//! Scope, window, filter and baseline are not kept, because they change which samples count: in an
//! emergency a user has to see everything, and not what an earlier filter leaves.

/// Checks of reading and writing, for random text.
#[cfg(feature = "fuzz")]
mod any_text;
/// The file of the state.
mod file;

#[cfg(feature = "fuzz")]
pub use any_text::check_any_state;

use crate::app::App;
use crate::code::Syntax;
use crate::knobs::Unit;
use crate::view_id::ViewId;
use crate::views::code::Layout;
use crate::views::functions::FunctionColumn;
use file::StateFile;
use profile::query::Direction;
use serde::{Deserialize, Serialize};

/// The kept state of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    /// The view that opens. It is not kept: at each start the first question is which functions use
    /// the CPUs.
    pub view: ViewId,
    pub sort: FunctionColumn,
    pub inverted: bool,
    /// None means the usual unit of each view.
    pub unit: Option<Unit>,
    pub tree: Direction,
    /// Whether processes are shown as a tree.
    pub is_family: bool,
    /// Whether the second view beside the open one is hidden.
    pub is_pane_off: bool,
    pub layout: Layout,
    pub syntax: Syntax,
}

/// Maximum number of targets: the last ones are kept.
const TARGETS_MAX: usize = 50;
/// Maximum length of a target's name, in characters.
const NAME_MAX: usize = 200;
/// Maximum length of a word that stands for a value, in characters. Those that we write are shorter.
const WORD_MAX: usize = 40;

/// The comment at the beginning of the file.
const HEAD: &str = "\
# How proftop was left, for each target. It may be deleted; --fresh ignores it.
";

/// The contents of the file. Unknown fields are ignored.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct KeptFile {
    /// Whether debug files may be fetched: `on` or `off`, or empty if the user has not answered.
    debuginfod: String,
    target: Vec<Entry>,
}

/// The kept state of a target, as words. An unknown word, from another version, is read as the
/// default.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Entry {
    name: String,
    sort: String,
    inverted: bool,
    unit: String,
    tree: String,
    family: bool,
    pane_off: bool,
    code: String,
    syntax: String,
}

/// Returns the name under which a target is remembered: without its pid, which changes.
pub fn name(scope: &str) -> String {
    let name = match scope
        .strip_suffix(']')
        .and_then(|text| text.rsplit_once('['))
    {
        Some((name, number)) if number.parse::<u32>().is_ok() => name,
        _ => scope,
    };
    name.chars().take(NAME_MAX).collect()
}

/// Returns the kept state of a target. None if there is none.
pub fn load(name: &str) -> Option<Kept> {
    find(&StateFile::find()?.read()?, name)
}

/// Saves the state of a target. Errors are ignored, because nothing important is lost.
pub fn save(name: &str, kept: Kept) {
    if let Some(file) = StateFile::find() {
        let before = file.read().unwrap_or_default();
        if find(&before, name) != Some(kept) {
            let _ = file.write(&put(&before, name, kept));
        }
    }
}

/// Returns whether debug files may be fetched. None if the user has not answered.
pub fn fetching() -> Option<bool> {
    answer(&StateFile::find()?.read()?)
}

/// Saves for all targets whether debug files may be fetched.
pub fn save_fetching(is_allowed: bool) {
    if let Some(file) = StateFile::find() {
        let before = file.read().unwrap_or_default();
        if answer(&before) != Some(is_allowed) {
            let _ = file.write(&put_answer(&before, is_allowed));
        }
    }
}

/// Returns the user's answer in the text of the file. None if it has none.
fn answer(text: &str) -> Option<bool> {
    match read(text).debuginfod.as_str() {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// Returns the text of the file with a new answer.
fn put_answer(text: &str, is_allowed: bool) -> String {
    let mut state = read(text);
    state.debuginfod = if is_allowed { "on" } else { "off" }.into();
    written(&state)
}

fn written(state: &KeptFile) -> String {
    format!("{HEAD}\n{}", toml::to_string(state).unwrap_or_default())
}

/// Returns the kept state of a target in the text of the file.
fn find(text: &str, name: &str) -> Option<Kept> {
    let state = read(text);
    let entry = state.target.into_iter().find(|entry| entry.name == name)?;
    Some(entry.kept())
}

/// Returns the text of the file with this target as its first one.
fn put(text: &str, name: &str, kept: Kept) -> String {
    let mut state = read(text);
    state.target.retain(|entry| entry.name != name);
    state.target.insert(0, Entry::new(name, kept));
    state.target.truncate(TARGETS_MAX);
    written(&state)
}

/// Parses the file. An invalid one counts as empty, and lengths are limited.
fn read(text: &str) -> KeptFile {
    let mut state: KeptFile = toml::from_str(text).unwrap_or_default();
    state.target.truncate(TARGETS_MAX);
    cut(&mut state.debuginfod, WORD_MAX);
    for entry in &mut state.target {
        let Entry {
            name,
            sort,
            unit,
            tree,
            code,
            syntax,
            inverted: _,
            family: _,
            pane_off: _,
        } = entry;
        cut(name, NAME_MAX);
        for word in [sort, unit, tree, code, syntax] {
            cut(word, WORD_MAX);
        }
    }
    state
}

/// Shortens a text to a maximum number of characters.
fn cut(text: &mut String, chars_max: usize) {
    if let Some((end, _)) = text.char_indices().nth(chars_max) {
        text.truncate(end);
    }
}

/// The columns by which functions can be sorted, as they are written to the file.
const COLUMNS: [FunctionColumn; 4] = [
    FunctionColumn::SelfSamples,
    FunctionColumn::TotalSamples,
    FunctionColumn::Name,
    FunctionColumn::Module,
];
const LAYOUTS: [Layout; 3] = [Layout::Both, Layout::Source, Layout::Assembly];

/// Returns the value that has this word, or the default if none has.
fn by_word<T: Copy + Default>(all: &[T], word: &str, words: impl Fn(T) -> &'static str) -> T {
    let mut all = all.iter().copied();
    all.find(|each| words(*each) == word).unwrap_or_default()
}

impl Entry {
    fn new(name: &str, kept: Kept) -> Self {
        Entry {
            name: name.to_owned(),
            sort: kept.sort.words().to_owned(),
            inverted: kept.inverted,
            unit: kept.unit.map_or("", Unit::words).to_owned(),
            tree: direction(kept.tree).to_owned(),
            family: kept.is_family,
            pane_off: kept.is_pane_off,
            code: kept.layout.name().to_owned(),
            syntax: kept.syntax.name().to_owned(),
        }
    }

    fn kept(&self) -> Kept {
        let syntax = Syntax::default();
        Kept {
            view: ViewId::default(),
            sort: by_word(&COLUMNS, &self.sort, FunctionColumn::words),
            inverted: self.inverted,
            unit: Unit::ALL.into_iter().find(|unit| unit.words() == self.unit),
            tree: match self.tree.as_str() {
                "callers" => Direction::BottomUp,
                _ => Direction::TopDown,
            },
            is_family: self.family,
            is_pane_off: self.pane_off,
            layout: by_word(&LAYOUTS, &self.code, Layout::name),
            syntax: if self.syntax == syntax.other().name() {
                syntax.other()
            } else {
                syntax
            },
        }
    }
}

/// Returns the word for a direction: what is in the first level of the tree.
fn direction(tree: Direction) -> &'static str {
    match tree {
        Direction::TopDown => "callees",
        Direction::BottomUp => "callers",
    }
}

impl Kept {
    /// Returns the state of the app that is kept.
    pub fn of(app: &App) -> Self {
        let functions = &app.views.functions;
        Kept {
            view: ViewId::default(),
            sort: functions.table.column(),
            inverted: functions.table.is_inverted(),
            unit: app.knobs.unit,
            tree: app.views.tree.direction(),
            is_family: app.views.processes.is_family(),
            is_pane_off: !app.pane_state.is_wanted,
            layout: app.views.code.wanted_layout(),
            syntax: app.views.code.syntax(),
        }
    }

    /// Restores the kept state in an app.
    pub fn restore(self, app: &mut App) {
        app.view = self.view;
        app.knobs.unit = self.unit;
        app.pane_state.is_wanted = !self.is_pane_off;
        if app.views.tree.direction() != self.tree {
            app.views.tree.invert();
        }
        app.views.code.set_look(self.layout, self.syntax);
        let report = &app.shown.report;
        if app.views.processes.is_family() != self.is_family {
            app.views.processes.toggle_family(report);
        }
        app.views
            .functions
            .table
            .set_order(self.sort, self.inverted, report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_answer_is_for_all_targets() {
        let kept = Kept::default();
        let text = put(&put_answer("", false), "postgres", kept);
        assert_eq!(
            (answer(&text), find(&text, "postgres")),
            (Some(false), Some(kept))
        );
        let text = put_answer(&text, true);
        assert_eq!(
            (answer(&text), find(&text, "postgres")),
            (Some(true), Some(kept))
        );
        assert_eq!(answer("debuginfod = \"perhaps\""), None);
        assert_eq!(answer(""), None);
    }
    use crate::geometry::Size;
    use engine::snapshot::Span;

    fn changed() -> Kept {
        Kept {
            view: ViewId::Functions,
            sort: FunctionColumn::Name,
            inverted: true,
            unit: Some(Unit::CpuMs),
            tree: Direction::BottomUp,
            is_family: true,
            is_pane_off: true,
            layout: Layout::Assembly,
            syntax: Syntax::default().other(),
        }
    }

    #[test]
    fn what_is_kept_comes_back() {
        let text = put("", "system", changed());
        assert!(text.starts_with("# How"), "{text}");
        assert_eq!(find(&text, "system"), Some(changed()));
        assert_eq!(find(&text, "postgres"), None);
        let text = put(&text, "postgres", Kept::default());
        assert_eq!(find(&text, "postgres"), Some(Kept::default()));
        assert_eq!(find(&text, "system"), Some(changed()));
        let again = put(&text, "system", Kept::default());
        assert_eq!(again.matches("\"system\"").count(), 1);
    }

    proptest! {
        #[test]
        fn whatever_is_in_the_file_is_replaced(
            text in "(\\[\\[?[a-z]{0,6}\\]?\\]\n|(name|sort|inverted|unit|tree|code|family|debuginfod) = (\"\\PC{0,300}\"|true|[\\[{0-9.\"]{0,9})\n|target = [\\[\\]{},]{0,300}|\\PC{0,8}){0,6}",
        ) {
            _ = (answer(&text), find(&text, "system"));
            let written = put(&text, "system", changed());
            prop_assert_eq!(find(&written, "system"), Some(changed()));
            prop_assert!(written.len() < 64 << 10);
        }
    }

    #[test]
    fn an_app_is_as_it_was_left() {
        let size = Size {
            width: 80,
            height: 24,
        };
        let mut app = App::new(size, Span::default(), 1, false);
        assert_eq!(Kept::of(&app), Kept::default());
        changed().restore(&mut app);
        assert_eq!(Kept::of(&app), changed());
        assert!(app.knobs.filter.is_empty() && app.knobs.scope.is_empty());
        app.view = ViewId::Tree;
        assert_eq!(Kept::of(&app).view, ViewId::Functions);
    }

    #[test]
    fn a_target_is_known_without_its_number() {
        assert_eq!(name("postgres[4121]"), "postgres");
        assert_eq!(name("system"), "system");
        assert_eq!(name("a[b]"), "a[b]");
        assert_eq!(name(&"x".repeat(1000)).len(), NAME_MAX);
    }

    #[test]
    fn only_the_last_targets_are_remembered() {
        let mut text = String::new();
        for number in 0..TARGETS_MAX + 9 {
            text = put(&text, &format!("target {number}"), changed());
        }
        assert_eq!(text.matches("[[target]]").count(), TARGETS_MAX);
        assert!(find(&text, "target 58").is_some() && find(&text, "target 8").is_none());
    }

    #[test]
    fn no_more_is_written_than_is_read() {
        let max = file::BYTES_MAX as usize;
        let (head, mark) = ("[[target]]\nname = 'a'\nsort = '", "'\n");
        let word = "x".repeat(max - head.len() - mark.len());
        // Control characters take six bytes each.
        let escaped = "\\u0001".repeat(1000);
        let many = format!("[[target]]\nname = \"{escaped}\"\nsort = \"{escaped}\"\n");
        let answer = format!("debuginfod = '{}'", "x".repeat(max - 20));
        for text in [format!("{head}{word}{mark}"), many.repeat(20), answer] {
            assert!(text.len() <= max);
            for written in [put(&text, "b", changed()), put_answer(&text, true)] {
                assert!(written.len() <= max, "{}", written.len());
                assert!(!written.contains(&"x".repeat(WORD_MAX + 1)));
            }
        }
    }

    #[test]
    fn what_is_not_understood_is_left_out() {
        for text in ["[[target", "target = 3", "\0", "[[target]]\nname = 1"] {
            assert_eq!(find(text, ""), None, "{text}");
            assert!(find(&put(text, "a", changed()), "a").is_some());
        }
        let odd = "[[target]]\nname = 'a'\nview = 'code'\nsort = 'x'\nunit = '\\u001b'\nmore = 1";
        assert_eq!(find(odd, "a"), Some(Kept::default()));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".{0,200}", name in ".{0,300}") {
            let _ = find(&text, &name);
            let name = super::name(&name);
            prop_assert_eq!(find(&put(&text, &name, changed()), &name), Some(changed()));
        }
    }
}
