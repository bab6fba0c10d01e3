//! Fetches debug files of hot files while proftop runs: on a thread of its own, one at a time, and
//! only if `DEBUGINFOD_URLS` names servers. A request tells a server which build runs here, so only
//! what matters is requested.
//!
//! A module goes through these steps, each of which may end the process:
//!
//! 1. it is hot: 50 samples ended in it, and one in 100 of all samples
//! 2. it has a build-id, and fewer than 64 builds were requested so far
//! 3. it lacks debug information, which is checked by opening the file
//! 4. the user agrees, or has agreed
//! 5. the client fetches the file into its cache
//! 6. the file is read again, and all its frames are named again

pub mod client;

use crate::naming::NamedModule;
use crate::settings::Consent;
use crate::snapshot::{FetchState, Loading};
use client::{FetchError, Limits};
use probe::channel::{Receiver, Sender, channel};
use probe::confine::{self, Duty};
use profile::ModuleId;
use profile::few;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use symbolize::Symbolizer;

/// How long the end of a run waits for the thread: some sleep intervals of the client.
const END_WAIT: Duration = Duration::from_millis(200);
const END_LOOK_EVERY: Duration = Duration::from_millis(2);

/// Number of samples from which on a file is hot; below, the minimum fraction (1/n) of all samples.
const SAMPLES_MIN: u64 = 50;
const ONE_OF: u64 = 100;

/// Maximum number of builds that are requested in one run.
const FILES_MAX: usize = 64;

/// Limits for a file: debug information of a larger one would not be read anyway.
const LIMITS: Limits = Limits {
    bytes: 512 << 20,
    time: Duration::from_secs(120),
};

/// The state of all requests.
#[derive(Debug, Default)]
struct Fetches {
    consent: Consent,
    /// The request that waits for the user's consent.
    held: Option<Wanted>,
    /// Name of the file that is being fetched.
    current: Option<Arc<str>>,
    came: u32,
    /// Reasons of failures, each with its number.
    failures: Vec<(String, u32)>,
    /// Whether further requests make no sense.
    is_over: bool,
}

#[derive(Debug, Clone)]
struct Wanted {
    module: Arc<NamedModule>,
    build_id: Arc<[u8]>,
    name: Arc<str>,
}

/// The thread that fetches debug files, and the requests to it. Dropping it ends the thread and the
/// client that it runs, and waits a moment until a half-fetched file is removed.
#[derive(Debug)]
pub struct Fetching {
    requests: Option<Sender<Wanted>>,
    thread: Option<JoinHandle<()>>,
    answers: Receiver<ModuleId>,
    state: Arc<Mutex<Fetches>>,
    stop: Arc<AtomicBool>,
    /// Whether the thread has handled all requests.
    is_idle: Arc<AtomicBool>,
    /// The modules for which each build was requested: files that claim to be of one build need not
    /// be the same.
    asked: HashMap<Arc<[u8]>, HashSet<ModuleId>>,
    /// Number of samples, in total and by module.
    samples: u64,
    by_module: HashMap<ModuleId, u64>,
}

impl Fetching {
    /// Starts the thread; `None` if no servers are configured.
    pub fn start(symbolizer: Arc<Symbolizer>, consent: Consent) -> Option<Fetching> {
        if !client::is_wanted() {
            return None;
        }
        let (requests, queue) = channel();
        let (results, answers) = channel();
        let state = Arc::new(Mutex::new(Fetches {
            consent,
            ..Fetches::default()
        }));
        let (stop, is_idle) = (
            Arc::<AtomicBool>::default(),
            Arc::new(AtomicBool::new(true)),
        );
        let worker = Worker {
            symbolizer,
            state: state.clone(),
            stop: stop.clone(),
            is_idle: is_idle.clone(),
            came: HashSet::new(),
        };
        let thread = thread::Builder::new().name("debuginfod".into());
        let started = thread.spawn(move || {
            confine::thread(Duty::Fetching);
            worker.run(&queue, &results);
        });
        Some(Fetching {
            requests: started.is_ok().then_some(requests),
            thread: started.ok(),
            answers,
            state,
            stop,
            is_idle,
            asked: HashMap::new(),
            samples: 0,
            by_module: HashMap::new(),
        })
    }

    /// Counts a sample whose innermost frame is in a module.
    pub fn note(&mut self, module: ModuleId) {
        self.samples += 1;
        *self.by_module.entry(module).or_default() += 1;
    }

    /// Requests the debug file of the hottest module for which none was requested. `describe`
    /// returns the description of a module; each build is requested once.
    pub fn ask<'m>(
        &mut self,
        describe: impl Fn(ModuleId) -> Option<(&'m Arc<NamedModule>, &'m Arc<[u8]>, &'m str)>,
    ) {
        let Some(requests) = &self.requests else {
            return;
        };
        if !self.is_idle.load(Ordering::Relaxed) || !self.state().may_look() {
            return;
        }
        let least = SAMPLES_MIN.max(self.samples / ONE_OF);
        let mut hot: Vec<_> = self.by_module.iter().map(|(id, n)| (*n, *id)).collect();
        hot.retain(|(samples, _)| *samples >= least);
        few::sort_by_key(&mut hot, |(samples, id)| {
            (std::cmp::Reverse(*samples), id.0)
        });
        for (_, id) in hot {
            let Some((module, build_id, name)) = describe(id) else {
                continue;
            };
            let is_too_much = self.asked.len() >= FILES_MAX && !self.asked.contains_key(build_id);
            if build_id.is_empty() || is_too_much {
                continue;
            }
            if !self.asked.entry(build_id.clone()).or_default().insert(id) {
                continue;
            }
            self.is_idle.store(false, Ordering::Relaxed);
            _ = requests.send(Wanted {
                module: module.clone(),
                build_id: build_id.clone(),
                name: name.into(),
            });
            return;
        }
    }

    /// Handles the user's answer: fetches what was waiting for it, or drops it.
    pub fn allow(&mut self, is_allowed: bool) {
        let mut state = self.state();
        state.consent = if is_allowed {
            Consent::Given
        } else {
            Consent::Refused
        };
        let held = state.held.take().filter(|_| is_allowed);
        drop(state);
        if let Some((requests, held)) = self.requests.as_ref().zip(held) {
            self.is_idle.store(false, Ordering::Relaxed);
            _ = requests.send(held);
        }
    }

    /// The configured servers, and the file that waits for the user's consent.
    pub fn fetch_state(&self) -> FetchState {
        let servers = std::env::var_os("DEBUGINFOD_URLS").unwrap_or_default();
        let held = &self.state().held;
        FetchState {
            servers: symbolize::sanitize(servers.as_encoded_bytes()).into(),
            asks_for: held.as_ref().map(|wanted| Arc::clone(&wanted.name)),
        }
    }

    /// Takes the modules whose debug files have arrived.
    pub fn answers(&mut self) -> Vec<ModuleId> {
        self.answers.try_iter().collect()
    }

    /// The file that is being fetched.
    pub fn loading(&self) -> Option<Loading> {
        Some(Loading {
            module: self.state().current.clone()?,
            percent: None,
            what: "from debuginfod",
            is_remote: true,
        })
    }

    /// Sentences about the results.
    pub fn notes(&self) -> Vec<String> {
        let state = self.state();
        let came = (state.came > 0).then(|| format!("debuginfod: {} came", files(state.came)));
        let refused = (state.consent == Consent::Refused)
            .then(|| "debuginfod: not asked, as you chose; :debuginfod on asks".to_owned());
        let failures = state
            .failures
            .iter()
            .map(|(why, count)| format!("debuginfod: {}: {why}", files(*count)));
        came.into_iter().chain(refused).chain(failures).collect()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Fetches> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A count of files in words.
fn files(count: u32) -> String {
    match count {
        1 => "1 debug file".into(),
        count => format!("{count} debug files"),
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.requests.take();
        let end = Instant::now() + END_WAIT;
        while (self.thread.as_ref()).is_some_and(|thread| !thread.is_finished())
            && Instant::now() < end
        {
            thread::sleep(END_LOOK_EVERY);
        }
    }
}

/// The state of the thread.
struct Worker {
    symbolizer: Arc<Symbolizer>,
    state: Arc<Mutex<Fetches>>,
    stop: Arc<AtomicBool>,
    is_idle: Arc<AtomicBool>,
    /// Builds whose debug files were fetched.
    came: HashSet<Arc<[u8]>>,
}

impl Worker {
    /// Fetches the requested debug files until the sender of `queue` is dropped. A panic affects
    /// only one file.
    fn run(mut self, queue: &Receiver<Wanted>, results: &Sender<ModuleId>) {
        while let Ok(wanted) = queue.recv() {
            if self.is_over() {
                continue;
            }
            let came = faults::catch("fetching a debug file", || self.fetch(&wanted));
            if came.is_err() {
                self.state().current = None;
            }
            if came == Ok(true) && results.send(wanted.module.id()).is_err() {
                return;
            }
            self.is_idle.store(true, Ordering::Relaxed);
        }
    }

    /// Fetches one debug file; returns `true` if the module has debug information now and had none
    /// before. Returns `false` also if the user has to be asked first, or has refused.
    fn fetch(&mut self, wanted: &Wanted) -> bool {
        let with_source = |f: &dyn Fn(symbolize::FileSource<'_>) -> bool| {
            wanted.module.with_source(f).unwrap_or(false)
        };
        let reread = || with_source(&|source| self.symbolizer.reread(&source).is_ok());
        if !with_source(&|source| self.symbolizer.lacks_debug_file(source)) {
            // The debug file may have been fetched for another file, after this one was read.
            return self.came.contains(&wanted.build_id) && reread();
        }
        let mut state = self.state();
        match state.consent {
            Consent::Given => {}
            Consent::Refused => return false,
            // The screen asks the user; `allow` then sends the request again.
            Consent::Ask => {
                state.held = Some(wanted.clone());
                return false;
            }
        }
        state.current = Some(wanted.name.clone());
        drop(state);
        let fetched = client::fetch(&wanted.build_id, LIMITS, &self.stop);
        let mut state = self.state();
        state.current = None;
        match fetched {
            Ok(()) => {
                state.came += 1;
                drop(state);
                self.came.insert(wanted.build_id.clone());
                reread()
            }
            Err(why) => {
                // Without a client, or if it fails for a local reason, further requests would fail
                // as well. That a server lacks one file means nothing for other files.
                state.is_over = matches!(why, FetchError::NoClient | FetchError::Failed { .. });
                state.count(why.to_string());
                false
            }
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.state().is_over
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Fetches> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fetches {
    /// Whether it makes sense to look for files that lack debug information.
    fn may_look(&self) -> bool {
        self.consent != Consent::Refused && self.held.is_none()
    }

    /// Counts a failure by its reason.
    fn count(&mut self, why: String) {
        match self.failures.iter_mut().find(|(known, _)| *known == why) {
            Some((_, count)) => *count += 1,
            None => self.failures.push((why, 1)),
        }
    }
}
