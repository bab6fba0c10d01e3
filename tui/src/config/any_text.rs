//! Any text, read as a configuration: for the fuzz target `configuration`.

use super::Settings;
use super::read::{LISTED_MAX, read};
use super::written::effective;

/// Reads a text as a file of the configuration, and writes the settings that it has.
///
/// # Panics
///
/// If a complaint has no place in the text or is not safe to print, or if the settings in effect
/// cannot be read again as they were written.
pub fn check_any_configuration(text: &str) {
    let mut settings = Settings::default();
    let complaints = read(text, "c.toml", &mut settings);
    for (index, complaint) in complaints.iter().enumerate() {
        match complaint.at {
            Some((line, column)) => {
                assert!(line <= text.split('\n').count() && column <= text.len() + 1);
            }
            None => assert_eq!(index, LISTED_MAX, "a part of the file is meant"),
        }
        assert_eq!(
            symbolize::sanitize(complaint.what.as_bytes()),
            complaint.what
        );
    }
    if settings == Settings::default() {
        return;
    }
    // What is written has every option, also those that the text does not have: written and read
    // again, that stays as it is.
    let written = effective(&settings);
    let mut again = Settings::default();
    assert_eq!(read(&written, "c.toml", &mut again), []);
    // The same text is read as the same settings.
    let written_again = effective(&again);
    if written_again == written {
        return;
    }
    let mut same = Settings::default();
    assert_eq!(read(&written_again, "c.toml", &mut same), []);
    assert_eq!(same, again);
}
