//! A *question* is a request of a view for data of the profile that a snapshot does not contain. It
//! is answered on another thread, because that takes reading all samples of the window, and only
//! while the view is on the screen.

/// The question for a report, after a knob was changed.
pub mod report;
/// The samples of the last seconds.
pub mod seconds;

use crate::code::Library;
use engine::snapshot::{Baseline, Snapshot};
use profile::{Cancel, Query, Selection, View};
use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// A question of any view, which can answer itself.
#[derive(Clone)]
pub struct Question(Arc<dyn Answerable>);

/// A question that can be answered. Each view that asks questions has its own type.
pub trait Answerable: Send + Sync {
    /// Finds the answer. None if it was cancelled. `library` has source text and instructions.
    fn answer(&self, library: &mut dyn Library, cancel: &Cancel) -> Option<Answer>;

    /// Returns the lane in which the question is answered.
    fn lane(&self) -> Lane {
        Lane::View
    }
}

/// A queue for questions. A new question cancels the previous one in the same lane; questions in
/// different lanes do not wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// The report from which every view is drawn.
    Report,
    View,
    /// Code. Answers may have to wait for disks.
    Code,
}

impl Question {
    /// Wraps the question of a view.
    pub fn new(question: impl Answerable + 'static) -> Self {
        Question(Arc::new(question))
    }

    /// See [`Answerable::answer`].
    pub fn answer(&self, library: &mut dyn Library, cancel: &Cancel) -> Option<Answer> {
        self.0.answer(library, cancel)
    }

    /// Returns the lane in which the question is answered.
    pub fn lane(&self) -> Lane {
        self.0.lane()
    }
}

/// Prints only the lane. Printing the type of the view's question would add code for its whole
/// state to the program.
impl Debug for Question {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Question").field(&self.lane()).finish()
    }
}

/// Questions are equal if they are the same object in memory. Only tests compare them, as parts of
/// effects.
impl PartialEq for Question {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Question {}

/// An answer. Only the view that asked knows its type.
#[derive(Debug, Clone)]
pub struct Answer(Arc<dyn Any + Send + Sync>);

impl Answer {
    /// Wraps the answer for a view.
    pub fn new(found: impl Any + Send + Sync) -> Self {
        Answer(Arc::new(found))
    }

    /// Returns the answer if it is of this type, else None.
    pub fn of<A: Any + Send + Sync>(&self) -> Option<Arc<A>> {
        Arc::clone(&self.0).downcast().ok()
    }
}

/// A question, and the samples of the snapshot that it is about.
#[derive(Debug, Clone)]
pub struct Ask<W> {
    pub key: Key<W>,
    pub view: View,
    query: Query,
    baseline: Option<Arc<Baseline>>,
}

impl<W> Ask<W> {
    /// Returns the query for the samples that count.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Returns the samples that count. None if this was cancelled.
    pub fn select(&self, cancel: &Cancel) -> Option<Selection> {
        self.view.select(&self.query, cancel).ok()
    }

    /// Returns the baseline, if a comparison is wanted.
    pub fn baseline(&self) -> Option<&Baseline> {
        self.baseline.as_deref()
    }
}

impl<W: PartialEq> PartialEq for Ask<W> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<W: Eq> Eq for Ask<W> {}

/// The identity of a question of a view: its snapshot, its knobs, and what is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key<W> {
    /// The generation of the snapshot.
    pub generation: u64,
    /// The number of the state of the knobs; see `Asked::turn`.
    pub turn: u64,
    pub what: W,
}

/// The question and answers of one view: the question that is being answered, the answer on the
/// screen, and the one that waits until it may be shown.
#[derive(Debug)]
pub struct Desk<W, A> {
    asked: Option<Key<W>>,
    answered: Option<Key<W>>,
    shown: Option<Arc<A>>,
    waiting: Option<Arc<A>>,
}

impl<W, A> Default for Desk<W, A> {
    fn default() -> Self {
        Desk {
            asked: None,
            answered: None,
            shown: None,
            waiting: None,
        }
    }
}

impl<W: Clone + Eq, A> Desk<W, A> {
    /// Returns the answer that is on the screen.
    pub fn shown(&self) -> Option<&Arc<A>> {
        self.shown.as_ref()
    }

    /// Returns the question to ask so that the answer matches this snapshot. None if it is asked or
    /// answered already, or if the snapshot has no samples.
    pub fn ask(&mut self, snapshot: &Snapshot, what: W) -> Option<Ask<W>> {
        let key = Key {
            generation: snapshot.generation,
            turn: snapshot.asked.turn,
            what,
        };
        // The question that is being answered may be about an older snapshot. It is not replaced by
        // one about a newer snapshot: if answers are slow, none would ever arrive.
        let is_same = |asked: &Key<W>| asked.turn == key.turn && asked.what == key.what;
        if self.asked.as_ref().is_some_and(is_same) || self.answered.as_ref() == Some(&key) {
            return None;
        }
        let view = snapshot.view.clone()?;
        self.asked = Some(key.clone());
        Some(Ask {
            key,
            view,
            query: snapshot.asked.query.clone(),
            baseline: snapshot.comparison.baseline.clone(),
        })
    }

    /// Whether a question is being answered and there is no earlier answer.
    pub fn awaits_first(&self) -> bool {
        self.asked.is_some() && self.shown.is_none()
    }

    /// Takes an answer, which [`Self::take_waiting`] will show. Returns false, and drops it, if it
    /// is not for the question that is being answered. It is remembered as the answer to `what`,
    /// because finding it may have decided a part of the question.
    pub fn receive(&mut self, key: &Key<W>, what: W, answer: Arc<A>) -> bool {
        if self.asked.as_ref() != Some(key) {
            return false;
        }
        self.answered = self.asked.take().map(|key| Key { what, ..key });
        self.waiting = Some(answer);
        true
    }

    /// Moves the newest answer to the screen and returns it. None if there is no newer one.
    pub fn take_waiting(&mut self) -> Option<Arc<A>> {
        self.shown = Some(self.waiting.take()?);
        self.shown.clone()
    }

    /// Shows an answer that another view has received.
    pub fn show(&mut self, answer: Arc<A>) {
        self.shown = Some(answer);
    }

    /// Drops all answers. Called when the user leaves the view, to free their memory.
    pub fn clear(&mut self) {
        *self = Desk::default();
    }
}
