//! Any sequence of operations, against a model that counts the slow way.

use profile::{
    Ending, Frame, FrameId, FrameKind, Limits, ModuleId, NameState, NewSample, NoName, ProcessId,
    Report, SourceFrame, Store, TREND_LEN,
};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

const STAMP_NS: u64 = 10_000_000;

#[derive(Debug, Clone)]
enum Op {
    /// Adds a sample; the clock moves on, or a little back, in steps of 10 ms.
    Sample {
        step: i64,
        process: u32,
        tid: u32,
        frames: Vec<Frame>,
        ending: Ending,
    },
    AddProcess(u32),
    Exit(u32),
    AddModule(u32),
    /// Requests this number of names, and answers.
    Name(usize),
    /// Gives a name to any frame, requested or not.
    NameAny(u32, Option<u8>),
    /// Gives a frame a source with this number of inlined functions.
    Source(u32, u8),
    Report {
        window_ms: u64,
    },
}

fn frame() -> impl Strategy<Value = Frame> {
    (0..3u32, 0..12u64, 0..3usize).prop_map(|(module, address, kind)| Frame {
        module: ModuleId(module),
        address,
        kind: [FrameKind::User, FrameKind::Kernel, FrameKind::Jit][kind],
    })
}

fn op() -> impl Strategy<Value = Op> {
    let frames = prop::collection::vec(frame(), 0..8);
    let sample = (-30..200i64, 0..4u32, 0..6u32, frames, 0..Ending::ALL.len()).prop_map(
        |(step, process, tid, frames, ending)| Op::Sample {
            step,
            process,
            tid,
            frames,
            ending: Ending::ALL[ending],
        },
    );
    prop_oneof![
        12 => sample,
        1 => (0..4u32).prop_map(Op::AddProcess),
        1 => (0..4u32).prop_map(Op::Exit),
        1 => (0..3u32).prop_map(Op::AddModule),
        2 => (0..6usize).prop_map(Op::Name),
        1 => (0..40u32, any::<Option<u8>>()).prop_map(|(id, n)| Op::NameAny(id, n)),
        2 => (0..40u32, 0..4u8).prop_map(|(id, inlined)| Op::Source(id, inlined)),
        2 => (0..20_000u64).prop_map(|window_ms| Op::Report { window_ms }),
    ]
}

/// Returns the name of a frame in this test: there are few, so that frames join; some have none.
fn answer(frame: Frame) -> NameState {
    match frame.address % 4 {
        0 => NameState::Unnamed(NoName::Stripped),
        n => NameState::Named(format!("f{n}").into()),
    }
}

struct Run {
    store: Store,
    /// Time of the next sample, in steps of 10 ms.
    clock: i64,
    taken: Vec<Taken>,
    names: HashMap<FrameId, NameState>,
}

struct Taken {
    stamp: u64,
    process: u32,
    tid: u32,
    frames: Vec<Frame>,
    ending: Ending,
}

impl Run {
    fn new(limits: Limits) -> Self {
        Self {
            store: Store::new(limits),
            clock: 10_000,
            taken: Vec::new(),
            names: HashMap::new(),
        }
    }

    fn now_ns(&self) -> u64 {
        self.clock as u64 * STAMP_NS
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Sample {
                step,
                process,
                tid,
                frames,
                ending,
            } => {
                self.clock += step;
                let kept = self.store.add_sample(NewSample {
                    time_ns: self.now_ns(),
                    cpu: 1,
                    process: ProcessId(process),
                    tid,
                    comm: "comm",
                    frames: &frames,
                    kernel_frames: 0,
                    ending,
                    weight: 1,
                });
                if kept {
                    self.taken.push(Taken {
                        stamp: self.clock as u64,
                        process,
                        tid,
                        frames,
                        ending,
                    });
                }
            }
            Op::AddProcess(id) => self.store.add_process(ProcessId(id), id + 100, "proc"),
            Op::Exit(id) => self.store.process_exited(ProcessId(id)),
            Op::AddModule(id) => self.store.add_module(ModuleId(id), "mod", "/lib/mod"),
            Op::Name(limit) => {
                for id in self.store.frames_to_name(limit) {
                    let name = answer(self.store.frame(id).expect("asked for"));
                    self.store.set_name(id, name);
                }
            }
            Op::NameAny(id, n) => {
                let state = match n {
                    None => NameState::Pending,
                    Some(n) if n < 128 => NameState::Unnamed(NoName::FileGone),
                    Some(n) => NameState::Named(format!("g{}", n % 4).into()),
                };
                self.store.set_name(FrameId(id), state);
            }
            Op::Source(id, inlined) => {
                let names = ["f1", "inl1", "inl2", "", "f2"];
                let chain: Vec<SourceFrame<'_>> = names[..usize::from(inlined) + 1]
                    .iter()
                    .map(|function| SourceFrame {
                        function,
                        file: "a.c",
                        line: id,
                    })
                    .collect();
                self.store.set_source(FrameId(id), &chain);
            }
            Op::Report { window_ms } => {
                let now_ns = self.now_ns();
                let report = self.report(Duration::from_millis(window_ms), now_ns);
                check_sums(&report);
            }
        }
    }

    fn report(&mut self, window: Duration, now_ns: u64) -> Report {
        self.store.report(window, now_ns)
    }

    /// Checks that a name never changes, and that a reason for having no name changes only to a
    /// name.
    fn check_names(&mut self) {
        for id in (0..40).map(FrameId) {
            let state = self.store.name(id);
            if state == NameState::Pending {
                continue;
            }
            let before = self.names.entry(id).or_insert_with(|| state.clone());
            if matches!(
                (&*before, &state),
                (NameState::Unnamed(_), NameState::Named(_))
            ) {
                *before = state.clone();
            }
            assert_eq!(*before, state);
        }
    }
}

/// Checks the sums in a report.
fn check_sums(report: &Report) {
    let self_sum: u64 = report.functions.iter().map(|f| f.self_samples).sum();
    assert_eq!(self_sum, report.samples, "self adds up to everything");
    for row in &report.functions {
        assert!(row.total_samples >= row.self_samples);
        assert!(row.total_samples <= report.samples);
        assert!(row.total_samples > 0);
        assert!(!row.name.is_empty());
    }
    let sums = [
        report.processes.iter().map(|p| p.samples).sum::<u64>(),
        report.threads.iter().map(|t| t.samples).sum::<u64>(),
        report.completeness.endings.iter().map(|e| e.1).sum::<u64>(),
    ];
    assert_eq!(sums, [report.samples; 3]);
    let threads: u32 = report.processes.iter().map(|p| p.threads).sum();
    assert_eq!(threads as usize, report.threads.len());

    let lacks = &report.completeness;
    let unnamed: u64 = lacks.unnamed.iter().map(|u| u.1).sum();
    assert_eq!(lacks.named + lacks.pending + unnamed, lacks.frames);
    assert!(lacks.whole <= lacks.user_stacks && lacks.user_stacks <= report.samples);

    let ids: HashSet<FrameId> = report.functions.iter().map(|f| f.id).collect();
    assert_eq!(ids.len(), report.functions.len(), "one row per function");
    assert!(
        report
            .functions
            .is_sorted_by_key(|f| std::cmp::Reverse(f.self_samples))
    );
    for trend in [
        trend_sum(report.functions.iter().map(|f| f.trend)),
        trend_sum(report.threads.iter().map(|t| t.trend)),
    ] {
        if report.window.seconds() >= TREND_LEN as f64 {
            assert!(trend <= report.samples);
        }
    }
}

fn trend_sum(trends: impl Iterator<Item = [u64; TREND_LEN]>) -> u64 {
    trends.flatten().sum()
}

/// Counts a window in a slow way, and compares the report with it.
fn check_against_model(run: &mut Run, window: Duration) {
    let now_ns = run.now_ns();
    let report = run.report(window, now_ns);
    let first = now_ns
        .checked_sub(window.as_nanos() as u64)
        .map_or(0, |start| start / STAMP_NS + 1);
    let inside: Vec<&Taken> = run
        .taken
        .iter()
        .filter(|s| (first..=now_ns / STAMP_NS).contains(&s.stamp))
        .collect();
    assert_eq!(report.samples, inside.len() as u64);

    for row in &report.functions {
        // The frames of the row's function, by the owner of each.
        let members: HashSet<Frame> = (1..report.owners.len() as u32)
            .map(FrameId)
            .filter(|id| report.owners[id.0 as usize] == row.id)
            .filter_map(|id| run.store.frame(id))
            .collect();
        let is_on = |f: &Frame| members.contains(f);
        let total = inside.iter().filter(|s| s.frames.iter().any(is_on));
        let own = inside
            .iter()
            .filter(|s| s.frames.first().is_some_and(is_on));
        if &*row.name == "[no stack]" {
            let none = inside.iter().filter(|s| s.frames.is_empty()).count();
            assert_eq!(row.self_samples, none as u64);
        } else {
            assert_eq!(row.total_samples, total.count() as u64);
            assert_eq!(row.self_samples, own.count() as u64);
        }
    }
    for row in &report.threads {
        let own = |s: &&&Taken| ProcessId(s.process) == row.process && s.tid == row.tid;
        assert_eq!(row.samples, inside.iter().filter(own).count() as u64);
    }
    for (ending, samples) in &report.completeness.endings {
        let own = |s: &&&Taken| s.ending == *ending;
        assert_eq!(*samples, inside.iter().filter(own).count() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn reports_agree_with_the_model(
        ops in prop::collection::vec(op(), 0..120),
        window_ms in 0..30_000u64,
    ) {
        let mut run = Run::new(Limits::default());
        // The model does not know inlined functions.
        for op in ops.into_iter().filter(|op| !matches!(op, Op::Source(..))) {
            run.step(op);
            run.check_names();
        }
        check_against_model(&mut run, Duration::from_millis(window_ms));
        check_against_model(&mut run, Duration::from_secs(500));
    }

    /// Limits that are so low that everything is always being dropped.
    #[test]
    fn nothing_panics_when_memory_is_short(
        ops in prop::collection::vec(op(), 0..300),
        keep in 0..5u64,
        memory_bytes in prop::sample::select(vec![0, 10_000, 40_000, 100_000]),
    ) {
        let mut run = Run::new(Limits { keep: Duration::from_secs(keep), memory_bytes });
        for op in ops {
            run.step(op);
        }
        let now_ns = run.now_ns();
        check_sums(&run.report(Duration::from_secs(100), now_ns));
    }

    #[test]
    fn windows_partition(
        ops in prop::collection::vec(op(), 0..80),
        cut_ms in 0..20_000u64,
    ) {
        let mut run = Run::new(Limits::default());
        ops.into_iter().for_each(|op| run.step(op));
        let end = run.now_ns();
        let (whole, cut) = (Duration::from_secs(20), Duration::from_millis(cut_ms));
        let all = run.report(whole, end);
        let late = run.report(cut, end);
        let early = run.report(whole - cut, end - cut.as_nanos() as u64);
        prop_assert_eq!(all.samples, early.samples + late.samples);
        for row in &all.functions {
            let of = |report: &Report| {
                let found = report.functions.iter().find(|f| f.id == row.id);
                found.map_or((0, 0), |f| (f.self_samples, f.total_samples))
            };
            let (early, late) = (of(&early), of(&late));
            let counts = (early.0 + late.0, early.1 + late.1);
            prop_assert_eq!((row.self_samples, row.total_samples), counts);
        }
    }

    #[test]
    fn naming_changes_no_sum_and_loses_no_selection(
        ops in prop::collection::vec(op(), 1..80),
    ) {
        let mut run = Run::new(Limits::default());
        ops.into_iter().for_each(|op| run.step(op));
        let (window, now) = (Duration::from_secs(500), run.now_ns());
        let before = run.report(window, now);
        run.step(Op::Name(usize::MAX));
        let after = run.report(window, now);
        check_sums(&after);
        prop_assert_eq!(before.samples, after.samples);
        prop_assert_eq!(before.completeness.frames, after.completeness.frames);
        prop_assert_eq!(after.completeness.pending, 0);
        prop_assert_eq!(after.generation, before.generation + 1);
        for row in &before.functions {
            let found = after.find_function(row.id).map(|at| &after.functions[at]);
            let found = found.expect("a function that was selected is still there");
            prop_assert!(found.self_samples >= row.self_samples);
            prop_assert!(found.total_samples >= row.total_samples);
        }
    }
}

#[test]
fn times_at_both_ends_of_the_clock_are_taken() {
    let mut run = Run::new(Limits::default());
    for time_ns in [0, 1, u64::MAX, 0, u64::MAX - 1] {
        run.store.add_sample(NewSample {
            time_ns,
            cpu: u16::MAX,
            process: ProcessId(u32::MAX),
            tid: u32::MAX,
            comm: "",
            frames: &[],
            kernel_frames: 5,
            ending: Ending::NoUserStack,
            weight: 1,
        });
    }
    for window in [Duration::ZERO, Duration::MAX] {
        check_sums(&run.report(window, u64::MAX));
        check_sums(&run.report(window, 0));
    }
    assert_eq!(run.store.stats().refused_late, 1);
    let report = run.report(Duration::from_secs(1), u64::MAX);
    assert_eq!((report.samples, report.processes[0].kernel_samples), (2, 2));
    assert_eq!(&*report.functions[0].name, "[no stack]");
}
