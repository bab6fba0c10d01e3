// Bottlenecks of Rust programs, one an argument.
// CULPRIT clone on-cpu copy_rows
// CULPRIT count on-cpu count_words
// CULPRIT format on-cpu render_rows
// CULPRIT tree on-cpu index_all
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;

#[inline(never)]
fn copy_rows(rows: &[String]) -> Vec<String> {
    rows.to_vec()
}

#[inline(never)]
fn count_words(rows: &[String]) -> usize {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for row in rows {
        *counts.entry(row.as_str()).or_default() += 1;
    }
    counts.len()
}

#[inline(never)]
fn render_rows(rows: &[String]) -> String {
    let rows = rows.iter().enumerate();
    rows.map(|(at, row)| format!("{at:08x} {row:>40} {:.3}\n", at as f64 / 7.0)).collect()
}

#[inline(never)]
fn index_all(rows: &[String]) -> usize {
    let index: BTreeMap<&String, usize> = rows.iter().enumerate().map(|(at, row)| (row, at)).collect();
    rows.iter().filter(|row| index.contains_key(row)).count()
}

fn main() {
    let what = std::env::args().nth(1).unwrap_or_default();
    let rows: Vec<String> = (0..20_000u64)
        .map(|i| format!("a row with number {}", i.wrapping_mul(2_654_435_761) % 65_521))
        .collect();
    loop {
        match what.as_str() {
            "clone" => drop(black_box(copy_rows(&rows))),
            "count" => drop(black_box(count_words(&rows))),
            "format" => drop(black_box(render_rows(&rows))),
            "tree" => drop(black_box(index_all(&rows))),
            _ => std::process::exit(2),
        }
    }
}
