//! Runs work and catches its panics.

use crate::{Fault, injected, seen};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};

thread_local! {
    /// The nesting depth of calls of [`catch`] in this thread.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The place of this thread's last panic.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs a piece of work; a panic in it is caught, counted ([`seen()`]) and returned.
/// `work` names it in the sentence for the user: "reading unwind tables".
///
/// The caller decides about the consequences of the panic. Data that the work has changed before it
/// panicked stays changed: the caller drops it, or there is nothing that could be left
/// inconsistent.
pub fn catch<T>(work: &'static str, run: impl FnOnce() -> T) -> Result<T, Fault> {
    DEPTH.with(|depth| depth.set(depth.get() + 1));
    let result = catch_unwind(AssertUnwindSafe(|| {
        injected::panic_if_wanted(work);
        run()
    }));
    DEPTH.with(|depth| depth.set(depth.get() - 1));
    result.map_err(|payload| {
        let fault = Fault {
            work,
            message: seen::clean(&message(&*payload)),
            place: PLACE.with(|place| place.borrow_mut().take()),
            count: 1,
        };
        seen::note(&fault);
        fault
    })
}

/// Whether a panic of this thread would be caught: then a panic hook must not print anything or
/// restore the terminal.
pub fn is_catching() -> bool {
    DEPTH.with(Cell::get) > 0
}

/// Stores the place of a panic. Called by the panic hook, which is the only code that gets it.
pub fn note_place(info: &PanicHookInfo<'_>) {
    let place = info.location().map(|place| {
        let file = place.file();
        // The last two folders are enough, and reveal nothing about the machine that built it.
        let short = file
            .rmatch_indices('/')
            .nth(2)
            .map_or(file, |(at, _)| &file[at + 1..]);
        format!("{short}:{}", place.line())
    });
    PLACE.with(|kept| *kept.borrow_mut() = place);
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = (payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned()))
    .or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "without a message".into())
}

/// Limits how many faults a loop survives. A loop that fails at every turn does nothing useful, and
/// ends instead.
#[derive(Debug, Default)]
pub struct Patience {
    in_a_row: u32,
}

impl Patience {
    const IN_A_ROW_MAX: u32 = 3;

    /// Takes the result of a turn. Returns its value, `None` if it failed, and the fault as an
    /// error if it is the third in a row.
    pub fn take<T>(&mut self, turn: Result<T, Fault>) -> Result<Option<T>, Fault> {
        match turn {
            Ok(value) => {
                self.in_a_row = 0;
                Ok(Some(value))
            }
            Err(fault) => {
                self.in_a_row += 1;
                if self.in_a_row < Self::IN_A_ROW_MAX {
                    Ok(None)
                } else {
                    Err(fault)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen;

    #[test]
    fn work_that_panics_is_told_apart_and_counted() {
        assert_eq!(catch("adding", || 1 + 1).unwrap(), 2);
        for turn in 1..=2 {
            let fault = catch("dividing for a test", || -> u32 { panic!("by {}", 0) }).unwrap_err();
            assert_eq!(
                (fault.work, fault.message.as_str()),
                ("dividing for a test", "by 0")
            );
            let seen = seen();
            let seen: Vec<_> = seen.iter().filter(|f| f.work == fault.work).collect();
            assert_eq!(seen.len(), 1, "{seen:?}");
            assert_eq!(seen[0].count, turn);
        }
        assert!(!is_catching());
    }

    #[test]
    fn a_message_has_no_control_characters_and_a_bounded_length() {
        let long = "\x1b[2J".to_owned() + &"x".repeat(1000);
        let fault = catch("reading a hostile name", || panic!("{long}")).unwrap_err();
        assert!(fault.message.starts_with(" [2Jx"), "{}", fault.message);
        assert_eq!(fault.message.len(), 200);
    }

    #[test]
    fn work_within_work_is_caught_inside() {
        let outer = catch("outer work", || {
            let inner = catch("inner work", || panic!("inside"));
            assert!(inner.is_err());
            is_catching()
        });
        assert!(outer.unwrap());
    }

    #[test]
    fn patience_ends_when_every_turn_fails() {
        let fail = || catch("failing for a test", || panic!("again"));
        let mut patience = Patience::default();
        assert!(matches!(patience.take(fail()), Ok(None::<()>)));
        assert!(matches!(patience.take(fail()), Ok(None::<()>)));
        assert!(matches!(patience.take(Ok(())), Ok(Some(()))));
        assert!(matches!(patience.take(fail()), Ok(None::<()>)));
        assert!(matches!(patience.take(fail()), Ok(None::<()>)));
        assert!(patience.take::<()>(fail()).is_err());
    }
}
