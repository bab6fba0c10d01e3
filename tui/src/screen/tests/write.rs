//! Tests of the write dialog.

use super::Hand;
use crate::app::mode::Mode;
use crate::app::{App, Effect, Event, Written};
use crate::dialogs::write::{Content, Manner, Room, WriteDialog, WriteJob};
use crate::fixture::{postgres, tree_step};
use crate::run::writing;
use crossterm::event::KeyCode;
use engine::snapshot::TargetState;

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

#[test]
fn what_is_typed_among_the_formats_is_the_name() {
    let mut hand = hand(80, 24);
    hand.keys("w/tmp/job quick.folded");
    let frame = hand.frame();
    assert!(frame.contains("/tmp/job quick.folded"), "{frame}");
    assert!(frame.contains("(*) .folded"), "{frame}");
    hand.keys("\n");
    assert_eq!(job(&hand).path.to_str(), Some("/tmp/job quick.folded"));
}

#[test]
fn the_dialog_at_every_size() {
    for (width, height) in [(40, 8), (60, 16), (80, 24), (120, 40)] {
        let mut hand = hand(width, height);
        hand.keys("w");
        measured(&mut hand, Ok(44_000_000_000), Some("ann"));
        hand.code(KeyCode::Down).code(KeyCode::Down);
        hand.looks_like(&format!("write-{width}x{height}"));
        hand.looks_like_in_ascii(&format!("write-{width}x{height}-ascii"));
        option(&mut hand, REPEAT);
        hand.keys("5").code(KeyCode::BackTab);
        hand.keys(" ");
        hand.looks_like(&format!("write-options-{width}x{height}"));
        hand.looks_like_in_ascii(&format!("write-options-{width}x{height}-ascii"));
    }
}

/// Returns the folders whose free space was asked for.
fn folders(hand: &Hand) -> Vec<String> {
    let asked = hand.effects.iter().filter_map(|effect| match effect {
        Effect::Measure(folder) => Some(folder.to_string_lossy().into_owned()),
        _ => None,
    });
    asked.collect()
}

/// Returns the file whose size was asked for.
fn weighed(hand: &Hand) -> Option<Content> {
    let mut asked = hand.effects.iter().filter_map(|effect| match effect {
        Effect::Weigh(content) => Some(content.clone()),
        _ => None,
    });
    asked.next()
}

/// Answers the question of the dialog about its folder.
fn measured(hand: &mut Hand, free_bytes: Result<u64, String>, owner: Option<&str>) {
    let asked = folders(hand).pop().expect("it was asked for");
    hand.event(Event::Measured(Room {
        folder: asked.into(),
        path: "/home/ann/incident".into(),
        free_bytes,
        owner: owner.map(str::to_owned),
    }));
}

/// Returns how the requested job is to be written.
fn manner(hand: &Hand) -> Manner {
    match job(hand).content {
        Content::Profile { manner, .. } => manner,
        Content::Screen => panic!("it is the screen"),
    }
}

/// Moves to the option that is this many fields before the first one.
fn option(hand: &mut Hand, back: usize) {
    for _ in 0..back {
        hand.code(KeyCode::BackTab);
    }
}

const REPEAT: usize = 2;
const NAMES: usize = 3;
const THREADS: usize = 4;
const BUILD_IDS: usize = 5;
const SYMBOLS: usize = 6;

#[test]
fn room_is_asked_for_where_the_file_is_to_be() {
    let mut hand = hand(80, 24);
    hand.keys("w");
    assert_eq!(folders(&hand), ["."]);
    measured(&mut hand, Ok(3 << 30), None);
    assert!(
        hand.frame()
            .contains("in /home/ann/incident, 3.0 GB free  "),
        "{}",
        hand.frame()
    );
    hand.code(KeyCode::Tab);
    hand.control('u');
    hand.keys("/");
    assert_eq!(folders(&hand), ["/"]);
    assert!(!hand.frame().contains("free  "), "that was elsewhere");
    hand.keys("mnt/");
    // Only one question at a time, because a folder may not answer.
    assert!(folders(&hand).is_empty());
    hand.event(Event::Measured(Room {
        folder: "/".into(),
        path: "/".into(),
        free_bytes: Ok(1),
        owner: None,
    }));
    assert_eq!(folders(&hand), ["/mnt"]);
    measured(&mut hand, Err("Not a directory".into()), None);
    assert!(hand.frame().contains("not known (Not a directory)"));
    hand.code(KeyCode::Esc).event(Event::Measured(Room {
        folder: "/mnt".into(),
        path: "/mnt".into(),
        free_bytes: Ok(1),
        owner: None,
    }));
    let here = writing::room(".".into());
    assert!(here.free_bytes.is_ok_and(|bytes| bytes > 0));
    assert!(writing::room("/nowhere/at/all".into()).free_bytes.is_err());
}

#[test]
fn options_go_along_with_the_file() {
    let mut hand = hand(80, 24);
    hand.keys("w").code(KeyCode::Down).code(KeyCode::Down);
    option(&mut hand, THREADS);
    hand.keys(" ").code(KeyCode::Tab).keys(" \n");
    let wanted = Manner {
        by_thread: true,
        hides_names: true,
        ..Manner::default()
    };
    assert_eq!(manner(&hand), wanted);
    // The proposed name does not contain names either.
    assert_eq!(
        job(&hand).path.to_str(),
        Some("proftop-19700101T000312Z.folded")
    );
    // The next file starts with the same options.
    hand.keys("w\n");
    assert_eq!(manner(&hand), wanted);
}

#[test]
fn the_size_is_asked_for_once_a_shape() {
    let mut hand = hand(80, 24);
    hand.keys("w");
    let first = weighed(&hand)
        .expect("it is asked for")
        .shape()
        .expect("a profile");
    hand.code(KeyCode::Tab);
    assert_eq!(weighed(&hand), None, "it was asked for");
    hand.event(Event::Weighed(first, 8_600_000));
    assert!(hand.frame().contains("about 8 MB"), "{}", hand.frame());
    option(&mut hand, 1);
    hand.code(KeyCode::Down);
    let second = weighed(&hand).and_then(|content| content.shape());
    assert_ne!(second, Some(first));
    // The size of another file is not shown for this one.
    hand.event(Event::Weighed(first, 8_600_000));
    assert!(!hand.frame().contains("about"), "{}", hand.frame());
    option(&mut hand, SYMBOLS);
    hand.keys(" ");
    let bare = weighed(&hand)
        .and_then(|content| content.shape())
        .expect("without symbols it is another file");
    assert!(bare.manner.omits_symbols);
    hand.event(Event::Weighed(bare, 2_000_000)).keys("\n");
    assert!(hand.frame().contains("writing…"));
    hand.event(Event::Progress(500_000));
    assert!(hand.frame().contains("writing… 25%  "), "{}", hand.frame());
    hand.event(Event::Progress(3_000_000));
    assert!(hand.frame().contains("writing… 2 MB"), "more samples came");
    // The detail line shows something else now.
    hand.keys("j").event(Event::Progress(3_500_000));
    assert!(!hand.frame().contains("writing…"));
}

#[test]
fn what_is_said_of_the_size_is_what_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut hand = hand(80, 24);
    let mut writing = writing::Writing::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    for format in 0..crate::dialogs::write::KINDS.len() - 1 {
        hand.keys("w");
        for _ in 0..format {
            hand.code(KeyCode::Down);
        }
        writing.weigh(weighed(&hand).expect("it is asked for"));
        let Event::Weighed(shape, bytes) = runtime.block_on(writing.told()) else {
            panic!("only that was asked");
        };
        hand.keys("\n");
        let mut job = job(&hand);
        assert_eq!(job.content.shape(), Some(shape));
        job.path = folder.path().join(&job.path);
        let path = job.path.clone();
        writing::write(job, String::new(), &|_| ());
        let written = std::fs::metadata(path).expect("it was written").len();
        assert_eq!(written, bytes, "{:?}", shape.format);
    }
}

#[test]
fn symbols_and_build_ids_can_be_left_out() {
    let mut hand = hand(80, 24);
    hand.keys("w");
    assert!(hand.frame().contains("[x] symbols   [x] build-ids"));
    option(&mut hand, SYMBOLS);
    hand.keys(" ");
    assert!(hand.frame().contains("[ ] symbols"), "{}", hand.frame());
    assert!(hand.frame().contains("addresses only: proftop"));
    hand.code(KeyCode::Tab).keys(" \n");
    let wanted = Manner {
        omits_symbols: true,
        omits_build_ids: true,
        ..Manner::default()
    };
    assert_eq!(manner(&hand), wanted);
    // The screen cannot be written without them.
    hand.keys("w");
    option(&mut hand, BUILD_IDS);
    hand.code(KeyCode::Up);
    assert!(hand.frame().contains("[x] symbols   [-] build-ids"));
    hand.keys("\n");
    assert!(hand.effects.is_empty() && hand.frame().contains("the screen shows symbols"));
}

#[test]
fn what_a_format_cannot_do_is_not_chosen() {
    let mut hand = hand(80, 24);
    hand.keys("w");
    option(&mut hand, THREADS);
    hand.keys(" ");
    assert!(
        hand.frame()
            .contains("this format always keeps each thread by itself")
    );
    hand.keys("\n");
    assert!(!manner(&hand).by_thread, "it was on all the time");
    hand.keys("w");
    option(&mut hand, NAMES);
    hand.keys(" ").code(KeyCode::Up);
    assert!(hand.frame().contains("[-] hide names"), "{}", hand.frame());
    hand.keys("\n");
    assert!(hand.effects.is_empty(), "names are on the screen");
    assert!(hand.frame().contains("the screen shows names"));
    hand.code(KeyCode::Down).keys("\n");
    assert!(manner(&hand).hides_names);
}

/// Starts to write a file every ten seconds, and lets the first one be written.
fn repeating() -> Hand {
    let mut hand = hand(80, 24);
    hand.keys("w").code(KeyCode::Tab);
    hand.control('u');
    hand.keys("a.pft");
    option(&mut hand, REPEAT + 1);
    hand.code(KeyCode::Backspace).code(KeyCode::Backspace);
    hand.keys("10");
    assert!(hand.frame().contains("[x] go on writing every 10 s"));
    hand.keys("\n");
    assert!(job(&hand).is_repeated);
    done(&mut hand);
    hand
}

fn done(hand: &mut Hand) {
    let path = job(hand).path.to_string_lossy().into_owned();
    hand.event(Event::Repeated(Written::Done { path, bytes: 7 }));
}

fn next_path(hand: &mut Hand, milliseconds: u64) -> Option<String> {
    hand.wait(milliseconds);
    let effect = hand.effects.first()?;
    match effect {
        Effect::Write(job) => Some(job.path.to_string_lossy().into_owned()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_follow_one_another() {
    let mut hand = repeating();
    assert!(hand.frame().contains("wrote a.pft, 7 B"));
    assert_eq!(next_path(&mut hand, 9_000), None);
    assert_eq!(next_path(&mut hand, 1_000).as_deref(), Some("a-2.pft"));
    let first = job(&hand);
    assert_eq!(next_path(&mut hand, 60_000), None, "it is not out yet");
    hand.keys("j");
    let detail = |hand: &Hand| hand.frame().lines().nth(22).map(str::to_owned);
    let before = detail(&hand);
    hand.event(Event::Repeated(Written::Done {
        path: "a-2.pft".into(),
        bytes: 7,
    }));
    assert_eq!(detail(&hand), before, "the line stays whose it is");
    assert!(hand.frame().contains("writes every 10 s (2)"));
    // An existing file is not overwritten.
    assert_eq!(next_path(&mut hand, 0).as_deref(), Some("a-3.pft"));
    hand.event(Event::Repeated(Written::Exists(Box::new(first))));
    assert_eq!(job(&hand).path.to_str(), Some("a-4.pft"));
    assert!(!job(&hand).overwrite);
    hand.event(Event::Repeated(Written::Failed("no space left".into())));
    assert!(
        hand.frame()
            .contains("no more files are written, after 2 files: no space left")
    );
    assert_eq!(next_path(&mut hand, 60_000), None);
    assert!(!hand.frame().contains("writes every"));
}

#[test]
fn they_end_when_somebody_says_so_and_with_the_target() {
    let mut hand = repeating();
    hand.keys("w");
    assert!(
        hand.frame().contains("^x no more files"),
        "{}",
        hand.frame()
    );
    hand.control('x');
    assert!(
        hand.frame()
            .contains("no more files are written: 1 file so far")
    );
    assert_eq!(next_path(&mut hand, 60_000), None);

    let mut hand = repeating();
    let mut ended = tree_step(1);
    ended.run.target = TargetState::Exited {
        words: "postgres[4121] ended".into(),
        at_ns: 0,
    };
    hand.show(ended);
    assert_eq!(next_path(&mut hand, 10_000).as_deref(), Some("a-2.pft"));
    done(&mut hand);
    assert!(
        hand.frame()
            .contains("no more files are written: 2 files so far")
    );
    assert_eq!(next_path(&mut hand, 60_000), None);
    // When the target has ended, only one file can be written.
    hand.keys("w");
    option(&mut hand, REPEAT);
    hand.keys(" 5");
    assert!(hand.frame().contains("[-] go on writing every 60 s"));
    hand.keys("\n");
    assert!(!job(&hand).is_repeated);
}

#[test]
fn while_the_view_is_frozen_files_have_what_came_in() {
    let mut hand = repeating();
    hand.keys(" ");
    let newer = tree_step(3);
    let samples = newer.view.as_ref().expect("a store").samples();
    hand.show(newer);
    assert!(next_path(&mut hand, 10_000).is_some());
    match job(&hand).content {
        Content::Profile { view, .. } => assert_eq!(view.samples(), samples),
        Content::Screen => panic!("it is a profile"),
    }
    assert_ne!(shown_samples(&hand.app), samples);
}

fn shown_samples(app: &App) -> u64 {
    app.shown.view.as_ref().expect("a store").samples()
}

#[test]
fn a_first_file_that_is_there_is_asked_about() {
    let mut hand = hand(80, 24);
    hand.keys("w");
    option(&mut hand, REPEAT);
    hand.keys(" \n");
    let first = job(&hand);
    hand.event(Event::Repeated(Written::Exists(Box::new(first))));
    assert!(matches!(hand.app.mode, Mode::Write(_)));
    assert!(hand.frame().contains("[x] go on writing every 60 s"));
    assert!(!hand.frame().contains("writes every"));
    hand.control('o');
    assert!(job(&hand).overwrite && job(&hand).is_repeated);
}

#[test]
fn what_is_hidden_is_in_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut hand = hand(80, 24);
    for hides in [false, true] {
        hand.keys("w").code(KeyCode::Down).code(KeyCode::Down);
        hand.keys("\n");
        let mut job = job(&hand);
        job.path = folder.path().join(format!("{hides}.folded"));
        if let Content::Profile { manner, .. } = &mut job.content {
            manner.hides_names = hides;
        }
        let path = job.path.clone();
        let written = writing::write(job, String::new(), &|_| ());
        assert!(matches!(written, Written::Done { .. }), "{written:?}");
        let text = std::fs::read_to_string(path).expect("it was written");
        assert_eq!(text.contains("postgres;"), !hides);
        assert_eq!(text.contains("command-1;"), hides);
        assert!(text.contains("heap_hot_search_buffer"));
    }
}

#[test]
fn the_proposed_name_says_what_is_in_the_file() {
    let mut hand = hand(80, 24);
    hand.app.mode = Mode::Write(WriteDialog::new(
        &postgres(),
        "reader[7]",
        Manner::default(),
    ));
    let name = |hand: &Hand| match &hand.app.mode {
        Mode::Write(dialog) => dialog.file.text().to_owned(),
        mode => panic!("{mode:?}"),
    };
    // A .pft contains all samples that are kept, whatever the screen is narrowed to.
    let whole = name(&hand);
    assert!(
        whole.contains("-postgres_4121") && whole.ends_with(".pft"),
        "{whole}"
    );
    hand.code(KeyCode::Down);
    let shown = name(&hand);
    assert!(shown.contains("-reader_7"), "{shown}");
}

#[test]
fn enter_writes_and_escape_does_not() {
    let mut hand = hand(80, 24);
    hand.keys("w").code(KeyCode::Esc);
    assert!(hand.effects.is_empty() && matches!(hand.app.mode, Mode::Browse));
    hand.keys("w\n");
    let job = job(&hand);
    // The time is that of the samples, whose clock starts in 1970 here.
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
    hand.app.terminal.is_remote = true;
    assert!(
        hand.frame()
            .contains("wrote /tmp/a.pft, 1 MB   scp db-01:/tmp/a.pft .")
    );
}

#[test]
fn a_file_that_is_there_needs_another_key() {
    let mut hand = hand(80, 24);
    hand.keys("w").code(KeyCode::Down).code(KeyCode::Tab);
    hand.control('u');
    hand.keys("mine.pb.gz\n");
    let first = job(&hand);
    assert_eq!(first.path.to_str(), Some("mine.pb.gz"));
    hand.event(Event::Written(Written::Exists(Box::new(first.clone()))));
    hand.looks_like("write-exists");
    hand.keys("\n");
    assert_eq!(job(&hand), first, "Enter alone tries the same again");
    hand.event(Event::Written(Written::Exists(Box::new(first.clone()))));
    hand.control('o');
    assert!(job(&hand).overwrite);
    hand.event(Event::Written(Written::Failed("no space left".into())));
    assert!(
        hand.frame()
            .contains("the file was not written: no space left")
    );
}

#[test]
fn a_typed_name_keeps_up_with_the_format() {
    let mut hand = hand(80, 24);
    hand.keys("w").code(KeyCode::Tab);
    hand.control('u');
    hand.keys("mine.pft").code(KeyCode::Down);
    hand.keys("\n");
    assert_eq!(job(&hand).path.to_str(), Some("mine.pb.gz"));
    // The format follows the typed extension as well.
    hand.keys("w").code(KeyCode::Tab);
    hand.control('u');
    hand.keys("mine.folded\n");
    match job(&hand).content {
        Content::Profile { format, .. } => assert_eq!(format, profile::formats::Format::Folded),
        Content::Screen => panic!("it is a profile"),
    }
    hand.keys("w").code(KeyCode::Tab);
    hand.control('u');
    hand.keys("\n");
    assert!(hand.effects.is_empty());
    assert!(hand.frame().contains("the file needs a name"));
}

#[test]
fn it_asks_what_is_written() {
    let mut hand = hand(80, 24);
    let whole = |hand: &Hand| match job(hand).content {
        Content::Profile {
            is_whole, format, ..
        } => (is_whole, format.word()),
        Content::Screen => (false, "screen"),
    };
    hand.keys("w").code(KeyCode::BackTab);
    assert!(
        hand.frame().contains("(*) all that is kept: 42 samples"),
        "{}",
        hand.frame()
    );
    hand.keys("\n");
    assert_eq!(whole(&hand), (true, "pft"));
    // A .pft always contains all samples, so a part of them needs another format.
    hand.keys("w").code(KeyCode::BackTab).code(KeyCode::Left);
    assert!(
        hand.frame()
            .contains("(*) this scope and window: postgres[4121], last 10s")
    );
    assert!(hand.frame().contains("(*) .pb.gz"), "{}", hand.frame());
    hand.code(KeyCode::Down).keys("\n");
    assert_eq!(whole(&hand), (false, "folded"));
    // All samples in that format.
    hand.keys("w").code(KeyCode::BackTab).code(KeyCode::Left);
    hand.code(KeyCode::Down).keys(" ");
    assert!(hand.frame().contains("(*) all that is kept") && hand.frame().contains("(*) .folded"));
    assert!(weighed(&hand).is_some(), "it is another size");
    hand.keys("\n");
    assert_eq!(whole(&hand), (true, "folded"));
    match job(&hand).content {
        Content::Profile { query, .. } => assert!(query.filter.is_empty()),
        Content::Screen => panic!("it is a profile"),
    }
    // The screen, and back from it.
    hand.keys("w").code(KeyCode::BackTab).keys(" \n");
    assert_eq!(whole(&hand), (false, "screen"));
    hand.keys("w").code(KeyCode::BackTab).keys("  \n");
    assert_eq!(whole(&hand), (false, "pprof"));
}

#[test]
fn a_folder_without_room_is_warned_of() {
    let mut hand = hand(80, 24);
    hand.keys("w");
    let shape = weighed(&hand).and_then(|content| content.shape());
    measured(&mut hand, Ok(5 << 20), None);
    hand.event(Event::Weighed(shape.expect("it is asked for"), 8 << 20));
    let frame = hand.frame();
    assert!(
        frame.contains("too large: about 8 MB   in /home/ann/incident, 5 MB free"),
        "{frame}"
    );
}

#[test]
fn without_samples_there_is_nothing_to_write() {
    let mut hand = Hand::new(80, 24);
    hand.show(postgres()).keys("w");
    assert!(hand.frame().contains("no samples have come yet"));
}
