//! *Room*: how much memory proftop's control group may use, and how much of that proftop's parts
//! may use. Memory of BPF maps counts as well, and beyond the limit the kernel kills processes.

use probe_ebpf::limits::RING_BYTES;
use std::path::{Path, PathBuf};

/// From this limit on every part has the size that it has without a limit.
const AMPLE: u64 = 512 << 20;

/// Minimum size of the ring of samples: with a smaller one, samples are lost whenever the reader is
/// late for a moment.
const RING_BYTES_MIN: u64 = 512 << 10;

/// Memory of a group for each mapping that is kept of one process: in a group of 64 MiB 4,096 are
/// kept, and eight such processes take some 5 MiB.
const BYTES_PER_MAPPING: u64 = 16 << 10;

/// With a limit below this, source lines are not read.
const LINES_MIN: u64 = 128 << 20;

/// Where version 2 of control groups is mounted, or version 1 on mixed systems.
const ROOT: &str = "/sys/fs/cgroup";

/// The room of a control group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Room {
    /// Maximum memory of all processes of the group together; `None` without a limit, or with one
    /// for which nothing has to be made smaller.
    group_bytes: Option<u64>,
}

impl Room {
    /// Returns the room of this process: the lowest limit of its control group and the groups
    /// above.
    pub fn of_this_process() -> Self {
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::of(bound(&groups, Path::new(ROOT)))
    }

    fn of(bytes: Option<u64>) -> Self {
        Self {
            group_bytes: bytes.filter(|bytes| *bytes < AMPLE),
        }
    }

    /// The limit, if parts are made smaller for it.
    pub fn group_bytes(self) -> Option<u64> {
        self.group_bytes
    }

    /// Returns the size of the ring of samples: a power of two.
    pub fn ring_bytes(self) -> u32 {
        let all = RING_BYTES as u64;
        let Some(bytes) = self.group_bytes else {
            return RING_BYTES as u32;
        };
        let part = (bytes / 64).clamp(RING_BYTES_MIN, all);
        // The largest power of two in it.
        1 << part.ilog2()
    }

    /// Returns the maximum size of all unwind tables, at most `usual`.
    pub fn table_bytes(self, usual: u64) -> u64 {
        self.group_bytes.map_or(usual, |bytes| usual.min(bytes / 4))
    }

    /// Maximum size of unwind information of a file that is read to make a table: that needs about
    /// four times as much memory for a moment.
    pub fn information_bytes(self) -> u64 {
        self.group_bytes.map_or(u64::MAX, |bytes| bytes / 16)
    }

    /// Returns the maximum number of mappings that are kept of one process, at most `usual`.
    pub fn mappings(self, usual: usize) -> usize {
        let fitting = |bytes| usize::try_from(bytes / BYTES_PER_MAPPING).unwrap_or(usual);
        self.group_bytes
            .map_or(usual, |bytes| usual.min(fitting(bytes)))
    }

    /// Maximum memory for samples, symbols and reports; at most `asked`.
    pub fn own_bytes(self, asked: u64) -> u64 {
        self.group_bytes
            .map_or(asked, |bytes| asked.min(bytes * 3 / 8))
    }

    /// Whether debug information is read as soon as functions have their names. Source lines and
    /// inlined functions take more memory than all other names.
    pub fn has_lines(self) -> bool {
        self.group_bytes.is_none_or(|bytes| bytes >= LINES_MIN)
    }
}

/// Returns the lowest memory limit of the groups in a text in the format of `/proc/self/cgroup`,
/// and of the groups above them.
fn bound(groups: &str, root: &Path) -> Option<u64> {
    let bounds = groups.lines().filter_map(|line| {
        // `0::/path` is version 2, `4:memory:/path` version 1.
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        if controllers.split(',').any(|name| name == "memory") {
            least(&root.join("memory"), path, "memory.limit_in_bytes")
        } else if number == "0" {
            least(root, path, "memory.max")
        } else {
            None
        }
    });
    bounds.min()
}

/// Returns the lowest number in the files of that name from a group up to the root. In a container
/// its own group may be the root, whatever path the kernel reports.
fn least(root: &Path, path: &str, file: &str) -> Option<u64> {
    // In a container the kernel writes the path of a group outside of it as `/..`.
    let path = if path.starts_with("/..") { "/" } else { path };
    let below = Path::new(path).strip_prefix("/").ok()?;
    let folders: Vec<PathBuf> = below.ancestors().map(|group| root.join(group)).collect();
    let bounds = folders.iter().filter_map(|folder| {
        let text = std::fs::read_to_string(folder.join(file)).ok()?;
        // `max` is not a number, and means no limit.
        text.trim().parse().ok()
    });
    bounds.min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::Scratch;

    #[test]
    fn the_least_bound_from_the_group_upwards_counts() {
        let scratch = Scratch::new();
        let root = scratch.path();
        let write = |place: &str, text: &str| {
            let place = root.join(place);
            std::fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
            std::fs::write(place, text).expect("a file");
        };
        write("a/memory.max", "134217728\n");
        write("a/b/memory.max", "max\n");
        write("memory/c/memory.limit_in_bytes", "67108864\n");
        assert_eq!(bound("0::/a/b\n", root), Some(128 << 20));
        assert_eq!(bound("0::/b\n", root), None);
        assert_eq!(bound("4:memory:/c\n0::/a/b\n", root), Some(64 << 20));
        assert_eq!(bound("4:cpu,cpuacct:/c\n", root), None);
        assert_eq!(bound("4:memory,pids:/c\n", root), Some(64 << 20));
        // A container has its own group as the root.
        write("memory.max", "33554432\n");
        assert_eq!(bound("0::/../../x\n", root), Some(32 << 20));
        assert_eq!(bound("", root), None);
    }

    #[test]
    fn parts_are_smaller_only_where_there_is_little() {
        let usual = 128 << 20;
        for ample in [Room::of(None), Room::of(Some(8 << 30))] {
            assert_eq!(ample.ring_bytes(), RING_BYTES as u32);
            assert_eq!(ample.table_bytes(usual), usual);
            assert_eq!(ample.own_bytes(usual), usual);
            assert_eq!(ample.mappings(16_384), 16_384);
            assert_eq!(ample.group_bytes(), None);
            assert!(ample.has_lines());
        }
        let small = Room::of(Some(64 << 20));
        assert_eq!(small.ring_bytes(), 1 << 20);
        assert_eq!(small.table_bytes(usual), 16 << 20);
        assert_eq!(small.own_bytes(usual), 24 << 20);
        assert_eq!(small.information_bytes(), 4 << 20);
        assert_eq!(small.mappings(16_384), 4_096);
        assert!(!small.has_lines());
        let tiny = Room::of(Some(1 << 20));
        assert_eq!(u64::from(tiny.ring_bytes()), RING_BYTES_MIN);
    }
}
