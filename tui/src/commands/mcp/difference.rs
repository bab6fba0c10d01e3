//! `diff`: what surely changed between two lots of samples, or between one and now.

use super::arguments::Arguments;
use super::kept::Kept;
use super::{look, samples::Lot};
use crate::commands::diff;
use profile::Cancel;

/// Returns what changed from `a` to `b`; without `b`, to what is sampled now.
pub fn answer(
    arguments: &Arguments,
    kept: &mut Kept,
    cancel: &Cancel,
    tokens_max: usize,
) -> Result<String, String> {
    let a = kept.samples.find_or_newest(arguments.text("a")?)?;
    let b = match arguments.text("b")? {
        Some(name) => kept.samples.find(name, None)?,
        None => look::sample(arguments, kept, cancel)?,
    };
    let filter = arguments.text("filter")?.unwrap_or_default();
    let filter = crate::values::filter(filter).map_err(|why| format!("`filter`: {why}"))?;
    let select = |lot: &Lot| lot.select(filter.clone(), cancel);
    let names = [a.name.clone(), b.name.clone()];
    let text = diff::markdown(&select(&a)?, &select(&b)?, names, tokens_max);
    text.map_err(|failure| failure.to_string())
}
