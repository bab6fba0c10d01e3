//! The answer about the code of a function: the samples of each line and each instruction.

use super::CodeRow;
use super::before::{Before, Counted};
use super::lines::{line_at, line_of};
use crate::code::{Body, BodyLine, Hit, Library, Wanted};
use crate::desk::{Answer, Answerable, Ask, Key, Lane};
use profile::query::{CodeAddress, CodeGroup, CodePlace, FunctionCode};
use profile::{Cancel, FrameId, Function, FunctionId, Metric, Role, Selection, View};
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

/// Which code is wanted. Two equal values ask for the same code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeWanted {
    pub function: FunctionId,
    /// The samples come from a recording, so that the processes of the recording no longer run.
    pub is_recorded: bool,
    /// Counts how often code was opened. With a new number, files are read again.
    pub visit: u64,
}

/// The samples of one line or instruction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spot {
    /// Samples taken there, in the function itself or in a function that is inlined there.
    pub samples: u64,
    /// Samples taken there in the baseline; 0 if nothing is compared.
    pub before: u64,
    /// The part of `samples` that was taken in inlined functions.
    pub inlined: u64,
    /// `samples`, and the samples of functions while they were called from there.
    pub total: u64,
    /// The functions called from there with their samples, most samples first.
    pub calls: Vec<(FunctionId, u64)>,
    /// The hottest address of this spot that has inlined code: the innermost function that is
    /// inlined there, the place in that function, and the samples of the address.
    pub heaviest: Option<(FunctionId, Option<CodePlace>, u64)>,
}

/// The code of a function as it was found on disk, with the samples of each of its lines and
/// instructions.
#[derive(Debug)]
pub struct CodeAnswer {
    pub key: Key<CodeWanted>,
    pub view: View,
    pub function: Function,
    /// The addresses of the function's code that have samples, as the profile has them.
    pub code: FunctionCode,
    /// What was found on disk for these addresses.
    pub body: Arc<Body>,
    /// Samples of each source line, in any file.
    pub lines: BTreeMap<BodyLine, Spot>,
    /// Samples of each instruction, by the number of its piece and its number in the piece.
    pub instructions: BTreeMap<(usize, usize), Spot>,
    /// Samples by address, for addresses at which the file has no instruction.
    pub addresses: BTreeMap<u64, Spot>,
    /// Samples whose line is not known.
    pub unplaced: Spot,
    /// What the function had in the baseline. `None` if nothing is compared.
    pub before: Option<Before>,
    /// The functions that the spots mention: called and inlined ones.
    pub functions: HashMap<FunctionId, Function>,
}

impl CodeAnswer {
    /// Answers the question. Returns `None` if it was cancelled.
    pub fn new(ask: Ask<CodeWanted>, library: &mut dyn Library, cancel: &Cancel) -> Option<Self> {
        let id = ask.view.function_of(ask.key.what.function);
        let function = ask.view.function(id);
        let selection = ask.select(cancel)?;
        let code = match function.role {
            Role::Function => selection.code(id, cancel).ok()?,
            // Entries of other roles stand for a sum or for the end of a stack, which have no code.
            _ => FunctionCode::default(),
        };
        let body = if code.addresses.is_empty() {
            Arc::default()
        } else {
            library.body(&wanted(&ask, &function, &code))
        };
        let mut answer = CodeAnswer {
            function,
            body,
            lines: BTreeMap::new(),
            instructions: BTreeMap::new(),
            addresses: BTreeMap::new(),
            unplaced: Spot::default(),
            before: None,
            functions: HashMap::new(),
            key: ask.key,
            view: ask.view.clone(),
            code,
        };
        answer.count(&selection, cancel)?;
        if let Some(baseline) = ask.baseline() {
            let was = baseline.select(&ask.view, cancel)?;
            answer.compare(&was, &selection, baseline.is_of_here(), cancel)?;
        }
        answer.name_all();
        Some(answer)
    }

    /// Returns the metric that is counted.
    pub fn metric(&self) -> Option<&Metric> {
        Some(&self.view.info().metric)
    }

    /// Returns the number of samples in the function's code.
    pub fn samples(&self) -> u64 {
        self.code.self_samples + self.code.inlined_samples
    }

    /// Returns the spot of a row, or `None` for rows that are not a line, an instruction, an
    /// address, or the row of unknown lines.
    pub fn spot(&self, row: &CodeRow) -> Option<&Spot> {
        match row {
            CodeRow::Line { place, .. } => self.lines.get(place),
            CodeRow::Instruction { at, .. } => self.instructions.get(at),
            CodeRow::Address { address, .. } => self.addresses.get(address),
            CodeRow::Unplaced { .. } => Some(&self.unplaced),
            _ => None,
        }
    }

    /// Sums the samples of all addresses three times, each time by another key:
    /// 1. by line of source text; addresses without a line go to `unplaced`,
    /// 2. by instruction,
    /// 3. by address, if the file has no instruction at it.
    fn count(&mut self, selection: &Selection, cancel: &Cancel) -> Option<()> {
        let body = &*self.body;
        let frame = self.function.id;
        let all = &self.code.addresses;
        let group = |parts: &HashMap<FrameId, usize>| selection.code_groups(frame, parts, cancel);
        let mut lines = spots(all, |address| place(address, body), group)?;
        self.unplaced = lines.remove(&None).unwrap_or_default();
        let known = |(place, spot): (Option<BodyLine>, Spot)| Some((place?, spot));
        self.lines = lines.into_iter().filter_map(known).collect();
        let code = spots(all, |address| body.find(address.address), group)?;
        let known = |(at, spot): (Option<(usize, usize)>, Spot)| Some((at?, spot));
        self.instructions = code.into_iter().filter_map(known).collect();
        let bare = |address: &CodeAddress| match body.find(address.address) {
            Some(_) => None,
            None => Some(address.address),
        };
        let known = |(address, spot): (Option<u64>, Spot)| Some((address?, spot));
        let code = spots(all, bare, group)?;
        self.addresses = code.into_iter().filter_map(known).collect();
        Some(())
    }

    /// Adds to each spot the samples that it had in the baseline. A spot that only the baseline has
    /// is created here. Returns `None` if it was cancelled.
    fn compare(
        &mut self,
        was: &Selection,
        now: &Selection,
        is_of_here: bool,
        cancel: &Cancel,
    ) -> Option<()> {
        let (before, counted) = Before::new(was, now, is_of_here, &self.function, cancel)?;
        for address in &counted {
            let hits = address.samples;
            let line = address.line(&self.body);
            let spot = match line {
                Some(place) => self.lines.entry(place).or_default(),
                None => &mut self.unplaced,
            };
            spot.before += hits;
            if let Counted {
                address: Some(address),
                ..
            } = address
            {
                let spot = match self.body.find(*address) {
                    Some(at) => self.instructions.entry(at).or_default(),
                    None => self.addresses.entry(*address).or_default(),
                };
                spot.before += hits;
            }
        }
        self.before = Some(before);
        Some(())
    }

    /// Looks up the functions that the spots mention, so that drawing need not access the profile.
    fn name_all(&mut self) {
        let spots = self
            .lines
            .values()
            .chain(self.instructions.values())
            .chain(self.addresses.values())
            .chain([&self.unplaced]);
        let named = spots
            .flat_map(|spot| {
                let calls = spot.calls.iter().map(|(id, _)| *id);
                calls.chain(spot.heaviest.as_ref().map(|(id, ..)| *id))
            })
            .map(|id| (id, self.view.function(id)));
        self.functions = named.collect();
    }
}

/// Returns the request to the library: the addresses that have samples, with what the profile knows
/// about them in case the files on disk are not available.
fn wanted(ask: &Ask<CodeWanted>, function: &Function, code: &FunctionCode) -> Wanted {
    let hit = |address: &CodeAddress| {
        let is_other = address.host != function.id;
        let place = address.place.as_ref();
        Hit {
            address: address.address,
            samples: address.samples(),
            host: is_other.then(|| ask.view.function(address.host).name),
            file: place.and_then(|place| place.file.clone()),
            line: place.map_or(0, |place| place.line),
        }
    };
    Wanted {
        function: Arc::clone(&function.name),
        module: Arc::clone(&function.module),
        module_path: Arc::clone(&function.module_path),
        build_id: Arc::clone(&function.build_id),
        kind: function.kind,
        is_recorded: ask.key.what.is_recorded,
        pids: code.pids.clone(),
        hits: code.addresses.iter().map(hit).collect(),
        visit: ask.key.what.visit,
    }
}

/// Returns the line of an address from the file on disk, or else from the profile.
fn place(address: &CodeAddress, body: &Body) -> Option<BodyLine> {
    line_at(address.address, body).or_else(|| line_of(address.place.as_ref()?, body))
}

/// Sums the samples of addresses by parts of the code; `part` returns the part of an address.
/// `group` counts what was called from each part: it gets the number of the part for each frame,
/// and returns one count for each number, in order. Returns `None` if it was cancelled.
fn spots<P: Copy + Eq + Hash>(
    addresses: &[CodeAddress],
    part: impl Fn(&CodeAddress) -> P,
    group: impl Fn(&HashMap<FrameId, usize>) -> Result<Vec<CodeGroup>, profile::Cancelled>,
) -> Option<HashMap<P, Spot>> {
    let mut numbers: HashMap<P, usize> = HashMap::new();
    let mut frames: HashMap<FrameId, usize> = HashMap::new();
    let mut spots: Vec<Spot> = Vec::new();
    for address in addresses {
        let number = *numbers.entry(part(address)).or_insert_with(|| {
            spots.push(Spot::default());
            spots.len() - 1
        });
        frames.insert(address.frame, number);
        let spot = &mut spots[number];
        spot.samples += address.samples();
        spot.inlined += address.inlined_samples;
        let before = spot.heaviest.as_ref().map_or(0, |(.., samples)| *samples);
        if let Some((id, place)) = address.inlined.first()
            && address.samples() > before
        {
            spot.heaviest = Some((*id, place.clone(), address.samples()));
        }
    }
    for (spot, group) in spots.iter_mut().zip(group(&frames).ok()?) {
        spot.total = group.total_samples;
        spot.calls = group.calls;
    }
    let spot = |(part, number): (P, usize)| (part, std::mem::take(&mut spots[number]));
    Some(numbers.into_iter().map(spot).collect())
}

impl Answerable for Ask<CodeWanted> {
    fn answer(&self, library: &mut dyn Library, cancel: &Cancel) -> Option<Answer> {
        Some(Answer::new(CodeAnswer::new(self.clone(), library, cancel)?))
    }

    fn lane(&self) -> Lane {
        Lane::Code
    }
}
