//! How long questions take, about an hour of many hosts and about hours without hosts.

use crate::table::Row;
use crate::volume::{FLEET_HOSTS, folders};
use crate::{Sentence, Setup, cpu};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use proftop_fleet::simulate::{Simulation, VERSIONS};
use std::path::Path;
use std::time::Instant;

/// Functions by their own time, of hours without hosts.
const ROLLUP: &str = "
SELECT n.function, sum(r.amount) AS self_time
FROM (SELECT stack_id, sum(amount) AS amount FROM rollup_h GROUP BY stack_id) r
JOIN (SELECT stack_id, max(frames[1]) AS frame_id FROM stacks GROUP BY stack_id) s USING (stack_id)
JOIN (
  SELECT frame_id, max(function) AS function
  FROM frames JOIN (SELECT frame_id, max(inline_depth) AS inline_depth FROM frames GROUP BY frame_id) d
    USING (frame_id, inline_depth)
  GROUP BY frame_id
) n USING (frame_id)
GROUP BY n.function ORDER BY self_time DESC LIMIT 20";

/// A question, and what it should take.
struct Asked<'a> {
    what: &'a str,
    words: Vec<&'a str>,
    aim_s: f64,
    /// How often it is asked, of the number for all questions.
    runs: usize,
    /// Whether the time grows with the number of hosts.
    grows: bool,
}

pub fn measure(setup: &Setup) -> Result<Vec<Row>, Sentence> {
    let (dir, compact) = folders(setup, 2);
    if !compact.exists() {
        return Err("questions are about what `volume` has written".into());
    }
    let simulation = Simulation::new(&setup.recorded, setup.fleet());
    let (service, _) = simulation.planted();
    let (raw, compacted) = (dir.to_string_lossy(), compact.to_string_lossy());
    let (a, b) = (VERSIONS[0], VERSIONS[1]);
    let (a, b) = (format!("version={a}"), format!("version={b}"));
    let hosts = setup.hosts * 2;
    let mut rows = vec![rollup(setup, &compact)?];
    for asked in [
        Asked {
            what: "functions of one service (`top --service`)",
            words: vec!["top", &compacted, "--service", service],
            aim_s: 2.0,
            runs: setup.runs,
            grows: true,
        },
        Asked {
            what: "comparison of its versions (`diff`)",
            words: vec![
                "diff",
                &compacted,
                "--service",
                service,
                "--a",
                &a,
                "--b",
                &b,
            ],
            aim_s: 1.0,
            runs: setup.runs,
            grows: true,
        },
        Asked {
            what: "functions of all services (`top`), one file an hour",
            words: vec!["top", &compacted],
            aim_s: 60.0,
            runs: setup.runs.min(20),
            grows: true,
        },
        Asked {
            what: "the same, the files of each host",
            words: vec!["top", &raw],
            aim_s: 60.0,
            runs: setup.runs.min(20),
            grows: true,
        },
    ] {
        rows.push(ask(setup, &asked, hosts)?);
    }
    Ok(rows)
}

fn ask(setup: &Setup, asked: &Asked, hosts: u32) -> Result<Row, Sentence> {
    let (mut walls, mut cpus) = (Vec::new(), Vec::new());
    for _ in 0..asked.runs {
        let (said, taken) = cpu::children(|| setup.ask(&asked.words));
        said?;
        walls.push(taken.wall.as_secs_f64());
        cpus.push(taken.cpu.as_secs_f64());
    }
    let (wall, cpu) = (cpu::percentile(walls, 95), cpu::percentile(cpus, 95));
    let times = FLEET_HOSTS / f64::from(hosts);
    let all = if asked.grows {
        format!(
            "; {:.1} s of CPU for 10,000 hosts if it grows as they do",
            cpu * times
        )
    } else {
        String::new()
    };
    Ok(Row {
        what: asked.what.into(),
        load: format!("an hour of {hosts} hosts, {} runs", asked.runs),
        figure: format!("p95 {wall:.2} s ({cpu:.2} s of CPU){all}"),
        aim: format!("{} s", asked.aim_s),
        is_reached: (!setup.is_small).then_some(wall <= asked.aim_s),
    })
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
