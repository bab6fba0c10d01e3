//! Waits: how many and how long they are, filtered by what they were for, and stored in a file.

use profile::diff::Diff;
use profile::filter::{Clause, SampleTest, States};
use profile::formats::{self, Format, pft};
use profile::merge::merge;
use profile::{
    Cancel, Delays, DoingThen, Ending, EventId, Filter, Frame, FrameKind, FunctionRow, Held,
    HeldBy, Info, Limits, Metric, ModuleId, NameState, NewSample, ProcessId, Query, Report, STATES,
    StateStretch, StateThread, Store, View, WAITING_MODULE, WaitPart, Waits, waiting_name,
};
use std::sync::Arc;

const MS: u64 = 1_000_000;
const WAITING: ModuleId = ModuleId(9);
const CODE: ModuleId = ModuleId(1);

/// Names of functions; the index is the address.
const NAMES: [&str; 8] = [
    "main",
    "worker",
    "pthread_mutex_lock",
    "epoll_wait",
    "handle",
    "pthread_join",
    "__futex_abstimed_wait_common",
    // Functions of the kernel begin here.
    "futex_wait",
];

/// The first of [`NAMES`] that is in the kernel.
const FIRST_OF_KERNEL: u64 = 7;

fn empty() -> Store {
    let mut store = Store::new(Limits {
        keep: std::time::Duration::MAX,
        memory_bytes: 1 << 30,
    });
    store.add_module(CODE, "server", "/bin/server");
    store.add_module(WAITING, WAITING_MODULE, WAITING_MODULE);
    store.add_process(ProcessId(1), 7, "server");
    store.set_info(Info {
        metric: Metric::off_cpu(),
        ..Info::default()
    });
    store
}

/// Adds a sample of functions by their names, innermost first, under a frame that names the state
/// of the wait. `None` if the thread ran.
fn add(store: &mut Store, state: Option<&str>, names: &[&str], wait: WaitPart, weight_ns: u64) {
    let place = |name: &&str| NAMES.iter().position(|each| each == name).unwrap() as u64;
    let on_top = state.map(|state| Frame {
        module: WAITING,
        address: STATES.iter().position(|each| *each == state).unwrap() as u64,
        kind: FrameKind::Kernel,
    });
    let code = names.iter().map(|name| Frame {
        module: CODE,
        address: place(name) << 12,
        kind: match place(name) {
            FIRST_OF_KERNEL.. => FrameKind::Kernel,
            _ => FrameKind::User,
        },
    });
    let frames: Vec<Frame> = on_top.into_iter().chain(code).collect();
    let sample = NewSample {
        time_ns: 5_000 * MS,
        cpu: 0,
        process: ProcessId(1),
        tid: 7,
        comm: "server",
        frames: &frames,
        kernel_frames: 0,
        ending: Ending::Root,
        weight: weight_ns,
    };
    assert!(store.add_wait_of(EventId::FIRST, sample, wait));
    for id in store.frames_to_name(100) {
        let frame = store.frame(id).unwrap();
        let name = match frame.module {
            WAITING => waiting_name(STATES[frame.address as usize]),
            _ => NAMES[(frame.address >> 12) as usize].to_owned(),
        };
        store.set_name(id, NameState::Named(name.into()));
    }
}

/// The waits of a server: for a lock 30 ms and then 10 ms in the queue, two short waits for work
/// that stand for 80 waits, another of 300 ms; and 20 ms on a CPU.
fn server() -> View {
    let mut store = empty();
    let lock = ["pthread_mutex_lock", "handle", "worker", "main"];
    add(
        &mut store,
        Some("lock"),
        &lock,
        WaitPart::first(30 * MS, 10 * MS),
        30 * MS,
    );
    let queued = WaitPart::second(10 * MS, 30 * MS);
    add(&mut store, Some("queue"), &lock, queued, 10 * MS);
    let work = ["epoll_wait", "worker", "main"];
    for _ in 0..2 {
        add(
            &mut store,
            Some("net"),
            &work,
            WaitPart::whole(MS / 4),
            10 * MS,
        );
    }
    add(
        &mut store,
        Some("net"),
        &work,
        WaitPart::whole(300 * MS),
        300 * MS,
    );
    add(
        &mut store,
        None,
        &["handle", "worker", "main"],
        WaitPart::NONE,
        20 * MS,
    );
    store.view()
}

fn report(view: &View, filter: &str) -> Report {
    let query = Query {
        filter: filter.parse().unwrap(),
        ..Query::default()
    };
    view.select(&query, &Cancel::new()).unwrap().report()
}

fn row<'a>(report: &'a Report, name: &str) -> &'a FunctionRow {
    let mut rows = report.functions.iter();
    rows.find(|row| *row.name == *name)
        .unwrap_or_else(|| panic!("no {name}"))
}

fn waits(report: &Report, name: &str) -> Waits {
    row(report, name)
        .waits
        .unwrap_or_else(|| panic!("{name} does not wait"))
}

fn check_server(view: &View) {
    let all = report(view, "");
    let main = waits(&all, "main");
    // 1 for the lock, 40 for each of the short waits, 1 for the long one.
    assert_eq!((main.count, main.drawn), (82, 4));
    assert_eq!((main.ns, main.longest_ns), (360 * MS, 300 * MS));
    assert!(!main.is_exact());
    let lock = waits(&all, "pthread_mutex_lock");
    assert_eq!((lock.count, lock.mean_ns()), (1, Some(40 * MS)));
    assert_eq!(lock.longest_ns, 40 * MS);
    assert!(lock.is_exact());
    let queue = waits(&all, "[waiting: queue]");
    assert_eq!((queue.count, queue.mean_ns()), (1, Some(10 * MS)));
    // It also ran, which is not a wait.
    let handle = row(&all, "handle");
    assert_eq!(handle.total_samples, 60 * MS);
    assert_eq!(handle.waits.unwrap().ns, 40 * MS);
}

#[test]
fn functions_have_the_waits_of_their_stacks() {
    check_server(&server());
}

#[test]
fn states_are_kept_and_dropped() {
    let view = server();
    let sum = |filter: &str| report(&view, filter).samples / MS;
    assert_eq!(sum(""), 380);
    for (filter, kept) in [
        ("state:lock", 30),
        ("state:queue", 10),
        ("state:net", 320),
        ("state:run", 20),
        ("state:lock,queue", 40),
        ("state:disk", 0),
        ("state:idle", 320),
        ("state:run,idle", 340),
        // The frame that names the state may be hidden; the sample keeps its state.
        ("hide:mod:[waiting] state:lock", 30),
    ] {
        assert_eq!(sum(filter), kept, "{filter}");
        // The opposite filter keeps the rest.
        let Some(clause) = filter.strip_prefix("state:") else {
            continue;
        };
        assert_eq!(sum(&format!("!state:{clause}")), 380 - kept, "{filter}");
    }
    assert_eq!(sum("!state:idle epoll_wait"), 0);
    let locked = report(&view, "state:lock");
    assert_eq!(waits(&locked, "main").longest_ns, 30 * MS);
    let queued = report(&view, "state:queue");
    assert_eq!(waits(&queued, "main").count, 1);
    assert_eq!(row(&report(&view, "state:run"), "handle").waits, None);
}

#[test]
fn how_a_wait_is_made_is_folded_and_shown_if_it_is_asked_for() {
    let mut store = empty();
    let joins = [
        "futex_wait",
        "__futex_abstimed_wait_common",
        "pthread_join",
        "main",
    ];
    let wait = WaitPart::whole(50 * MS);
    add(&mut store, Some("lock"), &joins, wait, 50 * MS);
    let ran = ["__futex_abstimed_wait_common", "main"];
    add(&mut store, None, &ran, WaitPart::NONE, 20 * MS);
    let view = store.view();
    let total = |filter: &str, name: &str| {
        let report = report(&view, filter);
        let mut rows = report.functions.iter();
        rows.find(|row| *row.name == *name)
            .map_or(0, |row| row.total_samples / MS)
    };
    let futex = "__futex_abstimed_wait_common";
    // What ran there did work.
    assert_eq!((total("", futex), total("", "futex_wait")), (20, 0));
    assert_eq!((total("", "pthread_join"), total("", "main")), (50, 70));
    let shown = "show:internals";
    assert_eq!((total(shown, futex), total(shown, "futex_wait")), (70, 50));
    // A filter may be about it, and the end of a thread is a lock of its own kind.
    assert_eq!(total("futex_wait", "main"), 50);
    assert_eq!(total("state:join", "main"), 50);
    assert_eq!(total("state:lock", "main"), 50);
    assert_eq!(total("!state:join", "main"), 20);
    assert_eq!(total("!state:idle", "main"), 70);
}

/// The band of the first function.
fn band(view: &View) -> Option<f64> {
    let report = report(view, "");
    report.band_points(report.functions[0].self_samples, report.samples)
}

/// A minute of waits of about a second, so that no format can take nanoseconds for samples.
fn minute_in(function: &str) -> View {
    let mut store = empty();
    for ms in 900..960 {
        let wait = WaitPart::whole(ms * MS);
        add(&mut store, Some("lock"), &[function], wait, ms * MS);
    }
    store.view()
}

/// Other formats have one time for all waits with equal stacks: of how many is not in the file.
#[test]
fn no_band_is_claimed_of_waits_that_a_file_puts_together() {
    let select = |view: &View| view.select(&Query::default(), &Cancel::new()).unwrap();
    let (before, after) = (minute_in("worker"), minute_in("handle"));
    assert_eq!(band(&before), Some(0.0));
    for format in [
        Format::Folded,
        Format::Pprof,
        Format::Speedscope,
        Format::Firefox,
    ] {
        let through_file = |view: &View| {
            let mut file = Vec::new();
            format.write(&select(view), &mut file).unwrap();
            let opened = formats::read(&file[..], Limits::default()).unwrap();
            opened.store.view()
        };
        let (a, b) = (through_file(&before), through_file(&after));
        assert_eq!(band(&a), None, "{format:?}");
        assert_eq!(select(&a).reweighed(), None, "{format:?}");
        let diff = Diff::new(&select(&a), &select(&b));
        assert!(diff.sides().hide_samples(), "{format:?}");
        assert_eq!(diff.rows.iter().find(|row| row.sure), None, "{format:?}");
    }
}

#[test]
fn chance_has_no_part_in_waits_that_all_gave_their_stack() {
    let band = |view: &View| band(view).expect("waits are known one by one");
    let mut store = empty();
    let whole = |ms| WaitPart::whole(ms * MS);
    add(&mut store, Some("lock"), &["worker"], whole(300), 300 * MS);
    add(&mut store, Some("sleep"), &["main"], whole(200), 200 * MS);
    let open = WaitPart::open(3_000 * MS);
    add(&mut store, Some("net"), &["handle"], open, 250 * MS);
    assert_eq!(band(&store.view()), 0.0);
    // One of a hundred, which counts as all of them.
    add(&mut store, Some("sleep"), &["main"], whole(1), 100 * MS);
    let one_drawn = band(&store.view());
    assert!(one_drawn > 1.0, "{one_drawn}");
    // Of a recording that does not say how long waits were it is not known.
    add(
        &mut store,
        Some("lock"),
        &["worker"],
        WaitPart::NONE,
        500 * MS,
    );
    assert!(band(&store.view()) > one_drawn);
}

#[test]
fn threads_and_processes_name_the_programs_own_function() {
    let mut store = empty();
    store.add_module(ModuleId(2), "libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6");
    let frame = |module, address, kind| Frame {
        module,
        address,
        kind,
    };
    // `[waiting: lock] ← futex_wait (kernel) ← libc ← worker ← main`; the second one has no
    // function of its own.
    let in_libc = [
        frame(WAITING, 2, FrameKind::Kernel),
        frame(ModuleId(3), 0x10, FrameKind::Kernel),
        frame(ModuleId(2), 0x20, FrameKind::User),
    ];
    let own = [1, 0].map(|at: u64| frame(CODE, at << 12, FrameKind::User));
    store.add_module(ModuleId(3), "[kernel]", "[kernel]");
    let own = [&in_libc[..], &own].concat();
    for (tid, frames) in [(7, &own[..]), (8, &in_libc[..]), (9, &in_libc[..1])] {
        let sample = NewSample {
            time_ns: 5_000 * MS,
            cpu: 0,
            process: ProcessId(1),
            tid,
            comm: "server",
            frames,
            kernel_frames: 2,
            ending: Ending::Root,
            weight: MS * u64::from(10 - tid),
        };
        assert!(store.add_wait_of(EventId::FIRST, sample, WaitPart::whole(MS)));
    }
    for id in store.frames_to_name(100) {
        let frame = store.frame(id).unwrap();
        let name = match frame.module {
            WAITING => waiting_name("lock"),
            CODE => NAMES[(frame.address >> 12) as usize].into(),
            ModuleId(2) => "pthread_mutex_lock".into(),
            _ => "futex_wait".into(),
        };
        store.set_name(id, NameState::Named(name.into()));
    }
    let selected = store
        .view()
        .select(&Query::default(), &Cancel::new())
        .unwrap();
    let (processes, threads) = selected.processes_and_threads();
    let tops = threads
        .iter()
        .map(|row| (row.tid, row.top_function.as_deref().unwrap()));
    let tops: Vec<_> = tops.collect();
    let expected = [
        (7, "worker"),
        (8, "pthread_mutex_lock"),
        (9, "[waiting: lock]"),
    ];
    assert_eq!(tops, expected);
    assert_eq!(processes[0].top_function.as_deref(), Some("worker"));
}

#[test]
fn beside_the_top_function_is_what_that_one_waited_for() {
    let mut store = empty();
    // More is waited for in sleeps, each of them of less than the lock.
    let waits = [
        ("lock", &["handle", "worker", "main"][..], 5),
        ("queue", &["handle", "worker", "main"], 6),
        ("sleep", &["worker", "main"], 8),
        ("sleep", &["main"], 8),
    ];
    for (state, names, ms) in waits {
        add(
            &mut store,
            Some(state),
            names,
            WaitPart::whole(ms * MS),
            ms * MS,
        );
    }
    let selected = store.view().select(&Query::default(), &Cancel::new());
    let (processes, threads) = selected.unwrap().processes_and_threads();
    let expected = (Some("handle"), Some("[waiting: lock]"));
    let row = &threads[0];
    assert_eq!(
        (row.top_function.as_deref(), row.top_wait.as_deref()),
        expected
    );
    let row = &processes[0];
    assert_eq!(
        (row.top_function.as_deref(), row.top_wait.as_deref()),
        expected
    );
}

#[test]
fn a_state_is_known_before_its_frame_has_its_name() {
    let view = server();
    let mut filter = Filter::default();
    filter.push(Clause::Sample {
        test: SampleTest::State(States::parse("net").unwrap()),
        negated: false,
    });
    let unnamed = {
        let mut store = empty();
        let frame = Frame {
            module: WAITING,
            address: 4,
            kind: FrameKind::Kernel,
        };
        let sample = NewSample {
            time_ns: 5_000 * MS,
            cpu: 0,
            process: ProcessId(1),
            tid: 7,
            comm: "server",
            frames: &[frame],
            kernel_frames: 1,
            ending: Ending::Root,
            weight: MS,
        };
        assert!(store.add_wait_of(EventId::FIRST, sample, WaitPart::whole(MS)));
        store.view()
    };
    let query = Query {
        filter,
        ..Query::default()
    };
    let samples = |view: &View| view.select(&query, &Cancel::new()).unwrap().samples();
    assert_eq!(samples(&unnamed), MS);
    assert_eq!(samples(&view), 320 * MS);
}

#[test]
fn a_file_keeps_what_thousands_of_threads_did() {
    let mut store = with_states();
    for tid in 100..5_100 {
        let thread = Arc::new(StateThread {
            pid: 7,
            tid,
            comm: "pool".into(),
            since_ns: 0,
        });
        let mut ns = [0; STATES.len()];
        ns[5] = MS;
        let stretch = StateStretch::new(&thread, (0, MS), &ns, &Delays::default(), None);
        store.states_mut().add(stretch.expect("it can be"));
    }
    let mut bytes = Vec::new();
    pft::write(&store.view(), &mut bytes).unwrap();
    let (read, notes) = pft::read(&bytes[..], Limits::default()).unwrap();
    assert_eq!(notes, Vec::<String>::new());
    let threads = |store: &Store| store.view().states().between(0, MS).len();
    assert_eq!(threads(&read), threads(&store));
    assert!(threads(&read) > 5_000);
}

/// Two threads for 25 s: one waits for a lock that the other one has, which runs half of the time.
fn with_states() -> Store {
    let mut store = empty();
    let part = WaitPart::open(1_000 * MS);
    add(&mut store, Some("lock"), &["worker"], part, 1_000 * MS);
    let thread = |tid, comm: &str| {
        Arc::new(StateThread {
            pid: 7,
            tid,
            comm: comm.into(),
            since_ns: 0,
        })
    };
    let (stuck, busy) = (thread(8, "secret-stuck"), thread(9, "secret-busy"));
    for second in 0..25 {
        let span = (second * 1_000 * MS, (second + 1) * 1_000 * MS);
        let mut add = |thread, ns: [u64; STATES.len()], delays, then| {
            let stretch = StateStretch::new(thread, span, &ns, &delays, Some(then));
            store.states_mut().add(stretch.expect("it can be"));
        };
        let then = |state, since_ns, owner| DoingThen {
            state,
            since_ns,
            owner,
        };
        let mut ns = [0; STATES.len()];
        ns[2] = 1_000 * MS;
        add(&stuck, ns, Delays::default(), then(2, 0, Some(9)));
        (ns[0], ns[1], ns[2]) = (500 * MS, 100 * MS, 400 * MS);
        let mut delays = Delays::default();
        delays.0[3] = 5;
        add(&busy, ns, delays, then(0, span.1 - MS, None));
        let held = Held {
            waiter: 8,
            holder: 7,
            holder_thread: 9,
            by: HeldBy::Owner,
            state: 2,
            ns: 1_000 * MS,
            waits: 0,
        };
        store.states_mut().add_held(second, held);
        let by_timer = Held {
            holder: 0,
            holder_thread: 0,
            by: HeldBy::Timer,
            ns: 10 * MS,
            waits: 1,
            ..held
        };
        let by_interrupt = Held {
            by: HeldBy::Interrupt,
            ns: MS,
            ..by_timer
        };
        store.states_mut().add_held(second, by_timer);
        store.states_mut().add_held(second, by_interrupt);
    }
    store
}

/// What threads of [`with_states`] are known to have done from the 5th to the 15th second.
fn check_states(view: &View) {
    let did = view.states().between(5_000 * MS, 15_000 * MS);
    let [stuck, busy] = &did[..] else {
        panic!("{did:?}");
    };
    assert_eq!((stuck.thread.tid, stuck.ns[2]), (8, 10_000 * MS));
    let then = stuck.then.expect("it lives");
    assert_eq!((then.state, then.since_ns, then.owner), (2, 0, Some(9)));
    assert_eq!(busy.ns[..3], [5_000 * MS, 1_000 * MS, 4_000 * MS]);
    assert_eq!(busy.delays.0[3], 50);
    let last = view.states().between(24_000 * MS, 25_000 * MS);
    assert_eq!(last[1].then.expect("it lives").since_ns, 24_999 * MS);
    let held = view.states().held_between(5_000 * MS, 15_000 * MS);
    let told = held
        .iter()
        .map(|held| (held.waiter, held.holder_thread, held.by, held.ns / MS));
    let expected = [
        (8, 9, HeldBy::Owner, 10_000),
        (8, 0, HeldBy::Timer, 100),
        (8, 0, HeldBy::Interrupt, 10),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn a_recording_keeps_what_threads_did_and_for_whom_they_waited() {
    let view = with_states().view();
    check_states(&view);
    let mut file = Vec::new();
    pft::write(&view, &mut file).unwrap();
    let read = |file: &[u8]| {
        let (store, notes) = pft::read(file, Limits::default()).unwrap();
        assert_eq!(notes, [""; 0]);
        store.view()
    };
    check_states(&read(&file));
    // In pieces, as while it is recorded, and all of it again from what was read.
    let pieces = {
        let mut file = Vec::new();
        let mut writer = pft::Writer::new(&mut file).unwrap();
        writer.append(&view, None).unwrap();
        writer.append(&view, None).unwrap();
        writer.finish(&view).unwrap();
        file
    };
    check_states(&read(&pieces));
    let mut again = Vec::new();
    pft::write(&read(&pieces), &mut again).unwrap();
    check_states(&read(&again));
    // Names that are to be hidden are not in it.
    let mut hidden = Vec::new();
    pft::write(&view.anonymous(), &mut hidden).unwrap();
    let hidden = read(&hidden);
    check_states(&hidden);
    let did = hidden.states().between(0, 25_000 * MS);
    assert!({ did.iter() }.all(|did| !did.thread.comm.contains("secret")));
}

#[test]
fn a_recording_keeps_waits() {
    let mut file = Vec::new();
    pft::write(&server(), &mut file).unwrap();
    let limits = Limits {
        keep: std::time::Duration::MAX,
        memory_bytes: 1 << 30,
    };
    let (store, notes) = pft::read(&file[..], limits).unwrap();
    assert_eq!(notes, [""; 0]);
    check_server(&store.view());
    let again = report(&store.view(), "state:idle");
    assert_eq!(again.samples, 320 * MS);
    // Put together with another recording, each wait stays what it was.
    let both = merge(&[store.view(), server()], limits).unwrap().view();
    let main = waits(&report(&both, ""), "main");
    assert_eq!((main.count, main.drawn), (2 * 82, 2 * 4));
    assert_eq!(main.longest_ns, 300 * MS);
}
