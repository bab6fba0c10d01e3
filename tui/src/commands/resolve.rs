//! `resolve`: finds names for a recording that was made without them, on this machine or another.
//! It searches the files of this machine, and directories, by build-id.

mod kernel;
mod names;
mod places;

use super::apart::{self, Made};
use super::input::{self, Input};
use crate::cli::ResolveConfig;
use crate::failure::{Exit, Failure};
use crate::stderr;
use crate::words::units::counted;
pub use names::name_frames;
pub use places::Places;
use profile::formats::{self, FormatError, pft};
use profile::{Frame, NameState, Store};
use std::io::{self, Cursor, Read};

/// Runs `resolve`: looks up names for the frames of a recording, and writes the recording with
/// them.
pub fn run(config: &ResolveConfig) -> Result<Exit, Failure> {
    let input = Input::open(&config.file)?;
    let places = Places::with_directories(&config.directories)?;
    let kept = apart::descriptors([&input], places.descriptors());
    let made = apart::make(&kept, move || make(config, input, places))?;
    // Only a .pft may be written in its own place, which `make` has checked.
    match &config.output {
        Some(path) if path.as_os_str() == "-" => made.write(None, config.overwrite),
        Some(path) => made.write(Some(path), config.overwrite),
        None => made.write(Some(&config.file), true),
    }
}

/// Reads the recording and makes the one with names.
fn make(config: &ResolveConfig, input: Input, mut places: Places) -> Result<Made, Failure> {
    let name = input.name().to_owned();
    let mut recording = read_from(input).map_err(|error| input::unread(&name, &error))?;
    for note in &recording.notes {
        stderr::say(format_args!("{name}: {note}"));
    }
    check_place(config, recording.is_pft)?;
    places.read_build_ids();
    let found = name_frames(&mut recording.store, &places);
    // Frames for which no name was found get back the recorded reason for having none.
    for (frame, state) in recording.reasons {
        if let Some(id) = recording.store.find_frame(&frame) {
            recording.store.set_name(id, state);
        }
    }
    let mut bytes = Vec::new();
    pft::write(&recording.store.view(), &mut bytes)
        .map_err(|error| Failure::failed(format!("cannot write: {error}")))?;
    let exit = match recording.store.view().samples() {
        0 => Exit::NoSamples,
        _ => Exit::Done,
    };
    Ok(Made {
        bytes,
        exit,
        told: found.told(),
    })
}

/// The recording that is resolved.
struct Recording {
    store: Store,
    notes: Vec<String>,
    /// The recorded reasons of frames for having no name.
    reasons: Vec<(Frame, NameState)>,
    is_pft: bool,
}

/// Reads a recording of any format. Its first bytes are read to know whether it is a .pft, and then
/// chained before the rest, because a pipe cannot be read twice.
fn read_from(mut input: Input) -> Result<Recording, FormatError> {
    let mut start = Vec::new();
    (&mut input)
        .take(pft::MAGIC.len() as u64)
        .read_to_end(&mut start)?;
    let is_pft = start == pft::MAGIC;
    let whole = Cursor::new(start).chain(input);
    if !is_pft {
        let opened = formats::read(whole, input::limits())?;
        return Ok(Recording {
            store: opened.store,
            notes: opened.notes,
            reasons: Vec::new(),
            is_pft,
        });
    }
    let mut store = Store::new(input::limits());
    let mut reader = pft::Reader::new(io::BufReader::new(whole))?;
    // `run` restores them for the frames for which no name is found.
    reader.keep_reasons();
    while reader.read_block(&mut store)? {}
    Ok(Recording {
        notes: reader.notes(),
        reasons: reader.reasons(),
        store,
        is_pft,
    })
}

/// Returns an error if the result has no place. Only a .pft may be replaced by it: in any other format
/// the result would not have the format that its name says.
fn check_place(config: &ResolveConfig, is_pft: bool) -> Result<(), Failure> {
    let has_place = config.output.is_some() || is_pft && !input::is_stdin(&config.file);
    has_place.then_some(()).ok_or_else(|| {
        Failure::usage("-o is needed: only a .pft that is a file can be written in its own place")
    })
}

/// The result of looking for names.
#[derive(Debug, Default)]
pub struct Found {
    pub frames: u64,
    pub named: u64,
    /// Files that are not here, or only in another build, and how many frames each leaves unnamed.
    pub missing: Vec<(String, u64)>,
    /// Number of files that were opened by their paths alone, because the recording has no build-id
    /// of them.
    pub unverified: u64,
}

impl Found {
    /// Returns the sentences that are printed about the result.
    pub fn told(&self) -> Vec<String> {
        let (named, all) = (self.named, counted(self.frames, "frame without a name"));
        let all = all.replace("frame without a names", "frames without a name");
        let mut told = vec![format!("found names for {named} of {all}")];
        for (path, frames) in self.missing.iter().take(5) {
            let frames = counted(*frames, "frame");
            told.push(format!("{path}: not here as it was recorded, {frames}"));
        }
        if self.missing.len() > 5 {
            told.push(format!(
                "{} more files are not here",
                self.missing.len() - 5
            ));
        }
        told.extend(self.doubt());
        told.extend(self.next_step());
        told
    }

    /// Returns what the user can do next if no name was found.
    fn next_step(&self) -> Option<String> {
        (self.named == 0 && self.frames > 0).then(|| {
            "next: type this on the machine it was taken on, or give `--debug-dir` with a folder \
             that has these files, or debug files of them"
                .into()
        })
    }

    /// Returns a sentence if names may be wrong, because files were not compared by build-id.
    pub fn doubt(&self) -> Option<String> {
        let files = counted(self.unverified, "file");
        (self.unverified > 0).then(|| {
            format!("the recording has no build-id of {files}: names come from what is here under their paths")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_was_found_the_next_step_is_told() {
        let mut found = Found {
            frames: 12,
            ..Found::default()
        };
        let last = found.told().pop().unwrap_or_default();
        assert!(last.contains("--debug-dir"), "{last}");
        found.named = 1;
        assert_eq!(found.told().len(), 1);
    }
}
