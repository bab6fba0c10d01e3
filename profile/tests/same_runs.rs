//! Two runs of one program: how often a comparison finds a difference where there is none, and
//! whether it finds one where there is one. The runs are simulated, so that what varies in them,
//! and for how long, is known.

use profile::diff::{Diff, FALSE_RATE};
use profile::{
    Busy, Cancel, Ending, Frame, FrameKind, Host, Info, Limits, ModuleId, NameState, NewSample,
    ProcessId, Query, Rates, Selection, Store,
};
use test_support::Random;

const SECOND_NS: u64 = 1_000_000_000;
const FUNCTIONS: [&str; 4] = ["parse", "encode", "store", "collect"];

/// A program on a machine.
#[derive(Clone, Copy)]
struct Program {
    seconds: f64,
    hz: u32,
    /// The share of a CPU that it takes, alternating between these two, and the mean time between
    /// two changes.
    cpu: [f64; 2],
    turn_s: f64,
    /// The share of each function in that while it works, and while it collects garbage, in turns;
    /// and the mean duration of a turn.
    shares: [[f64; 4]; 2],
    collecting_s: f64,
}

const SHARES: [f64; 4] = [0.5, 0.3, 0.15, 0.05];

impl Program {
    /// Takes three tenths of a CPU, and does the same all the time.
    fn even(seconds: f64, hz: u32) -> Self {
        Self {
            seconds,
            hz,
            cpu: [0.3; 2],
            turn_s: 1.0,
            shares: [SHARES; 2],
            collecting_s: 1.0,
        }
    }

    /// Gets a tenth or half of a CPU in turns, because of other programs.
    fn disturbed(self, turn_s: f64) -> Self {
        Self {
            cpu: [0.1, 0.5],
            turn_s,
            ..self
        }
    }

    /// Collects garbage for as long as it works.
    fn collecting(self, collecting_s: f64) -> Self {
        Self {
            shares: [SHARES, [0.2, 0.1, 0.1, 0.6]],
            collecting_s,
            ..self
        }
    }

    /// Makes the first function take `times` as much time as before.
    fn with_slower_first(self, times: f64) -> Self {
        let more = self.shares[0][0] * (times - 1.0);
        let slower = |shares: [f64; 4]| {
            let [first, rest @ ..] = shares;
            let [a, b, c] = rest.map(|share| share / (1.0 + more));
            [(first + more) / (1.0 + more), a, b, c]
        };
        Self {
            cpu: self.cpu.map(|cpu| cpu * (1.0 + more)),
            shares: self.shares.map(slower),
            ..self
        }
    }

    fn run(&self, random: &mut Random) -> Selection {
        self.run_on(random, Busy::default())
    }

    fn run_on(&self, random: &mut Random, busy: Busy) -> Selection {
        self.run_with(random, busy, 2)
    }

    /// Runs it on a machine with `cpus` CPUs, which were `busy`.
    fn run_with(&self, random: &mut Random, busy: Busy, cpus: u32) -> Selection {
        let mut store = Store::new(Limits::default());
        store.set_info(Info {
            rates: Rates::always(self.hz),
            host: Host {
                cpus,
                ..Host::default()
            },
            ..Info::default()
        });
        store.set_busy(busy);
        store.add_module(ModuleId(0), "program", "/program");
        store.add_process(ProcessId(1), 7, "program");
        store.begin(SECOND_NS);
        let mut cpu = Turns::new(self.turn_s, random);
        let mut work = Turns::new(self.collecting_s, random);
        for tick in 0..(self.seconds * f64::from(self.hz)) as u64 {
            let at = tick as f64 / f64::from(self.hz);
            let cpu = self.cpu[cpu.at(at, random)];
            let shares = self.shares[work.at(at, random)];
            if unit(random) >= cpu {
                continue;
            }
            let mut left = unit(random);
            let function = shares.iter().position(|share| {
                left -= share;
                left < 0.0
            });
            let frame = Frame {
                module: ModuleId(0),
                address: function.unwrap_or(3) as u64 * 0x1000,
                kind: FrameKind::User,
            };
            store.add_sample(NewSample {
                time_ns: SECOND_NS + (at * 1e9) as u64,
                cpu: 0,
                process: ProcessId(1),
                tid: 7,
                comm: "program",
                frames: &[frame],
                kernel_frames: 0,
                ending: Ending::Root,
                weight: 1,
            });
        }
        store.end(SECOND_NS + (self.seconds * 1e9) as u64);
        for id in store.frames_to_name(10) {
            let at = store.frame(id).expect("it was asked for").address / 0x1000;
            store.set_name(id, NameState::Named(FUNCTIONS[at as usize].into()));
        }
        let selection = store.view().select(&Query::default(), &Cancel::new());
        selection.expect("nobody cancels it")
    }
}

/// Returns a random number from 0 up to 1.
fn unit(random: &mut Random) -> f64 {
    random.below(1 << 52) as f64 / (1u64 << 52) as f64
}

/// Alternates between two states for random durations.
struct Turns {
    now: usize,
    until: f64,
    mean_s: f64,
}

impl Turns {
    fn new(mean_s: f64, random: &mut Random) -> Self {
        let now = random.below(2) as usize;
        let mut turns = Self {
            now,
            until: 0.0,
            mean_s,
        };
        turns.until = turns.length(random);
        turns
    }

    fn length(&self, random: &mut Random) -> f64 {
        -self.mean_s * (1.0 - unit(random)).ln()
    }

    fn at(&mut self, time: f64, random: &mut Random) -> usize {
        while time >= self.until {
            self.now = 1 - self.now;
            self.until += self.length(random);
        }
        self.now
    }
}

/// The result of a comparison.
struct Found {
    /// Whether some function changed for sure.
    any: bool,
    /// Whether the first function did, and grew.
    first_grew: bool,
    /// Whether a function would count as changed if samples were independent of each other.
    any_by_count: bool,
}

fn compare(a: &Selection, b: &Selection) -> Found {
    let mut diff = Diff::new(a, b);
    diff.compare_time();
    let first = diff
        .rows
        .iter()
        .find(|row| &*row.name == FUNCTIONS[0])
        .expect("it has half of the samples");
    Found {
        any: diff.rows.iter().any(|row| row.sure),
        first_grew: first.sure && first.b_self > first.a_self,
        any_by_count: diff.rows.iter().any(|row| {
            let (a, b) = (row.a_self as f64, row.b_self as f64);
            // Four tests at once: 2.5 standard deviations.
            a + b >= 10.0 && (b - a).abs() / (a + b).sqrt() > 2.5
        }),
    }
}

/// Returns for each field of [`Found`] the percentage of pairs of runs for which it is true.
fn percents(pairs: u32, seed: u64, before: Program, after: Program) -> [f64; 3] {
    let mut random = Random::new(seed);
    let mut found = [0; 3];
    for _ in 0..pairs {
        let (a, b) = (before.run(&mut random), after.run(&mut random));
        let is = compare(&a, &b);
        for (count, is) in found
            .iter_mut()
            .zip([is.any, is.first_grew, is.any_by_count])
        {
            *count += u32::from(is);
        }
    }
    let percents = found.map(|count| f64::from(count) * 100.0 / f64::from(pairs));
    println!(
        "any {}, first grew {}, by count {}",
        percents[0], percents[1], percents[2]
    );
    percents
}

/// With four hundred pairs, this many may be found if one in twenty is expected.
const FALSE_MAX: f64 = FALSE_RATE * 100.0 + 3.0;
const PAIRS: u32 = 400;

#[test]
fn the_same_twice_is_no_difference() {
    for (seconds, hz) in [(4.0, 99), (20.0, 99), (4.0, 999)] {
        let program = Program::even(seconds, hz);
        let [any, ..] = percents(PAIRS, 11, program, program);
        assert!(any <= FALSE_MAX, "{seconds} s at {hz} Hz: {any} %");
    }
}

#[test]
fn what_else_runs_is_no_difference() {
    for (seconds, turn_s) in [(4.0, 0.3), (60.0, 0.5), (60.0, 2.0)] {
        let program = Program::even(seconds, 99).disturbed(turn_s);
        let [any, _, by_count] = percents(PAIRS, 12, program, program);
        assert!(
            any <= FALSE_MAX,
            "{seconds} s, turns of {turn_s} s: {any} %"
        );
        assert!(by_count > 12.0, "counting would do: {by_count} %");
    }
}

#[test]
fn phases_of_the_program_are_no_difference() {
    for (seconds, collecting_s) in [(4.0, 0.2), (60.0, 2.0)] {
        let program = Program::even(seconds, 99).collecting(collecting_s);
        let [any, _, by_count] = percents(PAIRS, 13, program, program);
        assert!(
            any <= FALSE_MAX,
            "{seconds} s, turns of {collecting_s} s: {any} %"
        );
        assert!(by_count > 12.0, "counting would do: {by_count} %");
    }
}

#[test]
fn a_function_that_takes_a_tenth_more_is_found() {
    // Of 7,500 samples of the first function 750 more: seven standard deviations of independent
    // samples.
    let program = Program::even(50.0, 999);
    let [_, grew, _] = percents(40, 14, program, program.with_slower_first(1.1));
    assert!(grew >= 97.0, "{grew} %");
    // The parts of a second that the program gets vary, but in two minutes by less than that.
    let program = Program::even(120.0, 999).disturbed(0.05);
    let [_, grew, _] = percents(40, 15, program, program.with_slower_first(1.1));
    assert!(grew >= 80.0, "{grew} %");
}

#[test]
fn amounts_of_time_are_not_compared_where_others_decide_them() {
    let mut random = Random::new(16);
    let crowded = Busy {
        busy_ms: 7_900,
        of_ms: 8_000,
    };
    let often = Program::even(20.0, 999);
    let seldom = Program {
        cpu: [0.15; 2],
        ..often
    };
    // The second run got half of the time, for the same work.
    let (a, b) = (
        often.run_on(&mut random, Busy::default()),
        seldom.run_on(&mut random, crowded),
    );
    let mut diff = Diff::new(&a, &b);
    diff.compare_time();
    assert!(!diff.tests_time() && diff.sides().are_crowded());
    assert!(diff.rows.iter().all(|row| !row.sure));
    // If the machine had time left, this is a difference.
    let b = seldom.run(&mut random);
    let mut diff = Diff::new(&a, &b);
    diff.compare_time();
    assert!(diff.tests_time());
    assert!(diff.rows.iter().all(|row| row.sure));
}

#[test]
fn amounts_of_time_are_compared_where_nothing_else_ran() {
    let mut random = Random::new(17);
    let all_the_time = Program {
        cpu: [1.0; 2],
        ..Program::even(20.0, 999)
    };
    // The program had a whole CPU: the only one, or one of two that were busy.
    for (busy_ms, of_ms, has_time) in [(950, 1_000, true), (1_900, 2_000, false)] {
        let busy = Busy { busy_ms, of_ms };
        let cpus = if has_time { 1 } else { 2 };
        let [a, b] = [(); 2].map(|()| all_the_time.run_with(&mut random, busy, cpus));
        let mut diff = Diff::new(&a, &b);
        diff.compare_time();
        assert_eq!(diff.tests_time(), has_time, "{cpus} CPUs");
        assert!(diff.rows.iter().all(|row| !row.sure));
    }
}
