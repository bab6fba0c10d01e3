//! GDB as the other unwinder: each walk becomes a core file of one thread that has
//! the registers and the copied stack, and GDB is given the files as they were
//! mapped.

use crate::FRAMES_MAX;
use crate::core_file;
use crate::modules::Modules;
use probe::KeptWalk;
use probe::tables::MappedRange;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// The walks of processes with the same mappings, which one GDB reads.
type Sessions<'a> = HashMap<&'a [MappedRange], Vec<usize>>;

/// Returns the return addresses of each of the walks, innermost first.
pub fn walks(modules: &Modules, walks: &[KeptWalk]) -> io::Result<Vec<Vec<u64>>> {
    let folder = tempfile::tempdir()?;
    let mut found = vec![Vec::new(); walks.len()];
    let mut sessions = Sessions::new();
    for (number, walk) in walks.iter().enumerate() {
        std::fs::write(core_path(folder.path(), number), core_file::bytes(walk))?;
        sessions.entry(&walk.mappings).or_default().push(number);
    }
    for (mappings, numbers) in sessions {
        let script = folder.path().join("script");
        std::fs::write(
            &script,
            commands(modules, mappings, &numbers, folder.path()),
        )?;
        let output = Command::new("gdb")
            .args(["-batch", "-nx", "-x"])
            .arg(&script)
            .stderr(Stdio::null())
            .output()?;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            if let Some((number, frames)) = parse(line) {
                found[number] = frames;
            }
        }
    }
    Ok(found)
}

fn core_path(folder: &Path, number: usize) -> std::path::PathBuf {
    folder.join(format!("core.{number}"))
}

fn commands(modules: &Modules, mappings: &[MappedRange], numbers: &[usize], at: &Path) -> String {
    let mut script = format!(
        "set pagination off\nset confirm off\nset backtrace past-main on\n\
         set backtrace past-entry on\nset backtrace limit {FRAMES_MAX}\n\
         set stack-cache off\nset code-cache off\n"
    );
    for (path, base) in modules.files(mappings) {
        let _ = writeln!(script, "add-symbol-file {} -o {base:#x}", path.display());
    }
    for number in numbers {
        let core = core_path(at, *number);
        // Otherwise GDB takes some words from the core file before.
        let _ = writeln!(script, "core-file {}\nmaint flush dcache", core.display());
        let _ = writeln!(script, "python walk({number})");
    }
    format!("{WALK}{script}")
}

/// Inlined frames and tail calls that GDB infers have no return address of their own.
const WALK: &str = "\
python
def walk(number):
    frame, addresses = gdb.newest_frame(), []
    try:
        while frame:
            if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                addresses.append(hex(frame.pc()))
            frame = frame.older()
    except gdb.error:
        pass
    print('walk', number, *addresses)
end
";

fn parse(line: &str) -> Option<(usize, Vec<u64>)> {
    let mut words = line.strip_prefix("walk ")?.split(' ');
    let number = words.next()?.parse().ok()?;
    let frames = words.map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    let mut frames: Vec<u64> = frames.collect::<Option<_>>()?;
    // The word above the first frame, if no information marks that frame as the first.
    if frames.last() == Some(&0) {
        frames.pop();
    }
    Some((number, frames))
}
