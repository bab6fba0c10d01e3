//! How long questions take, about an hour of many hosts and about hours without hosts.

use crate::table::Row;
use crate::volume::{FLEET_HOSTS, folders};
use crate::{Sentence, Setup, cpu};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use proftop_fleet::simulate::{Simulation, VERSIONS};
use std::path::Path;
use std::time::{Duration, Instant};

/// Functions by their own time, of hours without hosts. As in the questions of proftop-fleet, functions go by
/// numbers until the last step.
const ROLLUP: &str = "
SELECT n.function, sum(a.amount) AS self_time
FROM (
  SELECT frame_id, max(function) AS function
  FROM (SELECT frame_id, max(inline_depth) AS inline_depth FROM frames GROUP BY frame_id) d
  JOIN frames USING (frame_id, inline_depth)
  GROUP BY frame_id
) n
JOIN (
  SELECT frame_id, sum(amount) AS amount
  FROM (SELECT stack_id, max(frames[1]) AS frame_id FROM stacks GROUP BY stack_id) s
  JOIN (SELECT stack_id, sum(amount) AS amount FROM rollup_h GROUP BY stack_id) r USING (stack_id)
  GROUP BY frame_id
) a USING (frame_id)
GROUP BY n.function ORDER BY self_time DESC LIMIT 20";

/// A question is asked no more after this time, but this often at least: a p95 of few runs is their longest.
const TIME: Duration = Duration::from_secs(120);
const RUNS_MIN: usize = 5;

/// A question, and what it should take.
struct Asked<'a> {
    what: &'a str,
    question: &'a str,
    words: Vec<&'a str>,
    /// Whether it is asked of files that are compacted.
    is_compacted: bool,
    aim_s: f64,
}

pub fn measure(setup: &Setup) -> Result<Vec<Row>, Sentence> {
    if setup.is_once {
        return Err("questions are asked of two loads: leave out --once".into());
    }
    let (_, compact) = folders(setup, 2);
    if !compact.exists() {
        return Err("questions are about what `volume` has written".into());
    }
    let simulation = Simulation::new(&setup.recorded, setup.fleet());
    let (service, _) = simulation.planted();
    let (a, b) = (VERSIONS[0], VERSIONS[1]);
    let (a, b) = (format!("version={a}"), format!("version={b}"));
    let mut rows = vec![rollup(setup, &compact)?];
    for asked in [
        Asked {
            what: "functions of one service (`top --service`)",
            question: "top",
            words: vec!["--service", service],
            is_compacted: true,
            aim_s: 2.0,
        },
        Asked {
            what: "comparison of its versions (`diff`)",
            question: "diff",
            words: vec!["--service", service, "--a", &a, "--b", &b],
            is_compacted: true,
            aim_s: 1.0,
        },
        Asked {
            what: "functions of all services (`top`), one file an hour",
            question: "top",
            words: Vec::new(),
            is_compacted: true,
            aim_s: 60.0,
        },
        Asked {
            what: "the same, the files of each host",
            question: "top",
            words: Vec::new(),
            is_compacted: false,
            aim_s: 60.0,
        },
    ] {
        rows.push(ask(setup, &asked)?);
    }
    Ok(rows)
}

/// Asks about an hour of all hosts, and of half of them: what a question takes has a part that grows with
/// them, and one that does not.
fn ask(setup: &Setup, asked: &Asked) -> Result<Row, Sentence> {
    let (half, whole) = (times(setup, asked, 1)?, times(setup, asked, 2)?);
    let runs = whole.walls.len();
    let wall = cpu::percentile(whole.walls, 95);
    let cpus = [half.cpus, whole.cpus].map(|it| cpu::percentile(it, 50));
    let of_host = (cpus[1] - cpus[0]) / f64::from(setup.hosts);
    let hosts = setup.hosts * 2;
    let all = cpus[1] + of_host * (FLEET_HOSTS - f64::from(hosts));
    Ok(Row {
        what: asked.what.into(),
        load: format!("an hour of {hosts} hosts, {runs} runs"),
        figure: format!(
            "p95 {wall:.2} s; {:.2} s of CPU in the median, and {:.2} s for {} hosts: {all:.0} s for 10,000 by the \
             line through both",
            cpus[1], cpus[0], setup.hosts,
        ),
        aim: format!("{} s", asked.aim_s),
        is_reached: (!setup.is_small).then_some(wall <= asked.aim_s),
    })
}

/// What a question has taken, in seconds.
#[derive(Default)]
struct Times {
    walls: Vec<f64>,
    cpus: Vec<f64>,
}

fn times(setup: &Setup, asked: &Asked, times: u32) -> Result<Times, Sentence> {
    let (raw, compacted) = folders(setup, times);
    let folder = if asked.is_compacted { compacted } else { raw };
    let folder = folder.to_string_lossy();
    let words = [&[asked.question, &*folder][..], &asked.words].concat();
    let begun = Instant::now();
    let mut all = Times::default();
    while all.walls.len() < setup.runs && (all.walls.len() < RUNS_MIN || begun.elapsed() < TIME) {
        let (said, taken) = cpu::children(|| setup.ask(&words));
        said?;
        all.walls.push(taken.wall.as_secs_f64());
        all.cpus.push(taken.cpu.as_secs_f64());
    }
    Ok(all)
}

/// Makes hours without hosts of the one that was written, 24 times, and asks them. What an hour has
/// grows with services and stacks, and not with hosts.
fn rollup(setup: &Setup, compact: &Path) -> Result<Row, Sentence> {
    let hours = setup.work.join("hours");
    let (from, to) = (compact.to_string_lossy(), hours.to_string_lossy());
    if !hours.exists() {
        setup.ask(&["rollup", &from, "-o", &to])?;
    }
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let (walls, rows) = runtime
        .block_on(rollup_times(setup, compact, &hours))
        .map_err(|error| error.to_string())?;
    let wall = cpu::percentile(walls, 95);
    Ok(Row {
        what: "functions by own time of hours without hosts (`rollup_h`)".into(),
        load: format!(
            "24 hours, {:.1} M rows: one hour 24 times; {} runs of SQL in the same engine, as no command asks \
             this table",
            rows as f64 / 1e6,
            setup.runs
        ),
        figure: format!("p95 {wall:.2} s"),
        aim: "0.5 s".into(),
        is_reached: (!setup.is_small).then_some(wall <= 0.5),
    })
}

async fn rollup_times(
    setup: &Setup,
    compact: &Path,
    hours: &Path,
) -> datafusion::error::Result<(Vec<f64>, usize)> {
    let config = SessionConfig::new().with_target_partitions(2);
    let context = SessionContext::new_with_config(config);
    let day = setup.work.join("day").to_string_lossy().into_owned();
    context
        .register_parquet(
            "hour",
            hours.join("rollup_h").to_string_lossy(),
            ParquetReadOptions::default(),
        )
        .await?;
    let moved = |hour: i64| {
        format!(
            "SELECT hour_ms + {} AS hour_ms, service, namespace, version, event, stack_id, amount, counted, hosts, \
             squares FROM hour",
            hour * 3_600_000
        )
    };
    let all: Vec<String> = (0..24).map(moved).collect();
    let sql = format!(
        "COPY ({}) TO '{day}' STORED AS PARQUET",
        all.join(" UNION ALL ")
    );
    context.sql(&sql).await?.collect().await?;
    context
        .register_parquet("rollup_h", &day, ParquetReadOptions::default())
        .await?;
    for table in ["stacks", "frames"] {
        let place = compact.join(table);
        context
            .register_parquet(
                table,
                place.to_string_lossy(),
                ParquetReadOptions::default(),
            )
            .await?;
    }
    let rows = context.table("rollup_h").await?.count().await?;
    let mut walls = Vec::new();
    for _ in 0..setup.runs {
        let begun = Instant::now();
        let answer = context.sql(ROLLUP).await?.collect().await?;
        assert!(
            answer.iter().any(|it| it.num_rows() > 0),
            "there is an answer"
        );
        walls.push(begun.elapsed().as_secs_f64());
    }
    Ok((walls, rows))
}
