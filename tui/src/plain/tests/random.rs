//! Tests with random lines, on names that are meant to do harm.

use super::Talk;
use crate::fixture;
use crate::plain::command;
use engine::snapshot::{Snapshot, Span};
use proptest::prelude::*;
use std::sync::Arc;

fn words() -> impl Strategy<Value = String> {
    let names = command::COMMANDS.iter().map(|command| command.name);
    let names: Vec<&'static str> = names
        .filter(|name| !["write", "wait", "probe"].contains(name))
        .collect();
    let word = prop_oneof![
        4 => (0usize..30).prop_map(|number| number.to_string()),
        2 => Just("all".to_owned()),
        2 => prop::sample::select(vec!["depth", "up", "5s", "14:02:40", "none", "name", "samples", "-f", "on"])
            .prop_map(str::to_owned),
        2 => ".{0,12}",
    ];
    (
        prop::sample::select(names),
        prop::collection::vec(word, 0..4),
    )
        .prop_map(|(name, words)| format!("{name} {}", words.join(" ")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// No line causes a panic, and no answer has a byte that a terminal acts on.
    #[test]
    fn any_lines_are_answered(lines in prop::collection::vec(prop_oneof![6 => words(), 1 => ".{0,60}"], 1..12)) {
        let mut talk = Talk::on(hostile(), true);
        for line in lines {
            // These commands wait for an engine, which the test does not have, or write files.
            let word = line.trim().to_lowercase();
            if word.starts_with('w') || word.starts_with("probe") {
                continue;
            }
            let answer = talk.ask(&line);
            prop_assert!(answer.chars().all(|c| c == '\n' || (' '..='~').contains(&c)), "{answer:?}");
        }
    }
}

/// Returns a snapshot with names that are meant to do harm.
fn hostile() -> Arc<Snapshot> {
    let mut snapshot = fixture::tree_step(3);
    let mut report = (*snapshot.report).clone();
    let bad: Arc<str> = "\x1b[2J\x07a\nb\u{202e}c\u{9b}31m".into();
    for row in &mut report.functions {
        row.name = Arc::clone(&bad);
        row.module = Arc::clone(&bad);
    }
    for row in &mut report.processes {
        row.comm = Arc::clone(&bad);
    }
    for row in &mut report.threads {
        row.comm = Arc::clone(&bad);
    }
    snapshot.report = Arc::new(report);
    snapshot.run.scope = bad;
    snapshot.asked.window = Span::Seconds(10);
    snapshot.run.command_output = Arc::new(["\x1b]0;x\x07".to_owned()]);
    snapshot.health.notes.push("\x1bc".into());
    Arc::new(snapshot)
}
