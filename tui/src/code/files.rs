//! Finds the *files* that contain code, and says what is missing if a file cannot be used.

use super::pieces::{NoCode, add_pieces};
use super::{Body, Wanted, jit, kernel};
use probe::proc_maps;
use probe::proc_maps::MapsLine;
use profile::FrameKind;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use symbolize::code::{CodeLines, NoLines};
use symbolize::parser::FileCode;
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
            // The kernel has written it, which is trusted: it is read in this process.
            let symbols = Arc::new(ElfSymbols::from(vdso));
            let code = FileCode::Here(symbols, CodeLines::None(NoLines::NoDebugInfo));
            if let Some(why) = add_pieces(wanted, &code, body).no_code {
                return Err(why.words(wanted));
            }
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
        let code = match symbolizer.file_code(source) {
            Ok(code) => code,
            Err(reason) => {
                failed.get_or_insert(reason);
                continue;
            }
        };
        if build_id.is_none() && mapping.is_none() {
            let note = format!("{module} has no build-id: it may be another one by now");
            body.notes.push(note);
        }
        let added = add_pieces(wanted, &code, body);
        let no_lines = added
            .no_lines
            .map(|why| format!("{module}: {}", without_lines(why, debug_bytes_max)));
        body.no_assembly = added.no_code.map(|why| why.words(wanted));
        return Ok(Found {
            built: code.modified(),
            no_lines: match added.no_code {
                // The same reason for both is said once.
                Some(NoCode::Unreadable(_)) => body.no_assembly.clone(),
                _ => no_lines,
            },
        });
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

/// Says why the lines of a file are not known. `debug_bytes_max` is the limit for debug information.
fn without_lines(why: NoLines, debug_bytes_max: u64) -> String {
    match why {
        NoLines::NoDebugInfo => "it has no debug information (gcc, clang: -g)".into(),
        NoLines::TooMuch => {
            let max = debug_bytes_max >> 20;
            format!("it has more debug information than the {max} MB that there is memory for")
        }
        NoLines::Unreadable(reason) => {
            let why = reason.explain().trim_end_matches('.');
            format!("its debug information cannot be read: {why}")
        }
    }
}
