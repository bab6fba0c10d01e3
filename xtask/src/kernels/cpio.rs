//! A file system in memory with which a kernel starts: an archive of the kind `newc`, as described
//! in the kernel's documentation (driver-api/early-userspace/buffer-format).

/// Returns an archive with a program that the kernel starts as the first, a console for it, and
/// another program with this name.
pub fn with_programs(first: &[u8], name: &str, other: &[u8]) -> Vec<u8> {
    let mut archive = Archive::default();
    archive.add("dev", DIRECTORY | 0o755, (0, 0), &[]);
    archive.add("dev/console", CHARACTERS | 0o600, (5, 1), &[]);
    archive.add("init", REGULAR | 0o755, (0, 0), first);
    archive.add(name, REGULAR | 0o755, (0, 0), other);
    archive.add("TRAILER!!!", 0, (0, 0), &[]);
    // Whole blocks, as tools write and expect them.
    let length = archive.bytes.len().next_multiple_of(512);
    archive.bytes.resize(length, 0);
    archive.bytes
}

const DIRECTORY: u32 = 0o040_000;
const CHARACTERS: u32 = 0o020_000;
const REGULAR: u32 = 0o100_000;

#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    files: u32,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.files += 1;
        let length = u32::try_from(content.len()).expect("less than 4 GB");
        let name_length = u32::try_from(name.len() + 1).expect("a short name");
        self.bytes.extend_from_slice(b"070701");
        // Number, mode, user, group, links, time, length, device, its own device, name, checksum.
        let (major, minor) = device;
        for field in [
            self.files,
            mode,
            0,
            0,
            1,
            0,
            length,
            0,
            0,
            major,
            minor,
            name_length,
            0,
        ] {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use test_support::{Scratch, run_tool};

    #[test]
    fn another_reader_finds_the_programs() {
        let scratch = Scratch::new();
        let program = b"twelve bytes";
        let archive = scratch.write("files.cpio", with_programs(program, "other", b"one"));
        let mut reader = Command::new("cpio");
        let reader = reader.args(["-i", "--quiet", "-F"]).arg(archive);
        let reader = reader.args(["init", "other"]);
        if run_tool(reader.current_dir(scratch.path())).is_some() {
            assert_eq!(std::fs::read(scratch.join("init")).unwrap(), program);
            assert_eq!(std::fs::read(scratch.join("other")).unwrap(), b"one");
        }
    }

    #[test]
    fn everything_begins_at_multiples_of_four() {
        let bytes = with_programs(b"12345", "other", b"1");
        let at = bytes.windows(5).position(|window| window == b"12345");
        assert_eq!(at.unwrap() % 4, 0);
        assert_eq!(bytes.len() % 4, 0);
    }
}
