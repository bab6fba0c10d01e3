//! What a trace counted as a recording, for its report and for `-o`.

use crate::cli::{TraceConfig, TraceOutput};
use crate::commands::{export, input};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::stderr;
use profile::probes::ProbeLog;
use profile::{Cancel, Info, Query, Store, View};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns a recording without samples, of the time from `begin_ns` to now.
pub fn view(log: Arc<ProbeLog>, begin_ns: u64, scope: &str) -> View {
    let now_ns = probe::now_ns();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = now.unwrap_or_default().as_millis() as i64;
    let mut store = Store::new(input::limits());
    store.begin(begin_ns);
    store.set_info(Info {
        host: engine::host(),
        scope: scope.into(),
        epoch_unix_ms: now_ms - (now_ns / 1_000_000) as i64,
        ..Info::default()
    });
    store.set_probes(log);
    store.end(now_ns);
    store.view()
}

/// Returns an error if the file that is to be written cannot be, before anything is traced.
pub fn check(trace: &TraceConfig) -> Result<(), Failure> {
    let Some(wanted) = &trace.output else {
        return Ok(());
    };
    if !wanted.format.has_probes() {
        return Err(Failure::usage(format!(
            "{} has no place for what probes count: -o takes .pft, .pb.gz, .trace.json and \
             .firefox.json",
            wanted.format.word()
        )));
    }
    if !wanted.overwrite && output::is_there(&wanted.path) {
        // Said as when it is written.
        Output::open(Some(&wanted.path), false)?;
    }
    Ok(())
}

/// Writes what was counted, in the format that is wanted.
pub fn write(view: &View, wanted: &TraceOutput) -> Result<(), Failure> {
    export::say_what_is_lost(wanted.format, view);
    let selection = view.select(&Query::default(), &Cancel::new());
    let selection = selection.expect("nobody cancels it");
    let mut bytes = Vec::new();
    let written = { wanted.format }.write_as(&wanted.path, false, &selection, &mut bytes);
    written.map_err(|error| Failure::failed(format!("cannot write: {error}")))?;
    Output::write_whole(Some(&wanted.path), wanted.overwrite, &bytes)?;
    let name = input::name(&wanted.path);
    stderr::say(format_args!("what was counted is in {name}"));
    Ok(())
}
