//! Queries over random histories, compared with each other and with a slow count.

use profile::diff::Diff;
use profile::filter::{Action, Clause};
use profile::query::{
    CallTree, CodeAddress, CodePlace, Direction, FunctionCode, GroupBy, HeatBy, HeatMap, HeatRow,
    HeatRows, NeighbourKind, Node, NodeKind,
};
use profile::{
    Cancel, Ending, Family, Filter, Frame, FrameKind, Limits, ModuleId, NameState, NewSample,
    NoName, ProcessDetails, ProcessId, Query, Role, Scope, Selection, SourceFrame, Store,
    TimeRange, View,
};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone)]
struct Given {
    stamp: u64,
    cpu: u16,
    process: u32,
    tid: u32,
    frames: Vec<u64>,
    ending: Ending,
    weight: u64,
}

fn given() -> impl Strategy<Value = Given> {
    let who = (0..1000u64, 0..4u16, 0..3u32, 0..5u32);
    let frames = prop::collection::vec(0..14u64, 0..7);
    (who, frames, 0..Ending::ALL.len(), 1..4u64).prop_map(
        |((stamp, cpu, process, tid), frames, ending, weight)| Given {
            stamp,
            cpu,
            process,
            tid,
            frames,
            ending: Ending::ALL[ending],
            weight,
        },
    )
}

/// Addresses of a function of an interpreter, and of one that it runs.
const INTERPRETER: u64 = 12;
const RUN: u64 = 13;

fn frame(address: u64) -> Frame {
    let of = |module, kind| Frame {
        module: ModuleId(module),
        address,
        kind,
    };
    match address {
        INTERPRETER => return of(3, FrameKind::User),
        RUN => return of(4, FrameKind::Python),
        _ => {}
    }
    Frame {
        module: ModuleId((address % 3) as u32),
        address,
        kind: match address % 3 {
            0 => FrameKind::Kernel,
            _ => FrameKind::User,
        },
    }
}

/// A store in which addresses 4 and 5 have an inlined function, and 9 has no name; of the others,
/// two adjacent ones have the same name.
fn store(samples: &[Given]) -> Store {
    let mut store = Store::new(Limits::default());
    for (id, name) in [
        (0, "[kernel]"),
        (1, "libc.so.6"),
        (2, "postgres"),
        (3, "libpython3.12.so.1.0"),
        (4, "app.py"),
    ] {
        store.add_module(ModuleId(id), name, &format!("/usr/lib/{name}"));
    }
    for id in 0..3 {
        store.add_process(ProcessId(id), id + 100, &format!("proc{id}"));
    }
    for sample in samples {
        let frames: Vec<Frame> = sample.frames.iter().map(|a| frame(*a)).collect();
        assert!(store.add_sample(NewSample {
            time_ns: sample.stamp * 10_000_000,
            cpu: sample.cpu,
            process: ProcessId(sample.process),
            tid: sample.tid,
            comm: &format!("comm{}", sample.tid),
            frames: &frames,
            kernel_frames: 0,
            ending: sample.ending,
            weight: sample.weight,
        }));
    }
    for id in store.frames_to_name(usize::MAX) {
        let address = store.frame(id).expect("asked for").address;
        let name = match address {
            9 => NameState::Unnamed(NoName::Stripped),
            RUN => NameState::Named("run".into()),
            _ => NameState::Named(format!("f{}", address / 2).into()),
        };
        store.set_name(id, name);
        if matches!(address, 4 | 5) {
            let link = |function, line| SourceFrame {
                function,
                file: "a.c",
                line,
            };
            store.set_source(id, &[link("inl", 7), link("f2", 9)]);
        }
    }
    store
}

fn select(view: &View, query: &Query) -> Selection {
    view.select(query, &Cancel::new()).expect("not cancelled")
}

fn filter(text: &str) -> Query {
    Query {
        filter: text.parse().expect("a filter"),
        ..Query::default()
    }
}

fn tree(selection: &Selection, direction: Direction, group_by: GroupBy) -> CallTree {
    selection
        .tree(direction, group_by, &Cancel::new())
        .expect("not cancelled")
}

/// Checks that children and own samples add up at every node; returns the number of nodes.
fn check_sums(tree: &CallTree, node: &Node) -> usize {
    let children = tree.children(node);
    let sum: u64 = children.iter().map(|child| child.samples).sum();
    assert_eq!(sum + node.own, node.samples, "{node:?}");
    assert_eq!(tree.has_children(node), !children.is_empty());
    assert!(children.is_sorted_by_key(|child| std::cmp::Reverse(child.samples)));
    1 + children
        .iter()
        .map(|child| check_sums(tree, child))
        .sum::<usize>()
}

/// Checks that each row has the samples of its CPU or thread in the lists, and the last row the
/// rest.
fn check_rows(selection: &Selection, rows: &HeatRows, heat: &HeatMap) {
    let sum = |row| {
        (0..heat.columns())
            .map(|at| heat.cell(at, row))
            .sum::<u64>()
    };
    let threads = selection.report().threads;
    let cpus = selection.cpus();
    let mut told = 0;
    for row in 0..rows.len() {
        let expected: u64 = match rows.row(row) {
            None | Some(HeatRow::Part(_)) => continue,
            Some(HeatRow::Cpus { first, last }) => {
                let of = cpus.iter().filter(|cpu| (first..=last).contains(&cpu.cpu));
                of.map(|cpu| cpu.samples).sum()
            }
            Some(HeatRow::Thread { tid, .. }) => {
                assert!(row == 0 || sum(row) <= sum(row - 1));
                told += 1;
                let same = threads
                    .iter()
                    .any(|t| t.tid == tid && t.samples == sum(row));
                assert!(same, "{tid}");
                continue;
            }
            Some(HeatRow::Others(others)) => {
                assert_eq!((row + 1, told + others), (rows.len(), threads.len()));
                threads[told..].iter().map(|thread| thread.samples).sum()
            }
        };
        assert_eq!(sum(row), expected);
    }
}

/// Generates filters that a user could type here.
fn clauses() -> impl Strategy<Value = Vec<&'static str>> {
    let known = vec![
        "f1",
        "!f1",
        "inl",
        "fn~^f[23]$",
        "mod:libc.so.6",
        "!mod:postgres",
        "hide:f2",
        "hide:kind:inlined",
        "only:kind:kernel",
        "fold:libc.so.6",
        "fold:recursion",
        "comm:comm1",
        "!comm:comm2",
        "cpu:0-1",
        "!cpu:3",
        "pid:100,102",
        "tid:1-3",
        "kind:user",
        "file:a.c",
        "lang:python",
        "hide:lang:python",
        "show:internals",
    ];
    prop::collection::vec(prop::sample::select(known), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_shape_adds_up(samples in prop::collection::vec(given(), 0..60), clauses in clauses()) {
        let store = store(&samples);
        let selection = select(&store.view(), &filter(&clauses.join(" ")));
        let report = selection.report();
        let all = selection.samples();
        prop_assert_eq!(report.functions.iter().map(|f| f.self_samples).sum::<u64>(), all);
        prop_assert_eq!(report.threads.iter().map(|t| t.samples).sum::<u64>(), all);
        prop_assert_eq!(report.processes.iter().map(|p| p.samples).sum::<u64>(), all);
        prop_assert_eq!(selection.cpus().iter().map(|c| c.samples).sum::<u64>(), all);
        prop_assert_eq!(selection.cgroups().iter().map(|c| c.samples).sum::<u64>(), all);
        for by in [HeatBy::Parts, HeatBy::Cpus, HeatBy::Threads] {
            for at_most in [1, 2, 16] {
                let rows = selection.heat_rows(by, at_most);
                prop_assert!(rows.len() <= at_most);
                let heat = selection.heat(&rows, None);
                prop_assert_eq!(heat.cells.iter().sum::<u64>(), all);
                check_rows(&selection, &rows, &heat);
            }
        }
        prop_assert_eq!(report.completeness.endings.iter().map(|e| e.1).sum::<u64>(), all);
        let nameless = selection.nameless(&Cancel::new()).unwrap();
        for (reason, frames) in &report.completeness.unnamed {
            let with_it = nameless.iter().filter(|row| row.reason == *reason);
            prop_assert_eq!(with_it.map(|row| row.frames).sum::<u64>(), *frames);
        }
        let reasons: Vec<_> = report.completeness.unnamed.iter().map(|(why, _)| *why).collect();
        prop_assert!(nameless.iter().all(|row| reasons.contains(&row.reason) && row.frames > 0));

        let totals: HashMap<_, _> = report.functions.iter().map(|f| (f.id, f)).collect();
        for direction in [Direction::TopDown, Direction::BottomUp] {
            for group_by in [GroupBy::None, GroupBy::Comm, GroupBy::Process, GroupBy::Thread] {
                let tree = tree(&selection, direction, group_by);
                prop_assert_eq!(tree.root().samples, all);
                check_sums(&tree, &tree.root());
                prop_assert_eq!(tree.stacks().map(|(_, n)| n).sum::<u64>(), all);
            }
        }
        // The first level of the tree from the bottom is the list of functions.
        let tree = tree(&selection, Direction::BottomUp, GroupBy::None);
        let mut own: HashMap<_, u64> = HashMap::new();
        for child in tree.children(&tree.root()) {
            let NodeKind::Function { id, .. } = child.kind else { panic!("{child:?}") };
            *own.entry(id).or_default() += child.samples;
        }
        for (id, samples) in own {
            prop_assert_eq!(totals[&id].self_samples, samples);
        }
        for row in &report.functions {
            let page = selection.page(row.id, &Cancel::new()).unwrap().expect("has samples");
            let sum = |rows: &[profile::query::Neighbour]| rows.iter().map(|r| r.samples).sum::<u64>();
            prop_assert_eq!(sum(&page.callers), row.total_samples);
            prop_assert_eq!(sum(&page.callees), row.total_samples);
            let own = page.callees.iter().find(|c| c.kind == NeighbourKind::Own);
            // Self samples are those in which the innermost occurrence is on top.
            prop_assert_eq!(own.map_or(0, |c| c.samples), row.self_samples);
            prop_assert_eq!(selection.heat(&HeatRows::parts(4), Some(row.id)).cells.iter().sum::<u64>(), row.total_samples);
            prop_assert!(page.heaviest_samples > 0 && page.heaviest.contains(&row.id));
            check_code(&selection, row);
        }
    }

    #[test]
    fn one_more_clause_never_adds_a_sample(
        samples in prop::collection::vec(given(), 0..60),
        clauses in clauses(),
    ) {
        let view = store(&samples).view();
        let all = select(&view, &Query::default()).samples();
        let mut before = u64::MAX;
        for n in 0..=clauses.len() {
            let selection = select(&view, &filter(&clauses[..n].join(" ")));
            // This holds whether the filter is about stacks, threads, or CPUs.
            prop_assert_eq!(selection.offered(), all);
            prop_assert!(selection.samples() <= before);
            prop_assert!(selection.samples() <= selection.offered());
            before = selection.samples();
        }
    }

    #[test]
    fn nothing_changes_from_a_to_a(
        samples in prop::collection::vec(given(), 0..60),
        others in prop::collection::vec(given(), 0..60),
    ) {
        let a = select(&store(&samples).view(), &Query::default());
        let same = Diff::new(&a, &select(&store(&samples).view(), &Query::default()));
        for row in &same.rows {
            prop_assert_eq!((row.a_self, row.a_total), (row.b_self, row.b_total));
            prop_assert!(!row.sure && !row.is_new() && !row.is_gone());
        }
        // Both sides add up, and exchanging them exchanges the columns of the rows.
        let b = select(&store(&others).view(), &Query::default());
        let (there, back) = (Diff::new(&a, &b), Diff::new(&b, &a));
        let sum = |diff: &Diff| {
            let rows = diff.rows.iter();
            rows.fold((0, 0), |(a, b), row| (a + row.a_self, b + row.b_self))
        };
        prop_assert_eq!(sum(&there), (a.samples(), b.samples()));
        prop_assert_eq!(sum(&back), (b.samples(), a.samples()));
        let sure = |diff: &Diff| diff.rows.iter().filter(|row| row.sure).count();
        prop_assert_eq!(sure(&there), sure(&back));
    }

    #[test]
    fn focus_and_exclude_are_a_partition(
        samples in prop::collection::vec(given(), 0..60),
        test in prop::sample::select(vec!["f1", "inl", "mod:libc.so.6", "kind:kernel", "comm:comm1", "cpu:1"]),
    ) {
        let view = store(&samples).view();
        let all = select(&view, &Query::default()).samples();
        let with = select(&view, &filter(test)).samples();
        let without = select(&view, &filter(&format!("!{test}"))).samples();
        prop_assert_eq!(with + without, all);
    }

    #[test]
    fn windows_partition_time(samples in prop::collection::vec(given(), 1..60), cut in 0..10_000u64) {
        let view = store(&samples).view();
        let window = |window| select(&view, &Query { window, ..Query::default() });
        let (cut, end) = (cut * 1_000_000, u64::MAX);
        let all = window(TimeRange::ALL);
        let early = window(TimeRange::last(Duration::MAX, cut));
        let late = window(TimeRange::between(cut, end));
        prop_assert_eq!(all.samples(), early.samples() + late.samples());
    }

    #[test]
    fn a_view_never_changes(samples in prop::collection::vec(given(), 2..60), at in 1..59usize) {
        let at = at.min(samples.len() - 1);
        let mut first = store(&samples[..at]);
        let view = first.view();
        let text = |view: &View| format!("{:?}", select(view, &Query::default()).report());
        let before = text(&view);
        for sample in &samples[at..] {
            let frames: Vec<Frame> = sample.frames.iter().map(|a| frame(a + 40)).collect();
            first.add_sample(NewSample {
                time_ns: sample.stamp * 10_000_000,
                cpu: 0,
                process: ProcessId(sample.process),
                tid: 77,
                comm: "later",
                frames: &frames,
                kernel_frames: 0,
                ending: sample.ending,
                weight: 1,
            });
            first.process_exited(ProcessId(sample.process));
        }
        for id in first.frames_to_name(usize::MAX) {
            first.set_name(id, NameState::Named("later".into()));
        }
        prop_assert_eq!(before, text(&view));
        let rest: u64 = samples[..at].iter().map(|s| s.weight).sum();
        let now = select(&first.view(), &Query::default()).samples();
        prop_assert_eq!(now, rest + (samples.len() - at) as u64);
    }

    #[test]
    fn flame_boxes_lie_inside_their_parents(
        samples in prop::collection::vec(given(), 1..60),
        width in 1..200u32,
    ) {
        let selection = select(&store(&samples).view(), &Query::default());
        let tree = tree(&selection, Direction::TopDown, GroupBy::Comm);
        let flame = tree.flame(&tree.root(), width, 1, 100);
        prop_assert_eq!((flame.rows[0][0].start, flame.rows[0][0].width), (0, width));
        for rows in flame.rows.windows(2) {
            let mut end = 0;
            for shown in &rows[1] {
                let parent = &rows[0][shown.parent];
                prop_assert!(shown.width > 0 && shown.start >= end);
                end = shown.start + shown.width;
                prop_assert!(shown.start >= parent.start);
                prop_assert!(end <= parent.start + parent.width);
                prop_assert!(shown.samples <= parent.samples);
            }
        }
        let all = tree.root().samples;
        for shown in flame.rows.get(1).into_iter().flatten() {
            if let Some(node) = shown.node {
                let (begin, found) = tree.place(&[node.kind]).expect("it is there");
                prop_assert_eq!(found, node);
                prop_assert_eq!(u64::from(shown.start), begin * u64::from(width) / all);
            }
        }
    }
}

fn one(frames: &[u64], ending: Ending) -> Given {
    Given {
        stamp: 0,
        cpu: 0,
        process: 0,
        tid: 1,
        frames: frames.to_vec(),
        ending,
        weight: 1,
    }
}

#[test]
fn a_cut_stack_hangs_below_an_honest_row() {
    let samples = [
        one(&[2, 4], Ending::Root),
        one(&[2, 4], Ending::ReadFault),
        one(&[], Ending::NoUserStack),
    ];
    let selection = select(&store(&samples).view(), &Query::default());
    let tree = tree(&selection, Direction::TopDown, GroupBy::None);
    let mut names: Vec<String> = tree
        .stacks()
        .map(|(path, n)| {
            let names: Vec<_> = path
                .iter()
                .map(|kind| tree.name(*kind).to_string())
                .collect();
            format!("{} {n}", names.join(";"))
        })
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "[no stack] 1",
            "[stopped: read_fault];f2;inl;f1 1",
            "f2;inl;f1 1"
        ]
    );
    let cut = tree
        .children(&tree.root())
        .into_iter()
        .find_map(|node| match node.kind {
            NodeKind::Function { id, .. } => match tree.function(id).role {
                Role::Stopped(ending) => Some((ending, node.samples)),
                _ => None,
            },
            _ => None,
        });
    assert_eq!(cut, Some((Ending::ReadFault, 1)));
    let path = tree.hot_path(&tree.root(), 0.0);
    assert!(!path.is_empty());
}

#[test]
fn hiding_charges_the_caller_and_hiding_all_is_shown() {
    let view = store(&[one(&[2, 4], Ending::Root)]).view();
    let own = |text: &str| {
        let rows = select(&view, &filter(text)).functions();
        rows.iter()
            .find(|f| f.self_samples > 0)
            .expect("a row")
            .name
            .to_string()
    };
    assert_eq!(own(""), "f1");
    assert_eq!(own("hide:f1"), "inl");
    assert_eq!(own("hide:f1 hide:kind:inlined"), "f2");
    assert_eq!(own("fold:libc.so.6 fold:postgres"), "[hidden]");
}

#[test]
fn an_interpreter_is_charged_to_what_it_runs() {
    let (own, run) = (INTERPRETER, RUN);
    for (stack, by, expected) in [
        (vec![0, own, run, own, 6], "", vec!["f3", "run", "f0"]),
        (vec![own, run], "show:internals", vec!["run", "f6"]),
        // The interpreter's function is still there for the other clauses.
        (vec![own, run], "f6", vec!["run"]),
        // The interpreter runs no function that it could be charged to.
        (vec![own, 6], "", vec!["f3", "f6"]),
        (vec![own, run], "only:mod:libpython3.12", vec!["f6"]),
    ] {
        let view = store(&[one(&stack, Ending::Root)]).view();
        let selection = select(&view, &filter(by));
        let tree = tree(&selection, Direction::TopDown, GroupBy::None);
        let (stack, _) = tree.stacks().next().unwrap();
        let names: Vec<_> = stack.iter().map(|kind| tree.name(*kind)).collect();
        let names: Vec<_> = names.iter().map(|name| &**name).collect();
        assert_eq!(names, expected, "{by}");
    }
}

#[test]
fn recursion_folds_to_one_frame() {
    let view = store(&[one(&[6, 0, 2, 0, 2], Ending::Root)]).view();
    let selection = select(&view, &filter("fold:recursion"));
    let tree = tree(&selection, Direction::TopDown, GroupBy::None);
    let stacks: Vec<_> = tree.stacks().collect();
    let names: Vec<_> = stacks[0].0.iter().map(|kind| tree.name(*kind)).collect();
    assert_eq!(
        names.iter().map(|n| &**n).collect::<Vec<_>>(),
        ["f1", "f0", "f3"]
    );
}

#[test]
fn scope_narrows_by_process_thread_cpu_and_function() {
    let mut other = one(&[6], Ending::Root);
    (other.process, other.tid, other.cpu) = (1, 2, 3);
    let view = store(&[one(&[2, 4], Ending::Root), other]).view();
    let all = select(&view, &Query::default());
    let samples = |scope: Scope| {
        let query = Query {
            scope,
            ..Query::default()
        };
        select(&view, &query).samples()
    };
    let scope = Scope::default();
    assert_eq!(
        samples(Scope {
            processes: vec![ProcessId(1)],
            ..scope.clone()
        }),
        1
    );
    assert_eq!(
        samples(Scope {
            threads: vec![(ProcessId(1), 1)],
            ..scope.clone()
        }),
        0
    );
    assert_eq!(
        samples(Scope {
            cpus: vec![0, 3],
            ..scope.clone()
        }),
        2
    );
    let f3 = all
        .functions()
        .iter()
        .find(|f| &*f.name == "f3")
        .unwrap()
        .id;
    assert_eq!(
        samples(Scope {
            functions: vec![f3],
            ..scope.clone()
        }),
        1
    );
    assert_eq!(
        samples(Scope {
            cgroups: vec!["/".into()],
            ..scope
        }),
        0,
        "not known"
    );
}

#[test]
fn a_family_is_a_process_with_all_that_descend_from_it() {
    let sample = |process: u32| {
        let mut sample = one(&[2], Ending::Root);
        (sample.process, sample.tid) = (process, process);
        sample
    };
    let mut store = store(&[sample(0), sample(1), sample(2)]);
    let view = store.view();
    let pids: Vec<u32> = view
        .select(&Query::default(), &Cancel::new())
        .unwrap()
        .report()
        .processes
        .iter()
        .map(|row| row.pid)
        .collect();
    let mut sorted = pids.clone();
    sorted.sort_unstable();
    let [parent, child, stranger] = sorted[..] else {
        panic!("{pids:?}");
    };
    // The child was started by a shell without samples, and the shell by the parent.
    let child_id = ProcessId(1);
    store.set_process_details(
        child_id,
        ProcessDetails {
            parent: Some(501),
            ancestors: [(501, "sh".into()), (parent, "parent".into())].into(),
            ..ProcessDetails::default()
        },
    );
    let view = store.view();
    let of = |pid: u32, host: Option<Arc<str>>| {
        let query = Query {
            scope: Scope {
                families: vec![Family { pid, host }],
                ..Scope::default()
            },
            ..Query::default()
        };
        let rows = select(&view, &query).report().processes;
        let mut pids: Vec<u32> = rows.iter().map(|row| row.pid).collect();
        pids.sort_unstable();
        pids
    };
    assert_eq!(of(parent, None), [parent, child]);
    assert_eq!(of(501, None), [child], "its root has no samples");
    assert_eq!(of(child, None), [child]);
    assert_eq!(of(stranger, None), [stranger]);
    assert_eq!(
        of(parent, Some("db-01".into())),
        [0; 0],
        "another machine's"
    );
}

#[test]
fn a_cancelled_query_says_so() {
    let view = store(&[one(&[2], Ending::Root)]).view();
    let cancel = Cancel::new();
    cancel.cancel();
    assert!(view.select(&Query::default(), &cancel).is_err());
}

#[test]
fn a_clause_made_from_a_name_matches_just_that() {
    let view = store(&[one(&[2, 4], Ending::Root), one(&[6], Ending::Root)]).view();
    let mut query = Query::default();
    query.filter.push(Clause::function(Action::Exclude, "f3"));
    assert_eq!(select(&view, &query).samples(), 1);
    assert_eq!(query.filter.to_string(), "!fn:f3");
    assert_eq!(query.filter, "!fn:f3".parse::<Filter>().unwrap());
}

/// Checks that the addresses of a function add up to the function.
#[track_caller]
fn check_code(selection: &Selection, row: &profile::FunctionRow) {
    if selection.view().function(row.id).role != Role::Function {
        return;
    }
    let cancel = Cancel::new();
    let code = selection.code(row.id, &cancel).unwrap();
    let sum = |part: fn(&CodeAddress) -> u64| code.addresses.iter().map(part).sum::<u64>();
    assert_eq!(sum(|a| a.self_samples), row.self_samples);
    assert_eq!(code.self_samples, row.self_samples);
    assert_eq!(sum(|a| a.inlined_samples), code.inlined_samples);
    assert_eq!(code.total_samples, row.total_samples);
    let (mut one, mut each) = (HashMap::new(), HashMap::new());
    for (number, address) in code.addresses.iter().enumerate() {
        assert!(address.total_samples >= address.samples());
        assert!(address.total_samples <= code.total_samples);
        one.insert(address.frame, 0);
        each.insert(address.frame, number);
    }
    // All addresses in one group are the function, each in its own group are the addresses.
    let groups = |groups| selection.code_groups(row.id, groups, &cancel).unwrap();
    assert_eq!(groups(&one)[0].total_samples, code.total_samples);
    for (address, group) in code.addresses.iter().zip(groups(&each)) {
        assert_eq!(address.total_samples, group.total_samples);
        let called = group.calls.iter().map(|(_, samples)| *samples);
        let is_part = |samples| samples <= group.total_samples;
        assert!(called.clone().all(is_part));
        assert!(
            group
                .calls
                .is_sorted_by_key(|(_, samples)| std::cmp::Reverse(*samples))
        );
        assert!(address.samples() + called.sum::<u64>() >= group.total_samples);
    }
    assert!(!code.pids.is_empty());
}

/// A profile in which `main` (0x10, 0x14) calls `sum` (0x20, 0x24), which calls itself, and into
/// which `add` is inlined at 0x24.
fn calls() -> View {
    let mut store = Store::new(Limits::default());
    store.add_module(ModuleId(0), "a", "/usr/bin/a");
    for (process, pid) in [(0, 70), (1, 71), (2, 72)] {
        store.add_process(ProcessId(process), pid, "a");
    }
    let samples: [(u32, &[u64], u64); 5] = [
        (0, &[0x20, 0x10], 3),
        (1, &[0x24, 0x10], 5),
        (1, &[0x24, 0x24, 0x20, 0x24, 0x14], 7),
        (2, &[0x14], 11),
        (1, &[0x30, 0x14], 13),
    ];
    for (process, addresses, weight) in samples {
        let frames: Vec<Frame> = addresses
            .iter()
            .map(|address| Frame {
                module: ModuleId(0),
                address: *address,
                kind: FrameKind::User,
            })
            .collect();
        assert!(store.add_sample(NewSample {
            time_ns: 10_000_000,
            cpu: 0,
            process: ProcessId(process),
            tid: process,
            comm: "a",
            frames: &frames,
            kernel_frames: 0,
            ending: Ending::Root,
            weight,
        }));
    }
    store.process_exited(ProcessId(0));
    for id in store.frames_to_name(usize::MAX) {
        let address = store.frame(id).expect("asked for").address;
        let name = ["main", "sum", "exit"][address as usize / 16 - 1];
        store.set_name(id, NameState::Named(name.into()));
        let link = |function, line| SourceFrame {
            function,
            file: "a.c",
            line,
        };
        match address {
            0x24 => store.set_source(id, &[link("add", 3), link("sum", 21)]),
            _ => store.set_source(id, &[link(name, address as u32)]),
        }
    }
    store.view()
}

/// Returns the counts of a function by address (self, inlined, total), and its code.
fn code(filters: &str, name: &str) -> (Vec<(u64, [u64; 3])>, FunctionCode) {
    let view = calls();
    let selection = select(&view, &filter(filters));
    let report = selection.report();
    let row = report
        .functions
        .iter()
        .find(|row| &*row.name == name)
        .unwrap_or_else(|| panic!("no samples of {name}"));
    check_code(&selection, row);
    let code = selection.code(row.id, &Cancel::new()).unwrap();
    let counts = |a: &CodeAddress| {
        let counts = [a.self_samples, a.inlined_samples, a.total_samples];
        (a.address, counts)
    };
    (code.addresses.iter().map(counts).collect(), code)
}

#[test]
fn samples_of_a_function_lie_at_its_addresses() {
    let (main, code_of_main) = code("", "main");
    assert_eq!(main, [(0x10, [0, 0, 8]), (0x14, [11, 0, 31])]);
    // Processes that still run come first, then those with most samples.
    assert_eq!(code_of_main.pids, [71, 72, 70]);
    assert_eq!(calls_of("main"), [("exit".into(), 13), ("sum".into(), 15)]);
    // One sample counts once, however often `sum` calls itself.
    assert_eq!(calls_of("sum"), [("sum".into(), 7)]);

    // The inlined function is on top, in the code of `sum`.
    let (sum, code_of_sum) = code("", "sum");
    assert_eq!(sum, [(0x20, [3, 0, 10]), (0x24, [0, 12, 12])]);
    assert_eq!(
        (code_of_sum.self_samples, code_of_sum.inlined_samples),
        (3, 12)
    );
    let with_add = &code_of_sum.addresses[1];
    let line = |place: &Option<CodePlace>| place.as_ref().map(|place| place.line);
    assert_eq!(line(&with_add.place), Some(21));
    assert_eq!(line(&with_add.inlined[0].1), Some(3));

    let (add, code_of_add) = code("", "add");
    assert_eq!(add, [(0x24, [12, 0, 12])]);
    let host = code_of_add.addresses[0].host;
    assert_eq!(&*calls_name(host), "sum");
}

/// Returns the functions that a function calls from all of its code, by name.
fn calls_of(name: &str) -> Vec<(String, u64)> {
    let view = calls();
    let selection = select(&view, &Query::default());
    let (_, code) = code("", name);
    let all = code.addresses.iter().map(|address| (address.frame, 0));
    let frame = code.addresses[0].frame;
    let groups = selection.code_groups(frame, &all.collect(), &Cancel::new());
    let calls = groups.unwrap().remove(0).calls;
    let mut named: Vec<(String, u64)> = calls
        .into_iter()
        .map(|(id, samples)| (calls_name(id), samples))
        .collect();
    named.sort();
    named
}

fn calls_name(id: profile::FunctionId) -> String {
    calls().function(id).name.to_string()
}

#[test]
fn what_the_filter_charges_to_a_function_lies_where_it_called() {
    let (main, _) = code("hide:sum hide:add", "main");
    assert_eq!(main, [(0x10, [8, 0, 8]), (0x14, [18, 0, 31])]);
    let (sum, _) = code("hide:add", "sum");
    assert_eq!(sum, [(0x20, [3, 0, 10]), (0x24, [12, 0, 12])]);
}

#[test]
fn code_can_be_cancelled() {
    let selection = select(&calls(), &Query::default());
    let cancel = Cancel::new();
    cancel.cancel();
    let frame = selection.functions()[0].id;
    assert!(selection.code(frame, &cancel).is_err());
    let groups = HashMap::from([(frame, 0)]);
    assert!(selection.code_groups(frame, &groups, &cancel).is_err());
}
