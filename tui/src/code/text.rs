//! Source text. Its path comes from debug information, which anybody may have written. So the file
//! is opened below a root directory, with the rights of the invoking user, only if it is a regular
//! file, and its text is made safe to print.

use super::SourceMap;
use rustix::fs::{AtFlags, StatxFlags, statx};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use symbolize::opener::our_root;
use symbolize::parser::archive_order;
use symbolize::{Reason, sanitize};

/// The largest file that is read, in bytes. Larger ones are not written by people.
const BYTES_MAX: u64 = 8 << 20;

/// Maximum number of folders between an archive and a file in it.
const DEPTH_MAX: usize = 32;

/// Columns from one tab stop to the next.
const TAB: usize = 4;

/// The lines of a source file.
#[derive(Debug, Clone, Default)]
pub struct SourceText {
    lines: Vec<Box<str>>,
    /// Its path, for an editor.
    pub path: PathBuf,
    /// Where the text was found, as shown to the user: `disk`, `source map`, `root of 4121`.
    pub origin: String,
    pub modified: Option<SystemTime>,
}

impl SourceText {
    /// Takes a text. Tabs become blanks, and control characters are removed.
    pub fn new(text: &str, path: PathBuf, origin: String) -> Self {
        SourceText {
            lines: text.lines().map(clean).collect(),
            path,
            origin,
            modified: None,
        }
    }

    /// Returns the line with this number; the first is 1. None if there is no line with it.
    pub fn line(&self, number: u32) -> Option<&str> {
        let at = (number as usize).checked_sub(1)?;
        self.lines.get(at).map(|line| &**line)
    }

    /// Returns the number of lines.
    pub fn len(&self) -> usize {
        self.lines.len()
    }
}

/// Makes a line safe to print. Tabs become blanks up to the next tab stop.
fn clean(line: &str) -> Box<str> {
    let mut wide = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '\t' => {
                let column = wide.chars().count();
                wide.push_str(&" ".repeat(TAB - column % TAB));
            }
            '\r' => {}
            c => wide.push(c),
        }
    }
    sanitize(wide.as_bytes()).into()
}

/// Looks for a file in these places, in this order: (1) where the map says, (2) below the root of a
/// process that runs the program, if it is another root than proftop's, (3) below proftop's own
/// root. In (2) and (3) the path may lead into a zip archive, as for Python code that is loaded
/// from one. The error names all places.
pub fn find(path: &str, map: &SourceMap, pids: &[u32]) -> Result<SourceText, String> {
    let wanted = Path::new(path);
    let mut failed: Vec<String> = Vec::new();
    let mut note = |path: &Path, why: &str| {
        failed.push(format!("{}: {why}", path.display()));
    };
    if let Some(mapped) = map.apply(wanted) {
        match read_below(&Root::Ours, &mapped) {
            Ok(text) => {
                let origin = "source map".into();
                return Ok(SourceText { origin, ..text });
            }
            Err(why) => note(&mapped, why),
        }
    }
    if !wanted.is_absolute() {
        note(wanted, "the compiler did not tell its folder");
    } else {
        let roots = pids.iter().map(|pid| Root::Process(*pid));
        // Only the first process with another root is tried.
        let other = roots.into_iter().find(Root::is_another);
        for root in other.into_iter().chain([Root::Ours]) {
            match read_below(&root, wanted) {
                Ok(text) => return Ok(text),
                Err(why) => match read_in_archive(&root, wanted) {
                    Some(text) => return Ok(text),
                    None => note(&root.place(wanted), why),
                },
            }
        }
    }
    failed.dedup();
    Err(failed.join("; "))
}

/// The directory below which a path is opened.
enum Root {
    Ours,
    Process(u32),
}

impl Root {
    /// Returns the path of the directory, as proftop sees it.
    fn path(&self) -> PathBuf {
        match self {
            Root::Ours => "/".into(),
            Root::Process(pid) => format!("/proc/{pid}/root").into(),
        }
    }

    /// Whether the directory can be opened and is another one than proftop's own root.
    fn is_another(&self) -> bool {
        let of = |root: &Root| identity(&root.open().ok()?);
        of(self).is_some_and(|found| Some(found) != of(&Root::Ours))
    }

    /// Opens the directory. Paths are opened below it, so that no symbolic link leads out of it.
    fn open(&self) -> Result<OwnedFd, &'static str> {
        let opened = match self {
            Root::Ours => our_root(),
            Root::Process(pid) => probe::files::of_targets().root_of(*pid).ok(),
        };
        opened.ok_or("the root cannot be opened")
    }

    /// Returns the path, as proftop sees it, of a path in this root.
    fn place(&self, path: &Path) -> PathBuf {
        let root = self.path();
        match path.strip_prefix("/") {
            Ok(rest) => root.join(rest),
            Err(_) => path.to_owned(),
        }
    }

    /// Returns the words for the origin of a text.
    fn words(&self) -> String {
        match self {
            Root::Ours => "disk".into(),
            Root::Process(pid) => format!("root of {pid}"),
        }
    }
}

/// Returns the device and inode of a directory. The kernel does not ask a file server for them,
/// which may not answer.
fn identity(root: &OwnedFd) -> Option<(u32, u32, u64)> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let found = statx(root, "", flags, StatxFlags::INO).ok()?;
    Some((found.stx_dev_major, found.stx_dev_minor, found.stx_ino))
}

fn read_below(root: &Root, path: &Path) -> Result<SourceText, &'static str> {
    // The debug information of a program may name any file: under sudo the user must not see more
    // files than without.
    let file = probe::files::of_user()
        .open_beneath(root.open()?, path)
        .map_err(why)?;
    let modified = file.metadata().ok().and_then(|m| m.modified().ok());
    let text = read(file)?;
    Ok(SourceText {
        modified,
        ..SourceText::new(&text, root.place(path), root.words())
    })
}

/// Has a file in a zip archive read, as Python has it: the path continues behind that of the archive.
fn read_in_archive(root: &Root, path: &Path) -> Option<SourceText> {
    let outer = path.ancestors().skip(1).take(DEPTH_MAX);
    let opened = outer.filter(|archive| archive.parent().is_some());
    let (archive, file) = opened.into_iter().find_map(|archive| {
        let file = probe::files::of_user().open_beneath(root.open().ok()?, archive);
        Some((archive, file.ok()?))
    })?;
    let member = path.strip_prefix(archive).ok()?.to_str()?;
    let modified = file.metadata().ok().and_then(|m| m.modified().ok());
    let way = probe::files::of_user();
    let bytes = archive_order::ask(file, member.as_bytes(), BYTES_MAX, &way).ok()??;
    let text = String::from_utf8_lossy(&bytes);
    Some(SourceText {
        modified,
        ..SourceText::new(&text, root.place(path), root.words())
    })
}

/// Reads at most [`BYTES_MAX`] bytes. One more is requested, to find out whether the file is
/// larger. Invalid UTF-8 is replaced.
fn read(file: File) -> Result<String, &'static str> {
    let mut bytes = Vec::new();
    let mut limited = file.take(BYTES_MAX + 1);
    let read = limited.read_to_end(&mut bytes);
    read.map_err(|_| "it cannot be read")?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err("it is too large");
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Says in a few words why a file was not opened.
fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::FileGone => "not there",
        Reason::NoPermission => "no right to read it",
        Reason::Remote => "on a network filesystem",
        _ => "not a regular file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn look(path: &Path) -> Result<SourceText, String> {
        find(path.to_str().expect("UTF-8"), &SourceMap::default(), &[])
    }

    #[test]
    fn a_file_may_be_in_an_archive() {
        let folder = tempfile::tempdir().expect("a folder");
        let archive = folder.path().join("app.pyz");
        let make = "import sys, zipfile\n\
                    zipfile.ZipFile(sys.argv[1], 'w').writestr('shop/cart.py', 'total = 1\\n')";
        let mut python = std::process::Command::new("python3");
        if test_support::run_tool(python.args(["-c", make]).arg(&archive)).is_none() {
            return;
        }
        let text = look(&archive.join("shop/cart.py")).expect("it is there");
        assert_eq!((text.line(1), text.len()), (Some("total = 1"), 1));
        let why = look(&archive.join("shop/other.py")).expect_err("it is not");
        assert!(why.contains("shop/other.py"), "{why}");
    }

    #[test]
    fn lines_are_safe_to_print() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.c");
        std::fs::write(&path, b"int a;\r\n\tint\tb;\x1b[2J\xff\n").expect("written");
        let text = look(&path).expect("it is there");
        assert_eq!(text.line(1), Some("int a;"));
        assert_eq!(text.line(2), Some("    int b;\\u{1b}[2J\u{fffd}"));
        assert_eq!((text.line(0), text.line(3), text.len()), (None, None, 2));
        assert_eq!(
            (text.path.as_path(), text.origin.as_str()),
            (&*path, "disk")
        );
    }

    #[test]
    fn only_regular_files_of_some_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let why = |name: &str| look(&path(name)).expect_err(name);
        assert!(why("b.c").ends_with("b.c: not there"));
        std::fs::create_dir(path("d.c")).expect("made");
        assert!(why("d.c").ends_with("not a regular file"));
        symlink("e.c", path("e.c")).expect("linked");
        assert!(look(&path("e.c")).is_err());
        let large = File::create(path("f.c")).expect("made");
        large.set_len(BYTES_MAX + 1).expect("grown");
        assert!(why("f.c").ends_with("it is too large"));
        let error = look(Path::new("a.c")).expect_err("relative");
        assert!(error.contains("did not tell its folder"), "{error}");
        assert!(look(Path::new("/dev/zero")).is_err());
    }

    #[test]
    fn the_map_comes_first() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.c"), "mapped\n").expect("written");
        let mapping = format!("/nowhere/src={}", folder.path().display());
        let map = SourceMap::new([mapping.parse().expect("a mapping")]);
        let text = find("/nowhere/src/a.c", &map, &[]).expect("it is there");
        assert_eq!(
            (text.line(1), text.origin.as_str()),
            (Some("mapped"), "source map")
        );
        // The error names both places.
        let error = find("/nowhere/src/b.c", &map, &[]).expect_err("it is not there");
        assert_eq!(error.matches("not there").count(), 2, "{error}");
    }

    #[test]
    fn a_root_like_ours_is_not_another() {
        assert!(!Root::Process(std::process::id()).is_another());
        assert!(!Root::Process(u32::MAX).is_another());
    }
}
