//! Where reports and recordings go: standard output, or a file of the invoking user's that is
//! never overwritten without being asked to.

use crate::failure::{Exit, Failure};
use probe::privilege::InvokingUser;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::fchown;
use std::path::Path;

pub struct Output {
    place: Place,
    name: String,
    is_empty: bool,
}

enum Place {
    Stdout(io::Stdout),
    File(File),
}

impl Output {
    /// Without a path, standard output.
    pub fn open(path: Option<&Path>, overwrite: bool) -> Result<Self, Failure> {
        let (place, name) = match path {
            None => (Place::Stdout(io::stdout()), "standard output".to_string()),
            Some(path) => {
                let name = symbolize::sanitize(path.to_string_lossy().as_bytes()).into_owned();
                let file = create(path, overwrite).map_err(|error| refused(&name, &error))?;
                (Place::File(file), name)
            }
        };
        Ok(Self {
            place,
            name,
            is_empty: true,
        })
    }

    /// What it is called in a sentence.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// False if the reader has gone away: it has had enough, and that is fine.
    pub fn write(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        self.is_empty = false;
        let written = match &mut self.place {
            Place::Stdout(stdout) => {
                let mut stdout = stdout.lock();
                stdout.write_all(bytes).and_then(|()| stdout.flush())
            }
            Place::File(file) => file.write_all(bytes),
        };
        match written {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(Failure::failed(format!(
                "failed to write to {}: {error}",
                self.name
            ))),
        }
    }
}

/// Whether something has that name, a link to nowhere included.
pub fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Under sudo the file belongs to who typed the command.
fn create(path: &Path, overwrite: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    let file = match overwrite {
        true => options.create(true).truncate(true).open(path)?,
        false => options.create_new(true).open(path)?,
    };
    if let Some(user) = InvokingUser::under_sudo() {
        fchown(&file, Some(user.uid), Some(user.gid))?;
    }
    Ok(file)
}

fn refused(name: &str, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::AlreadyExists => Failure::new(Exit::Failed, format!("{name} exists already"))
            .remedy("proftop -f …", "overwrites it"),
        _ => Failure::failed(format!("cannot write {name}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_overwritten_only_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        std::fs::write(&path, "old").unwrap();
        let error = create(&path, false).unwrap_err();
        assert!(
            refused("report", &error)
                .to_string()
                .contains("exists already")
        );
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        create(&path, true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }
}
