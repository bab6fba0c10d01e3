//! Made-up snapshots: one as of a database server, and a feed of them in which shares change,
//! functions appear and disappear, and names arrive late.

use engine::snapshot::{
    Asked, Comparison, Loading, Names, NamesFrom, Run, Sampler, Snapshot, Source, TargetState,
};
use profile::Host;
use profile::{
    Completeness, CpuRow, Ending, FrameId, FrameKind, FunctionRow, Health, LanguageStacks, NoName,
    Pieces, ProcessDetails, ProcessId, ProcessRow, Report, RowName, TREND_LEN, ThreadRow, Window,
};
use std::sync::Arc;
use std::time::Duration;
use symbolize::Origin;
use test_support::Random;

/// A snapshot with many different stacks.
mod bush;
/// Source text and instructions.
mod code;
/// The fields of JSON documents.
mod fields;
/// Probes of functions.
mod probes;
/// A profile with stacks.
mod tree;
/// Snapshots with waits.
mod waiting;

pub use bush::bush;
pub use code::MadeUp;
pub use fields::json_fields;
pub use probes::probed;
pub use tree::{
    tree_of_build, tree_of_even_samples, tree_of_rates, tree_of_source, tree_of_stripped_libc,
    tree_step,
};
pub use waiting::{waiting, waits_later, waits_not_yet};

const FUNCTIONS: &[(&str, &str, u64, u64)] = &[
    ("hash_search_with_hash_value", "postgres", 465, 489),
    ("LWLockAcquire", "postgres", 321, 360),
    ("heap_hot_search_buffer", "postgres", 233, 1_036),
    ("__memmove_avx_unaligned_erms", "libc.so.6", 196, 196),
    ("copy_user_generic", "[kernel]", 180, 193),
    ("_bt_compare", "postgres", 160, 734),
    ("PinBuffer", "postgres", 144, 144),
    ("ExecScan", "postgres", 105, 2_906),
    ("libjitx.so+0x7f3a101c2", "libjitx.so", 95, 95),
    ("entry_SYSCALL_64_after_hwframe", "[kernel]", 69, 72),
    ("AllocSetAlloc", "postgres", 62, 62),
    ("IndexNext", "postgres", 52, 2_097),
    ("libpq.so.5+0x1c40", "libpq.so.5", 39, 39),
    (
        "alloc::collections::btree::map::BTreeMap<K,V,A>::insert_recursing",
        "extension.so",
        37,
        61,
    ),
    (
        "std::collections::hash::map::HashMap<alloc::string::String, u64>::get_or_insert_with",
        "extension.so",
        33,
        40,
    ),
];

/// Returns the snapshot that the design shows: 3,277 samples of a database server.
pub fn postgres() -> Snapshot {
    let mut functions: Vec<FunctionRow> = FUNCTIONS
        .iter()
        .enumerate()
        .map(|(at, (name, module, own, total))| function(at as u32, name, module, *own, *total))
        .collect();
    let mut left = 3_277 - functions.iter().map(|row| row.self_samples).sum::<u64>();
    for at in functions.len() as u32..417 {
        let own = left.min(u64::from(31_u32.saturating_sub(at / 8).max(1)));
        left -= own;
        let name = format!("small_function_{at}");
        functions.push(function(at, &name, "postgres", own, own + 1));
    }
    functions[8].name_state = RowName::Unnamed(NoName::Stripped);
    functions[12].name_state = RowName::Pending;
    Snapshot {
        metrics: Arc::default(),
        waited: None,
        view: None,
        asked: Asked::default(),
        comparison: Comparison::default(),
        offered: 3_277,
        generation: 1,
        report: Arc::new(Report {
            generation: 1,
            window: Window {
                start_ns: 182_000_000_000,
                end_ns: 192_000_000_000,
                paused_ns: 0,
            },
            samples: 3_277,
            rate_hz: 99,
            reweighed: None,
            hides_samples: false,
            samples_kept: 98_211,
            kept_seconds: 192.0,
            completeness: completeness(),
            owners: (0..FIRST + functions.len() as u32).map(FrameId).collect(),
            functions,
            processes: processes(),
            threads: threads(),
            cpus: cpus(),
            peaks: Default::default(),
        }),
        health: Health {
            taken_run: 98_211,
            own_cpu_percent: 0.8,
            own_rss_bytes: 84 << 20,
            table_bytes: 7 << 20,
            stops: stops(),
            notes: vec!["no hardware counters in this VM: cpu-clock is used, +-1 tick".into()],
            ..Health::default()
        },
        run: Run {
            scope: "postgres[4121]".into(),
            target: TargetState::Running,
            elapsed: Duration::from_secs(192),
            busy_cpus: 5.3,
            ..Run::default()
        },
        source: Source {
            host: Arc::new(host()),
            rate_hz: 99,
            engine: Some(probe::EngineKind::Bpf),
            sampler: Some(Arc::new(Sampler {
                unwinding: "tables",
                buffers: "one ring of 8 MB".into(),
                rate_is_fixed: None,
                rate_max_hz: Some(5_000),
            })),
            recording: None,
            machines: Arc::default(),
            budget: None,
            waits_refused: None,
        },
        names: Names {
            from: names_from(),
            loading: Vec::new(),
            fetching: None,
        },
        probes: Arc::default(),
    }
}

/// Returns a snapshot a tenth of a second after the start: few samples, some without names.
pub fn first_samples() -> Snapshot {
    let mut snapshot = postgres();
    let report = Arc::make_mut(&mut snapshot.report);
    report.functions.truncate(4);
    for (row, own) in report.functions.iter_mut().zip([21, 13, 12, 6]) {
        (row.self_samples, row.total_samples) = (own, own);
        row.trend = [0; TREND_LEN];
        row.trend[TREND_LEN - 1] = own;
    }
    report.functions[0].name_state = RowName::Pending;
    report.samples = 52;
    report.completeness.pending = 9_000;
    snapshot.run.elapsed = Duration::from_millis(100);
    snapshot.run.scope = "system".into();
    snapshot.names.loading = vec![
        Loading {
            module: "postgres".into(),
            percent: Some(51),
            what: "DWARF 212 MB",
            is_remote: false,
        },
        Loading {
            module: "libjitx.so".into(),
            percent: None,
            what: "reading symbols",
            is_remote: false,
        },
    ];
    snapshot
}

/// Returns snapshot number `step` of a feed, which depends on the step alone.
pub fn step(step: u64) -> Snapshot {
    let mut snapshot = postgres();
    let mut random = Random::new(step.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let report = Arc::make_mut(&mut snapshot.report);
    let gone = random.below(report.functions.len() as u64) as usize;
    report.functions.remove(gone);
    for row in &mut report.functions {
        let before = row.self_samples;
        row.self_samples = before * (50 + random.below(100)) / 100;
        row.total_samples += row.self_samples;
        row.trend.rotate_left(1);
        row.trend[TREND_LEN - 1] = row.self_samples / 10;
    }
    if step > 3 {
        named(&mut report.functions, &mut report.owners);
    }
    report
        .functions
        .sort_by_key(|row| std::cmp::Reverse(row.self_samples));
    report.samples = report.functions.iter().map(|row| row.self_samples).sum();
    for row in &mut report.processes {
        row.samples = row.samples * (50 + random.below(100)) / 100;
    }
    if random.below(8) == 0 {
        snapshot.health.lost = random.below(2_000);
    }
    snapshot.generation = step;
    snapshot.health.taken_run += step * 1_640;
    snapshot.run.elapsed += Duration::from_millis(500 * step);
    snapshot
}

/// Returns the sources of names for some modules.
fn names_from() -> Arc<NamesFrom> {
    let mut all = NamesFrom::default();
    all.note("postgres", Origin::DebugFile, true);
    all.note("libc.so.6", Origin::Exports, false);
    all.note("[kernel]", Origin::Kernel, false);
    Arc::new(all)
}

/// The id of the first function. Lower ones are those of stack ends and sums.
pub const FIRST: u32 = 100;

/// Gives a row without a name the name of another function, into which it is merged.
fn named(functions: &mut Vec<FunctionRow>, owners: &mut Pieces<FrameId>) {
    let (late, owner) = (FrameId(FIRST + 12), FrameId(FIRST + 13));
    if let Some(at) = functions.iter().position(|row| row.id == late)
        && functions.iter().any(|row| row.id == owner)
    {
        functions.remove(at);
        let changed = |id: &FrameId| if *id == late { owner } else { *id };
        *owners = owners.iter().map(changed).collect();
    }
}

fn function(at: u32, name: &str, module: &str, own: u64, total: u64) -> FunctionRow {
    let kernel = module.starts_with('[');
    let mut trend = [0; TREND_LEN];
    for (second, count) in trend.iter_mut().enumerate() {
        let wave = (u64::from(at) * 3 + second as u64 * 5) % 7;
        *count = own * (7 + wave) / 100;
    }
    FunctionRow {
        id: FrameId(FIRST + at),
        name: name.into(),
        module: module.into(),
        module_path: if kernel {
            module.into()
        } else {
            format!("/usr/lib/postgresql/16/{module}").into()
        },
        kind: if kernel {
            FrameKind::Kernel
        } else {
            FrameKind::User
        },
        address: 0x8f2c0 + u64::from(at) * 0x140,
        name_state: RowName::Named,
        file: None,
        line: 0,
        inlined: false,
        addresses: 0,
        self_samples: own,
        total_samples: total,
        waits: None,
        trend,
    }
}

fn completeness() -> Completeness {
    Completeness {
        user_stacks: 3_182,
        whole: 3_147,
        endings: vec![
            (Ending::Root, 3_147),
            (Ending::NoUserStack, 95),
            (Ending::NoFramePointer, 24),
            (Ending::BrokenChain, 11),
        ],
        frames: 41_024,
        named: 39_424,
        pending: 0,
        unnamed: vec![(NoName::Stripped, 1_190), (NoName::KernelHidden, 410)],
    }
}

/// Returns the details of a process.
fn details(pid: u32) -> ProcessDetails {
    let (user, command, group) = match pid {
        4_121 => (
            "postgres",
            "/usr/lib/postgresql/16/bin/postgres -D /srv/pg -c work_mem=64MB",
            "/system.slice/pg.service",
        ),
        2_210 => (
            "app",
            "java -Xmx4g -jar ob.jar --port 8080",
            "/system.slice/ob.service",
        ),
        7_731 => (
            "app",
            "nginx: worker process",
            "/system.slice/nginx.service",
        ),
        9_012 => (
            "root",
            "proftop",
            "/user.slice/user-0.slice/session-3.scope",
        ),
        _ => {
            return ProcessDetails {
                user: Some("root".into()),
                ..ProcessDetails::default()
            };
        }
    };
    ProcessDetails {
        user: Some(user.into()),
        command_line: Some(command.into()),
        cgroup: Some(group.into()),
        started_unix_ms: Some(1_700_000_000_000 + i64::from(pid) * 1_000),
        parent: Some(1),
        ..ProcessDetails::default()
    }
}

fn processes() -> Vec<ProcessRow> {
    let rows = [
        (
            4_121,
            "postgres",
            3_277,
            393,
            12,
            "hash_search_with_hash_value",
        ),
        (2_210, "java", 1_010, 40, 41, "OrderBook.add"),
        (988, "kworker/u33:2", 436, 310, 3, "btrfs_csum_one_bio"),
        (7_731, "nginx", 208, 19, 8, "ngx_http_parse_header_line"),
        (9_012, "proftop", 10, 5, 6, "bpf_map_lookup_batch"),
    ];
    let process = |(at, (pid, comm, samples, kernel_samples, threads, top)): (
        usize,
        (_, &str, _, _, _, &str),
    )| ProcessRow {
        id: ProcessId(at as u32),
        pid,
        comm: comm.into(),
        samples,
        kernel_samples,
        threads,
        top_function: Some(top.into()),
        top_wait: None,
        exited: pid == 7_731,
        details: details(pid),
        trend: [(samples / 10); TREND_LEN],
        activity: None,
    };
    rows.into_iter().enumerate().map(process).collect()
}

/// Returns sixteen CPUs: two are busy, and one is idle.
fn cpus() -> Vec<CpuRow> {
    let samples = |cpu| match cpu {
        3 => 960,
        7 => 870,
        11 => 0,
        cpu => 90 + u64::from(cpu),
    };
    let rows = (0..16).map(|cpu| CpuRow {
        cpu,
        samples: samples(cpu),
        kernel_samples: samples(cpu) / 8,
    });
    rows.filter(|row| row.samples > 0).collect()
}

fn threads() -> Vec<ThreadRow> {
    let rows = [
        (2_231, "matcher-0", 604, 12, "OrderBook.add"),
        (2_232, "matcher-1", 218, 7, "OrderBook.match"),
        (
            2_214,
            "G1 Conc#0",
            119,
            11,
            "G1ConcurrentMark::mark_in_bitmap",
        ),
        (2_210, "java", 30, 18, "epoll_wait"),
    ];
    let thread =
        |(tid, comm, samples, kernel_samples, top): (u32, &str, u64, u64, &str)| ThreadRow {
            process: ProcessId(1),
            pid: 2_210,
            tid,
            comm: comm.into(),
            samples,
            kernel_samples,
            top_function: Some(top.into()),
            top_wait: None,
            trend: [(samples / 10); TREND_LEN],
            activity: None,
        };
    rows.into_iter().map(thread).collect()
}

/// Returns the machine of all fixtures.
pub fn host() -> Host {
    Host {
        name: "db-01".into(),
        kernel: "6.18.44".into(),
        arch: "x86-64".into(),
        cpus: 16,
        sampled_cpus: Vec::new(),
    }
}

/// Returns the completeness of the stacks of Python programs.
pub fn python_stacks() -> LanguageStacks {
    LanguageStacks {
        language: "Python",
        whole: 9_310,
        lacking: vec![
            ("were taken before the thread was known", 52),
            ("have frames that do not fit the native ones", 7),
        ],
        lock_known: 9_310,
        lock_held: 8_122,
    }
}

/// Returns stacks that ended early, all in one module.
pub fn stops() -> Vec<profile::Stop> {
    vec![profile::Stop {
        cause: profile::Ending::ReadFault,
        module: "libjitx.so".into(),
        samples: 17,
    }]
}
