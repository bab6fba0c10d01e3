//! The time that threads waited in the run queue. A comparison of waits leaves it out and reports
//! it separately, because it depends on other programs and not on the compared one.

use profile::filter::{Clause, SampleTest};
use profile::{Filter, Metric, Selection};

/// The two selections that are compared.
pub struct Halves {
    /// The earlier one, then the later one.
    pub sides: [Selection; 2],
    /// How long threads waited in the run queue, in A and in B, if that time is left out of
    /// `sides`.
    pub queued_ns: Option<[u64; 2]>,
}

/// Returns the samples of both sides that pass a filter. The time in the run queue is left out if
/// waits are compared and the filter has no clause about states. `select` applies a filter to both
/// sides.
pub fn select<E>(
    metric: &Metric,
    filter: &Filter,
    mut select: impl FnMut(Filter) -> Result<[Selection; 2], E>,
) -> Result<Halves, E> {
    let is_left_out = has_queue(metric) && !filter.clauses().iter().any(asks_for_states);
    if !is_left_out {
        let sides = select(filter.clone())?;
        return Ok(Halves {
            sides,
            queued_ns: None,
        });
    }
    let queued = select(and(filter, "state:queue"))?;
    Ok(Halves {
        sides: select(and(filter, "!state:queue"))?,
        queued_ns: Some(queued.map(|side| side.samples())),
    })
}

fn has_queue(metric: &Metric) -> bool {
    *metric == Metric::off_cpu() || *metric == Metric::wall()
}

fn asks_for_states(clause: &Clause) -> bool {
    matches!(
        clause,
        Clause::Sample {
            test: SampleTest::State(_),
            ..
        }
    )
}

/// Returns a filter with one more clause.
fn and(filter: &Filter, clause: &str) -> Filter {
    let clause: Filter = clause.parse().expect("it is written here");
    let mut both = filter.clone();
    for clause in clause.clauses() {
        both.push(clause.clone());
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::{Cancel, Limits, Query, Store};

    /// Returns the filters with which `select` is called.
    fn asked(metric: &Metric, filter: &str) -> Vec<String> {
        let mut asked = Vec::new();
        let halves = select(metric, &filter.parse().expect("a filter"), |filter| {
            asked.push(filter.to_string());
            let nothing = || {
                let view = Store::new(Limits::default()).view();
                view.select(&Query::default(), &Cancel::new())
            };
            Ok::<_, profile::Cancelled>([nothing()?, nothing()?])
        })
        .expect("nobody cancels it");
        assert_eq!(halves.queued_ns.is_some(), asked.len() == 2);
        asked
    }

    #[test]
    fn the_queue_is_left_out_of_waits_unless_states_are_asked_for() {
        let apart = ["comm:x state:queue", "comm:x !state:queue"];
        for metric in [Metric::off_cpu(), Metric::wall()] {
            assert_eq!(asked(&metric, "comm:x"), apart);
            assert_eq!(asked(&metric, "state:disk"), ["state:disk"]);
        }
        for metric in [Metric::default(), Metric::kept_waiting()] {
            assert_eq!(asked(&metric, "comm:x"), ["comm:x"]);
        }
    }
}
