//! The *library* finds the code of functions, and keeps what it found last. It
//! belongs to a thread that may wait for disks.

use super::assembly::{self, BYTES_MAX};
use super::lines::{Frame, LineSource};
use super::{Body, Hit, Piece, Place, SourceMap, Wanted, text};
use crate::engine::shown;
use profile::FrameKind;
use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use symbolize::source::Source;
use symbolize::{
    ElfSymbols, FileOffset, FileSource, LinkAddr, Reason, Symbolizer, TableCache, Vdso, table_cache,
};

/// Finds code; in tests, makes it up.
pub trait Library {
    fn body(&mut self, wanted: &Wanted) -> Arc<Body>;

    /// Nobody has asked for a while.
    fn rest(&mut self) {}
}

/// Debug information that is read of one file, if somebody looks at its code:
/// more than what is read for names of lines all the time.
const DEBUG_BYTES_MAX: u64 = 256 << 20;

/// Functions whose code is kept.
const KEPT_MAX: usize = 8;

/// `EM_X86_64`.
const X86_64: u16 = 62;

/// From files.
#[derive(Debug, Default)]
pub struct FileLibrary {
    map: SourceMap,
    symbolizer: Option<Symbolizer>,
    kept: Vec<(Key, Arc<Body>)>,
}

/// What tells one function's code from another's.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    function: Arc<str>,
    module_path: Arc<str>,
    build_id: Arc<[u8]>,
    visit: u64,
}

impl FileLibrary {
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
        let covers = |body: &Body| wanted.hits.iter().all(|hit| body.covers(hit.address));
        if let Some((_, body)) = self
            .kept
            .iter()
            .find(|(kept, body)| *kept == key && covers(body))
        {
            return Arc::clone(body);
        }
        let symbolizer = self.symbolizer.get_or_insert_with(symbolizer);
        // A parser's mistake must cost one function's code, not all that follow.
        let found = catch_unwind(AssertUnwindSafe(|| find(wanted, symbolizer, &self.map)));
        let body = Arc::new(found.unwrap_or_else(|_| {
            self.symbolizer = None;
            Body {
                no_assembly: Some("the file is damaged in a way that is new to us".into()),
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

    fn rest(&mut self) {
        if self.symbolizer.take().is_some() {
            probe::memory::give_back();
        }
    }
}

/// With the range tables of earlier runs, if there are some.
fn symbolizer() -> Symbolizer {
    let base = symbolize::cache_directory::default_base();
    let tables = base.and_then(|base| TableCache::open(&base, table_cache::BYTES_MAX).ok());
    let symbolizer = Symbolizer::new().with_debug_bytes_max(DEBUG_BYTES_MAX);
    match tables {
        Some(tables) => symbolizer.with_tables(tables),
        None => symbolizer,
    }
}

fn find(wanted: &Wanted, symbolizer: &Symbolizer, map: &SourceMap) -> Body {
    let mut body = Body::default();
    let mut built = None;
    let mut no_lines = match disassemble(wanted, symbolizer, &mut body) {
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
    let unknown: Vec<u64> = { wanted.hits.iter() }
        .filter(|hit| covered(&body, hit))
        .map(|hit| hit.address)
        .collect();
    body.unknown.extend(unknown);
    // The profile may know lines of what is no longer here.
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

/// What of a file is no part of the body.
struct Found {
    /// When the file was written.
    built: Option<SystemTime>,
    no_lines: Option<String>,
}

fn disassemble(wanted: &Wanted, symbolizer: &Symbolizer, body: &mut Body) -> Result<Found, String> {
    let no_file = |why: &str| Err(why.to_owned());
    match (&*wanted.module, wanted.kind) {
        (_, FrameKind::Kernel) => no_file("the kernel's code is in no file that could be read"),
        (_, FrameKind::Jit) => no_file("this code was made at run time: it is in no file"),
        ("[vdso]", _) if !wanted.is_recorded => {
            let vdso = Vdso::load().map_err(|error| error.to_string())?;
            add_pieces(
                wanted,
                vdso.symbols(),
                &LineSource::None(String::new()),
                body,
            )?;
            let no_lines = Some("the kernel does not tell the lines of its vDSO".into());
            Ok(Found {
                built: None,
                no_lines,
            })
        }
        _ if !wanted.module_path.starts_with('/') => {
            no_file("it is not known which file this code is from")
        }
        _ => disassemble_file(wanted, symbolizer, body),
    }
}

fn disassemble_file(
    wanted: &Wanted,
    symbolizer: &Symbolizer,
    body: &mut Body,
) -> Result<Found, String> {
    let path = Path::new(&*wanted.module_path);
    let build_id = (!wanted.build_id.is_empty()).then_some(&*wanted.build_id);
    let module = &wanted.module;
    if build_id.is_none() {
        if wanted.is_recorded {
            return Err(format!(
                "{module} has no build-id: whether {} is what was recorded cannot be known",
                wanted.module_path
            ));
        }
        let note = format!("{module} has no build-id: it may have been replaced since it started");
        body.notes.push(note);
    }
    let source = |pid| FileSource {
        pid,
        build_id,
        ..FileSource::new(path)
    };
    let pids = wanted.pids.iter().filter(|_| !wanted.is_recorded);
    let places = pids.map(|pid| Some(*pid)).chain([None]);
    let mut failed = None;
    for source in places.map(source) {
        let symbols = match symbolizer.open(source) {
            Ok(symbols) => symbols,
            Err(reason) => {
                failed.get_or_insert(reason);
                continue;
            }
        };
        let lines = LineSource::new(symbolizer, &symbols, source);
        let added = add_pieces(wanted, &symbols, &lines, body);
        let no_lines = match lines {
            LineSource::None(why) => Some(format!("{}: {why}", wanted.module)),
            LineSource::Debug(_) | LineSource::Go => None,
        };
        body.no_assembly = added.err();
        let built = written_at(&symbols);
        return Ok(Found { built, no_lines });
    }
    Err(why_not(failed.unwrap_or(Reason::FileGone), wanted))
}

fn why_not(reason: Reason, wanted: &Wanted) -> String {
    let path = &wanted.module_path;
    match reason {
        Reason::FileGone => format!("{path} is not there"),
        Reason::ChangedOnDisk if wanted.is_recorded => {
            format!("{path} is another build than the one that was recorded")
        }
        Reason::ChangedOnDisk => format!("{path} is no longer the file that runs"),
        Reason::NoPermission => format!("no right to read {path}"),
        _ => format!("{path}: {}", reason.explain().trim_end_matches('.')),
    }
}

fn written_at(symbols: &ElfSymbols) -> Option<SystemTime> {
    match symbols.object().source() {
        Source::File { file, .. } => file.metadata().ok()?.modified().ok(),
        Source::Memory(_) => None,
    }
}

/// Adds the functions that were hit to the body, the hottest first, as far as
/// the bound allows.
fn add_pieces(
    wanted: &Wanted,
    symbols: &ElfSymbols,
    lines: &LineSource,
    body: &mut Body,
) -> Result<(), String> {
    let machine = symbols.object().machine();
    if machine != X86_64 {
        return Err(format!(
            "code of this machine (ELF number {machine}) is not written out: only x86-64 is"
        ));
    }
    let mut hits: Vec<&Hit> = wanted.hits.iter().collect();
    // Its own code first, so that no other's covers it.
    hits.sort_by_key(|hit| (hit.host.is_some(), std::cmp::Reverse(hit.samples)));
    let mut left = BYTES_MAX;
    for hit in hits {
        if body.covers(hit.address) {
            continue;
        }
        let piece = piece(wanted, hit, symbols, lines, left, body);
        match piece.filter(|piece| piece.range.contains(&hit.address)) {
            Some(piece) => {
                left -= piece.range.end - piece.range.start;
                body.pieces.push(piece);
            }
            None => body.unknown.push(hit.address),
        }
    }
    body.pieces.sort_by_key(|piece| piece.range.start);
    match body.pieces.is_empty() && !body.unknown.is_empty() {
        true => Err(format!(
            "{} does not tell where the function is",
            wanted.module
        )),
        false => Ok(()),
    }
}

fn piece(
    wanted: &Wanted,
    hit: &Hit,
    symbols: &ElfSymbols,
    lines: &LineSource,
    bytes_max: u64,
    body: &mut Body,
) -> Option<Piece> {
    let segments = symbols.segments();
    let addr = segments.to_link(FileOffset(hit.address))?;
    let Range { start, end } = symbols.extent(addr)?;
    let FileOffset(offset) = segments.to_file(start)?;
    let len = (end.0 - start.0).min(bytes_max);
    let bytes = symbols.read_code(start, len).ok()?;
    let mut instructions = assembly::decode(&bytes, offset, start.0);
    instructions.retain_mut(|instruction| {
        let mut chain = lines.find(symbols, FileOffset(instruction.offset));
        let at = match hit.host {
            Some(_) => chain.iter().position(|f| f.function == *wanted.function),
            None => chain.len().checked_sub(1),
        };
        let Some(at) = at else {
            // Of another function's code only what was inlined there is its own.
            return hit.host.is_none();
        };
        let own = &chain[at];
        instruction.place = (own.line > 0).then(|| Place {
            file: body.file_number(&own.file),
            line: own.line,
        });
        chain.truncate(at);
        instruction.inlined = (!chain.is_empty()).then(|| inlined(&chain).into());
        true
    });
    for instruction in &mut instructions {
        let target = instruction.branch().map(LinkAddr);
        instruction.target = target.and_then(|target| {
            let is_inside = (start.0..end.0).contains(&target.0);
            match is_inside && !instruction.is_call() {
                true => Some(format!("+{:#x}", target.0 - start.0).into()),
                false => name_at(wanted, symbols, target),
            }
        });
    }
    Some(Piece {
        host: hit.host.clone(),
        range: offset..offset + len,
        start: offset,
        instructions,
        cut: end.0 - start.0 - len,
    })
}

/// `add (math.h:12), in sum (math.h:30)`
fn inlined(chain: &[Frame]) -> String {
    let frame = |frame: &Frame| {
        let file = frame.file.rsplit('/').next().unwrap_or(&frame.file);
        match frame.line {
            0 => frame.function.clone(),
            line => format!("{} ({file}:{line})", frame.function),
        }
    };
    chain.iter().map(frame).collect::<Vec<_>>().join(", in ")
}

/// As the profile calls it.
fn name_at(wanted: &Wanted, symbols: &ElfSymbols, addr: LinkAddr) -> Option<Arc<str>> {
    let Ok(symbol) = symbols.find_link(addr) else {
        let FileOffset(offset) = symbols.segments().to_file(addr)?;
        return Some(format!("{}+{offset:#x}", wanted.module).into());
    };
    let name = shown(symbol.name);
    Some(match addr.0 - symbol.start.0 {
        0 => name.into(),
        within => format!("{name}+{within:#x}").into(),
    })
}

/// The file that most instructions are from, or else most samples.
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
    let (file, _) =
        { counts.into_iter() }.max_by_key(|(file, n)| (*n, std::cmp::Reverse(*file)))?;
    body.files
        .get(file as usize)
        .cloned()
        .filter(|file| !file.is_empty())
}
