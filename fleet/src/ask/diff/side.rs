//! Parses a side of a comparison: `version=1.2`, `host=db-01`, `2026-11-20..2026-11-21`.

use crate::dates;
use crate::failure::{Failure, safe};
use crate::sql::{Column, Selection};
use clap::ValueEnum as _;

/// Parses all arguments for one side.
pub fn read(words: &[String], option: &str) -> Result<Selection, Failure> {
    let now = dates::now_ms();
    let mut selection = Selection::default();
    for word in words {
        if let Some((name, value)) = word.split_once('=') {
            let column = Column::from_str(name, false).map_err(|_| {
                Failure::usage(format!(
                    "{option} {}: write host, service, namespace, version or container before the =",
                    safe(word)
                ))
            })?;
            selection.add(column, value)?;
            continue;
        }
        let Some((since, until)) = word.split_once("..") else {
            return Err(Failure::usage(format!(
                "{option} {}: write COLUMN=VALUE or a time FROM..TO",
                safe(word)
            )));
        };
        if selection.since_ms.is_some() || selection.until_ms.is_some() {
            return Err(Failure::usage(format!(
                "{option} has two times: one is the most"
            )));
        }
        let time = |text: &str| match text {
            "" => Ok(None),
            text => {
                let read = dates::read(text, now).map(Some);
                read.map_err(|why| Failure::usage(format!("{option} {}: {why}", safe(word))))
            }
        };
        selection.since_ms = time(since)?;
        selection.until_ms = time(until)?;
        match (selection.since_ms, selection.until_ms) {
            (None, None) => return Err(Failure::usage(format!("{option} ..: a time is missing"))),
            (Some(since), Some(until)) if since >= until => {
                return Err(Failure::usage(format!(
                    "{option} {}: it ends before it begins",
                    safe(word)
                )));
            }
            _ => {}
        }
    }
    Ok(selection)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(word: &str) -> Result<Selection, Failure> {
        read(&[word.into()], "--a")
    }

    #[test]
    fn a_side_is_values_or_a_time() {
        let version = read_one("version=a=b..c").unwrap();
        assert_eq!(version.values, [(Column::Version, "a=b..c".into())]);
        let time = read_one("2026-11-20..2026-11-21T12:00").unwrap();
        let hours = time.until_ms.unwrap() - time.since_ms.unwrap();
        assert_eq!(hours, 36 * 3_600_000);
        assert_eq!(read_one("..2026-11-21").unwrap().since_ms, None);
        for wrong in [
            "",
            "..",
            "version",
            "colour=red",
            "1h..2h",
            "x..y",
            "host=\u{1b}",
        ] {
            assert!(read_one(wrong).is_err(), "{wrong}");
        }
        let two = ["1h..", "..2h"].map(String::from);
        assert!(read(&two, "--a").is_err());
    }
}
