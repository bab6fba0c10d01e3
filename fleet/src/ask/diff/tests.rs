//! Comparisons of fleets that are generated, through the encoder of the sink `parquet`.

use super::*;
use crate::engine::{Bounds, Embedded, Folder, Place};
use crate::generate::Fleet;
use crate::sql::{Column as By, DataFusion};

/// Two versions on ten hosts each, five minutes.
const FLEET: Fleet = Fleet {
    seed: 2026,
    hosts: 20,
    windows: 5,
    services: 1,
    stacks: 60,
    samples: 400,
    versions: 2,
    planted: 0.0,
};

/// The function of each row, in the order of the table, with its changes.
fn compare(fleet: &Fleet) -> Vec<(String, Change, Change)> {
    let dir = tempfile::tempdir().unwrap();
    fleet.write(dir.path()).unwrap();
    let folder = Folder::look(&Place::Folder(dir.path().into()), Span::default()).unwrap();
    let bounds = Bounds {
        memory_bytes: 256 << 20,
        rows_max: 10_000_000,
    };
    let engine = Embedded::for_questions(&folder, bounds).unwrap();
    let side = |version: &str| {
        let mut side = Selection::default();
        side.add(By::Version, version).unwrap();
        side
    };
    let compared = Compared {
        base: Selection {
            event: "cpu".into(),
            ..Selection::default()
        },
        a: side("v0"),
        b: side("v1"),
    };
    let comparison = compared.compare(&engine, &DataFusion, Sort::Own).unwrap();
    assert_eq!(comparison.sides.hosts, [10, 10]);
    assert_eq!(comparison.sides.samples, [10.0 * 5.0 * 400.0; 2]);
    let row = |it: &Compare| {
        let name = comparison.answer.row(it.at).text("function");
        (name.to_string(), it.own, it.total)
    };
    comparison.functions.iter().map(row).collect()
}

#[test]
fn three_samples_of_a_hundred_more_are_found() {
    for seed in [1, 2, 3] {
        let rows = compare(&Fleet {
            seed,
            planted: 0.03,
            ..FLEET
        });
        let place = rows.iter().position(|it| it.0 == "planted").unwrap();
        let (_, own, total) = &rows[place];
        assert!(place < 3, "seed {seed}: it is in place {place}");
        assert!(
            own.covers_zero() == Some(false) && total.covers_zero() == Some(false),
            "seed {seed}: {own:?}"
        );
        let half = own.half.unwrap();
        let is_in = (own.delta() - half..=own.delta() + half).contains(&0.03);
        println!(
            "seed {seed}: {:.4} ± {half:.4}, {}",
            own.delta(),
            own.mark().unwrap()
        );
        assert!(is_in, "seed {seed}: {own:?}");
    }
}
