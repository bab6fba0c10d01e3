//! Reports the faults of a reader or parser to the process that it works for, which shows them.

use faults::Fault;

/// The faults of this process that were reported.
#[derive(Debug, Default)]
pub struct Mistakes {
    told: Vec<Fault>,
}

impl Mistakes {
    /// Returns the faults since the last call, each with the number of times that it happened since
    /// then.
    pub fn new_ones(&mut self) -> Vec<Fault> {
        let seen = faults::seen();
        let new = seen.iter().filter_map(|fault| {
            let is_same = |known: &&Fault| known.work == fault.work && known.place == fault.place;
            let before = self.told.iter().find(is_same);
            let count = fault.count - before.map_or(0, |known| known.count);
            let fault = fault.clone();
            (count > 0).then_some(Fault { count, ..fault })
        });
        let new = new.collect();
        self.told = seen;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_reported_once() {
        let work = "failing for a report";
        let fail = || faults::catch(work, || panic!("on purpose")).expect_err("it failed");
        let mut mistakes = Mistakes::default();
        // Other tests of this program may fail on purpose as well.
        let mut of_this_test = || {
            let new = mistakes.new_ones().into_iter();
            let of_it = new.filter(|fault| fault.work == work);
            of_it.map(|fault| fault.count).collect::<Vec<_>>()
        };
        assert!(of_this_test().is_empty());
        fail();
        assert_eq!(of_this_test(), [1]);
        assert!(of_this_test().is_empty());
        fail();
        fail();
        assert_eq!(of_this_test(), [2]);
    }
}
