//! Tests of waiting time: number and length of waits, and leaving out waits for work.

use super::knobs::line;
use super::*;
use crate::fixture::{waiting, waits_later, waits_not_yet};

#[test]
fn functions_have_waits_mean_and_longest() {
    let mut hand = Hand::new(80, 24);
    hand.show(waiting());
    hand.looks_like("waiting-functions-80x24");
    let frame = hand.frame();
    for head in ["WAITS", "MEAN", "LONGEST"] {
        assert!(frame.contains(head), "{frame}");
    }
    let mut wide = Hand::new(160, 45);
    wide.show(waiting());
    assert!(wide.frame().contains("LAST 10s"), "{}", wide.frame());
    // If there is no room for the columns, the detail line has the numbers.
    let mut narrow = Hand::new(60, 20);
    narrow.show(waiting()).keys("jj");
    assert!(!narrow.frame().contains("LONGEST"));
    assert!(narrow.frame().contains("waits, mean"), "{}", narrow.frame());
}

#[test]
fn an_estimate_says_how_it_was_made() {
    let mut hand = Hand::new(80, 24);
    hand.show(waiting()).keys("/clock_nanosleep\ni");
    let text = hand.frame().replace('\n', " ");
    assert!(text.contains("~2,000 waits, mean 200us"), "{text}");
    assert!(text.contains("40 of them gave their stack"), "{text}");
    let words: Vec<&str> = text.split_whitespace().collect();
    let stands = "that of a short wait stands for others like it";
    assert!(words.join(" ").contains(stands), "{text}");
    hand.keys("/waiting: lock\ni");
    let text = hand.frame().replace('\n', " ");
    assert!(text.contains("in futex, flock"), "{text}");
    assert!(text.contains("40 waits, mean 120ms"), "{text}");
    // The page of a function counts a wait that ends in the queue as one wait.
    hand.keys("/handle_order\n\n");
    let text = hand.frame();
    assert!(
        text.contains("40 waits, mean 125ms, longest 125ms"),
        "{text}"
    );
}

#[test]
fn a_key_leaves_out_waits_for_work() {
    let mut hand = Hand::new(80, 24);
    hand.show(waiting());
    assert!(hand.frame().contains("epoll_wait"));
    hand.keys("W");
    let frame = hand.frame();
    assert!(frame.contains("!state:idle"), "{frame}");
    assert!(!frame.contains("epoll_wait"), "{frame}");
    hand.keys("i");
    let text = hand.frame().replace('\n', " ");
    assert!(text.contains("waits with epoll, poll, select"), "{text}");
    hand.keys("W");
    assert!(hand.frame().contains("epoll_wait"));
    hand.keys("\\state:lock\n");
    assert!(hand.frame().contains("[waiting: lock]"));
    assert!(
        !hand.frame().contains("[waiting: queue]"),
        "{}",
        hand.frame()
    );
}

#[test]
fn threads_and_processes_have_a_bar_of_their_states() {
    let mut hand = Hand::new(80, 24);
    hand.show(waiting()).keys("5o");
    // Two threads with the same name have one common bar.
    let frame = hand.frame();
    let both = frame.lines().find(|line| line.contains("worker ×2"));
    assert!(
        both.is_some_and(|line| line.contains("RRRLLLNNNNNN")),
        "{frame}"
    );
    hand.keys("o").looks_like("waiting-threads-80x24");
    let frame = hand.frame();
    // Exactly half of the time on a CPU.
    assert!(frame.contains("RRRRRRLLLLLL"), "{frame}");
    // This thread has been waiting since before the window, and has no sample.
    assert!(frame.contains("lock since >112s"), "{frame}");
    hand.keys("Gi");
    let text = hand.frame().replace('\n', " ");
    assert!(text.contains("stuck[4124]"), "{text}");
    assert!(text.contains("R runs, Q in the queue"), "{text}");
    hand.keys("\u{1b}4");
    hand.looks_like("waiting-processes-80x24");
    // A filter applies to samples, so a thread without samples disappears.
    hand.keys("5g\\state:lock\n");
    assert!(!hand.frame().contains("stuck"), "{}", hand.frame());
}

#[test]
fn the_map_of_time_has_the_states_of_threads() {
    let mut hand = Hand::new(80, 24);
    hand.show(waiting()).keys("6oo");
    hand.looks_like("waiting-time-80x24");
    let frame = hand.frame();
    assert!(frame.contains("R run Q line C cap L lock"), "{frame}");
    // The thread was on a CPU, and then waited for a lock.
    let row = frame.lines().find(|line| line.contains("4123 worker"));
    assert!(row.is_some_and(|row| row.contains("RRRLLLLLL")), "{frame}");
}

#[test]
fn who_has_the_lock_is_told_first_and_explained() {
    let mut snapshot = waiting();
    let report = Arc::make_mut(&mut snapshot.report);
    let held = report
        .threads
        .iter_mut()
        .find(|thread| thread.tid == 4_123)
        .expect("a worker");
    let activity = held.activity.get_or_insert_default();
    activity.now = Some(profile::Now {
        state: probe::WaitState::Lock.number(),
        for_ns: 112_000_000_000,
        is_longer: false,
        owner: Some(4_122),
    });
    let mut hand = Hand::new(80, 24);
    hand.show(snapshot).keys("5").wait(2_000);
    let at = hand
        .app
        .views
        .threads
        .lines(&hand.app.shown.report)
        .position(|line| line.row.tid == 4_123)
        .expect("its row");
    hand.keys(&"j".repeat(at));
    // The whole sentence is at the beginning of the line, which is cut at 80 columns.
    let line = hand.frame().lines().nth(22).unwrap_or_default().to_owned();
    assert!(line.contains("now held by thread 4122"), "{}", hand.frame());
    hand.keys("i");
    let text = hand.frame().replace('\n', " ");
    assert!(text.contains("now held by thread 4122"), "{text}");
}

/// Nanoseconds are never shown as a bare number, and never called samples.
#[test]
fn time_is_written_as_time_in_every_view() {
    for unit in ["", "%", "%%"] {
        for view in ["1", "1jj\n", "2E", "2EI", "3", "4", "5", "6", "8"] {
            let mut hand = Hand::new(160, 45);
            hand.show(waiting()).keys(unit).keys(view).wait(2_000);
            for keys in ["", "j", "i"] {
                let frame = hand.keys(keys).frame();
                let words = frame.split(|c: char| !c.is_ascii_digit() && c != ',');
                let numbers = words.map(|word| word.replace(',', ""));
                let longest = numbers.map(|number| number.len()).max();
                assert!(longest < Some(8), "{unit}{view}{keys}: {frame}");
                assert!(!frame.contains(" smp"), "{unit}{view}{keys}: {frame}");
            }
        }
    }
}

#[test]
fn a_run_without_waits_counts_them_once_they_are_asked_for() {
    let mut hand = Hand::new(80, 24);
    hand.show(waits_not_yet()).keys("c");
    assert_eq!(hand.effects, [Effect::CountWaits]);
    assert!(hand.frame().contains("waits are counted in a moment"));
    hand.keys("c");
    assert_eq!(hand.effects, [], "it has been asked for");
    hand.show(waits_not_yet());
    assert!(line(&hand, 1).contains("on-CPU"), "{}", hand.frame());
    hand.show(waits_later());
    hand.looks_like("waits-later-80x24");
    // The screen changes by itself, and the header says how much of the window is counted.
    assert!(line(&hand, 1).contains("off-cpu"), "{}", hand.frame());
    assert!(line(&hand, 1).contains("win 10s (6s)"), "{}", hand.frame());
    assert!(hand.frame().contains("waits are counted from now on"));
    hand.keys("i");
    let text = hand.frame().replace('\n', " ");
    assert!(
        text.contains("last 5.6 s (waits counted since 00:19:46 UTC)"),
        "{text}"
    );
    // The map of all time explains its empty seconds.
    hand.keys("\u{1b}6");
    assert!(
        hand.frame().contains("counted since 00:19:46 UTC"),
        "{}",
        hand.frame()
    );
    hand.keys("hhhhhhhhhhi");
    assert!(
        hand.frame().contains("nothing was counted at"),
        "{}",
        hand.frame()
    );
    hand.keys("\u{1b}1c");
    assert!(line(&hand, 1).contains("wall"), "{}", hand.frame());
    assert!(line(&hand, 1).contains("win 10s (6s)"), "{}", hand.frame());
    // A window that starts after that time is complete.
    hand.keys(":window 5s\n");
    assert!(line(&hand, 1).contains("win 5s  "), "{}", hand.frame());
    // The states of threads are known for only a part of the window, also when time on CPUs is
    // shown.
    hand.keys(":window 10s\n:metric on-cpu\n5");
    assert!(line(&hand, 1).contains("win 10s  "), "{}", hand.frame());
    assert!(
        hand.frame().contains("since 00:19:46 UTC: run"),
        "{}",
        hand.frame()
    );
    hand.keys("8");
    assert!(
        hand.frame().contains("counted since 00:19:46 UTC"),
        "{}",
        hand.frame()
    );
    hand.show(waiting());
    assert!(!hand.frame().contains("counted since"));
}

#[test]
fn each_metric_of_waits_can_be_asked_for_by_its_name() {
    for name in ["off-cpu", "wall", "kept-waiting"] {
        let mut hand = Hand::new(80, 24);
        hand.show(waits_not_yet());
        hand.keys(&format!(":metric {name}\n"));
        assert_eq!(hand.effects, [Effect::CountWaits]);
        hand.show(waits_later());
        assert!(line(&hand, 1).contains(name), "{}", hand.frame());
        // A step back shows the previous metric.
        hand.keys("\u{8}");
        assert!(line(&hand, 1).contains("on-CPU"), "{}", hand.frame());
        hand.keys(&format!(":metric {name}\n"));
        assert_eq!(hand.effects, [], "they are counted already");
    }
    let mut hand = Hand::new(80, 24);
    hand.show(waits_not_yet()).keys(":metric bytes\n");
    let all = "there are on-cpu, off-cpu, wall, kept-waiting";
    assert!(hand.frame().contains(all), "{}", hand.frame());
}

#[test]
fn who_changes_back_before_waits_are_there_is_not_taken_along() {
    let mut hand = Hand::new(80, 24);
    hand.show(waits_not_yet()).keys("c:metric on-cpu\n");
    hand.show(waits_later());
    assert!(line(&hand, 1).contains("on-CPU"), "{}", hand.frame());
}

#[test]
fn waits_that_cannot_be_counted_say_why() {
    let refused = || {
        let mut snapshot = waits_not_yet();
        let why = "waits need BPF, and samples are taken by perf";
        snapshot.source.waits_refused = Some(why.into());
        snapshot
    };
    let mut hand = Hand::new(80, 24);
    hand.show(waits_not_yet()).keys("c").show(refused());
    assert!(hand.frame().contains("waits need BPF"), "{}", hand.frame());
    assert!(line(&hand, 1).contains("on-CPU"));
    hand.keys("jc");
    assert_eq!(hand.effects, [], "the answer is known");
    assert!(hand.frame().contains("waits need BPF"), "{}", hand.frame());
    let mut over = waits_not_yet();
    over.run.target = TargetState::Exited {
        words: "orderd[4121] ended".into(),
        at_ns: 0,
    };
    let mut hand = Hand::new(80, 24);
    hand.show(over).keys("c");
    assert_eq!(hand.effects, []);
    assert!(
        hand.frame().contains("nothing is sampled any more"),
        "{}",
        hand.frame()
    );
}

#[test]
fn on_a_frozen_screen_waits_come_when_it_goes_on() {
    let mut hand = Hand::new(80, 24);
    hand.show(waits_not_yet()).keys(" c");
    assert_eq!(hand.effects, [Effect::CountWaits]);
    assert!(
        hand.frame().contains("go on to see them"),
        "{}",
        hand.frame()
    );
    hand.show(waits_later());
    assert!(line(&hand, 1).contains("on-CPU"), "{}", hand.frame());
    hand.keys(" ");
    assert!(line(&hand, 1).contains("off-cpu"), "{}", hand.frame());
}
