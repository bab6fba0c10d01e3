//! Injects faults for tests that run the whole program: in builds with debug assertions the
//! variable `PROFTOP_TEST_FAULTS` has a comma-separated list of works, each of which panics the
//! first time it is done.

#[cfg(debug_assertions)]
pub(crate) fn panic_if_wanted(work: &'static str) {
    use std::sync::{Mutex, OnceLock, PoisonError};

    static WANTED: OnceLock<Mutex<Vec<String>>> = OnceLock::new();
    let mut wanted = WANTED
        .get_or_init(|| {
            let names = std::env::var("PROFTOP_TEST_FAULTS").unwrap_or_default();
            Mutex::new(names.split(',').map(str::to_owned).collect())
        })
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = wanted.iter().position(|name| name == work) {
        wanted.swap_remove(found);
        drop(wanted);
        panic!("a fault that a test asked for");
    }
}

#[cfg(not(debug_assertions))]
pub(crate) fn panic_if_wanted(_: &'static str) {}
