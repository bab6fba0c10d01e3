//! Functions by their time on all machines.

use super::arguments::{Asked, Format, read_top, span};
use super::report::{Cell, Column, Report};
use super::summary::{Summary, key};
use super::{machines, nearby, summary};
use crate::failure::Failure;
use crate::rows::Row;
use crate::sql::{self, Dialect, Selection, Statement};
use clap::{Args, ValueEnum};
use serde_json::json;

#[derive(Debug, Args)]
pub struct Top {
    #[command(flatten)]
    pub asked: Asked,
    /// Count functions of each host, service, namespace, version or container apart; several with commas
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    by: Vec<sql::Column>,
    /// How many rows
    #[arg(long, value_name = "ROWS", default_value_t = 20, value_parser = read_top)]
    top: usize,
    /// What rows are sorted by: own time, or time with what a function calls
    #[arg(long, default_value = "self")]
    sort: Sort,
    /// What the answer looks like
    #[arg(long, default_value = "table")]
    format: Format,
}

/// The order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    #[value(name = "self")]
    Own,
    Total,
}

/// Prints the answer.
pub fn run(top: &Top) -> Result<(), Failure> {
    let asked = &top.asked;
    let selection = asked.selection()?;
    let dialect = super::dialect(&asked.source);
    let mut by: Vec<sql::Column> = Vec::new();
    for column in &top.by {
        if !by.contains(column) {
            by.push(*column);
        }
    }
    let statement = statement(dialect, &selection, &by, top);
    if asked.source.print {
        let mut statements = vec![summary::statement(dialect, &selection, &[])];
        if !by.is_empty() {
            statements.push(summary::statement(dialect, &selection, &by));
        }
        statements.push(machines::statement(dialect, &selection));
        statements.push(statement);
        return super::print_statements(&asked.source, &statements);
    }
    let engine = super::engine(&asked.source, span(&selection))?;
    let engine = &*engine;
    let Some(all) = summary::whole(engine, dialect, &selection)? else {
        return Err(nearby::no_samples(engine, dialect, &selection)?);
    };
    let groups = if by.is_empty() {
        [(Vec::new(), all)].into()
    } else {
        summary::groups(engine, dialect, &selection, &by)?
    };
    let lost = machines::lost(&machines::ask(engine, dialect, &selection)?);
    let answer = engine.rows(&statement)?;
    let row = |row: Row| {
        let group = key(row, &by);
        let whole = groups.get(&group).copied().unwrap_or(all);
        cells(row, &group, &whole)
    };
    let rows = answer.iter().take(top.top).map(row).collect();
    let mut head = vec![all.sentence(&selection.event), lost.sentence()];
    if !by.is_empty() {
        let words: Vec<&str> = by.iter().map(|it| it.word()).collect();
        head.push(format!("shares are of each {}", words.join(" and ")));
    }
    let mut notes = Vec::new();
    if answer.cells.len() > top.top {
        notes.push(format!("only the first {} rows (--top)", top.top));
    }
    notes.extend(all.notes());
    let mut fields = all.fields(&selection);
    fields.insert("lost_samples".into(), json!(lost.samples));
    fields.insert("lost_windows".into(), json!(lost.windows));
    let report = Report {
        question: "top",
        head,
        fields,
        columns: columns(&by, &all),
        rows,
        notes,
    };
    report.print(top.format)
}

/// The statement.
fn statement(
    dialect: &dyn Dialect,
    selection: &Selection,
    by: &[sql::Column],
    top: &Top,
) -> String {
    let order = match top.sort {
        Sort::Own => "round(self_time, 6) DESC, round(total_time, 6) DESC",
        Sort::Total => "round(total_time, 6) DESC, round(self_time, 6) DESC",
    };
    Statement::new(dialect, include_str!("../../sql/top.sql"))
        .by(by)
        .of(selection)
        .of_function(None)
        .with("order", order)
        .limit(top.top + 1)
        .finish()
}

fn columns(by: &[sql::Column], all: &Summary) -> Vec<Column> {
    let (own, total) = if all.is_time() {
        ("SELF s", "TOTAL s")
    } else {
        ("SELF", "TOTAL")
    };
    let samples = if all.has_samples() { "SAMPLES" } else { "" };
    let mut columns = vec![
        Column::number("self", own),
        Column::number("self_share", "SELF %"),
        Column::number("total", total).spare(2),
        Column::number("total_share", "TOTAL %"),
        Column::number("self_samples", ""),
        Column::number("samples", samples).spare(4),
        Column::number("hosts", "HOSTS").spare(3),
    ];
    for column in by {
        let title = match column {
            sql::Column::Host => "HOST",
            sql::Column::Service => "SERVICE",
            sql::Column::Namespace => "NAMESPACE",
            sql::Column::Version => "VERSION",
            sql::Column::Container => "CONTAINER",
        };
        columns.push(Column::text(column.word(), title));
    }
    columns.push(Column::text("module", "MODULE").spare(1));
    columns.push(Column::text("function", "FUNCTION"));
    columns
}

fn cells(row: Row, group: &[String], whole: &Summary) -> Vec<Cell> {
    let (own, total) = (row.number("self_time"), row.number("total_time"));
    let samples = |column: &str| {
        if whole.has_samples() {
            Cell::count(row.whole(column))
        } else {
            Cell::none()
        }
    };
    let digits = whole.digits();
    let mut cells = vec![
        Cell::amount(own),
        Cell::share(whole.share(own), digits),
        Cell::amount(total),
        Cell::share(whole.share(total), digits),
        samples("self_samples"),
        samples("total_samples"),
        Cell::count(row.whole("hosts")),
    ];
    cells.extend(group.iter().map(|it| Cell::name(it)));
    cells.push(module(row));
    cells.push(function(row.text("function")));
    cells
}

/// Returns a cell for the file that a function is in; several files may have the same name.
pub fn module(row: Row) -> Cell {
    if row.whole("modules") == 1 {
        Cell::name(row.text("module"))
    } else {
        Cell::new("(several)", serde_json::Value::Null)
    }
}

/// Returns a cell for the name of a function; all code of a file without names is one row.
fn function(name: &str) -> Cell {
    match name {
        "" => Cell::new(nearby::NO_NAME, serde_json::Value::Null),
        name => Cell::name(name),
    }
}
