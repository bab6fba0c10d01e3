//! The lifetime of probes, by a clock that the test moves, on a function of this test.

use super::{Asked, Keeper, Message};
use crate::probes::{ProbeOrder, ProbedFunction, Probes, Reach, Stage, Which, Whose};
use probe::{BpfSource, Config, Source as _, Target};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use symbolize::Symbolizer;
use test_support::{skip, wait_for};

/// The function that is probed.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn proftop_test_short_life(number: u64) -> u64 {
    black_box(number).wrapping_mul(3)
}

/// The function that is probed by the test of the log: calls of another test would count.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn proftop_test_logged(number: u64) -> u64 {
    black_box(number).wrapping_mul(5)
}

/// A keeper of probes on this process, and the seconds by which its clock was moved.
struct Kept {
    keeper: Keeper,
    seconds: Arc<AtomicU64>,
    /// The last reported probes.
    probes: Mutex<Probes>,
    _source: BpfSource,
}

impl Kept {
    fn start() -> Option<Self> {
        let config = Config {
            target: Target {
                pids: vec![std::process::id()],
                ..Target::default()
            },
            rate_hz: 0,
            calls: true,
            ..Config::default()
        };
        let started = BpfSource::start(&config).map_err(|error| error.to_string());
        let begun = started.and_then(|mut source| Ok((source.calls()?, source)));
        let (calls, source) = match begun {
            Ok(begun) => begun,
            Err(why) => {
                skip(format_args!("no probes here: {why}"));
                return None;
            }
        };
        let seconds = Arc::new(AtomicU64::new(0));
        let (begin, moved) = (Instant::now(), Arc::clone(&seconds));
        let clock = move || begin + Duration::from_secs(moved.load(Relaxed));
        let reach = Reach {
            pids: vec![std::process::id()],
            is_by_pid: true,
            ..Reach::default()
        };
        let calls = Mutex::new(Some(Box::new(calls)));
        let symbolizer = Arc::new(Symbolizer::new());
        let keeper = Keeper::start_with(
            Box::new(clock),
            symbolizer,
            reach,
            &Probes::default(),
            move |asked| {
                let Asked::Calls(messages) = asked else {
                    return;
                };
                let calls = calls.lock().unwrap().take().expect("asked for once");
                messages.send(Message::Calls(Ok(calls))).expect("it runs");
            },
        );
        Some(Self {
            keeper: keeper.expect("threads"),
            seconds,
            probes: Mutex::default(),
            _source: source,
        })
    }

    fn order(&self, order: ProbeOrder) {
        self.keeper.send(Message::Order(order, None));
    }

    /// Waits until the only probe is in a state.
    fn wait(&self, what: &str, is_so: impl Fn(&Stage, u64) -> bool) {
        wait_for(what, || {
            let mut probes = self.probes.lock().unwrap();
            if let Some(news) = self.keeper.news() {
                *probes = news.probes;
            }
            assert_eq!(probes.word, None);
            let probe = probes.list.first()?;
            let calls = probe.seen.as_ref().map_or(0, |seen| seen.calls);
            if let Some(seen) = &probe.seen {
                // The share of its cost is that of the calls a second that are shown with it, from
                // the first numbers on.
                let cost = seen.calls_per_second * seen.cost.hit_ns as f64 / 1e9;
                assert!((seen.cost.share - cost).abs() < 1e-9, "{seen:?}");
                assert!(seen.callers.all <= seen.calls, "{seen:?}");
            }
            is_so(&probe.stage, calls).then_some(())
        });
    }

    fn wait_left(&self, what: &str, seconds: u64) {
        let left = Duration::from_secs(seconds);
        self.wait(what, |stage, _| *stage == Stage::InPlace { left });
    }
}

/// Calls the function a few times: on a busy machine a breakpoint seems to cost much, and a probe
/// whose calls would take a twentieth of a CPU is removed.
fn call(times: u64) {
    for number in 0..times {
        black_box(proftop_test_short_life(number));
    }
}

#[test]
fn a_probe_lives_a_minute_unless_it_is_renewed() {
    let Some(kept) = Kept::start() else {
        return;
    };
    kept.order(ProbeOrder::Place {
        place: ProbedFunction::Named("proftop_test_short_life".into()),
        whose: Whose::Target,
    });
    kept.wait_left("it is in place", 60);
    call(10);
    kept.seconds.store(59, Relaxed);
    kept.wait_left("it has a second left", 1);
    kept.order(ProbeOrder::Renew(Which::All));
    kept.wait_left("it is renewed", 60);
    call(10);
    kept.wait("all calls are counted", |_, calls| calls == 20);
    kept.seconds.store(59 + 59, Relaxed);
    kept.wait_left("it has a second left again", 1);
    kept.seconds.store(59 + 60, Relaxed);
    // The probe is gone, and keeps its counts.
    kept.wait("its time is over", |stage, calls| {
        assert!(calls == 20, "{calls}");
        matches!(stage, Stage::Gone(why) if &**why == "its time was over")
    });
    call(10);
    // When it is placed again, it starts with new counts.
    kept.order(ProbeOrder::Renew(Which::All));
    kept.wait("it is in place again", |stage, calls| {
        let is_back = matches!(stage, Stage::InPlace { left } if left.as_secs() == 60);
        is_back && calls == 0
    });
    call(7);
    kept.wait("calls are counted anew", |_, calls| calls == 7);
}

/// Returns the number of calls in the log, of all probes together.
fn logged(news: &super::News) -> u64 {
    let probes = news.log.probes().iter();
    probes
        .map(|probe| probe.total(profile::TimeRange::ALL).calls)
        .sum()
}

#[test]
fn the_log_has_every_call_once() {
    let Some(kept) = Kept::start() else {
        return;
    };
    kept.order(ProbeOrder::Place {
        place: ProbedFunction::Named("proftop_test_logged".into()),
        whose: Whose::Target,
    });
    kept.wait_left("it is in place", 60);
    for round in 1..=20 {
        (0..5).for_each(|number| _ = black_box(proftop_test_logged(number)));
        let news = kept.keeper.fresh_news().expect("it answers");
        assert_eq!(logged(&news), round * 5);
        std::thread::sleep(Duration::from_millis(60));
    }
    // With other values it is a new probe of the log, and the first one keeps its calls.
    kept.order(ProbeOrder::Values {
        number: 1,
        values: vec![crate::probes::expression::Expression::parse("arg1").unwrap()],
    });
    wait_for("it is placed anew", || {
        let news = kept.keeper.fresh_news()?;
        (news.log.probes().len() == 2).then_some(())
    });
    (0..30).for_each(|number| _ = black_box(proftop_test_logged(number)));
    let news = kept.keeper.fresh_news().expect("it answers");
    assert_eq!(logged(&news), 20 * 5 + 30);
    let [first, second] = news.log.probes() else {
        panic!("{:?}", news.log);
    };
    assert!(first.end().is_some() && second.end().is_none());
    let total = second.total(profile::TimeRange::ALL);
    // Each of the thirty numbers was passed once.
    assert_eq!(total.values[0].texts.len(), 30, "{total:?}");
    assert_eq!(total.values[0].texts.values().sum::<u64>(), 30);
    assert!(first.counts().count() > 1, "of more than a second");
}
