//! The write dialog.

use super::Hand;
use crate::app::{Effect, Event, Written};
use crate::screen::Mode;
use crate::screen::write::WriteJob;
use crate::view::fixture::{postgres, tree_step};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

fn hand(width: u16, height: u16) -> Hand {
    let mut hand = Hand::new(width, height);
    hand.show(tree_step(0)).wait(2_000);
    hand
}

fn job(hand: &Hand) -> WriteJob {
    match &hand.effects[..] {
        [Effect::Write(job)] => job.clone(),
        other => panic!("{other:?}"),
    }
}

fn control(hand: &mut Hand, c: char) {
    hand.event(Event::Key(KeyEvent::new(
        KeyCode::Char(c),
        KeyModifiers::CONTROL,
    )));
}

#[test]
fn the_dialog_at_every_size() {
    for (width, height) in [(60, 16), (80, 24), (120, 40)] {
        let mut hand = hand(width, height);
        hand.keys("w").code(KeyCode::Down).code(KeyCode::Down);
        hand.looks_like(&format!("write-{width}x{height}"));
        hand.looks_like_in_ascii(&format!("write-{width}x{height}-ascii"));
    }
}

#[test]
fn enter_writes_and_escape_does_not() {
    let mut hand = hand(80, 24);
    hand.keys("w").code(KeyCode::Esc);
    assert!(hand.effects.is_empty() && matches!(hand.app.mode, Mode::Browse));
    hand.keys("w\n");
    let job = job(&hand);
    // By the clock of the samples, which begins in 1970 here.
    assert_eq!(
        job.path.to_str(),
        Some("proftop-db-01-postgres_4121-19700101T000312Z.pft")
    );
    assert!(!job.overwrite);
    hand.event(Event::Written(Written::Done {
        path: "/tmp/a.pft".into(),
        bytes: 1 << 20,
    }));
    assert!(hand.frame().contains("wrote /tmp/a.pft, 1 MB\n"));
    hand.app.is_remote = true;
    assert!(
        hand.frame()
            .contains("wrote /tmp/a.pft, 1 MB   scp db-01:/tmp/a.pft .")
    );
}

#[test]
fn a_file_that_is_there_needs_another_key() {
    let mut hand = hand(80, 24);
    hand.keys("w").code(KeyCode::Down).code(KeyCode::Tab);
    control(&mut hand, 'u');
    hand.keys("mine.pb.gz\n");
    let first = job(&hand);
    assert_eq!(first.path.to_str(), Some("mine.pb.gz"));
    hand.event(Event::Written(Written::Exists(Box::new(first.clone()))));
    hand.looks_like("write-exists");
    hand.keys("\n");
    assert_eq!(job(&hand), first, "Enter alone tries the same again");
    hand.event(Event::Written(Written::Exists(Box::new(first.clone()))));
    control(&mut hand, 'o');
    assert!(job(&hand).overwrite);
    hand.event(Event::Written(Written::Failed("no space left".into())));
    assert!(hand.frame().contains("not written: no space left"));
}

#[test]
fn a_typed_name_keeps_up_with_the_format() {
    let mut hand = hand(80, 24);
    hand.keys("w").code(KeyCode::Tab);
    control(&mut hand, 'u');
    hand.keys("mine.pft").code(KeyCode::Down);
    hand.keys("\n");
    assert_eq!(job(&hand).path.to_str(), Some("mine.pb.gz"));
    hand.keys("w").code(KeyCode::Tab);
    control(&mut hand, 'u');
    hand.keys("\n");
    assert!(hand.effects.is_empty());
    assert!(hand.frame().contains("the file needs a name"));
}

#[test]
fn without_samples_there_is_nothing_to_write() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).keys("w");
    assert!(hand.frame().contains("no samples have come yet"));
}
