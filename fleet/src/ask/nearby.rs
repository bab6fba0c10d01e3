//! Suggests existing values when a selection is empty.

use crate::dates;
use crate::engine::Engine;
use crate::failure::{Failure, safe};
use crate::sql::{Column, Dialect, Selection};
use symbolize::nearest::nearest;

/// Maximum number of values in a sentence.
const TOLD_MAX: usize = 8;

/// Maximum number of names of functions that are searched.
const NAMES_MAX: usize = 2_000_000;

/// How `top` shows code without a name.
pub const NO_NAME: &str = "(no name)";

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
    let asked = by_column(selection);
    for (column, values) in &asked {
        let alone = Selection {
            values: values.iter().map(|it| (*column, it.clone())).collect(),
            ..of_time.clone()
        };
        let word = column.word();
        if list(word, &alone.condition(dialect))?.is_empty() {
            return Ok(Failure::failed(format!(
                "no samples of that time have the {word} {}; most have {}",
                any_of(values),
                told(&list(word, &of_time.condition(dialect))?)
            )));
        }
    }
    if asked.len() < selection.values.len() {
        // A column that is there twice may have one of both values, or has to have both: one of a side of
        // a comparison, and one of both sides.
        return Ok(Failure::failed(
            "no samples of that time have all that was asked for",
        ));
    }
    let asked: Vec<String> = asked
        .iter()
        .map(|(column, values)| format!("the {} {}", column.word(), any_of(values)))
        .collect();
    Ok(Failure::failed(format!(
        "no samples of that time have {} at once, though each of these is there",
        asked.join(" and ")
    )))
}

/// Returns the columns that are selected by, each with its values, in the order in which they were
/// given.
fn by_column(selection: &Selection) -> Vec<(Column, Vec<String>)> {
    let mut asked: Vec<(Column, Vec<String>)> = Vec::new();
    for (column, value) in &selection.values {
        match asked.iter_mut().find(|it| it.0 == *column) {
            Some((_, values)) => values.push(value.clone()),
            None => asked.push((*column, vec![value.clone()])),
        }
    }
    asked
}

/// Returns values of which a sample must have one.
fn any_of(values: &[String]) -> String {
    let shown: Vec<String> = values.iter().map(|it| as_typed(&safe(it))).collect();
    shown.join(" or ")
}

/// Returns a value as it is typed, with a word where it is empty.
fn as_typed(value: &str) -> String {
    match value {
        "" => "'' (none)".into(),
        value => value.into(),
    }
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
    if name.starts_with(NO_NAME) {
        return Ok(Failure::failed(format!(
            "{NO_NAME} is all code of a file that has no names, and not one function"
        )));
    }
    let sql = format!("SELECT function FROM frames GROUP BY function LIMIT {NAMES_MAX}");
    let rows = engine.rows(&sql)?;
    let wanted = name.to_lowercase();
    let all = || rows.iter().map(|row| row.text("function"));
    let mut alike: Vec<&str> = all()
        .filter(|it| it.to_lowercase().contains(&wanted))
        .collect();
    // The shortest name that contains the text is most similar.
    alike.sort_by_key(|it| (it.len(), *it));
    let alike: Vec<String> = alike.iter().take(TOLD_MAX + 1).map(|it| safe(it)).collect();
    let shown = safe(name);
    Ok(Failure::failed(if alike.is_empty() {
        match nearest(name, all().filter(|it| !it.is_empty())) {
            Some(guess) => format!(
                "no function is called {shown}; did you mean {}?",
                safe(guess)
            ),
            None => format!("no function is called {shown}; `top` lists names"),
        }
    } else {
        format!(
            "no sample that was asked for is in a function {shown}; names like it: {}",
            told(&alike)
        )
    }))
}

fn told(names: &[String]) -> String {
    let shown = names.iter().take(TOLD_MAX);
    let shown: Vec<String> = shown.map(|it| as_typed(it)).collect();
    let rest = if names.len() > TOLD_MAX { ", …" } else { "" };
    format!("{}{rest}", shown.join(", "))
}
