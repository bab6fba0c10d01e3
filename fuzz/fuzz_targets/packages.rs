//! Databases of package managers and the files that identify a distribution: the packages of files
//! are found, or not. The first byte says which files the input has.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use symbolize::files::{Proxy, Reply, Request};
use symbolize::packages::{Distribution, Packages};
use symbolize::{Files, Reason, RemoteFiles, sanitize};

/// A system whose files are pieces of the input.
#[derive(Debug)]
struct System(Vec<(&'static str, Vec<u8>)>);

impl System {
    fn find(&self, wanted: &Path) -> Option<&[u8]> {
        let is_it = |path: &str| wanted == Path::new(path) || wanted.starts_with(path);
        let (_, bytes) = self.0.iter().find(|(path, _)| is_it(path))?;
        Some(bytes)
    }
}

impl Proxy for System {
    fn perform(&self, request: &Request<'_>, _: RemoteFiles) -> Result<Reply, Reason> {
        let Request::Beneath { path, .. } = request else {
            panic!("nothing else is asked of a system");
        };
        let bytes = self.find(path).ok_or(Reason::FileGone)?;
        let file = File::from(memfd_create("fuzz", MemfdFlags::CLOEXEC).expect("a file"));
        file.write_all_at(bytes, 0).expect("room");
        Ok(Reply {
            bytes: Vec::new(),
            file: Some(file.into()),
        })
    }
}

/// Splits the input into two files.
fn split(bytes: &[u8]) -> [Vec<u8>; 2] {
    let end = bytes.iter().position(|byte| *byte == 0xff);
    let (first, second) = bytes.split_at(end.unwrap_or(bytes.len()));
    [first.to_vec(), second.get(1..).unwrap_or_default().to_vec()]
}

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    let files = match kind % 4 {
        0 => {
            let [status, list] = split(bytes);
            vec![("var/lib/dpkg/status", status), ("var/lib/dpkg/info", list)]
        }
        1 => vec![("lib/apk/db/installed", bytes.to_vec())],
        2 => vec![("var/lib/rpm/rpmdb.sqlite", bytes.to_vec())],
        _ => {
            let [release, archives] = split(bytes);
            vec![("etc/os-release", release), ("etc/apt/sources.list", archives)]
        }
    };
    let paths = ["/usr/lib/libx.so.1", "/opt/x"].map(Path::new);
    let root = rustix::fs::open("/", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty());
    let files = Files::by(Arc::new(System(files)));
    let found = Packages::find(&root.expect("a directory"), &paths, &files);
    assert_eq!(found.owners.len(), paths.len());
    for owner in found.owners.into_iter().flatten() {
        for text in [owner.symbols(), owner.package, owner.version] {
            assert_eq!(sanitize(text.as_bytes()), text);
        }
    }
    if let Some((line, _)) = found.distribution.as_ref().and_then(Distribution::debug_archive) {
        assert!(line.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()));
    }
});
