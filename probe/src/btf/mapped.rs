//! A file of the kernel's that is mapped and not read: its bytes are the kernel's own.

use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::NonNull;

/// The bytes of a file below `/sys/kernel/btf`, which never change while the kernel runs.
pub struct Mapped {
    base: NonNull<c_void>,
    length: usize,
}

impl Mapped {
    /// Maps all of a file. Fails if it is empty, or if this kernel cannot map it.
    pub fn of(file: &File) -> io::Result<Self> {
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        // SAFETY: a new mapping at an address of the kernel's choice, which is only read.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ,
                MapFlags::PRIVATE,
                file,
                0,
            )?
        };
        let base = NonNull::new(base).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { base, length })
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has that many bytes and lives as long as `self`. Nobody writes to
        // the kernel's types, and the file keeps its length.
        unsafe { std::slice::from_raw_parts(self.base.cast().as_ptr(), self.length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: our mapping, and nobody can borrow from it any more.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr(), self.length) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_is_what_is_read() {
        let path = "/sys/kernel/btf/vmlinux";
        let (Ok(file), Ok(read)) = (File::open(path), std::fs::read(path)) else {
            return test_support::skip("this kernel does not tell its types");
        };
        match Mapped::of(&file) {
            Ok(mapped) => assert!(mapped.bytes() == read),
            Err(_) => test_support::skip("needs types that can be mapped (Linux 6.16)"),
        }
        assert!(Mapped::of(&File::open("/dev/null").expect("it is there")).is_err());
    }
}
