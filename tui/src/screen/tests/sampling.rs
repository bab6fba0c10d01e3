//! Tests of the dialog about sampling, and of views after the rate was changed.

use super::knobs::recorded;
use super::*;
use crate::fixture::{tree_of_rates, tree_step};
use engine::snapshot::Sampler;
use engine::{Budget, Frugality};

fn sampled(width: u16, height: u16) -> Hand {
    let mut hand = Hand::new(width, height);
    hand.show(tree_step(0));
    hand
}

#[test]
fn the_dialog_at_every_size() {
    for (width, height) in [(40, 8), (60, 16), (80, 24), (120, 40)] {
        let mut hand = sampled(width, height);
        hand.keys("Sl");
        hand.looks_like(&format!("sampling-{width}x{height}"));
        hand.looks_like_in_ascii(&format!("sampling-{width}x{height}-ascii"));
    }
}

#[test]
fn a_rate_is_asked_for_and_said() {
    let mut hand = sampled(80, 24);
    hand.keys("Sll\n");
    assert_eq!(hand.effects, [Effect::SetRate(499)]);
    assert!(hand.frame().contains("499 Hz from now on"));
    hand.keys("S\n");
    assert_eq!(hand.effects, [], "it is so already");
    hand.keys(":rate 250\n");
    assert_eq!(hand.effects, [Effect::SetRate(250)]);
    hand.keys("S9999\n");
    assert_eq!(hand.effects, []);
    assert!(hand.frame().contains("the kernel allows 5000 Hz"));
    hand.keys("\u{1b}:rate 9999\n");
    assert!(hand.frame().contains("the kernel allows 5000 Hz"));
}

#[test]
fn a_rate_that_a_budget_has_lowered_stands_beside_the_one_that_was_asked_for() {
    let governed = |divisor, rate_hz| {
        let mut snapshot = tree_step(0);
        snapshot.source.rate_hz = rate_hz;
        snapshot.source.budget = Some(Budget {
            percent: 1.0,
            given_up: Frugality {
                omits_lines: true,
                divisor,
            },
            rate_hz: 99,
            is_exceeded: false,
        });
        let mut hand = Hand::new(80, 24);
        hand.show(snapshot);
        hand.frame()
    };
    assert!(governed(2, 49).contains("49 of 99 Hz"));
    assert!(governed(1, 99).contains("  99 Hz"));
}

#[test]
fn where_it_cannot_be_changed_it_is_said_why() {
    let mut hand = Hand::new(80, 24);
    hand.keys("S");
    assert!(hand.frame().contains("sampling has not begun"));
    hand.show(recorded(|_| {})).keys("S");
    let frame = hand.frame();
    assert!(
        frame.contains("this is a recording, taken at 99 Hz"),
        "{frame}"
    );
    let mut hand = Hand::new(80, 24);
    let mut fixed = tree_step(0);
    fixed.source.sampler = Some(Arc::new(Sampler {
        rate_is_fixed: Some("threads keep theirs"),
        ..Sampler::default()
    }));
    hand.show(fixed);
    hand.keys("S");
    assert!(hand.frame().contains("the rate stays as it is: threads"));
    hand.keys("l\n");
    assert_eq!(hand.effects, []);
}

/// Samples of 4 s at 99 Hz and of 6 s at 499 Hz. Those of the first 4 s are weighted by 499 / 99.
#[test]
fn a_window_of_two_rates_counts_all_at_the_higher_one() {
    let mut hand = Hand::new(80, 24);
    hand.show(tree_of_rates(&[(186, 499)]));
    hand.looks_like("two-rates-80x24");
    let report = Arc::clone(&hand.app.shown.report);
    assert_eq!(report.rate_hz, 499);
    let plain = sampled(80, 24).app.shown.report.samples;
    assert!(report.samples > plain && report.samples < plain * 499 / 99);
    hand.keys("i").looks_like("two-rates-explain-80x24");
    hand.keys("6");
    assert!(hand.frame().contains("     '   |"), "{}", hand.frame());
    let mut earlier = Hand::new(80, 24);
    earlier.show(tree_of_rates(&[(160, 499)])).keys("6");
    earlier.looks_like("two-rates-time-80x24");
    assert!(earlier.frame().contains("'499 Hz"));
}
