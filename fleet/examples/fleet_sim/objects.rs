//! Hosts that write files of Parquet: when they do, and how fast a store takes them.

use crate::hosts::{Hosts, Load, MINUTE_MS};
use crate::pushing::simulation;
use crate::table::Row;
use crate::{Sentence, Setup, cpu};
use proftop_fleet::simulate::parquet;
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Minutes of windows that are written.
const MINUTES: u32 = 31;
const SMALL_MINUTES: u32 = 16;

/// Files of a host in a quarter of an hour, one of each table; of stacks and frames there may be
/// none.
const TABLES: f64 = 4.0;

/// Files a second of 10,000 hosts.
const AIM_A_SECOND: f64 = 10_000.0 * TABLES / (15.0 * 60.0);

/// Time in which files are counted together, and how many times the mean there may be then: twice by
/// the half of the time that is used, and more by chance.
const BIN_MS: u64 = 60_000;
const BURST: f64 = 3.0;

/// A bucket in a store that `AWS_ENDPOINT_URL` names.
const BUCKET: &str = "s3://fleet/simulated";

pub fn measure(setup: &Setup) -> Result<Vec<Row>, Sentence> {
    let mut rows = vec![moments(setup)?];
    if std::env::var_os("AWS_ENDPOINT_URL").is_some() {
        rows.push(objects(setup)?);
    } else {
        rows.push(Row {
            what: "files of Parquet as objects".into(),
            load: "skipped: AWS_ENDPOINT_URL names no store with a bucket `fleet`".into(),
            figure: String::new(),
            aim: String::new(),
            is_reached: None,
        });
    }
    Ok(rows)
}

/// When hosts write the files of a quarter of an hour.
fn moments(setup: &Setup) -> Result<Row, Sentence> {
    let minutes = if setup.is_small {
        SMALL_MINUTES
    } else {
        MINUTES
    };
    let count = setup.some();
    let simulation = simulation(setup, 1, minutes);
    let folder = setup.work.join("files");
    let _ = fs::remove_dir_all(&folder);
    let data = folder.join("data");
    let sink = || parquet(&data);
    let load = load(count, minutes);
    let hosts = Hosts::new(&simulation, &folder, sink, load)?;
    let all = hosts.run_compressed(|_| Ok(()))?;
    let mut bins: HashMap<u64, u64> = HashMap::new();
    for did in &all {
        *bins.entry(did.at_ms / BIN_MS).or_default() += did.requests;
    }
    let most = bins.values().copied().max().unwrap_or(0);
    // Each host writes one file of each table in 15 minutes.
    let mean = f64::from(count) / (15.0 * 60_000.0 / BIN_MS as f64);
    let times = most as f64 / mean;
    Ok(Row {
        what: "hosts that write their files in the busiest minute".into(),
        load: format!(
            "{count} hosts, {minutes} windows of each, in time that passes faster, into a folder"
        ),
        figure: format!("{most}, {times:.1} times the mean"),
        aim: format!("{BURST} times the mean"),
        is_reached: (!setup.is_small).then_some(times <= BURST),
    })
}

/// The load of hosts that write files.
fn load(hosts: u32, minutes: u32) -> Load {
    Load {
        hosts,
        minutes,
        spread_ms: MINUTE_MS,
        // A host writes at a moment that follows from its name, and its windows contain the name.
        different: hosts,
    }
}

/// How fast a store takes objects, and whether it has each sample once.
fn objects(setup: &Setup) -> Result<Row, Sentence> {
    let (count, minutes) = if setup.is_small {
        (2, SMALL_MINUTES)
    } else {
        (setup.some().min(100), MINUTES)
    };
    let simulation = simulation(setup, 1, minutes);
    let folder = setup.work.join("objects");
    let mut seconds = Vec::new();
    let (mut samples, mut cpu_s, mut windows) = (0, 0.0, 0);
    // The second time all objects are written once more, by shippers that have forgotten everything.
    for _ in 0..2 {
        let _ = fs::remove_dir_all(&folder);
        let sink = || parquet(Path::new(BUCKET));
        let load = load(count, minutes);
        let hosts = Hosts::new(&simulation, &folder, sink, load)?;
        let (begun, before) = (Instant::now(), cpu::of_process());
        hosts.run_compressed(|_| Ok(()))?;
        seconds.push(begun.elapsed().as_secs_f64());
        cpu_s = (cpu::of_process() - before).as_secs_f64();
        let counts = hosts.counts();
        if counts.lost + counts.unreadable + counts.retries > 0 {
            return Err(format!("the store did not take everything: {counts:?}"));
        }
        (samples, windows) = (counts.samples, counts.windows);
    }
    let files = f64::from(count) * f64::from(minutes).div_euclid(15.0) * TABLES;
    let answer = setup.ask(&["top", BUCKET, "--format", "json"])?;
    let answer: Value = serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
    let stored = answer["samples"].as_f64().unwrap_or(0.0) as u64;
    let rate = files / seconds[0];
    Ok(Row {
        what: "files of Parquet as objects".into(),
        load: format!(
            "{count} hosts, {minutes} windows of each, one after the other; then all of it once more"
        ),
        figure: format!(
            "{rate:.0} objects a second at most ({cpu_s:.1} s of CPU); {windows} windows; {samples} samples sent each \
             time and {stored} stored"
        ),
        aim: format!("{AIM_A_SECOND:.0} a second, each sample once"),
        is_reached: (!setup.is_small).then_some(rate >= AIM_A_SECOND && stored == samples),
    })
}
