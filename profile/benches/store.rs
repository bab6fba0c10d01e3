//! How fast samples are added and how long a report takes, at the size that the store is designed
//! for: a million samples, a hundred thousand stacks of 10 to 49 frames, eight thousand functions.
//!
//! Prints figures and asserts none: run it alone on a quiet machine with
//! `cargo bench -p profile --bench store`.

use profile::diff::Diff;
use profile::formats::pft;
use profile::query::{Direction, GroupBy, HeatRows};
use profile::{
    Cancel, Ending, Frame, FrameKind, Limits, ModuleId, NameState, NewSample, ProcessId, Query,
    Store, TimeRange,
};
use std::time::{Duration, Instant};
use test_support::Random;

const SAMPLES: u64 = 1_000_000;
const STACKS: usize = 100_000;
const FUNCTIONS: u64 = 8_000;
/// Number of addresses in each function at which samples are taken.
const CALL_SITES: u64 = 4;
const MODULES: u64 = 40;
const THREADS: u64 = 64;
const SECONDS: u64 = 100;
const SECOND_NS: u64 = 1_000_000_000;

fn main() {
    let mut random = Random::new(0x2545_f491_4f6c_dd1d);
    let stacks: Vec<Vec<Frame>> = (0..STACKS).map(|_| stack(&mut random)).collect();
    // Each stack occurs at least once, in an order that the cache cannot predict.
    let order: Vec<usize> = (0..SAMPLES as usize)
        .map(|i| {
            if i < STACKS {
                i
            } else {
                random.below(STACKS as u64) as usize
            }
        })
        .collect();

    let mut store = Store::new(Limits {
        memory_bytes: 1 << 30,
        ..Limits::default()
    });
    let took = feed(&mut store, &stacks, &order, 0);
    let rate = SAMPLES as f64 / took.as_secs_f64() / 1e6;
    println!("ingest, all new stacks first    {rate:8.2} M samples/s");
    let before = store.memory_bytes();

    queries_named(&mut store);
    let again = feed(&mut store, &stacks, &order, SAMPLES);
    let rate = SAMPLES as f64 / again.as_secs_f64() / 1e6;
    println!("ingest, stacks seen before      {rate:8.2} M samples/s");
    let added = store.memory_bytes() - before;
    let each = added as f64 / SAMPLES as f64;
    println!("memory per sample, columns      {each:8.2} B");
    let all = store.memory_bytes() as f64 / (2 * SAMPLES) as f64;
    println!("memory per sample, all included {all:8.2} B");

    for seconds in [1, SECONDS / 10, SECONDS, 2 * SECONDS] {
        let now_ns = 2 * SECONDS * SECOND_NS;
        let window = Duration::from_secs(seconds);
        let mut rows = (0, 0);
        let took = (0..5).map(|_| {
            time(|| {
                let report = store.report(window, now_ns);
                rows = (report.samples, report.functions.len());
            })
        });
        let best = ms(took.min().unwrap_or_default());
        println!(
            "report, {:8} samples, {:5} functions {best}",
            rows.0, rows.1
        );
    }
}

fn queries_named(store: &mut Store) {
    for id in store.frames_to_name(usize::MAX) {
        let frame = store.frame(id).expect("asked for");
        let name = format!("function_{:05}", frame.address / 64);
        store.set_name(id, NameState::Named(name.into()));
    }
    queries(store);
    files(store);
}

/// Measures each kind of query on all samples.
fn queries(store: &Store) {
    let cancel = Cancel::new();
    let all = Query::default();
    let filtered = Query {
        filter: "fn~_0[0-3] !function_00007 hide:mod:lib7"
            .parse()
            .expect("a filter"),
        ..Query::default()
    };
    let mut view = None;
    print("view", || view = Some(store.view()));
    let view = view.expect("taken");
    let select = |query: &Query| view.select(query, &cancel).expect("not cancelled");
    print("select everything", || drop(select(&all)));
    print("select by a filter", || drop(select(&filtered)));
    let selection = select(&all);
    print("functions", || drop(selection.functions()));
    print("processes and threads", || {
        drop(selection.processes_and_threads())
    });
    let mut tree = None;
    for (what, direction) in [
        ("tree, top down", Direction::TopDown),
        ("tree, bottom up", Direction::BottomUp),
    ] {
        print(what, || {
            tree = selection.tree(direction, GroupBy::None, &cancel).ok()
        });
    }
    print("tree, by process", || {
        tree = selection
            .tree(Direction::TopDown, GroupBy::Process, &cancel)
            .ok();
    });
    let tree = selection
        .tree(Direction::TopDown, GroupBy::None, &cancel)
        .expect("a tree");
    let root = tree.root();
    print("open the root", || drop(tree.children(&root)));
    print("flame, 160 cells", || drop(tree.flame(&root, 160, 1, 45)));
    print("flame, 1200 cells", || {
        drop(tree.flame(&root, 1200, 1, 200))
    });
    print("heaviest stack", || drop(tree.heaviest_stack(&root)));
    let function = selection.functions()[0].id;
    print("page of a function", || {
        drop(selection.page(function, &cancel))
    });
    let half = Query {
        window: TimeRange::between(0, SECONDS * SECOND_NS / 2),
        ..Query::default()
    };
    let before = select(&half);
    print("diff of two halves", || {
        drop(Diff::new(&before, &selection))
    });
    print("code of a function", || {
        drop(selection.code(function, &cancel))
    });
    print("heat map", || {
        drop(selection.heat(&HeatRows::parts(16), Some(function)))
    });
}

/// Measures writing a file of all samples, and reading it again.
fn files(store: &Store) {
    let view = store.view();
    let mut file = Vec::new();
    print("write .pft", || {
        file.clear();
        pft::write(&view, &mut file).expect("no errors in memory");
    });
    let each = file.len() as f64 / view.samples() as f64;
    println!("bytes per sample in .pft        {each:8.2}");
    let limits = Limits {
        keep: Duration::MAX,
        memory_bytes: 1 << 30,
    };
    print("open .pft", || drop(pft::read(&file[..], limits)));
}

/// Prints the median time of five runs of `work`.
fn print(what: &str, mut work: impl FnMut()) {
    let mut took: Vec<Duration> = (0..5).map(|_| time(&mut work)).collect();
    took.sort();
    println!("{what:31} {}", ms(took[2]));
}

/// Adds the samples, and returns the time spent in the store. The frames come from a small buffer,
/// as they do from a decoder: copying them there, from tens of megabytes, is not measured.
fn feed(store: &mut Store, stacks: &[Vec<Frame>], order: &[usize], first: u64) -> Duration {
    const BATCH: usize = 64;
    let mut buffer: Vec<Vec<Frame>> = vec![Vec::new(); BATCH];
    let mut spent = Duration::ZERO;
    let mut next = first;
    for batch in order.chunks(BATCH) {
        for (frames, at) in buffer.iter_mut().zip(batch) {
            frames.clear();
            frames.extend_from_slice(&stacks[*at]);
        }
        spent += time(|| {
            for frames in &buffer[..batch.len()] {
                store.add_sample(sample(next, frames));
                next += 1;
            }
        });
    }
    spent
}

fn sample(i: u64, frames: &[Frame]) -> NewSample<'_> {
    let thread = i % THREADS;
    NewSample {
        time_ns: i * SECONDS * SECOND_NS / SAMPLES,
        cpu: (i % 16) as u16,
        process: ProcessId(thread as u32 / 4),
        tid: thread as u32,
        comm: "worker",
        frames,
        kernel_frames: 0,
        ending: Ending::Root,
        weight: 1,
    }
}

fn stack(random: &mut Random) -> Vec<Frame> {
    let depth = 10 + random.below(40);
    (0..depth).map(|_| frame(random)).collect()
}

fn frame(random: &mut Random) -> Frame {
    let function = random.below(FUNCTIONS);
    Frame {
        module: ModuleId((function % MODULES) as u32),
        address: function * 64 + random.below(CALL_SITES) * 8,
        kind: FrameKind::User,
    }
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn ms(time: Duration) -> String {
    format!("{:8.2} ms", time.as_secs_f64() * 1e3)
}
