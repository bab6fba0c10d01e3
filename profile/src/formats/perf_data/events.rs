//! The events of a file: what they are called, whose each sample is, and which of them
//! counts.

use super::attributes::Attributes;
use crate::Info;
use crate::formats::FormatError;
use std::collections::HashMap;

/// Events that can be chosen; what else there is counts for nothing.
const NAMED_MAX: usize = 64;

/// Made by the reader from the attributes in the header or, in a pipe, from records
/// before the samples.
#[derive(Debug, Default)]
pub(super) struct Events {
    all: Vec<Attributes>,
    /// Of the first of them; what is there again has its number behind it.
    names: Vec<String>,
    /// How often each event was met, by its own name.
    met: HashMap<String, usize>,
    /// By id of a sample: the number of its event. The kernel gives ids, one for each
    /// CPU or thread that an event was opened for.
    of_id: HashMap<u64, usize>,
    /// Whose samples count; without, the first one's.
    wanted: Option<String>,
    /// The number of the wanted one, once it was met.
    found: Option<usize>,
}

impl Events {
    /// No events yet; those of the name `wanted` will count, or the first if it is
    /// `None`.
    pub(super) fn counting(wanted: Option<&str>) -> Self {
        Events {
            wanted: wanted.map(str::to_owned),
            ..Events::default()
        }
    }

    /// One more, with the numbers that its samples have.
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

    /// The one by whose layout the times of all records are read.
    pub(super) fn first(&self) -> Option<&Attributes> {
        self.all.first()
    }

    pub(super) fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// Names that can be wanted, each once, in the order of the file; at most 64.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The event that counts, and its name.
    pub(super) fn chosen(&self) -> Result<(&Attributes, &str), FormatError> {
        let number = self.chosen_number()?;
        match (self.all.get(number), self.names.get(number)) {
            (Some(event), Some(name)) => Ok((event, name)),
            _ => Err(FormatError::Damaged("it says not what was sampled".into())),
        }
    }

    /// The event that a sample is of, and whether that one counts.
    pub(super) fn of_sample(&self, body: &[u8]) -> Result<(&Attributes, bool), FormatError> {
        let first = &self.all[0];
        let chosen = self.chosen_number()?;
        // Of one event all samples are.
        let id = first.id_of(body).filter(|_| self.are_several());
        let number = match id {
            None => Some(0),
            Some(id) => self.of_id.get(&id).copied(),
        };
        // An id that is not known is laid out as those of the first, and does not
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
