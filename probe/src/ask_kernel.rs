//! The *kernel thread*: the only one that may ask the kernel for what takes the greatest
//! rights (BPF programs of others, its memory). Others, which read what strangers have
//! written, have it ask for them, and get the answers; and it starts threads that take
//! such rights and are needed late.

use crate::confine::{self, Duty};
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

type Question = Box<dyn FnOnce() + Send>;

static QUESTIONS: OnceLock<Mutex<Sender<Question>>> = OnceLock::new();

/// Starts the thread, once; to be called by one that still has its rights. It stays until
/// the end of the process.
pub fn start() -> io::Result<()> {
    if QUESTIONS.get().is_some() {
        return Ok(());
    }
    let (questions, asked) = channel::<Question>();
    std::thread::Builder::new()
        .name("kernel".into())
        .spawn(move || {
            confine::thread(Duty::AskingKernel);
            for question in asked {
                _ = faults::catch("asking the kernel", question);
            }
        })?;
    _ = QUESTIONS.set(Mutex::new(questions));
    Ok(())
}

/// Has a question asked, and waits for the answer; `None` if asking it panicked. Without the
/// thread it is asked here.
pub fn ask<T: Send + 'static>(question: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let Some(questions) = QUESTIONS.get() else {
        return Some(question());
    };
    let (tell, told) = channel();
    let question = Box::new(move || _ = tell.send(question()));
    let questions = questions.lock().unwrap_or_else(PoisonError::into_inner);
    questions.send(question).ok()?;
    drop(questions);
    told.recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_thread_asks_and_goes_on_after_a_mistake() {
        let here = std::thread::current().id();
        start().unwrap();
        start().unwrap();
        let asks = ask(|| std::thread::current().id()).unwrap();
        assert_ne!(asks, here);
        assert_eq!(ask(|| -> u32 { panic!("a mistake for a test") }), None);
        assert_eq!(ask(|| std::thread::current().id()), Some(asks));
    }
}
