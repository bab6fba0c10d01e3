//! Tests of the tree of processes, of grouped rows, and of what the line of keys offers.

use super::*;
use crate::action::{Key, Keymap, Scope};
use crate::fixture::{postgres, tree_step};
use crate::knobs::CountedAlone;
use crate::lists::groups::By;
use crate::lists::table::Line;
use crate::views::tree::Fold;
use crate::words::text;
use profile::{Family, ProcessRow, ThreadRow};

/// Returns the processes, each with the parent that is given for its pid.
fn started_by(parents: &[(u32, u32)]) -> Snapshot {
    let mut snapshot = postgres();
    let report = Arc::make_mut(&mut snapshot.report);
    for process in &mut report.processes {
        let found = parents.iter().find(|(pid, _)| *pid == process.pid);
        process.details.parent = Some(found.map_or(1, |(_, parent)| *parent));
    }
    snapshot
}

/// Returns the pids on the screen from top to bottom, each with its guides.
fn rows(hand: &Hand) -> Vec<(u32, String)> {
    let (table, report) = (&hand.app.views.processes, &hand.app.shown.report);
    let lines = table.lines(report);
    lines
        .map(|line| (line.row.pid, line.guides.to_owned()))
        .collect()
}

#[test]
fn processes_stand_below_those_that_started_them() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).keys("4").wait(2_000);
    let pids: Vec<u32> = rows(&hand).into_iter().map(|(pid, _)| pid).collect();
    let (first, second, third) = (pids[0], pids[1], pids[2]);
    let family = started_by(&[(first, third), (second, third)]);
    hand.show(family.clone()).keys("t").wait(2_000);
    let mut wanted = vec![
        (third, String::new()),
        (first, "├─ ".into()),
        (second, "└─ ".into()),
    ];
    let shown = rows(&hand);
    let at = shown
        .iter()
        .position(|(pid, _)| *pid == third)
        .expect("it is there");
    assert_eq!(shown[at..at + 3], wanted[..], "{}", hand.frame());
    assert!(hand.frame().contains("├─ "), "{}", hand.frame());
    assert_eq!(shown.len(), pids.len(), "each once");
    // The selected row stays selected, also when the list comes back.
    let selected = |hand: &Hand| {
        let (table, report) = (&hand.app.views.processes, &hand.app.shown.report);
        table.selected(report).map(|line| line.row.pid)
    };
    hand.keys("jj");
    let before = selected(&hand);
    hand.code(KeyCode::F(5));
    assert_eq!(selected(&hand), before);
    assert_eq!(
        rows(&hand)
            .into_iter()
            .map(|(pid, _)| pid)
            .collect::<Vec<_>>(),
        pids
    );
    // Of a parent without samples only the pid is known.
    hand.show(started_by(&[(first, 77_000), (second, 77_000)]))
        .keys("t")
        .wait(2_000);
    wanted = vec![(first, "┌─ ".into()), (second, "└─ ".into())];
    assert_eq!(rows(&hand)[..2], wanted[..], "{}", hand.frame());
    hand.looks_like("processes-family-80x24");
    hand.looks_like_in_ascii("processes-family-80x24-ascii");
}

#[test]
fn parents_that_were_never_sampled_have_rows_in_the_tree() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).keys("4").wait(2_000);
    let pids: Vec<u32> = rows(&hand).into_iter().map(|(pid, _)| pid).collect();
    let (first, second, third) = (pids[0], pids[1], pids[2]);
    // A login has started a terminal server, and that one two shells.
    let mut family = started_by(&[(first, 501), (second, 501), (third, 502)]);
    let report = Arc::make_mut(&mut family.report);
    for process in &mut report.processes {
        if let Some(shell @ (501 | 502)) = process.details.parent {
            let above = [(shell, "bash"), (500, "tmux: server"), (499, "login")];
            process.details.ancestors = above
                .into_iter()
                .map(|(pid, comm)| (pid, comm.into()))
                .collect();
        }
    }
    hand.show(family.clone()).keys("t").wait(2_000);
    // The login has no other descendants.
    let wanted = [
        (500, String::new()),
        (501, "├─ ".into()),
        (first, "│  ├─ ".into()),
        (second, "│  └─ ".into()),
        (502, "└─ ".into()),
        (third, "   └─ ".into()),
    ];
    // The family is at the place of its first member, and all other rows are still there.
    assert_eq!(rows(&hand)[..6], wanted, "{}", hand.frame());
    assert_eq!(rows(&hand).len(), pids.len() + 3);
    let frame = hand.frame();
    assert!(frame.contains("bash") && frame.contains("tmux"), "{frame}");
    // When selected, the detail line says what the row is, and the row stays with the next report.
    hand.keys("gj").show(family).wait(2_000);
    let frame = hand.frame();
    assert!(frame.contains("bash[501] has no samples"), "{frame}");
    // Narrowing to it includes all its descendants, even if they start later. A leaf is only
    // itself.
    let narrowed = |hand: &mut Hand, keys: &str| {
        let before = hand.app.knobs.scope.len();
        hand.keys(keys);
        let added = hand.app.knobs.scope.get(before).cloned();
        hand.code(KeyCode::Esc).wait(2_000);
        added.map(|narrowing| (narrowing.part, narrowing.words.to_string()))
    };
    let shells = Family {
        pid: 501,
        host: None,
    };
    let (part, words) = narrowed(&mut hand, "\n").expect("it has children");
    assert_eq!(part, CountedAlone::Families(vec![shells]));
    assert_eq!(words, "bash[501] and its children");
    let (part, words) = narrowed(&mut hand, "gjj\n").expect("a leaf");
    assert!(
        matches!(&part, CountedAlone::Processes(ids) if ids.len() == 1),
        "{part:?}"
    );
    assert!(words.ends_with(&format!("[{first}]")), "{words}");
    // The list contains only processes with samples.
    hand.code(KeyCode::F(5)).wait(2_000);
    assert_eq!(rows(&hand).len(), pids.len(), "{}", hand.frame());
}

#[test]
fn a_key_with_several_meanings_tells_all_views() {
    for (view, key, said) in [
        (
            '4',
            'a',
            "a works in Func, Tree, Flame, Code, Probes, page: its source",
        ),
        (
            '8',
            'l',
            "l works in Func, Code, page: count and time its calls; also in Tree, Fla",
        ),
        (
            '1',
            'p',
            "p works in Tree, Flame, Code: the function's page",
        ),
        (
            '1',
            'v',
            "v works in Proc, Thread: mark, to narrow to several; also in Time, Prob",
        ),
        ('1', 'z', "this key does nothing"),
    ] {
        let mut hand = Hand::new(80, 24);
        hand.show(tree_step(0))
            .wait(2_000)
            .code(KeyCode::Char(view));
        hand.code(KeyCode::Char(key));
        let frame = hand.frame();
        assert!(frame.contains(said), "{view} {key}: {frame}");
    }
}

#[test]
fn a_key_that_does_nothing_here_says_where_it_works_on_a_narrow_screen() {
    let keymap = Keymap::default();
    let mut told = 0;
    for view in '1'..='8' {
        for binding in keymap.all().iter().filter(|b| b.scope != Scope::Everywhere) {
            let mut hand = Hand::new(80, 24);
            hand.show(tree_step(0))
                .wait(2_000)
                .code(KeyCode::Char(view));
            let Some(Key::Char(letter)) = binding.keys.first() else {
                continue;
            };
            if binding.scope.holds(hand.app.focus()) {
                continue;
            }
            hand.code(KeyCode::Char(*letter));
            let frame = hand.frame();
            let line = frame.lines().nth(22).unwrap_or_default();
            if let Some((_, rest)) = line.split_once(" works in ") {
                let (views, _) = rest.split_once(':').unwrap_or_else(|| panic!("{line}"));
                let names = views.split(", ").map(str::trim);
                assert!(
                    names
                        .clone()
                        .all(|name| !name.is_empty() && !name.contains('…')),
                    "{line}"
                );
                assert!(text::width(line) <= 80);
                told += 1;
            }
        }
    }
    assert!(told > 100, "{told}");
}

#[test]
fn a_leaf_of_the_tree_is_not_offered_to_be_opened() {
    let mut hand = Hand::new(80, 24);
    hand.show(tree_step(0)).keys("2EG");
    let selected = hand.app.views.tree.selected().expect("a row");
    assert_eq!(selected.fold, Fold::Leaf, "{}", hand.frame());
    let keys = |hand: &Hand| hand.frame().lines().last().map(str::to_owned);
    let leaf = keys(&hand).expect("the key line");
    assert!(
        !leaf.contains("open") && !leaf.contains("hot path"),
        "{leaf}"
    );
    assert!(
        leaf.contains("close"),
        "that leads to the row above: {leaf}"
    );
    hand.keys("g");
    let root = keys(&hand).expect("the key line");
    assert!(root.contains("open") && root.contains("hot path"), "{root}");
}

/// Returns the processes and threads of [`postgres`], and `count` more threads of java, all called
/// `pool`, with two samples each, one of them in the kernel.
fn with_pool(count: u32) -> Snapshot {
    let mut snapshot = postgres();
    let report = Arc::make_mut(&mut snapshot.report);
    let first = report.threads[0].clone();
    let thread = |number| ThreadRow {
        tid: 5_000 + number,
        comm: "pool".into(),
        samples: 2,
        kernel_samples: 1,
        top_function: Some("run".into()),
        top_wait: None,
        trend: [1; profile::TREND_LEN],
        ..first.clone()
    };
    report.threads.extend((0..count).map(thread));
    snapshot
}

/// Returns the rows of threads on the screen: name, number of threads, samples.
fn thread_rows(hand: &Hand) -> Vec<(String, usize, u64)> {
    let (table, report) = (&hand.app.views.threads, &hand.app.shown.report);
    let lines = table.lines(report);
    lines
        .map(|line| (line.row.comm.to_string(), line.count(), line.row.samples))
        .collect()
}

#[test]
fn threads_of_one_name_are_one_row() {
    let mut hand = Hand::new(80, 24);
    hand.show(with_pool(300)).keys("5").wait(2_000);
    let row = |name: &str, count, samples| (name.to_owned(), count, samples);
    let grouped = [
        row("matcher-0", 1, 604),
        row("pool", 300, 600),
        row("matcher-1", 1, 218),
        row("G1 Conc#0", 1, 119),
        row("java", 1, 30),
    ];
    assert_eq!(thread_rows(&hand), grouped);
    hand.keys("j").looks_like("threads-grouped-80x24");
    hand.looks_like_in_ascii("threads-grouped-80x24-ascii");
    assert!(
        hand.frame().contains("300 threads pool of 2210   600 smp"),
        "{}",
        hand.frame()
    );
    // The selection is kept when grouping is switched off and on again.
    let selected = |hand: &Hand| {
        let (table, report) = (&hand.app.views.threads, &hand.app.shown.report);
        let line = table.selected(report).expect("a row");
        (line.row.tid, line.count())
    };
    hand.keys("o");
    assert_eq!(selected(&hand), (5_000, 1));
    assert!(hand.frame().contains(" above + "), "{}", hand.frame());
    hand.keys("o");
    assert_eq!(selected(&hand), (5_000, 300));
    assert_eq!(thread_rows(&hand), grouped);
    // Sorted by kernel share, the pool with its half of samples in the kernel comes second.
    hand.keys(">").wait(2_000);
    assert_eq!(thread_rows(&hand)[1], row("pool", 300, 600));
    // Narrowing to the group includes all of its threads.
    hand.keys("\n");
    let narrowed = hand.app.knobs.scope.last().expect("a scope");
    assert_eq!(&*narrowed.words, "300 threads pool");
    let CountedAlone::Threads(threads) = &narrowed.part else {
        panic!("{narrowed:?}");
    };
    assert_eq!(threads.len(), 300);
    for (width, height) in [(130, 42), (60, 16), (40, 8)] {
        let mut hand = Hand::new(width, height);
        hand.show(with_pool(300)).keys("5").wait(2_000);
        assert!(hand.frame().contains("×300"), "{}", hand.frame());
    }
}

#[test]
fn threads_of_one_name_have_a_row_each_where_there_is_room() {
    let mut hand = Hand::new(80, 24);
    hand.show(with_pool(3)).keys("5").wait(2_000);
    let pool = |hand: &Hand| -> Vec<usize> {
        let rows = thread_rows(hand).into_iter();
        let pool = rows.filter(|(name, ..)| name == "pool");
        pool.map(|(_, count, _)| count).collect()
    };
    assert_eq!(pool(&hand), [1, 1, 1], "{}", hand.frame());
    // A selected thread is in the row of all when there are too many, and has its own row again
    // later.
    hand.keys("G").show(with_pool(300)).wait(2_000);
    assert_eq!(pool(&hand), [300], "{}", hand.frame());
    let selected = |hand: &Hand| {
        let (table, report) = (&hand.app.views.threads, &hand.app.shown.report);
        let line = table.selected(report).expect("a row");
        (line.row.comm.to_string(), line.count(), line.gone)
    };
    assert_eq!(selected(&hand), ("pool".into(), 300, false));
    hand.show(with_pool(2)).wait(2_000);
    assert_eq!(pool(&hand), [1, 1], "{}", hand.frame());
    assert_eq!(selected(&hand), ("pool".into(), 1, false));
    // Once the user has decided, the size of the screen does not matter any more.
    hand.keys("o");
    assert_eq!(pool(&hand), [2]);
    hand.show(with_pool(3)).wait(2_000);
    assert_eq!(pool(&hand), [3]);
}

#[test]
fn a_group_stays_selected_whoever_comes_and_goes() {
    let mut hand = Hand::new(80, 24);
    hand.show(with_pool(3)).keys("5o").wait(2_000);
    hand.keys("G");
    let selected = |hand: &Hand| {
        let (table, report) = (&hand.app.views.threads, &hand.app.shown.report);
        let line = table.selected(report).expect("a row");
        (line.row.comm.to_string(), line.count(), line.gone)
    };
    assert_eq!(selected(&hand), ("pool".into(), 3, false));
    for count in [300, 1, 2] {
        hand.show(with_pool(count)).wait(2_000);
        assert_eq!(selected(&hand), ("pool".into(), count as usize, false));
    }
    hand.show(with_pool(0)).wait(2_000);
    assert_eq!(selected(&hand), ("pool".into(), 2, true));
    // A marked group includes all threads that it has when the scope is narrowed.
    hand.show(with_pool(4)).wait(2_000);
    hand.keys("v").keys("gv").show(with_pool(5)).wait(2_000);
    hand.keys("\n");
    let narrowed = hand.app.knobs.scope.last().expect("a scope");
    assert_eq!(&*narrowed.words, "6 threads");
}

#[test]
fn a_thread_in_scope_is_no_process() {
    let mut hand = Hand::new(80, 24);
    let mut snapshot = postgres();
    let report = Arc::make_mut(&mut snapshot.report);
    report.threads.retain(|thread| thread.tid == 2_210);
    hand.show(snapshot).keys("5").wait(2_000).keys("\n");
    let narrowed = hand.app.knobs.scope.last().expect("a scope");
    assert_eq!(&*narrowed.words, "thread java[2210]");
}

#[test]
fn processes_of_one_unit_are_one_row() {
    let mut hand = Hand::new(80, 24);
    let mut snapshot = postgres();
    let report = Arc::make_mut(&mut snapshot.report);
    let unit: Arc<str> = "/system.slice/ob.service/worker".into();
    for process in &mut report.processes {
        match process.pid {
            988 => process.details.cgroup = Some(unit.clone()),
            7_731 => process.details.cgroup = Some("/".into()),
            9_012 => process.details.cgroup = None,
            _ => {}
        }
    }
    hand.show(snapshot).keys("4o").wait(2_000);
    let rows = |hand: &Hand| -> Vec<(String, usize, u64)> {
        let (table, report) = (&hand.app.views.processes, &hand.app.shown.report);
        let lines = table.lines(report);
        let row = |line: Line<'_, ProcessRow>| {
            let name = line.row.group_name(By::Unit).into_owned();
            (name, line.count(), line.row.samples)
        };
        lines.map(row).collect()
    };
    let expected = [
        ("pg.service".to_owned(), 1, 3_277),
        ("ob.service".into(), 2, 1_446),
        ("(no unit)".into(), 1, 208),
        ("(unit not known)".into(), 1, 10),
    ];
    assert_eq!(rows(&hand), expected);
    hand.keys("j").looks_like("processes-units-80x24");
    hand.keys("\n");
    let narrowed = hand.app.knobs.scope.last().expect("a scope");
    assert_eq!(&*narrowed.words, "2 processes of ob.service");
    assert!(matches!(&narrowed.part, CountedAlone::Processes(all) if all.len() == 2));
    // A unit has no parent: in the tree, processes are not grouped, and grouping by unit ends the
    // tree.
    hand.keys("\u{8}").wait(2_000).keys("t");
    let is = |hand: &Hand| {
        let table = &hand.app.views.processes;
        (table.is_family(), table.grouping())
    };
    assert_eq!((is(&hand), rows(&hand).len()), ((true, None), 5));
    hand.keys("o");
    assert_eq!((is(&hand), rows(&hand).len()), ((false, Some(By::Unit)), 4));
    hand.keys("o");
    assert_eq!(
        (is(&hand), rows(&hand).len()),
        ((false, Some(By::Command)), 5)
    );
    hand.keys("o");
    assert_eq!((is(&hand), rows(&hand).len()), ((false, None), 5));
}

#[test]
fn a_server_and_those_that_it_has_forked_are_one_line() {
    let mut hand = Hand::new(80, 24);
    let mut snapshot = postgres();
    let report = Arc::make_mut(&mut snapshot.report);
    let command: Arc<str> = "/srv/shop/bin/python /srv/shop/bin/gunicorn -w 8 shop:app".into();
    let workers = [4_121, 988];
    for process in &mut report.processes {
        if workers.contains(&process.pid) {
            process.details.command_line = Some(command.clone());
        }
    }
    let whole: u64 = report
        .processes
        .iter()
        .filter(|process| workers.contains(&process.pid))
        .map(|process| process.samples)
        .sum();
    hand.show(snapshot).keys("4oo").wait(2_000);
    let (table, report) = (&hand.app.views.processes, &hand.app.shown.report);
    let line = table
        .lines(report)
        .find(|line| line.count() > 1)
        .expect("a group");
    assert_eq!((line.count(), line.row.samples), (2, whole));
    // They belong to different units, so the row shows neither.
    assert_eq!(line.row.details.cgroup, None);
    hand.looks_like("processes-commands-80x24");
    hand.keys("\n");
    let narrowed = hand.app.knobs.scope.last().expect("a scope");
    assert_eq!(
        &*narrowed.words,
        "2 processes python /srv/shop/bin/gunicorn -w 8 shop:app"
    );
    assert!(matches!(&narrowed.part, CountedAlone::Processes(all) if all.len() == 2));
}

#[test]
fn what_no_process_used_was_idle_if_all_are_counted() {
    let snapshot = |scope: &str, lost| {
        let mut snapshot = postgres();
        snapshot.run.scope = scope.into();
        snapshot.health.lost = lost;
        snapshot
    };
    // 3,277 samples at 99 Hz in 10 s are 3.31 CPUs.
    for (scope, lost, idle) in [
        ("system", 0, Some("idle 12.69 of 16 CPUs")),
        ("system", 7, Some("idle at most 12.69 of 16 CPUs")),
        ("postgres[4121]", 0, None),
    ] {
        let mut hand = Hand::new(80, 24);
        hand.show(snapshot(scope, lost)).keys("4").wait(2_000);
        let frame = hand.frame();
        let told = frame.lines().find(|line| line.contains("idle"));
        assert_eq!(told.map(str::trim), idle, "{frame}");
        if idle.is_some() {
            hand.keys("\n4");
            assert!(!hand.frame().contains("idle"), "{}", hand.frame());
        }
    }
}

#[test]
fn beside_a_unit_stand_the_threads_of_all_its_processes() {
    let in_one_unit = |pids: &[u32]| {
        let mut snapshot = postgres();
        let report = Arc::make_mut(&mut snapshot.report);
        for process in &mut report.processes {
            let is_in = pids.contains(&process.pid);
            process.details.cgroup = is_in.then(|| "/a.slice/all.service".into());
        }
        let mut other = report.threads[0].clone();
        let kworker = report.processes.iter().find(|row| row.pid == 988);
        (other.process, other.pid) = (kworker.expect("it is there").id, 988);
        (other.tid, other.samples) = (988, 3);
        report.threads.push(other);
        snapshot
    };
    let tids = |hand: &Hand| -> Vec<u32> {
        let (table, report) = (&hand.app.views.own_threads, &hand.app.shown.report);
        table.lines(report).map(|line| line.row.tid).collect()
    };
    let mut hand = Hand::new(160, 45);
    hand.show(in_one_unit(&[988, 2_210])).keys("4").wait(2_000);
    hand.keys("jo").wait(2_000);
    assert_eq!(tids(&hand), [2_231, 2_232, 2_214, 2_210, 988]);
    hand.control('w');
    hand.keys("jj");
    // A new process in the unit does not change the selection.
    hand.show(in_one_unit(&[988, 2_210, 7_731])).wait(2_000);
    let (table, report) = (&hand.app.views.own_threads, &hand.app.shown.report);
    let selected = table.selected(report).map(|line| line.row.tid);
    assert_eq!(selected, Some(2_214));
    // Without grouping: the threads of the selected process.
    hand.control('w');
    hand.keys("o").wait(2_000);
    assert_eq!(tids(&hand), [2_231, 2_232, 2_214, 2_210]);
}

#[test]
fn a_function_leads_to_the_machines_that_it_runs_on() {
    let mut snapshot = postgres();
    let report = Arc::make_mut(&mut snapshot.report);
    for (at, process) in report.processes.iter_mut().enumerate() {
        process.details.host = Some(["db-01", "web-02"][at % 2].into());
    }
    let mut hand = Hand::new(80, 24);
    hand.show(snapshot).wait(2_000).keys("gj@").wait(2_000);
    assert_eq!(hand.app.view, ViewId::Processes);
    assert_eq!(hand.app.views.processes.grouping(), Some(By::Host));
    assert!(!hand.app.knobs.filter.to_string().is_empty());
    let frame = hand.frame();
    assert!(
        frame.contains("db-01") && frame.contains("web-02"),
        "{frame}"
    );
    // Filter and view are one step.
    hand.code(KeyCode::Backspace).wait(2_000);
    assert_eq!(hand.app.view, ViewId::Functions);
    assert_eq!(hand.app.knobs.filter.to_string(), "");
    hand.keys("4").wait(2_000);
    assert_ne!(hand.app.views.processes.grouping(), Some(By::Host));
    // There is nothing to tell apart on one machine.
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).wait(2_000).keys("gj@");
    assert_eq!(hand.app.view, ViewId::Functions);
    let frame = hand.frame();
    assert!(
        frame.contains("all that is counted is of one machine"),
        "{frame}"
    );
}
