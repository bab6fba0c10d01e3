//! The command `write`: writes the counted samples to a file.

use super::answer::{Answer, Trouble};
use super::dialog::{Dialog, sentence};
use crate::app::Written;
use crate::batch::BatchReport;
use crate::choices::Format as TextFormat;
use crate::dialogs::write::{Content, FileKind, KINDS, Manner, WriteJob};
use crate::run::writing;
use crate::words::units;
use profile::formats::Format;
use std::path::Path;

/// The flags before the name of the file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Flags {
    overwrite: bool,
    manner: Manner,
}

/// Splits the arguments into flags and the name of the file, which may contain blanks.
fn flags(words: &str) -> (Flags, &str) {
    let mut flags = Flags::default();
    let mut rest = words.trim();
    while let Some((word, behind)) = rest.split_once(' ') {
        match word {
            "-f" => flags.overwrite = true,
            "-t" => flags.manner.by_thread = true,
            "-n" => flags.manner.hides_names = true,
            "-s" => flags.manner.omits_symbols = true,
            "-b" => flags.manner.omits_build_ids = true,
            // Any other word that begins with `-` is part of the name.
            _ => break,
        }
        rest = behind.trim_start();
    }
    (flags, rest)
}

/// Runs `write`: writes the counted samples to a file, in the format of its extension.
pub fn write(dialog: &mut Dialog, words: &str) -> Result<Answer, Trouble> {
    let (Flags { overwrite, manner }, name) = flags(words);
    let path = Path::new(name);
    let format = match FileKind::of_path(path) {
        Some(FileKind::Profile(format)) => Some(format),
        Some(FileKind::Text) if manner.hides_names || manner.omits_symbols => {
            let what = "text shows names: write another format, or leave -n and -s out";
            return Err(Trouble::say(what));
        }
        Some(FileKind::Text) => None,
        None => {
            let endings: Vec<&str> = KINDS.iter().map(|kind| kind.ending()).collect();
            let endings = endings.join(" ");
            let what = format!("the end of the name tells the format: {endings}");
            return Err(Trouble::usage(what));
        }
    };
    let shown = &dialog.session.app.shown;
    let Some(view) = shown.view.clone() else {
        return Err(Trouble::say("no samples have come yet"));
    };
    let (content, text) = match format {
        Some(format) => {
            let query = shown.asked.query.clone();
            let content = Content::Profile {
                view,
                query: Box::new(query),
                format,
                manner,
                is_whole: false,
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
            is_repeated: false,
        },
        text,
        &|_| (),
    );
    match written {
        Written::Done { path, bytes } => {
            let mut line = format!("wrote {path}, {}", units::bytes(bytes));
            if format == Some(Format::Pft) {
                line += ": all samples, whatever window and filter";
            }
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

/// Returns the list of functions as `--batch` prints it.
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
        has_other_filters: false,
        top: None,
        width: None,
        tokens_max: usize::MAX,
    };
    report.render(TextFormat::Text, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_come_before_the_name() {
        let name = |words| flags(words).1;
        let (all, name_of_all) = flags(" -t  -f -n -s -b my file.folded ");
        assert_eq!(name_of_all, "my file.folded");
        assert!(all.overwrite);
        let Manner {
            by_thread,
            hides_names,
            omits_symbols,
            omits_build_ids,
        } = all.manner;
        assert!(by_thread && hides_names && omits_symbols && omits_build_ids);
        assert_eq!(flags("-x a.pft"), (Flags::default(), "-x a.pft"));
        assert_eq!(name("-f"), "-f", "a name of its own");
    }
}
