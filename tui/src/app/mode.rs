//! The mode, which decides what the keys do, and the content of the detail line.

use crate::dialogs;
use crate::lists::find;
use crate::notice::Notice;

/// What receives the keys.
#[derive(Debug, Default)]
pub enum Mode {
    /// The view receives the keys.
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

/// The filter while it is being edited.
#[derive(Debug, Default)]
pub struct FilterPrompt {
    /// The text of the line.
    pub line: dialogs::line_edit::LineEdit,
    /// Why the text is not a filter.
    pub error: Option<profile::filter::FilterError>,
}

/// The content of the detail line.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The selected row.
    #[default]
    Row,
    /// The explanation of the selected row's number.
    Explain,
    /// A notice, such as what the last key did.
    Notice(Notice),
}
