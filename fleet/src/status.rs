//! Prints the state of all sinks, as stored by the shipper, whether it runs or not.

use crate::config::Config;
use crate::failure::{Failure, safe};
use crate::output::print;
use crate::ship::waiting;
use crate::spool;
use crate::state::{Counts, SinkState, now};
use crate::words::counted;
use serde::Serialize;

/// One sink, for `--json`. Fields may be added.
#[derive(Debug, Serialize)]
struct SinkStatus {
    name: String,
    r#type: &'static str,
    /// Number of windows in the spool that are still to be sent; `None` if the spool cannot be
    /// read.
    waiting: Option<u64>,
    #[serde(flatten)]
    counts: Counts,
    /// Time of the last success, in seconds since 1970.
    taken_at: Option<u64>,
    /// Why nothing is sent now, and since when.
    error: Option<String>,
    error_since: Option<u64>,
}

/// Prints the state of each sink.
pub fn run(config: &Config, as_json: bool) -> Result<(), Failure> {
    let entries = spool::list(&config.spool);
    let mut sinks = Vec::new();
    for sink in &config.sinks {
        let memory = SinkState::read(&config.state, &sink.name)?.memory;
        sinks.push(SinkStatus {
            name: sink.name.clone(),
            r#type: sink.kind.word(),
            waiting: entries.as_ref().ok().map(|it| waiting(it, &memory)),
            counts: memory.counts,
            taken_at: memory.taken_at,
            error: memory.error,
            error_since: memory.error_since,
        });
    }
    if as_json {
        let mut schedule = serde_json::json!(config.schedule);
        schedule["weight"] = config.schedule.weight().0.into();
        let document = serde_json::json!({ "version": 1, "schedule": schedule, "sinks": sinks });
        return print(&format!("{document}\n"));
    }
    let mut text = format!("{}\n", config.schedule.sentence());
    if let Err(error) = entries {
        text += &format!("the spool cannot be looked into: {error}\n");
    }
    sinks.iter().for_each(|sink| text += &words(sink));
    print(&text)
}

fn words(sink: &SinkStatus) -> String {
    let counts = &sink.counts;
    let ago = |at: u64| format!("{}s ago", now().saturating_sub(at));
    let mut text = format!(
        "{} ({}): {} done, {} taken, {} in {}; {} waiting\n",
        sink.name,
        sink.r#type,
        counted(counts.windows, "window"),
        counted(counts.samples, "sample"),
        counted(counts.bytes, "byte"),
        counted(
            counts.requests,
            if sink.r#type == "parquet" {
                "file"
            } else {
                "request"
            }
        ),
        sink.waiting.map_or("?".into(), |it| it.to_string()),
    );
    text += &format!(
        "  left out {}, lost {}, expired {}, refused {}, unreadable {}, tried again {}; taken last {}\n",
        counts.left_out,
        counts.lost,
        counts.expired,
        counts.refused,
        counts.unreadable,
        counts.retries,
        sink.taken_at.map_or("never".into(), ago),
    );
    if let Some(error) = &sink.error {
        let since = sink.error_since.map_or(String::new(), ago);
        text += &format!("  nothing is sent since {since}: {}\n", safe(error));
    }
    text
}
