//! A compressed symbol table, as a program may have it inside.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use symbolize::RemoteFiles;
use symbolize::files::Request;
use symbolize::opener::{Mounts, Opening, Unwatched};

fuzz_target!(|input: (u8, &[u8])| {
    let (cut, bytes) = input;
    let file = memfd_create("packed", MemfdFlags::CLOEXEC).expect("a file in memory");
    let mut file = File::from(file);
    file.write_all(bytes).expect("there is memory");
    let request = Request::Unpack {
        file: file.as_fd(),
        offset: 0,
        len: (bytes.len() as u64).saturating_sub(cut.into()),
    };
    let done = request.perform(&mut Opening {
        remote: RemoteFiles::Skip,
        mounts: &mut Mounts::default(),
        watch: &mut Unwatched,
        mountinfo: None,
    });
    if let Ok(reply) = done {
        let unpacked = File::from(reply.file.expect("what was asked for"));
        assert!(unpacked.metadata().expect("it is open").len() <= 64 << 20);
    }
});
