use super::*;
use std::path::PathBuf;

/// The recording of `proftop demo`, which is one of real programs.
fn demo() -> Recorded {
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/demo.pft");
    Recorded::read(&[PathBuf::from(place)]).unwrap()
}

fn fleet() -> Fleet {
    Fleet {
        seed: 7,
        cpus: 8,
        rate_hz: 19,
        services: 2,
        weighting: Weighting::Zipf,
        begin_ms: 1_795_269_600_000,
        minutes: 10,
        planted: 0.03,
        has_faults: false,
    }
}

#[test]
fn the_same_seed_gives_the_same_samples_and_another_one_others() {
    let recorded = demo();
    let make = |seed| {
        let simulation = Simulation::new(&recorded, Fleet { seed, ..fleet() });
        let window = simulation.host(3).unwrap().window(0);
        let ids: Vec<u64> = window.stacks.iter().map(|it| it.id).collect();
        (ids, window.services)
    };
    assert_eq!(make(7), make(7));
    assert_ne!(make(7), make(8));
}

#[test]
fn a_window_has_the_stacks_of_its_samples_and_no_others() {
    let recorded = demo();
    let simulation = Simulation::new(&recorded, fleet());
    let mut host = simulation.host(0).unwrap();
    for minute in 0..10 {
        let window = host.window(minute);
        let mut is_used = vec![false; window.stacks.len()];
        for (stack, _) in window.services.iter().flat_map(|it| &it.samples) {
            is_used[*stack as usize] = true;
        }
        assert!(is_used.into_iter().all(|it| it));
        for stack in &window.stacks {
            let frames = stack.frames.iter().map(|it| &window.frames[*it as usize]);
            let frames: Vec<_> = frames.collect();
            assert_eq!(
                stack.id,
                crate::window::ids::stack(frames.iter().map(|it| it.id))
            );
            for frame in frames {
                assert_eq!(frame.id, crate::window::ids::frame(frame));
            }
        }
        // 8 CPUs at 19 Hz are 9,120 samples a minute if they are busy all the time.
        assert!((1000..9120).contains(&window.total()), "{}", window.total());
        let version = window.services[0].version.clone();
        assert_eq!(
            version,
            if minute < 4 {
                "A"
            } else if minute >= 6 {
                "B"
            } else {
                &*version
            }
        );
    }
}

#[test]
fn some_hosts_are_down_and_some_have_a_wrong_clock() {
    let recorded = demo();
    let simulation = Simulation::new(
        &recorded,
        Fleet {
            has_faults: true,
            cpus: 1,
            ..fleet()
        },
    );
    let (mut down, mut skewed) = (0, 0);
    for number in 0..2000 {
        match simulation.host(number) {
            None => down += 1,
            Some(mut host) => {
                let begin_ms = host.window(0).begin_ms;
                skewed += u32::from(begin_ms != simulation.fleet.begin_ms);
            }
        }
    }
    assert!((10..35).contains(&down), "{down}");
    assert!((3..22).contains(&skewed), "{skewed}");
}

#[test]
fn an_index_is_drawn_by_its_weight() {
    let heavy = (1..=1000).map(|place| 1.0 / f64::from(place));
    let some_are_nothing = [0.0, 2.0, 0.0, 0.0, 1.0, 0.0].into_iter();
    let all: [Vec<f64>; 4] = [
        heavy.clone().collect(),
        heavy.rev().collect(),
        some_are_nothing.collect(),
        vec![3.0],
    ];
    for weights in all {
        let weights = Weights::new(weights.into_iter());
        let sum = weights.sums.last().unwrap();
        for part in 0..100_000 {
            let part = f64::from(part) / 1e5;
            let index = weights.sums.partition_point(|end| *end <= part * sum);
            assert_eq!(weights.at(part), index);
        }
        assert!(weights.at(1.0) < weights.len());
    }
}
