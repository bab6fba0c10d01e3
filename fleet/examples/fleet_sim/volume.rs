//! How fast an hour of many hosts is written, and made into few files.

use crate::table::Row;
use crate::writing::{self, Written};
use crate::{Sentence, Setup, bytes, cpu};
use proftop_fleet::simulate::Simulation;
use std::path::PathBuf;

/// The fleet that all figures are about.
pub const FLEET_HOSTS: f64 = 10_000.0;

/// The hour is written by that many cores in that many minutes.
const CORES: f64 = 2.0;
const AIM_MINUTES: f64 = 60.0;

/// How far two loads may differ for a figure that is extrapolated from them.
pub const AGREE: f64 = 0.1;

const AIM_ROWS: f64 = 5e6;

/// Returns two folders for `times` as many hosts as usual: the one into which the hosts write an hour,
/// and the one into which `compact` writes the same rows as few files.
pub fn folders(setup: &Setup, times: u32) -> (PathBuf, PathBuf) {
    let hosts = setup.hosts * times;
    let folder = |what: &str| setup.work.join(format!("{what}-{hosts}"));
    (folder("written"), folder("compact"))
}

pub fn measure(setup: &Setup) -> Result<Vec<Row>, Sentence> {
    let simulation = Simulation::new(&setup.recorded, setup.fleet());
    let mut rows = Vec::new();
    let (mut seconds, mut rates) = (Vec::new(), Vec::new());
    let loads: &[u32] = if setup.is_once { &[1] } else { &[1, 2] };
    for times in loads {
        let hosts = setup.hosts * times;
        let (dir, compact) = folders(setup, *times);
        let written = writing::write(&simulation, &dir, 0..hosts)?;
        // Hosts that are down are of the fleet.
        let of_host = written.writing.as_secs_f64() / f64::from(hosts);
        let minutes = of_host * FLEET_HOSTS / CORES / 60.0;
        seconds.push(of_host);
        rows.push(Row {
            what: "writing an hour".into(),
            load: load(hosts, &written),
            figure: figure(&written, minutes),
            aim: format!("{AIM_MINUTES:.0} min for 10,000 hosts on 2 cores"),
            is_reached: (!setup.is_small).then_some(minutes <= AIM_MINUTES),
        });
        let (said, taken) = cpu::children(|| {
            let (dir, out) = (dir.to_string_lossy(), compact.to_string_lossy());
            setup.ask(&["compact", &dir, "-o", &out, "--memory", "4G"])
        });
        said?;
        let rate = written.rows as f64 / taken.cpu.as_secs_f64().max(0.001);
        rates.push(rate);
        let size = bytes::bytes_below(&compact).map_err(|error| error.to_string())?;
        rows.push(Row {
            what: "compacting it".into(),
            load: load(hosts, &written),
            figure: format!(
                "{:.2} M rows a second and core ({:.1} s of CPU, {:.1} s); {:.2} MB a host",
                rate / 1e6,
                taken.cpu.as_secs_f64(),
                taken.wall.as_secs_f64(),
                size as f64 / f64::from(written.hosts) / 1e6,
            ),
            aim: format!("{:.0} M", AIM_ROWS / 1e6),
            is_reached: (!setup.is_small).then_some(rate >= AIM_ROWS),
        });
    }
    for (what, figures) in [("writing", seconds), ("compacting", rates)] {
        let [first, second] = figures[..] else {
            continue;
        };
        let change = second / first - 1.0;
        rows.push(Row {
            what: format!("{what} twice as much, for each host"),
            load: format!("{} and {} hosts", setup.hosts, setup.hosts * 2),
            figure: format!("{:+.1} %", change * 100.0),
            aim: format!("within {:.0} %", AGREE * 100.0),
            is_reached: (!setup.is_small).then_some(change.abs() <= AGREE),
        });
    }
    Ok(rows)
}

fn load(hosts: u32, written: &Written) -> String {
    format!(
        "an hour of {hosts} hosts ({} are up): {:.1} M rows, {:.1} M samples",
        written.hosts,
        written.rows as f64 / 1e6,
        written.samples as f64 / 1e6
    )
}

fn figure(written: &Written, minutes: f64) -> String {
    let seconds = written.writing.as_secs_f64();
    format!(
        "{:.2} M rows a second and core; {minutes:.0} min extrapolated ({seconds:.1} s of CPU to write, {:.1} to make \
         the windows, {:.1} s for both on 2 threads)",
        written.rows as f64 / seconds / 1e6,
        written.making.as_secs_f64(),
        written.wall.as_secs_f64(),
    )
}
