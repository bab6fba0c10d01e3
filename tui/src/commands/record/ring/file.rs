//! The ring file, which has the last minutes. It is appended to each second. When it covers twice
//! the time, or has half of the bytes that it may take, a new file is made of the samples in memory
//! and renamed over it, so that a whole file has the name at every moment.

use super::saves::Saves;
use crate::cli::RingConfig;
use crate::failure::Failure;
use crate::output;
use crate::stderr;
use crate::user_files::{Refusal, UserFiles};
use crate::words::units::bytes as size_words;
use profile::View;
use profile::formats::pft;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The beginning of a message; the name of the file follows.
const ANOTHER: &str = "another recorder writes to ";

/// Time between a failed write and the next attempt.
const RETRY: Duration = Duration::from_secs(10);

/// The minimum length to which a ring is shortened. If that does not fit into its bytes either,
/// writing fails.
const LENGTH_MIN_NS: u64 = 5_000_000_000;

/// Maximum number of attempts to shorten a ring until it fits into its bytes.
const CUTS_MAX: u32 = 8;

/// The file of a ring.
pub struct RingFile {
    path: PathBuf,
    name: String,
    length_ns: u64,
    /// Maximum number of bytes of the file and the one that replaces it, together.
    bytes_max: u64,
    current: Option<Current>,
    /// The device and inode of the last file that this recorder has given the name.
    identity: Option<(u64, u64)>,
    /// When writing is tried again after a failure.
    retry_at: Option<Instant>,
    /// The failure.
    error: Option<String>,
    /// Whether the message that the bytes are too few for the time was printed.
    is_short: bool,
    /// Sentences for the readers of the file, with their times on the clock of samples.
    notes: Vec<(u64, String)>,
}

/// The file that has the name at present.
struct Current {
    writer: pft::Writer<Pieces>,
    pieces: Pieces,
    file: File,
    bytes: u64,
    /// From when on it has samples, and when it is to be replaced, on the clock of samples.
    begin_ns: u64,
    renew_ns: u64,
}

/// Packed bytes that are not in the file yet: their number is known only after packing.
#[derive(Clone, Default)]
struct Pieces(Rc<RefCell<Vec<u8>>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Pieces {
    fn take(&self) -> Vec<u8> {
        self.0.take()
    }
}

impl RingFile {
    /// Checks that the file can be created. It gets its name with the first samples.
    pub fn open(path: &Path, config: &RingConfig) -> Result<Self, Failure> {
        let name = symbolize::sanitize(path.to_string_lossy().as_bytes()).into_owned();
        let files = UserFiles::current();
        if let Err(refusal) = files.create(path, true) {
            return Err(Failure::failed(format!("cannot write {name}: {refusal}")));
        }
        if output::is_there(path) {
            let opened = files.open(path, u64::MAX);
            let mut file =
                opened.map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))?;
            if file.try_lock().is_err() {
                return Err(Failure::failed(format!("{ANOTHER}{name}")));
            }
            let mut begins = Vec::new();
            let mut magic = (&mut file).take(pft::MAGIC.len() as u64);
            let is_read = magic.read_to_end(&mut begins).is_ok();
            if !is_read || begins != pft::MAGIC {
                return Err(Failure::failed(format!(
                    "{name} is no recording, and stays as it is: name another file"
                )));
            }
        }
        Ok(Self {
            path: path.into(),
            name,
            length_ns: config.length.as_nanos() as u64,
            bytes_max: config.bytes_max,
            current: None,
            identity: None,
            retry_at: None,
            error: None,
            is_short: false,
            notes: Vec::new(),
        })
    }

    /// Adds a sentence for the readers of the file, for as long as the file covers that time.
    pub fn add_note(&mut self, now_ns: u64, sentence: String) {
        if let Some(current) = &mut self.current {
            current.writer.add_note(sentence.clone());
        }
        self.notes.push((now_ns, sentence));
    }

    /// Returns the contents of the file in words: `the last 600s, 1.2 MB`.
    pub fn contents(&self, end_ns: u64) -> Option<String> {
        let current = self.current.as_ref()?;
        let seconds = end_ns
            .saturating_sub(current.begin_ns)
            .div_ceil(1_000_000_000);
        Some(format!(
            "the last {seconds}s, {}",
            size_words(current.bytes)
        ))
    }

    /// Returns how much time the file covers, in seconds.
    pub fn seconds(&self, end_ns: u64) -> f64 {
        let begin_ns = self.current.as_ref().map_or(end_ns, |it| it.begin_ns);
        end_ns.saturating_sub(begin_ns) as f64 / 1e9
    }

    /// Whether a file has the name of the ring, perhaps an older one.
    pub fn is_there(&self) -> bool {
        let now = UserFiles::current().identity(&self.path);
        now.is_ok_and(|now| now.is_some())
    }

    /// Returns why the file is not being written at present.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Returns the name of the file for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the length of the file.
    pub fn bytes(&self) -> u64 {
        self.current.as_ref().map_or(0, |current| current.bytes)
    }

    /// Appends the samples up to `until_ns`. A failure is printed, and writing is tried again
    /// later: memory keeps the samples for as long as the ring is.
    pub fn append(&mut self, view: &View, until_ns: u64, saves: &Saves) {
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            return;
        }
        let is_lost = self.is_lost();
        let written = match &mut self.current {
            Some(current) if until_ns < current.renew_ns && !is_lost => {
                match current.append(view, until_ns, self.bytes_max / 2) {
                    Ok(true) => Ok(()),
                    Ok(false) => self.renew(view, until_ns, saves),
                    Err(error) => Err(error),
                }
            }
            _ => self.renew(view, until_ns, saves),
        };
        self.error = written.as_ref().err().map(|error| error.to_string());
        match written {
            Ok(()) if self.retry_at.take().is_some() => {
                stderr::say(format_args!("{} is written again", self.name));
            }
            Ok(()) if is_lost => stderr::say(format_args!(
                "{} was removed or replaced: it is there again",
                self.name
            )),
            Ok(()) => {}
            Err(error) => {
                if self.retry_at.is_none() {
                    stderr::say(format_args!(
                        "cannot write {}: {error}; it is tried again, and memory has the samples \
                         until then",
                        self.name
                    ));
                }
                self.retry_at = Some(Instant::now() + RETRY);
                // Further samples would refer to strings and stacks that are missing from this
                // file.
                self.current = None;
            }
        }
    }

    /// Appends the rest, and ends the file.
    pub fn finish(&mut self, view: &View, end_ns: u64, saves: &Saves) {
        // It is tried once more, whenever that was due. That it failed before was said.
        self.retry_at = self.retry_at.map(|_| Instant::now());
        self.append(view, end_ns, saves);
        if let Some(current) = &mut self.current
            && let Err(error) = current.finish(view, end_ns)
        {
            stderr::say(format_args!("cannot end {}: {error}", self.name));
        }
    }

    /// Whether the open file no longer has its name, because it was removed or replaced by another
    /// program.
    fn is_lost(&self) -> bool {
        self.current.is_some() && {
            let now = UserFiles::current().identity(&self.path);
            now.is_ok_and(|now| now != self.identity)
        }
    }

    /// Writes a new file with the last minutes, which replaces the current one.
    fn renew(&mut self, view: &View, until_ns: u64, saves: &Saves) -> io::Result<()> {
        let (writer, pieces, bytes, length_ns) = self.last_minutes(view, until_ns)?;
        let files = UserFiles::current();
        let mut new = files.begin(&self.path).map_err(io_error)?;
        new.file().write_all(&bytes)?;
        // Without this, the file may be empty after a crash of the machine.
        new.file().sync_data()?;
        let now = files.identity(&self.path)?;
        if now.is_some() && now != self.identity {
            // The file with this name is of an earlier run, or has replaced ours.
            if files.open(&self.path, u64::MAX)?.try_lock().is_err() {
                return Err(io::Error::other(format!("{ANOTHER}it")));
            }
            saves.keep_earlier()?;
        }
        // The lock shows other recorders that the file is in use.
        new.file().try_lock()?;
        let file = files.name(new, true).map_err(io_error)?;
        let status = file.metadata()?;
        self.identity = Some((status.dev(), status.ino()));
        let begin_ns = until_ns.saturating_sub(length_ns);
        self.current = Some(Current {
            writer,
            pieces,
            bytes: bytes.len() as u64,
            file,
            begin_ns: view.begin_ns().unwrap_or(begin_ns).max(begin_ns),
            renew_ns: until_ns.saturating_add(length_ns),
        });
        Ok(())
    }

    /// Packs the last minutes. If they take more than a quarter of the bytes, fewer minutes are
    /// packed, so that the file can double before it is replaced.
    fn last_minutes(
        &mut self,
        view: &View,
        until_ns: u64,
    ) -> io::Result<(pft::Writer<Pieces>, Pieces, Vec<u8>, u64)> {
        let most = self.bytes_max / 4;
        let mut length_ns = self.length_ns;
        let mut cuts = 0;
        loop {
            let pieces = Pieces::default();
            let mut writer = pft::Writer::new(pieces.clone()).map_err(io::Error::other)?;
            let begin_ns = until_ns.saturating_sub(length_ns);
            writer.begin_at(begin_ns);
            self.notes.retain(|(said_ns, _)| *said_ns >= begin_ns);
            let notes = self.notes.iter().cloned();
            notes.for_each(|(_, sentence)| writer.add_note(sentence));
            let written = writer.append(view, Some(until_ns));
            written.map_err(io::Error::other)?;
            let bytes = pieces.take();
            let len = bytes.len() as u64;
            if len <= most {
                return Ok((writer, pieces, bytes, length_ns));
            }
            cuts += 1;
            if cuts > CUTS_MAX || length_ns == LENGTH_MIN_NS {
                return Err(io::Error::other(format!(
                    "{}s take {}: --ring-size has to be four times as much",
                    length_ns / 1_000_000_000,
                    size_words(len)
                )));
            }
            let kept_ns = view
                .begin_ns()
                .map_or(0, |begin| until_ns.saturating_sub(begin));
            let fits = most as f64 / len as f64 * 0.8;
            let shorter = length_ns.min(kept_ns) as f64 * fits;
            length_ns = (shorter as u64).max(LENGTH_MIN_NS);
            if !std::mem::replace(&mut self.is_short, true) {
                stderr::say(format_args!(
                    "{} has room for about {}s: --ring-size makes it larger",
                    self.name,
                    length_ns / 1_000_000_000
                ));
            }
        }
    }
}

impl Current {
    /// Appends new samples. Returns false, and leaves the file unchanged, if it would become longer
    /// than `bytes_max`.
    fn append(&mut self, view: &View, until_ns: u64, bytes_max: u64) -> io::Result<bool> {
        let appended = self.writer.append(view, Some(until_ns));
        appended.map_err(io::Error::other)?;
        self.write_pieces(bytes_max)
    }

    /// Appends the last samples and the end of the file.
    fn finish(&mut self, view: &View, end_ns: u64) -> io::Result<()> {
        let appended = self.writer.append_last(view, end_ns);
        let ended = appended.and_then(|()| self.writer.finish(view));
        ended.map_err(io::Error::other)?;
        self.write_pieces(u64::MAX)?;
        self.file.sync_data()
    }

    fn write_pieces(&mut self, bytes_max: u64) -> io::Result<bool> {
        let bytes = self.pieces.take();
        if self.bytes + bytes.len() as u64 > bytes_max {
            return Ok(false);
        }
        if let Err(error) = self.file.write_all(&bytes) {
            // The disk may be full: the incomplete piece is cut off again.
            _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += bytes.len() as u64;
        Ok(true)
    }
}

fn io_error(refusal: Refusal) -> io::Error {
    io::Error::other(refusal.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::{
        Cancel, Ending, Frame, FrameKind, Info, Limits, ModuleId, NewSample, ProcessId, Query,
        Rates, Store,
    };
    use test_support::Random;

    const SECOND_NS: u64 = 1_000_000_000;

    fn config(seconds: u64, bytes_max: u64) -> RingConfig {
        RingConfig {
            length: Duration::from_secs(seconds),
            bytes_max,
            conditions: Vec::new(),
            after: Duration::from_secs(1),
            saves_max: 3,
            control: None,
            folders: Vec::new(),
            spool: None,
            cohort: None,
        }
    }

    fn store(keep_seconds: u64) -> Store {
        let mut store = Store::new(Limits {
            keep: Duration::from_secs(keep_seconds),
            ..Limits::default()
        });
        store.set_info(Info {
            rates: Rates::always(99),
            ..Info::default()
        });
        store.begin(0);
        store
    }

    /// Adds a second with samples, each with a new stack.
    fn add_second(store: &mut Store, random: &mut Random, second: u64, samples: u64) {
        for at in 0..samples {
            let frame = |_| Frame {
                module: ModuleId(1),
                address: random.below(1 << 40),
                kind: FrameKind::User,
            };
            let frames: Vec<Frame> = (0..20).map(frame).collect();
            store.add_sample(NewSample {
                time_ns: second * SECOND_NS + at * SECOND_NS / samples,
                cpu: 0,
                process: ProcessId(1),
                tid: 7,
                comm: "worker",
                frames: &frames,
                kernel_frames: 0,
                ending: Ending::Root,
                weight: 1,
            });
        }
    }

    /// Returns the seconds from which a file has samples.
    fn seconds(path: &Path) -> Vec<u64> {
        let bytes = std::fs::read(path).unwrap();
        let (store, _) = pft::read(&*bytes, Limits::default()).unwrap();
        let selection = store.view().select(&Query::default(), &Cancel::new());
        let cells = selection.unwrap().report();
        let window = cells.window;
        (window.start_ns / SECOND_NS..window.end_ns.div_ceil(SECOND_NS)).collect()
    }

    #[test]
    fn the_file_always_has_the_last_time_and_less_than_twice_as_much() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ring.pft");
        let mut ring = RingFile::open(&path, &config(10, 64 << 20)).unwrap();
        let saves = Saves::new(path.clone(), 3);
        let (mut store, mut random) = (store(30), Random::new(7));
        for second in 0..45 {
            add_second(&mut store, &mut random, second, 20);
            ring.append(&store.view(), (second + 1) * SECOND_NS, &saves);
            let seconds = seconds(&path);
            assert_eq!(seconds.last(), Some(&second));
            let begins = *seconds.first().unwrap();
            assert!(begins <= (second + 1).saturating_sub(10), "{seconds:?}");
            assert!(seconds.len() <= 20, "{seconds:?}");
        }
        assert_eq!(saves.written(), 0);
    }

    #[test]
    fn the_file_and_its_successor_never_take_more_than_they_may() {
        const BYTES_MAX: u64 = 1 << 18;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ring.pft");
        let mut ring = RingFile::open(&path, &config(60, BYTES_MAX)).unwrap();
        let saves = Saves::new(path.clone(), 3);
        let (mut store, mut random) = (store(80), Random::new(8));
        let mut before = 0;
        for second in 0..60 {
            // A second takes some 5 kB: ten seconds fill a quarter of the bytes.
            add_second(&mut store, &mut random, second, 50);
            ring.append(&store.view(), (second + 1) * SECOND_NS, &saves);
            let now = std::fs::metadata(&path).unwrap().len();
            assert_eq!(now, ring.bytes());
            // If this file has replaced another one, both existed for a moment.
            assert!(
                now.max(before + now.min(BYTES_MAX / 4)) <= BYTES_MAX,
                "{before} {now}"
            );
            // Reading the whole file takes long, so it is done only now and then.
            if second % 4 == 3 {
                assert_eq!(seconds(&path).last(), Some(&second));
            }
            before = now;
        }
        assert!(ring.is_short);
        assert!(seconds(&path).len() >= 5, "{:?}", seconds(&path));
    }

    #[test]
    fn cut_anywhere_the_file_has_every_second_that_was_written_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ring.pft");
        let mut ring = RingFile::open(&path, &config(60, 64 << 20)).unwrap();
        let saves = Saves::new(path.clone(), 3);
        let (mut store, mut random) = (store(80), Random::new(10));
        let mut lengths = Vec::new();
        for second in 0..12 {
            add_second(&mut store, &mut random, second, 20);
            ring.append(&store.view(), (second + 1) * SECOND_NS, &saves);
            lengths.push(ring.bytes());
        }
        // The file as `kill -9` leaves it in the middle of a write.
        let whole = std::fs::read(&path).unwrap();
        let last = whole.len() as u64;
        for _ in 0..100 {
            let length = lengths[0] + random.below(last - lengths[0]);
            std::fs::write(&path, &whole[..length as usize]).unwrap();
            let written = lengths.iter().filter(|end| **end <= length).count() as u64;
            assert_eq!(
                seconds(&path),
                Vec::from_iter(0..written),
                "{length} of {last}"
            );
        }
    }

    #[test]
    fn what_cannot_be_written_is_tried_again_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let path = inner.join("ring.pft");
        let mut ring = RingFile::open(&path, &config(10, 64 << 20)).unwrap();
        let saves = Saves::new(path.clone(), 3);
        let (mut store, mut random) = (store(30), Random::new(9));
        add_second(&mut store, &mut random, 0, 20);
        std::fs::remove_dir(&inner).unwrap();
        ring.append(&store.view(), SECOND_NS, &saves);
        assert!(ring.retry_at.is_some() && ring.current.is_none());
        std::fs::create_dir(&inner).unwrap();
        add_second(&mut store, &mut random, 1, 20);
        // It is too early for another attempt.
        ring.append(&store.view(), 2 * SECOND_NS, &saves);
        assert!(!path.exists());
        ring.retry_at = Some(Instant::now());
        ring.append(&store.view(), 2 * SECOND_NS, &saves);
        assert_eq!(seconds(&path), [0, 1]);
        // After a failure, the file with the name is ours and not of an earlier run.
        ring.current = None;
        add_second(&mut store, &mut random, 2, 20);
        ring.append(&store.view(), 3 * SECOND_NS, &saves);
        assert_eq!(seconds(&path), [0, 1, 2]);
        assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 1);
    }
}
