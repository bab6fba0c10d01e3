//! The *tabs* of the views: where each is on its line. Where their names do not
//! fit, only the open one has its name.

use super::View;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tab {
    pub view: View,
    pub start: u16,
    pub text: String,
}

impl Tab {
    pub fn width(&self) -> u16 {
        self.text.len() as u16
    }
}

/// What follows the tabs at the right edge.
pub const HELP: &str = "? help";

pub fn tabs(open: View, width: u16) -> Vec<Tab> {
    let open = open.tab();
    let long = |view: View| format!("{} {}", view.digit(), view.short_name());
    let room = usize::from(width).saturating_sub(HELP.len() + 1);
    let needed: usize = View::ALL.iter().map(|view| long(*view).len() + 2).sum();
    let mut start = 0;
    let tab = move |view: View| {
        let name = match needed <= room || view == open {
            true => long(view),
            false => view.digit().to_string(),
        };
        let text = match view == open {
            true => format!("[{name}]"),
            false => format!(" {name} "),
        };
        let tab = Tab { view, start, text };
        start += tab.width();
        tab
    };
    View::ALL.into_iter().map(tab).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_fit_any_screen() {
        for width in 60..200 {
            for open in View::ALL {
                let tabs = tabs(open, width);
                let last = tabs.last().expect("there are views");
                assert!(last.start + last.width() + HELP.len() as u16 <= width);
                let name = format!("[{} {}]", open.digit(), open.short_name());
                assert!(tabs.iter().any(|tab| tab.text == name));
            }
        }
    }
}
