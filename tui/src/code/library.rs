//! The *library* finds the code of functions, and keeps its last results. It runs on a thread that
//! may wait for disks.

use super::files::disassemble;
use super::pieces::NEW_DAMAGE;
use super::{Body, Hit, SourceMap, Wanted, text};
use crate::advice::{self, Advice, Adviser, Means};
use std::collections::HashMap;
use std::sync::Arc;
use symbolize::{Symbolizer, TableCache, table_cache};

/// Finds the code of functions. Tests have their own implementation.
pub trait Library {
    /// Returns the code of a function. For each missing part it has the reason.
    fn body(&mut self, wanted: &Wanted) -> Arc<Body>;

    /// Returns advice on how to get names for each of these. The advice of a library that reads no
    /// files is empty.
    fn advise(&mut self, codes: &[advice::Code]) -> Vec<Advice> {
        vec![Advice::default(); codes.len()]
    }

    /// Frees memory. It is called after a while without requests.
    fn rest(&mut self) {}
}

/// Lower limit for the debug information of one file, in bytes. It is higher than the limit for
/// naming samples, because code is shown only on request.
const DEBUG_BYTES: u64 = 256 << 20;
/// Upper limit, if there is enough free memory. The debug information of kernels, and of programs
/// with many generics, is between the two limits. The memory is freed after a while.
const DEBUG_BYTES_MAX: u64 = 2 << 30;
/// Debug information may take at most one part in this many of the free memory.
const OF_FREE: u64 = 4;

/// How many results are kept.
const KEPT_MAX: usize = 8;

/// Reads source text and instructions from files.
#[derive(Debug, Default)]
pub struct FileLibrary {
    /// Where source text is now that was elsewhere when it was compiled.
    map: SourceMap,
    /// None until the first request for code, and again after [`Library::rest`].
    symbolizer: Option<Symbolizer>,
    /// Limit for the debug information of one file, in bytes.
    debug_bytes_max: u64,
    /// The last results, the newest at the end; at most [`KEPT_MAX`].
    kept: Vec<(Key, Arc<Body>)>,
    /// None until the first request for advice.
    adviser: Option<Adviser>,
}

/// What identifies the code of a function.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    function: Arc<str>,
    module_path: Arc<str>,
    build_id: Arc<[u8]>,
    visit: u64,
}

impl FileLibrary {
    /// Returns a library that looks for source text as `map` says.
    pub fn new(map: SourceMap) -> Self {
        FileLibrary {
            map,
            ..FileLibrary::default()
        }
    }
}

impl Library for FileLibrary {
    fn body(&mut self, wanted: &Wanted) -> Arc<Body> {
        let key = Key {
            function: Arc::clone(&wanted.function),
            module_path: Arc::clone(&wanted.module_path),
            build_id: Arc::clone(&wanted.build_id),
            visit: wanted.visit,
        };
        // There may be samples by now at addresses that the kept result does not cover.
        let covers = |body: &Body| wanted.hits.iter().all(|hit| body.covers(hit.address));
        if let Some((_, body)) = self
            .kept
            .iter()
            .find(|(kept, body)| *kept == key && covers(body))
        {
            return Arc::clone(body);
        }
        let symbolizer = self.symbolizer.get_or_insert_with(|| {
            self.debug_bytes_max = debug_bytes_max(&free_memory());
            symbolizer(self.debug_bytes_max)
        });
        // A panic costs the code of this function only.
        let found = faults::catch("reading code", || {
            find(wanted, symbolizer, self.debug_bytes_max, &self.map)
        });
        let body = Arc::new(found.unwrap_or_else(|_| {
            // After a panic the symbolizer may be in any state.
            self.symbolizer = None;
            Body {
                no_assembly: Some(NEW_DAMAGE.into()),
                unknown: wanted.hits.iter().map(|hit| hit.address).collect(),
                ..Body::default()
            }
        }));
        self.kept.retain(|(kept, _)| *kept != key);
        if self.kept.len() == KEPT_MAX {
            self.kept.remove(0);
        }
        self.kept.push((key, Arc::clone(&body)));
        body
    }

    fn advise(&mut self, codes: &[advice::Code]) -> Vec<Advice> {
        let files = probe::files::of_targets;
        let adviser = || Adviser::new(files().clone(), Means::current());
        self.adviser.get_or_insert_with(adviser).advise(codes)
    }

    fn rest(&mut self) {
        if self.symbolizer.take().is_some() {
            probe::memory::give_back();
        }
    }
}

/// Returns a symbolizer that uses the tables which earlier runs have cached.
fn symbolizer(debug_bytes_max: u64) -> Symbolizer {
    let base = symbolize::cache_directory::default_base();
    let tables = base.and_then(|base| TableCache::open(&base, table_cache::BYTES_MAX).ok());
    let symbolizer = Symbolizer::new()
        .with_files(probe::files::of_targets())
        .with_debug_bytes_max(debug_bytes_max);
    match tables {
        Some(tables) => symbolizer.with_tables(tables),
        None => symbolizer,
    }
}

/// Returns the text of `/proc/meminfo`. Empty if it cannot be read, which counts as no free memory.
fn free_memory() -> String {
    std::fs::read_to_string("/proc/meminfo").unwrap_or_default()
}

/// Returns the limit for the debug information of one file, from the text of `/proc/meminfo`.
fn debug_bytes_max(meminfo: &str) -> u64 {
    let mut lines = meminfo.lines();
    let free = lines
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let bytes = free.map_or(0, |kb| kb.saturating_mul(1024) / OF_FREE);
    bytes.clamp(DEBUG_BYTES, DEBUG_BYTES_MAX)
}

/// Finds the instructions, and then the source text, because the instructions say which files the
/// function is from. Each may be found without the other.
fn find(wanted: &Wanted, symbolizer: &Symbolizer, debug_bytes_max: u64, map: &SourceMap) -> Body {
    let mut body = Body::default();
    let mut built = None;
    let mut no_lines = match disassemble(wanted, symbolizer, debug_bytes_max, &mut body) {
        Ok(found) => {
            built = found.built;
            found.no_lines
        }
        Err(why) => {
            body.no_assembly = Some(why.clone());
            Some(why)
        }
    };
    let covered = |body: &Body, hit: &&Hit| !body.covers(hit.address);
    let unknown: Vec<u64> = wanted
        .hits
        .iter()
        .filter(|hit| covered(&body, hit))
        .map(|hit| hit.address)
        .collect();
    body.unknown.extend(unknown);
    // The profile may know the source files of code that is no longer on disk.
    for hit in &wanted.hits {
        if let Some(file) = &hit.file {
            body.file_number(file);
        }
    }
    body.file = main_file(&body, &wanted.hits);
    let Some(file) = body.file.clone() else {
        let why = no_lines.take();
        body.no_text = why.or_else(|| Some("it is not known which file it is from".into()));
        return body;
    };
    // The pids of a recording may belong to other processes by now, or to another machine.
    let pids = if wanted.is_recorded {
        &[][..]
    } else {
        &wanted.pids
    };
    match text::find(&file, map, pids) {
        Ok(text) => {
            if built
                .zip(text.modified)
                .is_some_and(|(built, text)| text > built)
            {
                let name = file.rsplit('/').next().unwrap_or(&file);
                let note = format!("{name} is newer than the program: its lines may have moved");
                body.notes.push(note);
            }
            body.text = Some(text);
        }
        Err(why) => body.no_text = Some(why),
    }
    body
}

/// Returns the file that most instructions come from. Without instructions, the one that most
/// samples come from.
fn main_file(body: &Body, hits: &[Hit]) -> Option<Arc<str>> {
    let mut counts: HashMap<u32, u64> = HashMap::new();
    for instruction in body.pieces.iter().flat_map(|piece| &piece.instructions) {
        if let Some(place) = instruction.place {
            *counts.entry(place.file).or_default() += 1;
        }
    }
    if counts.is_empty() {
        for hit in hits.iter().filter(|hit| hit.line > 0) {
            let file = hit.file.as_ref();
            let number = file.and_then(|file| body.files.iter().position(|f| f == file));
            if let Some(number) = number {
                *counts.entry(number as u32).or_default() += hit.samples + 1;
            }
        }
    }
    let (file, _) = counts
        .into_iter()
        .max_by_key(|(file, n)| (*n, std::cmp::Reverse(*file)))?;
    body.files
        .get(file as usize)
        .cloned()
        .filter(|file| !file.is_empty())
}

#[cfg(test)]
mod tests;
