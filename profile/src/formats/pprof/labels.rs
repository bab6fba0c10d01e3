//! Reads the labels of a sample: its process and thread, and how its stack ended.

use super::proto::Fields;
use super::tables::Tables;
use super::{ENDING_LABEL, field};
use crate::formats::FormatError;
use std::collections::HashMap;

/// The labels that are recognized: ours, and those of other samplers.
#[derive(Debug, Clone, Copy)]
enum Key {
    Thread,
    Tid,
    Comm,
    Pid,
    Ending,
    Other,
}

impl Key {
    /// Recognizes a label. Each has up to three spellings; the first one is ours.
    fn of(word: &[u8]) -> Self {
        match word {
            b"thread" | b"thread_name" | b"thread-name" => Key::Thread,
            b"tid" | b"thread_id" | b"thread-id" => Key::Tid,
            b"comm" | b"process_name" | b"process-name" => Key::Comm,
            b"pid" | b"process_id" | b"process-id" => Key::Pid,
            word if word == ENDING_LABEL.as_bytes() => Key::Ending,
            _ => Key::Other,
        }
    }
}

/// The labels of one sample.
#[derive(Debug, Default)]
pub(super) struct Labels {
    /// Name of the thread, as the number of a text; 0 if absent.
    pub(super) thread: u64,
    /// Name of the process, as the number of a text; 0 if absent.
    pub(super) comm: u64,
    /// Label of the ending of the walk, as the number of a text; 0 if absent.
    pub(super) ending: u64,
    /// Thread id; 0 if absent.
    pub(super) tid: u32,
    /// Process id; 0 if absent.
    pub(super) pid: u32,
}

/// The meaning of each key met so far, by the number of its text.
#[derive(Debug, Default)]
pub(super) struct Keys(HashMap<u64, Key>);

impl Labels {
    /// Reads one label; if a key is repeated, the last one counts. The meaning of a key is looked
    /// up once per file, by the number of its text.
    pub(super) fn add(
        &mut self,
        mut fields: Fields<'_>,
        keys: &mut Keys,
        tables: &Tables<'_>,
    ) -> Result<(), FormatError> {
        let (mut key, mut text, mut number) = (0, 0, 0);
        while let Some((field, value)) = fields.next()? {
            match field {
                field::label::KEY => key = value.number()?,
                field::label::TEXT => text = value.number()?,
                field::label::NUMBER => number = value.number()?,
                _ => {}
            }
        }
        let key = match keys.0.get(&key) {
            Some(known) => *known,
            None => {
                let known = Key::of(tables.bytes(key)?);
                keys.0.insert(key, known);
                known
            }
        };
        match key {
            Key::Thread => self.thread = text,
            Key::Comm => self.comm = text,
            Key::Ending => self.ending = text,
            Key::Tid => self.tid = small_number(tables, text, number)?,
            Key::Pid => self.pid = small_number(tables, text, number)?,
            Key::Other => {}
        }
        Ok(())
    }
}

/// Returns a pid or tid, which some writers store as text.
fn small_number(tables: &Tables<'_>, text: u64, number: u64) -> Result<u32, FormatError> {
    if text == 0 {
        return Ok(u32::try_from(number).unwrap_or(0));
    }
    let text = std::str::from_utf8(tables.bytes(text)?);
    Ok(text.ok().and_then(|text| text.parse().ok()).unwrap_or(0))
}
