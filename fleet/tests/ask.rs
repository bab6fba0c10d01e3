//! Questions to a folder that the shipper has written: numbers against what was put into the spool, names
//! that are hostile, and folders that are something else.

use proftop_fleet::config::Labels;
use proftop_fleet::sinks::parquet::{self, Known, TableFile, Target};
use proftop_fleet::window::{Frame, Function, Host, Kind, Service, Stack, Window, ids};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const FLEET: &str = env!("CARGO_BIN_EXE_proftop-fleet");

/// Nanoseconds of a sample at 19 Hz, as the shipper writes them.
const PERIOD_NS: u64 = 1_000_000_000 / 19;

fn run(words: &[&str]) -> Output {
    Command::new(FLEET)
        .args(words)
        // No request is sent to object storage: the address is refused, as everybody on the way to
        // it could read.
        .envs([
            ("AWS_ACCESS_KEY_ID", "nobody"),
            ("AWS_SECRET_ACCESS_KEY", "nothing"),
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ])
        .env_remove("AWS_ALLOW_HTTP")
        .output()
        .expect("it runs")
}

fn json(words: &[&str]) -> Value {
    let output = run(&[words, &["--format", "json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// What goes wrong: the exit code, and one sentence.
fn refused(words: &[&str]) -> (i32, String) {
    let output = run(words);
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(said.lines().count(), 1, "{words:?}: {said}");
    assert!(said.starts_with("proftop-fleet: "), "{said}");
    assert!(output.stdout.is_empty(), "{words:?}");
    let text = said.trim_start_matches("proftop-fleet: ").trim_end();
    (output.status.code().expect("a code"), text.into())
}

/// Samples by service and stack, as `make_spool` has put them into a spool.
type Sums = BTreeMap<String, BTreeMap<String, u64>>;

/// Two hosts through spool and shipper into one folder.
struct Shipped {
    _folder: TempDir,
    data: PathBuf,
    /// By host.
    sums: BTreeMap<&'static str, Sums>,
}

impl Shipped {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let mut sums = BTreeMap::new();
        for (host, share, version) in [("db-01", "0", "1.2"), ("db-02", "30", "1.3")] {
            let spool = folder.path().join(host);
            let make = Path::new(FLEET)
                .with_file_name("examples")
                .join("make_spool");
            let made = Command::new(make)
                .arg(&spool)
                .args(["1", "3", host, "10", "40", share])
                .output()
                .expect("make_spool runs");
            let made: Value = serde_json::from_slice(&made.stdout).expect("JSON");
            let mut of_host = Sums::new();
            for window in made["windows"].as_array().expect("a list") {
                let stacks: Sums = serde_json::from_value(window["stacks"].clone()).expect("sums");
                for (service, stacks) in stacks {
                    for (stack, samples) in stacks {
                        *of_host
                            .entry(service.clone())
                            .or_default()
                            .entry(stack)
                            .or_default() += samples;
                    }
                }
            }
            sums.insert(host, of_host);
            let config = folder.path().join("ship.toml");
            let state = folder.path().join(format!("state-{host}"));
            let text = format!(
                "[spool]\ndir = {spool:?}\n[ship]\nstate = {state:?}\n[labels]\nversion = \"{version}\"\n[[sink]]\ntype = \"parquet\"\ndir = {data:?}\n"
            );
            std::fs::write(&config, text).expect("ours");
            let shipped = Command::new(FLEET)
                .args(["ship", "--once", "--as-root", "--config"])
                .arg(&config)
                .output()
                .expect("it runs");
            let said = String::from_utf8_lossy(&shipped.stderr);
            assert!(shipped.status.success(), "{said}");
        }
        Self {
            _folder: folder,
            data,
            sums,
        }
    }

    fn dir(&self) -> &str {
        self.data.to_str().expect("text")
    }

    /// Own and total samples of each function, and its hosts. Code without a name is left out.
    fn expected(
        &self,
        is_wanted: impl Fn(&str, &str) -> bool,
    ) -> BTreeMap<String, (u64, u64, u64)> {
        let mut functions: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
        for (host, services) in &self.sums {
            let mut of_host: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
            for (service, stacks) in services {
                if !is_wanted(host, service) {
                    continue;
                }
                for (stack, samples) in stacks {
                    let mut names: Vec<&str> = stack.split(';').collect();
                    let leaf = names[names.len() - 1];
                    of_host.entry(leaf).or_default().0 += samples;
                    names.sort_unstable();
                    names.dedup();
                    for name in names {
                        of_host.entry(name).or_default().1 += samples;
                    }
                }
            }
            for (name, (own, total)) in of_host {
                if name.starts_with('[') || name.starts_with("/usr/bin/") {
                    continue;
                }
                let sum = functions.entry(name.into()).or_default();
                *sum = (sum.0 + own, sum.1 + total, sum.2 + 1);
            }
        }
        functions
    }
}

/// The rows of `top` by the name of their function; those without a name are left out.
fn functions(document: &Value) -> BTreeMap<String, (u64, u64, u64)> {
    let mut functions = BTreeMap::new();
    for row in document["rows"].as_array().expect("a list") {
        let number = |key: &str| row[key].as_u64().expect(key);
        let Some(name) = row["function"].as_str() else {
            continue;
        };
        let seconds = row["self"].as_f64().expect("a number");
        let expected = number("self_samples") as f64 * PERIOD_NS as f64 / 1e9;
        assert!((seconds - expected).abs() < 1e-6, "{row}");
        let of = (number("self_samples"), number("samples"), number("hosts"));
        let before = functions.insert(name.to_string(), of);
        assert_eq!(before, None, "{name} is there twice");
    }
    functions
}

#[test]
fn functions_have_the_samples_that_were_put_into_the_spool() {
    let shipped = Shipped::new();
    let dir = shipped.dir();
    let all = json(&["top", dir, "--top", "1000"]);
    assert_eq!(functions(&all), shipped.expected(|_, _| true));
    // What has no name, and what is said of it and of stacks that are cut, adds up as well.
    let of_stacks = |is: &dyn Fn(&[&str]) -> bool| {
        let mut sum = 0;
        for (stack, samples) in shipped.sums.values().flat_map(|it| it.values()).flatten() {
            let names: Vec<&str> = stack.split(';').collect();
            sum += if is(&names) { *samples } else { 0 };
        }
        sum as f64 * PERIOD_NS as f64 / 1e9
    };
    let is_near = |key: &str, expected: f64| {
        let found = all[key].as_f64().expect(key);
        assert!((found - expected).abs() < 1e-6, "{key}: {found} {expected}");
        assert!(expected > 0.0);
    };
    is_near("total", of_stacks(&|_| true));
    is_near(
        "nameless",
        of_stacks(&|it| it[it.len() - 1].starts_with("/usr/bin/")),
    );
    is_near("cut", of_stacks(&|it| it[0].starts_with("[stopped")));
    assert_eq!(all["unknown"].as_f64(), Some(0.0));
    assert_eq!(all["hosts"].as_u64(), Some(2));
    // Windows 1 to 3 have lost 1, 2 and 0 samples.
    assert_eq!(all["lost_samples"].as_u64(), Some(6));
    let nameless: f64 = all["rows"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|it| it["function"].is_null())
        .map(|it| it["self"].as_f64().expect("a number"))
        .sum();
    is_near("nameless", nameless);

    let one = json(&[
        "top",
        dir,
        "--top",
        "1000",
        "--service",
        "nginx",
        "--host",
        "db-02",
    ]);
    let expected = shipped.expected(|host, service| host == "db-02" && service == "nginx");
    assert_eq!(functions(&one), expected);
    let first = json(&["top", dir, "--top", "1", "--service", "nginx"]);
    assert_eq!(first["rows"][0]["function"], "regression");
    assert_eq!(first["rows"].as_array().map(Vec::len), Some(1));

    let by = json(&["top", dir, "--top", "1000", "--by", "service,host"]);
    for row in by["rows"].as_array().expect("a list") {
        let (host, service) = (row["host"].as_str(), row["service"].as_str());
        let Some(name) = row["function"].as_str() else {
            continue;
        };
        let of = shipped.expected(|h, s| (Some(h), Some(s)) == (host, service));
        assert_eq!(row["samples"].as_u64(), Some(of[name].1), "{row}");
        let sums = &shipped.sums[host.expect("a host")][service.expect("a service")];
        let share = of[name].1 as f64 / sums.values().sum::<u64>() as f64;
        assert!(
            (row["total_share"].as_f64().expect("a share") - share).abs() < 1e-9,
            "{row}"
        );
    }

    hosts_of_a_function(&shipped);
    compacted_samples_are_the_same(&shipped);
    commands_of_the_page_are_understood(&shipped);
    stacks_of_a_function(&shipped);
    what_is_not_there_is_told(&shipped);
}

fn hosts_of_a_function(shipped: &Shipped) {
    let hosts = json(&[
        "hosts",
        shipped.dir(),
        "--function",
        "regression",
        "--service",
        "nginx",
    ]);
    let rows = hosts["rows"].as_array().expect("a list");
    assert_eq!(rows[0]["host"], "db-02", "it is hot there: {hosts}");
    assert_eq!(rows.len(), 2);
    for row in rows {
        let host = row["host"].as_str().expect("a host");
        let of = shipped.expected(|h, s| h == host && s == "nginx");
        assert_eq!(row["samples"].as_u64(), Some(of["regression"].1));
        let all: u64 = shipped.sums[host]["nginx"].values().sum();
        let share = of["regression"].0 as f64 / all as f64;
        assert!(
            (row["self_share"].as_f64().expect("a share") - share).abs() < 1e-9,
            "{row}"
        );
        assert_eq!(row["recorded_ms"].as_u64(), Some(180_000));
        assert_eq!(row["cores"].as_u64(), Some(4));
        assert_eq!(row["kernel"], "6.18.44");
    }
}

/// `flame` writes the stacks that have the function, with their samples, and nothing else.
fn stacks_of_a_function(shipped: &Shipped) {
    let folded = shipped.data.join("../nginx.folded");
    let path = folded.to_str().expect("text");
    let words = [
        "flame",
        shipped.dir(),
        "--function",
        "regression",
        "-o",
        path,
    ];
    let output = run(&words);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = std::fs::read_to_string(&folded).expect("it is there");
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for line in text.lines() {
        let (stack, samples) = line.rsplit_once(' ').expect("a count");
        *found.entry(stack.into()).or_default() += samples.parse::<u64>().expect("a count");
    }
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for (service, stacks) in shipped.sums.values().flatten() {
        for (stack, samples) in stacks {
            if stack.split(';').any(|it| it == "regression") {
                *expected.entry(format!("{service};{stack}")).or_default() += samples;
            }
        }
    }
    assert_eq!(found, expected);
    let (code, said) = refused(&words);
    assert!(code == 2 && said.contains("--force"), "{said}");
    // The recording has the machines apart.
    let recording = shipped.data.join("../nginx.pft");
    let path = recording.to_str().expect("text");
    let output = run(&["flame", shipped.dir(), "--service", "nginx", "-o", path]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("a PID that is made up"), "{said}");
    // `proftop open` reads the same from the standard output.
    let address = format!("parquet+{}?service=nginx", shipped.dir());
    let output = run(&["open", &address, "--output=-"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    // A file is replaced with --force only, and by the whole of the new one.
    let (code, said) = refused(&["open", &address, "-o", path]);
    assert!(code == 2 && said.contains("--force"), "{said}");
    let forced = run(&["open", &address, "-o", path, "--force"]);
    assert!(forced.status.success(), "{forced:?}");
    let written = std::fs::read(&recording).expect("it is there");
    let limits = profile::Limits {
        keep: std::time::Duration::from_secs(1 << 32),
        ..profile::Limits::default()
    };
    for bytes in [written, output.stdout] {
        let (store, _) = profile::formats::pft::read(&bytes[..], limits).expect("it is one");
        let view = store.view();
        for (host, services) in &shipped.sums {
            let filter = format!("host:{host}").parse().expect("a filter");
            let query = profile::Query {
                filter,
                ..profile::Query::default()
            };
            let selection = view
                .select(&query, &profile::Cancel::new())
                .expect("nobody cancels it");
            let (_, stacks) = selection.process_stacks();
            let samples: u64 = stacks.iter().map(|it| it.samples).sum();
            assert_eq!(samples, services["nginx"].values().sum::<u64>(), "{host}");
        }
    }
}

/// Without what says nothing of samples.
fn numbers(mut document: Value) -> Value {
    let rows = document["rows"].as_array_mut().expect("a list");
    for number in rows
        .iter_mut()
        .flat_map(|it| it.as_object_mut().expect("a row").values_mut())
    {
        // Sums in another order differ in their last digits.
        if let Some(exact) = number.as_f64() {
            *number = Value::from((exact * 1e6).round());
        }
    }
    rows.sort_by_key(|it| it.to_string());
    document["rows"].take()
}

fn compacted_samples_are_the_same(shipped: &Shipped) {
    let dir = shipped.dir();
    let out = shipped.data.join("../compact");
    let out = out.to_str().expect("text");
    let done = run(&["compact", dir, "-o", out]);
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    for words in [
        &["top", "--top", "1000", "--by", "host,version"][..],
        &["hosts", "--function", "nginx::inlined", "--top", "1000"],
        &[
            "diff",
            "--a",
            "version=1.2",
            "--b",
            "version=1.3",
            "--top",
            "1000",
        ],
    ] {
        let ask = |dir| numbers(json(&[&words[..1], &[dir], &words[1..]].concat()));
        assert_eq!(ask(dir), ask(out), "{words:?}");
    }
    let (code, said) = refused(&["compact", dir, "-o", out]);
    assert!(code == 2 && said.contains("is there already"), "{said}");
}

/// Each command that docs/fleet.md has, with the names that there are here.
fn commands_of_the_page_are_understood(shipped: &Shipped) {
    let page = include_str!("../../docs/fleet.md");
    let questions = ["top", "hosts", "diff", "flame", "compact", "rollup"];
    let lines = page
        .lines()
        .filter_map(|it| it.strip_prefix("    proftop-fleet "));
    let lines: Vec<&str> = lines
        .filter(|it| {
            questions
                .iter()
                .any(|question| it.starts_with(&format!("{question} ")))
        })
        .collect();
    assert!(lines.len() >= 8, "{lines:?}");
    let made = tempfile::tempdir().expect("a folder");
    let path = |name: &str| made.path().join(name).display().to_string();
    std::fs::write(path("ch.token"), "Basic dXNlcjpwYXNzd29yZA==").expect("ours");
    // What is made of whole days is typed in write.rs.
    for line in lines.iter().filter(|it| !it.contains("/mnt/days")) {
        let line = line.split(" > ").next().unwrap_or(line);
        let here = line
            .replace("/mnt/profiles", shipped.dir())
            .replace("parse_request", "regression")
            .replace("parse.pft", &path("parse.pft"))
            .replace("/mnt/compact", &path("compact"))
            .replace("/mnt/hours", &path("hours"))
            .replace("/etc/ch.token", &path("ch.token"))
            // Nobody listens there.
            .replace("127.0.0.1:8123", "127.0.0.1:1")
            .replace("ch.example:8443", "127.0.0.1:1");
        let words: Vec<&str> = here.split_whitespace().collect();
        if line.contains("clickhouse+") && !line.contains("--print") {
            let (code, said) = refused(&words);
            assert!(
                code == 1 && said.starts_with("ClickHouse at http"),
                "{line}: {said}"
            );
            continue;
        }
        if line.contains(" s3://") {
            let (code, said) = refused(&words);
            assert!(
                code == 1 && said.contains("set AWS_ALLOW_HTTP"),
                "{line}: {said}"
            );
            continue;
        }
        let output = run(&words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {said}");
    }
    assert!(made.path().join("hours/rollup_h").is_dir());
}

fn what_is_not_there_is_told(shipped: &Shipped) {
    let dir = shipped.dir();
    let [of_nobody, of_speed] =
        ["service=apache", "speed=1"].map(|query| format!("parquet+{dir}?{query}"));
    for (words, code, part) in [
        (
            &["open", &of_nobody, "--output=-"][..],
            1,
            "most have nginx",
        ),
        (&["open", &of_speed, "--output=-"], 2, "is not one of since"),
        (
            &["open", "parquet+s3://bucket/a", "--output=-"],
            1,
            "set AWS_ALLOW_HTTP",
        ),
        (
            &["open", "parquet+s3:///a", "--output=-"],
            2,
            "is no name of a bucket",
        ),
        (
            &["open", &of_nobody, "--output=-", "--tenant", "x"],
            2,
            "for a server, not for a folder",
        ),
        (
            &["top", dir, "--service", "apache"][..],
            1,
            "most have nginx",
        ),
        (&["top", dir, "--event", "off-cpu"], 1, "they count cpu"),
        (
            &["top", dir, "--since", "2001-01-01", "--until", "2001-01-02"],
            1,
            "no samples of that time",
        ),
        (&["hosts", dir, "--function", "Leaf_3"], 1, "leaf_3"),
        (
            &["hosts", dir, "--function", "xyzzy"],
            1,
            "no function is called xyzzy",
        ),
        (
            &["top", dir, "--since", "yesterday"],
            2,
            "write 1h for an hour ago",
        ),
        (
            &["top", dir, "--since", "1h", "--until", "2h"],
            2,
            "--since is not before",
        ),
        (
            &["top", dir, "--service", "a\u{1b}[31m"],
            2,
            "control character",
        ),
        (&["top", dir, "--rows-max", "10"], 1, "--rows-max"),
        (&["top", dir, "--engine", "spark"], 2, "--print"),
        (&["flame", dir, "-o", "x.docx"], 2, ".pft"),
        (
            &["diff", dir, "--a", "host=db-01", "--b", "host=db-09"],
            1,
            "--b: no samples",
        ),
        (
            &["diff", dir, "--a", "host=db-01", "--b", "service=nginx"],
            2,
            "on both sides",
        ),
        (
            &["diff", dir, "--a", "speed=1", "--b", "host=db-01"],
            2,
            "before the =",
        ),
    ] {
        let (found, said) = refused(words);
        assert_eq!(found, code, "{words:?}: {said}");
        assert!(said.contains(part), "{words:?}: {said}");
    }
    let diff = json(&[
        "diff",
        dir,
        "--a",
        "host=db-01",
        "--b",
        "host=db-02",
        "--service",
        "nginx",
    ]);
    let notes = diff["notes"].to_string();
    assert!(notes.contains("warning: A is one host"), "{notes}");
    assert_eq!(diff["rows"][0]["function"], "regression", "{diff}");
    assert!(diff["rows"][0]["self_half"].is_null());
}

/// A window of a host, with one function and one service of these names.
fn window(host: &str, service: &str, function: &str) -> Window {
    let mut frame = Frame {
        id: 0,
        kind: Kind::Native,
        module: function.into(),
        path: "".into(),
        build_id: [7; 20].into(),
        address: 16,
        functions: [Function {
            name: function.into(),
            file: function.into(),
            line: 3,
        }]
        .into(),
    };
    frame.id = ids::frame(&frame);
    let stack = Stack {
        id: ids::stack([frame.id].into_iter()),
        frames: vec![0],
    };
    Window {
        number: 1,
        host: Host {
            name: host.into(),
            kernel: function.into(),
            ..Host::default()
        },
        begin_ms: 1_795_269_600_000,
        duration_ms: 60_000,
        event: "cpu".into(),
        unit: "samples".into(),
        period_ns: PERIOD_NS,
        rate_hz: 19,
        frames: vec![frame],
        stacks: vec![stack],
        services: vec![Service {
            name: service.into(),
            version: service.into(),
            container: String::new(),
            samples: vec![(0, 5)],
        }],
        ..Window::default()
    }
}

/// Writes the files of a host by the encoder.
fn write(dir: &Path, host: &str, service: &str, function: &str) {
    let window = window(host, service, function);
    let place = TableFile {
        to: &Target::Folder(dir.into()),
        date: "2026-11-21",
        hour: 14,
        name: &format!("{host}-1"),
    };
    parquet::write(
        &place,
        &[window],
        &Labels::default(),
        0,
        &mut Known::default(),
    )
    .expect("it is written");
}

#[test]
fn a_comparison_says_under_which_kernels_each_side_was_sampled() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().to_str().expect("UTF-8");
    write(folder.path(), "db-01", "nginx", "old");
    write(folder.path(), "db-02", "nginx", "new");
    let diff = json(&["diff", dir, "--a", "host=db-01", "--b", "host=db-02"]);
    assert_eq!(diff["a"]["kernels"][0], "old ", "{diff}");
    assert_eq!(diff["b"]["kernels"][0], "new ", "{diff}");
    let notes = diff["notes"].to_string();
    assert!(notes.contains("kernels differ: A old , B new "), "{notes}");
}

#[test]
fn a_host_is_known_in_all_of_its_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let window = |number: u64, minute: i64| {
        let mut window = window("db-01", "nginx", "main");
        window.number = number;
        window.begin_ms += minute * 60_000;
        window
    };
    // The agent did not run from 14:01 to 14:14.
    let place = TableFile {
        to: &Target::Folder(folder.path().into()),
        date: "2026-11-21",
        hour: 14,
        name: "x-1",
    };
    let windows = [window(1, 0), window(2, 14)];
    parquet::write(
        &place,
        &windows,
        &Labels::default(),
        0,
        &mut Known::default(),
    )
    .expect("it is written");
    let dir = folder.path().to_str().expect("text");
    let hosts = json(&[
        "hosts",
        dir,
        "--function",
        "main",
        "--since",
        "2026-11-21T14:10",
    ]);
    assert_eq!(hosts["rows"][0]["samples"].as_u64(), Some(5), "{hosts}");
    assert_eq!(hosts["rows"][0]["recorded_ms"].as_u64(), Some(120_000));
    let (code, said) = refused(&[
        "top",
        dir,
        "--since",
        "2026-11-21T14:02",
        "--until",
        "2026-11-21T14:03",
    ]);
    assert!(
        code == 1
            && said.contains("those nearby are of 2026-11-21 14:00:00 to 2026-11-21 14:14:00"),
        "{said}"
    );
    // A column that is named twice is one column.
    let top = json(&["top", dir, "--by", "host,service,host"]);
    assert_eq!(top["rows"][0]["samples"].as_u64(), Some(10), "{top}");
    let (code, said) = refused_at_once(&["top", dir, "--top", "0"]);
    assert!(code == 2 && said.contains("from 1 to"), "{said}");
}

/// What is refused by the reader of options, in several lines.
fn refused_at_once(words: &[&str]) -> (i32, String) {
    let output = run(words);
    let said = String::from_utf8(output.stderr).expect("text");
    (output.status.code().expect("a code"), said)
}

#[test]
fn an_answer_of_many_rows_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let make = Path::new(FLEET)
        .with_file_name("examples")
        .join("make_fleet");
    let made = Command::new(make)
        .arg(folder.path())
        .args(["2", "1", "1", "60000", "60000", "2", "0"])
        .output()
        .expect("it runs");
    assert!(made.status.success(), "{made:?}");
    let dir = folder.path().to_str().expect("text");
    let top = json(&["top", dir, "--top", "100000"]);
    assert!(top["rows"].as_array().is_some_and(|it| it.len() > 10_000));
}

#[test]
fn no_name_writes_to_the_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    // Also a folder whose name has what patterns and URLs have.
    let dir = folder.path().join("a*b[c] %41?'\"é");
    let hostile = "x\u{1b}]0;owned\u{7}\n\r\u{9b}31m\u{202e}\"',\t{{where}}";
    write(&dir, hostile, hostile, hostile);
    let dir = dir.to_str().expect("text");
    let out = folder.path().join("out.pft");
    let out = out.to_str().expect("text");
    let asked: [&[&str]; 5] = [
        &["top", dir, "--by", "host,service,version"],
        &["top", dir, "--by", "host", "--format", "csv"],
        &["top", dir, "--by", "host", "--format", "json"],
        &["hosts", dir, "--function", "x"],
        &["flame", dir, "-o", out],
    ];
    for words in asked {
        let output = run(words);
        for bytes in [output.stdout, output.stderr] {
            let text = String::from_utf8(bytes).expect("text");
            let is_safe = |it: char| it == '\n' || !(it.is_control() || it == '\u{202e}');
            assert!(text.chars().all(is_safe), "{words:?}: {text:?}");
            if words.contains(&"csv") && !text.is_empty() {
                assert!(text.lines().count() <= 3, "{text}");
            }
        }
    }
}

#[test]
fn a_folder_of_something_else_is_told_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("data");
    let text = dir.to_str().expect("text");
    let (code, said) = refused(&["top", text]);
    assert!(code == 1 && said.contains("cannot look into"), "{said}");
    let (code, said) = refused(&["top"]);
    assert!(code == 2 && said.contains("a folder is missing"), "{said}");
    std::fs::create_dir(&dir).expect("ours");
    let (code, said) = refused(&["top", text]);
    assert!(code == 1 && said.contains("has no samples"), "{said}");
    write(&dir, "db-01", "nginx", "main");
    let file = |table: &str| match table {
        "samples" => dir.join("samples/date=2026-11-21/hour=14/db-01-1.parquet"),
        table => dir.join(format!("{table}/date=2026-11-21/db-01-1.parquet")),
    };
    let whole = std::fs::read(file("samples")).expect("it is there");
    let named = |it: &str| format!("{it} is damaged");
    let samples = file("samples").display().to_string();
    for bytes in [
        &whole[..whole.len() / 2],
        &whole[..3],
        b"",
        b"PAR1 is no file of Parquet PAR1",
    ] {
        std::fs::write(file("samples"), bytes).expect("ours");
        let (code, said) = refused(&["top", text]);
        assert!(code == 1 && said.contains(&named(&samples)), "{said}");
    }
    // Another table in its place.
    std::fs::copy(file("frames"), file("samples")).expect("ours");
    let (code, said) = refused(&["top", text]);
    assert!(
        code == 1 && said.contains("has no column begin_ms"),
        "{said}"
    );
    // Each byte of it turned over: it is read as it is, or refused in a sentence.
    let mut refusals = 0;
    for at in (0..whole.len()).step_by(whole.len() / 20) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        std::fs::write(file("samples"), bytes).expect("ours");
        let output = run(&["top", text]);
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => {}
            Some(1) => {
                refusals += 1;
                assert_eq!(said.lines().count(), 1, "byte {at}: {said}");
            }
            other => panic!("byte {at}: {other:?} {said}"),
        }
    }
    assert!(refusals > 0);
    std::fs::write(file("samples"), whole).expect("ours");
    // A pipe that nobody writes into would be waited for.
    let pipe = file("stacks").with_file_name("pipe.parquet");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|it| it.success()));
    let (code, said) = refused(&["top", text]);
    assert!(code == 1 && said.contains("is no file"), "{said}");
    std::fs::remove_file(pipe).expect("ours");
    std::fs::remove_dir_all(dir.join("frames")).expect("ours");
    let (code, said) = refused(&["top", text]);
    assert!(code == 1 && said.contains("nothing in"), "{said}");
}

#[test]
fn sql_is_printed_and_nothing_is_run() {
    for (engine, word) in [
        ("embedded", "unnest("),
        ("spark", "explode("),
        ("ballista", "CREATE EXTERNAL TABLE"),
        ("duckdb", "read_parquet("),
    ] {
        for question in ["top", "hosts", "diff", "flame"] {
            let mut words = vec![
                question,
                "/nowhere/it's",
                "--engine",
                engine,
                "--print",
                "--service",
                "o'brien",
            ];
            match question {
                "hosts" => words.extend(["--function", "main"]),
                "diff" => words.extend(["--a", "version=1", "--b", "1h..now"]),
                _ => {}
            }
            let output = run(&words);
            let sql = String::from_utf8(output.stdout).expect("text");
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            assert!(sql.contains(word) && !sql.contains("{{"), "{sql}");
            let escaped = if engine == "spark" {
                r"o\'brien"
            } else {
                "o''brien"
            };
            assert!(sql.contains(escaped), "{sql}");
        }
    }
}
