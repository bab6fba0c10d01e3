//! What the keys go to, and what the detail line says.

use crate::dialogs;
use crate::lists::find;
use crate::notice::Notice;

/// What the keys go to.
#[derive(Debug, Default)]
pub enum Mode {
    #[default]
    Browse,
    /// The find line is open.
    Find(find::Prompt),
    /// What to write, and where to.
    Write(dialogs::write::WriteDialog),
    /// How samples are taken.
    Sampling(dialogs::sampling::SamplingDialog),
    /// The filter is being edited.
    Filter(FilterPrompt),
    /// What to do is being chosen by its name.
    Palette(dialogs::palette::Palette),
    /// The help is open, scrolled down by so many lines.
    Help { scroll: usize },
    /// The started command's output is open, scrolled up by so many lines.
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
    /// The selected row's number as a sentence.
    Explain,
    /// What the last key did.
    Notice(Notice),
}
