//! Opening the input file, and its limits in memory.

use crate::failure::{Exit, Failure};
use crate::user_files::UserFiles;
use probe::privilege::UserRights;
use profile::Limits;
use profile::formats::{FormatError, pft};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Read, Seek as _, Stdin};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::time::Duration;

/// The maximum number of bytes in memory for the samples of a file: enough for more than a million
/// samples with the deepest stacks. Beyond it, the oldest are left out.
const MEMORY_MAX: usize = 2 << 30;

/// The maximum number of bytes of a stream that are copied into memory.
const COPY_BYTES_MAX: u64 = 2 << 30;

/// A recording that is open for reading.
#[derive(Debug)]
pub struct Input {
    name: String,
    from: Source,
}

#[derive(Debug)]
enum Source {
    Stdin(Stdin),
    File(File),
}

impl Input {
    /// Opens a recording with the rights of the user who called proftop; `-` is standard input.
    ///
    /// A file that the user may not read is opened with the rights of proftop, but only if it is a
    /// .pft, such as one that the recorder has written as root. The lines of any other file could be
    /// shown as if they were names.
    pub fn open(path: &Path) -> Result<Input, Failure> {
        if is_stdin(path) {
            return Ok(Input {
                name: name(path),
                from: Source::Stdin(io::stdin()),
            });
        }
        let opened = UserRights::current().run(|| File::open(path));
        let opened = match opened {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                own_recording(path).ok_or(error)
            }
            opened => opened,
        };
        match opened {
            Ok(file) => Ok(Input::of_file(file, name(path))),
            Err(error) => Err(unreadable(path, &error)),
        }
    }

    /// Returns an open file as an input with this name.
    pub fn of_file(file: File, name: String) -> Input {
        Input {
            name,
            from: Source::File(file),
        }
    }

    /// Returns the name for messages, which is safe to print.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns an input that can be read from its beginning again: of a pipe, a copy in memory.
    pub fn that_can_be_read_again(mut self) -> Result<Input, Failure> {
        if let Source::File(file) = &mut self.from
            && file.rewind().is_ok()
        {
            return Ok(self);
        }
        let name = self.name.clone();
        Input::copied(&mut self, name)
    }

    /// Copies a stream into memory until its end, and returns that as an input with this name.
    pub fn copied(stream: &mut dyn Read, name: String) -> Result<Input, Failure> {
        let mut copy = || -> io::Result<File> {
            let memory = memfd_create("recording", MemfdFlags::CLOEXEC)?;
            let mut file = File::from(memory);
            let mut bounded = stream.take(COPY_BYTES_MAX);
            if io::copy(&mut bounded, &mut file)? == COPY_BYTES_MAX {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok(file)
        };
        match copy().map(|file| Input::of_file(file, name.clone())) {
            Ok(input) => input.rewind(),
            Err(error) => Err(Failure::failed(format!("cannot read {name}: {error}"))),
        }
    }

    /// Returns the same input, at its beginning. An error if it cannot be read again.
    pub fn rewind(mut self) -> Result<Input, Failure> {
        let rewound = match &mut self.from {
            Source::Stdin(_) => Err(io::ErrorKind::NotSeekable.into()),
            Source::File(file) => file.rewind(),
        };
        match rewound {
            Ok(()) => Ok(self),
            Err(error) => Err(Failure::failed(format!(
                "cannot read {}: {error}",
                self.name
            ))),
        }
    }

    /// Returns the same input once more. Both are at the same place, wherever one of them is read to.
    pub fn try_clone(&self) -> Result<Input, Failure> {
        let from = match &self.from {
            Source::Stdin(_) => Ok(Source::Stdin(io::stdin())),
            Source::File(file) => file.try_clone().map(Source::File),
        };
        let name = self.name.clone();
        match from {
            Ok(from) => Ok(Input { name, from }),
            Err(error) => Err(Failure::failed(format!("cannot read {name}: {error}"))),
        }
    }

    /// Returns the descriptor that is read.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.from {
            Source::Stdin(stdin) => stdin.as_fd(),
            Source::File(file) => file.as_fd(),
        }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.from {
            Source::Stdin(stdin) => stdin.read(buffer),
            Source::File(file) => file.read(buffer),
        }
    }
}

/// Opens a file with our own rights. None if it cannot be opened or is not a recording of proftop.
fn own_recording(path: &Path) -> Option<File> {
    let mut file = UserFiles::of(&UserRights::own())
        .open(path, u64::MAX)
        .ok()?;
    let mut start = [0; pft::MAGIC.len()];
    file.read_exact(&mut start).ok()?;
    file.rewind().ok()?;
    (start == pft::MAGIC).then_some(file)
}

/// Returns an error if nothing exists at the path, without opening it: it may be a pipe, whose
/// writer would see a reader come and go.
pub fn check_is_there(path: &Path) -> Result<(), Failure> {
    if is_stdin(path) {
        return Ok(());
    }
    let found = std::fs::metadata(path);
    found.map(drop).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot read {}: {error}", name(path)))
}

/// Returns the failure of a run that cannot read the file of this name.
pub fn unread(name: &str, error: &FormatError) -> Failure {
    match error {
        FormatError::Empty => Failure::new(Exit::NoSamples, format!("{name} is empty")),
        FormatError::Io(error) if error.kind() == io::ErrorKind::IsADirectory => {
            Failure::failed(format!("cannot read {name}: it is a folder"))
        }
        error => Failure::failed(format!("cannot read {name}: {error}")),
    }
}

/// Returns the limits for the samples of a file: one of memory, none of time.
pub fn limits() -> Limits {
    Limits {
        keep: Duration::from_secs(u64::MAX / 4),
        memory_bytes: MEMORY_MAX,
    }
}

/// Whether the path is `-`, which means standard input or output.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns the path for a message, without characters that a terminal acts on.
pub fn name(path: &Path) -> String {
    if is_stdin(path) {
        "standard input".to_string()
    } else {
        symbolize::sanitize(path.to_string_lossy().as_bytes()).into_owned()
    }
}
