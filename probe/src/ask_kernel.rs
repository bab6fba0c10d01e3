//! The *kernel thread*: the only one that may query the kernel for what needs the greatest rights
//! (BPF programs of other users, kernel memory). Other threads, which parse untrusted data, send it
//! their queries. It also starts threads that need such rights and are created late.

use crate::channel::{Sender, channel};
use crate::confine::{self, Duty};
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

type Question = Box<dyn FnOnce() + Send>;

static QUESTIONS: OnceLock<Mutex<Sender<Question>>> = OnceLock::new();

/// Starts the thread, once; must be called by a thread that still has its rights. It runs until the
/// end of the process.
pub fn start() -> io::Result<()> {
    if QUESTIONS.get().is_some() {
        return Ok(());
    }
    let (questions, asked) = channel::<Question>();
    std::thread::Builder::new()
        .name("kernel".into())
        .spawn(move || {
            confine::thread(Duty::AskingKernel);
            for question in asked.iter() {
                _ = faults::catch("asking the kernel", question);
            }
        })?;
    _ = QUESTIONS.set(Mutex::new(questions));
    Ok(())
}

/// Runs a query on the kernel thread, and waits for the result; `None` if it panicked. If there is
/// no kernel thread, it runs on the calling thread.
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
