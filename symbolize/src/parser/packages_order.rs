//! Has a parser process find out which packages files of a system belong to, and which distribution
//! it is: the owner of the system wrote the databases.
//!
//! ```text
//! question: the paths of the files
//! answer:   whether the distribution is known; what is known of it
//!           for each file whether it has an owner; its package manager, package, version
//! ```
//!
//! The file is the root directory of the system. The parser asks for files below it
//! ([`is_of_packages`](crate::packages::is_of_packages)), and ends after its order.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::opened::next_number;
use crate::files::{Order, Reply, Work};
use crate::packages::{Distribution, Manager, Owner, Packages};
use crate::wire::{Taken, put_bytes};
use crate::{Files, Reason, Writers};

/// Maximum length of a name or version. Those of distributions are shorter than 200 bytes.
const TEXT_BYTES_MAX: usize = 1 << 10;

/// Identifies the system below a root, and finds the owners of files of it, in the order of `paths`.
/// If there are parser processes, one of them reads the databases.
pub fn ask(root: &OwnedFd, paths: &[&Path], way: &Files) -> Result<Packages, Reason> {
    if !way.has_parsers() {
        return Ok(Packages::find(root, paths, way));
    }
    let mut message = Vec::new();
    for path in paths {
        put_bytes(&mut message, path.as_os_str().as_bytes());
    }
    // Nothing is asked of the directory here: its file system may wait for a server.
    let reply = way.parse(&Order {
        work: Work::Packages,
        file: next_number(),
        writers: Writers::UNKNOWN,
        process: None,
        files: &[root.as_fd()],
        message: &message,
    })?;
    read_answer(&reply.bytes, paths.len()).ok_or(Reason::Refused)
}

/// Answers a question that [`ask`] has sent, in the parser process.
pub(super) fn answer(message: &[u8], files: Vec<OwnedFd>, way: &Files) -> Result<Reply, Reason> {
    let root = files.into_iter().next().ok_or(Reason::Refused)?;
    let (mut message, mut paths) = (Taken(message), Vec::new());
    while let Some(path) = message.bytes() {
        paths.push(Path::new(OsStr::from_bytes(path)));
    }
    let bytes = write_answer(&Packages::find(&root, &paths, way));
    Ok(Reply { bytes, file: None })
}

fn write_answer(found: &Packages) -> Vec<u8> {
    let mut bytes = vec![found.distribution.is_some().into()];
    if let Some(distribution) = &found.distribution {
        distribution.write(&mut bytes);
    }
    for owner in &found.owners {
        write_owner(&mut bytes, owner.as_ref());
    }
    bytes
}

/// Reads an answer about this number of files; `None` if the bytes are malformed.
pub(super) fn read_answer(bytes: &[u8], files: usize) -> Option<Packages> {
    let mut told = Taken(bytes);
    let distribution = match told.u8()? {
        0 => None,
        _ => Some(Distribution::read_message(&mut told)?),
    };
    let owners = (0..files).map(|_| read_owner(&mut told));
    Some(Packages {
        distribution,
        owners: owners.collect::<Option<_>>()?,
    })
}

fn write_owner(out: &mut Vec<u8>, owner: Option<&Owner>) {
    let fits = |owner: &&Owner| owner.package.len().max(owner.version.len()) <= TEXT_BYTES_MAX;
    let Some(owner) = owner.filter(fits) else {
        return out.push(0);
    };
    out.extend([1, owner.manager as u8]);
    put_bytes(out, owner.package.as_bytes());
    put_bytes(out, owner.version.as_bytes());
}

/// Reads an owner. The outer `None` if the bytes are malformed.
#[expect(clippy::option_option, reason = "the outer one is about the bytes")]
fn read_owner(told: &mut Taken<'_>) -> Option<Option<Owner>> {
    if told.u8()? == 0 {
        return Some(None);
    }
    let manager = *Manager::ALL.get(usize::from(told.u8()?))?;
    let mut text = || told.bytes().filter(|text| text.len() <= TEXT_BYTES_MAX);
    Some(Some(Owner::new(manager, text()?, text()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn owners_arrive_as_they_were_found() {
        let owner = Owner::new(Manager::Rpm, b"glibc", b"2.41-1");
        let mut bytes = Vec::new();
        write_owner(&mut bytes, Some(&owner));
        for len in 0..bytes.len() {
            assert_eq!(read_owner(&mut Taken(&bytes[..len])), None);
        }
        write_owner(&mut bytes, None);
        let mut told = Taken(&bytes);
        assert_eq!(read_owner(&mut told), Some(Some(owner)));
        assert_eq!(read_owner(&mut told), Some(None));
        assert_eq!(read_owner(&mut told), None);
    }

    proptest! {
        #[test]
        fn any_answer_is_safe_to_print(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let found = read_answer(&bytes, 1);
            let distribution = found.as_ref().and_then(|found| found.distribution.as_ref());
            if let Some((line, _)) = distribution.and_then(Distribution::debug_archive) {
                prop_assert!(!line.contains(char::is_control));
            }
            let mut told = Taken(&bytes);
            while let Some(owner) = read_owner(&mut told) {
                let Some(owner) = owner else { continue };
                prop_assert!(!owner.package.contains(char::is_control));
                prop_assert!(!owner.version.contains(char::is_control));
            }
        }
    }
}
