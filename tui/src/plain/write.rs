//! What is counted, to a file.

use super::answer::{Answer, Trouble};
use super::dialog::{Dialog, sentence};
use crate::app::Written;
use crate::batch::BatchReport;
use crate::cli::Format as TextFormat;
use crate::run::writing;
use crate::screen::write::{Content, KINDS, WriteJob};
use crate::view::units;
use profile::formats::Format;
use std::path::Path;

pub fn write(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let (overwrite, name) = match words.strip_prefix("-f ") {
        Some(name) => (true, name.trim()),
        None => (false, words),
    };
    let path = Path::new(name);
    let format = Format::of_path(path);
    let is_text = name.ends_with(".txt");
    if format.is_none() && !is_text {
        let endings: Vec<&str> = KINDS.iter().map(|kind| kind.ending()).collect();
        let endings = endings.join(" ");
        let what = format!("the end of the name tells the format: {endings}");
        return Err(Trouble::usage(what));
    }
    let shown = &dialog.session.app.shown;
    let Some(view) = shown.view.clone() else {
        return Err(Trouble::say("no samples have come yet"));
    };
    let (content, text) = match format {
        Some(format) => {
            let query = shown.query.clone();
            let content = Content::Profile {
                view,
                query,
                format,
            };
            (content, String::new())
        }
        None => (Content::Screen, report(dialog)),
    };
    let loses = format.map_or(&[][..], Format::loses);
    let written = writing::write(
        WriteJob {
            path: path.to_owned(),
            overwrite,
            content,
        },
        text,
    );
    match written {
        Written::Done { path, bytes } => {
            let mut line = format!("wrote {path}, {}", units::bytes(bytes));
            if !loses.is_empty() {
                line += &format!("; it does not hold: {}", loses.join(", "));
            }
            sentence(line)
        }
        Written::Exists(_) => Err(Trouble::say(format!(
            "{name} exists: write -f overwrites it"
        ))),
        Written::Failed(why) => Err(Trouble::say(format!("not written: {why}"))),
    }
}

/// The functions, as batch output prints them.
fn report(dialog: &Dialog) -> String {
    let shown = &dialog.session.app.shown;
    let view = shown.view.as_ref();
    let epoch_ms = view.map_or(0, |view| view.info().epoch_unix_ms);
    let end_ms = shown.report.window.end_ns / 1_000_000;
    let report = BatchReport {
        snapshot: shown,
        version: env!("CARGO_PKG_VERSION"),
        time_unix_ms: end_ms.saturating_add_signed(epoch_ms),
        pids: &[],
        top: None,
        width: None,
    };
    report.render(TextFormat::Text, true)
}
