//! Files for viewers in the browser: a profile that is written and read again is the same except
//! for what they cannot hold, their own readers agree, and files of strangers do no harm.

use crate::common::{self, Given, given, limits, select, store, unmarked};
use profile::formats::{self, Format, FormatError, Opened};
use profile::query::HeatRows;
use profile::{Cancel, Ending, FrameKind, Query, Scope, Selection, TimeRange};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn written(format: Format, selection: &Selection) -> Vec<u8> {
    let mut file = Vec::new();
    format.write(selection, &mut file).unwrap();
    file
}

fn opened(file: &[u8]) -> Result<Opened, FormatError> {
    formats::read(file, limits())
}

/// Returns as text what Firefox's JSON can hold of a selection.
fn held(selection: &Selection) -> Vec<String> {
    let report = selection.report();
    let mut lines = vec![common::stacks(selection)];
    lines.push(format!(
        "{:?}",
        selection.heat(&HeatRows::parts(100), None).cells
    ));
    for row in report.functions {
        let counts = (row.self_samples, row.total_samples);
        let place = (row.kind, row.name_state);
        lines.push(format!(
            "{} {} {counts:?} {place:?}",
            row.name, row.module_path
        ));
    }
    for row in report.processes {
        lines.push(format!("{} {} {}", row.pid, row.comm, row.samples));
    }
    for row in report.threads {
        lines.push(format!("{} {} {}", row.tid, row.comm, row.samples));
    }
    lines[2..].sort();
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn firefox_gives_back_what_it_was_given(samples in prop::collection::vec(given(), 1..60)) {
        let before = store(&samples);
        let selection = select(&before, "");
        let after = opened(&written(Format::Firefox, &selection)).unwrap();
        prop_assert_eq!(after.format, "firefox");
        prop_assert!(after.notes.is_empty(), "{:?}", after.notes);
        prop_assert_eq!(held(&selection), held(&select(&after.store, "")));
        let view = after.store.view();
        prop_assert_eq!(view.info().rates.first_hz, 99);
        prop_assert_eq!(view.info().epoch_unix_ms, before.view().info().epoch_unix_ms);
    }

    #[test]
    fn speedscope_gives_back_stacks_and_counts(samples in prop::collection::vec(given(), 1..60)) {
        let selection = select(&store(&samples), "");
        let after = opened(&written(Format::Speedscope, &selection)).unwrap();
        prop_assert_eq!(after.format, "speedscope");
        prop_assert_eq!(unmarked(&selection), unmarked(&select(&after.store, "")));
        prop_assert_eq!(after.store.view().info().rates.first_hz, 99);
    }

    #[test]
    fn filtered_stacks_are_written_as_filtered(samples in prop::collection::vec(given(), 1..60)) {
        let before = store(&samples);
        for filter in ["hide:/^f1/", "hide:middle", "hide:/f|m|i|[+]/", "fold:recursion"] {
            let selection = select(&before, filter);
            for format in [Format::Firefox, Format::Speedscope] {
                let after = opened(&written(format, &selection)).unwrap();
                prop_assert_eq!(unmarked(&selection), unmarked(&select(&after.store, "")));
            }
        }
    }

    #[test]
    fn damage_does_no_harm(
        samples in prop::collection::vec(given(), 1..20),
        at in 0..1_000_000usize,
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        for format in [Format::Firefox, Format::Speedscope] {
            let mut file = written(format, &select(&store(&samples), ""));
            let at = at % file.len();
            if cut {
                file.truncate(at)
            } else {
                file[at] = byte
            }
            if let Ok(after) = opened(&file) {
                written(format, &select(&after.store, ""));
            }
        }
    }
}

const TWO_THREADS: &str = include_str!("data/firefox-shared.json");

#[test]
fn newer_firefox_files_share_their_tables() {
    let after = opened(TWO_THREADS.as_bytes()).unwrap();
    let selection = select(&after.store, "");
    let stacks = unmarked(&selection);
    let wanted: BTreeMap<String, u64> = [
        ("main;start;work;inner".to_string(), 5),
        ("main;start;0x2000".to_string(), 1),
        ("helper;sys_read".to_string(), 1),
    ]
    .into();
    let found: BTreeMap<String, u64> = stacks
        .into_iter()
        .map(|(stack, count)| (stack.replace("app+", ""), count))
        .collect();
    assert_eq!(found, wanted);
    assert_eq!(
        after.notes,
        ["1 samples without a stack were left out: idle"]
    );
    let view = after.store.view();
    assert_eq!(view.info().epoch_unix_ms, 1_700_000_000_000);
    let rows = selection.functions();
    let row = |name: &str| rows.iter().find(|row| &*row.name == name).unwrap();
    assert_eq!(row("sys_read").kind, FrameKind::Kernel);
    assert_eq!(
        (row("inner").file.as_deref(), row("inner").line),
        (Some("src/in.c"), 12)
    );
    assert!(row("inner").inlined && !row("work").inlined);
    assert_eq!(
        row("app+0x2000").name_state,
        profile::RowName::Unnamed(profile::NoName::NotTold)
    );
    let function = view.function(row("work").id);
    assert_eq!(function.build_id[..4], [0x51, 0x0d, 0x0a, 0x5c]);
    assert_eq!(
        selection.completeness().endings,
        [(Ending::Root, 6), (Ending::NoUserStack, 1)]
    );
    // 2.5 ms, and 20 ms after it.
    let query = Query {
        window: TimeRange::between(10_000_000, 1_000_000_000),
        scope: Scope::default(),
        ..Query::default()
    };
    let late = view.select(&query, &Cancel::new()).unwrap();
    assert_eq!(late.samples(), 1);
}

#[test]
fn speedscope_events_are_time_between_them() {
    let file = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json",
        "shared":{"frames":[{"name":"a","file":"a.py","line":3},{"name":"b"}]},
        "profiles":[{"type":"evented","name":"t","unit":"microseconds","startValue":0,"endValue":9,
        "events":[{"type":"O","at":1,"frame":0},{"type":"O","at":3,"frame":1},
        {"type":"C","at":7,"frame":1},{"type":"C","at":8,"frame":0}]}]}"#;
    let after = opened(file.as_bytes()).unwrap();
    let stacks = unmarked(&select(&after.store, ""));
    assert_eq!(stacks["t;a"], 3000);
    assert_eq!(stacks["t;a;b"], 4000);
    assert_eq!(after.store.view().info().metric.unit, "nanoseconds");
    for (bad, why) in [
        (
            file.replace(
                "\"type\":\"C\",\"at\":7,\"frame\":1",
                "\"type\":\"C\",\"at\":7,\"frame\":0",
            ),
            "innermost",
        ),
        (
            file.replace("\"at\":3,\"frame\":1", "\"at\":3,\"frame\":9"),
            "a frame",
        ),
        (file.replace("evented", "drawn"), "drawn"),
    ] {
        let error = opened(bad.as_bytes()).expect_err(why).to_string();
        assert!(error.contains(why), "{why}: {error}");
    }
}

#[test]
fn hostile_documents_are_refused_in_a_sentence() {
    let firefox = |stacks: &str| {
        format!(
            r#"{{"meta":{{"preprocessedProfileVersion":48}},"libs":[],"threads":[{{"name":"t",
            "samples":{{"stack":[0],"time":[0]}},"stackTable":{stacks},
            "frameTable":{{"func":[0],"address":[-1]}},"funcTable":{{"name":[0],"resource":[-1]}},
            "resourceTable":{{}},"stringArray":["\u001b[2Jf"]}}]}}"#
        )
    };
    let good = opened(firefox(r#"{"prefix":[null],"frame":[0]}"#).as_bytes()).unwrap();
    let text = common::stacks(&select(&good.store, ""));
    assert_eq!(text, "t;\u{fffd}[2Jf 1\n", "no escape reaches a terminal");
    for (file, why) in [
        (
            firefox(r#"{"prefix":[0],"frame":[0]}"#),
            "called by a later one",
        ),
        (
            firefox(r#"{"prefix":[1,0],"frame":[0,0]}"#),
            "called by a later one",
        ),
        (firefox(r#"{"prefix":[null],"frame":[7]}"#), "not there"),
        (firefox("null"), "stack_table"),
        (
            firefox("{}").replace("\"preprocessedProfileVersion\":48", ""),
            "Firefox itself",
        ),
        (
            firefox("{}").replace("[0]", "[1152921504606846976]"),
            "idle",
        ),
        ("[".repeat(100_000), "damaged"),
        ("{\"traceEvents\":[]}".into(), "trace of events"),
        ("\u{7f}ELF\0\0 3\n".into(), "not a profile"),
        ("\n<!DOCTYPE html>\n<svg 3\n".into(), "page or a picture"),
        ("{\"what\":1}".into(), "not a profile"),
        ("{".into(), "damaged"),
    ] {
        match opened(file.as_bytes()) {
            Err(error) => assert!(error.to_string().contains(why), "{why}: {error}"),
            Ok(after) => assert!(
                after.notes.iter().any(|n| n.contains(why)),
                "{why}: {:?}",
                after.notes
            ),
        }
    }
    let vast = r#"{"shared":{"frames":[{"name":"a"}]},"profiles":[{"type":"sampled","unit":"none",
        "name":"t","samples":[[0]],"weights":[1.2e18]}]}"#;
    assert!(matches!(
        opened(vast.as_bytes()),
        Err(FormatError::TooLarge(_))
    ));
}

#[test]
fn packed_files_are_unpacked() {
    let given: Given = (vec![1, 2], 1, 0, 3);
    let store = store(&[given]);
    let selection = select(&store, "");
    let mut packed = Vec::new();
    let path = std::path::Path::new("x.speedscope.json.gz");
    assert_eq!(Format::of_path(path), Some(Format::Speedscope));
    Format::Speedscope
        .write_as(path, false, &selection, &mut packed)
        .unwrap();
    assert_eq!(opened(&packed).unwrap().format, "speedscope");
    packed.truncate(packed.len() / 2);
    let error = opened(&packed).unwrap_err().to_string();
    assert!(error.contains("cannot be unpacked"), "{error}");
}

#[test]
fn a_picture_has_all_names_and_none_of_them_is_markup() {
    let samples: Vec<Given> = (0..200u64)
        .map(|n| (vec![n % 17, 20, 33], 1, 0, 1))
        .collect();
    let store = store(&samples);
    let selection = select(&store, "");
    let svg = String::from_utf8(written(Format::Svg, &selection)).unwrap();
    for tag in ["g", "title", "text", "svg", "script", "style"] {
        let opened =
            svg.matches(&format!("<{tag} ")).count() + svg.matches(&format!("<{tag}>")).count();
        assert_eq!(opened, svg.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    assert!(
        !svg.contains("<img") && svg.contains("&lt;img src=x"),
        "a name is text"
    );
    let outside = svg.replace("http://www.w3.org/2000/svg", "");
    assert!(
        !outside.contains("http") && !outside.contains("src=\""),
        "it asks nobody"
    );
    for row in selection.functions() {
        let name = row
            .name
            .split(['<', '\'', '&'])
            .next_back()
            .unwrap_or_default();
        assert!(svg.contains(name), "{}", row.name);
    }
    assert!(
        svg.contains("data-n=\"200\""),
        "all samples are the first box"
    );
}

#[test]
fn a_trace_opens_and_closes_in_order() {
    let samples: Vec<Given> = (0..200u64)
        .map(|n| (vec![n % 5, 20, 33], n as u32 % 3, 0, 1))
        .collect();
    let store = store(&samples);
    let trace: serde_json::Value =
        serde_json::from_slice(&written(Format::Trace, &select(&store, ""))).unwrap();
    let mut open: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut last: BTreeMap<u64, f64> = BTreeMap::new();
    let mut events = 0;
    for event in trace["traceEvents"].as_array().unwrap() {
        let tid = event["tid"].as_u64().unwrap();
        let name = event["name"].as_str().unwrap().to_string();
        let stack = open.entry(tid).or_default();
        match event["ph"].as_str().unwrap() {
            "M" => continue,
            "B" => stack.push(name),
            "E" => assert_eq!(stack.pop(), Some(name)),
            other => panic!("{other}"),
        }
        let time = event["ts"].as_f64().unwrap();
        assert!(time >= last.insert(tid, time).unwrap_or(0.0));
        events += 1;
    }
    assert!(events > 100 && open.values().all(Vec::is_empty), "{open:?}");
}

#[test]
fn a_history_may_begin_inside_of_the_stamp_of_its_first_sample() {
    let text = "a 1/1 [000] 1.015000: 1 cpu-clock: 7f00 f (/x)\n";
    let store = opened(text.as_bytes()).unwrap().store;
    let selection = select(&store, "");
    for format in [Format::Firefox, Format::Trace] {
        let file = String::from_utf8(written(format, &selection)).unwrap();
        let json: serde_json::Value = serde_json::from_str(&file).unwrap();
        let begin = json["threads"][0]["registerTime"].as_f64().unwrap_or(0.0);
        assert_eq!(begin, 0.0, "{file}");
    }
}

#[test]
fn a_function_is_one_where_not_all_places_are_known() {
    let mut store = store(&[(vec![4, 5], 1, 0, 1)]);
    let frames = [3, 6].map(common::frame);
    let sample = profile::NewSample {
        time_ns: 3_000_000_000,
        cpu: 0,
        process: profile::ProcessId(1),
        tid: 7,
        comm: "worker",
        frames: &frames,
        kernel_frames: 0,
        ending: profile::Ending::Root,
        weight: 1,
    };
    assert!(store.add_sample(sample));
    for id in store.frames_to_name(9) {
        store.set_name(id, profile::NameState::Named("one_function".into()));
    }
    let placed = store.find_frame(&frames[1]).unwrap();
    let link = profile::SourceFrame {
        function: "",
        file: "src/one.c",
        line: 3,
    };
    store.set_source(placed, &[link]);
    let file = written(Format::Firefox, &select(&store, ""));
    let json: serde_json::Value = serde_json::from_slice(&file).unwrap();
    let thread = json["threads"]
        .as_array()
        .unwrap()
        .iter()
        .find(|thread| thread["tid"] == 7)
        .unwrap();
    let texts = thread["stringArray"].as_array().unwrap();
    let names = thread["funcTable"]["name"].as_array().unwrap().iter();
    let names: Vec<_> = names
        .map(|name| texts[name.as_u64().unwrap() as usize].as_str().unwrap())
        .collect();
    assert_eq!(names, ["one_function"]);
}
