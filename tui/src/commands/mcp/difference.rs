//! `diff`: what surely changed between two lots of samples, or between a lot and new samples.

use super::arguments::Arguments;
use super::kept::Kept;
use super::look;
use crate::commands::diff;
use profile::{Cancel, Filter};

/// Returns what changed from `a` to `b`. Without `b`, new samples are taken.
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
    let (first, second) = (a.view()?, b.view()?);
    let metrics = [first, second].map(|view| &view.info().metric);
    let names = [a.name.clone(), b.name.clone()];
    let select =
        |filter: Filter| Ok([a.select(filter.clone(), cancel)?, b.select(filter, cancel)?]);
    diff::markdown(metrics, &filter, select, names, tokens_max)
}
