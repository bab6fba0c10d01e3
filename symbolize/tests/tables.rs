//! Tables on disk: the next run finds them, and answers with them are never worse than without.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::support::compile;
use symbolize::debug_file::DebugFiles;
use symbolize::object::Object;
use symbolize::table::pool::KnownTexts;
use symbolize::table::{CHAIN_MAX, Extras, SymbolEntry, Symbols, Table};
use symbolize::{
    FileOffset, FileSource, Lines, LinkAddr, RemoteFiles, Resolver, Symbolizer, TableCache,
};
use test_support::Random;

struct Run {
    directory: tempfile::TempDir,
    program: PathBuf,
}

impl Run {
    fn new() -> Option<Run> {
        let directory = tempfile::tempdir().unwrap();
        let flags = ["-O2", "-g", "-Wl,--build-id=sha1"];
        let program = compile(directory.path(), "lines.c", "program", &flags)?;
        Some(Run { directory, program })
    }

    fn cache(&self, bytes_max: u64) -> TableCache {
        TableCache::open(self.directory.path(), bytes_max).unwrap()
    }

    fn files(&self) -> Vec<PathBuf> {
        let place = self.directory.path().join("proftop/symbols/v5");
        let entries = fs::read_dir(place).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    fn lines(&self, cache: &TableCache) -> Lines {
        let object = Object::read(&File::open(&self.program).unwrap()).unwrap();
        let files = DebugFiles::of(&FileSource::new(&self.program), RemoteFiles::Open);
        let lines = Lines::open(&object, files, Some(cache), 1 << 30);
        lines.unwrap().expect("it has debug information")
    }
}

/// Returns function and line at every address of the program.
fn answers(lines: &Lines, program: &Path) -> Vec<Vec<(Vec<u8>, u32)>> {
    let len = fs::metadata(program).unwrap().len();
    let answer = |offset| match lines.find(FileOffset(offset)) {
        Some((table, addr)) => {
            let frames = table
                .find(addr)
                .map(|f| (f.function.unwrap_or_default().to_vec(), f.line));
            frames.collect()
        }
        None => Vec::new(),
    };
    (0..len).step_by(3).map(answer).collect()
}

/// Functions from a list.
#[derive(Debug)]
struct Listed<'n>(Vec<SymbolEntry<'n>>);

impl Symbols for Listed<'_> {
    fn first(&self) -> Option<u64> {
        self.0.first().map(|entry| entry.start)
    }

    fn entries(&self) -> Vec<SymbolEntry<'_>> {
        self.0.clone()
    }
}

#[test]
fn the_next_run_finds_it_and_it_says_the_same() {
    let Some(run) = Run::new() else { return };
    let cache = run.cache(u64::MAX);
    let first = run.lines(&cache);
    assert!(!first.is_finished());
    let units = answers(&first, &run.program);
    assert!(units.iter().any(|frames| frames.len() > 1));
    first.finish(Some(&cache), 2).unwrap();
    assert!(first.is_finished());
    assert_eq!(first.unread_bytes(), 0);
    assert_eq!(answers(&first, &run.program), units);

    let second = run.lines(&run.cache(u64::MAX));
    assert!(second.is_finished());
    assert_eq!(answers(&second, &run.program), units);
    assert_eq!(run.files().len(), 1);
}

#[test]
fn a_damaged_one_is_made_again() {
    let Some(run) = Run::new() else { return };
    let symbolizer = || {
        Symbolizer::new()
            .with_files(RemoteFiles::Open)
            .with_tables(run.cache(u64::MAX))
    };
    let first = run.lines(&run.cache(u64::MAX));
    let expected = answers(&first, &run.program);
    first.finish(Some(&run.cache(u64::MAX)), 1).unwrap();
    let good = fs::read(&run.files()[0]).unwrap();
    for at in [0, 9, 100, 300, good.len() / 2, good.len() - 1] {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        fs::write(&run.files()[0], &bytes).unwrap();
        let symbolizer = symbolizer();
        let ours = fs::metadata(&run.program).unwrap();
        use std::os::unix::fs::MetadataExt as _;
        let source = FileSource {
            inode: ours.ino(),
            device: (rustix::fs::major(ours.dev()), rustix::fs::minor(ours.dev())),
            ..FileSource::new(&run.program)
        };
        // The damage is found when the table is opened, or during a look-up; then the look-up is
        // repeated.
        for _ in 0..2 {
            let lines = symbolizer.lines(source).unwrap().unwrap();
            answers(&lines, &run.program);
        }
        let lines = symbolizer.lines(source).unwrap().unwrap();
        assert_eq!(answers(&lines, &run.program), expected, "{at}");
        lines.finish(symbolizer.tables(), 1).unwrap();
        assert_eq!(fs::read(&run.files()[0]).unwrap(), good, "{at}");
    }
}

#[test]
fn without_a_place_to_write_there_are_lines_all_the_same() {
    let Some(run) = Run::new() else { return };
    let cache = run.cache(u64::MAX);
    fs::remove_dir_all(run.directory.path().join("proftop")).unwrap();
    let lines = run.lines(&cache);
    let expected = answers(&lines, &run.program);
    lines.finish(Some(&cache), 1).unwrap();
    assert!(lines.is_finished());
    assert_eq!(answers(&lines, &run.program), expected);

    let full = run.cache(100);
    let lines = run.lines(&full);
    lines.finish(Some(&full), 1).unwrap();
    assert_eq!(answers(&lines, &run.program), expected);
    assert_eq!(run.files(), Vec::<PathBuf>::new());
}

#[test]
fn the_oldest_leave_first() {
    let Some(run) = Run::new() else { return };
    let cache = run.cache(u64::MAX);
    run.lines(&cache).finish(Some(&cache), 1).unwrap();
    let first = run.files().remove(0);
    let bytes = fs::metadata(&first).unwrap().len();
    for (number, age) in [(1, 300), (2, 100), (3, 200)] {
        let copy = first.with_file_name(format!("{number}"));
        fs::copy(&first, &copy).unwrap();
        let used = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
        File::options()
            .write(true)
            .open(&copy)
            .unwrap()
            .set_modified(used)
            .unwrap();
    }
    // They leave when one more is stored.
    fs::remove_file(&first).unwrap();
    let cache = run.cache(bytes * 3);
    run.lines(&cache).finish(Some(&cache), 1).unwrap();
    let mut left: Vec<_> = run
        .files()
        .iter()
        .map(|f| f.file_name().unwrap().to_owned())
        .collect();
    left.sort();
    assert_eq!(left.len(), 2);
    assert!(left.iter().any(|name| name == "2"), "used last but one");
    assert!(first.exists(), "stored last");
}

/// Names as long as those of templates, of all lengths around the size of blocks, between
/// short ones; read from memory and from a file.
#[test]
fn long_names_are_whole_and_very_long_ones_are_cut() {
    const CUT: usize = 64 << 10;
    let lens = [
        3,
        8187,
        8188,
        8189,
        5,
        16_384,
        20_000,
        1,
        CUT,
        CUT + 1,
        9,
        8192,
    ];
    let name = |(index, len): (usize, &usize)| -> Vec<u8> {
        let letter = |at: usize| b'a' + ((at / 100 + index) % 26) as u8;
        (0..*len).map(letter).collect()
    };
    let names: Vec<Vec<u8>> = lens.iter().enumerate().map(name).collect();
    let symbol = |(index, name)| SymbolEntry {
        start: 0x1000 + 16 * index,
        within: 0,
        size: 16,
        name,
    };
    let symbols = (0u64..).zip(names.iter().map(Vec::as_slice)).map(symbol);
    let symbols = Listed(symbols.collect());
    let extras = Extras {
        key: b"key",
        symbols: Some(&symbols),
        ..Extras::default()
    };
    let bytes = symbolize::table::write(Vec::new(), &KnownTexts::default(), &extras).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &bytes).unwrap();
    let tables = [Table::from_bytes(bytes), Table::from_file(file)];
    for table in tables.map(Result::unwrap) {
        // Twice, because a text that was assembled is kept.
        for _ in 0..2 {
            for (at, name) in (0..).zip(&names) {
                let found = table.symbol(LinkAddr(0x1000 + 16 * at + 3)).unwrap();
                assert!(found.name == &name[..name.len().min(CUT)], "{}", name.len());
            }
        }
        assert_eq!(table.key(), b"key");
        assert!(!table.is_damaged());
    }
}

/// The same with debug information, unit by unit and from the whole table.
#[test]
fn a_function_with_a_long_name_has_it_everywhere() {
    let directory = tempfile::tempdir().unwrap();
    let name = "long_".repeat(4000);
    let source = directory.path().join("long.c");
    let text =
        format!("int {name}(int a) {{ return a + 1; }}\nint main(void) {{ return {name}(2); }}");
    fs::write(&source, text).unwrap();
    let program = directory.path().join("program");
    let flags = ["-g", "-O0", "-Wl,--build-id=sha1"];
    if test_support::compile(&source, &program, flags).is_none() {
        return;
    }
    let run = Run { directory, program };
    let cache = run.cache(u64::MAX);
    let lines = run.lines(&cache);
    let has_it = |lines: &Lines| {
        let answers = answers(lines, &run.program);
        let mut frames = answers.iter().flatten();
        frames.any(|(function, line)| *function == name.as_bytes() && *line == 1)
    };
    assert!(has_it(&lines));
    lines.finish(Some(&cache), 1).unwrap();
    assert!(has_it(&lines));
    assert!(has_it(&run.lines(&run.cache(u64::MAX))), "from disk");
}

/// The cache gives no answers for another program with the same build-id.
#[test]
fn a_forged_build_id_finds_nothing() {
    let Some(run) = Run::new() else { return };
    let cache = run.cache(u64::MAX);
    run.lines(&cache).finish(Some(&cache), 1).unwrap();
    let mut bytes = fs::read(&run.program).unwrap();
    bytes.extend([0; 16]);
    fs::write(&run.program, bytes).unwrap();
    let lines = run.lines(&run.cache(u64::MAX));
    assert!(!lines.is_finished());
    assert!(lines.find(FileOffset(u64::MAX)).is_none());
    assert!(
        lines
            .find(FileOffset(0))
            .is_none_or(|(t, _)| t.find(LinkAddr(0)).count() == 0)
    );
}

/// Returns everything that a table says about some addresses.
fn said(table: &Table) -> Vec<String> {
    let at = |addr| {
        let frames: Vec<_> = table.find(addr).collect();
        assert!(frames.len() <= CHAIN_MAX);
        format!("{frames:?} {:?}", table.symbol(addr))
    };
    (0x400..0x2000).step_by(5).map(LinkAddr).map(at).collect()
}

#[test]
fn one_of_another_version_says_so() {
    let Some(run) = Run::new() else { return };
    let cache = run.cache(u64::MAX);
    run.lines(&cache).finish(Some(&cache), 1).unwrap();
    let mut bytes = fs::read(&run.files()[0]).unwrap();
    let version_at = bytes.len() - 24;
    bytes[version_at] += 1;
    let error = Table::from_bytes(bytes).unwrap_err();
    assert!(error.to_string().contains("another version"), "{error}");
}

/// From a file the answer is right, or the table reports damage. From memory, where no checksums
/// are verified, any answer is possible, but every look-up ends.
#[test]
fn a_thousand_kinds_of_damage() {
    let Some(run) = Run::new() else { return };
    let object = Object::read(&File::open(&run.program).unwrap()).unwrap();
    let files = || DebugFiles::of(&FileSource::new(&run.program), RemoteFiles::Open);
    let resolver = Resolver::of_file(object, files, 1 << 30).unwrap();
    let good = resolver.to_table(1).unwrap();
    let expected = said(&Table::from_bytes(good.clone()).unwrap());
    let has = |what: &str| expected.iter().any(|said| said.contains(what));
    assert!(has("SourceFrame") && has("NamedRange"));
    let path = run.directory.path().join("table");
    let mut random = Random::new(0x7ab1e);
    let (mut refused, mut found_out) = (0, 0);
    for _ in 0..1000 {
        let mut bytes = good.clone();
        // Half of the damage is done to the index and the trailer.
        let from = [0, bytes.len() - 256][random.index(2)];
        let at = from + random.index(bytes.len() - from);
        match random.index(4) {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << random.index(8),
            2 => bytes[at] = 0xff,
            _ => {
                let end = (at + 8).min(bytes.len());
                bytes[at..end].fill(random.index(256) as u8);
            }
        }
        fs::write(&path, &bytes).unwrap();
        match Table::from_file(File::open(&path).unwrap()) {
            Ok(table) => {
                let is_true = said(&table) == expected;
                assert!(is_true || table.is_damaged());
                found_out += usize::from(table.is_damaged());
            }
            Err(_) => refused += 1,
        }
        _ = Table::from_bytes(bytes).map(|table| said(&table));
    }
    assert!(refused > 100 && found_out > 100, "{refused} {found_out}");
}
