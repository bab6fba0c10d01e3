//! The faults of the whole process.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of different faults that are kept. More than a few have never been useful.
const KEPT_MAX: usize = 16;
/// Maximum length of a message, which may contain parsed data.
const MESSAGE_CHARS_MAX: usize = 200;

static SEEN: Mutex<Vec<Fault>> = Mutex::new(Vec::new());

/// A caught panic of this program. `Display` gives a sentence for users, without the full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The work that panicked, for example "reading unwind tables".
    pub work: &'static str,
    /// The panic's message, without control characters and 200 characters at most if it was caught
    /// here or is in [`seen()`].
    pub message: String,
    /// The file and line in proftop's sources; `None` if no panic hook has stored it
    /// ([`note_place`](crate::note_place)).
    pub place: Option<String>,
    /// Number of times that the same fault happened.
    pub count: u64,
}

impl Fault {
    /// Returns the sentence for users, without the full stop, if work ends because its fault
    /// happened again and again.
    pub fn repeated(&self) -> String {
        format!(
            "proftop made the same mistake again and again while {}: {}",
            self.work, self.message
        )
    }

    /// Returns the sentence for users, without the full stop, if nothing goes on without the work.
    pub fn final_word(&self) -> String {
        format!(
            "proftop made a mistake while {}, and cannot go on: {}",
            self.work, self.message
        )
    }

    /// Returns the details for developers, as a sentence without its beginning.
    pub fn report(&self) -> String {
        let times = match self.count {
            1 => String::new(),
            count => format!(", {count} times"),
        };
        let place = self.place.as_deref().unwrap_or("an unknown place");
        format!(
            "a mistake of its own while {}{times}: {} (at {place}); please report it",
            self.work, self.message
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "proftop made a mistake while {}", self.work)?;
        if self.count > 1 {
            write!(f, ", {} times", self.count)?;
        }
        write!(f, ", and went on without its result: {}", self.message)
    }
}

impl std::error::Error for Fault {}

/// Returns all faults until now, 16 different ones at most, in the order in which each was first
/// seen. Faults of the same work at the same place are one fault with a count, and the first
/// message.
pub fn seen() -> Vec<Fault> {
    lock().clone()
}

/// Counts a fault: one that was caught here, or that another process of this program has reported.
pub fn note(fault: &Fault) {
    let mut seen = lock();
    let is_same = |known: &Fault| known.work == fault.work && known.place == fault.place;
    match seen.iter().position(is_same) {
        Some(known) => seen[known].count += fault.count,
        None if seen.len() < KEPT_MAX => seen.push(Fault {
            message: clean(&fault.message),
            ..fault.clone()
        }),
        None => {}
    }
}

/// Returns a message that may be printed: without control characters, and 200 characters at most.
pub fn clean(message: &str) -> String {
    let harmless = |c: char| if c.is_control() { ' ' } else { c };
    let message = message.chars().take(MESSAGE_CHARS_MAX);
    message.map(harmless).collect()
}

fn lock() -> MutexGuard<'static, Vec<Fault>> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}
