//! What was caught, for the whole process.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Different faults that are kept. More than a handful has never been of use.
const KEPT_MAX: usize = 16;
/// A message may contain what was parsed.
const MESSAGE_CHARS_MAX: usize = 200;

static SEEN: Mutex<Vec<Fault>> = Mutex::new(Vec::new());

/// A panic of this program that was caught. `Display` is a sentence for users, without its
/// end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What was being done: "reading unwind tables".
    pub work: &'static str,
    /// What the panic said, clean and not longer than a few lines.
    pub message: String,
    /// The file and line of our sources; `None` if no panic hook told
    /// ([`note_place`](crate::note_place)).
    pub place: Option<String>,
    /// How often the same happened.
    pub count: u64,
}

impl Fault {
    /// The sentence for users, without its end, where work ends because its mistake was
    /// made again and again.
    pub fn repeated(&self) -> String {
        format!(
            "proftop made the same mistake again and again while {}: {}",
            self.work, self.message
        )
    }

    /// What a developer wants to know of it, as a sentence without its beginning.
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

/// All faults until now, in the order in which each was first seen; the same one at the
/// same place is one, counted.
pub fn seen() -> Vec<Fault> {
    lock().clone()
}

/// Counts a fault: one that was caught here, or that another process of this program tells.
pub fn note(fault: &Fault) {
    let mut seen = lock();
    let is_same = |known: &Fault| known.work == fault.work && known.place == fault.place;
    match seen.iter().position(is_same) {
        Some(known) => seen[known].count += fault.count,
        None if seen.len() < KEPT_MAX => seen.push(clean(fault)),
        None => {}
    }
}

fn clean(fault: &Fault) -> Fault {
    let message = fault.message.chars().take(MESSAGE_CHARS_MAX);
    let harmless = |c: char| if c.is_control() { ' ' } else { c };
    Fault {
        message: message.map(harmless).collect(),
        ..fault.clone()
    }
}

fn lock() -> MutexGuard<'static, Vec<Fault>> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}
