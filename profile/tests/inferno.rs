//! Compares with inferno, the flame graph tools in Rust: it counts our files as we do, and we count
//! its folded stacks like the input that they were made from.

use crate::common::{self, Given, given, limits, select, stacks, store};
use inferno::collapse::Collapse as _;
use inferno::collapse::perf::Folder;
use inferno::flamegraph::{self, Options};
use profile::formats;
use profile::query::{Direction, GroupBy};
use profile::{Cancel, Selection};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The number of samples of the boxes of a flame graph, added up by their texts.
type Boxes = BTreeMap<String, u64>;

/// Returns the boxes that inferno draws of folded stacks.
fn drawn(folded: &str) -> Boxes {
    let mut options = Options::default();
    // All boxes, however narrow.
    options.min_width = 0.0;
    let mut picture = Vec::new();
    flamegraph::from_reader(&mut options, folded.as_bytes(), &mut picture).unwrap();
    let picture = String::from_utf8(picture).unwrap();
    let mut boxes = Boxes::new();
    for title in picture.split("<title>").skip(1) {
        let title = title.split_once("</title>").unwrap().0;
        let (name, count) = title.rsplit_once(" (").unwrap();
        let samples = count.split_once(" samples,").unwrap().0.replace(',', "");
        let name = name
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&apos;", "'")
            .replace("&amp;", "&");
        *boxes.entry(name).or_default() += samples.parse::<u64>().unwrap();
    }
    boxes
}

/// Returns the same counts, made by the store.
fn counted(selection: &Selection) -> Boxes {
    let tree = selection
        .tree(Direction::TopDown, GroupBy::Comm, &Cancel::new())
        .unwrap();
    let mut boxes = Boxes::from([("all".into(), selection.samples())]);
    for (path, samples) in tree.stacks() {
        for kind in path {
            // `;` separates the functions of a folded stack.
            let name = tree.name(kind).replace(';', ":");
            *boxes.entry(name).or_default() += samples;
        }
    }
    boxes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn inferno_draws_as_many_samples_as_we_count(samples in prop::collection::vec(given(), 1..60)) {
        let before = store(&samples);
        for filter in ["", "hide:/^f1/", "fold:recursion"] {
            let selection = select(&before, filter);
            prop_assert_eq!(drawn(&stacks(&selection)), counted(&selection));
        }
    }
}

#[test]
fn a_difference_would_be_seen() {
    let given: [Given; 1] = [(vec![1, 4], 1, 0, 1000)];
    let selection = select(&store(&given), "");
    let mut boxes = counted(&selection);
    assert_eq!(boxes["all"], 1000);
    *boxes.get_mut("all").unwrap() += 1;
    assert_ne!(drawn(&stacks(&selection)), boxes);
}

#[test]
fn stacks_that_inferno_folded_are_those_that_perf_told() {
    compare_folded(TOLD);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let file = file.to_str().unwrap();
    let burn = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    let record = [
        "record",
        "-q",
        "-e",
        "cpu-clock",
        "-F",
        "999",
        "-g",
        "-o",
        file,
    ];
    let recorded = common::perf(&[&record[..], &["--", "sh", "-c", burn]].concat());
    if let Some(text) = recorded.and_then(|_| common::perf(&["script", "-i", file])) {
        compare_folded(&text);
    }
}

const TOLD: &str = "\
my prog 22010 25934.314797:    1001001 cpu-clock:u: 
\t           704e4 __sin_fma+0x224 (/usr/lib/x86_64-linux-gnu/libm.so.6)
\t            1081 main+0x21 (/tmp/prog)

my prog 22010 25934.315814:    1001001 cpu-clock:u: 
\tffffffff81000100 do_syscall_64+0x1 ([kernel.kallsyms])
\t            1090 [unknown] (/tmp/prog)
\t            1081 main+0x21 (/tmp/prog)

my prog 22010 25934.316814:    1001001 cpu-clock:u: 
\t            1094 [unknown] (/tmp/prog)
\t            1081 main+0x21 (/tmp/prog)

";

/// Checks that a text of perf gives the same stacks if we read it, and if inferno folds it and we
/// read inferno's result. inferno counts periods instead of samples.
fn compare_folded(text: &str) {
    let mut folded = Vec::new();
    let folder = &mut Folder::default();
    folder.collapse(text.as_bytes(), &mut folded).unwrap();
    let theirs = formats::read(&folded[..], limits()).unwrap();
    assert_eq!(theirs.format, "folded");
    let theirs = select(&theirs.store, "");
    let ours = formats::read(text.as_bytes(), limits()).unwrap();
    let ours = select(&ours.store, "");
    assert_eq!(theirs.samples() % ours.samples(), 0);
    let period = theirs.samples() / ours.samples();
    let ours = common::unmarked(&ours)
        .into_iter()
        .fold(Boxes::new(), |mut all, (stack, n)| {
            *all.entry(in_words_of_inferno(&stack)).or_default() += n * period;
            all
        });
    assert_eq!(common::unmarked(&theirs), ours);
}

/// Converts a stack to inferno's words: a place without a name is called by its file, and the name
/// of a thread has no spaces.
fn in_words_of_inferno(stack: &str) -> String {
    let (comm, frames) = stack.split_once(';').unwrap_or((stack, ""));
    let frames = frames.split(';').map(|name| match name.split_once("+0x") {
        Some((unknown @ "[unknown]", _)) => unknown.to_string(),
        Some((file, _)) => format!("[{file}]"),
        None => name.to_string(),
    });
    let comm = [comm.replace(' ', "_")];
    comm.into_iter().chain(frames).collect::<Vec<_>>().join(";")
}
