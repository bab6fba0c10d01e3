//! Suggests existing values when a selection is empty.

use crate::dates;
use crate::engine::Engine;
use crate::failure::{Failure, safe};
use crate::sql::{Dialect, Selection};

/// Maximum number of values in a sentence.
const TOLD_MAX: usize = 8;

/// Maximum number of names of functions that are searched.
const NAMES_MAX: usize = 2_000_000;

/// Returns why there is no sample in a selection, with existing values.
pub fn no_samples(
    engine: &dyn Engine,
    dialect: &dyn Dialect,
    selection: &Selection,
) -> Result<Failure, Failure> {
    let of_time = Selection {
        values: Vec::new(),
        ..selection.clone()
    };
    let list = |column: &str, condition: &str| -> Result<Vec<String>, Failure> {
        let sql = format!(
            "SELECT {column} AS name, sum(value) AS counted FROM samples WHERE {condition}\n\
             GROUP BY {column} ORDER BY counted DESC, name LIMIT {}",
            TOLD_MAX + 1
        );
        let rows = engine.rows(&sql)?;
        Ok(rows.iter().map(|it| safe(it.text("name"))).collect())
    };
    let there = match selection.values.first() {
        Some((column, _)) => list(column.word(), &of_time.condition(dialect))?,
        None => Vec::new(),
    };
    if there.is_empty() {
        let of_event = list("event", &of_time.condition_of_side(dialect))?;
        return Ok(Failure::failed(if of_event.is_empty() {
            no_time(engine)?
        } else {
            format!(
                "no samples of that time count {}; they count {}",
                safe(&selection.event),
                told(&of_event)
            )
        }));
    }
    let (column, value) = &selection.values[0];
    let word = column.word();
    if there.contains(&safe(value)) || selection.values.len() > 1 {
        return Ok(Failure::failed(
            "no samples of that time have all that was asked for",
        ));
    }
    Ok(Failure::failed(format!(
        "no samples of that time have the {word} {}; most have {}",
        safe(value),
        told(&there)
    )))
}

/// Returns that there are no samples of a time, and the time of existing ones.
fn no_time(engine: &dyn Engine) -> Result<String, Failure> {
    let sql = "SELECT min(begin_ms) AS first_ms, max(begin_ms) AS last_ms FROM samples";
    let rows = engine.rows(sql)?;
    let row = rows.only()?;
    let (first, last) = (row.number("first_ms") as i64, row.number("last_ms") as i64);
    Ok(if last > 0 {
        format!(
            "there are no samples of that time; those nearby are of {} to {} UTC",
            dates::written(first),
            dates::written(last)
        )
    } else {
        "there are no samples".into()
    })
}

/// Returns why no stack has a function, with similar names.
pub fn no_function(engine: &dyn Engine, name: &str) -> Result<Failure, Failure> {
    let sql = format!("SELECT function FROM frames GROUP BY function LIMIT {NAMES_MAX}");
    let rows = engine.rows(&sql)?;
    let wanted = name.to_lowercase();
    let mut alike: Vec<&str> = Vec::new();
    for row in &rows.cells {
        if let Some(crate::rows::Cell::Text(function)) = row.first()
            && function.to_lowercase().contains(&wanted)
        {
            alike.push(function);
        }
    }
    // The shortest name that contains the text is most similar.
    alike.sort_by_key(|it| (it.len(), *it));
    let alike: Vec<String> = alike.iter().take(TOLD_MAX + 1).map(|it| safe(it)).collect();
    let name = safe(name);
    Ok(Failure::failed(if alike.is_empty() {
        format!("no function is called {name}; `top` lists names")
    } else {
        format!(
            "no sample that was asked for is in a function {name}; names like it: {}",
            told(&alike)
        )
    }))
}

fn told(names: &[String]) -> String {
    let shown = names.iter().take(TOLD_MAX);
    let shown: Vec<&str> = shown
        .map(|it| if it.is_empty() { "(none)" } else { it })
        .collect();
    let rest = if names.len() > TOLD_MAX { ", …" } else { "" };
    format!("{}{rest}", shown.join(", "))
}
