//! The events of a file: their names, which event each sample belongs to, and which of them counts.

use super::attributes::Attributes;
use crate::Info;
use crate::formats::FormatError;
use std::collections::HashMap;

/// Number of events that can be chosen by name; further ones are read but never counted.
const NAMED_MAX: usize = 64;

/// All events of a file. The reader adds them from the attributes in the header or, for a pipe,
/// from records before the samples.
#[derive(Debug, Default)]
pub(super) struct Events {
    all: Vec<Attributes>,
    /// Names of the first [`NAMED_MAX`] events; a repeated name gets a number at its end.
    names: Vec<String>,
    /// How often each event name was met so far.
    met: HashMap<String, usize>,
    /// Number of the event of each sample id. The kernel gives ids, one for each CPU or thread on
    /// which an event was opened.
    of_id: HashMap<u64, usize>,
    /// Name of the event whose samples count; without one, the first event counts.
    wanted: Option<String>,
    /// Number of the wanted event, once it was met.
    found: Option<usize>,
}

impl Events {
    /// An empty list. Events with the name `wanted` will count; the first event if that is `None`.
    pub(super) fn counting(wanted: Option<&str>) -> Self {
        Events {
            wanted: wanted.map(str::to_owned),
            ..Events::default()
        }
    }

    /// Adds an event, with the ids that its samples carry.
    pub(super) fn add(&mut self, event: Attributes, ids: impl Iterator<Item = u64>) {
        let number = self.all.len();
        for id in ids {
            self.of_id.entry(id).or_insert(number);
        }
        if number < NAMED_MAX {
            let mut info = Info::default();
            event.describe(&mut info);
            let own = info.metric.name;
            let times = self.met.entry(own.clone()).or_default();
            *times += 1;
            let name = match *times {
                1 => own,
                times => format!("{own}-{times}"),
            };
            if self.wanted.as_ref() == Some(&name) {
                self.found.get_or_insert(number);
            }
            self.names.push(name);
        }
        self.all.push(event);
    }

    /// The first event; its layout is used to read the times of all records.
    pub(super) fn first(&self) -> Option<&Attributes> {
        self.all.first()
    }

    pub(super) fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// Names that can be chosen, each once, in the order of the file; at most 64.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The event that counts, and its name; an error if the file does not have it.
    pub(super) fn chosen(&self) -> Result<(&Attributes, &str), FormatError> {
        let number = self.chosen_number()?;
        match (self.all.get(number), self.names.get(number)) {
            (Some(event), Some(name)) => Ok((event, name)),
            _ => Err(FormatError::Damaged("it says not what was sampled".into())),
        }
    }

    /// Returns the event of a sample, and whether that event counts.
    pub(super) fn of_sample(&self, body: &[u8]) -> Result<(&Attributes, bool), FormatError> {
        let first = &self.all[0];
        let chosen = self.chosen_number()?;
        // With only one event, all samples belong to it.
        let id = first.id_of(body).filter(|_| self.are_several());
        let number = match id {
            None => Some(0),
            Some(id) => self.of_id.get(&id).copied(),
        };
        // A sample with an unknown id is read with the layout of the first event, and does not
        // count.
        let event = number.map_or(first, |number| &self.all[number]);
        Ok((event, number == Some(chosen)))
    }

    fn chosen_number(&self) -> Result<usize, FormatError> {
        match (&self.wanted, self.found) {
            (None, _) => Ok(0),
            (Some(_), Some(number)) => Ok(number),
            (Some(wanted), None) => Err(FormatError::no_metric(wanted, &self.names)),
        }
    }
}
