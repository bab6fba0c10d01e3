//! The thread that finds trees, so that the screen never waits for one.

use crate::screen::tree::{TreeAnswer, TreeQuestion};
use profile::Cancel;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use tokio::sync::mpsc;

/// Answers one question at a time; a new one gives up the one before.
#[derive(Debug)]
pub struct TreeWorker {
    questions: Sender<(TreeQuestion, Cancel)>,
    answers: mpsc::UnboundedReceiver<Arc<TreeAnswer>>,
    cancel: Cancel,
}

impl TreeWorker {
    /// The thread ends with the worker's owner.
    pub fn start() -> io::Result<Self> {
        let (questions, asked) = channel();
        let (answer, answers) = mpsc::unbounded_channel();
        Builder::new()
            .name("tree".into())
            .spawn(move || work(&asked, &answer))?;
        Ok(TreeWorker {
            questions,
            answers,
            cancel: Cancel::new(),
        })
    }

    pub fn ask(&mut self, question: TreeQuestion) {
        self.cancel.cancel();
        self.cancel = Cancel::new();
        // Without the thread there is no tree; everything else goes on.
        let _ = self.questions.send((question, self.cancel.clone()));
    }

    /// Waits for an answer; may be given up at any time.
    pub async fn answered(&mut self) -> Arc<TreeAnswer> {
        match self.answers.recv().await {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

impl Drop for TreeWorker {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

fn work(
    questions: &Receiver<(TreeQuestion, Cancel)>,
    answers: &mpsc::UnboundedSender<Arc<TreeAnswer>>,
) {
    while let Ok((question, cancel)) = questions.recv() {
        if let Some(answer) = question.answer(&cancel)
            && answers.send(Arc::new(answer)).is_err()
        {
            return;
        }
    }
}
