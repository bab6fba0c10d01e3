//! `explain_missing`: what is missing from stacks and names, why, and what to type to get it.

use super::arguments::Arguments;
use super::kept::Kept;
use super::samples::Lot;
use crate::code::Library;
use crate::commands::doctor;
use crate::desk::Desk;
use crate::views::health::{CauseAnswer, CauseRow, CauseWanted};
use crate::words::markdown::{self, Lines, quoted};
use crate::words::unnamed::why_unnamed;
use profile::{Cancel, NoName};

/// Maximum number of causes that are named, and of files for each cause.
const CAUSES_MAX: usize = 4;
const FILES_MAX: usize = 4;

/// Returns what is missing from the samples if the client names some, else the findings of `doctor`
/// on this machine or on a process.
pub fn answer(
    arguments: &Arguments,
    kept: &mut Kept,
    cancel: &Cancel,
    tokens_max: usize,
) -> Result<String, String> {
    match (arguments.text("samples")?, arguments.id("pid")?) {
        (Some(_), Some(_)) => Err("give `samples` or `pid`, not both".into()),
        (Some(name), None) => {
            let lot = kept.samples.find(name, None)?;
            of_samples(&lot, &mut kept.library, cancel, tokens_max)
        }
        (None, pid) => doctor::markdown(pid, tokens_max).map_err(|failure| failure.to_string()),
    }
}

fn of_samples(
    lot: &Lot,
    library: &mut dyn Library,
    cancel: &Cancel,
    tokens_max: usize,
) -> Result<String, String> {
    let mut lines = Lines::new(markdown::bytes(tokens_max));
    lines.push(&format!("# What is missing of {}", quoted(&lot.name)));
    let doubt = lot.report(tokens_max / 2).doubt();
    for line in doubt.trim_end().lines() {
        lines.push(line);
    }
    let lacks = &lot.snapshot.report.completeness;
    for (reason, frames) in lacks.unnamed.iter().take(CAUSES_MAX) {
        let cause = cause(lot, *reason, library, cancel)?;
        let head = format!(
            "{} of the frames: {}",
            lot.share(*frames, lacks.frames),
            why_unnamed(*reason)
        );
        if cause.rows.is_empty() || !lines.head(&head) {
            continue;
        }
        for row in cause.rows.iter().take(FILES_MAX) {
            lines.push(&file(lot, row, lacks.frames));
        }
        let rest = cause.rows.len().saturating_sub(FILES_MAX) + cause.others.0;
        if rest > 0 {
            lines.push(&format!("- {rest} more files"));
        }
    }
    Ok(lines.into_text())
}

/// Finds the files that have frames without a name for this reason.
fn cause(
    lot: &Lot,
    reason: NoName,
    library: &mut dyn Library,
    cancel: &Cancel,
) -> Result<CauseAnswer, String> {
    let wanted = CauseWanted::of(reason, &lot.snapshot);
    let ask = Desk::<_, CauseAnswer>::default()
        .ask(&lot.snapshot, wanted)
        .ok_or("it has no samples")?;
    CauseAnswer::new(&ask, library, cancel).ok_or_else(|| "cancelled".into())
}

/// Returns a line about a file: its share of all frames, and what would bring names.
fn file(lot: &Lot, row: &CauseRow, frames: u64) -> String {
    let mut line = format!(
        "- {} ({})",
        quoted(&row.nameless.path),
        lot.share(row.nameless.frames, frames)
    );
    if let Some(package) = &row.advice.package {
        line += &format!(", of the package {}", quoted(package));
    }
    let help = row.advice.line();
    if !help.is_empty() {
        line += &format!(". What helps: {}", quoted(help));
    }
    line
}
