//! Checks that other tools' own readers read our files correctly, as far as they need no browser.
//! If a tool is missing, the test says so and is skipped.

use crate::common::{self, Given, select, store};
use profile::formats::Format;
use profile::{RowName, Selection};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use test_support::Scratch;

fn given() -> Vec<Given> {
    let sample = |n: u64| {
        let stack = vec![n % 17, 20 + n % 9, 33];
        (
            stack,
            n as u32 % 5,
            usize::from(n.is_multiple_of(7)),
            1 + n % 3,
        )
    };
    (0..300u64).map(sample).collect()
}

/// Reads files with speedscope's own importers; `None`, with a message, if that is not possible.
fn speedscope(selection: &Selection, formats: &[Format]) -> Option<Vec<Value>> {
    let Some(package) = std::env::var_os("PROFTOP_SPEEDSCOPE").map(PathBuf::from) else {
        test_support::skip(
            "files against speedscope's importers: PROFTOP_SPEEDSCOPE names no folder of its package",
        );
        return None;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/node/speedscope.js");
    let scratch = Scratch::new();
    let mut command = Command::new("node");
    command.arg(script).arg(package);
    for format in formats {
        let mut file = Vec::new();
        format.write(selection, &mut file).unwrap();
        command.arg(scratch.write(format!("x.{}", format.word()), file));
    }
    let output = command.output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            test_support::skip(format_args!(
                "files against speedscope's importers: node: {error}"
            ));
            return None;
        }
    };
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let lines = String::from_utf8(output.stdout).unwrap();
    Some(
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

/// Returns self and total by name, over all profiles of a group.
fn by_name(group: &Value) -> BTreeMap<String, (f64, f64)> {
    let mut sums = BTreeMap::new();
    let profiles = group["profiles"].as_array().expect("it was understood");
    for frame in profiles
        .iter()
        .flat_map(|profile| profile["frames"].as_array().unwrap())
    {
        let name = frame["name"].as_str().unwrap().to_string();
        let sum: &mut (f64, f64) = sums.entry(name).or_default();
        sum.0 += frame["own"].as_f64().unwrap();
        sum.1 += frame["total"].as_f64().unwrap();
    }
    sums
}

#[test]
fn speedscope_counts_the_same_in_every_format_that_it_reads() {
    let store = store(&given());
    let selection = select(&store, "");
    let formats = [Format::Speedscope, Format::Folded, Format::Pprof];
    let Some(groups) = speedscope(&selection, &formats) else {
        return;
    };
    let rows = selection.functions();
    for (format, group) in formats.iter().zip(&groups) {
        // speedscope's numbers are in ms, in samples, and in ns of a clock of 99 Hz.
        let scale = match format {
            Format::Speedscope => 1000.0 / 99.0,
            Format::Pprof => (1_000_000_000 / 99) as f64,
            _ => 1.0,
        };
        let found = by_name(group);
        let mut compared = 0;
        let mut own: BTreeMap<&str, u64> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.name_state == RowName::Named) {
            // `;` separates the functions of a folded stack, and inlined ones are marked there.
            if !row.name.contains(';') && rows.iter().all(|o| o.name != row.name || !o.inlined) {
                *own.entry(&row.name).or_default() += row.self_samples;
            }
        }
        // speedscope's importer of pprof ignores inlined functions, and gives their samples to who
        // called them; these are compared with go tool pprof, in `pprof.rs`.
        let has_inlined = *format != Format::Pprof;
        for (name, samples) in own.into_iter().filter(|_| has_inlined) {
            let names = match format {
                Format::Folded => ["", "_[k]", "_[j]"]
                    .map(|mark| format!("{name}{mark}"))
                    .to_vec(),
                _ => vec![name.to_string()],
            };
            let theirs: f64 = names
                .iter()
                .filter_map(|name| found.get(name))
                .map(|f| f.0)
                .sum();
            let wanted = samples as f64 * scale;
            let is_near = (theirs - wanted).abs() <= wanted * 1e-6 + 1e-6;
            assert!(is_near, "{format:?} {name}: {theirs}, not {wanted}");
            compared += 1;
        }
        let total: f64 = found.values().map(|(own, _)| own).sum();
        let wanted = selection.samples() as f64 * scale;
        assert!(
            (total - wanted).abs() < wanted * 1e-6,
            "{format:?}: {total}, not {wanted}"
        );
        assert!(compared > 5 || !has_inlined, "{format:?}: {compared}");
    }
}

#[test]
fn speedscope_reads_traces_of_what_ran_when() {
    // One function that runs all the time, and calls two others in turns.
    let mut store = profile::Store::new(common::limits());
    store.set_info(profile::Info {
        rates: profile::Rates::always(100),
        ..profile::Info::default()
    });
    for n in 0..50u64 {
        let frames = [common::frame(6 + n % 2 * 3), common::frame(24)];
        assert!(store.add_sample(profile::NewSample {
            time_ns: 1_000_000_000 + n * 10_000_000,
            cpu: 0,
            process: profile::ProcessId(1),
            tid: 7,
            comm: "worker",
            frames: &frames,
            kernel_frames: 0,
            ending: profile::Ending::Root,
            weight: 1,
        }));
    }
    for id in store.frames_to_name(9) {
        let address = store.frame(id).unwrap().address & 0xff_ffff;
        store.set_name(
            id,
            profile::NameState::Named(format!("f{:x}", address >> 12).into()),
        );
    }
    let selection = select(&store, "");
    let Some(groups) = speedscope(&selection, &[Format::Trace]) else {
        return;
    };
    let found = by_name(&groups[0]);
    // In microseconds: fifty ticks of ten milliseconds.
    assert_eq!(found.get("f18"), Some(&(0.0, 500_000.0)), "{groups:?}");
    assert_eq!((found["f6"].0, found["f9"].0), (250_000.0, 250_000.0));
}
