//! Fetches debug files from debuginfod servers, if `DEBUGINFOD_URLS` names any.

use crate::stderr;
use engine::debuginfod::client::{self, Limits};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use symbolize::debug_file::DebugFiles;
use symbolize::object::Object;
use symbolize::{FileSource, Files, RemoteFiles};

/// Limits for a debug file. They are high, because the user waits for it.
const LIMITS: Limits = Limits {
    bytes: 4 << 30,
    time: Duration::from_secs(600),
};

/// Opens any file that the user names, even on a remote file system.
pub fn any_files() -> Files {
    probe::files::of_targets().with_remote(RemoteFiles::Open)
}

/// Fetches the debug file of a file, unless it is on this machine. Progress and failure are printed
/// on standard error; the addresses are answered in any case.
pub fn debug_file(object: &Object, path: &Path) {
    if !client::is_wanted() {
        return;
    }
    let Some(id) = object.build_id() else {
        return;
    };
    let files = DebugFiles::of(&FileSource::new(path), any_files());
    if object.has_debug_info() || files.separate(object).is_some() {
        return;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    stderr::say(format_args!(
        "asking debuginfod for the debug file of `{name}`"
    ));
    if let Err(why) = client::fetch(&id, LIMITS, &AtomicBool::new(false)) {
        stderr::say(format_args!(
            "no debug file of `{name}` from debuginfod: {why}"
        ));
    }
}
