//! How many bytes a host and an hour are, as files of Parquet.

use crate::table::Row;
use crate::{BEGIN_MS, Sentence, Setup, writing};
use proftop_fleet::simulate::{Fleet, Simulation, Weighting};
use std::fs;
use std::path::Path;

/// What is written: how many hosts, from when on, and for how long. The aim is for hosts that are half busy in the
/// mean. How busy a host is differs: the mean of 20 hosts is 51 %, that of six was 53 %.
struct Time {
    hosts: u32,
    begin_ms: i64,
    hours: u32,
}

/// Two hours of a morning, in which most stacks are new, and a day, whose files have each stack once.
const TIMES: [Time; 2] = [
    Time {
        hosts: 20,
        begin_ms: BEGIN_MS - HOUR_MS,
        hours: 2,
    },
    Time {
        hosts: 6,
        begin_ms: BEGIN_MS - 9 * HOUR_MS,
        hours: 24,
    },
];

const HOUR_MS: i64 = 3_600_000;

const AIM_MB: f64 = 1.5;

pub fn measure(setup: &Setup) -> Result<Vec<Row>, Sentence> {
    let times = TIMES.iter().take(if setup.is_small { 1 } else { 2 });
    let mut rows = Vec::new();
    for time in times {
        for weighting in [Weighting::Zipf, Weighting::Recorded] {
            rows.push(row(setup, time, weighting)?);
        }
    }
    Ok(rows)
}

fn row(setup: &Setup, time: &Time, weighting: Weighting) -> Result<Row, Sentence> {
    let word = match weighting {
        Weighting::Zipf => "stacks of a service by Zipf's law",
        Weighting::Recorded => "stacks as often as they were recorded",
    };
    let fleet = Fleet {
        weighting,
        begin_ms: time.begin_ms,
        minutes: if setup.is_small { 15 } else { time.hours * 60 },
        has_faults: false,
        ..setup.fleet()
    };
    let hosts = if setup.is_small { 2 } else { time.hosts };
    let cpus = fleet.cpus;
    let hours = f64::from(fleet.minutes) / 60.0;
    let simulation = Simulation::new(&setup.recorded, fleet);
    let dir = setup.work.join(format!("bytes-{weighting:?}-{hours}"));
    let written = writing::write(&simulation, &dir, 0..hosts)?;
    let all = written.bytes as f64 / f64::from(written.hosts) / 1e6;
    let samples = written.samples as f64 / f64::from(written.hosts) / hours;
    Ok(Row {
        what: "bytes of a host and an hour".into(),
        load: format!(
            "{hosts} hosts of {cpus} CPUs at 19 Hz, {word}: {samples:.0} samples an hour"
        ),
        figure: format!(
            "{:.2} MB, the mean of {hours} hours ({}); {:.0} rows",
            all / hours,
            tables(&dir, written.hosts, hours)?,
            written.rows as f64 / f64::from(written.hosts) / hours,
        ),
        aim: format!("{AIM_MB} MB"),
        is_reached: (!setup.is_small).then_some(all / hours <= AIM_MB),
    })
}

/// Returns the bytes of each table for a host and an hour, in words.
fn tables(dir: &Path, hosts: u32, hours: f64) -> Result<String, Sentence> {
    let mut words = Vec::new();
    for table in ["samples", "stacks", "frames", "hosts"] {
        let bytes = bytes_below(&dir.join(table)).map_err(|error| error.to_string())?;
        let mb = bytes as f64 / f64::from(hosts) / hours / 1e6;
        words.push(format!("{table} {mb:.2}"));
    }
    Ok(words.join(", "))
}

/// Returns the bytes of all files below a folder.
pub fn bytes_below(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() {
            bytes_below(&entry.path())?
        } else {
            entry.metadata()?.len()
        };
    }
    Ok(bytes)
}
