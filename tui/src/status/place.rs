//! Line 1 of the header: the machine, and how it is sampled.

use super::is_unmeasured;
use crate::app::App;
use crate::words::fit::Segment;
use crate::words::{text, units};
use engine::snapshot::{Snapshot, TargetState};
use probe::EngineKind;

/// Returns the segments of line 1, and how many of them belong to the left edge.
pub fn segments(app: &App) -> (Vec<Segment>, usize) {
    let snapshot = &app.shown;
    let host = &snapshot.source.host;
    let name = text::clean(&host.name);
    // The first two numbers of a release such as `6.18.44-cloud` identify the kernel well enough.
    let release = host.kernel.split('.').take(2).collect::<Vec<_>>().join(".");
    let mut segments = vec![Segment::new(
        8,
        [
            format!("proftop {name}").trim_end().to_owned(),
            format!("proftop {}", text::cut_middle(&name, 12)),
            "proftop".into(),
        ],
    )];
    // A recording of another tool may not name the machine.
    if host.cpus > 0 {
        segments.push(Segment::new(
            1,
            [
                format!("Linux {release} {}", host.arch),
                format!("Linux {release}"),
                String::new(),
            ],
        ));
        segments.push(Segment::new(
            2,
            match host.sampled_cpus.len() {
                0 => [format!("{} CPU", host.cpus), String::new()],
                some => [format!("{some} of {} CPU", host.cpus), String::new()],
            },
        ));
        // How busy this machine is now does not matter for a recording.
        if snapshot.source.recording.is_none() {
            segments.push(busy(snapshot));
        }
    }
    let left = segments.len();
    let clock = units::clock(snapshot.run.elapsed);
    let word = live_word(app);
    // The longest form first. A recording has two more forms, with the name of its file, and with
    // that name cut.
    let mut live = vec![format!("{word} {clock}"), word.into()];
    if let Some(recording) = &snapshot.source.recording {
        let file = text::clean(&recording.name);
        let clock = if snapshot.run.elapsed.is_zero() {
            String::new()
        } else {
            format!(" {clock}")
        };
        live.insert(0, format!("{word} {}{clock}", text::cut_middle(&file, 20)));
        live.insert(0, format!("{word} {file}{clock}"));
    }
    segments.push(Segment::new(9, live));
    if let Some(repeat) = app.repeat() {
        let every = format!("writes every {} s", repeat.every.as_secs());
        let count = repeat.count;
        segments.push(Segment::new(
            8,
            [format!("{every} ({count})"), "writes".into()],
        ));
    }
    if snapshot.source.rate_hz > 0 {
        // BPF is the default engine and not mentioned. Health says why another engine is used.
        let engine = match snapshot.source.engine {
            None | Some(EngineKind::Bpf) => String::new(),
            Some(other) => format!("{} ", other.label()),
        };
        let rate_hz = snapshot.source.rate_hz;
        let wanted_hz = snapshot
            .source
            .budget
            .map_or(rate_hz, |budget| budget.rate_hz);
        let rate = if wanted_hz > rate_hz {
            // The rate was lowered to keep to the budget.
            format!("{engine}{rate_hz} of {wanted_hz} Hz")
        } else {
            format!("{engine}{rate_hz} Hz")
        };
        segments.push(Segment::new(4, [rate, String::new()]));
    }
    (segments, left)
}

/// Returns how many of the sampled CPUs are busy, such as `busy 5.3/16`.
fn busy(snapshot: &Snapshot) -> Segment {
    let cpus = snapshot.source.host.cpus_sampled();
    let busy = if is_unmeasured(snapshot, snapshot.run.busy_cpus) {
        "-".to_owned()
    } else {
        format!("{:.1}", snapshot.run.busy_cpus)
    };
    Segment::new(
        5,
        [
            format!("busy {busy}/{cpus}"),
            format!("{busy}/{cpus} CPU"),
            String::new(),
        ],
    )
}

/// Returns a word that says whether new samples are shown. A frozen screen shows none, whatever the
/// target does, so it comes first.
fn live_word(app: &App) -> &'static str {
    match app.shown.run.target {
        _ if app.feed.freezing.frozen.is_some() => "FROZEN",
        TargetState::Starting => "STARTING",
        TargetState::Recorded => "FILE",
        TargetState::Running if !app.shown.source.machines.is_empty() => "LIVE",
        TargetState::Running if app.shown.source.recording.is_some() => "READING",
        TargetState::Running => "LIVE",
        TargetState::Exited { .. } => "EXITED",
        TargetState::Failed(_) => "FAILED",
    }
}
