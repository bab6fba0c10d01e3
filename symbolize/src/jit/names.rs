//! The names of one process's run-time code.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, open};

use super::maps::CodeMaps;
use super::written::Written;
use super::{JitCode, JitName};
use crate::Reason;
use crate::files::Files;

/// The names of one process's run-time code, read as far as they are written. They are kept when
/// the process has ended.
#[derive(Debug)]
pub struct JitNames {
    written: Written,
    maps: CodeMaps,
}

impl JitNames {
    /// Starts with no names, for a process given by its directory in /proc. The descriptor refers
    /// to this process even when its pid is reused.
    pub fn new(process: Arc<OwnedFd>, files: Files) -> JitNames {
        JitNames {
            written: Written::new(process, files),
            maps: CodeMaps::default(),
        }
    }

    /// Opens the directory of a process, for [`JitNames::new`].
    pub fn hold(pid: u32) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(open(format!("/proc/{pid}"), flags, Mode::empty())?)
    }

    /// Reads what the process has written since the last call. Returns true if there may be new
    /// names.
    pub fn update(&mut self) -> bool {
        self.written.look();
        self.maps.take(self.written.files());
        if !self.maps.has_dump() {
            self.written.reject_dump();
        }
        self.maps.update()
    }

    /// Returns the name of the code that was last at this address.
    pub fn find(&mut self, addr: u64) -> Result<JitName, Reason> {
        self.maps
            .find(addr)
            .ok_or_else(|| self.written.why_no_name())
    }

    /// Returns the code that was last at this address.
    pub fn code(&mut self, addr: u64) -> Result<JitCode, Reason> {
        self.maps
            .code(addr)
            .ok_or_else(|| self.written.why_no_name())
    }

    /// Whether the process had ended at the last update, so that nothing more will be written.
    pub fn has_ended(&self) -> bool {
        self.written.has_ended()
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        self.maps.heap_bytes()
    }
}

const _: () = {
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<JitNames>();
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::fs::{Permissions, hard_link, remove_file, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;
    use std::time::{Duration, SystemTime};
    use test_support::Process;

    /// A process with a map; dropping this removes both.
    struct Target {
        child: Process,
        map: std::path::PathBuf,
    }

    impl Target {
        fn start() -> Target {
            let child = Process::start(Command::new("sleep").arg("60"));
            let map = format!("/tmp/perf-{}.map", child.id()).into();
            Target { child, map }
        }

        fn names(&self) -> JitNames {
            let process = JitNames::hold(self.child.id()).unwrap();
            JitNames::new(Arc::new(process), Files::default())
        }
    }

    #[test]
    fn a_map_that_comes_late_and_outlives_its_process() {
        let mut target = Target::start();
        let mut names = target.names();
        assert!(!names.update());
        assert_eq!(names.find(0x1000), Err(Reason::Jit));

        write(&target.map, "1000 10 f\n").unwrap();
        assert!(names.update());
        assert_eq!(names.find(0x1000).as_deref(), Ok(&b"f"[..]));
        assert_eq!(names.find(0x2000), Err(Reason::JitNotCovered));

        // Another file takes its place.
        remove_file(&target.map).unwrap();
        write(&target.map, "1000 10 g\n").unwrap();
        assert!(names.update());
        assert_eq!(names.find(0x1000).as_deref(), Ok(&b"g"[..]));

        target.child.kill().unwrap();
        target.child.wait().unwrap();
        assert!(!names.update());
        assert!(names.has_ended());
        assert_eq!(names.find(0x1000).as_deref(), Ok(&b"g"[..]));
    }

    #[test]
    fn a_map_that_an_earlier_process_of_that_number_left() {
        let target = Target::start();
        let mut names = target.names();
        write(&target.map, "1000 10 f\n").unwrap();
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        let map = File::options().append(true).open(&target.map).unwrap();
        map.set_modified(hour_ago).unwrap();
        assert!(!names.update());
        assert_eq!(names.find(0x1000), Err(Reason::Jit));

        // Its own text in the same file.
        write(&target.map, "1000 10 g\n").unwrap();
        assert!(names.update());
        assert_eq!(names.find(0x1000).as_deref(), Ok(&b"g"[..]));
    }

    #[test]
    fn maps_that_others_could_have_written() {
        let target = Target::start();
        let other = target.map.with_extension("other");
        let refused = || {
            let mut names = target.names();
            names.update();
            let found = names.find(0x1000);
            _ = remove_file(&target.map);
            assert_eq!(found, Err(Reason::JitMapRefused));
        };
        write(&target.map, "1000 10 f\n").unwrap();
        set_permissions(&target.map, Permissions::from_mode(0o666)).unwrap();
        refused();
        write(&other, "1000 10 f\n").unwrap();
        symlink(&other, &target.map).unwrap();
        refused();
        hard_link(&other, &target.map).unwrap();
        refused();
        remove_file(&other).unwrap();
    }
}
