//! The *configuration*: settings that a user does not want to type each time. There are two files,
//! that of the machine and then that of the user. The command line overrides both.
//!
//! A mistake in a file never keeps proftop from starting: it is reported with its line and column,
//! and ignored.

/// Checks of reading and writing, for random text.
#[cfg(feature = "fuzz")]
mod any_text;
/// The table of all settings.
mod options;
/// The paths of the files, and opening them.
mod places;
/// Strings in TOML.
mod quote;
/// Reads settings from TOML.
mod read;
/// Writes a template, and the settings in effect.
mod written;

#[cfg(feature = "fuzz")]
pub use any_text::check_any_configuration;
pub use places::{ConfigFile, files, home};
pub use written::{effective, template};

use crate::action::Keymap;
use crate::choices::{Color, EngineChoice, Sort, Theme};
use crate::code::source_map::Mapping;
use crate::condition::Condition;
use crate::knobs::Unit;
use crate::values::Percent;
use crate::view_id::ViewId;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The settings of the files. None for those that they do not contain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    pub rate_hz: Option<u32>,
    pub engine: Option<EngineChoice>,
    pub depth_max: Option<u32>,
    pub budget: Option<Percent>,
    pub keep: Option<Duration>,
    pub memory_bytes_max: Option<u64>,
    pub start: Option<ViewId>,
    pub window: Option<Duration>,
    pub refresh: Option<Duration>,
    pub sort: Option<Sort>,
    pub unit: Option<Unit>,
    pub theme: Option<Theme>,
    pub color: Option<Color>,
    pub ascii: Option<bool>,
    pub mouse: Option<bool>,
    pub agent: AgentSettings,
    pub keymap: Keymap,
    /// Those of the later file are first: the first one that matches wins.
    pub source_maps: Vec<Mapping>,
}

/// The settings of the flight recorder that runs as a service.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentSettings {
    pub rate_hz: Option<u32>,
    /// 0 means that there is no cohort.
    pub cohort_rate_hz: Option<u32>,
    pub cohort_share: Option<f64>,
    pub cohort_period: Option<Duration>,
    pub length: Option<Duration>,
    pub bytes_max: Option<u64>,
    pub conditions: Option<Vec<Condition>>,
    pub after: Option<Duration>,
    pub saves: Option<u32>,
    /// An empty path means no spool.
    pub spool: Option<PathBuf>,
    pub spool_window: Option<Duration>,
    pub spool_bytes_max: Option<u64>,
}

/// A part of a file that was ignored, and why. Displayed as `/etc/proftop.toml:3:8: rate: not a
/// number from 1 to 10000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    file: String,
    /// Line and column, from 1. None if it is about the file as a whole.
    at: Option<(usize, usize)>,
    what: String,
    /// How many mistakes this stands for: one, or all that are not listed.
    mistakes: usize,
}

impl Complaint {
    /// Returns how many mistakes this stands for.
    pub fn mistakes(&self) -> usize {
        self.mistakes
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((line, column)) = self.at {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// Reads the files of this machine and user. Also returns the complaints about them.
pub fn load() -> (Settings, Vec<Complaint>) {
    let mut settings = Settings::default();
    let mut complaints = Vec::new();
    for place in files() {
        let complaint = |what| Complaint {
            file: place.name(),
            at: None,
            what,
            mistakes: 1,
        };
        match place.read() {
            Ok(Some(text)) => complaints.extend(read::read(&text, &place.name(), &mut settings)),
            Ok(None) if place.is_named() => {
                complaints.push(complaint("no such file, named by PROFTOP_CONFIG".into()));
            }
            Ok(None) => {}
            Err(what) => complaints.push(complaint(what)),
        }
    }
    (settings, complaints)
}
