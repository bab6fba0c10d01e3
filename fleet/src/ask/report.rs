//! Prints an answer as a table, CSV or JSON. Names come from files and servers: characters that
//! could harm a terminal are escaped, in all three.

use super::Format;
use crate::failure::{Failure, safe};
use crate::output::print;
use serde_json::{Map, Value, json};
use unicode_width::UnicodeWidthStr as _;

/// Maximum length of a name in a table; CSV and JSON have it complete.
const NAME_CHARS_MAX: usize = 160;

/// In a narrow terminal names are truncated to this length, but not further.
const NAME_CHARS_MIN: usize = 24;

/// The gap between two columns of a table.
const GAP: &str = "  ";

/// An answer.
pub struct Report {
    /// The name of the question.
    pub question: &'static str,
    /// The sentences above the table.
    pub head: Vec<String>,
    /// The fields of JSON in addition to the rows.
    pub fields: Map<String, Value>,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
    /// The sentences below the table: what is missing, and how to interpret it.
    pub notes: Vec<String>,
}

/// A column.
pub struct Column {
    /// Its name in CSV and JSON; empty for a column of tables only.
    pub key: &'static str,
    /// Its head in a table; empty for a column that tables do not have.
    pub title: &'static str,
    pub is_text: bool,
    /// How early it is left out if a table is too wide for the terminal: the greatest first, 0
    /// never.
    spare: u8,
}

impl Column {
    pub fn number(key: &'static str, title: &'static str) -> Self {
        Self {
            key,
            title,
            is_text: false,
            spare: 0,
        }
    }

    pub fn text(key: &'static str, title: &'static str) -> Self {
        Self {
            is_text: true,
            ..Self::number(key, title)
        }
    }

    /// Allows to leave it out of a table in a narrow terminal.
    pub fn spare(self, spare: u8) -> Self {
        Self { spare, ..self }
    }
}

/// A value: as shown in tables, and as data.
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

    /// Makes a cell of a name from outside, which is escaped.
    pub fn name(name: &str) -> Self {
        let name = safe(name);
        let mut shown: String = name.chars().take(NAME_CHARS_MAX).collect();
        if shown.len() < name.len() {
            shown.push('…');
        }
        Self::new(shown, name)
    }

    /// Returns it as shown in tables.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    pub fn count(count: u64) -> Self {
        Self::new(count.to_string(), count)
    }

    /// Makes a cell of seconds, or of a number of events.
    pub fn amount(amount: f64) -> Self {
        let digits = if amount.abs() < 100.0 { 2 } else { 0 };
        Self::new(format!("{amount:.digits$}"), finite(amount))
    }

    /// Makes a cell of a share. A table shows it as a percentage with this number of decimals, CSV
    /// and JSON as a fraction of 1.
    pub fn share(share: f64, digits: usize) -> Self {
        Self::new(format!("{:.digits$}", share * 100.0), finite(share))
    }

    /// Makes a cell for an unknown value.
    pub fn none() -> Self {
        Self::new("-", Value::Null)
    }
}

/// Converts a number to JSON, which has no infinities or NaN.
pub fn finite(number: f64) -> Value {
    serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number)
}

impl Report {
    /// Prints the answer.
    pub fn print(self, format: Format) -> Result<(), Failure> {
        match format {
            Format::Table => print(&self.table(columns_of_terminal())),
            Format::Csv => {
                print(&self.csv())?;
                self.notes.iter().for_each(|note| eprintln!("{note}"));
                Ok(())
            }
            Format::Json => print(&format!("{}\n", self.json())),
        }
    }

    /// Formats the table, no wider than the terminal if possible; `None` if the output is not a
    /// terminal.
    fn table(&self, terminal: Option<usize>) -> String {
        let mut text = String::new();
        for line in &self.head {
            text += &wrapped(line, terminal);
        }
        let (columns, left_out) = self.fitting(terminal);
        let line = |of: &dyn Fn(usize) -> String| {
            let mut line = String::new();
            for (at, width) in &columns {
                let shown = cut(&of(*at), *width);
                let space = " ".repeat(width - shown.width());
                if !line.is_empty() {
                    line += GAP;
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
        for note in &self.notes {
            text += &wrapped(note, terminal);
        }
        if !left_out.is_empty() {
            let note = format!(
                "no room for {}: widen the terminal, or --format csv",
                left_out.join(", ")
            );
            text += &wrapped(&note, terminal);
        }
        text
    }

    /// Returns the columns of a table with their widths, and the titles of those that are left out.
    fn fitting(&self, terminal: Option<usize>) -> (Vec<(usize, usize)>, Vec<&'static str>) {
        let all = (0..self.columns.len()).filter(|at| !self.columns[*at].title.is_empty());
        let width = |at: usize| {
            let cells = self.rows.iter().map(|row| row[at].shown.width());
            cells.max().unwrap_or(0).max(self.columns[at].title.width())
        };
        let mut columns: Vec<(usize, usize)> = all.map(|at| (at, width(at))).collect();
        let mut left_out = Vec::new();
        let Some(terminal) = terminal else {
            return (columns, left_out);
        };
        loop {
            let sum: usize = columns.iter().map(|it| it.1 + GAP.len()).sum();
            let Some(over) = sum.checked_sub(terminal + GAP.len()).filter(|it| *it > 0) else {
                break;
            };
            // Names are truncated before columns are left out, as long as most of a name remains.
            let longest = columns.iter_mut().filter(|it| self.columns[it.0].is_text);
            if let Some(longest) = longest.max_by_key(|it| it.1)
                && longest.1 > NAME_CHARS_MIN
            {
                longest.1 = longest.1.saturating_sub(over).max(NAME_CHARS_MIN);
                continue;
            }
            let spare = |it: &(usize, usize)| self.columns[it.0].spare;
            let most = columns.iter().map(spare).max().unwrap_or(0);
            if most == 0 {
                break;
            }
            let gone = columns.iter().filter(|it| spare(it) == most);
            left_out.extend(gone.map(|it| self.columns[it.0].title));
            columns.retain(|it| spare(it) != most);
        }
        (columns, left_out)
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

/// Returns the width of the terminal on standard output; `None` if that is a file or a pipe.
fn columns_of_terminal() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|it| *it > 0)
}

/// Truncates a text that is wider than that.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.into();
    }
    let mut cut = String::new();
    for letter in text.chars() {
        cut.push(letter);
        if cut.width() >= width {
            cut.pop();
            break;
        }
    }
    cut + "…"
}

/// Breaks a sentence between words into lines of the terminal.
fn wrapped(sentence: &str, terminal: Option<usize>) -> String {
    let mut text = String::new();
    let mut used = 0;
    for word in sentence.split(' ') {
        let width = word.width();
        if used > 0 && terminal.is_some_and(|it| used + 1 + width > it) {
            text.push('\n');
            used = 0;
        } else if !text.is_empty() {
            text.push(' ');
            used += 1;
        }
        text += word;
        used += width;
    }
    text + "\n"
}

/// Formats a value as a field of CSV (RFC 4180).
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

#[cfg(test)]
mod tests {
    use super::*;

    fn report(function: &str) -> Report {
        Report {
            question: "top",
            head: vec!["cpu of 10 hosts".into()],
            fields: Map::new(),
            columns: vec![
                Column::number("self", "SELF"),
                Column::number("samples", "SAMPLES").spare(2),
                Column::text("module", "MODULE").spare(1),
                Column::text("function", "FUNCTION"),
            ],
            rows: vec![vec![
                Cell::amount(1.5),
                Cell::count(7),
                Cell::name("libc.so.6"),
                Cell::name(function),
            ]],
            notes: vec!["one two three four five six".into()],
        }
    }

    #[test]
    fn a_table_is_no_wider_than_the_terminal() {
        let name = "a".repeat(60);
        let whole = report(&name).table(None);
        assert!(whole.contains(&name) && whole.contains("one two three four five six\n"));
        for terminal in [20, 30, 40, 50, 60, 80, 200] {
            let table = report(&name).table(Some(terminal));
            let widest = table.lines().map(|it| it.width()).max().unwrap();
            // Own time and a part of the name are always shown.
            assert!(widest <= terminal.max(30), "{terminal}:\n{table}");
            assert!(
                table.contains("1.50") && table.contains("aaaaaa"),
                "{table}"
            );
            assert_eq!(table.contains("no room for"), terminal < 50, "{table}");
        }
        let narrow = report(&name).table(Some(41));
        assert!(
            narrow.contains("libc.so.6") && !narrow.contains("  7  "),
            "{narrow}"
        );
        let wide = "漢".repeat(40);
        let table = report(&wide).table(Some(61));
        assert!(table.lines().all(|it| it.width() <= 61), "{table}");
        assert!(table.contains("漢…"), "{table}");
    }
}
