//! The threads that answer questions of the app, so that the screen never waits for an answer.

use crate::code::{Body, FileLibrary, Library, SourceMap, Wanted};
use crate::desk::{Answer, Lane, Question};
use probe::channel::{Receiver, RecvTimeoutError, Sender, channel};
use probe::confine::{self, Duty};
use profile::Cancel;
use std::io;
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;
use tokio::sync::mpsc;

/// One thread for each kind of question, so that questions of different kinds do not wait for each
/// other.
#[derive(Debug)]
pub struct Workers {
    /// Makes the reports for new settings of the knobs.
    reports: AnswerWorker,
    views: AnswerWorker,
    /// Answers the questions of views beside the open one.
    besides: AnswerWorker,
    /// Answers questions about code. It reads files, which may take long.
    codes: AnswerWorker,
}

impl Workers {
    /// Starts the threads. `sources` says where to look for source text.
    pub fn start(sources: SourceMap) -> io::Result<Self> {
        Ok(Workers {
            reports: AnswerWorker::start("reports", NoLibrary)?,
            views: AnswerWorker::start("answers", NoLibrary)?,
            besides: AnswerWorker::start("beside", NoLibrary)?,
            codes: AnswerWorker::start("code", FileLibrary::new(sources))?,
        })
    }

    /// Sends a question to the thread of its lane, where it cancels the previous one.
    pub fn ask(&mut self, question: Question) {
        let worker = match question.lane() {
            Lane::Report => &mut self.reports,
            Lane::Code => &mut self.codes,
            Lane::View => &mut self.views,
        };
        worker.ask(question);
    }

    /// Sends the question of a view beside the open one.
    pub fn ask_beside(&mut self, question: Question) {
        self.besides.ask(question);
    }

    /// Waits for an answer. The future can be dropped at any time without losing one.
    pub async fn answered(&mut self) -> Answer {
        tokio::select! {
            biased;
            answer = self.reports.answered() => answer,
            answer = self.views.answered() => answer,
            answer = self.besides.answered() => answer,
            answer = self.codes.answered() => answer,
        }
    }
}

/// A thread that answers one question at a time. A new question cancels the previous one.
#[derive(Debug)]
pub struct AnswerWorker {
    questions: Sender<(Question, Cancel)>,
    answers: mpsc::UnboundedReceiver<Answer>,
    cancel: Cancel,
}

impl AnswerWorker {
    /// Starts the thread. It ends when the worker is dropped.
    pub fn start(name: &str, library: impl Library + Send + 'static) -> io::Result<Self> {
        let (questions, asked) = channel();
        let (answer, answers) = mpsc::unbounded_channel();
        Builder::new().name(name.into()).spawn(move || {
            confine::thread(Duty::Parsing);
            work(&asked, &answer, library);
        })?;
        Ok(AnswerWorker {
            questions,
            answers,
            cancel: Cancel::new(),
        })
    }

    /// Sends a question, and cancels the previous one.
    pub fn ask(&mut self, question: Question) {
        self.cancel.cancel();
        self.cancel = Cancel::new();
        // If the thread is gone there is no answer, but everything else goes on.
        let _ = self.questions.send((question, self.cancel.clone()));
    }

    /// Waits for an answer. The future can be dropped at any time without losing one.
    pub async fn answered(&mut self) -> Answer {
        match self.answers.recv().await {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

impl Drop for AnswerWorker {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// The library of workers that get no questions about code.
#[derive(Debug)]
pub struct NoLibrary;

impl Library for NoLibrary {
    fn body(&mut self, _: &Wanted) -> Arc<Body> {
        Arc::default()
    }
}

/// After this time without a question, the library frees what it keeps for later ones.
const REST_AFTER: Duration = Duration::from_secs(20);

fn work(
    questions: &Receiver<(Question, Cancel)>,
    answers: &mpsc::UnboundedSender<Answer>,
    mut library: impl Library,
) {
    let mut is_rested = true;
    loop {
        let next = if is_rested {
            questions.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            questions.recv_timeout(REST_AFTER)
        };
        match next {
            Ok((question, cancel)) => {
                is_rested = false;
                // A panic affects only this answer: the view asks again with the next snapshot.
                let answer = faults::catch("answering a view's question", || {
                    question.answer(&mut library, &cancel)
                });
                if let Ok(Some(answer)) = answer
                    && answers.send(answer).is_err()
                {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                library.rest();
                is_rested = true;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
