//! The database of rpm since version 4.16: an SQLite file with all packages, each a *header* as in
//! package files, and a table that maps the last component of paths to packages. Older databases,
//! of Berkeley DB, are not supported.
//!
//! A header is a list of entries (tag, type, offset, count), four words each, followed by the data
//! that they refer to (rpm's `docs/manual/hregions.md`).

use super::sqlite::{Database, Value};
use super::{Manager, Owner, Reader, Wanted};
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;

pub(super) const PLACES: [&str; 2] = [
    "usr/lib/sysimage/rpm/rpmdb.sqlite",
    "var/lib/rpm/rpmdb.sqlite",
];

/// Maximum number of packages that have a file of the same name, in any directory.
const NAMESAKES_MAX: usize = 1_000;

// rpm's `include/rpm/rpmtag.h`
const NAME: u32 = 1000;
const VERSION: u32 = 1001;
const RELEASE: u32 = 1002;
const DIRECTORY_INDEXES: u32 = 1116;
const BASE_NAMES: u32 = 1117;
const DIRECTORY_NAMES: u32 = 1118;

/// Finds the packages that have these files.
pub fn find(reader: &mut Reader<'_>, wanted: &[Wanted], owners: &mut [Option<Owner>]) {
    let Some(bytes) = PLACES.iter().find_map(|place| reader.read(place)) else {
        return;
    };
    _ = find_in(&bytes, wanted, owners);
}

fn find_in(bytes: &[u8], wanted: &[Wanted], owners: &mut [Option<Owner>]) -> Option<()> {
    let database = Database::new(bytes)?;
    let (names, packages) = (database.table("Basenames")?, database.table("Packages")?);
    let of_files = |path: &Wanted| {
        path.paths[0]
            .file_name()
            .map(|name| name.as_bytes().to_vec())
    };
    let files: Vec<_> = wanted.iter().map(of_files).collect();
    // Number of the package, and index of the file in it.
    let mut namesakes = BTreeSet::new();
    database.visit(names, &mut |row| {
        if let Some(Value::Bytes(name)) = row.value(0)
            && files.iter().flatten().any(|file| file == name)
            && let Some(package) = row.value(1).and_then(Value::integer)
            && let Some(file) = row.value(2).and_then(Value::integer)
        {
            namesakes.insert((package, file));
        }
        namesakes.len() < NAMESAKES_MAX
    });
    for (package, file) in namesakes {
        let Some(row) = database.row(packages, package) else {
            continue;
        };
        let Some(Value::Bytes(header)) = row.value(1) else {
            continue;
        };
        let header = Header(header);
        let Some(path) = usize::try_from(file)
            .ok()
            .and_then(|file| header.path(file))
        else {
            continue;
        };
        for (wanted, owner) in wanted.iter().zip(&mut *owners) {
            let mut paths = wanted.paths.iter();
            if owner.is_none() && paths.any(|wanted| wanted.as_os_str().as_bytes() == path) {
                *owner = header.owner();
            }
        }
    }
    Some(())
}

/// A package's header.
struct Header<'a>(&'a [u8]);

impl<'a> Header<'a> {
    fn owner(&self) -> Option<Owner> {
        let string = |tag| self.strings(tag)?.next();
        let version = [string(VERSION)?, string(RELEASE)?].join(&b'-');
        Some(Owner::new(Manager::Rpm, string(NAME)?, &version))
    }

    /// Returns the path of a file, by its index.
    fn path(&self, file: usize) -> Option<Vec<u8>> {
        let name = self.strings(BASE_NAMES)?.nth(file)?;
        let (_, indexes) = self.data(DIRECTORY_INDEXES)?;
        let directory = self.word_of(indexes.get(file.checked_mul(4)?..)?, 0)?;
        let directory = self.strings(DIRECTORY_NAMES)?.nth(directory as usize)?;
        Some([directory, name].concat())
    }

    fn strings(&self, tag: u32) -> Option<impl Iterator<Item = &'a [u8]>> {
        let (count, data) = self.data(tag)?;
        Some(data.split(|byte| *byte == 0).take(count as usize))
    }

    /// Returns the number of values of a tag, and where they begin.
    fn data(&self, tag: u32) -> Option<(u32, &'a [u8])> {
        let entries = self.word_of(self.0, 0)? as usize;
        let mut found = self.0.get(8..)?.chunks_exact(16).take(entries);
        let entry = found.find(|entry| self.word_of(entry, 0) == Some(tag))?;
        let offset = self.word_of(entry, 8)? as usize;
        let start = entries
            .checked_mul(16)?
            .checked_add(8)?
            .checked_add(offset)?;
        Some((self.word_of(entry, 12)?, self.0.get(start..)?))
    }

    fn word_of(&self, bytes: &[u8], at: usize) -> Option<u32> {
        Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{owner_of, root};
    use super::*;
    use std::path::Path;
    use std::process::Command;
    use test_support::{Random, run_tool};

    /// A Python script that makes a database as rpm has it, with the SQLite library. The
    /// header of most packages lists hundreds of files, and takes several pages of the database.
    const SCRIPT: &str = r#"
import sqlite3, struct, sys
def header(name, version, release, files):
    dirs = sorted({f.rsplit("/", 1)[0] + "/" for f in files})
    data = b""
    entries = []
    def put(tag, kind, count, value):
        global_offset = len(data)
        entries.append(struct.pack(">IIII", tag, kind, global_offset, count))
        return data + value
    z = lambda words: b"".join(w.encode() + b"\0" for w in words)
    data = put(1000, 6, 1, z([name]))
    data = put(1001, 6, 1, z([version]))
    data = put(1002, 6, 1, z([release]))
    data += b"\0" * (-len(data) % 4)
    data = put(1116, 4, len(files), b"".join(struct.pack(">I", dirs.index(f.rsplit("/", 1)[0] + "/")) for f in files))
    data = put(1117, 8, len(files), z([f.rsplit("/", 1)[1] for f in files]))
    data = put(1118, 8, len(dirs), z(dirs))
    return struct.pack(">II", len(entries), len(data)) + b"".join(entries) + data
db = sqlite3.connect(sys.argv[1])
db.execute("CREATE TABLE 'Packages' (hnum INTEGER PRIMARY KEY AUTOINCREMENT, blob BLOB NOT NULL)")
db.execute("CREATE TABLE 'Basenames' (key TEXT NOT NULL, hnum INTEGER NOT NULL, idx INTEGER NOT NULL)")
for n in range(400):
    files = [f"/usr/share/p{n}/file-{i}" for i in range(n * 3)] + [f"/usr/lib64/libp{n}.so.1", f"/opt/{n}/same"]
    hnum = db.execute("INSERT INTO Packages (blob) VALUES (?)", (header(f"p{n}", "1.2", f"{n}.el9", files),)).lastrowid
    for i, f in enumerate(files):
        db.execute("INSERT INTO Basenames VALUES (?, ?, ?)", (f.rsplit("/", 1)[1], hnum, i))
db.commit()
"#;

    fn database() -> Option<Vec<u8>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rpmdb.sqlite");
        run_tool(Command::new("python3").args(["-c", SCRIPT]).arg(&path))?;
        Some(std::fs::read(path).unwrap())
    }

    #[test]
    fn a_file_is_of_the_package_with_its_whole_path() {
        let Some(bytes) = database() else {
            return;
        };
        let (_directory, root) = root(&[("var/lib/rpm/rpmdb.sqlite", &bytes)]);
        for number in [0, 1, 57, 399] {
            let expected = Some((format!("p{number}"), format!("1.2-{number}.el9")));
            for path in ["/usr/lib64/libpN.so.1", "/lib64/libpN.so.1", "/opt/N/same"] {
                let path = path.replace('N', &number.to_string());
                assert_eq!(owner_of(&root, &path), expected, "{path}");
            }
        }
        assert_eq!(owner_of(&root, "/srv/same"), None);
    }

    #[test]
    fn damage_is_harmless() {
        let Some(bytes) = database() else {
            return;
        };
        let wanted = [Wanted::new(Path::new("/opt/57/same"))];
        let mut random = Random::new(7);
        for round in 0..200 {
            let mut bytes = bytes.clone();
            for _ in 0..1 + round {
                let at = random.index(bytes.len());
                bytes[at] = random.byte();
            }
            if round % 3 == 0 {
                bytes.truncate(random.index(bytes.len()));
            }
            _ = find_in(&bytes, &wanted, &mut [None]);
        }
    }
}
