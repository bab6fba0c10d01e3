//! The database of Alpine's apk: one text file. For each package it has lines `P:name` and
//! `V:version`, then `F:directory` and below it `R:file`, and an empty line at the end.

use super::{Manager, Owner, Reader, Wanted};
use std::os::unix::ffi::OsStrExt as _;

/// Paths of the database on newer and on older systems.
pub(super) const PLACES: [&str; 2] = ["usr/lib/apk/db/installed", "lib/apk/db/installed"];

/// Finds the packages that have these files.
pub fn find(reader: &mut Reader<'_>, wanted: &[Wanted], owners: &mut [Option<Owner>]) {
    let Some(text) = PLACES.iter().find_map(|place| reader.read(place)) else {
        return;
    };
    let (mut package, mut version, mut directory): (&[u8], &[u8], &[u8]) = (b"", b"", b"");
    for line in text.split(|byte| *byte == b'\n') {
        match line {
            [b'P', b':', name @ ..] => package = name,
            [b'V', b':', number @ ..] => version = number,
            [b'F', b':', path @ ..] => directory = path,
            [b'R', b':', name @ ..] => {
                for (wanted, owner) in wanted.iter().zip(&mut *owners) {
                    let is_it = owner.is_none() && is_wanted(wanted, directory, name);
                    if is_it {
                        *owner = Some(Owner::new(Manager::Apk, package, version));
                    }
                }
            }
            _ => {}
        }
    }
}

fn is_wanted(wanted: &Wanted, directory: &[u8], name: &[u8]) -> bool {
    wanted.paths.iter().any(|path| {
        let below = path.as_os_str().as_bytes().strip_prefix(b"/");
        let below = below.and_then(|below| below.strip_suffix(name));
        below.is_some_and(|below| match below.strip_suffix(b"/") {
            Some(parent) => parent == directory,
            None => below.is_empty() && directory.is_empty(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{owner_of, root};

    #[test]
    fn a_file_is_below_its_directory_and_package() {
        let installed = b"P:musl\nV:1.2.4-r2\nF:lib\nR:ld-musl-x86_64.so.1\n\n\
            P:zlib\nV:1.3-r0\nF:usr/lib\nR:libz.so.1\n\n";
        let (_directory, root) = root(&[("lib/apk/db/installed", installed)]);
        let musl = owner_of(&root, "/lib/ld-musl-x86_64.so.1");
        assert_eq!(musl, Some(("musl".to_owned(), "1.2.4-r2".to_owned())));
        let zlib = owner_of(&root, "/usr/lib/libz.so.1");
        assert_eq!(zlib, Some(("zlib".to_owned(), "1.3-r0".to_owned())));
        assert_eq!(owner_of(&root, "/usr/lib/xlibz.so.1"), None);
    }
}
