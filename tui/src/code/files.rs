//! Finds the *files* that contain code, and says what is missing if a file cannot be used.

use super::lines::LineSource;
use super::pieces::add_pieces;
use super::{Body, Wanted, jit, kernel};
use probe::proc_maps;
use probe::proc_maps::MapsLine;
use profile::FrameKind;
use std::path::Path;
use std::time::SystemTime;
use symbolize::source::Source;
use symbolize::{ElfSymbols, FileSource, Reason, Symbolizer, Vdso, sanitize};

/// What was found in a file, besides the instructions.
pub struct Found {
    /// When the file was written.
    pub built: Option<SystemTime>,
    /// Why the lines of instructions are not known; None if they are known.
    pub no_lines: Option<String>,
}

impl Found {
    /// Returns the result for code that is in no file.
    fn without_lines(why: &str) -> Self {
        Found {
            built: None,
            no_lines: Some(why.to_owned()),
        }
    }
}

/// Adds the instructions of a function to its body. The error says why there are none.
pub fn disassemble(
    wanted: &Wanted,
    symbolizer: &Symbolizer,
    debug_bytes_max: u64,
    body: &mut Body,
) -> Result<Found, String> {
    let no_file = |why: &str| Err(why.to_owned());
    match (&*wanted.module, wanted.kind) {
        (_, FrameKind::Kernel) => {
            kernel::disassemble(wanted, body)?;
            Ok(Found::without_lines(
                "the lines of the kernel's code are not known",
            ))
        }
        (_, FrameKind::Jit) => {
            jit::disassemble(wanted, &probe::files::of_targets(), body)?;
            Ok(Found::without_lines(
                "the lines of code made at run time are not known",
            ))
        }
        (_, FrameKind::Python) => no_file("Python runs this function: it has no instructions"),
        ("[vdso]", _) if !wanted.is_recorded => {
            let vdso = Vdso::load().map_err(|error| error.to_string())?;
            add_pieces(
                wanted,
                vdso.symbols(),
                &LineSource::None(String::new()),
                body,
            )?;
            Ok(Found::without_lines(
                "the kernel does not tell the lines of its vDSO",
            ))
        }
        _ if !wanted.module_path.starts_with('/') => {
            no_file("it is not known which file this code is from")
        }
        _ => disassemble_file(wanted, symbolizer, debug_bytes_max, body),
    }
}

/// Looks for the file, takes the first that can be opened and is the sampled build: (1) the file
/// that one of the sampled processes has mapped, (2) the file at its path. For a recording only the
/// second is tried. The error says why the first try failed.
fn disassemble_file(
    wanted: &Wanted,
    symbolizer: &Symbolizer,
    debug_bytes_max: u64,
    body: &mut Body,
) -> Result<Found, String> {
    let path = Path::new(&*wanted.module_path);
    let build_id = (!wanted.build_id.is_empty()).then_some(&*wanted.build_id);
    let module = &wanted.module;
    if build_id.is_none() && wanted.is_recorded {
        return Err(format!(
            "{module} has no build-id: whether {} is what was recorded cannot be known",
            wanted.module_path
        ));
    }
    let pids = wanted.pids.iter().filter(|_| !wanted.is_recorded);
    let mut failed = None;
    for pid in pids.map(|pid| Some(*pid)).chain([None]) {
        // A process runs the file that it has mapped, even if its path now leads to another file.
        let mapping = pid.and_then(|pid| mapping(pid, &wanted.module_path));
        let source = FileSource {
            pid,
            build_id,
            range: mapping.as_ref().map(|line| (line.start, line.end)),
            device: mapping.as_ref().map_or((0, 0), |line| line.device),
            inode: mapping.as_ref().map_or(0, |line| line.inode),
            ..FileSource::new(path)
        };
        let symbols = match symbolizer.open(source) {
            Ok(symbols) => symbols,
            Err(reason) => {
                failed.get_or_insert(reason);
                continue;
            }
        };
        if build_id.is_none() && mapping.is_none() {
            let note = format!("{module} has no build-id: it may be another one by now");
            body.notes.push(note);
        }
        let lines = LineSource::new(symbolizer, &symbols, source, debug_bytes_max);
        let added = add_pieces(wanted, &symbols, &lines, body);
        let no_lines = match lines {
            LineSource::None(why) => Some(format!("{module}: {why}")),
            LineSource::Debug(_) | LineSource::Go => None,
        };
        body.no_assembly = added.err();
        let built = written_at(&symbols);
        return Ok(Found { built, no_lines });
    }
    Err(why_not(failed.unwrap_or(Reason::FileGone), wanted))
}

/// Returns the mapping of the file's code in a process.
fn mapping(pid: u32, path: &str) -> Option<MapsLine> {
    // The file may have been unlinked before it was sampled, or since.
    fn unmarked(path: &str) -> &str {
        path.strip_suffix(" (deleted)").unwrap_or(path)
    }
    let mappings = proc_maps::read(pid, &probe::files::of_targets()).ok()?;
    mappings.into_iter().find(|line| {
        let shown = sanitize(&line.path);
        line.file().is_some() && unmarked(&shown) == unmarked(path)
    })
}

/// Says why the file cannot be used.
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

/// Returns when the file was written, to compare it with its source. None for code that is in
/// memory only.
fn written_at(symbols: &ElfSymbols) -> Option<SystemTime> {
    match symbols.object().source() {
        Source::File { file, .. } => file.metadata().ok()?.modified().ok(),
        Source::Memory(_) => None,
    }
}
