use super::*;

/// What a host has of a function, and in all: on A and on B.
type OfHost = ([f64; 2], [f64; 2]);

/// The sums that SQL takes, of what hosts have on both sides: (x, y) of A and of B.
fn sums(hosts: &[OfHost]) -> (Moments, Sides) {
    let sum = |of: &dyn Fn([f64; 2], [f64; 2]) -> f64| hosts.iter().map(|it| of(it.0, it.1)).sum();
    let moments = Moments {
        sum: [sum(&|a, _| a[0]), sum(&|_, b| b[0])],
        squares: [sum(&|a, _| a[0] * a[0]), sum(&|_, b| b[0] * b[0])],
        product: sum(&|a, b| a[0] * b[0]),
        with_all: [sum(&|a, _| a[0] * a[1]), sum(&|_, b| b[0] * b[1])],
        with_other: [sum(&|a, b| a[0] * b[1]), sum(&|a, b| b[0] * a[1])],
    };
    let count = |of: &dyn Fn(&OfHost) -> bool| hosts.iter().filter(|it| of(it)).count() as u64;
    let sides = Sides {
        hosts: [count(&|it| it.0[1] > 0.0), count(&|it| it.1[1] > 0.0)],
        hosts_both: count(&|it| it.0[1] > 0.0 && it.1[1] > 0.0),
        all: [sum(&|a, _| a[1]), sum(&|_, b| b[1])],
        all_squares: [sum(&|a, _| a[1] * a[1]), sum(&|_, b| b[1] * b[1])],
        all_product: sum(&|a, b| a[1] * b[1]),
        samples: [1e9; 2],
        recorded_ms: [3.6e6; 2],
        shared: 0.0,
        period_ns: 5e7,
    };
    (moments, sides)
}

const NONE: [f64; 2] = [0.0, 0.0];

#[test]
fn hosts_of_equal_size_are_compared_as_two_means() {
    // Shares of 1, 2, 3 % and 4, 5, 6 %: means 2 and 5, variances 1, and 4 degrees of freedom.
    let a = [1.0, 2.0, 3.0].map(|x| ([x, 100.0], NONE));
    let b = [4.0, 5.0, 6.0].map(|x| (NONE, [x, 100.0]));
    let (moments, sides) = sums(&[a, b].concat());
    let change = change(&moments, &sides);
    assert!((change.delta() - 0.03).abs() < 1e-12);
    // The table of Student's distribution has 2.776.
    let half = 2.776_445 * (2.0_f64 / 3.0).sqrt() / 100.0;
    assert!((change.half.unwrap() - half).abs() < 1e-6, "{change:?}");
    assert_eq!(change.covers_zero(), Some(false));
}

#[test]
fn hosts_that_are_on_both_sides_are_compared_with_themselves() {
    // Hosts differ by far more than the change, which is nearly the same on each.
    let both = [
        (1.0, 1.5),
        (10.0, 10.4),
        (20.0, 20.6),
        (30.0, 30.5),
        (40.0, 40.5),
    ];
    let paired = both.map(|(a, b)| ([a, 100.0], [b, 100.0]));
    let (moments, sides) = sums(&paired);
    let of_pairs = change(&moments, &sides);
    let a = both.map(|(a, _)| ([a, 100.0], NONE));
    let b = both.map(|(_, b)| (NONE, [b, 100.0]));
    let (moments, sides) = sums(&[a, b].concat());
    let of_others = change(&moments, &sides);
    assert!((of_pairs.delta() - 0.005).abs() < 1e-12);
    assert_eq!(of_others.covers_zero(), Some(true));
    assert!(of_pairs.half < of_others.half, "{of_pairs:?} {of_others:?}");
}

#[test]
fn one_host_says_nothing_of_how_hosts_differ() {
    let (moments, sides) = sums(&[([1.0, 100.0], NONE), (NONE, [50.0, 100.0])]);
    let change = change(&moments, &sides);
    assert_eq!((change.half, change.covers_zero()), (None, None));
    assert_eq!(change.mark(), None);
}

#[test]
fn two_samples_are_no_certainty() {
    let hosts = [
        ([0.0, 100.0], NONE),
        ([0.0, 100.0], NONE),
        (NONE, [1.0, 100.0]),
        (NONE, [1.0, 100.0]),
    ];
    let (moments, mut sides) = sums(&hosts);
    sides.samples = [200.0, 200.0];
    assert_eq!(change(&moments, &sides).covers_zero(), Some(true));
}

#[test]
fn a_chance_is_corrected_for_those_below_it() {
    let with = |chance| Change {
        a: 0.0,
        b: 0.0,
        half: Some(0.0),
        chance,
        corrected: None,
    };
    let mut changes = [Some(0.04), None, Some(0.01), Some(0.03)].map(with);
    correct(changes.iter_mut().collect());
    let found = changes.map(|it| it.corrected.map(|it| (it * 1000.0).round()));
    assert_eq!(found, [Some(60.0), None, Some(30.0), Some(60.0)]);
}

#[test]
fn intervals_have_the_width_of_the_table() {
    for (freedom, expected) in [
        (1.0, 12.706),
        (2.0, 4.303),
        (4.0, 2.776),
        (13.0, 2.160),
        (100.0, 1.984),
        (1e6, 1.960),
    ] {
        let found = quantile(freedom);
        assert!((found - expected).abs() < 1e-3, "{freedom}: {found}");
    }
}
