//! Identifies the distribution of a system.

use crate::Files;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Maximum size of os-release and of lists of archives. They have some 20 lines.
const BYTES_MAX: u64 = 64 << 10;

/// A distribution, by os-release(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// Identifier, such as `debian`, `ubuntu`, `fedora`.
    id: String,
    /// Identifiers of the distributions that it is derived from.
    like: Vec<String>,
    /// Codename, such as `bookworm`; empty if it has none that can be typed.
    codename: String,
    /// Whether apt is configured with an archive of debug symbols.
    has_debug_archive: bool,
}

/// Files in which archives are configured for apt. The directory cannot be listed, so these are the
/// usual names.
const ARCHIVES: [&str; 10] = [
    "etc/apt/sources.list",
    "etc/apt/sources.list.d/debian.sources",
    "etc/apt/sources.list.d/ubuntu.sources",
    "etc/apt/sources.list.d/debug.list",
    "etc/apt/sources.list.d/debug.sources",
    "etc/apt/sources.list.d/debian-debug.list",
    "etc/apt/sources.list.d/debian-debug.sources",
    "etc/apt/sources.list.d/dbgsym.list",
    "etc/apt/sources.list.d/ddebs.list",
    "etc/apt/sources.list.d/ddebs.sources",
];

impl Distribution {
    /// Identifies the system below a root.
    pub fn below(root: &OwnedFd, files: &Files) -> Option<Distribution> {
        let paths = ["etc/os-release", "usr/lib/os-release"].map(Path::new);
        let read = |path: &Path| {
            let file = files.open_beneath(root, path).ok()?;
            let mut bytes = Vec::new();
            file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let mut found = Distribution::parse(&paths.into_iter().find_map(read)?)?;
        if found.is_like("debian") {
            let mut archives = ARCHIVES.iter().filter_map(|path| read(Path::new(path)));
            found.has_debug_archive = archives.any(|text| names_debug_archive(&text));
        }
        Some(found)
    }

    /// Whether apt is configured with an archive that has the packages with debug symbols.
    pub fn has_debug_archive(&self) -> bool {
        self.has_debug_archive
    }

    /// Returns the line for a list of archives that adds the archive with debug symbols to apt, and
    /// the package that has its key, if that is not installed anyway. `None` for a distribution
    /// whose archive is unknown.
    pub fn debug_archive(&self) -> Option<(String, Option<&'static str>)> {
        let codename = &self.codename;
        if codename.is_empty() {
            return None;
        }
        match &*self.id {
            "debian" => {
                let suite = format!("{codename}-debug");
                let url = "http://deb.debian.org/debian-debug/";
                Some((format!("deb {url} {suite} main"), None))
            }
            "ubuntu" => {
                let url = "http://ddebs.ubuntu.com/";
                let parts = "main restricted universe multiverse";
                let line = format!("deb {url} {codename} {parts}");
                Some((line, Some("ubuntu-dbgsym-keyring")))
            }
            _ => None,
        }
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
            codename: value("VERSION_CODENAME")
                .filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric()))
                .unwrap_or_default()
                .to_owned(),
            has_debug_archive: false,
        })
    }

    /// Returns the public debuginfod server for the distribution's packages; elfutils' server for
    /// distributions that have none of their own.
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

    /// Whether it is this distribution, or derived from it.
    pub fn is_like(&self, id: &str) -> bool {
        self.id == id || self.like.iter().any(|like| like == id)
    }
}

/// Whether a list of archives has one with debug symbols: with a suite such as `bookworm-debug`, or
/// Ubuntu's.
fn names_debug_archive(text: &str) -> bool {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(line));
    let mut words = lines.flat_map(str::split_whitespace);
    words.any(|word| word.ends_with("-debug") || word.contains("ddebs.ubuntu.com"))
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

    #[test]
    fn an_archive_of_debug_symbols_is_known_or_named() {
        let of = |lists: &[(&str, &[u8])]| {
            let release: (&str, &[u8]) =
                ("etc/os-release", b"ID=debian\nVERSION_CODENAME=bookworm\n");
            let (_directory, root) = super::super::tests::root(&[&[release], lists].concat());
            let files = Files::from(crate::RemoteFiles::Skip);
            Distribution::below(&root, &files).unwrap()
        };
        let line = "deb http://deb.debian.org/debian-debug/ bookworm-debug main";
        let without = of(&[(
            "etc/apt/sources.list",
            b"deb http://deb.debian.org/debian bookworm main\n# deb x bookworm-debug main\n",
        )]);
        assert!(!without.has_debug_archive());
        assert_eq!(without.debug_archive(), Some((line.into(), None)));
        let list = format!("{line}\n");
        assert!(of(&[("etc/apt/sources.list.d/debug.list", list.as_bytes())]).has_debug_archive());
        let deb822: &[u8] = b"Types: deb\nSuites: bookworm bookworm-debug\n";
        assert!(of(&[("etc/apt/sources.list.d/debian.sources", deb822)]).has_debug_archive());
        let odd = Distribution::parse("ID=debian\nVERSION_CODENAME=a;b").unwrap();
        assert_eq!(odd.debug_archive(), None, "it is typed into a shell");
    }
}
