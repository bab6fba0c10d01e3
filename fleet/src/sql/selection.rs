//! The selected samples, as a condition of SQL.

use super::Dialect;
use crate::failure::Failure;
use clap::ValueEnum;

/// Maximum length of a value with which a column is compared.
const VALUE_BYTES_MAX: usize = 4096;

/// A column by which samples are grouped and selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Column {
    Host,
    Service,
    Namespace,
    Version,
    Container,
}

impl Column {
    /// Its name in the tables.
    pub fn word(self) -> &'static str {
        match self {
            Column::Host => "host",
            Column::Service => "service",
            Column::Namespace => "namespace",
            Column::Version => "version",
            Column::Container => "container",
        }
    }
}

/// The selected samples: those that fulfil all of these conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The event that samples count, for example `cpu`.
    pub event: String,
    /// Only windows that begin at this time (ms since 1970) or later; `None` for all.
    pub since_ms: Option<i64>,
    /// Only windows that begin before this time; `None` for all.
    pub until_ms: Option<i64>,
    /// Columns with required values. If a column occurs several times, it must have one of its
    /// values.
    pub values: Vec<(Column, String)>,
}

impl Selection {
    /// Adds a value that a column must have. Returns an error for values that no column can have.
    pub fn add(&mut self, column: Column, value: &str) -> Result<(), Failure> {
        check(value)?;
        self.values.push((column, value.into()));
        Ok(())
    }

    /// Whether it leaves out samples of its time range, not counting other events.
    pub fn is_narrow(&self) -> bool {
        !self.values.is_empty()
    }

    /// Returns the condition on rows of samples.
    pub fn condition(&self, dialect: &dyn Dialect) -> String {
        let mut parts = vec![format!("event = {}", dialect.text(&self.event))];
        parts.extend(self.parts(dialect));
        parts.join(" AND ")
    }

    /// Returns the condition without the event, `1 = 1` if there is none: for one of two sides that
    /// are compared.
    pub fn condition_of_side(&self, dialect: &dyn Dialect) -> String {
        let parts = self.parts(dialect);
        if parts.is_empty() {
            "1 = 1".into()
        } else {
            parts.join(" AND ")
        }
    }

    /// Returns the condition on rows of hosts, each of which covers the time of a file.
    pub fn condition_of_hosts(&self, dialect: &dyn Dialect) -> String {
        let mut parts = Vec::new();
        if let Some(since) = self.since_ms {
            parts.push(format!("end_ms > {since}"));
        }
        if let Some(until) = self.until_ms {
            parts.push(format!("begin_ms < {until}"));
        }
        let wanted = self.condition(dialect);
        parts.push(format!("host IN (SELECT host FROM samples WHERE {wanted})"));
        parts.join(" AND ")
    }

    fn parts(&self, dialect: &dyn Dialect) -> Vec<String> {
        let mut parts = Vec::new();
        if let Some(since) = self.since_ms {
            parts.push(format!("begin_ms >= {since}"));
        }
        if let Some(until) = self.until_ms {
            parts.push(format!("begin_ms < {until}"));
        }
        let mut done = Vec::new();
        for (column, _) in &self.values {
            if done.contains(column) {
                continue;
            }
            done.push(*column);
            let of_column = self.values.iter().filter(|it| it.0 == *column);
            let values: Vec<String> = of_column.map(|it| dialect.text(&it.1)).collect();
            parts.push(match &values[..] {
                [one] => format!("{} = {one}", column.word()),
                several => format!("{} IN ({})", column.word(), several.join(", ")),
            });
        }
        parts
    }
}

/// Refuses texts that cannot be names and that could do harm in an engine or a terminal.
pub fn check(value: &str) -> Result<(), Failure> {
    if value.chars().any(char::is_control) {
        return Err(Failure::usage(
            "a name to look for has a control character: leave it out",
        ));
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(Failure::usage(format!(
            "a name to look for is longer than {VALUE_BYTES_MAX} bytes"
        )));
    }
    Ok(())
}
