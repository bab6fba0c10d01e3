//! Handles ^C and SIGTERM while a question is answered. The first signal ends the work in an
//! orderly way, so that temporary files and an incomplete folder are removed; the second one ends
//! the program at once.

use crate::failure::Failure;
use std::sync::OnceLock;
use std::thread;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Numbers of SIGINT and SIGTERM, which shells add to 128.
const INTERRUPTED: u8 = 2;
const TERMINATED: u8 = 15;

/// The signal that has arrived; 0 for none.
static SIGNAL: OnceLock<watch::Receiver<u8>> = OnceLock::new();

/// Starts the thread that waits for signals. If it cannot be started, a signal ends the program at
/// once.
pub fn watch() -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::failed(format!("cannot wait for signals: {error}"));
    let runtime = Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(failed)?;
    let inside = runtime.enter();
    let mut interrupted = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
    drop(inside);
    let (sender, receiver) = watch::channel(0);
    if SIGNAL.set(receiver).is_err() {
        return Ok(());
    }
    let wait = async move {
        loop {
            let number = tokio::select! {
                _ = interrupted.recv() => INTERRUPTED,
                _ = terminated.recv() => TERMINATED,
            };
            if sender.send_replace(number) != 0 {
                std::process::exit(128 + i32::from(number));
            }
        }
    };
    let thread = thread::Builder::new().name("signals".into());
    thread
        .spawn(move || runtime.block_on(wait))
        .map_err(failed)?;
    Ok(())
}

/// Returns an error if a signal has arrived. Called between the steps of long operations.
pub fn check() -> Result<(), Failure> {
    match SIGNAL.get().map(|it| *it.borrow()) {
        Some(number) if number != 0 => Err(Failure::ended(number)),
        _ => Ok(()),
    }
}

/// Waits for a signal, for ever if none arrives. A signal that arrived before counts as well.
pub async fn wait() -> Failure {
    if let Some(receiver) = SIGNAL.get() {
        let mut receiver = receiver.clone();
        if let Ok(number) = receiver.wait_for(|it| *it != 0).await {
            return Failure::ended(*number);
        }
    }
    std::future::pending().await
}
