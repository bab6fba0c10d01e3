//! Identifies the distribution of a system.

use super::Reader;
use crate::wire::{Taken, put_bytes, put_u32};

/// Maximum size of os-release and of lists of archives. They have some 20 lines.
const BYTES_MAX: u64 = 64 << 10;

/// Maximum length of an identifier or codename, and number of identifiers. Those of distributions have
/// some ten letters, and there are one or two.
const TEXT_BYTES_MAX: usize = 1 << 10;
const LIKE_MAX: u32 = 32;

/// Files that identify a system; the first that can be read is used.
const RELEASES: [&str; 2] = ["etc/os-release", "usr/lib/os-release"];

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
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Distribution> {
        let mut read = |path: &&str| {
            let bytes = reader.read_beginning(path, BYTES_MAX)?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let mut found = Distribution::parse(&RELEASES.iter().find_map(&mut read)?)?;
        if found.is_like("debian") {
            let mut archives = ARCHIVES.iter().filter_map(read);
            found.has_debug_archive = archives.any(|text| names_debug_archive(&text));
        }
        Some(found)
    }

    /// Appends it to a message.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.id.as_bytes());
        put_bytes(out, self.codename.as_bytes());
        out.push(self.has_debug_archive.into());
        put_u32(out, self.like.len() as u32);
        self.like
            .iter()
            .for_each(|id| put_bytes(out, id.as_bytes()));
    }

    /// Reads it from a message of a stranger; `None` if the bytes are malformed.
    pub(crate) fn read_message(told: &mut Taken<'_>) -> Option<Distribution> {
        let text = |told: &mut Taken<'_>| {
            let bytes = told.bytes().filter(|bytes| bytes.len() <= TEXT_BYTES_MAX)?;
            String::from_utf8(bytes.to_vec()).ok()
        };
        let (id, codename) = (text(told)?, text(told)?);
        let has_debug_archive = told.u8()? == 1;
        let count = told.u32().filter(|count| *count <= LIKE_MAX)?;
        let like = (0..count).map(|_| text(told));
        let like = like.collect::<Option<_>>()?;
        Some(Distribution {
            id,
            like,
            codename: can_be_typed(&codename).then_some(codename)?,
            has_debug_archive,
        })
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
        let fits = |text: &&str| text.len() <= TEXT_BYTES_MAX;
        let words = |words: &str| {
            let words = words.split_whitespace().filter(|word| fits(word));
            words.take(LIKE_MAX as usize).map(str::to_owned).collect()
        };
        Some(Distribution {
            id: value("ID").filter(fits)?.to_owned(),
            like: value("ID_LIKE").map(words).unwrap_or_default(),
            codename: value("VERSION_CODENAME")
                .filter(|name| fits(name) && can_be_typed(name))
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

/// Whether a path below the root of a system is one of those that are read to identify it.
pub(super) fn is_read(path: &str) -> bool {
    RELEASES.iter().chain(&ARCHIVES).any(|read| *read == path)
}

/// Whether a codename can be typed into a shell without quotes.
fn can_be_typed(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric())
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
    fn it_arrives_as_it_was_found() {
        let text = "ID=\"rocky\"\nID_LIKE=\"rhel fedora\"\nVERSION_CODENAME=green";
        let rocky = Distribution {
            has_debug_archive: true,
            ..Distribution::parse(text).unwrap()
        };
        let mut bytes = Vec::new();
        rocky.write(&mut bytes);
        for len in 0..bytes.len() {
            let cut = Distribution::read_message(&mut Taken(&bytes[..len]));
            assert_eq!(cut, None, "of {len} bytes");
        }
        assert_eq!(
            Distribution::read_message(&mut Taken(&bytes)),
            Some(rocky.clone())
        );
        let odd = Distribution {
            codename: "a;b".into(),
            ..rocky
        };
        bytes.clear();
        odd.write(&mut bytes);
        let read = Distribution::read_message(&mut Taken(&bytes));
        assert_eq!(read, None, "its codename is typed into a shell");
    }

    #[test]
    fn an_archive_of_debug_symbols_is_known_or_named() {
        let of = |lists: &[(&str, &[u8])]| {
            let release: (&str, &[u8]) =
                ("etc/os-release", b"ID=debian\nVERSION_CODENAME=bookworm\n");
            let (_directory, root) = super::super::tests::root(&[&[release], lists].concat());
            let files = crate::Files::from(crate::RemoteFiles::Skip);
            Distribution::read(&mut Reader::new(&root, &files)).unwrap()
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
