//! An answer as a table, CSV or JSON. Names come from files and servers: what could harm a terminal is
//! written as digits, in all three.

use super::Format;
use crate::failure::{Failure, safe};
use crate::output::print;
use serde_json::{Map, Value, json};
use unicode_width::UnicodeWidthStr as _;

/// The longest name in a table; CSV and JSON have it whole.
const NAME_CHARS_MAX: usize = 160;

/// An answer.
pub struct Report {
    /// What was asked.
    pub question: &'static str,
    /// The sentences above the table.
    pub head: Vec<String>,
    /// The fields of JSON beside the rows.
    pub fields: Map<String, Value>,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
    /// The sentences below the table: what is missing, and what to make of it.
    pub notes: Vec<String>,
}

/// A column.
pub struct Column {
    /// Its name in CSV and JSON; empty: it is in tables only.
    pub key: &'static str,
    /// Its head in a table; empty: it is not in tables.
    pub title: &'static str,
    pub is_text: bool,
}

impl Column {
    pub fn number(key: &'static str, title: &'static str) -> Self {
        Self {
            key,
            title,
            is_text: false,
        }
    }

    pub fn text(key: &'static str, title: &'static str) -> Self {
        Self {
            key,
            title,
            is_text: true,
        }
    }
}

/// A value: as it is shown, and as programs read it.
pub struct Cell {
    shown: String,
    value: Value,
}

impl Cell {
    pub fn new(shown: impl Into<String>, value: impl Into<Value>) -> Self {
        Self {
            shown: shown.into(),
            value: value.into(),
        }
    }

    /// A name from outside.
    pub fn name(name: &str) -> Self {
        let name = safe(name);
        let mut shown: String = name.chars().take(NAME_CHARS_MAX).collect();
        if shown.len() < name.len() {
            shown.push('…');
        }
        Self::new(shown, name)
    }

    pub fn count(count: u64) -> Self {
        Self::new(count.to_string(), count)
    }

    /// Seconds, or how often something happened.
    pub fn amount(amount: f64) -> Self {
        let digits = if amount.abs() < 100.0 { 2 } else { 0 };
        Self::new(format!("{amount:.digits$}"), finite(amount))
    }

    /// A share. A table and CSV show it as a percentage with this number of decimals, JSON as a fraction of 1.
    pub fn share(share: f64, digits: usize) -> Self {
        Self::new(format!("{:.digits$}", share * 100.0), finite(share))
    }

    /// Nothing is known.
    pub fn none() -> Self {
        Self::new("-", Value::Null)
    }
}

/// A number for JSON, which has none that is not finite.
pub fn finite(number: f64) -> Value {
    serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number)
}

impl Report {
    /// Prints it.
    pub fn print(self, format: Format) -> Result<(), Failure> {
        match format {
            Format::Table => print(&self.table()),
            Format::Csv => {
                print(&self.csv())?;
                self.notes.iter().for_each(|note| eprintln!("{note}"));
                Ok(())
            }
            Format::Json => print(&format!("{}\n", self.json())),
        }
    }

    fn table(&self) -> String {
        let mut text = String::new();
        self.head
            .iter()
            .for_each(|line| text += &format!("{line}\n"));
        let columns: Vec<usize> = (0..self.columns.len())
            .filter(|at| !self.columns[*at].title.is_empty())
            .collect();
        let width = |at: usize| {
            let cells = self.rows.iter().map(|row| row[at].shown.width());
            cells.max().unwrap_or(0).max(self.columns[at].title.width())
        };
        let widths: Vec<usize> = columns.iter().map(|at| width(*at)).collect();
        let line = |of: &dyn Fn(usize) -> String| {
            let mut line = String::new();
            for (at, width) in columns.iter().zip(&widths) {
                let shown = of(*at);
                let space = " ".repeat(width - shown.width());
                if !line.is_empty() {
                    line += "  ";
                }
                if self.columns[*at].is_text {
                    line += &(shown + &space)
                } else {
                    line += &(space + &shown)
                }
            }
            format!("{}\n", line.trim_end())
        };
        text += &line(&|at| self.columns[at].title.into());
        for row in &self.rows {
            text += &line(&|at| row[at].shown.clone());
        }
        self.notes
            .iter()
            .for_each(|note| text += &format!("{note}\n"));
        text
    }

    fn csv(&self) -> String {
        let keys = self.columns.iter().map(|it| it.key.to_string());
        let keys: Vec<String> = keys.filter(|it| !it.is_empty()).collect();
        let mut text = keys.join(",") + "\n";
        for row in &self.rows {
            let cells = self
                .columns
                .iter()
                .zip(row)
                .filter(|it| !it.0.key.is_empty());
            let cells: Vec<String> = cells.map(|it| quoted(&it.1.value)).collect();
            text += &cells.join(",");
            text.push('\n');
        }
        text
    }

    fn json(&self) -> Value {
        let mut document = Map::new();
        document.insert("version".into(), json!(1));
        document.insert("question".into(), json!(self.question));
        document.extend(self.fields.clone());
        let row = |row: &Vec<Cell>| {
            let cells = self
                .columns
                .iter()
                .zip(row)
                .filter(|it| !it.0.key.is_empty());
            let fields = cells.map(|(column, cell)| (column.key.to_string(), cell.value.clone()));
            Value::Object(fields.collect())
        };
        let rows = self.rows.iter().map(row).collect();
        document.insert("rows".into(), Value::Array(rows));
        document.insert("notes".into(), json!(self.notes));
        Value::Object(document)
    }
}

/// A value as a field of CSV (RFC 4180).
fn quoted(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}
