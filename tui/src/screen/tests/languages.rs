//! Tests of languages beside native code: the column of the functions, and the lines of Health.

use super::*;
use crate::fixture::python_stacks;
use profile::FrameKind;

fn with_python() -> Snapshot {
    let mut snapshot = postgres();
    let report = Arc::make_mut(&mut snapshot.report);
    for (row, name) in report
        .functions
        .iter_mut()
        .zip(["shop.Cart.add", "shop.main"])
    {
        row.kind = FrameKind::Python;
        row.name = name.into();
        row.module = "shop.py".into();
    }
    snapshot.health.languages = vec![python_stacks()];
    snapshot
}

#[test]
fn a_column_has_them_where_there_is_room() {
    let mut hand = Hand::new(100, 24);
    hand.show(with_python());
    let frame = hand.frame();
    let line = |word: &str| {
        let line = frame.lines().find(|line| line.contains(word));
        line.unwrap_or_else(|| panic!("{word}: {frame}")).to_owned()
    };
    assert!(line("SELF%").contains("LANG"), "{frame}");
    assert!(
        line("shop.Cart.add").contains(" py   shop.Cart.add"),
        "{frame}"
    );
    // Without such a language there is no column.
    let mut hand = Hand::new(100, 24);
    hand.show(postgres());
    assert!(!hand.frame().contains("LANG"));
    let mut hand = Hand::new(80, 24);
    hand.show(with_python());
    assert!(!hand.frame().contains("LANG"));
}

#[test]
fn health_says_how_complete_they_are() {
    let mut hand = Hand::new(80, 32);
    hand.show(with_python()).keys("8");
    hand.looks_like("health-python-80x32");
    let frame = hand.frame();
    assert!(frame.contains("9,310   99.4%  of 9,369 samples"), "{frame}");
    assert!(
        frame.contains("8,122   87.2%  of samples on a CPU"),
        "{frame}"
    );
}
