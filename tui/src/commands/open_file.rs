//! Opens recordings of any format, which is recognized by the first bytes and not by the name.

use super::input::{Input, limits, unread};
use super::resolve::{Places, name_frames};
use crate::failure::Failure;
use engine::snapshot::Lacks;
use probe::confine::{self, Duty};
use profile::formats::{self, FormatError, pft};
use profile::{Limits, Store, TimeRange, View};
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// A recording, and sentences about what is missing from it.
pub struct Opened {
    pub view: View,
    pub notes: Vec<String>,
    /// Whether the file is cut off or damaged. Then the first note says how.
    pub is_broken: bool,
    pub lacks: Lacks,
    /// The names of all metrics of the file. Empty for a .pft.
    pub metrics: Vec<String>,
}

/// Receives news about reading while it goes on.
pub trait Progress {
    /// Called once when the first bytes show that it is a .pft.
    fn begins(&mut self) {}

    /// Called after each block, when its samples are in the store.
    fn comes(&mut self, _store: &Store) {}
}

/// Ignores the progress of reading.
struct AtOnce;

impl Progress for AtOnce {}

/// Reads the whole file with its first metric. It is an error if the file is empty or its format is
/// not known. Names that it does not have are looked up in `places`.
pub fn open(input: Input, places: &Places) -> Result<Opened, Failure> {
    open_metric(input, None, places)
}

/// Reads a file as [`open`] does, with the metric of this name. None means the first one.
pub fn open_metric(input: Input, metric: Option<&str>, places: &Places) -> Result<Opened, Failure> {
    open_by_parts(input, metric, places, &mut AtOnce)
}

/// Reads an opened file again with another metric. None if that fails, or if the file has changed.
pub fn count_again(path: &Path, opened: &Opened, metric: &str) -> Option<View> {
    let again = formats::read_metric(Input::open(path).ok()?, limits(), Some(metric));
    opened.view.counting(&again.ok()?.store.view())
}

/// Reads a file as [`open_metric`] does, and reports each block of a .pft to `progress`.
/// Files of other formats are read whole.
pub fn open_by_parts(
    input: Input,
    metric: Option<&str>,
    places: &Places,
    progress: &mut dyn Progress,
) -> Result<Opened, Failure> {
    let name = input.name().to_owned();
    let failed = |error| unread(&name, &error);
    read_by_parts(Box::new(input), metric, places, progress).map_err(failed)
}

/// Returns the range of the last `time` of a recording. Without a time, the range is all of it.
pub fn last(view: &View, time: Option<Duration>) -> TimeRange {
    match (time, view.end_ns()) {
        (Some(time), Some(end_ns)) => TimeRange::last(time, end_ns),
        _ => TimeRange::ALL,
    }
}

/// Reads the recording that is built into proftop.
pub fn open_demo(progress: &mut dyn Progress) -> Result<Opened, Failure> {
    const DEMO: &[u8] = include_bytes!("../../../assets/demo.pft");
    read_by_parts(Box::new(DEMO), None, &Places::default(), progress)
        .map_err(|error| Failure::failed(format!("cannot read the demo: {error}")))
}

/// Reads a recording that proftop has made from a stream, until its end.
pub fn read_all(input: Box<dyn Read>) -> Result<Opened, FormatError> {
    read_metric(input, None, &Places::default())
}

/// Reads what a process without rights has made of a recording, which is one of our own, on a thread
/// that has given up the rights that sampling takes. An error is a sentence.
pub fn read_made(mut made: Box<dyn Read + Send>) -> Result<Opened, String> {
    let read = || {
        confine::thread(Duty::Parsing);
        faults::catch("reading what was made of a recording", || {
            let mut start = [0; pft::MAGIC.len()];
            made.read_exact(&mut start).map_err(FormatError::from)?;
            if start != pft::MAGIC {
                return Err(FormatError::Unknown);
            }
            read_all(Box::new(io::Cursor::new(start).chain(made)))
        })
    };
    let reader = thread::Builder::new().name("reader".into());
    let read = thread::scope(|scope| {
        let reader = reader.spawn_scoped(scope, read);
        reader.map(|reader| reader.join().expect("panics are caught"))
    });
    match read {
        Ok(Ok(opened)) => opened.map_err(|error| error.to_string()),
        Ok(Err(fault)) => Err(fault.final_word()),
        Err(error) => Err(format!("cannot start a thread: {error}")),
    }
}

/// Reads a stream with the metric of this name. None means the first one.
pub fn read_metric(
    input: Box<dyn Read>,
    metric: Option<&str>,
    places: &Places,
) -> Result<Opened, FormatError> {
    read_by_parts(input, metric, places, &mut AtOnce)
}

/// Reads a stream as [`read_metric`] does, and reports each block of a .pft to `progress`.
pub fn read_by_parts(
    mut input: Box<dyn Read>,
    metric: Option<&str>,
    places: &Places,
    progress: &mut dyn Progress,
) -> Result<Opened, FormatError> {
    let limits = limits();
    let mut start = Vec::new();
    (&mut input)
        .take(pft::MAGIC.len() as u64)
        .read_to_end(&mut start)?;
    let whole = io::Cursor::new(start.clone()).chain(input);
    if start == pft::MAGIC && metric.is_none() {
        let whole = BufReader::with_capacity(1 << 16, whole);
        return read_blocks(pft::Reader::new(whole)?, limits, progress);
    }
    let formats::Opened {
        mut store,
        mut notes,
        format,
        metrics,
    } = formats::read_metric(whole, limits, metric)?;
    if format == "perf.data" {
        // A perf.data file has no names, so they are looked up in the files of this machine.
        let found = name_frames(&mut store, places);
        notes.extend(found.doubt());
    }
    notes.extend(left_out(&store));
    if metrics.len() > 1 {
        let all = metrics.join(", ");
        notes.push(format!(
            "it counts {all}: --metric chooses which is shown first"
        ));
    }
    Ok(Opened {
        view: store.view(),
        notes,
        is_broken: false,
        lacks: lacks(format),
        metrics,
    })
}

/// Reads a .pft, which may still be growing.
fn read_blocks<R: Read>(
    mut reader: pft::Reader<R>,
    limits: Limits,
    progress: &mut dyn Progress,
) -> Result<Opened, FormatError> {
    progress.begins();
    let mut store = Store::new(limits);
    while reader.read_block(&mut store)? {
        progress.comes(&store);
    }
    let mut notes = reader.notes();
    notes.extend(left_out(&store));
    Ok(Opened {
        view: store.view(),
        notes,
        is_broken: !reader.is_finished(),
        lacks: Lacks::default(),
        metrics: Vec::new(),
    })
}

/// Returns what files of this format never contain.
fn lacks(format: &str) -> Lacks {
    Lacks {
        time: matches!(format, "folded" | "pprof" | "speedscope"),
        people: matches!(format, "folded" | "speedscope"),
        unnamed: matches!(format, "folded" | "speedscope"),
    }
}

/// Says how many samples did not fit into memory. None if all did.
pub fn left_out(store: &Store) -> Option<String> {
    let stats = store.stats();
    let left_out = stats.refused_late + stats.refused_memory;
    (left_out > 0).then(|| format!("{left_out} samples did not fit into memory"))
}
