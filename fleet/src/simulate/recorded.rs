//! Stacks that proftop has recorded, by service: the windows of spools, or other recordings.

use crate::config::Labels;
use crate::spool::{self, Entry};
use crate::window::{self, Frame, Kind, Stack, Unreadable, Window, ids};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A service of which less was recorded says nothing about its stacks.
const SAMPLES_MIN: u64 = 200;
const STACKS_MIN: usize = 20;

/// What was recorded of some services.
#[derive(Debug, Default)]
pub struct Recorded {
    pub frames: Vec<Frame>,
    pub stacks: Vec<Stack>,
    /// The services, those with most samples first.
    pub services: Vec<RecordedService>,
}

/// A service that was recorded.
#[derive(Debug, Clone)]
pub struct RecordedService {
    pub name: String,
    /// Index of the stack, and samples; those with most samples first.
    pub stacks: Vec<(u32, u64)>,
}

/// The code of one version: the ids of all frames and stacks, and the build-ids of frames.
#[derive(Debug)]
pub struct Build {
    pub frames: Vec<Frame>,
    pub stack_ids: Vec<u64>,
}

impl Recorded {
    /// Reads recordings: spools, which are folders, and single files. The error is a sentence.
    pub fn read(places: &[PathBuf]) -> Result<Self, String> {
        let mut merging = Merging::default();
        for place in places {
            for entry in entries(place)? {
                match window::read(&entry, &Labels::default()) {
                    Ok(window) => merging.add(&window),
                    // An agent that still writes may have removed it.
                    Err(Unreadable::Gone) => {}
                    Err(Unreadable::Closed(why) | Unreadable::Damaged(why)) => {
                        return Err(format!("cannot read {}: {why}", entry.path.display()));
                    }
                }
            }
        }
        let recorded = merging.finish();
        if recorded.services.is_empty() {
            return Err(format!(
                "no service was recorded with {SAMPLES_MIN} samples and {STACKS_MIN} stacks"
            ));
        }
        Ok(recorded)
    }

    /// Returns the code of a version: 0 is as it was recorded, and in others the programs' own
    /// files have other build-ids, so that their frames have other ids. Libraries stay as they are.
    pub fn build(&self, version: u8) -> Build {
        let mut frames = self.frames.clone();
        for frame in &mut frames {
            let is_program = frame.kind == Kind::Native && !frame.module.contains(".so");
            if version > 0 && is_program && !frame.build_id.is_empty() {
                Arc::make_mut(&mut frame.build_id)[0] ^= version;
                frame.id = ids::frame(frame);
            }
        }
        let id = |stack: &Stack| ids::stack(stack.frames.iter().map(|it| frames[*it as usize].id));
        let stack_ids = self.stacks.iter().map(id).collect();
        Build { frames, stack_ids }
    }

    /// Finds the function of a service whose share of own time is nearest to `share`, if its stacks
    /// are drawn with these weights. Returns its name, and the indices of its stacks in the list of
    /// the service.
    pub fn function_with_share(
        &self,
        service: usize,
        weights: &[f64],
        share: f64,
    ) -> (String, Vec<usize>) {
        let mut own: HashMap<&str, (f64, Vec<usize>)> = HashMap::new();
        for (at, (stack, _)) in self.services[service].stacks.iter().enumerate() {
            let leaf = self.stacks[*stack as usize].frames.first();
            let functions = leaf.map(|it| &self.frames[*it as usize].functions);
            if let Some(function) = functions.and_then(|it| it.first()) {
                let of_function = own.entry(&function.name).or_default();
                of_function.0 += weights[at];
                of_function.1.push(at);
            }
        }
        let all: f64 = weights.iter().sum();
        let distance = |weight: f64| (weight / all - share).abs();
        let nearest = own.into_iter().min_by(|a, b| {
            let (x, y) = (distance(a.1.0), distance(b.1.0));
            x.total_cmp(&y).then(a.0.cmp(b.0))
        });
        nearest.map_or_else(Default::default, |(name, (_, stacks))| {
            (name.into(), stacks)
        })
    }
}

/// Returns the recordings of a place.
fn entries(place: &Path) -> Result<Vec<Entry>, String> {
    if place.is_dir() {
        return spool::list(place)
            .map_err(|error| format!("cannot look into {}: {error}", place.display()));
    }
    Ok(vec![Entry {
        id: String::new(),
        number: 0,
        path: place.into(),
    }])
}

/// Puts windows together.
#[derive(Default)]
struct Merging {
    recorded: Recorded,
    frame_of: HashMap<u64, u32>,
    stack_of: HashMap<u64, u32>,
    /// By service, samples of each stack.
    samples: HashMap<String, HashMap<u32, u64>>,
}

impl Merging {
    fn add(&mut self, window: &Window) {
        for service in &window.services {
            for (stack, value) in &service.samples {
                let stack = self.stack(window, &window.stacks[*stack as usize]);
                let of_service = self.samples.entry(service.name.clone()).or_default();
                *of_service.entry(stack).or_default() += value;
            }
        }
    }

    fn stack(&mut self, window: &Window, stack: &Stack) -> u32 {
        if let Some(known) = self.stack_of.get(&stack.id) {
            return *known;
        }
        let mut frames = Vec::with_capacity(stack.frames.len());
        for frame in &stack.frames {
            let frame = &window.frames[*frame as usize];
            let known = &mut self.recorded.frames;
            let number = *self.frame_of.entry(frame.id).or_insert_with(|| {
                known.push(frame.clone());
                known.len() as u32 - 1
            });
            frames.push(number);
        }
        let number = self.recorded.stacks.len() as u32;
        self.recorded.stacks.push(Stack {
            id: stack.id,
            frames,
        });
        self.stack_of.insert(stack.id, number);
        number
    }

    fn finish(self) -> Recorded {
        let mut recorded = self.recorded;
        for (name, samples) in self.samples {
            let all: u64 = samples.values().sum();
            if all < SAMPLES_MIN || samples.len() < STACKS_MIN {
                continue;
            }
            let mut stacks: Vec<(u32, u64)> = samples.into_iter().collect();
            stacks.sort_unstable_by_key(|it| (std::cmp::Reverse(it.1), it.0));
            recorded.services.push(RecordedService { name, stacks });
        }
        let all = |it: &RecordedService| it.stacks.iter().map(|it| it.1).sum::<u64>();
        let services = &mut recorded.services;
        services.sort_by(|a, b| (all(b), &a.name).cmp(&(all(a), &b.name)));
        recorded
    }
}
