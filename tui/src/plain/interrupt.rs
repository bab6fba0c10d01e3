//! ^C stops the running answer. If there is none, or if it is pressed again, it ends the program.

use profile::Cancel;
use std::sync::{Arc, Mutex, PoisonError};

/// The effect of ^C: it cancels the running answer, if there is one. Clones share the state,
/// because the thread that receives signals has one.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<Mutex<Option<Cancel>>>);

impl Interrupt {
    /// Registers a new answer, and returns the flag that says whether it was cancelled.
    pub fn begin(&self) -> Cancel {
        let cancel = Cancel::new();
        self.put(Some(cancel.clone()));
        cancel
    }

    /// Marks the answer as finished, so that the next ^C ends the program.
    pub fn end(&self) {
        self.put(None);
    }

    /// Handles ^C: cancels the running answer. Returns false if there is none; then the program has
    /// to end.
    pub fn press(&self) -> bool {
        let cancel = self.put(None);
        cancel.inspect(Cancel::cancel).is_some()
    }

    fn put(&self, cancel: Option<Cancel>) -> Option<Cancel> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut held, cancel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_time_it_ends_the_program() {
        let interrupt = Interrupt::default();
        assert!(!interrupt.press(), "at the prompt");
        let cancel = interrupt.begin();
        assert!(interrupt.press() && cancel.is_cancelled());
        assert!(!interrupt.press());
        let cancel = interrupt.begin();
        interrupt.end();
        assert!(!interrupt.press() && !cancel.is_cancelled());
    }
}
