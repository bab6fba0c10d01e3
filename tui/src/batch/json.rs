//! A report as one JSON object on one line. `docs/batch-json.md` describes
//! every field; a test here holds the two together.

use super::BatchReport;
use engine::snapshot::TargetState;
use probe::EngineKind;
use profile::{FrameKind, FunctionRow, ProcessRow, Report, RowName, TREND_LEN, ThreadRow};
use serde::Serialize;
use std::collections::BTreeMap;

/// Goes up only when a field changes its meaning or goes away.
const SCHEMA: u32 = 1;

/// Returns the report as one line, with a newline at its end.
pub(super) fn render(report: &BatchReport<'_>) -> String {
    let mut line = serde_json::to_string(&Object::new(report))
        .expect("strings, numbers and maps with string keys can be written");
    line.push('\n');
    line
}

#[derive(Serialize)]
struct Object<'a> {
    schema: u32,
    version: &'a str,
    time_unix_ms: u64,
    host: &'a str,
    kernel: &'a str,
    arch: &'a str,
    cpus: u32,
    sampled_cpus: &'a [u16],
    busy_cpus: f64,
    scope: &'a str,
    pids: &'a [u32],
    target: &'static str,
    elapsed_s: f64,
    window_s: f64,
    rate_hz: u32,
    engine: &'static str,
    samples: u64,
    lost: u64,
    samples_run: u64,
    lost_run: u64,
    user_stacks: u64,
    whole: u64,
    endings: BTreeMap<&'static str, u64>,
    frames: u64,
    named: u64,
    pending: u64,
    unnamed: BTreeMap<&'static str, u64>,
    own: Own,
    stops_run: Vec<Stop<'a>>,
    notes: Vec<&'a str>,
    functions_found: usize,
    functions: Vec<Function<'a>>,
    processes: Vec<Process<'a>>,
    threads: Vec<Thread<'a>>,
}

#[derive(Serialize)]
struct Stop<'a> {
    cause: &'static str,
    module: &'a str,
    samples: u64,
}

fn stop(stop: &profile::Stop) -> Stop<'_> {
    Stop {
        cause: stop.cause.label(),
        module: &stop.module,
        samples: stop.samples,
    }
}

#[derive(Serialize)]
struct Own {
    cpu_percent: f64,
    rss_bytes: u64,
    table_bytes: u64,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    module: &'a str,
    module_path: &'a str,
    kind: &'static str,
    /// The address as text, because most readers lose digits of numbers above 2^53.
    address: String,
    no_name: Option<&'static str>,
    #[serde(rename = "self")]
    self_samples: u64,
    total: u64,
    err_pp: f64,
    trend: [u32; TREND_LEN],
    file: Option<&'a str>,
    line: Option<u32>,
}

#[derive(Serialize)]
struct Process<'a> {
    pid: u32,
    comm: &'a str,
    samples: u64,
    kernel_samples: u64,
    threads: u32,
    top_function: Option<&'a str>,
    exited: bool,
    trend: [u32; TREND_LEN],
}

#[derive(Serialize)]
struct Thread<'a> {
    pid: u32,
    tid: u32,
    comm: &'a str,
    samples: u64,
    kernel_samples: u64,
    top_function: Option<&'a str>,
    trend: [u32; TREND_LEN],
}

impl<'a> Object<'a> {
    fn new(batch: &'a BatchReport<'a>) -> Self {
        let snapshot = batch.snapshot;
        let (report, health) = (&snapshot.report, &snapshot.health);
        let host = &*snapshot.source.host;
        let lacks = &report.completeness;
        let (shown, _) = batch.split();
        let endings = lacks.endings.iter();
        let unnamed = lacks.unnamed.iter();
        Self {
            schema: SCHEMA,
            version: batch.version,
            time_unix_ms: batch.time_unix_ms,
            host: &host.name,
            kernel: &host.kernel,
            arch: &host.arch,
            cpus: host.cpus,
            sampled_cpus: &host.sampled_cpus,
            busy_cpus: number(snapshot.run.busy_cpus),
            scope: &snapshot.run.scope,
            pids: batch.pids,
            target: target_word(&snapshot.run.target),
            elapsed_s: snapshot.run.elapsed.as_secs_f64(),
            window_s: report.window.seconds(),
            rate_hz: report.rate_hz,
            engine: snapshot.source.engine.map_or("", EngineKind::label),
            samples: report.samples,
            lost: health.lost,
            samples_run: health.taken_run,
            lost_run: health.lost_run,
            user_stacks: lacks.user_stacks,
            whole: lacks.whole,
            endings: endings.map(|(e, count)| (e.label(), *count)).collect(),
            frames: lacks.frames,
            named: lacks.named,
            pending: lacks.pending,
            unnamed: unnamed.map(|(why, count)| (why.label(), *count)).collect(),
            own: Own {
                cpu_percent: number(health.own_cpu_percent),
                rss_bytes: health.own_rss_bytes,
                table_bytes: health.table_bytes,
            },
            stops_run: health.stops.iter().map(stop).collect(),
            notes: batch.notes().collect(),
            functions_found: report.functions.len(),
            functions: shown.iter().map(|f| function(f, report)).collect(),
            processes: report.processes.iter().map(process).collect(),
            threads: report.threads.iter().map(thread).collect(),
        }
    }
}

fn function<'a>(row: &'a FunctionRow, report: &Report) -> Function<'a> {
    Function {
        name: &row.name,
        module: &row.module,
        module_path: &row.module_path,
        kind: kind_word(row.kind),
        address: format!("{:#x}", row.address),
        no_name: match row.name_state {
            RowName::Named => None,
            RowName::Pending => Some("pending"),
            RowName::Unnamed(reason) => Some(reason.label()),
        },
        self_samples: row.self_samples,
        total: row.total_samples,
        err_pp: report.band_points(row.self_samples, report.samples),
        trend: row.trend,
        file: row.file.as_deref(),
        line: (row.line > 0).then_some(row.line),
    }
}

fn process(row: &ProcessRow) -> Process<'_> {
    Process {
        pid: row.pid,
        comm: &row.comm,
        samples: row.samples,
        kernel_samples: row.kernel_samples,
        threads: row.threads,
        top_function: row.top_function.as_deref(),
        exited: row.exited,
        trend: row.trend,
    }
}

fn thread(row: &ThreadRow) -> Thread<'_> {
    Thread {
        pid: row.pid,
        tid: row.tid,
        comm: &row.comm,
        samples: row.samples,
        kernel_samples: row.kernel_samples,
        top_function: row.top_function.as_deref(),
        trend: row.trend,
    }
}

fn target_word(target: &TargetState) -> &'static str {
    match target {
        TargetState::Starting => "starting",
        TargetState::Running => "running",
        TargetState::Recorded => "recorded",
        TargetState::Exited(_) => "exited",
        TargetState::Failed(_) => "failed",
    }
}

fn kind_word(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::User => "user",
        FrameKind::Kernel => "kernel",
        FrameKind::Jit => "jit",
        FrameKind::Python => "python",
    }
}

/// JSON has no infinity; `null` would change the field's type.
fn number(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use crate::batch::Format;
    use crate::batch::fixture::{Fixture, hostile};
    use profile::Ending;
    use serde_json::Value;
    use std::collections::BTreeSet;

    const DOCUMENT: &str = include_str!("../../../docs/batch-json.md");

    fn parse(fixture: &Fixture, top: Option<usize>) -> Value {
        let json = fixture.batch(top).render(Format::Json, true);
        assert_eq!(json.lines().count(), 1, "one line per report");
        assert!(json.ends_with('\n'));
        serde_json::from_str(&json).expect("valid JSON")
    }

    /// Every field by its path, as in `own.rss_bytes` or `functions[].name`.
    fn paths(value: &Value, at: &str, found: &mut BTreeSet<String>) {
        match value {
            // Their keys are words of the data, listed apart.
            Value::Object(_) if at == "endings" || at == "unnamed" => {}
            Value::Object(fields) => {
                for (key, value) in fields {
                    let dot = if at.is_empty() { "" } else { "." };
                    let path = format!("{at}{dot}{key}");
                    paths(value, &path, found);
                    found.insert(path);
                }
            }
            Value::Array(items) => {
                for item in items {
                    paths(item, &format!("{at}[]"), found);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn the_document_has_every_field_and_no_other() {
        let mut emitted = BTreeSet::new();
        paths(&parse(&Fixture::postgres(), None), "", &mut emitted);
        let json_part = DOCUMENT.split("## CSV").next().expect("a part on JSON");
        let documented: BTreeSet<String> = json_part
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .map(str::to_string)
            .collect();
        assert_eq!(emitted, documented);
    }

    #[test]
    fn the_document_has_every_ending() {
        for ending in Ending::ALL {
            let word = format!("- `{}`", ending.label());
            assert!(DOCUMENT.contains(&word), "{word}");
        }
    }

    #[test]
    fn fields_hold_what_the_report_says() {
        let json = parse(&Fixture::postgres(), Some(1));
        assert_eq!(json["schema"], 1);
        assert_eq!(json["host"], "db-01");
        assert_eq!(json["window_s"], 10.0);
        assert_eq!(json["samples"], 3277);
        assert_eq!(json["endings"]["root"], 3241);
        assert_eq!(json["unnamed"]["stripped"], 3500);
        assert_eq!(json["own"]["rss_bytes"], 34 << 20);
        let functions = json["functions"].as_array().expect("a list");
        assert_eq!(functions.len(), 1);
        assert_eq!(json["functions_found"], 5);
        assert_eq!(functions[0]["name"], "hash_search_with_hash_value");
        assert_eq!(functions[0]["self"], 465);
        assert_eq!(functions[0]["file"], Value::Null);
        assert_eq!(json["processes"][0]["pid"], 4121);
        assert_eq!(json["threads"][0]["comm"], "postgres");
    }

    #[test]
    fn any_string_survives() {
        let fixture = hostile();
        let json = parse(&fixture, None);
        let functions = json["functions"].as_array().expect("a list");
        for (value, row) in functions.iter().zip(fixture.batch(None).split().0) {
            assert_eq!(value["name"], *row.name);
        }
        assert_eq!(json["notes"].as_array().map(Vec::len), Some(2));
        assert_eq!(json["target"], "exited");
        assert_eq!(json["busy_cpus"], 0.0, "was not a number");
    }
}
