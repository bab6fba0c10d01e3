//! `compact` and `rollup`: what they write, and what is left when they are ended.

use arrow::array::AsArray as _;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const FLEET: &str = env!("CARGO_BIN_EXE_proftop-fleet");

/// A folder of samples that are generated, from 14:00 on 2026-11-21, and a place beside it.
struct Made {
    folder: TempDir,
    data: PathBuf,
}

impl Made {
    fn new(hosts: &str, minutes: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let make = Path::new(FLEET)
            .with_file_name("examples")
            .join("make_fleet");
        let made = Command::new(make)
            .arg(&data)
            .args([hosts, minutes, "2", "20", "50", "2", "0"])
            .output()
            .expect("make_fleet runs");
        assert!(made.status.success(), "{made:?}");
        Self { folder, data }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn command(&self, question: &str, more: &[&str]) -> Command {
        let mut command = Command::new(FLEET);
        command.arg(question).arg(&self.data).arg("-o");
        command.arg(self.out()).args(more);
        command
    }

    fn run(&self, question: &str, more: &[&str]) -> Output {
        self.command(question, more).output().expect("it runs")
    }

    /// What is beside the data.
    fn names(&self) -> Vec<String> {
        names(self.folder.path())
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let names = entries.map(|it| it.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|it| it.into_string().expect("text")).collect();
    names.sort();
    names
}

/// Each function of each host, with its samples. Seconds differ in their last digits, as sums in another order do.
fn top(folder: &Path) -> Vec<String> {
    let words = ["--format", "json", "--top", "1000", "--by", "host"];
    let mut command = Command::new(FLEET);
    command.arg("top").arg(folder).args(words);
    let done = command.output().expect("it runs");
    assert!(done.status.success(), "{}", told(&done));
    let document: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let row = |it: &Value| {
        let keys = ["host", "function", "module", "samples", "self_samples"];
        keys.map(|key| it[key].to_string()).join(" ")
    };
    let rows = document["rows"].as_array().expect("a list").iter();
    let mut rows: Vec<String> = rows.map(row).collect();
    rows.sort();
    assert!(!rows.is_empty());
    rows
}

/// The numbers of rows of the files of samples, each of which must be sorted.
fn rows_of_sorted_files(folder: &Path) -> Vec<usize> {
    let mut counts = Vec::new();
    for date in names(&folder.join("samples")) {
        let date = folder.join("samples").join(date);
        for hour in names(&date) {
            for name in names(&date.join(&hour)) {
                let file = File::open(date.join(&hour).join(name)).expect("a file");
                let reader = ParquetRecordBatchReaderBuilder::try_new(file)
                    .and_then(ParquetRecordBatchReaderBuilder::build)
                    .expect("Parquet");
                let mut keys = Vec::new();
                for batch in reader {
                    let batch = batch.expect("rows");
                    let texts = |column: &str| {
                        let column = batch.column_by_name(column).expect("a column");
                        let column = cast(column, &DataType::Utf8).expect("texts");
                        column.as_string::<i32>().clone()
                    };
                    let [service, version, host] = ["service", "version", "host"].map(texts);
                    let stack = batch.column_by_name("stack_id").expect("a column");
                    let begin = batch.column_by_name("begin_ms").expect("a column");
                    let stack = stack.as_primitive::<UInt64Type>();
                    let begin = begin.as_primitive::<Int64Type>();
                    keys.extend((0..batch.num_rows()).map(|row| {
                        (
                            [&service, &version].map(|it| it.value(row).to_string()),
                            stack.value(row),
                            host.value(row).to_string(),
                            begin.value(row),
                        )
                    }));
                }
                assert!(keys.is_sorted());
                counts.push(keys.len());
            }
        }
    }
    counts
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into()
}

fn start(mut command: Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .status();
    assert!(sent.is_ok_and(|it| it.success()));
}

#[test]
fn a_day_has_the_stacks_of_its_samples_and_no_other_day_has_any() {
    // Eleven hours, which go beyond midnight.
    let made = Made::new("1", "660");
    let before = top(&made.data);
    let done = made.run("compact", &[]);
    assert!(done.status.success(), "{}", told(&done));
    for table in ["samples", "stacks", "frames", "hosts"] {
        let dates = names(&made.out().join(table));
        assert_eq!(dates, ["date=2026-11-21", "date=2026-11-22"], "{table}");
    }
    assert_eq!(top(&made.out()), before);
    // An hour to a file: 14:00 to 01:00.
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains(" rows in 11 files"), "{said}");
    assert_eq!(made.names(), ["data", "out"]);
    std::fs::remove_dir_all(made.out()).expect("it is there");
    let done = made.run("compact", &["--until", "2026-11-22"]);
    assert!(done.status.success(), "{}", told(&done));
    assert_eq!(names(&made.out().join("stacks")), ["date=2026-11-21"]);
    std::fs::remove_dir_all(made.out()).expect("it is there");

    // docs/fleet.md puts days that are compacted in the place of the old ones: its lines are typed.
    let page = include_str!("../../docs/fleet.md");
    let lines = page.lines().filter_map(|it| it.strip_prefix("    "));
    let lines = lines.skip_while(|it| !it.contains("/mnt/days"));
    let mut script = String::new();
    for line in lines {
        script += &format!("{line}\n");
        if line.ends_with("done; done") {
            break;
        }
    }
    let script = script
        .replace("proftop-fleet", FLEET)
        .replace("/mnt/days", &made.out().display().to_string())
        .replace("/mnt/profiles", &made.data.display().to_string());
    let done = Command::new("sh").args(["-euc", &script]).output();
    let done = done.expect("it runs");
    assert!(done.status.success(), "{script}\n{}", told(&done));
    assert_eq!(top(&made.data), before);
    let hour = made.data.join("samples/date=2026-11-22/hour=00");
    assert_eq!(names(&hour), ["compact-samples.parquet"]);
}

#[test]
fn hours_of_a_rollup_are_whole() {
    let made = Made::new("2", "90");
    let rows = |words: &[&str]| -> String {
        let done = made.run("rollup", words);
        assert!(done.status.success(), "{}", told(&done));
        std::fs::remove_dir_all(made.out()).expect("it is there");
        let said = String::from_utf8(done.stdout).expect("text");
        said.split(": ").nth(1).expect("numbers").into()
    };
    let all = rows(&[]);
    assert_eq!(rows(&["--since", "2026-11-21T14:20"]), all);
    let first = rows(&["--until", "2026-11-21T15:00"]);
    assert_ne!(first, all);
    assert_eq!(rows(&["--until", "2026-11-21T15:20"]), first);
    let done = made.run("rollup", &["--since", "2026-11-21T17:00"]);
    assert_eq!(done.status.code(), Some(1), "{}", told(&done));
    assert_eq!(made.names(), ["data"]);
}

#[test]
fn who_is_ended_leaves_nothing_and_who_is_killed_nothing_that_counts() {
    let made = Made::new("4", "120");
    let before = top(&made.data);
    let mut ended = 0;
    for (name, code, question) in [
        ("INT", Some(130), "compact"),
        ("TERM", Some(143), "rollup"),
        ("KILL", None, "compact"),
        ("KILL", None, "rollup"),
    ] {
        let child = start(made.command(question, &[]));
        // Until it has begun to write.
        let part = made.folder.path().join(".out.part");
        for _ in 0..600 {
            if part.join(".lock").exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        signal(&child, name);
        let done = child.wait_with_output().expect("it ends");
        if done.status.success() {
            // It was done before the signal came.
            std::fs::remove_dir_all(made.out()).expect("it is there");
            continue;
        }
        ended += 1;
        assert_eq!(done.status.code(), code, "{name}: {}", told(&done));
        assert!(!made.out().exists(), "{name}");
        assert!(code.is_none() || !part.exists(), "{name}");
    }
    assert!(ended > 0, "all of them were done before they were ended");
    assert_eq!(top(&made.data), before);
    // The next run finds what was left, and is not disturbed by it.
    let done = made.run("compact", &[]);
    assert!(done.status.success(), "{}", told(&done));
    assert_eq!(made.names(), ["data", "out"]);
    assert_eq!(top(&made.out()), before);
}

/// A table has more files than a process may have open.
#[test]
fn few_open_files_are_enough_for_many_files() {
    let made = Made::new("300", "2");
    let limited = |words: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 150; exec \"$0\" \"$@\"", FLEET]);
        let done = command.args(words).output().expect("it runs");
        assert!(done.status.success(), "{}", told(&done));
    };
    let (data, out) = (made.data.to_str().expect("UTF-8"), made.out());
    limited(&["top", data]);
    limited(&["compact", data, "-o", out.to_str().expect("UTF-8")]);
    assert_eq!(top(&out), top(&made.data));
}

#[test]
fn of_two_at_once_one_writes() {
    let made = Made::new("4", "60");
    let both = [0, 1].map(|_| start(made.command("compact", &[])));
    let both = both.map(|it| it.wait_with_output().expect("it ends"));
    let done = both.iter().filter(|it| it.status.success()).count();
    assert_eq!(done, 1, "{both:?}");
    let other = both.iter().find(|it| !it.status.success());
    let said = told(other.expect("one of them"));
    let is_fine = |part: &str| said.contains(part);
    assert!(
        is_fine("another proftop-fleet is writing") || is_fine("is there already"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(made.names(), ["data", "out"]);
    assert_eq!(top(&made.out()), top(&made.data));
}

#[test]
fn samples_in_the_folder_of_another_day_are_not_left_out_in_silence() {
    let made = Made::new("1", "5");
    let samples = made.data.join("samples");
    std::fs::rename(
        samples.join("date=2026-11-21"),
        samples.join("date=2026-11-25"),
    )
    .expect("ours");
    for table in ["stacks", "frames", "hosts"] {
        let [from, to] =
            ["21", "25"].map(|it| made.data.join(table).join(format!("date=2026-11-{it}")));
        std::fs::rename(from, to).expect("ours");
    }
    let done = made.run("compact", &[]);
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert_eq!(made.names(), ["data"]);
}

#[test]
fn many_files_are_read_some_at_a_time() {
    // Each host has nine files of samples, in three hours.
    let made = Made::new("3", "130");
    let before = top(&made.data);
    let files = |table: &str| {
        let folder = made.data.join(table).join("date=2026-11-21");
        names(&folder).len()
    };
    assert!(files("stacks") > 2 && files("hosts") > 2 * 7);
    let once = made.run("compact", &[]);
    assert!(once.status.success(), "{}", told(&once));
    let rows_of_hours = rows_of_sorted_files(&made.out());
    assert_eq!(rows_of_hours.len(), 3);
    std::fs::remove_dir_all(made.out()).expect("it is there");
    for at_once in ["2", "7"] {
        let done = made.run("compact", &["--files-at-once", at_once]);
        assert!(done.status.success(), "{}", told(&done));
        assert_eq!(done.stdout, once.stdout);
        assert_eq!(top(&made.out()), before);
        assert_eq!(rows_of_sorted_files(&made.out()), rows_of_hours);
        assert_eq!(names(&made.out()), ["frames", "hosts", "samples", "stacks"]);
        for table in ["stacks", "frames", "hosts"] {
            let folder = made.out().join(table).join("date=2026-11-21");
            assert_eq!(names(&folder), [format!("compact-{table}.parquet")]);
        }
        std::fs::remove_dir_all(made.out()).expect("it is there");
    }
    let done = made.run("compact", &["--files-at-once", "1"]);
    assert_eq!(done.status.code(), Some(2), "{}", told(&done));
}

#[test]
fn an_hour_with_many_rows_has_several_files() {
    let made = Made::new("3", "130");
    let before = top(&made.data);
    let rows = rows_of_sorted_files(&made.data);
    let most = rows.iter().max().expect("there are files");
    // Two files of hosts, or three.
    let per_file = (most * 5 / 2).to_string();
    let done = made.run("compact", &["--rows-per-file", &per_file]);
    assert!(done.status.success(), "{}", told(&done));
    assert_eq!(top(&made.out()), before);
    let files = rows_of_sorted_files(&made.out());
    assert!(files.len() > 3 && files.len() < rows.len(), "{files:?}");
    assert!(files.iter().all(|it| *it <= most * 5 / 2), "{files:?}");
    assert_eq!(files.iter().sum::<usize>(), rows.iter().sum::<usize>());
    let hour = made.out().join("samples/date=2026-11-21/hour=14");
    let first = ["compact-samples-2.parquet", "compact-samples-3.parquet"];
    assert_eq!(names(&hour)[..2], first);
    // What was compacted can be compacted once more, into a file for each hour.
    let again = made.folder.path().join("again");
    let mut command = Command::new(FLEET);
    command.arg("compact").arg(made.out()).arg("-o").arg(&again);
    let done = command.output().expect("it runs");
    assert!(done.status.success(), "{}", told(&done));
    assert_eq!(rows_of_sorted_files(&again).len(), 3);
    assert_eq!(top(&again), before);
}
