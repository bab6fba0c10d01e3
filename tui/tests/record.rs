//! `proftop record`, `report` and `export` as a user types them.

use crate::common;

use common::{BURN_FUNCTIONS, BURN_SHARES, burning};
use common::{band, burn_str, can_sample, list, number, proftop, reports, run, sum, text};
use profile::formats::pft;
use profile::{
    Cancel, Ending, Frame, FrameKind, Limits, ModuleId, NameState, NewSample, ProcessId, Query,
    Store,
};
use rustix::process::Signal;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use test_support::{Process, wait_until};

const FOLDED: &str = "\
postgres;main;exec;scan 60
postgres;main;exec;[unknown] 10
postgres;[stopped: read_fault];sort 30
";

fn piped(command: &mut Command, input: &[u8]) -> (Option<i32>, String, String) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let code = output.status.code();
    (code, text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_report_from_a_pipe_needs_no_rights() {
    let (code, out, _) = piped(&mut proftop(&["report", "-", "--tree"]), FOLDED.as_bytes());
    assert_eq!(code, Some(0));
    assert!(out.contains("[stopped: read fault]"), "{out}");
    assert!(out.contains(" 70.0    0.0     70"), "{out}");
    let (_, out, _) = piped(
        &mut proftop(&["report", "-", "--peek", "^exec$"]),
        FOLDED.as_bytes(),
    );
    assert!(out.contains("100.0%     70  | caller main"), "{out}");
    assert!(out.contains(" 85.7%     60  | callee scan"), "{out}");
    let filter = ["report", "-", "--filter", "scan", "--format", "json"];
    let (code, out, _) = piped(&mut proftop(&filter), FOLDED.as_bytes());
    assert_eq!(
        (code, sum(&reports(out.as_bytes()), "samples")),
        (Some(0), 60)
    );
    for which in ["--filter", "--peek"] {
        let none = ["report", "-", which, "nothing"];
        assert_eq!(piped(&mut proftop(&none), FOLDED.as_bytes()).0, Some(5));
    }
    let (code, _, error) = piped(&mut proftop(&["report", "-"]), b"a text of some words\n");
    assert_eq!(code, Some(1));
    assert!(
        error.contains("it is not a profile that proftop can read"),
        "{error}"
    );
}

#[test]
fn a_tree_shows_who_calls_whom() {
    const CHAINED: &str = "\
t;start;a1;a2;a3;main;less 40
t;start;a1;a2;a3;main;more 30
t;start;other 30
";
    let (_, out, _) = piped(&mut proftop(&["report", "-", "--tree"]), CHAINED.as_bytes());
    let column = |name: &str| {
        let found = out.lines().find_map(|line| line.find(name));
        found.unwrap_or_else(|| panic!("{name} is not in {out}"))
    };
    // Siblings are below each other, and callees are indented further.
    assert!(column("start") < column("a1 > "), "{out}");
    assert_eq!(column("a1 > "), column("other"), "{out}");
    assert!(column("a1 > ") < column("less"), "{out}");
    assert_eq!(column("less"), column("more"), "{out}");
    let short = "t;main;sort<one<two>> 30\n";
    for words in [["--tree"].as_slice(), &["--peek", "main"]] {
        let mut command = proftop(&["report", "-"]);
        let (_, out, _) = piped(command.args(words), short.as_bytes());
        assert!(out.contains("sort<…>"), "{words:?}: {out}");
    }
}

#[test]
fn formats_change_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pft");
    let name = file.to_str().unwrap();
    let (code, _, _) = piped(&mut proftop(&["export", "-", name]), FOLDED.as_bytes());
    assert_eq!(code, Some(0));
    let back = run(&mut proftop(&["export", name, "-", "--format", "folded"]));
    let mut lines: Vec<&str> = FOLDED.lines().collect();
    lines.sort_unstable();
    let out = text(&back.stdout);
    assert_eq!(out.lines().collect::<Vec<_>>(), lines);
    assert!(text(&back.stderr).contains("does not hold: time"));
    let packed = folder.path().join("a.pb.gz");
    let packed = packed.to_str().unwrap();
    run(&mut proftop(&["export", name, packed]));
    let back = run(&mut proftop(&["export", packed, "-", "--format", "folded"]));
    assert_eq!(text(&back.stdout), out);
    let again = run(&mut proftop(&["export", name, name]));
    assert_eq!(again.status.code(), Some(1), "never overwritten unasked");

    fs::write(&file, &fs::read(&file).unwrap()[..40]).unwrap();
    let cut = run(&mut proftop(&["report", name]));
    assert_eq!(cut.status.code(), Some(5));
    assert!(text(&cut.stdout).contains("cut off before its first samples"));
    let (code, _, error) = piped(&mut proftop(&["report", "-"]), b"\x7fELF\n");
    assert_eq!(code, Some(1));
    assert!(error.contains("cannot read standard input"), "{error}");
}

#[test]
fn an_export_can_hide_names_and_tell_threads_apart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pft");
    let name = file.to_str().unwrap();
    let comm = FOLDED.split(';').next().unwrap();
    let hidden = ["export", "-", name, "--hide-names"];
    assert_eq!(piped(&mut proftop(&hidden), FOLDED.as_bytes()).0, Some(0));
    let back = ["export", name, "-", "--format", "folded"];
    let out = text(&run(&mut proftop(&back)).stdout);
    assert!(
        out.starts_with("command-1;") && !out.contains(&format!("{comm};")),
        "{out}"
    );
    let by_thread = ["export", "-", "-", "--format", "folded", "--by-thread"];
    let (_, out, _) = piped(&mut proftop(&by_thread), FOLDED.as_bytes());
    assert!(out.starts_with(&format!("{comm}/1;")), "{out}");
}

/// The crate `profile` has its own list of the reasons in a recording: the two lists have to
/// agree, or a reason becomes `other`.
#[test]
fn every_reason_for_having_no_name_survives_a_recording() {
    for reason in profile::NoName::ALL {
        let mut store = Store::new(Limits::default());
        let frame = Frame {
            module: ModuleId(0),
            address: 1,
            kind: FrameKind::User,
        };
        store.add_sample(NewSample {
            time_ns: 0,
            cpu: 0,
            process: ProcessId(0),
            tid: 1,
            comm: "test",
            frames: &[frame],
            kernel_frames: 0,
            ending: Ending::Root,
            weight: 1,
        });
        let id = store.frames_to_name(1)[0];
        store.set_name(id, NameState::Unnamed(reason));
        let mut file = Vec::new();
        pft::write(&store.view(), &mut file).unwrap();
        let (store, _) = pft::read(&file[..], Limits::default()).unwrap();
        let selection = store.view().select(&Query::default(), &Cancel::new());
        let unnamed = selection.unwrap().completeness().unnamed;
        assert_eq!(unnamed, [(reason, 1)]);
    }
}

#[test]
fn speedscope_has_every_sample_under_its_name() {
    let hostile = "x\\\"</script><img onerror=a()>\u{2028}'&";
    let input = format!("{FOLDED}web;main;{hostile} 7\n");
    let export = ["export", "-", "-", "--format", "speedscope"];
    let (code, out, _) = piped(&mut proftop(&export), input.as_bytes());
    assert_eq!(code, Some(0));
    assert!(!out.contains("</script>"), "{out}");
    let file: serde_json::Value = serde_json::from_str(&out).expect("it is JSON");
    let frames = list(&file["shared"], "frames");
    let profiles = list(&file, "profiles");
    assert_eq!(profiles[0]["name"], "postgres");
    let mut lines = Vec::new();
    for profile in profiles {
        let weights = list(profile, "weights");
        let total: f64 = weights.iter().filter_map(|w| w.as_f64()).sum();
        assert_eq!(profile["endValue"].as_f64(), Some(total));
        for (stack, weight) in list(profile, "samples").iter().zip(weights) {
            let mut line = profile["name"].as_str().unwrap().to_string();
            for frame in stack.as_array().unwrap() {
                line += ";";
                line += frames[frame.as_u64().unwrap() as usize]["name"]
                    .as_str()
                    .unwrap();
            }
            lines.push(format!("{line} {weight}"));
        }
    }
    let mut wanted: Vec<&str> = input.lines().collect();
    wanted.sort_unstable();
    lines.sort_unstable();
    assert_eq!(lines, wanted);
}

#[test]
fn a_flame_graph_is_one_page_that_names_cannot_break() {
    let hostile = "x\\\"</script><img onerror=a()>\u{2028}'&";
    let input = format!("{FOLDED}web;main;{hostile} 7\n");
    let export = ["export", "-", "-", "--format", "html"];
    let (code, out, _) = piped(&mut proftop(&export), input.as_bytes());
    assert_eq!(code, Some(0));
    assert_eq!(out.matches("</script>").count(), 1, "{out}");
    assert!(!out.contains("<img") && !out.contains("http://") && !out.contains("https://"));
    let data = out
        .split_once("const profile = ")
        .unwrap()
        .1
        .split_once(";\nconst graph")
        .unwrap()
        .0;
    let data: serde_json::Value = serde_json::from_str(data).expect("it is JSON");
    let names = list(&data, "names");
    let box_of = |wanted: &str| {
        let boxes = list(&data, "rows")
            .iter()
            .flat_map(|row| row.as_array().unwrap());
        let mut named = boxes.filter(|b| names[b[3].as_u64().unwrap() as usize][0] == wanted);
        let samples = named.next().map(|b| b[2].as_u64().unwrap());
        samples.unwrap_or(0)
    };
    for (name, samples) in [("all", 107), ("exec", 70), ("scan", 60), (hostile, 7)] {
        assert_eq!(box_of(name), samples, "{name}");
    }
}

#[test]
fn a_change_that_is_no_chance_fails_where_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    };
    let a = file("a.folded", FOLDED);
    let b = file("b.folded", &FOLDED.replace("scan 60", "scan 600"));
    let diff = |words: &[&str]| run(&mut proftop(words));
    let same = diff(&["diff", &a, &a, "--fail-over", "0%"]);
    assert_eq!(same.status.code(), Some(0));
    let changed = diff(&["diff", &a, &b]);
    assert_eq!(changed.status.code(), Some(0));
    let out = text(&changed.stdout);
    assert!(out.contains("▲      +33.8      60.0      93.8"), "{out}");
    assert!(out.contains("yes   scan"), "{out}");
    assert_eq!(
        diff(&["diff", &a, &b, "--fail-over", "5%"]).status.code(),
        Some(3)
    );
    assert_eq!(
        diff(&["diff", &a, &b, "--fail-over", "50%"]).status.code(),
        Some(0)
    );
}

#[test]
fn a_recording_of_a_command_has_its_shares() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pft");
    let name = file.to_str().unwrap();
    let recorded = run(proftop(&["record", "-F", "499", "-o", name]).args(["--", burn_str(), "3"]));
    assert_eq!(
        recorded.status.code(),
        Some(0),
        "{}",
        text(&recorded.stderr)
    );
    let output = run(&mut proftop(&["report", name, "--format", "json"]));
    let reports = reports(&output.stdout);
    // The functions that they call are inlined into them, and have rows of their own.
    let total = |wanted: &str| -> u64 {
        let functions = reports.iter().flat_map(|report| list(report, "functions"));
        let named = functions.filter(|f| f["name"].as_str().is_some_and(|n| n.contains(wanted)));
        named.map(|function| number(function, "total")).sum()
    };
    let all: u64 = BURN_FUNCTIONS.iter().map(|name| total(name)).sum();
    // This holds however busy the machine is. The bands below depend on the number of samples.
    assert!(all > 50, "{all} samples of the work");
    for (name, share) in BURN_FUNCTIONS.into_iter().zip(BURN_SHARES) {
        let measured = total(name) as f64 / all as f64;
        let band = band(share, all as f64);
        assert!((measured - share).abs() < band, "{name}: {measured:.3}");
    }
    // The program ran as the user who runs this test, in some control group.
    let samples = |filter: &str| {
        let filter = ["report", name, "--format", "json", "--filter", filter];
        sum(
            &common::reports(&run(&mut proftop(&filter)).stdout),
            "samples",
        )
    };
    let everything = sum(&reports, "samples");
    let uid = rustix::process::getuid().as_raw();
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let line = passwd
        .lines()
        .find(|line| line.split(':').nth(2) == Some(&uid.to_string()));
    let user = line.map_or(uid.to_string(), |line| {
        line.split(':').next().unwrap().to_string()
    });
    assert_eq!(samples(&format!("user:{user}")), everything);
    assert_eq!(samples(&format!("!user:{user}")), 0);
    assert_eq!(samples("cgroup~^/"), everything);
}

#[test]
fn a_recording_is_written_in_the_format_of_its_name() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "a.folded",
        "b.folded.zst",
        "c.pb.gz",
        "d.pft.gz",
        "e.firefox.json.gz",
    ];
    for name in names {
        let path = folder.path().join(name);
        let path = path.to_str().unwrap();
        let recorded =
            run(proftop(&["record", "-F", "499", "-o", path]).args(["--", burn_str(), "1"]));
        let said = text(&recorded.stderr);
        assert_eq!(recorded.status.code(), Some(0), "{said}");
        assert_eq!(
            said.contains("does not hold"),
            !name.contains(".pft"),
            "{said}"
        );
        let reports = reports(&run(&mut proftop(&["report", path, "--format", "json"])).stdout);
        assert!(sum(&reports, "samples") > 20, "{name}");
        let functions = reports.iter().flat_map(|report| list(report, "functions"));
        let mut found = functions.filter_map(|function| function["name"].as_str());
        assert!(
            found.any(|found| found.contains(BURN_FUNCTIONS[0])),
            "{name}"
        );
    }
    let magic = |name: &str| fs::read(folder.path().join(name)).unwrap()[..2].to_vec();
    assert_eq!(magic("a.folded")[..], *b"bu");
    assert_eq!(magic("b.folded.zst"), [0x28, 0xb5]);
    assert_eq!(magic("d.pft.gz"), [0x1f, 0x8b]);
    let mut there: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    there.sort_unstable();
    assert_eq!(there, names, "nothing else is left there");
}

/// The output is a device that behaves like a file on a full disk.
#[test]
fn samples_are_kept_when_their_format_cannot_be_written() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let full = folder.path().join("full");
    let made = Command::new("mknod")
        .arg(&full)
        .args(["c", "1", "7"])
        .status();
    let opens = fs::File::options().write(true).open(&full).is_ok();
    if !made.is_ok_and(|made| made.success()) || !opens {
        return test_support::skip("needs the right to make a device");
    }
    let words = ["record", "-F", "499", "--format", "folded", "-o"];
    let record = run(proftop(&words).arg(&full).args(["--", burn_str(), "1"]));
    let said = text(&record.stderr);
    assert_eq!(record.status.code(), Some(1), "{said}");
    assert!(
        said.contains("the samples are in") && said.contains("full.pft"),
        "{said}"
    );
    let kept = folder.path().join("full.pft");
    let report = run(&mut proftop(&[
        "report",
        kept.to_str().unwrap(),
        "--format",
        "json",
    ]));
    assert!(sum(&reports(&report.stdout), "samples") > 0);
}

#[test]
fn a_recording_can_be_written_on_the_way_and_ends_when_interrupted() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (file, said) = (folder.path().join("a.pft"), folder.path().join("said"));
    let mut command = proftop(&["record", "-o", file.to_str().unwrap()]);
    let mut record = Process::start(command.stderr(fs::File::create(&said).unwrap()));
    let says = |words: &str| fs::read_to_string(&said).unwrap().contains(words);
    // The file has more than its header: a second has been written.
    wait_until("a block", || {
        fs::metadata(&file).is_ok_and(|file| file.len() > 12)
    });
    record.signal(Signal::USR2);
    wait_until("so far", || says("so far"));
    let so_far = fs::metadata(&file).unwrap().len();
    wait_until("more", || {
        fs::metadata(&file).is_ok_and(|file| file.len() > so_far)
    });
    record.signal(Signal::INT);
    assert_eq!(
        record.wait().unwrap().code(),
        Some(0),
        "{}",
        fs::read_to_string(&said).unwrap()
    );
    let mut reader = pft::Reader::new(fs::File::open(&file).unwrap()).unwrap();
    let mut store = Store::new(Limits::default());
    while reader.read_block(&mut store).unwrap() {}
    assert!(reader.is_finished() && reader.notes().is_empty());
    assert!(says(&format!(
        "proftop: {}",
        profile_count(store.stats().samples)
    )));
}

#[test]
fn a_command_that_goes_on_is_waited_for_and_that_is_said() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pft");
    let record = ["record", "-d", "1", "-o", file.to_str().unwrap()];
    let output = run(proftop(&record).args(["--", "sleep", "4"]));
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stderr);
    assert!(said.contains("the command goes on"), "{said}");
}

/// Formats a number of samples as reports do: `1,234 samples`.
fn profile_count(samples: u64) -> String {
    let digits = samples.to_string();
    let parts: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|part| std::str::from_utf8(part).unwrap())
        .collect();
    format!("{} sample", parts.join(","))
}

#[test]
fn a_recording_that_is_killed_is_whole_up_to_its_last_second() {
    if !can_sample() {
        return;
    }
    let _busy = burning(1);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pft");
    let mut record = proftop(&["record", "-F", "499", "-o", file.to_str().unwrap()]);
    let record = Process::start(record.stderr(Stdio::null()));
    let length = || fs::metadata(&file).map_or(0, |file| file.len());
    wait_until("something is written", || length() > 1000);
    // The first block may have few samples: tables are still being made.
    for _ in 0..2 {
        let before = length();
        wait_until("more is written", || length() > before);
    }
    record.signal(Signal::KILL);
    let report = run(&mut proftop(&[
        "report",
        file.to_str().unwrap(),
        "--format",
        "json",
    ]));
    assert!(sum(&reports(&report.stdout), "samples") > 20);
}

/// Compares two processes with the same work, both recorded now, and a file with one.
#[test]
fn a_side_of_the_comparison_can_be_recorded_now() {
    if !can_sample() {
        return;
    }
    let (one, two) = (burning(1), burning(1));
    let (a, b) = (
        format!("pid:{}@2s", one.pid()),
        format!("pid:{}@2s", two.pid()),
    );
    let diff = || run(&mut proftop(&["diff", &a, &b, "--fail-over", "90%"]));
    let mut output = diff();
    // The loads have the lowest priority, and may get no CPU time for two seconds.
    wait_until("both sides have samples", || {
        let has_none = output.status.code() == Some(5);
        if has_none {
            output = diff();
        }
        !has_none
    });
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(shown.contains("burn::burn_sixty"), "{shown}");
    assert!(!shown.contains("# A 0 samples"), "{shown}");
    let output = run(&mut proftop(&["diff", "pid:4194303@1s", &b]));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "proftop: no process 4194303\n");
    let output = run(&mut proftop(&["diff", "pid:12", &b]));
    assert_eq!(output.status.code(), Some(2));
}
