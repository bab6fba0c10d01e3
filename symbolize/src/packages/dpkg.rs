//! The database of dpkg: one file lists the packages, and for each of them another file lists its
//! files. deb-control(5) and dpkg-query(1) describe their format.

use super::{Manager, Owner, Reader, Wanted};
use memchr::memmem;
use std::os::unix::ffi::OsStrExt as _;

pub(super) const STATUS: &str = "var/lib/dpkg/status";

/// Maximum number of packages, three times as many as Debian has.
const PACKAGES_MAX: usize = 200_000;

/// Finds the packages that have these files.
pub fn find(reader: &mut Reader<'_>, wanted: &[Wanted], owners: &mut [Option<Owner>]) {
    let Some(status) = reader.read(STATUS) else {
        return;
    };
    for package in packages(&status).take(PACKAGES_MAX) {
        if owners.iter().all(Option::is_some) {
            return;
        }
        let Some(list) = package.list(reader) else {
            continue;
        };
        for (wanted, owner) in wanted.iter().zip(&mut *owners) {
            let mut paths = wanted.paths.iter().map(|path| path.as_os_str().as_bytes());
            if owner.is_none() && paths.any(|path| has_line(&list, path)) {
                *owner = Some(Owner::new(Manager::Dpkg, package.name, package.version));
            }
        }
    }
}

/// Returns the package with the debug symbols of another package's files. Most are made by
/// debhelper and end in `-dbgsym`; a few are older.
pub fn symbols(package: &str) -> String {
    if package == "libc6" {
        return "libc6-dbg".into();
    }
    // Interpreter and library have their symbols in one package.
    let python = package.strip_prefix("lib").unwrap_or(package);
    if let Some(version) = python.strip_prefix("python3.") {
        let minor: String = version.chars().take_while(char::is_ascii_digit).collect();
        if !minor.is_empty() {
            return format!("python3.{minor}-dbg");
        }
    }
    if let Some(rest) = package.strip_prefix("openjdk-")
        && let Some((version, _)) = rest.split_once("-jre")
    {
        return format!("openjdk-{version}-dbg");
    }
    format!("{package}-dbgsym")
}

/// An installed package.
struct Package<'a> {
    name: &'a [u8],
    version: &'a [u8],
    architecture: &'a [u8],
    /// Whether several architectures of it can be installed side by side.
    is_multi: bool,
}

impl Package<'_> {
    /// Returns the paths of its files, one in each line.
    fn list(&self, reader: &mut Reader<'_>) -> Option<Vec<u8>> {
        let name = str::from_utf8(self.name).ok()?;
        let architecture = str::from_utf8(self.architecture).ok()?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        if !name.chars().all(is_name) || !architecture.chars().all(is_name) {
            return None;
        }
        if self.is_multi {
            reader.read(&format!("var/lib/dpkg/info/{name}:{architecture}.list"))
        } else {
            reader.read(&format!("var/lib/dpkg/info/{name}.list"))
        }
    }
}

/// Parses paragraphs of lines `Name: value`, separated by empty lines.
fn packages(status: &[u8]) -> impl Iterator<Item = Package<'_>> {
    let mut rest = status;
    let paragraphs = std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memmem::find(rest, b"\n\n");
        let (paragraph, after) = match end {
            Some(end) => (&rest[..end], &rest[end + 2..]),
            None => (rest, &rest[rest.len()..]),
        };
        rest = after;
        Some(paragraph)
    });
    paragraphs.filter_map(|paragraph| {
        let mut package = Package {
            name: b"",
            version: b"",
            architecture: b"",
            is_multi: false,
        };
        let mut is_installed = false;
        for line in paragraph.split(|byte| *byte == b'\n') {
            let Some(colon) = memchr::memchr(b':', line) else {
                continue;
            };
            let value = line[colon + 1..].trim_ascii();
            match &line[..colon] {
                b"Package" => package.name = value,
                b"Version" => package.version = value,
                b"Architecture" => package.architecture = value,
                b"Multi-Arch" => package.is_multi = value == b"same",
                b"Status" => is_installed = value.ends_with(b" installed"),
                _ => {}
            }
        }
        (is_installed && !package.name.is_empty()).then_some(package)
    })
}

fn has_line(text: &[u8], line: &[u8]) -> bool {
    memmem::find_iter(text, line).any(|at| {
        let end = at + line.len();
        (at == 0 || text[at - 1] == b'\n') && text.get(end).is_none_or(|byte| *byte == b'\n')
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{owner_of, root};
    use super::*;

    const STATUS_TEXT: &[u8] = b"\
Package: zlib1g\nStatus: install ok installed\nArchitecture: amd64\nMulti-Arch: same\n\
Version: 1:1.2.13\nDescription: library\n Package: not this one\n\n\
Package: gone\nStatus: deinstall ok config-files\nArchitecture: all\nVersion: 1\n\n\
Package: tool\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2-3\n";

    #[test]
    fn a_file_is_in_the_list_of_its_package() {
        let (_directory, root) = root(&[
            (STATUS, STATUS_TEXT),
            (
                "var/lib/dpkg/info/zlib1g:amd64.list",
                b"/.\n/lib\n/lib/x86_64-linux-gnu/libz.so.1.2.13\n",
            ),
            ("var/lib/dpkg/info/gone.list", b"/usr/bin/gone\n"),
            (
                "var/lib/dpkg/info/tool.list",
                b"/usr/bin/tool\n/usr/bin/tool-b",
            ),
        ]);
        let found = |path| owner_of(&root, path);
        let zlib = Some(("zlib1g".to_owned(), "1:1.2.13".to_owned()));
        assert_eq!(found("/usr/lib/x86_64-linux-gnu/libz.so.1.2.13"), zlib);
        let tool = Some(("tool".to_owned(), "2-3".to_owned()));
        assert_eq!(found("/usr/bin/tool"), tool);
        assert_eq!(found("/usr/bin/tool-b"), tool);
        assert_eq!(
            found("/usr/bin/too"),
            None,
            "a part of a name is another name"
        );
        assert_eq!(found("/usr/bin/gone"), None, "it is not installed any more");
    }

    #[test]
    fn names_of_packages_lead_nowhere_else() {
        let status = b"Package: ../../../etc/x\nStatus: install ok installed\nVersion: 1\n";
        let (_directory, root) = root(&[(STATUS, status), ("etc/x.list", b"/usr/bin/tool\n")]);
        assert_eq!(owner_of(&root, "/usr/bin/tool"), None);
    }

    #[test]
    fn where_symbols_are() {
        let cases = [
            ("libc6", "libc6-dbg"),
            ("python3.11-minimal", "python3.11-dbg"),
            ("libpython3.11-stdlib", "python3.11-dbg"),
            ("python3-numpy", "python3-numpy-dbgsym"),
            ("openjdk-17-jre-headless", "openjdk-17-dbg"),
            ("postgresql-15", "postgresql-15-dbgsym"),
        ];
        for (package, expected) in cases {
            assert_eq!(symbols(package), expected);
        }
    }
}
