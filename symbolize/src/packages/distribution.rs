//! Which distribution a system is of.

use crate::Files;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Such files have some 20 lines.
const BYTES_MAX: u64 = 64 << 10;

/// A distribution, by os-release(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// As in `debian`, `ubuntu`, `fedora`.
    id: String,
    /// Those that it was made of.
    like: Vec<String>,
}

impl Distribution {
    /// That of the system below a root.
    pub fn below(root: &OwnedFd, files: &Files) -> Option<Distribution> {
        let paths = ["etc/os-release", "usr/lib/os-release"].map(Path::new);
        let mut opened = paths.iter().map(|path| files.open_beneath(root, path));
        let file = opened.find_map(Result::ok)?;
        let mut bytes = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Distribution::parse(&String::from_utf8_lossy(&bytes))
    }

    fn parse(text: &str) -> Option<Distribution> {
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once('='));
            let (_, value) = lines.find(|(key, _)| *key == name)?;
            Some(value.trim().trim_matches(['"', '\'']))
        };
        let words = |words: &str| words.split_whitespace().map(str::to_owned).collect();
        Some(Distribution {
            id: value("ID")?.to_owned(),
            like: value("ID_LIKE").map(words).unwrap_or_default(),
        })
    }

    /// The public debuginfod server that has the debug files of its packages. What none of
    /// a distribution's own has, that of elfutils may find.
    pub fn debuginfod_server(&self) -> &'static str {
        match &*self.id {
            "debian" => "https://debuginfod.debian.net",
            "ubuntu" => "https://debuginfod.ubuntu.com",
            "fedora" => "https://debuginfod.fedoraproject.org",
            "arch" => "https://debuginfod.archlinux.org",
            "centos" => "https://debuginfod.centos.org",
            "opensuse-leap" | "opensuse-tumbleweed" => "https://debuginfod.opensuse.org",
            _ => "https://debuginfod.elfutils.org",
        }
    }

    /// Whether it is of this family: itself or one that it was made of.
    pub fn is_like(&self, id: &str) -> bool {
        self.id == id || self.like.iter().any(|like| like == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_release_tells_which() {
        let debian = Distribution::parse("PRETTY_NAME=\"Debian\"\nID=debian\n").unwrap();
        assert_eq!(debian.debuginfod_server(), "https://debuginfod.debian.net");
        let rocky = Distribution::parse("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"").unwrap();
        assert!(rocky.is_like("fedora") && !rocky.is_like("debian"));
        assert_eq!(rocky.debuginfod_server(), "https://debuginfod.elfutils.org");
        assert_eq!(Distribution::parse("NAME=x"), None);
    }
}
