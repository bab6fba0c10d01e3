use std::fs;
use std::path::Path;

/// Asserts that each file of tests in `folder` has a line `mod NAME;` in `list`, the file whose
/// modules they are. Cargo does not look for files there, so a forgotten one would never run.
pub fn assert_all_listed(folder: &Path, list: &Path) {
    let text = fs::read_to_string(list).expect("the list can be read");
    let mut files = 0;
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("readable").path();
        if path.extension().is_some_and(|kind| kind == "rs") && path != list {
            let stem = path.file_stem().expect("a name").display().to_string();
            assert!(text.contains(&format!("\nmod {stem};\n")), "{stem}");
            files += 1;
        }
    }
    assert!(files > 0, "{} has no tests", folder.display());
}
