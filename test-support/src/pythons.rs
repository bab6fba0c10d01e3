use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Minor versions of CPython whose frames are walked.
const MINORS: RangeInclusive<u32> = 8..=15;

/// The reason for skipping a test if [`pythons`] finds none.
pub const NO_PYTHON: &str = "no python3.8 to python3.15 is here";

/// Returns the interpreters of this machine whose frames are walked, by version (`3.12.1`): those
/// below `~/.pyenv`, those of the system, and those that `.ci/pythons` has unpacked.
pub fn pythons() -> BTreeMap<String, PathBuf> {
    let mut places = Vec::new();
    if let Some(home) = std::env::var_os("HOME") {
        let versions = below(&Path::new(&home).join(".pyenv/versions"));
        places.extend(versions.map(|version| version.join("bin/python3")));
    }
    let system = MINORS.map(|minor| PathBuf::from(format!("/usr/bin/python3.{minor}")));
    places.extend(system);
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/pythons");
    places.extend(below(&unpacked).map(|version| version.join("python3")));
    let mut found = BTreeMap::new();
    for place in places {
        let told = "import platform, sys; print(platform.python_version(), sys.version_info[1])";
        let Ok(output) = Command::new(&place).args(["-c", told]).output() else {
            continue;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        if let Some((version, minor)) = text.trim().split_once(' ')
            && minor.parse().is_ok_and(|minor| MINORS.contains(&minor))
        {
            found.entry(version.into()).or_insert(place);
        }
    }
    found
}

fn below(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.flatten().map(|entry| entry.path())
}
