//! Finds the symbols of a Mach-O file that are in a separate file.

use std::path::{Path, PathBuf};

/// Returns the file with the symbols of a program: inside of the directory `X.dSYM` beside it.
/// Given such a directory itself, returns the file in it.
pub fn dsym_of(path: &Path) -> Option<PathBuf> {
    let inside = |bundle: &Path| bundle.join("Contents/Resources/DWARF");
    if path
        .extension()
        .is_some_and(|extension| extension == "dSYM")
    {
        let files = std::fs::read_dir(inside(path)).ok()?;
        let mut files: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
        files.sort_unstable();
        return files.into_iter().find(|file| file.is_file());
    }
    let name = path.file_name()?;
    let mut bundle = name.to_os_string();
    bundle.push(".dSYM");
    let file = inside(&path.with_file_name(bundle)).join(name);
    file.is_file().then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_the_program_or_given() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("app");
        assert_eq!(dsym_of(&program), None);
        let bundle = directory.path().join("app.dSYM");
        let inside = bundle.join("Contents/Resources/DWARF");
        std::fs::create_dir_all(&inside).unwrap();
        assert_eq!(dsym_of(&bundle), None);
        std::fs::write(inside.join("app"), "").unwrap();
        assert_eq!(dsym_of(&program), Some(inside.join("app")));
        assert_eq!(dsym_of(&bundle), Some(inside.join("app")));
    }
}
