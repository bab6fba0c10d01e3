//! The *tabs* of the views and their places in the line of tabs. If the names do not fit, the tabs
//! at the right lose theirs first; the open one keeps its name.

use crate::action::{Action, Keymap};
use crate::view_id::ViewId;
use unicode_width::UnicodeWidthStr;

/// A tab: its view, the column at which it starts, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tab {
    pub view: ViewId,
    /// The column at which the text starts.
    pub start: u16,
    pub text: String,
}

impl Tab {
    /// Returns the width of the text in cells.
    pub fn width(&self) -> u16 {
        self.text.width() as u16
    }
}

/// Returns the text at the right end of the line of tabs: the key of the help.
pub fn help(keymap: &Keymap, open: ViewId) -> String {
    let key = keymap.label(Action::Help, open);
    key.map_or_else(String::new, |key| format!("{key} help"))
}

/// Keys with longer names are not shown, because they would leave no room for the names of views.
const KEY_WIDTH_MAX: usize = 3;

/// Returns the tabs from left to right, in a line of this width.
pub fn tabs(keymap: &Keymap, open: ViewId, width: u16) -> Vec<Tab> {
    let key = |view: ViewId| {
        let key = keymap.label(Action::View(view), open);
        key.filter(|key| key.width() <= KEY_WIDTH_MAX)
    };
    let open_tab = open.tab();
    let long = |view: ViewId| match key(view) {
        Some(key) => format!("{key} {}", view.short_name()),
        None => view.short_name().to_owned(),
    };
    // The key, or the first letter of the name if no short key opens the view.
    let short = |view: ViewId| key(view).unwrap_or_else(|| view.short_name()[..1].to_owned());
    let room = usize::from(width).saturating_sub(help(keymap, open).width() + 1);
    let mut needed: usize = ViewId::ALL.iter().map(|view| long(*view).width() + 2).sum();
    let mut nameless = Vec::new();
    // Starting at the right end, names are left out until the others fit.
    for view in ViewId::ALL.into_iter().rev() {
        if needed > room && view != open_tab {
            needed -= long(view).width() - short(view).width();
            nameless.push(view);
        }
    }
    let mut start = 0;
    let tab = move |view: ViewId| {
        let name = if !nameless.contains(&view) {
            long(view)
        } else {
            short(view)
        };
        let text = if view == open_tab {
            format!("[{name}]")
        } else {
            format!(" {name} ")
        };
        let tab = Tab { view, start, text };
        start += tab.width();
        tab
    };
    ViewId::ALL.into_iter().map(tab).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Key;

    #[track_caller]
    fn assert_fits(keymap: &Keymap, open: ViewId, width: u16) {
        let tabs = tabs(keymap, open, width);
        let last = tabs.last().expect("there are views");
        let help = help(keymap, open).width() as u16;
        assert!(last.start + last.width() + help <= width, "{tabs:?}");
    }

    #[test]
    fn tabs_fit_any_screen() {
        let keymap = Keymap::default();
        for width in 60..200 {
            for open in ViewId::ALL {
                assert_fits(&keymap, open, width);
                let tabs = tabs(&keymap, open, width);
                let number = ViewId::ALL.iter().position(|view| *view == open);
                let number = number.expect("it has a tab") + 1;
                let name = format!("[{number} {}]", open.short_name());
                assert!(tabs.iter().any(|tab| tab.text == name));
            }
        }
    }

    #[test]
    fn tabs_name_the_keys_that_lead_there() {
        let mut keymap = Keymap::default();
        let key = |text: &str| text.parse::<Key>().expect("a key");
        keymap.rebind("view-tree", &[key("f12")]);
        keymap.rebind("view-flame", &[]);
        keymap.rebind("view-time", &[key("shift-tab")]);
        keymap.rebind("help", &[key("ctrl-h")]);
        let text = |width| {
            let tabs = tabs(&keymap, ViewId::Page, width);
            tabs.into_iter().map(|tab| tab.text).collect::<String>()
        };
        assert_eq!(
            text(120),
            "[1 Func] F12 Tree  Flame  4 Proc  5 Thread  Time  7 Code  8 Health  9 Probes "
        );
        assert_eq!(text(60), "[1 Func] F12 Tree  Flame  4 Proc  5  T  7  8  9 ");
        assert_eq!(help(&keymap, ViewId::Page), "^h help");
        for width in 60..200 {
            assert_fits(&keymap, ViewId::Health, width);
        }
    }
}
