//! If there are no samples, finds out whether any thread has the name that `--comm` asks for,
//! because "there is no nginx" is another answer than "nginx does nothing".

use regex::Regex;
use std::fs;

/// Returns a sentence if no existing thread has a name that matches, otherwise `None`.
pub fn said(comm: &Regex) -> Option<String> {
    let has_match = threads().any(|name| comm.is_match(&name));
    let sentence = || format!("no thread on this machine has a name that matches {comm} now");
    (!has_match).then(sentence)
}

/// Returns the names of all threads. Threads that end meanwhile are left out.
fn threads() -> impl Iterator<Item = String> {
    let below = |path: &str| fs::read_dir(path).into_iter().flatten().flatten();
    let processes = below("/proc").filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some(pid)
    });
    let tasks = processes.flat_map(move |pid| below(&format!("/proc/{pid}/task")));
    tasks.filter_map(|task| {
        let name = fs::read(task.path().join("comm")).ok()?;
        Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_that_nobody_has_is_said() {
        let started = std::thread::Builder::new().name("somebody-x7".into());
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let thread = started.spawn(move || told.recv()).expect("a thread");
        let pattern = |text: &str| Regex::new(text).expect("a pattern");
        // A thread gets its name a moment after it was created.
        test_support::wait_until("the thread has its name", || {
            said(&pattern("^somebody-x7$")).is_none()
        });
        let sentence = said(&pattern("^nobody-x7$")).expect("nobody is called so");
        assert!(sentence.contains("matches ^nobody-x7$"), "{sentence}");
        drop(tell);
        thread
            .join()
            .expect("it waits only")
            .expect_err("nothing was sent");
    }
}
