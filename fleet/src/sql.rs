//! The questions as SQL. Each is a file in `fleet/sql/`, the same for all engines except for the
//! few words of its [`Dialect`]: subqueries, plain joins and sums, which every engine has had for a
//! long time.

/// ClickHouse.
mod clickhouse;
/// DataFusion, which is built in, and Ballista, which is DataFusion on many machines.
mod datafusion;
/// DuckDB, with which tests check the numbers.
mod duckdb;
/// The selected samples.
mod selection;
/// Spark.
mod spark;

pub use clickhouse::ClickHouse;
pub use datafusion::DataFusion;
pub use duckdb::DuckDb;
pub use selection::{Column, Selection, check};
pub use spark::Spark;

/// The differences between engines.
pub trait Dialect {
    /// Returns a text as a literal. The text has no control characters.
    fn text(&self, text: &str) -> String;

    /// Returns an expression for the first element of the list `frames`, or for something that is
    /// not a frame if the list is empty.
    fn first(&self) -> &'static str;

    /// Returns an expression for the last element of the list `frames`.
    fn last(&self) -> &'static str;

    /// Returns a join with a row for each element of the list `frames`.
    fn each(&self) -> &'static str;

    /// Returns the function that gives any of a group's values.
    fn any(&self) -> &'static str {
        "any_value"
    }

    /// Returns what follows `FROM` to read `stack_id` and `frames` of the stacks that samples with
    /// this condition have. A stack can be there several times. The text may end in a condition, so
    /// that only `GROUP BY` can follow.
    fn stacks_of(&self, wanted: &str) -> String {
        format!("stacks\n    WHERE stack_id IN (SELECT stack_id FROM samples WHERE {wanted})")
    }

    /// Returns a statement that writes the rows of another one: to a file or folder of Parquet, or
    /// into a table of that name if the engine has tables of its own. `place` has no control
    /// characters.
    fn write(&self, rows: &str, table: &str, place: &str) -> String;

    /// Returns statements that define the tables of a folder in the engine.
    fn tables(&self, dir: &str) -> String;
}

/// The tables, and for each the pattern of its files below a folder.
pub const TABLES: [(&str, &str); 4] = [
    ("samples", "samples/*/*/*.parquet"),
    ("stacks", "stacks/*/*.parquet"),
    ("frames", "frames/*/*.parquet"),
    ("hosts", "hosts/*/*.parquet"),
];

/// The amount for which a sample stands: seconds, or a number of events if it does not stand for a
/// time.
const AMOUNT: &str =
    "CASE WHEN period_ns = 0 THEN 1e0 * value * weight ELSE 1e-9 * value * period_ns * weight END";

/// Files that are parts of others, each before those that are parts of it.
///
/// In `numbers_of_frames.sql` a function has the least number of a frame, and of a place in it, that
/// has its name, and code without a name has that of the least frame of its module: no two of them
/// have the same number. Of numbers with more than 54 bits, which files from before have, the end
/// counts.
const PARTS: [(&str, &str); 5] = [
    (
        "{{functions_of_stacks}}",
        include_str!("../sql/functions_of_stacks.sql"),
    ),
    (
        "{{names_of_frames}}",
        include_str!("../sql/names_of_frames.sql"),
    ),
    (
        "{{functions_by_number}}",
        include_str!("../sql/functions_by_number.sql"),
    ),
    (
        "{{names_by_number}}",
        include_str!("../sql/names_by_number.sql"),
    ),
    (
        "{{numbers_of_frames}}",
        include_str!("../sql/numbers_of_frames.sql"),
    ),
];

/// A statement whose placeholders, `{{NAME}}`, are filled all at once, so that text from the user
/// is never taken for a placeholder.
pub struct Statement<'a> {
    dialect: &'a dyn Dialect,
    text: String,
    places: Vec<(&'static str, String)>,
}

impl<'a> Statement<'a> {
    /// Starts with the text of a file.
    pub fn new(dialect: &'a dyn Dialect, text: &str) -> Self {
        let text = PARTS.iter().fold(text.to_string(), |text, (place, file)| {
            part(&text, place, file)
        });
        let statement = Self {
            dialect,
            text,
            places: Vec::new(),
        };
        statement
            .with("amount", AMOUNT)
            .with("first", dialect.first())
            .with("last", dialect.last())
            .with("each", dialect.each())
            .with("any", dialect.any())
    }

    /// Sets the text of a placeholder, which is SQL.
    pub fn with(mut self, place: &'static str, text: &str) -> Self {
        self.places.push((place, text.into()));
        self
    }

    /// Sets the columns by which samples are grouped in addition to the question's own ones.
    pub fn by(self, by: &[Column]) -> Self {
        let mut keys = by.to_vec();
        if !keys.contains(&Column::Host) {
            keys.push(Column::Host);
        }
        let names = |of: &[Column]| {
            let words: Vec<&str> = of.iter().map(|it| it.word()).collect();
            words.join(", ")
        };
        let (prefix, group) = match by {
            [] => (String::new(), String::new()),
            _ => (
                format!("{}, ", names(by)),
                format!("GROUP BY {0} ORDER BY {0}", names(by)),
            ),
        };
        self.with("by", &prefix)
            .with("keys", &names(&keys))
            .with("group_by", &group)
    }

    /// Sets the selected samples.
    pub fn of(self, selection: &Selection) -> Self {
        let of_hosts = selection.condition_of_hosts(self.dialect);
        let wanted = selection.condition(self.dialect);
        self.of_condition(&wanted, selection.is_narrow())
            .with("where_hosts", &of_hosts)
    }

    /// Sets the condition of the selected samples. If it is narrow, only stacks of these samples
    /// are searched.
    pub fn of_condition(self, wanted: &str, is_narrow: bool) -> Self {
        let stacks = if is_narrow {
            self.dialect.stacks_of(wanted)
        } else {
            "stacks".into()
        };
        self.with("where", wanted).with("stacks", &stacks)
    }

    /// Restricts the statement to one function; `None` for all functions.
    pub fn of_function(self, function: Option<&str>) -> Self {
        let condition = match function {
            Some(name) => format!("WHERE function = {} ", self.dialect.text(name)),
            None => String::new(),
        };
        self.with("of_function", &condition)
    }

    /// Sets the maximum number of rows.
    pub fn limit(self, rows: usize) -> Self {
        self.with("limit", &rows.to_string())
    }

    /// Returns the SQL.
    pub fn finish(self) -> String {
        let mut pieces = self.text.split("{{");
        let mut sql = String::from(pieces.next().unwrap_or_default());
        for piece in pieces {
            let (place, rest) = piece.split_once("}}").expect("a file of ours");
            let filled = self.places.iter().find(|it| it.0 == place);
            let (_, text) = filled.unwrap_or_else(|| panic!("nothing fills {place}"));
            sql += text;
            sql += rest;
        }
        sql.trim_end().into()
    }
}

/// Inserts a file at a placeholder that is alone on its line, with the same indentation.
fn part(text: &str, place: &str, file: &str) -> String {
    let mut lines = Vec::new();
    for line in text.trim_end().lines() {
        match line.strip_suffix(place) {
            Some(space) => {
                lines.extend(file.trim_end().lines().map(|it| format!("{space}{it}")));
            }
            None => lines.push(line.into()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
