//! `proftop --batch` as scripts use it.

use crate::common;

use common::{BURN_FUNCTIONS, BURN_SHARES, BURN_THREADS, burning};
use common::{band, burn_str, can_sample, list, number, proftop, reports, reports_until, run};
use common::{self_samples, start_sampling, sum, text, wait_for_work};
use rustix::process::Signal;
use serde_json::Value;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use test_support::{Process, wait_until};

#[test]
fn shares_are_those_of_the_work() {
    if !can_sample() {
        return;
    }
    let of_work = |reports: &[Value]| -> u64 {
        let of_all = BURN_FUNCTIONS.iter();
        of_all.map(|name| self_samples(reports, name)).sum()
    };
    // The first reports may lack names.
    let named = |reports: &[Value]| {
        let first = reports.iter().position(|report| report["pending"] == 0);
        reports[first.unwrap_or(reports.len())..].to_vec()
    };
    let mut command = proftop(&["-b", "--format", "json", "-F", "499", "-d", "1"]);
    command.args(["--", burn_str(), "600"]);
    let reports = reports_until(&mut command, "samples of the work", |reports| {
        of_work(&named(reports)) > 2_000
    });
    let reports = named(&reports);
    let all = of_work(&reports);
    for (name, share) in BURN_FUNCTIONS.into_iter().zip(BURN_SHARES) {
        let measured = self_samples(&reports, name) as f64 / all as f64;
        let band = band(share, all as f64);
        assert!(
            (measured - share).abs() < band,
            "{name}: {measured:.3}, not {share} ± {band:.3}"
        );
    }
    let samples = sum(&reports, "samples");
    // On a busy machine, some time goes to the kernel, which switches threads.
    let functions = reports.iter().flat_map(|report| list(report, "functions"));
    let of_user = functions.filter(|function| function["kind"] == "user");
    let of_user: u64 = of_user.map(|function| number(function, "self")).sum();
    assert!(all * 100 >= of_user * 90, "{all} of {of_user} are the work");
    for name in BURN_THREADS {
        let of_thread: u64 = reports
            .iter()
            .flat_map(|report| list(report, "threads"))
            .filter(|thread| thread["comm"] == name)
            .map(|thread| number(thread, "samples"))
            .sum();
        assert!(of_thread * 10 > samples, "{name}: {of_thread} of {samples}");
    }
}

#[test]
fn reports_add_up() {
    if !can_sample() {
        return;
    }
    let _busy = burning(2);
    let output = run(&mut proftop(&[
        "-b", "--format", "json", "-n", "5", "-d", "0.5", "-F", "499",
    ]));
    assert_eq!(output.status.code(), Some(0));
    let reports = reports(&output.stdout);
    assert_eq!(reports.len(), 5);
    let last = &reports[4];
    // Each report begins where the last one ended. Samples that came after the last report,
    // while it waited for names, are only in the counts of the whole run.
    assert!(sum(&reports, "samples") <= number(last, "samples_run"));
    assert!(sum(&reports, "lost") <= number(last, "lost_run"));
    let mut end = None;
    for report in &reports {
        check_sums(report);
        let time = number(report, "time_unix_ms");
        if let Some(end) = end.replace(time) {
            let window_ms = report["window_s"].as_f64().expect("a number") * 1000.0;
            let off = (time - end) as f64 - window_ms;
            assert!(off.abs() < 20.0, "{} ms, not {window_ms}", time - end);
        }
    }
}

#[test]
fn a_run_to_the_end_reports_every_sample() {
    if !can_sample() {
        return;
    }
    let output = run(
        proftop(&["-b", "--format", "json", "-d", "0.4", "-F", "999"]).args([
            "--",
            burn_str(),
            "1",
        ]),
    );
    assert_eq!(output.status.code(), Some(0));
    assert!(
        text(&output.stderr).contains("rounds/s"),
        "the command's own output goes to standard error"
    );
    let reports = reports(&output.stdout);
    let last = reports.last().expect("a report");
    assert_eq!(sum(&reports, "samples"), number(last, "samples_run"));
    assert_eq!(last["target"], "exited");
    assert_eq!(last["notes"].as_array().map(Vec::is_empty), Some(false));
}

/// Checks what `docs/batch-json.md` promises of every report.
fn check_sums(report: &Value) {
    let samples = number(report, "samples");
    let counts = |value: &Value| -> u64 {
        let object = value.as_object().expect("an object");
        object.values().map(|n| n.as_u64().expect("a count")).sum()
    };
    let of_all = |list_name: &str, field: &str| -> u64 {
        let rows = list(report, list_name);
        rows.iter().map(|row| number(row, field)).sum()
    };
    assert_eq!(counts(&report["endings"]), samples);
    let named = number(report, "named") + number(report, "pending");
    assert_eq!(named + counts(&report["unnamed"]), number(report, "frames"));
    assert_eq!(of_all("functions", "self"), samples);
    assert_eq!(of_all("processes", "samples"), samples);
    assert_eq!(of_all("threads", "samples"), samples);
    for function in list(report, "functions") {
        assert!(number(function, "self") <= number(function, "total"));
        assert!(number(function, "total") <= samples);
    }
    assert_eq!(report["schema"], 1);
    assert!(report["own"]["rss_bytes"].as_u64() > Some(1 << 20));
}

/// A filter keeps some of the samples; the report says how many, and of how many.
#[test]
fn a_filter_keeps_what_passes() {
    if !can_sample() {
        return;
    }
    let burn = burning(2);
    let pid = burn.pid().to_string();
    let thread = BURN_THREADS[0];
    let filter = format!("comm:{thread}");
    let args = [
        "-b", "-d", "1", "-p", &pid, "--format", "json", "--filter", &filter,
    ];
    let of_it = |reports: &[Value]| sum(reports, "samples") > 50;
    let reports = reports_until(&mut proftop(&args), "samples of the thread", of_it);
    let threads = reports.iter().flat_map(|report| list(report, "threads"));
    let others = threads.filter(|row| row["comm"] != thread).count();
    assert_eq!(others, 0, "{reports:?}");
    let note = &reports[0]["notes"];
    let words = format!("filter {filter} keeps ");
    assert!(note.to_string().contains(&words), "{note}");
    let kept = |args: &[&str]| run(proftop(&["-b", "-n", "1", "-d", "1", "-p", &pid]).args(args));
    let nothing = kept(&["--filter", "fn:no_such_function"]);
    assert_eq!(nothing.status.code(), Some(5));
    let said = text(&nothing.stdout);
    assert!(said.contains("keeps 0.0% of "), "{said}");
}

#[test]
fn text_and_csv_say_the_same() {
    if !can_sample() {
        return;
    }
    let burn = burning(1);
    let pid = burn.pid().to_string();
    // The load runs behind others: on a busy machine it has few samples in two seconds.
    let report_of = |format: &str, samples_in: fn(&str) -> Option<&str>| {
        let (mut report, mut seconds) = (String::new(), 2);
        wait_until("a report with a hundred samples", || {
            let line = format!("-b -n 1 -d {seconds} -F 1999 -p {pid} --format {format}");
            let words: Vec<&str> = line.split(' ').collect();
            report = text(&run(&mut proftop(&words)).stdout);
            seconds *= 2;
            let samples = samples_in(&report).map(|number| number.replace(',', ""));
            samples.is_some_and(|number| number.parse::<u64>().expect("a number") >= 100)
        });
        report
    };
    let csv = report_of("csv", |csv| csv.lines().nth(1)?.split(',').nth(2));
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some(
            "time,window_s,samples,self,total,self_percent,total_percent,err_pp,function,module,address,\
             waits,mean_wait_ns,longest_wait_ns"
        )
    );
    let first: Vec<&str> = lines.next().expect("a row").split(',').collect();
    assert_eq!(first[8..10], [BURN_FUNCTIONS[0], "burn"]);
    let report = report_of("text", |report| {
        let (_, counted) = report.split_once("# samples ")?;
        counted.split(' ').next()
    });
    assert!(report.starts_with("# proftop "), "{report}");
    assert!(report.contains(&pid), "{report}");
    let row = report.lines().find(|line| line.contains(BURN_FUNCTIONS[0]));
    let row: Vec<&str> = row.expect("a row").split_whitespace().collect();
    let percent: f64 = row[0].parse().expect("a percentage");
    assert!((40.0..80.0).contains(&percent), "{row:?}");
    assert!(!report.contains('\x1b'), "no colors in a pipe");
}

#[test]
fn a_short_command_is_seen() {
    if !can_sample() {
        return;
    }
    let output =
        run(proftop(&["-b", "--format", "json", "-F", "999"]).args(["--", burn_str(), "0.2", "1"]));
    assert_eq!(output.status.code(), Some(0));
    let reports = reports(&output.stdout);
    let samples = sum(&reports, "samples");
    // 200 and those of proftop's start; fewer where other programs use the CPUs.
    assert!(samples <= 300, "{samples} samples");
    assert!(self_samples(&reports, BURN_FUNCTIONS[0]) > 0);
}

#[test]
fn an_interrupt_ends_with_a_report() {
    if !can_sample() {
        return;
    }
    let burn = burning(1);
    let pid = burn.pid().to_string();
    let mut proftop = proftop(&[
        "-b", "--format", "json", "-d", "600", "-F", "499", "-p", &pid,
    ]);
    let began = Instant::now();
    let mut proftop = start_sampling(proftop.stdout(Stdio::piped()));
    // A report of ten minutes prints nothing before they are over.
    wait_for_work(burn.pid(), Duration::from_secs(1));
    proftop.signal(Signal::INT);
    let mut output = Vec::new();
    let mut stdout = proftop.stdout.take().expect("a pipe");
    stdout.read_to_end(&mut output).expect("its reports");
    let status = proftop.wait().expect("ours");
    let took = began.elapsed().as_secs_f64();
    assert_eq!(status.code(), Some(0));
    let reports = reports(&output);
    assert_eq!(reports.len(), 1);
    assert!(self_samples(&reports, BURN_FUNCTIONS[0]) > 0);
    assert_eq!(reports[0]["target"], "running", "we ended, not it");
    let window = reports[0]["window_s"].as_f64().expect("a number");
    assert!(window > 0.3 && window < took, "{window} s of {took}");
}

#[test]
fn a_budget_is_kept_by_taking_fewer_samples_and_said() {
    if !can_sample() {
        return;
    }
    let _busy = burning(2);
    let is_governed = |report: &Value| {
        let mut notes = list(report, "notes").iter().filter_map(Value::as_str);
        let is_said = notes.any(|note| {
            note.contains("0.1% of a CPU (--budget)") && note.contains(" Hz instead of 4999")
        });
        is_said && number(report, "rate_hz") < 4_999
    };
    // A report of all functions of a machine is longer than a pipe is: if the test has no CPU for a
    // second, the last one is cut.
    let line = "-b --format json --top 20 -d 1 -F 4999 --budget 0.1%";
    let mut command = proftop(&line.split(' ').collect::<Vec<_>>());
    let reports = reports_until(&mut command, "a lower rate", |reports| {
        reports.last().is_some_and(is_governed)
    });
    assert_eq!(number(&reports[0], "rate_hz"), 4_999, "as it was asked for");
}

#[test]
fn kernel_samples_carry_both_stacks() {
    if !can_sample() {
        return;
    }
    let read = "while :; do find /usr/bin -type f | xargs cat >/dev/null; done";
    let _reading = Process::start(Command::new("sh").args(["-c", read]));
    let in_kernel = |reports: &[Value]| -> u64 {
        let processes = reports.iter().flat_map(|report| list(report, "processes"));
        processes
            .map(|process| number(process, "kernel_samples"))
            .sum()
    };
    let mut command = proftop(&[
        "-b", "--format", "json", "-d", "1", "-F", "999", "--comm", "^cat$",
    ]);
    let reports = reports_until(&mut command, "samples in the kernel", |reports| {
        in_kernel(reports) > 100
    });
    let in_kernel = in_kernel(&reports);
    let kinds = |kind: &str, field: &str| -> u64 {
        let functions = reports.iter().flat_map(|report| list(report, "functions"));
        functions
            .filter(|function| function["kind"] == kind)
            .map(|function| number(function, field))
            .sum()
    };
    assert!(kinds("kernel", "self") > 50);
    // A user function that makes a system call has that in its total, not in its self time.
    assert!(kinds("user", "total") > kinds("user", "self") + in_kernel / 2);
}
