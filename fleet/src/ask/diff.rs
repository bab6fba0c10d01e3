//! Compares two versions, times or sets of hosts: which functions have a larger or smaller share of
//! the time, and by how much more than hosts differ among themselves.

/// Computes how reliable a change is.
mod interval;
/// Parses a side of the comparison.
mod side;

use super::arguments::{Asked, Format, read_top, span};
use super::nearby::{self, NO_NAME};
use super::report::{Cell, Column, Report, finite};
use super::top::module;
use crate::engine::{Engine, Span};
use crate::failure::{Failure, safe};
use crate::rows::{Row, Rows};
use crate::sql::{Dialect, Selection, Statement};
use crate::words::counted;
use clap::{Args, ValueEnum};
use interval::{Change, Moments, Sides};
use serde_json::{Value, json};

/// Maximum number of functions that are compared.
const FUNCTIONS_MAX: usize = 1_000_000;

/// With fewer hosts on a side than this, the variation among hosts is too uncertain, and the answer
/// warns of it.
const HOSTS_FEW: u64 = 5;

/// Maximum number of kernels and rates of a side that are requested.
const CONDITIONS_MAX: usize = 1000;

/// The title of the column with the mark of a change: it is empty, as the number is next to it.
const MARK: &str = " ";

/// The kind of a row that is not a function, but the reason why a stack has no root.
const NOTE: u64 = 4;

#[derive(Debug, Args)]
pub struct Diff {
    #[command(flatten)]
    pub asked: Asked,
    /// What is compared: COLUMN=VALUE, or a time FROM..TO (1h..now); given several times, all of it
    #[arg(long, value_name = "SIDE", required = true)]
    a: Vec<String>,
    /// With what it is compared
    #[arg(long, value_name = "SIDE", required = true)]
    b: Vec<String>,
    /// How many rows
    #[arg(long, value_name = "ROWS", default_value_t = 20, value_parser = read_top)]
    top: usize,
    /// Whose change rows are sorted by: own time, or time with what a function calls
    #[arg(long, default_value = "self")]
    sort: Sort,
    /// What the answer looks like
    #[arg(long, default_value = "table")]
    format: Format,
}

/// Whose change rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    #[value(name = "self")]
    Own,
    Total,
}

impl Sort {
    fn of(self, function: &Compare) -> Change {
        match self {
            Sort::Own => function.own,
            Sort::Total => function.total,
        }
    }
}

/// The event and the two sides that are compared.
struct Compared {
    base: Selection,
    a: Selection,
    b: Selection,
}

/// Both sides, how their hosts were sampled, and all functions, sorted by their change.
struct Comparison {
    sides: Sides,
    conditions: [Conditions; 2],
    answer: Rows,
    functions: Vec<Compare>,
}

/// A function on both sides.
struct Compare {
    /// Its index in the answer.
    at: usize,
    own: Change,
    total: Change,
}

/// Prints the answer.
pub fn run(diff: &Diff) -> Result<(), Failure> {
    let asked = &diff.asked;
    let dialect = super::dialect(&asked.source);
    let compared = Compared {
        base: asked.selection()?,
        a: side::read(&diff.a, "--a")?,
        b: side::read(&diff.b, "--b")?,
    };
    if asked.source.print {
        return super::print_statements(&asked.source, &compared.statements(dialect));
    }
    let engine = super::engine(&asked.source, compared.span())?;
    let comparison = compared.compare(&*engine, dialect, diff.sort)?;
    let (sides, rows) = (&comparison.sides, &comparison.functions);
    let conditions = &comparison.conditions;
    let sorted_by = |it: &Compare| diff.sort.of(it);
    let excluding = rows
        .iter()
        .filter(|it| sorted_by(it).covers_zero() == Some(false))
        .count();
    let mut notes = Vec::new();
    if rows.len() > diff.top {
        notes.push(format!(
            "only the first {} of {} functions (--top)",
            diff.top,
            rows.len()
        ));
    }
    if rows.iter().any(|it| sorted_by(it).half.is_some()) {
        notes.push(format!(
            "0: the interval has 0 in it, and no change is seen. Of {} functions that do not change, about {:.0} have \
             an interval without it (*), here {excluding}; ** counts that in (Holm, 5 %)",
            rows.len(),
            rows.len() as f64 * 0.05,
        ));
    }
    notes.extend(warnings(sides, conditions));
    let report = Report {
        question: "diff",
        head: head(diff, sides),
        fields: fields(diff, &compared, sides, conditions),
        columns: columns(sides),
        rows: rows
            .iter()
            .take(diff.top)
            .map(|it| cells(it, comparison.answer.row(it.at), sides))
            .collect(),
        notes,
    };
    report.print(diff.format)
}

impl Compared {
    /// Returns the condition for samples that are on either side.
    fn condition(&self, dialect: &dyn Dialect) -> String {
        let [a, b] = [&self.a, &self.b].map(|it| it.condition_of_side(dialect));
        format!("{} AND (({a}) OR ({b}))", self.base.condition(dialect))
    }

    /// Returns the statements about the totals of both sides, the conditions of A and of B, and
    /// functions.
    fn statements(&self, dialect: &dyn Dialect) -> [String; 4] {
        let of_both = |file: &str| {
            Statement::new(dialect, file)
                .of_condition(&self.condition(dialect), true)
                .of_function(None)
                .with("side_a", &self.a.condition_of_side(dialect))
                .with("side_b", &self.b.condition_of_side(dialect))
                .limit(FUNCTIONS_MAX)
                .finish()
        };
        [
            of_both(include_str!("../../sql/sides.sql")),
            self.conditions(dialect, &self.a),
            self.conditions(dialect, &self.b),
            of_both(include_str!("../../sql/diff.sql")),
        ]
    }

    /// Queries both sides, and compares all functions.
    fn compare(
        &self,
        engine: &dyn Engine,
        dialect: &dyn Dialect,
        sort: Sort,
    ) -> Result<Comparison, Failure> {
        let [sides, of_a, of_b, functions] = self.statements(dialect);
        let sides = Sides::of(engine.rows(&sides)?.only()?);
        self.check(engine, dialect, &sides)?;
        let answers = engine.rows_of_all(&[&functions, &of_a, &of_b])?;
        let [answer, of_a, of_b]: [Rows; 3] =
            answers.try_into().expect("an answer to each statement");
        let mut functions = Vec::new();
        for (at, row) in answer.iter().enumerate() {
            if row.whole("kind") == NOTE {
                continue;
            }
            let change = |what: &str| interval::change(&Moments::of(row, what), &sides);
            functions.push(Compare {
                at,
                own: change("self"),
                total: change("total"),
            });
        }
        interval::correct(functions.iter_mut().map(|it| &mut it.own).collect());
        interval::correct(functions.iter_mut().map(|it| &mut it.total).collect());
        functions.sort_by(|x, y| {
            let (x, y) = (sort.of(x), sort.of(y));
            // What surely changed comes first.
            let first = x.covers_zero().cmp(&y.covers_zero());
            first.then(y.delta().abs().total_cmp(&x.delta().abs()))
        });
        Ok(Comparison {
            sides,
            conditions: [&of_a, &of_b].map(Conditions::of),
            answer,
            functions,
        })
    }

    fn conditions(&self, dialect: &dyn Dialect, side: &Selection) -> String {
        let wanted = format!(
            "{} AND {}",
            self.base.condition(dialect),
            side.condition_of_side(dialect)
        );
        Statement::new(dialect, include_str!("../../sql/conditions.sql"))
            .of_condition(&wanted, true)
            .limit(CONDITIONS_MAX)
            .finish()
    }

    /// Returns the time range that includes samples of both sides.
    fn span(&self) -> Span {
        let base = span(&self.base);
        let least = |a: Option<i64>, b: Option<i64>| a.zip(b).map(|(a, b)| a.min(b));
        let greatest = |a: Option<i64>, b: Option<i64>| a.zip(b).map(|(a, b)| a.max(b));
        Span {
            since_ms: base.since_ms.max(least(self.a.since_ms, self.b.since_ms)),
            until_ms: match greatest(self.a.until_ms, self.b.until_ms) {
                Some(until) => Some(base.until_ms.map_or(until, |it| it.min(until))),
                None => base.until_ms,
            },
        }
    }

    /// Returns an error if the two sides cannot be compared.
    fn check(
        &self,
        engine: &dyn Engine,
        dialect: &dyn Dialect,
        sides: &Sides,
    ) -> Result<(), Failure> {
        for (side, hosts, word) in [
            (&self.a, sides.hosts[0], "--a"),
            (&self.b, sides.hosts[1], "--b"),
        ] {
            if hosts == 0 {
                let mut selection = self.base.clone();
                selection.since_ms = selection.since_ms.max(side.since_ms);
                selection.until_ms = match (selection.until_ms, side.until_ms) {
                    (Some(one), Some(other)) => Some(one.min(other)),
                    (one, other) => one.or(other),
                };
                selection.values.splice(0..0, side.values.iter().cloned());
                let why = nearby::no_samples(engine, dialect, &selection)?;
                return Err(Failure::failed(format!("{word}: {why}")));
            }
        }
        if sides.shared > 0.0 {
            return Err(Failure::usage(format!(
                "{:.0} samples are on both sides: --a and --b have to leave out each other's",
                sides.shared
            )));
        }
        Ok(())
    }
}

/// How the hosts of a side were sampled.
struct Conditions {
    /// Kernels, with architecture.
    kernels: Vec<String>,
    rates: Vec<u64>,
    lost_samples: u64,
    lost_windows: u64,
}

impl Conditions {
    fn of(rows: &Rows) -> Self {
        let mut kernels: Vec<String> = rows
            .iter()
            .map(|it| safe(&format!("{} {}", it.text("kernel"), it.text("arch"))))
            .collect();
        kernels.dedup();
        let mut rates: Vec<u64> = rows.iter().map(|it| it.whole("rate_hz")).collect();
        rates.sort_unstable();
        rates.dedup();
        Self {
            kernels,
            rates,
            lost_samples: rows.iter().map(|it| it.whole("lost_samples")).sum(),
            lost_windows: rows.iter().map(|it| it.whole("lost_windows")).sum(),
        }
    }
}

/// Returns reasons why the comparison may mislead.
fn warnings(sides: &Sides, [a, b]: &[Conditions; 2]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, hosts) in [("A", sides.hosts[0]), ("B", sides.hosts[1])] {
        if hosts == 1 {
            warnings.push(format!(
                "warning: {name} is one host: how much hosts differ is not known, so there are no intervals, and no \
                 change can be told from chance"
            ));
        } else if hosts < HOSTS_FEW {
            warnings.push(format!(
                "warning: {name} has {hosts} hosts: with fewer than {HOSTS_FEW} intervals are wide and uncertain"
            ));
        }
    }
    if a.kernels != b.kernels {
        warnings.push(format!(
            "warning: kernels differ: A {}, B {}",
            a.kernels.join(", "),
            b.kernels.join(", ")
        ));
    }
    if a.rates != b.rates {
        let told = |rates: &[u64]| {
            let rates: Vec<String> = rates.iter().map(u64::to_string).collect();
            rates.join(", ")
        };
        warnings.push(format!(
            "warning: rates differ: A {} Hz, B {} Hz",
            told(&a.rates),
            told(&b.rates)
        ));
    }
    if a.lost_samples + a.lost_windows + b.lost_samples + b.lost_windows > 0 {
        warnings.push(format!(
            "lost: A {} and {}, B {} and {}",
            counted(a.lost_samples, "sample"),
            counted(a.lost_windows, "window"),
            counted(b.lost_samples, "sample"),
            counted(b.lost_windows, "window")
        ));
    }
    match sides.hosts_both {
        0 => {}
        1 => warnings.push("1 host is on both sides: it is compared with itself".into()),
        several => warnings.push(format!(
            "{several} hosts are on both sides: each is compared with itself"
        )),
    }
    warnings
}

fn head(diff: &Diff, sides: &Sides) -> Vec<String> {
    [("A", &diff.a, 0), ("B", &diff.b, 1)]
        .map(|(name, words, at)| {
            let words: Vec<String> = words.iter().map(|it| safe(it)).collect();
            let mut text = format!(
                "{name}: {}: {}, {:.2} host-hours, ",
                words.join(" "),
                counted(sides.hosts[at], "host"),
                sides.hours(at)
            );
            if sides.is_time() {
                text += &format!(
                    "{:.1} s an hour of a host",
                    sides.per_hour(sides.all[at], at)
                );
                if sides.has_samples() {
                    text += &format!(", {:.0} samples", sides.samples[at]);
                }
            } else {
                text += &format!("{:.1} an hour of a host", sides.per_hour(sides.all[at], at))
            }
            text
        })
        .to_vec()
}

fn fields(
    diff: &Diff,
    compared: &Compared,
    sides: &Sides,
    conditions: &[Conditions; 2],
) -> serde_json::Map<String, Value> {
    let side = |at: usize, words: &[String]| {
        let words: Vec<String> = words.iter().map(|it| safe(it)).collect();
        json!({
            "side": words,
            "hosts": sides.hosts[at],
            "host_hours": finite(sides.hours(at)),
            "total": finite(sides.all[at]),
            "samples": sides.has_samples().then(|| finite(sides.samples[at])),
            "kernels": conditions[at].kernels,
            "rates_hz": conditions[at].rates,
            "lost_samples": conditions[at].lost_samples,
            "lost_windows": conditions[at].lost_windows,
        })
    };
    let fields = json!({
        "event": safe(&compared.base.event),
        "unit": if sides.is_time() { "seconds" } else { "events" },
        "a": side(0, &diff.a),
        "b": side(1, &diff.b),
        "hosts_on_both": sides.hosts_both,
    });
    match fields {
        Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    }
}

fn columns(sides: &Sides) -> Vec<Column> {
    let (a, b) = if sides.has_samples() {
        ("SAMPLES A", "B")
    } else {
        ("", "")
    };
    vec![
        Column::number("self_change", "SELF"),
        Column::text("self_mark", MARK),
        Column::number("self_half", "±"),
        Column::number("self_share_a", "A %"),
        Column::number("self_share_b", "B %"),
        Column::number("self_per_hour_a", "A s/h").spare(3),
        Column::number("self_per_hour_b", "B s/h").spare(3),
        Column::number("total_change", "TOTAL"),
        Column::text("total_mark", MARK),
        Column::number("total_half", "±"),
        Column::number("total_share_a", ""),
        Column::number("total_share_b", ""),
        Column::number("samples_a", a).spare(4),
        Column::number("samples_b", b).spare(4),
        Column::number("hosts_a", "HOSTS A").spare(2),
        Column::number("hosts_b", "B").spare(2),
        Column::text("module", "MODULE").spare(1),
        Column::text("function", "FUNCTION"),
        Column::number("self_covers_zero", ""),
        Column::number("self_chance", ""),
        Column::number("self_corrected_chance", ""),
        Column::number("total_covers_zero", ""),
        Column::number("total_corrected_chance", ""),
    ]
}

fn cells(it: &Compare, row: Row, sides: &Sides) -> Vec<Cell> {
    let points = |number: f64| format!("{:+.2}", number * 100.0);
    let half = |change: &Change| match change.half {
        Some(half) => Cell::new(format!("{:.2}", half * 100.0), finite(half)),
        None => Cell::none(),
    };
    let mark = |change: &Change| match change.mark() {
        Some(mark) => Cell::new(mark, mark),
        None => Cell::new("", Value::Null),
    };
    let covers_zero =
        |change: &Change| Cell::new("", change.covers_zero().map_or(Value::Null, Value::Bool));
    let known = |number: Option<f64>| Cell::new("", number.map_or(Value::Null, finite));
    let samples = |column: &str| {
        if sides.has_samples() {
            Cell::count(row.whole(column))
        } else {
            Cell::none()
        }
    };
    let module_cell = module(row);
    let function = match row.text("function") {
        // A narrow terminal has no room for the column of modules.
        "" => Cell::new(format!("{NO_NAME} in {}", module_cell.shown()), Value::Null),
        name => Cell::name(name),
    };
    let per_hour = |at: usize, column: &str| Cell::amount(sides.per_hour(row.number(column), at));
    vec![
        Cell::new(points(it.own.delta()), finite(it.own.delta())),
        mark(&it.own),
        half(&it.own),
        Cell::share(it.own.a, 2),
        Cell::share(it.own.b, 2),
        per_hour(0, "self_a"),
        per_hour(1, "self_b"),
        Cell::new(points(it.total.delta()), finite(it.total.delta())),
        mark(&it.total),
        half(&it.total),
        Cell::share(it.total.a, 2),
        Cell::share(it.total.b, 2),
        samples("samples_a"),
        samples("samples_b"),
        Cell::count(row.whole("hosts_a")),
        Cell::count(row.whole("hosts_b")),
        module_cell,
        function,
        covers_zero(&it.own),
        known(it.own.chance),
        known(it.own.corrected),
        covers_zero(&it.total),
        known(it.total.corrected),
    ]
}

#[cfg(test)]
mod tests;
