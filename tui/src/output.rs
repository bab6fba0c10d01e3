//! Where reports and recordings are written: standard output, or a file that belongs to the user
//! who called proftop. An existing file is overwritten only if the user asked for that.

use crate::failure::rights::Invocation;
use crate::failure::{Exit, Failure};
use crate::reader::Reader;
use crate::user_files::{Created, Manner, NewFile, Refusal, UserFiles};
use probe::privilege::{InvokingUser, UserRights};
use serde::Serialize;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whether a write is in progress. A write to a pipe can block until the other program reads.
static WRITING: AtomicBool = AtomicBool::new(false);

/// Number of pieces written since the start of the program.
static PIECES: AtomicU64 = AtomicU64::new(0);

/// Size of a piece in bytes. Large outputs are written in pieces, so that another thread can see
/// whether the write makes progress.
const PIECE_BYTES: usize = 16 << 10;

/// Returns the number of the piece that is being written, or `None` if no write is in progress.
/// Another thread calls this after a signal, to end the program if the write makes no progress.
pub fn piece_being_written() -> Option<u64> {
    let is_writing = WRITING.load(Ordering::Relaxed);
    is_writing.then(|| PIECES.load(Ordering::Relaxed))
}

/// Writes all bytes, piece by piece.
fn write_pieces(output: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    for piece in bytes.chunks(PIECE_BYTES) {
        output.write_all(piece)?;
        PIECES.fetch_add(1, Ordering::Relaxed);
    }
    output.flush()
}

/// Returns a document as JSON on one line, with a newline at its end.
pub fn json_line(document: &impl Serialize) -> String {
    let mut line = serde_json::to_string(document)
        .expect("strings, numbers and maps with string keys can be written");
    line.push('\n');
    line
}

/// Returns the width of the terminal in cells, or `None` if standard output is not a terminal.
pub fn stdout_width() -> Option<usize> {
    // crossterm's `size` starts the program `tput` if it finds no terminal.
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// Returns an error if standard output is a terminal. Called before binary data is written.
pub fn refuse_terminal() -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        Err(Failure::usage(
            "- writes bytes that no terminal shows: pipe them on, or name a file",
        ))
    } else {
        Ok(())
    }
}

/// A destination that is written to piece by piece: standard output or a file.
pub struct Output {
    place: OutputTarget,
    name: String,
    /// Whether nothing was written yet.
    is_empty: bool,
}

enum OutputTarget {
    Stdout(io::Stdout),
    File(File),
    /// A file that gets its name when the first bytes are written, and whether it replaces an
    /// existing file. `None` while the name is being given.
    Unnamed(Option<(NewFile, bool)>),
}

impl Output {
    /// Opens a file, or standard output if `path` is `None`. Others can read the bytes as soon as
    /// they are written; until the first write, a file that is to be overwritten keeps its
    /// contents. Returns an error if the file exists and `overwrite` is false.
    pub fn open(path: Option<&Path>, overwrite: bool) -> Result<Self, Failure> {
        let (place, name) = match path {
            None => (
                OutputTarget::Stdout(io::stdout()),
                "standard output".to_string(),
            ),
            Some(path) => {
                let name = name(path);
                let created = match Inherited::named(path) {
                    Some(inherited) => inherited.open().map(Created::Open).map_err(Refusal::Io),
                    None => UserFiles::current().create(path, overwrite),
                };
                let place = match created.map_err(|refusal| refused(&name, &refusal))? {
                    Created::Open(file) => OutputTarget::File(file),
                    Created::Unnamed { new, replaces } => {
                        OutputTarget::Unnamed(Some((new, replaces)))
                    }
                };
                (place, name)
            }
        };
        Ok(Self {
            place,
            name,
            is_empty: true,
        })
    }

    /// Returns the width in cells of the terminal that is written to, or `None` if the destination
    /// is a file or a pipe.
    pub fn terminal_width(&self) -> Option<usize> {
        match self.place {
            OutputTarget::Stdout(_) => stdout_width(),
            OutputTarget::File(_) | OutputTarget::Unnamed(_) => None,
        }
    }

    /// Writes a file that gets its name only when it is complete, or writes to standard output if
    /// `path` is `None`.
    pub fn write_whole(path: Option<&Path>, overwrite: bool, bytes: &[u8]) -> Result<(), Failure> {
        match path {
            Some(path) if Inherited::named(path).is_none() => UserFiles::current()
                .write(path, bytes, Manner::usual(overwrite))
                .or_else(|refusal| match refusal {
                    Refusal::Io(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
                    refusal => Err(refused(&name(path), &refusal)),
                }),
            path => Self::open(path, overwrite)?.write(bytes).map(drop),
        }
    }

    /// Returns a [`Reader`], which can tell whether the other end of this destination is still
    /// open.
    pub fn reader(&mut self) -> Result<Reader, Failure> {
        let watched = match &mut self.place {
            OutputTarget::Stdout(stdout) => Reader::of(stdout),
            OutputTarget::File(file) => Reader::of(file),
            OutputTarget::Unnamed(Some((new, _))) => Reader::of(new.file()),
            OutputTarget::Unnamed(None) => Err(io::Error::other("it has no name")),
        };
        watched.map_err(|error| Failure::failed(format!("cannot watch {}: {error}", self.name)))
    }

    /// Returns the name of the destination for a message.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether nothing was written yet. CSV gets its line of column names only then.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Writes all bytes. Returns false if the program at the other end has closed the pipe, which
    /// is not an error.
    pub fn write(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        self.is_empty = false;
        WRITING.store(true, Ordering::Relaxed);
        let written = match &mut self.place {
            OutputTarget::Stdout(stdout) => write_pieces(&mut stdout.lock(), bytes),
            OutputTarget::File(file) => write_pieces(file, bytes),
            // If there is no room for the first bytes, an existing file of this name stays.
            OutputTarget::Unnamed(Some((new, _))) => write_pieces(new.file(), bytes),
            OutputTarget::Unnamed(None) => Err(io::Error::other("it has no name")),
        };
        WRITING.store(false, Ordering::Relaxed);
        match written {
            Ok(()) => self.give_name().map(|()| true),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(Failure::failed(format!(
                "failed to write to {}: {error}",
                self.name
            ))),
        }
    }
}

impl Output {
    /// Whether the destination is a regular file that has no name yet.
    pub fn is_unnamed(&self) -> bool {
        matches!(self.place, OutputTarget::Unnamed(_))
    }

    /// Gives the file its name if it has none yet.
    fn give_name(&mut self) -> Result<(), Failure> {
        if let OutputTarget::Unnamed(new) = &mut self.place
            && let Some((new, replaces)) = new.take()
        {
            let file = UserFiles::current()
                .name(new, replaces)
                .map_err(|refusal| refused(&self.name, &refusal))?;
            self.place = OutputTarget::File(file);
        }
        Ok(())
    }
}

/// Whether writing to this path means standard output. `None` always does.
pub fn is_stdout(path: Option<&Path>) -> bool {
    let inherited = path.map(Inherited::named);
    inherited
        .is_none_or(|inherited| matches!(inherited, Some(Inherited::Stdout | Inherited::Other(1))))
}

/// Returns a path as text for a message, without control characters that a terminal would act on.
fn name(path: &Path) -> String {
    symbolize::sanitize(path.to_string_lossy().as_bytes()).into_owned()
}

/// Whether this path exists, even as a symbolic link whose target is missing.
pub fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// A descriptor that a shell opened for us, such as `/dev/fd/63`. Such a path is a symbolic link,
/// which is otherwise refused.
enum Inherited {
    Stdout,
    Stderr,
    /// Any other descriptor number, as in `-o >(zstd > a.pft.zst)`.
    Other(u32),
}

impl Inherited {
    fn named(path: &Path) -> Option<Self> {
        let path = path.to_str()?;
        let number = match path {
            "/dev/stdout" => 1,
            "/dev/stderr" => 2,
            path => path
                .strip_prefix("/dev/fd/")
                .or_else(|| path.strip_prefix("/proc/self/fd/"))?
                .parse()
                .ok()?,
        };
        Some(match number {
            1 => Inherited::Stdout,
            2 => Inherited::Stderr,
            number => Inherited::Other(number),
        })
    }

    fn open(self) -> io::Result<File> {
        match self {
            Inherited::Stdout => Ok(io::stdout().as_fd().try_clone_to_owned()?.into()),
            Inherited::Stderr => Ok(io::stderr().as_fd().try_clone_to_owned()?.into()),
            // We do not duplicate the descriptor by its number, which may belong to one of our own
            // files. Instead the file that it leads to is opened with the rights of the user.
            Inherited::Other(number) => UserRights::current().run(|| {
                let path = format!("/proc/self/fd/{number}");
                File::options().write(true).open(path)
            }),
        }
    }
}

fn refused(name: &str, refusal: &Refusal) -> Failure {
    if matches!(refusal, Refusal::Exists) {
        return Failure::new(Exit::Failed, format!("{name} exists already"))
            .remedy(Invocation::current().with_option("-f"), "overwrites it");
    }
    let failure = Failure::failed(format!("cannot write {name}: {refusal}"));
    match (refusal, UserRights::current().user()) {
        (Refusal::Io(error) | Refusal::NotWritable { source: error, .. }, Some(user))
            if error.kind() == ErrorKind::PermissionDenied =>
        {
            failure.detail(written_as(user))
        }
        _ => failure,
    }
}

/// Returns the sentence that says whose rights are used, which is a surprise in a root shell that
/// was started by sudo.
fn written_as(user: &InvokingUser) -> String {
    let name = symbolize::sanitize(user.name.as_bytes());
    format!(
        "files are written with the rights of {name}, who had proftop started as root; \
         root can write its own: env -u SUDO_UID proftop …"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_overwritten_only_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        std::fs::write(&path, "old").unwrap();
        let refused = Output::open(Some(&path), false).err().unwrap();
        assert!(refused.to_string().contains("exists already"));
        let refused = Output::write_whole(Some(&path), false, b"new").unwrap_err();
        // The suggested command line is complete, so that it can be typed again.
        assert!(!refused.to_string().contains('…'));
        assert!(refused.to_string().contains(" -f "));
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        Output::write_whole(Some(&path), true, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        // The old contents stay until the first write.
        let mut output = Output::open(Some(&path), true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        output.write(b"newer").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"newer");
        let unused = folder.path().join("unused");
        drop(Output::open(Some(&unused), false).unwrap());
        assert!(!is_there(&unused));
    }

    #[test]
    fn names_of_descriptors_are_no_files() {
        let is_inherited = |path| Inherited::named(Path::new(path)).is_some();
        assert!(is_inherited("/dev/stdout") && is_inherited("/dev/stderr"));
        assert!(is_inherited("/dev/fd/63") && is_inherited("/proc/self/fd/3"));
        assert!(!is_inherited("/dev/fd/../null") && !is_inherited("/dev/null"));
        assert!(!is_inherited("stdout"));
    }

    #[test]
    fn a_pipe_takes_what_a_file_would() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        use std::io::Read as _;
        use std::os::fd::AsRawFd as _;
        let path = format!("/dev/fd/{}", writer.as_raw_fd());
        Output::write_whole(Some(Path::new(&path)), false, b"samples").unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "samples");
    }
}
