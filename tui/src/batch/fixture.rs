//! Snapshots for the tests of this folder.

use super::BatchReport;
use crate::fixture;
use engine::snapshot::{Run, Snapshot, Source, TargetState, ThreadStates, Waited};
use probe::WaitState;
use profile::{
    Completeness, Ending, FrameId, FrameKind, FunctionRow, Health, Host, NoName, OwnMemory, Pieces,
    ProcessId, ProcessRow, Report, RowName, ThreadRow, Window,
};
use std::sync::Arc;
use std::time::Duration;

/// A snapshot that a test can change before a report is made of it.
pub(super) struct Fixture {
    pub snapshot: Snapshot,
}

impl Fixture {
    /// Returns the report that the documentation shows.
    pub(super) fn postgres() -> Self {
        let mut functions = vec![
            function("hash_search_with_hash_value", "postgres", 465, 488),
            function("LWLockAcquire", "postgres", 321, 360),
            function("heap_hot_search_buffer", "postgres", 233, 1036),
            function("copy_user_generic", "[kernel]", 2200, 2201),
            function("libjitx.so+0x1c2", "libjitx.so", 58, 58),
        ];
        functions[3].kind = FrameKind::Kernel;
        functions[4].name_state = RowName::Unnamed(NoName::Stripped);
        let report = Report {
            generation: 1,
            window: Window {
                start_ns: 5_000_000_000,
                end_ns: 15_000_000_000,
                paused_ns: 0,
            },
            samples: 3277,
            rate_hz: 99,
            reweighed: None,
            hides_samples: false,
            samples_kept: 3277,
            kept_seconds: 10.0,
            completeness: Completeness {
                user_stacks: 3277,
                whole: 3241,
                endings: vec![(Ending::Root, 3241), (Ending::BrokenChain, 36)],
                frames: 100_000,
                named: 96_100,
                pending: 400,
                unnamed: vec![(NoName::Stripped, 3500)],
            },
            functions,
            owners: Pieces::default(),
            processes: vec![process()],
            threads: vec![thread()],
            cpus: Vec::new(),
            peaks: Default::default(),
        };
        Self {
            snapshot: Snapshot {
                generation: 1,
                report: Arc::new(report),
                health: Health {
                    own_cpu_percent: 0.8,
                    own_rss_bytes: 34 << 20,
                    own_memory: OwnMemory {
                        samples: 9 << 20,
                        ..OwnMemory::default()
                    },
                    table_bytes: 7 << 20,
                    stops: fixture::stops(),
                    languages: vec![fixture::python_stacks()],
                    ..Health::default()
                },
                run: Run {
                    scope: "postgres[4121]".into(),
                    target: TargetState::Running,
                    elapsed: Duration::from_secs(10),
                    busy_cpus: 3.31,
                    ..Run::default()
                },
                source: Source {
                    host: Arc::new(fixture::host()),
                    rate_hz: 99,
                    engine: Some(probe::EngineKind::Bpf),
                    ..Source::default()
                },
                waited: Some(Arc::new(waited())),
                ..Snapshot::default()
            },
        }
    }

    /// Returns the report of the snapshot. `top` is the number of functions that it lists; None
    /// lists all.
    pub(super) fn batch(&self, top: Option<usize>) -> BatchReport<'_> {
        BatchReport {
            snapshot: &self.snapshot,
            version: "0.1.0",
            time_unix_ms: 1_722_430_982_007,
            pids: &[4121],
            has_other_filters: false,
            top,
            width: None,
            tokens_max: 1500,
        }
    }

    /// Sets the notes about the health of the run.
    pub(super) fn notes(&mut self, notes: &[&str]) {
        self.snapshot.health.notes = notes.iter().map(|n| n.to_string()).collect();
    }

    /// Sets the functions of the report.
    pub(super) fn functions(&mut self, functions: Vec<FunctionRow>) {
        Arc::make_mut(&mut self.snapshot.report).functions = functions;
    }

    /// Sets the number of samples of the report.
    pub(super) fn samples(&mut self, samples: u64) {
        Arc::make_mut(&mut self.snapshot.report).samples = samples;
    }

    /// Replaces the report by an empty one.
    pub(super) fn clear(&mut self) {
        self.snapshot.report = Arc::default();
    }
}

/// Returns a function of a program, with its own and its total samples.
pub(super) fn function(name: &str, module: &str, own: u64, total: u64) -> FunctionRow {
    FunctionRow {
        id: FrameId(1),
        name: name.into(),
        module: module.into(),
        module_path: format!("/usr/bin/{module}").into(),
        kind: FrameKind::User,
        address: 0x1000,
        name_state: RowName::Named,
        file: None,
        line: 0,
        inlined: false,
        addresses: 0,
        self_samples: own,
        total_samples: total,
        waits: None,
        trend: Default::default(),
    }
}

/// Returns the waits of three threads and more: one thread waits for a lock, another, which has no
/// sample, for a disk, and two wait for each other.
fn waited() -> Waited {
    let thread = |tid, state: WaitState, owner| {
        let mut ns = [0; WaitState::ALL.len()];
        ns[WaitState::Run.number()] = 1_000_000_000;
        ns[state.number()] = 9_000_000_000;
        ThreadStates {
            pid: 4121,
            tid,
            comm: "postgres".into(),
            ns,
            delays: profile::Delays([3; profile::DELAY_SLOTS]),
            state,
            state_since_ns: 0,
            was_so_before: false,
            owner,
            has_ended: false,
            course: Default::default(),
        }
    };
    Waited {
        window: profile::Window {
            end_ns: 25_000_000_000,
            ..profile::Window::default()
        },
        threads: vec![
            thread(4121, WaitState::Lock, None),
            thread(4130, WaitState::Lock, Some(4131)),
            thread(4131, WaitState::Lock, Some(4130)),
            thread(4199, WaitState::Disk, None),
        ],
        holders: vec![
            profile::Held {
                waiter: 4121,
                holder: 4121,
                holder_thread: 4199,
                by: profile::HeldBy::Waker,
                state: WaitState::Lock.number(),
                ns: 9_000_000_000,
                waits: 3,
            },
            profile::Held {
                waiter: 4121,
                holder: 0,
                holder_thread: 0,
                by: profile::HeldBy::Timer,
                state: WaitState::Net.number(),
                ns: 2_000_000_000,
                waits: 2,
            },
        ],
        ends_in: [(4199, "LWLockRelease".into())].into(),
    }
}

fn process() -> ProcessRow {
    ProcessRow {
        id: ProcessId(1),
        pid: 4121,
        comm: "postgres".into(),
        samples: 3277,
        kernel_samples: 2200,
        threads: 1,
        top_function: Some("copy_user_generic".into()),
        top_wait: None,
        exited: false,
        details: Default::default(),
        trend: Default::default(),
        activity: None,
    }
}

fn thread() -> ThreadRow {
    ThreadRow {
        process: ProcessId(1),
        pid: 4121,
        tid: 4121,
        comm: "postgres".into(),
        samples: 3277,
        kernel_samples: 2200,
        top_function: None,
        top_wait: None,
        trend: Default::default(),
        activity: None,
    }
}

/// Returns a report in which every string has characters that a writer has to escape or
/// remove.
pub(super) fn hostile() -> Fixture {
    let names = [
        "a\"b\"",
        "a,b",
        "a\nb",
        "a\r\nb",
        "\x1b]0;owned\x07",
        "\u{9b}31m",
        "\0",
        "\u{202e}evil",
        " x ",
        "\"",
        "",
        "\u{fffd}\u{10ffff}",
        "=1+1",
        "\\",
        "\u{2028}",
    ];
    let mut fixture = Fixture::postgres();
    fixture.functions(names.map(|name| function(name, name, 1, 1)).to_vec());
    fixture.notes(&["a\nb\x1b[2J"]);
    let snapshot = &mut fixture.snapshot;
    snapshot.run.busy_cpus = f64::NAN;
    snapshot.run.scope = "\x1b[2J\n".into();
    snapshot.source.host = Arc::new(Host {
        name: "\x1b[2J\n".into(),
        ..Host::default()
    });
    snapshot.run.target = TargetState::Exited {
        words: "x\ny".into(),
        at_ns: 0,
    };
    fixture
}
