//! Counts of probes in the formats of other tools.

use flate2::read::GzDecoder;
use profile::formats::{Format, read_metric};
use profile::probes::{CallTally, ProbeAbout, ProbeFrame};
use profile::{Cancel, Limits, Query, Selection, Store, TimeRange};
use serde_json::Value;
use std::io::Read as _;

const SECOND_NS: u64 = 1_000_000_000;

/// A selection of a probe that counted in the seconds 5, 6 and 9.
fn selection(window: TimeRange) -> Selection {
    let mut store = Store::new(Limits::default());
    store.begin(5 * SECOND_NS);
    let log = store.probes_mut();
    let probe = log
        .add_probe(ProbeAbout {
            name: "open_account".into(),
            module: "bank".into(),
            is_timed: true,
            placed_ns: 5 * SECOND_NS,
            ..ProbeAbout::default()
        })
        .unwrap();
    let frames = ["serve", "main"].map(|name| {
        let name = Some(name.into());
        let module = "bank".into();
        let address = 7;
        log.add_frame(ProbeFrame {
            module,
            address,
            name,
        })
        .unwrap()
    });
    log.add_stack(probe, &frames).unwrap();
    for (second, calls) in [(5, 10), (6, 20), (6, 1), (9, 4)] {
        let tally = CallTally {
            calls,
            returns: calls - 1,
            sum_ns: calls * 1_100,
            max_ns: 1_200,
            buckets: [((1_024, 1_280), calls - 1)].into(),
            callers: [(0, 2)].into(),
            ..CallTally::default()
        };
        log.count(probe, second, tally);
    }
    let query = Query {
        window,
        ..Query::default()
    };
    store.view().select(&query, &Cancel::new()).unwrap()
}

fn written(format: Format, window: TimeRange) -> Vec<u8> {
    let mut bytes = Vec::new();
    format.write(&selection(window), &mut bytes).unwrap();
    bytes
}

#[test]
fn trace_events_count_each_second_and_fall_to_zero_after_the_last() {
    let bytes = written(Format::Trace, TimeRange::ALL);
    let trace: Value = serde_json::from_slice(&bytes).unwrap();
    let counted = |name: &str| -> Vec<(f64, u64)> {
        let events = trace["traceEvents"].as_array().unwrap().iter();
        let own = events.filter(|event| event["ph"] == "C" && event["name"] == name);
        own.map(|event| {
            let calls = event["args"]["calls"].as_u64().unwrap();
            (event["ts"].as_f64().unwrap() / 1e6, calls)
        })
        .collect()
    };
    assert_eq!(
        counted("calls/s of open_account"),
        [(0.0, 10), (1.0, 21), (2.0, 0), (4.0, 4), (5.0, 0)]
    );
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains("\"p50_us\":1.152"), "{text}");
}

#[test]
fn firefox_has_a_marker_for_each_second() {
    let window = TimeRange::between(6 * SECOND_NS, 10 * SECOND_NS);
    let bytes = written(Format::Firefox, window);
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    let threads = document["threads"].as_array().unwrap();
    let [probes] = &threads[..] else {
        panic!("{document}");
    };
    let markers = &probes["markers"];
    assert_eq!(markers["length"], 2);
    assert_eq!(markers["startTime"], serde_json::json!([0, 3000]));
    let calls: Vec<u64> = markers["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|data| data["calls"].as_u64().unwrap())
        .collect();
    assert_eq!(calls, [21, 4]);
    let name = markers["name"][0].as_u64().unwrap() as usize;
    assert_eq!(probes["stringArray"][name], "open_account");
    let schema = &document["meta"]["markerSchema"][0];
    assert_eq!(schema["name"], markers["data"][0]["type"]);
}

#[test]
fn pprof_has_calls_and_times_that_add_up() {
    let bytes = written(Format::Pprof, TimeRange::ALL);
    let mut raw = Vec::new();
    GzDecoder::new(&bytes[..]).read_to_end(&mut raw).unwrap();
    assert!(String::from_utf8_lossy(&raw).contains("nanoseconds"));
    let sum = |metric: &str| {
        let read = read_metric(&bytes[..], Limits::default(), Some(metric)).unwrap();
        let all = read
            .store
            .view()
            .select(&Query::default(), &Cancel::new())
            .unwrap();
        let report = all.report();
        let row = report
            .functions
            .iter()
            .find(|row| &*row.name == "open_account");
        (report.samples, row.map_or(0, |row| row.total_samples))
    };
    // 35 calls, 31 of which have ended; the duration of each is the middle of its bucket.
    assert_eq!(sum("calls"), (35, 35));
    assert_eq!(sum("latency"), (31 * 1_152, 31 * 1_152));
    assert_eq!(sum("stacks"), (8, 8));
}

#[test]
fn the_others_say_that_they_have_no_place_for_it() {
    let without: Vec<&str> = Format::ALL
        .iter()
        .filter(|format| !format.has_probes())
        .map(|format| format.word())
        .collect();
    assert_eq!(without, ["folded", "speedscope", "html", "svg"]);
}
