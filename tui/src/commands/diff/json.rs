//! A difference as one JSON object on one line. `docs/diff-json.md` describes every field; a test
//! in this file compares the document with the fields that are written.

use super::Compared;
use crate::output::json_line;
use profile::diff::{DiffRow, Side};
use serde::Serialize;

/// Version of the format. It goes up only when a field changes its meaning or is removed.
const SCHEMA: u32 = 1;

/// Returns the difference as one line, with a newline at its end.
pub fn render(compared: &Compared<'_>) -> String {
    json_line(&Object::new(compared))
}

/// The whole difference. The fields are in the order in which `docs/diff-json.md` lists them.
#[derive(Serialize)]
struct Object<'a> {
    schema: u32,
    version: &'a str,
    metric: &'a str,
    unit: &'a str,
    /// `time` or `share`.
    compared: &'static str,
    a: Half<'a>,
    b: Half<'a>,
    same_by_build_id: usize,
    same_by_module: usize,
    renamed: Vec<Renamed<'a>>,
    fail_over_points: Option<f64>,
    exceeded_by: Option<&'a str>,
    queued_ns: Option<[u64; 2]>,
    functions_found: usize,
    functions: Vec<Function<'a>>,
}

/// One of the two sides.
#[derive(Serialize)]
struct Half<'a> {
    name: &'a str,
    samples: u64,
    window_s: f64,
    rate_hz: u32,
    cpu_ms_per_s: Option<f64>,
    cpus_busy_percent: Option<f64>,
}

/// A file that has another name in B.
#[derive(Serialize)]
struct Renamed<'a> {
    a: &'a str,
    b: &'a str,
    functions: usize,
}

impl<'a> Renamed<'a> {
    fn new(renamed: &'a profile::diff::Renamed) -> Self {
        Self {
            a: &renamed.a,
            b: &renamed.b,
            functions: renamed.functions,
        }
    }
}

/// A function with its numbers on both sides.
#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    module: &'a str,
    change: f64,
    sure: bool,
    /// The probability of such a change by chance alone, before the correction for multiple tests.
    /// None if there are too few samples for a test.
    chance: Option<f64>,
    is_new: bool,
    is_gone: bool,
    a: Amounts,
    b: Amounts,
}

/// The numbers of a function on one side.
#[derive(Serialize)]
struct Amounts {
    #[serde(rename = "self")]
    self_samples: u64,
    total: u64,
    self_percent: f64,
    self_ms_per_s: Option<f64>,
}

impl<'a> Object<'a> {
    fn new(compared: &'a Compared<'a>) -> Self {
        let diff = compared.diff;
        let shown = diff.rows.iter().take(compared.rows_max);
        let [a, b] = &compared.names;
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            metric: &compared.metric.name,
            unit: &compared.metric.unit,
            compared: if diff.tests_time() { "time" } else { "share" },
            a: Half::new(a, &diff.a),
            b: Half::new(b, &diff.b),
            same_by_build_id: diff.same_by_build_id,
            same_by_module: diff.same_by_module,
            renamed: diff.renamed.iter().map(Renamed::new).collect(),
            fail_over_points: compared.limit,
            exceeded_by: compared.exceeding.map(|row| &*row.name),
            queued_ns: compared.queued_ns,
            functions_found: diff.rows.len(),
            functions: shown.map(|row| Function::new(compared, row)).collect(),
        }
    }
}

impl<'a> Half<'a> {
    fn new(name: &'a str, side: &Side) -> Self {
        Self {
            name,
            samples: side.samples,
            window_s: side.seconds,
            rate_hz: side.rate_hz,
            cpu_ms_per_s: side.cpu_ms_per_s(side.samples),
            cpus_busy_percent: side.busy.percent(),
        }
    }
}

impl<'a> Function<'a> {
    fn new(compared: &Compared<'_>, row: &'a DiffRow) -> Self {
        let diff = compared.diff;
        Self {
            name: &row.name,
            module: &row.module,
            change: diff.sides().change(row.a_self, row.b_self),
            sure: row.sure,
            chance: diff.is_tested(row.a_self, row.b_self).then_some(row.chance),
            is_new: row.is_new(),
            is_gone: row.is_gone(),
            a: Amounts::new(&diff.a, row.a_self, row.a_total),
            b: Amounts::new(&diff.b, row.b_self, row.b_total),
        }
    }
}

impl Amounts {
    fn new(side: &Side, self_samples: u64, total: u64) -> Self {
        Self {
            self_samples,
            total,
            self_percent: side.share(self_samples),
            self_ms_per_s: side.cpu_ms_per_s(self_samples),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{compared, renamed};
    use super::*;
    use crate::fixture::json_fields;
    use serde_json::Value;
    use std::collections::BTreeSet;

    const DOCUMENT: &str = include_str!("../../../../docs/diff-json.md");

    fn parse(text: &str) -> Value {
        assert_eq!(text.lines().count(), 1);
        serde_json::from_str(text).expect("valid JSON")
    }

    #[test]
    fn every_field_is_in_the_document_and_no_other() {
        let rows = DOCUMENT.lines().filter_map(|line| line.strip_prefix("| `"));
        let documented: BTreeSet<String> = rows
            .filter_map(|rest| Some(rest.split_once('`')?.0.to_owned()))
            .collect();
        let emitted = renamed(|compared| json_fields(&parse(&render(compared)), &[]));
        assert_eq!(emitted, documented);
    }

    #[test]
    fn it_says_what_became_more() {
        let value = compared(|compared| parse(&render(compared)));
        assert_eq!(
            (&value["schema"], &value["compared"]),
            (&1.into(), &"time".into())
        );
        assert_eq!(value["a"]["name"], "before.pft");
        let first = &value["functions"][0];
        assert_eq!(
            (&first["name"], &first["sure"]),
            (&"work<`x`>".into(), &true.into())
        );
        assert_eq!(
            (&first["a"]["self"], &first["b"]["self"]),
            (&100.into(), &400.into())
        );
        // 100 and 400 samples at 99 Hz in 10 s.
        let change = first["change"].as_f64().unwrap();
        assert!(
            (change - 300.0 * 1000.0 / 99.0 / 10.0).abs() < 0.01,
            "{change}"
        );
        assert_eq!(value["exceeded_by"], "work<`x`>");
        assert_eq!(value["functions_found"], 3);
        let functions = value["functions"].as_array().unwrap();
        let gone = functions.iter().find(|row| row["name"] == "old").unwrap();
        assert_eq!(
            (&gone["is_gone"], &gone["is_new"]),
            (&true.into(), &false.into())
        );
    }
}
