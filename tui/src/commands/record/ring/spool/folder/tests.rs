use super::*;
use std::time::Duration;

fn config(folder: &Path, bytes_max: u64) -> SpoolConfig {
    SpoolConfig {
        folder: folder.into(),
        window: Duration::from_secs(10),
        bytes_max,
    }
}

fn numbers(folder: &Path) -> Vec<u64> {
    let names = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut numbers: Vec<u64> = names
        .filter_map(|it| read_name(&it).map(|it| it.1))
        .collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn only_names_of_windows_are_read() {
    let id = "0123456789abcdef";
    let name = format!("{id}-0000000017.20261121T140312Z.pft");
    assert_eq!(read_name(&name), Some((id, 17)));
    for name in [
        "",
        "spool.json",
        "0123456789abcdeg-0000000017.20261121T140312Z.pft",
        "0123456789abcdef-000000001x.20261121T140312Z.pft",
        "0123456789abcdef-0000000017.20261121T140312Z.pft.bak",
        "0123456789abcdef-0000000017.2026112.T140312Z.pft",
        "0123456789abcde\u{e9}-0000000017.20261121T140312Z.pft",
        "ring.20261121T140312Z.pft",
    ] {
        assert_eq!(read_name(name), None, "{name}");
    }
}

#[test]
fn when_it_is_full_the_oldest_go_and_are_counted_and_nothing_else_is_removed() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("spool");
    let mut folder = Folder::open(&config(&path, 250)).unwrap();
    std::fs::write(path.join("notes.pft"), [0; 1000]).unwrap();
    for _ in 0..5 {
        let number = folder.take_number();
        folder.write(number, 1_795_269_792_000, &[7; 100]).unwrap();
    }
    assert_eq!(numbers(&path), [4, 5]);
    assert_eq!((folder.removed(), folder.bytes()), (3, 200));
    let refusal = folder.write(9, 0, &[7; 251]).unwrap_err();
    assert!(refusal.contains("--spool-size"), "{refusal}");
    assert_eq!(numbers(&path), [4, 5]);
    assert!(path.join("notes.pft").exists());
    drop(folder);
    // With a smaller limit than before, the next agent removes windows at once.
    let folder = Folder::open(&config(&path, 150)).unwrap();
    assert_eq!(numbers(&path), [5]);
    assert_eq!((folder.removed(), folder.windows()), (4, 1));
}

#[test]
fn no_number_is_given_twice_and_what_was_cut_off_is_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path();
    let mut folder = Folder::open(&config(path, 1000)).unwrap();
    let id = folder.memory.id.clone();
    let first = folder.take_number();
    folder.write(first, 0, b"first").unwrap();
    let killed = folder.take_number();
    drop(folder);
    let mut folder = Folder::open(&config(path, 1000)).unwrap();
    assert_eq!(folder.unwritten(), 1);
    assert_eq!(folder.take_number(), killed + 1);
    folder.write(killed + 1, 0, b"third").unwrap();
    folder.remember();
    drop(folder);
    // Without `spool.json` the folder gets a new id: earlier windows stay, and are removed first.
    std::fs::write(path.join(MEMORY_FILE), "{}").unwrap();
    let mut folder = Folder::open(&config(path, 10)).unwrap();
    assert_ne!(folder.memory.id, id);
    assert_eq!((folder.windows(), folder.unwritten()), (2, 0));
    let number = folder.take_number();
    folder.write(number, 0, b"new").unwrap();
    let left = folder.windows.iter().map(|it| read_name(&it.name).unwrap());
    let left: Vec<(&str, u64)> = left.collect();
    assert_eq!(
        left,
        [(id.as_str(), killed + 1), (folder.memory.id.as_str(), 1)]
    );
}

#[test]
fn who_may_list_the_folder_may_read_its_windows() {
    let scratch = tempfile::tempdir().unwrap();
    for (of_folder, of_files) in [(0o700, 0o600), (0o750, 0o640), (0o755, 0o644)] {
        let path = scratch.path().join(format!("{of_folder:o}"));
        std::fs::create_dir(&path).unwrap();
        let permissions = std::fs::Permissions::from_mode(of_folder);
        std::fs::set_permissions(&path, permissions).unwrap();
        let mut folder = Folder::open(&config(&path, 1000)).unwrap();
        let number = folder.take_number();
        folder.write(number, 0, b"window").unwrap();
        for name in [&*folder.windows[0].name, MEMORY_FILE] {
            let status = std::fs::metadata(path.join(name)).unwrap();
            assert_eq!(status.permissions().mode() & 0o777, of_files, "{name}");
        }
    }
}

#[test]
fn two_agents_do_not_write_into_one_folder() {
    let scratch = tempfile::tempdir().unwrap();
    let _first = Folder::open(&config(scratch.path(), 1000)).unwrap();
    let second = Folder::open(&config(scratch.path(), 1000)).map(drop);
    assert!(second.unwrap_err().message.contains("another agent"));
}
