//! Debug files from debuginfod servers, for those who name servers in
//! `DEBUGINFOD_URLS`: elfutils' own client fetches them, into its own cache, by
//! its own rules about sizes and times.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use symbolize::FileSource;
use symbolize::RemoteFiles;
use symbolize::debug_file::DebugFiles;
use symbolize::object::Object;

const CLIENT: &str = "debuginfod-find";

/// Fetches what a file's debug information is in, unless it is here. What comes
/// of it is said on standard error: answers do not depend on it.
pub fn debug_file(object: &Object, path: &Path) {
    if std::env::var_os("DEBUGINFOD_URLS").is_none_or(|urls| urls.is_empty()) {
        return;
    }
    let Some(id) = object.build_id() else {
        return;
    };
    let files = DebugFiles::of(&FileSource::new(path), RemoteFiles::Open);
    if object.has_debug_info() || files.separate(object).is_some() {
        return;
    }
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    eprintln!("proftop: asking debuginfod for the debug file of `{name}` ({id})");
    let mut client = Command::new(CLIENT);
    client.args(["debuginfo", &id]).stdin(Stdio::null());
    // It prints where the file is; we know.
    let ended = client.stdout(Stdio::null()).stderr(Stdio::null()).status();
    match ended {
        Ok(status) if status.success() => {}
        Ok(_) => eprintln!("proftop: debuginfod has no debug file of `{name}`"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            eprintln!(
                "proftop: DEBUGINFOD_URLS is set, but `{CLIENT}` is not installed (package debuginfod)"
            );
        }
        Err(error) => eprintln!("proftop: cannot run `{CLIENT}`: {error}"),
    }
}
