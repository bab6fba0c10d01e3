//! What receives the keys, and what the detail line shows.

use crate::dialogs;
use crate::lists::find;
use crate::notice::Notice;

/// What receives the keys.
#[derive(Debug, Default)]
pub enum Mode {
    #[default]
    Browse,
    /// The find line is open.
    Find(find::Prompt),
    /// The write dialog is open.
    Write(dialogs::write::WriteDialog),
    /// The sampling dialog is open.
    Sampling(dialogs::sampling::SamplingDialog),
    /// The filter is being edited.
    Filter(FilterPrompt),
    /// The palette is open.
    Palette(dialogs::palette::Palette),
    /// The help is open, scrolled down by this many lines.
    Help { scroll: usize },
    /// The output of the started command is open, scrolled up by this many lines.
    Output { scroll: usize },
}

/// The filter while it is typed.
#[derive(Debug, Default)]
pub struct FilterPrompt {
    pub line: dialogs::line_edit::LineEdit,
    pub error: Option<profile::filter::FilterError>,
}

/// What the detail line shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The selected row.
    #[default]
    Row,
    /// The explanation of the selected row's number.
    Explain,
    /// What the last key did.
    Notice(Notice),
}
