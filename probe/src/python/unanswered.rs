//! Files about which nothing was found out, because parsers ended while reading them or too much was
//! being read. They are asked about again, a few times: a program whose interpreter is not known has
//! no frames of Python.

use super::reading::WantedFile;
use crate::ids::ModuleId;
use std::collections::HashMap;

/// How soon a file is asked about again; after each time the wait is doubled.
const AGAIN_NS: u64 = 1_000_000_000;

/// Maximum number of questions about one file. The last is asked a minute after the first.
const TRIES_MAX: u32 = 7;

/// Maximum number of files that wait for being asked about again; others are not asked about.
const FILES_MAX: usize = 256;

/// A file without an answer.
#[derive(Debug)]
struct Unanswered {
    file: WantedFile,
    /// Number of questions so far.
    tries: u32,
    /// When it is asked about again; None while the answer is awaited.
    again_ns: Option<u64>,
}

/// All files without an answer.
#[derive(Debug, Default)]
pub struct UnansweredFiles {
    files: HashMap<ModuleId, Unanswered>,
}

impl UnansweredFiles {
    /// Adds a file about which a question had no answer.
    pub fn add(&mut self, file: WantedFile, now_ns: u64) {
        let is_full = self.files.len() >= FILES_MAX;
        let module = file.module;
        let tries = self.files.get(&module).map_or(1, |known| known.tries + 1);
        if tries >= TRIES_MAX || is_full && tries == 1 {
            self.files.remove(&module);
            return;
        }
        let unanswered = Unanswered {
            file,
            tries,
            again_ns: Some(now_ns + (AGAIN_NS << (tries - 1))),
        };
        self.files.insert(module, unanswered);
    }

    /// Removes a file about which a question had an answer.
    pub fn remove(&mut self, module: ModuleId) {
        self.files.remove(&module);
    }

    /// Returns the files that are to be asked about now.
    pub fn take_due(&mut self, now_ns: u64) -> Vec<WantedFile> {
        let due = self.files.values_mut().filter_map(|unanswered| {
            unanswered.again_ns.take_if(|again| now_ns >= *again)?;
            Some(unanswered.file.clone())
        });
        due.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::sync::Arc;

    fn file(module: u32) -> WantedFile {
        let file = File::open("/dev/null").expect("it is everywhere");
        WantedFile {
            module: ModuleId(module),
            user: 0,
            file: Arc::new(file.into()),
            name: b"python3".to_vec(),
        }
    }

    #[test]
    fn a_file_is_asked_about_a_few_times_ever_later() {
        let mut files = UnansweredFiles::default();
        let (mut now_ns, mut waits) = (0, Vec::new());
        files.add(file(1), now_ns);
        while !files.files.is_empty() {
            let begun_ns = now_ns;
            while files.take_due(now_ns).is_empty() {
                now_ns += AGAIN_NS / 2;
            }
            assert!(
                files.take_due(u64::MAX).is_empty(),
                "it has been asked about"
            );
            waits.push((now_ns - begun_ns) / AGAIN_NS);
            files.add(file(1), now_ns);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32]);
    }

    #[test]
    fn an_answer_ends_the_questions() {
        let mut files = UnansweredFiles::default();
        files.add(file(1), 0);
        files.add(file(2), 0);
        files.remove(ModuleId(1));
        let due = files.take_due(AGAIN_NS);
        assert_eq!(due.len(), 1);
        assert_eq!(due[0].module, ModuleId(2));
    }

    #[test]
    fn no_more_files_than_the_bound_wait() {
        let mut files = UnansweredFiles::default();
        for module in 0..2 * FILES_MAX as u32 {
            files.add(file(module), 0);
        }
        assert_eq!(files.files.len(), FILES_MAX);
    }
}
