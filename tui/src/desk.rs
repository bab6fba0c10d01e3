//! A *question* is what a view asks the profile beyond what every snapshot
//! holds. It is answered on a thread of its own, because it looks at every
//! sample of the window, and only while somebody looks at the view.

use crate::code::Library;
use engine::snapshot::{Baseline, Snapshot};
use profile::{Cancel, Query, Selection, View};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// A question of any view, which carries with it how it is answered.
#[derive(Debug, Clone)]
pub struct Question(Arc<dyn Answerable>);

/// What can be asked. Each view has a type of its own for it.
pub trait Answerable: Debug + Send + Sync {
    /// What was found; `None` if it was cancelled. Code comes from the library.
    fn answer(&self, library: &mut dyn Library, cancel: &Cancel) -> Option<Answer>;

    /// Who answers it.
    fn lane(&self) -> Lane {
        Lane::View
    }
}

/// Questions of one lane give up the one before; those of different lanes do not wait
/// for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// The report that every view is drawn from.
    Report,
    View,
    /// Code: it may have to wait for disks.
    Code,
}

impl Question {
    pub fn new(question: impl Answerable + 'static) -> Self {
        Question(Arc::new(question))
    }

    /// See [`Answerable::answer`].
    pub fn answer(&self, library: &mut dyn Library, cancel: &Cancel) -> Option<Answer> {
        self.0.answer(library, cancel)
    }

    pub fn lane(&self) -> Lane {
        self.0.lane()
    }
}

/// Two questions are equal if they are the same one: effects are compared in tests.
impl PartialEq for Question {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Question {}

/// What was found. Only the view that asked knows of which type it is.
#[derive(Debug, Clone)]
pub struct Answer(Arc<dyn Any + Send + Sync>);

impl Answer {
    pub fn new(found: impl Any + Send + Sync) -> Self {
        Answer(Arc::new(found))
    }

    /// The answer, if it is of that type.
    pub fn of<A: Any + Send + Sync>(&self) -> Option<Arc<A>> {
        Arc::clone(&self.0).downcast().ok()
    }
}

/// Something wanted of the samples that a snapshot counts.
#[derive(Debug, Clone)]
pub struct Ask<W> {
    pub key: Key<W>,
    pub view: View,
    query: Query,
    baseline: Option<Arc<Baseline>>,
}

impl<W> Ask<W> {
    pub fn query(&self) -> &Query {
        &self.query
    }

    pub fn select(&self, cancel: &Cancel) -> Option<Selection> {
        self.view.select(&self.query, cancel).ok()
    }

    /// What it is to be compared with, if it is.
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

/// What tells one question of a view from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key<W> {
    /// The snapshot's.
    pub generation: u64,
    /// Which query, of whatever snapshot.
    pub turn: u64,
    pub what: W,
}

/// The questions and answers of one view: which is under way, which is on the
/// screen, and which waits for a calmer moment.
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
    /// The answer on the screen.
    pub fn shown(&self) -> Option<&Arc<A>> {
        self.shown.as_ref()
    }

    /// What has to be asked now, if that is wanted. `None` where the snapshot
    /// comes from no store.
    pub fn ask(&mut self, snapshot: &Snapshot, what: W) -> Option<Ask<W>> {
        let key = Key {
            generation: snapshot.generation,
            turn: snapshot.asked.turn,
            what,
        };
        // The one under way may belong to an older snapshot: were it given up
        // each time, a slow one would never come.
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

    /// Takes the answer to the question under way, and no other. From now on it
    /// stands for `what`: that it was answered may settle a part of a question.
    pub fn receive(&mut self, key: &Key<W>, what: W, answer: Arc<A>) -> bool {
        if self.asked.as_ref() != Some(key) {
            return false;
        }
        self.answered = self.asked.take().map(|key| Key { what, ..key });
        self.waiting = Some(answer);
        true
    }

    /// Puts the newest answer on the screen, if it is not there.
    pub fn take_waiting(&mut self) -> Option<Arc<A>> {
        self.shown = Some(self.waiting.take()?);
        self.shown.clone()
    }

    /// Shows the answer that another has got.
    pub fn show(&mut self, answer: Arc<A>) {
        self.shown = Some(answer);
    }

    /// The view was left: its answers would hold memory for nothing.
    pub fn clear(&mut self) {
        *self = Desk::default();
    }
}
