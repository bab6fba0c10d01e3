//! Whether a change between two versions is found, and how often one is seen where there is none.

use crate::table::Row;
use crate::{Sentence, Setup, writing};
use proftop_fleet::simulate::{Fleet, Simulation, VERSIONS};
use serde_json::Value;

/// The fleets of comparisons: fewer hosts, CPUs and minutes than others, as there are many of them.
struct Size {
    hosts: u32,
    cpus: u32,
    minutes: u32,
}

const SIZE: Size = Size {
    hosts: 20,
    cpus: 8,
    minutes: 30,
};
const SMALL: Size = Size {
    hosts: 10,
    cpus: 1,
    minutes: 15,
};

/// How many fleets have a planted change, and how many have none.
const PLANTED: u64 = 10;
const NULL: u64 = 100;

/// Largest part of comparisons, and of intervals, that may be false alarms.
const ALARMS: f64 = 0.05;

/// A planted change is to be among that many first rows.
const FIRST: usize = 3;

/// Largest number of functions that are asked for.
const ALL: &str = "100000";

pub fn measure(setup: &Setup) -> Result<Vec<Row>, Sentence> {
    let (planted, null) = if setup.is_small {
        (1, 1)
    } else {
        (PLANTED, NULL)
    };
    let Size {
        hosts,
        cpus,
        minutes,
    } = size(setup);
    let load =
        format!("{hosts} hosts of {cpus} CPUs, {minutes} min, version B in the middle of them");
    let mut found = Vec::new();
    for seed in 0..planted {
        found.push(find(setup, seed)?);
    }
    let is_found = |it: &&Found| it.place < FIRST && it.excludes_zero;
    let count = found.iter().filter(is_found).count();
    let changes: Vec<String> = found
        .iter()
        .map(|it| format!("{:.1} ± {:.1}", it.change * 100.0, it.half * 100.0))
        .collect();
    let alarms = alarms(setup, null)?;
    let intervals = alarms.without_zero as f64 / alarms.intervals.max(1) as f64;
    let comparisons = alarms.comparisons as f64 / null as f64;
    Ok(vec![
        Row {
            what: "a function has 3 % of its service more in version B".into(),
            load: format!("{load}; {planted} fleets"),
            figure: format!(
                "among the first {FIRST} and without 0 in the interval in {count} of {planted} ({} %)",
                changes.join(", ")
            ),
            aim: "all".into(),
            is_reached: Some(count as u64 == planted),
        },
        Row {
            what: "comparisons of equal versions with a row that is `**`".into(),
            load: format!("{load}; {null} fleets"),
            figure: format!("{} of {null}", alarms.comparisons),
            aim: "5 %".into(),
            is_reached: (!setup.is_small).then_some(comparisons <= ALARMS),
        },
        Row {
            what: "intervals without 0 in them where nothing differs (`*`)".into(),
            load: format!("the same, {} functions in all", alarms.intervals),
            figure: format!("{} ({:.1} %)", alarms.without_zero, intervals * 100.0),
            aim: "5 %".into(),
            is_reached: (!setup.is_small).then_some(intervals <= ALARMS),
        },
    ])
}

fn size(setup: &Setup) -> &'static Size {
    if setup.is_small { &SMALL } else { &SIZE }
}

/// A planted change in an answer.
struct Found {
    place: usize,
    excludes_zero: bool,
    change: f64,
    half: f64,
}

fn find(setup: &Setup, seed: u64) -> Result<Found, Sentence> {
    let (rows, function) = compare(setup, seed, 0.03)?;
    let place = rows.iter().position(|it| it["function"] == *function);
    let place = place.ok_or_else(|| format!("{function} is in no row of the answer"))?;
    let row = &rows[place];
    Ok(Found {
        place,
        excludes_zero: is_marked(row),
        change: row["self_change"].as_f64().unwrap_or(0.0),
        half: row["self_half"].as_f64().unwrap_or(0.0),
    })
}

/// What was seen where nothing differs.
#[derive(Default)]
struct Alarms {
    comparisons: u64,
    intervals: u64,
    without_zero: u64,
}

fn alarms(setup: &Setup, fleets: u64) -> Result<Alarms, Sentence> {
    let mut alarms = Alarms::default();
    for seed in 0..fleets {
        let (rows, _) = compare(setup, 1000 + seed, 0.0)?;
        alarms.intervals += rows.len() as u64;
        alarms.without_zero += rows.iter().filter(|it| is_marked(it)).count() as u64;
        alarms.comparisons += u64::from(rows.iter().any(|it| it["self_mark"] == "**"));
    }
    Ok(alarms)
}

/// Whether an interval has no 0 in it.
fn is_marked(row: &Value) -> bool {
    row["self_mark"].as_str().is_some_and(|it| it.contains('*'))
}

/// Compares both versions of the first service in a fleet. Returns the rows, and the function with
/// the planted change.
fn compare(setup: &Setup, seed: u64, planted: f64) -> Result<(Vec<Value>, String), Sentence> {
    let size = size(setup);
    let fleet = Fleet {
        seed: setup.seed.wrapping_add(seed),
        cpus: size.cpus,
        minutes: size.minutes,
        planted,
        has_faults: false,
        ..setup.fleet()
    };
    let simulation = Simulation::new(&setup.recorded, fleet);
    let dir = setup.work.join("compared");
    let _ = std::fs::remove_dir_all(&dir);
    writing::write(&simulation, &dir, 0..size.hosts)?;
    let (service, function) = simulation.planted();
    let [a, b] = VERSIONS.map(|it| format!("version={it}"));
    let dir = dir.to_string_lossy();
    let more = ["--a", &a, "--b", &b, "--top", ALL, "--format", "json"];
    let words = [&["diff", &*dir, "--service", service][..], &more].concat();
    let answer: Value =
        serde_json::from_slice(&setup.ask(&words)?).map_err(|error| error.to_string())?;
    let rows = answer["rows"].as_array().cloned().unwrap_or_default();
    Ok((rows, function.into()))
}
