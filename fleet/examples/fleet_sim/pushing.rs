//! Hosts that send to Pyroscope: all of them in the time of the machine, and fewer after an outage in
//! a time that passes faster.

use crate::double::Double;
use crate::hosts::{DIFFERENT, Did, Hosts, Load, MINUTE_MS};
use crate::table::Row;
use crate::volume::FLEET_HOSTS;
use crate::{Sentence, Setup, cpu};
use proftop_fleet::simulate::{Counts, Fleet, Simulation, pyroscope};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::time::Instant;

/// Threads that send in the time of the machine.
const THREADS: usize = 6;

/// With more hosts than this the double checks one of four profiles in whole, and adds up the
/// values of the others: checking takes 11 ms of CPU for each window, and the double uses one CPU.
const CHECKED_HOSTS: u32 = 2_000;

/// A second may have that many times the requests of a mean one.
const BURST: f64 = 2.0;

/// Largest part of a core that the hosts may take.
const AIM_CORES: f64 = 1.0;

/// Requests of the busiest time after an outage, by the mean before it.
const AIM_AFTERWARDS: f64 = 3.0;

/// Bytes a second of one host.
const AIM_CATCH_UP: f64 = 1e6;

/// Pyroscope refuses what is older than an hour, and windows expire before that.
const EXPIRES_MINUTES: u64 = 55;

/// The longest time between two attempts while a server is away.
const ATTEMPTS_MINUTES: u64 = 5;

/// Seconds in which requests are counted together.
const BIN_MS: u64 = 30_000;

/// A skipped row.
fn skipped(what: &str) -> Row {
    Row {
        what: what.into(),
        load: "skipped: no Python with the packages of the double (PROFTOP_FLEET_PYTHON)".into(),
        figure: String::new(),
        aim: String::new(),
        is_reached: None,
    }
}

/// Returns a simulation of hosts with `cpus` CPUs each, and without faults, for `minutes`.
pub fn simulation(setup: &Setup, cpus: u32, minutes: u32) -> Simulation<'_> {
    let fleet = Fleet {
        cpus,
        minutes,
        has_faults: false,
        ..setup.fleet()
    };
    Simulation::new(&setup.recorded, fleet)
}

/// Returns whether everything has arrived once, in words.
fn arrived(hosts: &Hosts, counts: &Counts, report: &Value) -> (bool, String) {
    let wrong = report["wrong"].as_array().is_none_or(|it| !it.is_empty());
    let done = counts.windows + counts.expired;
    let is_all = done == hosts.windows()
        && counts.lost + counts.refused + counts.unreadable == 0
        && report["samples"].as_u64() == Some(counts.samples)
        && !wrong;
    let words = format!(
        "{} of {} windows taken, {} expired, {} lost, {} refused, {} samples here and {} there",
        counts.windows,
        hosts.windows(),
        counts.expired,
        counts.lost,
        counts.refused,
        counts.samples,
        report["samples"],
    );
    (is_all, words)
}

/// Sends the windows of all hosts in the time of the machine.
pub fn measure(setup: &Setup) -> Result<Vec<Row>, Sentence> {
    let mut rows = vec![whole(setup)?];
    let Some(mut double) = Double::start()? else {
        rows.push(skipped("sending from all hosts"));
        return Ok(rows);
    };
    let (count, minutes, spread_ms) = if setup.is_small {
        (30, 1, 2000)
    } else {
        (setup.pushing, setup.minutes, MINUTE_MS)
    };
    if count > CHECKED_HOSTS {
        double.tell("check 4")?;
    }
    let simulation = simulation(setup, 1, minutes);
    let folder = setup.work.join("push");
    let _ = fs::remove_dir_all(&folder);
    let sink = || Ok(pyroscope(&double.url));
    let load = Load {
        hosts: count,
        minutes,
        spread_ms,
        different: DIFFERENT,
    };
    let hosts = Hosts::new(&simulation, &folder, sink, load)?;
    let (begun, before) = (Instant::now(), cpu::of_process());
    let all = hosts.run(THREADS)?;
    let first = all.iter().map(|it| it.at_ms).min().unwrap_or(0);
    let last = all.iter().map(|it| it.until_ms).max().unwrap_or(0);
    let seconds = (last.saturating_sub(first)) as f64 / 1000.0;
    let cores = (cpu::of_process() - before).as_secs_f64() / seconds.max(1.0);
    let counts = hosts.counts();
    let taken = double.tell("seconds")?;
    let report = double.tell("report")?;
    let taken = taken.as_array().cloned().unwrap_or_default();
    let taken: Vec<f64> = taken.iter().filter_map(Value::as_f64).collect();
    // The first seconds and the last ones are not whole.
    let inner = taken.get(3..taken.len().saturating_sub(5)).unwrap_or(&[]);
    let mean = inner.iter().sum::<f64>() / inner.len().max(1) as f64;
    let most = inner.iter().copied().fold(0.0, f64::max);
    let (is_all, words) = arrived(&hosts, &counts, &report);
    let load = format!(
        "{count} hosts, a window of 60 s each minute for {minutes} min, of 1 CPU ({:.0} samples and {:.1} KB a window), \
         on the machine's time ({:.0} s)",
        counts.samples as f64 / counts.windows.max(1) as f64,
        counts.bytes as f64 / counts.requests.max(1) as f64 / 1e3,
        begun.elapsed().as_secs_f64(),
    );
    rows.push(Row {
        what: "sending from all hosts".into(),
        load: load.clone(),
        figure: format!("{words}; {} tried again", counts.retries),
        aim: "0 lost".into(),
        is_reached: Some(is_all),
    });
    rows.push(Row {
        what: "the same, requests in the busiest second".into(),
        load,
        figure: format!(
            "{most:.0}, {:.2} times the mean of {mean:.1}",
            most / mean.max(0.1)
        ),
        aim: format!("{BURST} times the mean"),
        is_reached: (!setup.is_small).then_some(most <= BURST * mean),
    });
    let of_fleet = cores * FLEET_HOSTS / f64::from(count);
    rows.push(Row {
        what: "the same, CPU of all shippers together".into(),
        load: format!(
            "reading and packing is theirs; the double took {:.2} cores",
            report["cpu_s"].as_f64().unwrap_or(0.0) / seconds.max(1.0)
        ),
        figure: format!("{cores:.2} cores, {of_fleet:.2} for 10,000 hosts"),
        aim: format!("{AIM_CORES} core for 10,000 hosts"),
        is_reached: (!setup.is_small).then_some(of_fleet <= AIM_CORES),
    });
    Ok(rows)
}

/// Sends windows of whole hosts, to see how large they are.
fn whole(setup: &Setup) -> Result<Row, Sentence> {
    let Some(double) = Double::start()? else {
        return Ok(skipped("bytes of a host and an hour, sent to Pyroscope"));
    };
    let (count, minutes, cpus) = if setup.is_small {
        (2, 2, 2)
    } else {
        // The aim is for hosts that are half busy in the mean. How busy a host is differs: with 24
        // hosts the mean is 50 or 51 %, with eight it was 54 %.
        (24, 5, 32)
    };
    let simulation = simulation(setup, cpus, minutes);
    let folder = setup.work.join("push-whole");
    let _ = fs::remove_dir_all(&folder);
    let sink = || Ok(pyroscope(&double.url));
    let load = Load {
        hosts: count,
        minutes,
        spread_ms: MINUTE_MS,
        different: count,
    };
    let hosts = Hosts::new(&simulation, &folder, sink, load)?;
    let before = cpu::of_process();
    hosts.run_compressed(|_| Ok(()))?;
    let taken = (cpu::of_process() - before).as_secs_f64();
    let counts = hosts.counts();
    let hours = f64::from(count * minutes) / 60.0;
    let mb = counts.bytes as f64 / hours / 1e6;
    Ok(Row {
        what: "bytes of a host and an hour, sent to Pyroscope".into(),
        load: format!(
            "{count} hosts of {cpus} CPUs at 19 Hz, {minutes} windows of 60 s of each, {:.0} samples a window",
            counts.samples as f64 / counts.windows.max(1) as f64
        ),
        figure: format!(
            "{mb:.1} MB; {:.0} ms of CPU a window, reading included",
            taken * 1e3 / counts.windows.max(1) as f64
        ),
        aim: "7 MB".into(),
        is_reached: (!setup.is_small).then_some(mb <= 7.0),
    })
}

/// Sends windows while the server is away for some time, and afterwards.
pub fn outage(setup: &Setup) -> Result<Vec<Row>, Sentence> {
    let mut rows = Vec::new();
    let lengths: &[u64] = if setup.is_small { &[5] } else { &[30, 120] };
    for minutes in lengths {
        let Some(double) = Double::start()? else {
            return Ok(vec![skipped("an outage of the server")]);
        };
        rows.extend(outage_of(setup, double, *minutes)?);
    }
    Ok(rows)
}

/// Minutes before an outage, and after it: until everything is sent, new windows come as well.
const BEFORE: u64 = 5;
const AFTER: u64 = 45;

fn outage_of(setup: &Setup, mut double: Double, minutes: u64) -> Result<Vec<Row>, Sentence> {
    let count = setup.some();
    let total = BEFORE + minutes + AFTER;
    let simulation = simulation(setup, 1, total as u32);
    let folder = setup.work.join(format!("outage-{minutes}"));
    let _ = fs::remove_dir_all(&folder);
    let load = Load {
        hosts: count,
        minutes: total as u32,
        spread_ms: MINUTE_MS,
        different: DIFFERENT,
    };
    let sink = || Ok(pyroscope(&double.url));
    let hosts = Hosts::new(&simulation, &folder, sink, load)?;
    let down_ms = hosts.start_ms + BEFORE * MINUTE_MS;
    let up_ms = down_ms + minutes * MINUTE_MS;
    let mut events = vec![(down_ms, "down"), (up_ms, "up")]
        .into_iter()
        .peekable();
    let mut told_ms = 0;
    let all = hosts.run_compressed(|at_ms| {
        while let Some((_, word)) = events.next_if(|it| it.0 <= at_ms) {
            double.tell(word)?;
        }
        if at_ms >= told_ms + MINUTE_MS {
            told_ms = at_ms;
            double.tell(&format!("time {at_ms}"))?;
        }
        Ok(())
    })?;
    let counts = hosts.counts();
    let report = double.tell("report")?;
    let (is_all, words) = arrived(&hosts, &counts, &report);
    // What is older when the server is back, and until the last host has asked it again.
    let too_old = minutes.saturating_sub(EXPIRES_MINUTES);
    let most = (too_old + ATTEMPTS_MINUTES + 2) * u64::from(count);
    let is_fine = is_all && (too_old > 0 || counts.expired == 0) && counts.expired <= most;
    let after = Recovery::of(&all, down_ms, up_ms);
    let load =
        format!("{count} hosts, {minutes} min of 503 in time that passes faster, windows of 1 CPU");
    Ok(vec![
        Row {
            what: format!("an outage of {minutes} min"),
            load: load.clone(),
            figure: format!(
                "{words}; all is sent {:.1} min after it",
                after.until_idle_ms as f64 / MINUTE_MS as f64
            ),
            aim: format!(
                "0 lost; {} windows a host expire at most",
                if too_old > 0 {
                    most / u64::from(count)
                } else {
                    0
                }
            ),
            is_reached: Some(is_fine),
        },
        Row {
            what: "the same, the fastest host afterwards".into(),
            load: load.clone(),
            figure: format!("{:.2} MB/s", after.fastest / 1e6),
            aim: "1 MB/s".into(),
            is_reached: Some(after.fastest <= AIM_CATCH_UP),
        },
        Row {
            what: "the same, hosts that come back in the busiest 30 s".into(),
            load: load.clone(),
            figure: format!(
                "{} ({:.1} times as many as if all came in 5 min alike)",
                after.back,
                after.back as f64 / (f64::from(count) / 10.0)
            ),
            aim: format!("{BURST} times as many"),
            is_reached: (!setup.is_small)
                .then_some(after.back as f64 <= BURST * f64::from(count) / 10.0),
        },
        Row {
            what: "the same, requests in the busiest 30 s afterwards".into(),
            load,
            figure: format!("{:.2} times the mean number", after.requests),
            aim: format!("{AIM_AFTERWARDS} times"),
            is_reached: (!setup.is_small).then_some(after.requests <= AIM_AFTERWARDS),
        },
    ])
}

/// What happened when a server was back.
struct Recovery {
    until_idle_ms: u64,
    /// Bytes a second of the fastest host, while it sent what had waited.
    fastest: f64,
    /// Hosts that came back in the busiest time of some seconds.
    back: u64,
    /// Requests of the busiest time, by the mean before.
    requests: f64,
}

impl Recovery {
    fn of(all: &[Did], down_ms: u64, up_ms: u64) -> Self {
        let mut hosts: HashMap<usize, (u64, u64, Option<u64>)> = HashMap::new();
        let (mut back, mut requests) = (HashMap::new(), HashMap::new());
        let mut before = 0;
        for did in all {
            if did.at_ms < down_ms {
                before += did.requests;
            }
            if did.at_ms < up_ms {
                continue;
            }
            let bin = (did.at_ms - up_ms) / BIN_MS;
            *requests.entry(bin).or_insert(0) += did.requests;
            if did.requests > 0 {
                let host = hosts.entry(did.host).or_insert_with(|| {
                    *back.entry(bin).or_insert(0) += 1;
                    (did.at_ms, 0, None)
                });
                if host.2.is_none() {
                    host.1 += did.bytes;
                }
            }
            if did.is_idle
                && let Some(host) = hosts.get_mut(&did.host)
            {
                host.2.get_or_insert(did.at_ms);
            }
        }
        let rate = |(from, bytes, to): &(u64, u64, Option<u64>)| {
            let seconds = to.map_or(0, |it| it - from) as f64 / 1000.0;
            *bytes as f64 / seconds.max(0.001)
        };
        let idle = hosts.values().filter_map(|it| it.2);
        let mean = before as f64 / ((BEFORE * MINUTE_MS) / BIN_MS) as f64;
        let most = requests.values().copied().max().unwrap_or(0);
        Self {
            until_idle_ms: idle.max().unwrap_or(up_ms) - up_ms,
            fastest: hosts.values().map(rate).fold(0.0, f64::max),
            back: back.values().copied().max().unwrap_or(0),
            requests: most as f64 / mean.max(0.1),
        }
    }
}
