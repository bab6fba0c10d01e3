//! Tests of the dialog with the built-in recording.

/// Tests with random lines.
mod random;

use super::dialog::Dialog;
use super::interrupt::Interrupt;
use super::session::{Session, Sources};
use super::{SIZE, command};
use crate::app::App;
use crate::commands::demo_snapshot;
use crate::fixture;
use crate::run::answers::NoLibrary;
use engine::Command;
use engine::snapshot::{Snapshot, TargetState};
use std::sync::{Arc, LazyLock};
use tokio::sync::{mpsc, watch};

static DEMO: LazyLock<Arc<Snapshot>> = LazyLock::new(|| Arc::new(demo_snapshot()));

struct Talk {
    dialog: Dialog,
    feed: watch::Sender<Arc<Snapshot>>,
    _control: mpsc::UnboundedReceiver<Command>,
}

impl Talk {
    fn on(snapshot: Arc<Snapshot>, ascii: bool) -> Self {
        let window = snapshot.asked.window;
        let (feed, fed) = watch::channel(snapshot);
        let (control, controls) = mpsc::unbounded_channel();
        let sources = Sources {
            feed: fed,
            control,
            library: Box::new(NoLibrary),
            ends_soon: false,
        };
        let app = App::new(SIZE, window, 1, false);
        let session = Session::new(app, sources, Interrupt::default());
        Talk {
            dialog: Dialog::new(session, ascii),
            feed,
            _control: controls,
        }
    }

    fn demo() -> Self {
        Self::on(Arc::clone(&DEMO), false)
    }

    /// Returns the answer to a line as one text. The state was printed before.
    fn ask(&mut self, line: &str) -> String {
        let lines = self.dialog.answer(line);
        for line in &lines {
            assert!(!line.chars().any(char::is_control), "{line:?}");
        }
        lines.join("\n")
    }
}

/// Returns the number of samples in the first line of an answer.
fn samples(answer: &str) -> u64 {
    let base = answer.lines().find(|line| line.contains(" sample"));
    let number = base.and_then(|line| line.split(' ').next());
    let number = number.map(|number| number.replace(',', ""));
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("{answer}"))
}

#[track_caller]
fn assert_base(answer: &str) {
    let is_state = |line: &&str| line.starts_with("FROZEN") || line.starts_with("FILE");
    let first = answer
        .lines()
        .find(|line| !is_state(line))
        .unwrap_or_default();
    for part in [" samples, lost ", "whole", "symbols", "filter"] {
        assert!(first.contains(part), "{part} in {answer}");
    }
}

#[test]
fn every_answer_begins_with_its_base() {
    let mut talk = Talk::demo();
    let first = talk.ask("top 3");
    assert!(first.starts_with("FILE "), "the state comes first: {first}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.pft");
    for command in command::COMMANDS {
        let words = match command.name {
            "sort" => "total",
            "find" => "e",
            "pid" => continue,
            "scope" | "focus" | "exclude" => continue,
            "quit" => continue,
            "mark" => continue,
            // Recordings have no probes.
            "probe" | "value" | "renew" | "unprobe" => continue,
            "explain" => "1",
            "page" | "callers" | "callees" | "code" => "1",
            "write" => file.to_str().expect("UTF-8"),
            _ => "",
        };
        if command.name == "back" {
            talk.ask("unit samples");
        }
        talk.ask("top");
        let answer = talk.ask(&format!("{} {words}", command.name));
        assert_base(&answer);
    }
}

#[test]
fn numbers_are_rows_of_the_last_list() {
    let mut talk = Talk::demo();
    let top = talk.ask("top 5");
    let second = top
        .lines()
        .find(|line| line.starts_with("  2  "))
        .expect("a row");
    let name = second.rsplit("  ").nth(1).expect("a name");
    let callers = talk.ask("callers 2");
    assert!(
        callers.contains(&format!("callers of {name}:")),
        "{callers}"
    );
    // Without an argument, it is the function of the last command.
    assert!(talk.ask("callees").contains(&format!("callees of {name}:")));
    talk.ask("top 5");
    let brief = crate::words::names::brief(name);
    assert!(talk.ask("explain 2").contains(&brief));
    assert!(talk.ask("explain 6").contains("rows 1 to 5"));
    assert!(talk.ask("explain x").contains("usage: explain ROW"));
    // The function may also be given by its name.
    assert!(talk.ask(&format!("page {name}")).contains("heaviest stack"));
}

#[test]
fn top_adds_up_and_is_sorted() {
    let mut talk = Talk::demo();
    talk.ask("status");
    talk.ask("unit samples");
    let all = talk.ask("top 7");
    let own = |line: &str| -> u64 {
        let number = line
            .split(" samples self")
            .next()
            .and_then(|text| text.rsplit(' ').next());
        number
            .and_then(|n| n.replace(',', "").parse().ok())
            .unwrap_or_else(|| panic!("{line}"))
    };
    let rows: Vec<u64> = all
        .lines()
        .filter(|line| line.contains(" self"))
        .map(own)
        .collect();
    assert_eq!(rows.iter().sum::<u64>(), samples(&all), "{all}");
    let listed = &rows[..7];
    assert!(listed.is_sorted_by(|a, b| a >= b));
    let by_name = talk.ask("sort name");
    assert_ne!(by_name, all);
    assert!(talk.ask("sort x").contains("usage: sort self|total"));
}

#[test]
fn a_process_is_counted_alone_and_back() {
    let mut talk = Talk::demo();
    let all = samples(&talk.ask("processes"));
    let one = talk.ask("scope 1");
    assert!(samples(&one) < all, "{one}");
    assert!(one.contains("system") && one.contains('['), "{one}");
    assert_eq!(samples(&talk.ask("top")), samples(&one));
    let back = talk.ask("back");
    assert_eq!(samples(&back), all);
    assert!(talk.ask("back").contains("nothing to undo"));
    assert!(talk.ask("pid 4294967295").contains("no process 4294967295"));
    talk.ask("top");
    assert!(talk.ask("scope 1").contains("focus 1"));
    let threads = talk.ask("threads 2");
    assert!(threads.contains(" more"), "{threads}");
    let two = talk.ask("scope 1 2");
    assert!(two.contains("2 threads"), "{two}");
}

#[test]
fn filters_change_numbers_and_find_does_not() {
    let mut talk = Talk::demo();
    let all = samples(&talk.ask("top 1"));
    assert_eq!(samples(&talk.ask("/exec")), all);
    let focused = talk.ask("focus 1");
    assert!(
        samples(&focused) < all && focused.contains("keeps "),
        "{focused}"
    );
    assert!(talk.ask("filter").contains("the filter is"));
    let nothing = talk.ask("exclude 1");
    assert!(
        nothing.starts_with("NO MATCH") && samples(&nothing) == 0,
        "{nothing}"
    );
    talk.ask("back");
    talk.ask("top");
    assert!(samples(&talk.ask("exclude 2")) < samples(&focused));
    assert_eq!(samples(&talk.ask("filter none")), all);
    assert!(talk.ask("filter pid:x").contains("usage: filter"));
    assert!(talk.ask("find (((").contains("at character"));
    assert!(talk.ask("find zzzzzzzz").contains("NO MATCH"));
}

#[test]
fn time_says_what_was_different_then() {
    let mut talk = Talk::demo();
    let all = talk.ask("time");
    assert!(all.contains(" UTC") && all.contains("most: "), "{all}");
    let third = talk.ask("time 3");
    assert!(
        third.contains(" against ")
            && third.contains("could be chance")
            && third.contains("surely different"),
        "{third}"
    );
    talk.ask("time");
    let stretch = talk.ask("window 3");
    assert!(samples(&stretch) < samples(&all));
    let clock = all
        .split(" seconds, ")
        .nth(1)
        .and_then(|text| text.get(..8))
        .expect("a time");
    assert!(
        talk.ask(&format!("time {clock} 5s"))
            .contains(" against after that")
    );
    assert!(talk.ask("time 99:99").contains("no time of day"));
    assert!(talk.ask("window 5s").contains("win 5s"));
    assert!(talk.ask("window all").contains("win all"));
    assert!(talk.ask("mark").contains("no new samples come in"));
}

#[test]
fn a_tree_goes_on_below_a_row() {
    let mut talk = Talk::demo();
    let tree = talk.ask("tree depth 2");
    assert!(
        tree.contains("level 2") && !tree.contains("level 3"),
        "{tree}"
    );
    let row = tree
        .lines()
        .position(|line| line.contains("and more below"));
    let number = tree
        .lines()
        .nth(row.expect("there is more"))
        .expect("it")
        .trim()
        .split(' ')
        .next()
        .expect("a number");
    let below = talk.ask(&format!("tree {number} depth 1"));
    assert!(
        below.contains("below ") && below.contains("level 1"),
        "{below}"
    );
    assert!(talk.ask("tree up depth 1").contains("callers under"));
    let name = talk.ask("top 1");
    assert!(talk.ask("tree up 1").contains("callers under"), "{name}");
    assert!(talk.ask("tree depth 0").contains("usage: tree"));
}

#[test]
fn a_baseline_is_compared_with() {
    let mut talk = Talk::demo();
    assert!(talk.ask("diff").contains("nothing to compare"));
    talk.ask("window 5s");
    talk.ask("baseline");
    talk.ask("window all");
    let diff = talk.ask("diff 3");
    assert!(diff.contains("A: ") && diff.contains("CPU-ms/s"), "{diff}");
    // The commands that follow count as before.
    assert!(!talk.ask("top").contains("DIFF"));
}

#[test]
fn what_is_counted_goes_to_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut talk = Talk::demo();
    for name in ["a.pft", "a.pb.gz", "a.folded", "a.svg", "a.html", "a b.txt"] {
        let path = folder.path().join(name);
        let said = talk.ask(&format!("write {}", path.display()));
        assert!(said.contains("wrote ") && path.exists(), "{said}");
        assert!(
            talk.ask(&format!("write {}", path.display()))
                .contains("exists")
        );
    }
    let path = folder.path().join("a.pft");
    assert!(
        talk.ask(&format!("write -f {}", path.display()))
            .contains("wrote ")
    );
    let hidden = folder.path().join("hidden.folded");
    let said = talk.ask(&format!("write -t -n {}", hidden.display()));
    assert!(said.contains("wrote "), "{said}");
    let lines = std::fs::read_to_string(&hidden).expect("it was written");
    assert!(
        lines.lines().all(|line| line.starts_with("command-")),
        "{lines}"
    );
    assert!(talk.ask("write -n a.txt").contains("text shows names"));
    assert!(talk.ask("write a.xyz").contains(".pft .pb.gz"));
    assert!(talk.ask("write").contains("usage: write"));
}

#[test]
fn states_are_said_when_they_change() {
    let mut talk = Talk::demo();
    assert!(talk.ask("top").starts_with("FILE "));
    assert!(!talk.ask("top").contains("FILE "));
    let mut ended = (**DEMO).clone();
    ended.generation = 99;
    ended.run.target = TargetState::Exited {
        words: "postgres[4121] was killed by SIGSEGV".into(),
        at_ns: 0,
    };
    talk.feed.send_replace(Arc::new(ended));
    let said = talk.ask("top 1");
    assert!(
        said.starts_with("EXITED postgres[4121] was killed by SIGSEGV at "),
        "{said}"
    );
    assert!(!talk.ask("top 1").contains("EXITED"));
    assert!(talk.ask("status").contains("EXITED"));
}

#[test]
fn a_frozen_view_stays() {
    let mut talk = Talk::on(Arc::new(fixture::tree_step(1)), false);
    let before = talk.ask("top 5");
    assert!(talk.ask("freeze").contains("FROZEN"));
    talk.feed.send_replace(Arc::new(fixture::tree_step(2)));
    let rows = |text: &str| {
        text.lines()
            .filter(|l| l.starts_with("  "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(rows(&talk.ask("top 5")), rows(&before));
    talk.ask("go on");
    assert_ne!(samples(&talk.ask("top 5")), 0);
}

#[test]
fn an_interrupt_stops_the_answer() {
    let mut talk = Talk::demo();
    talk.ask("top");
    let interrupt = talk.dialog.session.interrupt.clone();
    let presser = std::thread::spawn(move || {
        while !interrupt.press() {
            std::thread::yield_now();
        }
    });
    assert_eq!(talk.ask("wait 1h"), "stopped");
    presser.join().expect("it pressed");
    assert!(talk.ask("top").contains("self"));
}

#[test]
fn help_has_every_command() {
    let mut talk = Talk::demo();
    let help = talk.ask("help");
    for command in command::COMMANDS {
        assert!(help.contains(&format!("{}: {}", command.usage(), command.help)));
    }
    assert!(talk.ask("help c").contains("callers [ROW] (short: c)"));
    talk.ask("quit");
    assert!(talk.dialog.is_over);
}

#[test]
fn time_waited_is_not_called_cpus() {
    let mut talk = Talk::on(Arc::new(crate::fixture::waiting()), false);
    talk.ask("unit cpus");
    let answer = talk.ask("threads");
    // The first line has the cost of proftop itself.
    let threads: Vec<&str> = answer.lines().skip(1).collect();
    let threads = threads.join("\n");
    assert!(threads.contains("0.50 threads  worker[4123]"), "{threads}");
    assert!(threads.contains("lock 4.80s"), "{threads}");
    assert!(threads.contains("now lock since >112s"), "{threads}");
    let is_wrong = threads.contains("CPU") || threads.contains("kernel");
    assert!(!is_wrong, "{threads}");
}
