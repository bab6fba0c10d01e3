//! Reads a file of any format, recognized by its first bytes and not by its name.
//!
//! Formats are tried from the surest sign to the weakest:
//!
//! 1. gzip or zstd: unpacked first, then as below
//! 2. `.pft`, perf.data: eight bytes of their own
//! 3. pprof: fields of a message, in an order that writers keep
//! 4. `{` or `[`: JSON, whose keys say of which tool
//! 5. `<!doctype`, `<svg` …: a picture, which is refused with a sentence
//! 6. the head of a sample of `perf script`
//! 7. a zero byte: nothing that is known
//! 8. folded stacks, which any text could be

use super::{
    FormatError, Metered, firefox, folded, json, perf_data, perf_script, pft, pprof, speedscope,
};
use crate::{Limits, Store};
use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// Largest size that a packed file may unpack to: more than any recording, and a limit for files
/// that unpack endlessly.
const UNPACKED_MAX: u64 = 4 << 30;

/// Number of bytes at the beginning that are enough to recognize a text format.
const HEAD: u64 = 1 << 16;

/// First bytes of packed files: RFC 1952, RFC 8878 (0xFD2FB528, little-endian).
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A file that was read.
#[derive(Debug)]
pub struct Opened {
    /// The samples that could be read.
    pub store: Store,
    /// Sentences about what is missing.
    pub notes: Vec<String>,
    /// The name of the recognized format: `.pft`, `pprof`.
    pub format: &'static str,
    /// The names of all metrics that the file counts.
    pub metrics: Vec<String>,
}

/// Reads a file to its end.
pub fn read<'a>(input: impl Read + 'a, limits: Limits) -> Result<Opened, FormatError> {
    read_metric(input, limits, None)
}

/// Reads as [`read`] does; from a file that counts several metrics it takes `wanted`. Places and
/// stacks have the same numbers whichever metric is read: [`View::counting`].
///
/// [`View::counting`]: crate::View::counting
pub fn read_metric<'a>(
    mut input: impl Read + 'a,
    limits: Limits,
    wanted: Option<&str>,
) -> Result<Opened, FormatError> {
    let mut head = Vec::new();
    // If the input is a pipe that is still being written, reads no more than is needed to recognize
    // the format.
    (&mut input).take(8).read_to_end(&mut head)?;
    if head.is_empty() {
        return Err(FormatError::Empty);
    }
    let is_packed = head.starts_with(&GZIP) || head.starts_with(&ZSTD);
    let mut whole = Cursor::new(head.clone()).chain(input);
    if !is_packed {
        return read_one(&mut whole, limits, wanted);
    }
    let unpacked: Box<dyn Read + 'a> = if head.starts_with(&GZIP) {
        Box::new(MultiGzDecoder::new(BufReader::new(whole)))
    } else {
        unzstd(whole)?
    };
    let mut bounded = Bounded {
        input: unpacked,
        left: UNPACKED_MAX,
    };
    read_one(&mut bounded, limits, wanted).map_err(|error| match error {
        FormatError::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            FormatError::TooLarge("it unpacks to more than 4 GB")
        }
        FormatError::Io(_) => FormatError::Damaged("it cannot be unpacked".into()),
        other => other,
    })
}

/// Unpacks zstd while it is read. An error here means that the head of the stream is already
/// invalid.
fn unzstd<'a>(input: impl Read + 'a) -> Result<Box<dyn Read + 'a>, FormatError> {
    match ruzstd::decoding::StreamingDecoder::new(BufReader::new(input)) {
        Ok(decoder) => Ok(Box::new(decoder)),
        Err(_) => Err(FormatError::Damaged("it cannot be unpacked".into())),
    }
}

/// A reader that returns an error when there is more input than allowed.
struct Bounded<R> {
    input: R,
    /// Bytes that may still be read.
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.input.read(buffer)?;
        self.left = match self.left.checked_sub(len as u64) {
            Some(left) => left,
            None => return Err(io::ErrorKind::FileTooLarge.into()),
        };
        Ok(len)
    }
}

/// The metric of clock ticks, as named on the command line and in files.
const ON_CPU: &str = "on-cpu";
const CPU: &str = "cpu";

/// Reads a format that counts one metric, as most formats do. If another metric is wanted, returns
/// an error that names the available one.
fn read_one(
    input: &mut dyn Read,
    limits: Limits,
    wanted: Option<&str>,
) -> Result<Opened, FormatError> {
    let mut opened = read_plain(input, limits, wanted)?;
    let counted = &opened.store.info().metric.name;
    if opened.metrics.is_empty() {
        opened.metrics = vec![counted.clone()];
    }
    match wanted {
        Some(wanted) if wanted != counted && !(wanted == ON_CPU && counted == CPU) => {
            Err(FormatError::no_metric(wanted, &opened.metrics))
        }
        _ => Ok(opened),
    }
}

/// Reads a file that is not packed, by the first matching rule of the list above.
///
/// Takes a `dyn` reader, so that all formats are compiled once and not once for each kind of input.
fn read_plain(
    input: &mut dyn Read,
    limits: Limits,
    wanted: Option<&str>,
) -> Result<Opened, FormatError> {
    let mut head = Vec::new();
    (&mut *input).take(8).read_to_end(&mut head)?;
    if head == pft::MAGIC {
        let whole = Cursor::new(head).chain(BufReader::with_capacity(1 << 16, input));
        let (store, notes) = pft::read(whole, limits)?;
        return Ok(opened(store, notes, "pft"));
    }
    if head == perf_data::MAGIC {
        let whole = BufReader::with_capacity(1 << 16, Cursor::new(head).chain(input));
        let read = perf_data::read(whole, limits, wanted)?;
        return Ok(metered(read, "perf.data"));
    }
    if head == perf_data::MAGIC_SWAPPED {
        return Err(FormatError::Unsupported(
            "it is from a big-endian machine: give the output of perf script",
        ));
    }
    (&mut *input).take(HEAD).read_to_end(&mut head)?;
    let whole = BufReader::new(Cursor::new(head.clone()).chain(input));
    if pprof::is_start(&head) {
        let read = pprof::read_metric(whole, limits, wanted)?;
        return Ok(metered(read, "pprof"));
    }
    let first = head.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        Some(b'{' | b'[') => read_json(whole, limits),
        Some(b'<') if is_page(&head) => Err(FormatError::Unsupported(
            "a flame graph as a page or a picture has no samples: open the recording it is of",
        )),
        _ if perf_script::is_start(&String::from_utf8_lossy(&head)) => {
            let (store, notes) = perf_script::read(whole, limits)?;
            Ok(opened(store, notes, "perf script"))
        }
        // A text has no zero byte.
        _ if head.contains(&0) => Err(FormatError::Unknown),
        _ => read_text(whole, limits),
    }
}

/// Whether a text is HTML or SVG, in whatever case its first word is written. Stacks that begin
/// with `<T as Trait>::function` are not.
fn is_page(head: &[u8]) -> bool {
    let start = head.trim_ascii_start();
    let is_it = |word: &[u8]| {
        start
            .get(..word.len())
            .is_some_and(|s| s.eq_ignore_ascii_case(word))
    };
    [&b"<!doctype"[..], b"<html", b"<?xml", b"<svg"]
        .into_iter()
        .any(is_it)
}

fn opened(store: Store, notes: Vec<String>, format: &'static str) -> Opened {
    Opened {
        store,
        notes,
        format,
        metrics: Vec::new(),
    }
}

fn metered(read: Metered, format: &'static str) -> Opened {
    Opened {
        store: read.store,
        notes: read.notes,
        format,
        metrics: read.metrics,
    }
}

/// The keys that tell the JSON of one tool from that of another.
#[derive(Deserialize)]
struct Keys {
    meta: Option<IgnoredAny>,
    threads: Option<IgnoredAny>,
    profiles: Option<IgnoredAny>,
    #[serde(rename = "traceEvents")]
    trace_events: Option<IgnoredAny>,
}

/// Reads JSON, which has to be in memory as a whole. A first pass looks only at the keys and keeps
/// nothing.
fn read_json(input: impl BufRead, limits: Limits) -> Result<Opened, FormatError> {
    let text = json::load(input)?;
    let keys: Keys = json::parse(&text)?;
    match keys {
        Keys {
            profiles: Some(_), ..
        } => {
            let (store, notes) = speedscope::read(&text, limits)?;
            Ok(opened(store, notes, "speedscope"))
        }
        Keys {
            meta: Some(_),
            threads: Some(_),
            ..
        } => {
            let (store, notes) = firefox::read(&text, limits)?;
            Ok(opened(store, notes, "firefox"))
        }
        Keys {
            trace_events: Some(_),
            ..
        } => Err(FormatError::Unsupported(
            "a trace of events has no samples: record, or export, in another format",
        )),
        _ => Err(FormatError::Unknown),
    }
}

fn read_text(input: impl BufRead, limits: Limits) -> Result<Opened, FormatError> {
    let store = folded::read(input, limits)?;
    Ok(opened(store, Vec::new(), "folded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_unpacks_for_ever_is_refused() {
        let mut bounded = Bounded {
            input: io::repeat(0),
            left: 1 << 20,
        };
        let error = io::copy(&mut bounded, &mut io::sink()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
