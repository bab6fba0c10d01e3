//! A small file system in memory, until it is dropped.

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

pub struct Disk(PathBuf);

impl Disk {
    /// Mounts it at a new folder, with room for this many bytes in whole pages. Returns None without
    /// the right to do so.
    pub fn mount(folder: &Path, bytes: u64) -> Option<Self> {
        fs::create_dir(folder).expect("a folder");
        let size = CString::new(format!("size={bytes}")).expect("no zero in it");
        let mounted = mount("tmpfs", folder, "tmpfs", MountFlags::empty(), Some(&*size));
        mounted.is_ok().then(|| Self(folder.to_owned()))
    }

    /// Lets nothing be written any more.
    pub fn make_read_only(&self) {
        let flags = MountFlags::RDONLY;
        mount_remount(&self.0, flags, c"").expect("ours");
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Takes all room that is left.
    pub fn fill(&self) {
        let filler = self.0.join("filler");
        fs::write(filler, vec![0; 8 << 20]).expect_err("there is less room");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}
