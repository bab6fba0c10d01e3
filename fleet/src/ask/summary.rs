//! Totals of a selection: the whole to which shares relate, and what is unknown.

use crate::dates;
use crate::engine::Engine;
use crate::failure::{Failure, safe};
use crate::rows::Row;
use crate::sql::{Column, Dialect, Selection, Statement};
use crate::words::counted;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The sums of a selection, or of a group in it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Summary {
    pub hosts: u64,
    /// The total time in seconds, or the number of events, depending on `unit`.
    pub time: f64,
    pub samples: u64,
    /// The part of the time whose stacks and frames are in the tables.
    pub known: f64,
    /// The part of the time in code without a name.
    pub nameless: f64,
    /// The part of the time with stacks that end before their root.
    pub cut: f64,
    /// When the first window begins and the last one ends, in ms since 1970.
    pub first_ms: i64,
    pub last_ms: i64,
    /// Maximum time for which one sample stands, in ns: 0 if samples are not times.
    pub period_ns: u64,
    /// The most samples for which one sample stands: 1 without a schedule.
    pub weight: f64,
}

impl Summary {
    fn of(row: Row) -> Self {
        Self {
            hosts: row.whole("hosts"),
            time: row.number("all_time"),
            samples: row.whole("all_samples"),
            known: row.number("known_time"),
            nameless: row.number("nameless_time"),
            cut: row.number("cut_time"),
            first_ms: row.number("first_ms") as i64,
            last_ms: row.number("last_ms") as i64,
            period_ns: row.whole("longest_period"),
            weight: row.number("largest_weight"),
        }
    }

    /// Whether amounts are seconds.
    pub fn is_time(&self) -> bool {
        self.period_ns > 0
    }

    /// Returns the unit of amounts.
    pub fn unit(&self) -> &'static str {
        if self.is_time() { "seconds" } else { "events" }
    }

    /// Whether values count samples: for waiting they are nanoseconds, and for other events their
    /// number.
    pub fn has_samples(&self) -> bool {
        self.period_ns > 1
    }

    /// Returns the number of decimals that are meaningful for shares.
    pub fn digits(&self) -> usize {
        if self.has_samples() {
            profile::percent_digits(self.samples)
        } else {
            1
        }
    }

    /// Returns the part of the whole; 0 if there is nothing.
    pub fn share(&self, amount: f64) -> f64 {
        if self.time > 0.0 {
            amount / self.time
        } else {
            0.0
        }
    }

    /// Returns the sentence above a table.
    pub fn sentence(&self, event: &str) -> String {
        let mut text = format!(
            "{} of {}, {} to {} UTC: ",
            safe(event),
            counted(self.hosts, "host"),
            dates::written(self.first_ms),
            dates::written(self.last_ms)
        );
        match (self.is_time(), self.has_samples()) {
            (true, true) => text += &format!("{:.1} s in {} samples", self.time, self.samples),
            (true, false) => text += &format!("{:.1} s", self.time),
            (false, _) => text += &format!("{:.0}", self.time),
        }
        text
    }

    /// Returns sentences about what is unknown.
    pub fn notes(&self) -> Vec<String> {
        let percent = |part: f64| format!("{:.1} %", self.share(part) * 100.0);
        let mut notes = Vec::new();
        if self.weight > 1.0 {
            notes.push(format!(
                "schedules left out hosts or times: a sample counts up to {:.2} times",
                self.weight
            ));
        }
        let unknown = self.time - self.known;
        if self.share(unknown) > 1e-9 {
            notes.push(format!(
                "{} of it has stacks that are in no file: their functions are missing here",
                percent(unknown)
            ));
        }
        if self.nameless > 0.0 {
            notes.push(format!(
                "{} of it is in code without a name",
                percent(self.nameless)
            ));
        }
        if self.cut > 0.0 {
            notes.push(format!(
                "{} of it has stacks that end before their root: totals of outer functions are too low",
                percent(self.cut)
            ));
        }
        notes
    }

    /// Returns the fields for JSON.
    pub fn fields(&self, selection: &Selection) -> Map<String, Value> {
        let fields = json!({
            "event": safe(&selection.event),
            "unit": self.unit(),
            "since_ms": selection.since_ms,
            "until_ms": selection.until_ms,
            "first_ms": self.first_ms,
            "last_ms": self.last_ms,
            "hosts": self.hosts,
            "total": self.time,
            "samples": self.has_samples().then_some(self.samples),
            "unknown": (self.time - self.known).max(0.0),
            "nameless": self.nameless,
            "cut": self.cut,
        });
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

/// The statement.
pub fn statement(dialect: &dyn Dialect, selection: &Selection, by: &[Column]) -> String {
    Statement::new(dialect, include_str!("../../sql/summary.sql"))
        .by(by)
        .of(selection)
        .finish()
}

/// Queries the sums of the whole selection; `None` if it is empty.
pub fn whole(
    engine: &dyn Engine,
    dialect: &dyn Dialect,
    selection: &Selection,
) -> Result<Option<Summary>, Failure> {
    let rows = engine.rows(&statement(dialect, selection, &[]))?;
    let summary = Summary::of(rows.only()?);
    Ok((summary.hosts > 0).then_some(summary))
}

/// Queries the sums of each group, by the values of its columns.
pub fn groups(
    engine: &dyn Engine,
    dialect: &dyn Dialect,
    selection: &Selection,
    by: &[Column],
) -> Result<HashMap<Vec<String>, Summary>, Failure> {
    let rows = engine.rows(&statement(dialect, selection, by))?;
    let group = |row: Row| (key(row, by), Summary::of(row));
    Ok(rows.iter().map(group).collect())
}

/// Returns the values of a row in these columns.
pub fn key(row: Row, by: &[Column]) -> Vec<String> {
    by.iter().map(|it| row.text(it.word()).into()).collect()
}
