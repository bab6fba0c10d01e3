//! The thread that answers questions, so that the screen never waits for one.

use crate::screen::question::{Answer, Question};
use profile::Cancel;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use tokio::sync::mpsc;

/// Answers one question at a time; a new one gives up the one before.
#[derive(Debug)]
pub struct AnswerWorker {
    questions: Sender<(Question, Cancel)>,
    answers: mpsc::UnboundedReceiver<Answer>,
    cancel: Cancel,
}

impl AnswerWorker {
    /// The thread ends with the worker's owner.
    pub fn start(name: &str) -> io::Result<Self> {
        let (questions, asked) = channel();
        let (answer, answers) = mpsc::unbounded_channel();
        Builder::new()
            .name(name.into())
            .spawn(move || work(&asked, &answer))?;
        Ok(AnswerWorker {
            questions,
            answers,
            cancel: Cancel::new(),
        })
    }

    pub fn ask(&mut self, question: Question) {
        self.cancel.cancel();
        self.cancel = Cancel::new();
        // Without the thread there is no answer; everything else goes on.
        let _ = self.questions.send((question, self.cancel.clone()));
    }

    /// Waits for an answer; may be given up at any time.
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

fn work(questions: &Receiver<(Question, Cancel)>, answers: &mpsc::UnboundedSender<Answer>) {
    while let Ok((question, cancel)) = questions.recv() {
        if let Some(answer) = question.answer(&cancel)
            && answers.send(answer).is_err()
        {
            return;
        }
    }
}
