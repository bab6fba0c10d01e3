//! Lists the machines on which a function is hot.

use super::arguments::{Asked, Format, read_top, span};
use super::machines::{self, Machine};
use super::report::{Cell, Column, Report};
use super::{nearby, summary};
use crate::failure::{Failure, safe};
use crate::rows::Row;
use crate::sql::{self, Dialect, Selection, Statement};
use crate::words::counted;
use clap::Args;
use serde_json::json;

/// Maximum number of hosts that are listed.
const HOSTS_MAX: usize = 200_000;

#[derive(Debug, Args)]
pub struct Hosts {
    #[command(flatten)]
    pub asked: Asked,
    /// The name of the function, as `top` prints it
    #[arg(long, value_name = "NAME")]
    function: String,
    /// How many rows
    #[arg(long, value_name = "ROWS", default_value_t = 20, value_parser = read_top)]
    top: usize,
    /// What the answer looks like
    #[arg(long, default_value = "table")]
    format: Format,
}

/// Prints the answer.
pub fn run(hosts: &Hosts) -> Result<(), Failure> {
    let asked = &hosts.asked;
    let selection = asked.selection()?;
    if hosts.function.is_empty() {
        return Err(Failure::usage("the name of the function is empty"));
    }
    sql::check(&hosts.function)?;
    let dialect = super::dialect(&asked.source);
    let statement = statement(dialect, &selection, &hosts.function);
    if asked.source.print {
        let statements = [
            summary::statement(dialect, &selection, &[]),
            machines::statement(dialect, &selection),
            statement,
        ];
        return super::print_statements(&asked.source, &statements);
    }
    let engine = super::engine(&asked.source, span(&selection))?;
    let engine = &*engine;
    let Some(all) = summary::whole(engine, dialect, &selection)? else {
        return Err(nearby::no_samples(engine, dialect, &selection)?);
    };
    let machines = machines::ask(engine, dialect, &selection)?;
    let answer = engine.rows(&statement)?;
    let with: Vec<Row> = answer
        .iter()
        .filter(|it| it.number("total_time") > 0.0)
        .collect();
    if with.is_empty() {
        return Err(nearby::no_function(engine, &hosts.function)?);
    }
    let of_all: f64 = with.iter().map(|it| it.number("total_time")).sum();
    let head = vec![
        all.sentence(&selection.event),
        machines::lost(&machines).sentence(),
        format!(
            "{} is on {} of {}, with {:.1} % of the time",
            safe(&hosts.function),
            with.len(),
            counted(all.hosts, "host"),
            all.share(of_all) * 100.0
        ),
    ];
    let mut notes = Vec::new();
    if with.len() > hosts.top {
        notes.push(format!("only the first {} rows (--top)", hosts.top));
    }
    notes.extend(all.notes());
    let nothing = Machine::default();
    let rows = with.iter().take(hosts.top).map(|row| {
        let machine = machines.get(row.text("host")).unwrap_or(&nothing);
        cells(*row, machine, &all)
    });
    let mut fields = all.fields(&selection);
    fields.insert("function".into(), json!(safe(&hosts.function)));
    fields.insert("hosts_with_function".into(), json!(with.len()));
    let report = Report {
        question: "hosts",
        head,
        fields,
        rows: rows.collect(),
        columns: columns(&all),
        notes,
    };
    report.print(hosts.format)
}

/// The statement.
fn statement(dialect: &dyn Dialect, selection: &Selection, function: &str) -> String {
    Statement::new(dialect, include_str!("../../sql/hosts.sql"))
        .by(&[])
        .of(selection)
        .of_function(Some(function))
        .limit(HOSTS_MAX)
        .finish()
}

fn columns(all: &summary::Summary) -> Vec<Column> {
    let (own, total, of_host) = if all.is_time() {
        ("SELF s", "TOTAL s", "ALL s")
    } else {
        ("SELF", "TOTAL", "ALL")
    };
    let (band, samples) = if all.has_samples() {
        ("±", "SAMPLES")
    } else {
        ("", "")
    };
    vec![
        Column::text("host", "HOST"),
        Column::number("total_share", "TOTAL %"),
        Column::number("total_share_band", band),
        Column::number("self_share", "SELF %"),
        Column::number("total", total),
        Column::number("self", own),
        Column::number("samples", samples).spare(2),
        Column::number("of_host", of_host),
        Column::number("cores", "CORES").spare(4),
        Column::number("recorded_ms", "RECORDED").spare(3),
        Column::number("lost_samples", "LOST").spare(1),
        Column::number("lost_windows", ""),
        Column::text("kernel", "KERNEL").spare(5),
    ]
}

fn cells(row: Row, machine: &Machine, all: &summary::Summary) -> Vec<Cell> {
    let of_host = row.number("all_time");
    let share = |column: &str| {
        let part = row.number(column);
        Cell::share(if of_host > 0.0 { part / of_host } else { 0.0 }, 1)
    };
    let (samples, of_samples) = (row.whole("total_samples"), row.whole("all_samples"));
    let band = profile::band_points(samples, of_samples);
    let (band, samples) = if all.has_samples() {
        (
            Cell::new(format!("±{band:.1}"), band / 100.0),
            Cell::count(samples),
        )
    } else {
        (Cell::none(), Cell::none())
    };
    let minutes = machine.recorded_ms as f64 / 60_000.0;
    let kernel = match &machine.kernels[..] {
        [] => Cell::none(),
        [one] => Cell::name(one),
        several => Cell::name(&several.join(", ")),
    };
    vec![
        Cell::name(row.text("host")),
        share("total_time"),
        band,
        share("self_time"),
        Cell::amount(row.number("total_time")),
        Cell::amount(row.number("self_time")),
        samples,
        Cell::amount(of_host),
        Cell::count(machine.cores),
        Cell::new(format!("{minutes:.0} min"), machine.recorded_ms),
        Cell::count(machine.lost_samples),
        Cell::count(machine.lost_windows),
        kernel,
    ]
}
