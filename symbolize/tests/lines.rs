//! Lines and inlined functions at every address, compared with the crate addr2line.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{CLASSES, compile};
use addr2line::LookupResult;
use addr2line::gimli::{Dwarf, EndianSlice, LittleEndian};
use symbolize::debug_file::DebugFiles;
use symbolize::dwarf::DebugInfo;
use symbolize::object::Object;
use symbolize::source::Source;
use symbolize::table::{Extras, Table};
use symbolize::{ElfSymbols, FileSource, LinkAddr, OpenError, Reason, RemoteFiles};
use test_support::{Random, skip};

/// A frame: function, file, line, column.
type Frame = (String, String, u32, u32);

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn frames(table: &Table, addr: u64) -> Vec<Frame> {
    let frame = |frame: symbolize::table::SourceFrame<'_>| {
        let function = text(frame.function.unwrap_or_default());
        (function, text(&frame.path()), frame.line, frame.column)
    };
    table.find(LinkAddr(addr)).map(frame).collect()
}

fn object(path: &Path) -> Object {
    Object::read(&fs::File::open(path).unwrap()).unwrap()
}

fn debug_files(path: &Path) -> DebugFiles {
    DebugFiles::of(&FileSource::new(path), RemoteFiles::Open)
}

fn debug_info(path: &Path) -> DebugInfo {
    let info = DebugInfo::read(&object(path), debug_files(path), 1 << 30);
    info.unwrap().expect("there is debug information")
}

/// Returns the addresses of the code of functions, and a few around it.
fn addresses(path: &Path) -> Vec<u64> {
    let symbols = ElfSymbols::from_object(object(path)).unwrap();
    let starts = symbols.functions();
    starts
        .flat_map(|f| f.start.0.saturating_sub(2)..f.start.0 + f.size + 2)
        .collect()
}

fn by_addr2line(path: &Path, addresses: &[u64]) -> Vec<Vec<Frame>> {
    let object = object(path);
    let load = |id: addr2line::gimli::SectionId| {
        let bytes = object.debug_section(id.name(), u64::MAX).map_err(|_| ())?;
        Ok::<_, ()>(EndianSlice::new(bytes.leak(), LittleEndian))
    };
    let context = addr2line::Context::from_dwarf(Dwarf::load(load).unwrap()).unwrap();
    let find = |addr: &u64| {
        let LookupResult::Output(frames) = context.find_frames(*addr) else {
            panic!("split");
        };
        let (mut frames, mut found) = (frames.unwrap(), Vec::new());
        while let Some(frame) = frames.next().unwrap() {
            let place = frame.location.as_ref();
            let function = frame.function.map(|f| text(f.name.slice()));
            found.push((
                function.unwrap_or_default(),
                place.and_then(|p| p.file).unwrap_or_default().to_string(),
                place.and_then(|p| p.line).unwrap_or(0),
                place.and_then(|p| p.column).unwrap_or(0),
            ));
        }
        found
    };
    addresses.iter().map(find).collect()
}

fn by_us(path: &Path, addresses: &[u64]) -> Vec<Vec<Frame>> {
    let info = debug_info(path);
    let of_unit = |addr: &u64| {
        let table = info.table_at(LinkAddr(*addr));
        table.map_or_else(Vec::new, |table| frames(&table, *addr))
    };
    let found: Vec<_> = addresses.iter().map(of_unit).collect();

    let extras = Extras {
        columns: true,
        ..Extras::default()
    };
    let bytes = info.build(&extras, 2).unwrap();
    assert_eq!(bytes, info.build(&extras, 1).unwrap(), "always the same");
    let whole = Table::from_bytes(bytes).unwrap();
    for (addr, found) in addresses.iter().zip(&found) {
        assert_eq!(&frames(&whole, *addr), found, "{addr:#x}");
    }
    found
}

#[track_caller]
fn agrees(path: &Path) -> usize {
    let addresses = addresses(path);
    let (ours, theirs) = (by_us(path, &addresses), by_addr2line(path, &addresses));
    for ((addr, ours), theirs) in addresses.iter().zip(&ours).zip(&theirs) {
        assert_eq!(ours, theirs, "{path:?} {addr:#x}");
    }
    ours.iter().filter(|frames| frames.len() > 1).count()
}

#[test]
fn every_version_and_form() {
    let directory = tempfile::tempdir().unwrap();
    let kinds: [&[&str]; 9] = [
        &["-gdwarf-2"],
        &["-gdwarf-3"],
        &["-gdwarf-4"],
        &["-gdwarf-5"],
        // Type units have no lines of their own; they name files by those of a unit with code.
        &["-gdwarf-5", "-fdebug-types-section"],
        &["-gdwarf-5", "-gz=zlib"],
        &["-gdwarf-4", "-gz=zlib-gnu"],
        &["-g1"],
        &["-g", "-flto"],
    ];
    for (kind, class) in kinds
        .iter()
        .flat_map(|kind| CLASSES.map(|class| (kind, class)))
    {
        let flags = [&["-O2"], *kind, class].concat();
        if let Some(path) = compile(directory.path(), "lines.c", "program", &flags) {
            assert_ne!(agrees(&path), 0, "{kind:?}: something is inlined");
        }
    }
}

/// The unit of an address must be found without `.debug_aranges`, too.
#[test]
fn units_that_nothing_lists() {
    let directory = tempfile::tempdir().unwrap();
    for version in ["-gdwarf-3", "-gdwarf-4", "-gdwarf-5"] {
        let build = |name| compile(directory.path(), "lines.c", name, &["-O2", version]);
        let Some((listed, unlisted)) = build("listed").zip(build("unlisted")) else {
            continue;
        };
        let mut bytes = fs::read(&unlisted).unwrap();
        let name = memchr::memmem::find(&bytes, b".debug_aranges\0");
        bytes[name.expect("compilers list") + 7] = b'X';
        fs::write(&unlisted, bytes).unwrap();
        let addresses = addresses(&listed);
        assert_eq!(by_us(&listed, &addresses), by_us(&unlisted, &addresses));
    }
}

/// Split debug information must give the same answers as debug information in the file.
#[test]
fn split() {
    let directory = tempfile::tempdir().unwrap();
    let versions = ["-gdwarf-4", "-gdwarf-5"];
    let kinds = versions.map(|version| CLASSES.map(|class| (version, class)));
    for (version, class) in kinds.into_iter().flatten() {
        let build = |name: &str, flag| -> Option<PathBuf> {
            let flags = [&["-O2", version, flag], class].concat();
            compile(directory.path(), "lines.c", name, &flags)
        };
        let Some((whole, split)) = build("whole", "-g").zip(build("split", "-gsplit-dwarf")) else {
            continue;
        };
        let addresses = addresses(&whole);
        assert_eq!(by_us(&whole, &addresses), by_us(&split, &addresses));
    }
}

/// The root directory of a process, with a program at `/opt/program` whose entries are
/// in other files, and the same program with all of them in it.
struct Chroot {
    root: tempfile::TempDir,
    whole: PathBuf,
}

impl Chroot {
    fn new() -> Option<Chroot> {
        let root = tempfile::tempdir().unwrap();
        let opt = root.path().join("opt");
        fs::create_dir(&opt).unwrap();
        // binutils' dwp packs DWARF 4.
        let flags = ["-O2", "-gdwarf-4"];
        let whole = compile(&opt, "lines.c", "whole", &flags)?;
        let flags = [&flags[..], &["-gsplit-dwarf"]].concat();
        compile(&opt, "lines.c", "program", &flags)?;
        Some(Chroot { root, whole })
    }

    /// Returns the file beside the program into which the compiler put the entries.
    fn entries(&self) -> PathBuf {
        let files = fs::read_dir(self.root.path().join("opt")).unwrap();
        let mut paths = files.map(|file| file.unwrap().path());
        let is_dwo = |path: &PathBuf| path.extension().is_some_and(|end| end == "dwo");
        paths.find(is_dwo).expect("it was split")
    }

    /// Returns the functions and lines as for a process with that root: /proc shows paths as seen
    /// from our root.
    fn lines(&self, addresses: &[u64]) -> Vec<Vec<Frame>> {
        let path = self.root.path().join("opt/program");
        let root = fs::File::open(self.root.path()).unwrap().into();
        let source = FileSource {
            root: Some(&root),
            ..FileSource::new(&path)
        };
        let files = DebugFiles::of(&source, RemoteFiles::Open);
        let info = DebugInfo::read(&object(&path), files, 1 << 30)
            .unwrap()
            .unwrap();
        let table = |addr: &u64| info.table_at(LinkAddr(*addr));
        let found = |addr: &u64| table(addr).map_or_else(Vec::new, |t| frames(&t, *addr));
        addresses.iter().map(found).collect()
    }
}

/// Whether there are inlined functions, which only the entries describe.
fn has_inlined(lines: &[Vec<Frame>]) -> bool {
    lines.iter().any(|frames| frames.len() > 1)
}

#[test]
fn split_in_another_root() {
    let Some(chroot) = Chroot::new() else {
        return;
    };
    let addresses = addresses(&chroot.whole);
    let expected = by_us(&chroot.whole, &addresses);
    assert!(has_inlined(&expected));
    let place = chroot.entries();
    assert_eq!(chroot.lines(&addresses), expected);

    // An absolute link is followed from the process's root on.
    let elsewhere = chroot.root.path().join("elsewhere");
    fs::rename(&place, &elsewhere).unwrap();
    assert!(!has_inlined(&chroot.lines(&addresses)));
    symlink("/elsewhere", &place).unwrap();
    assert_eq!(chroot.lines(&addresses), expected);
    // So a link does not lead out of the root, even if the file that is searched is there.
    let outside = tempfile::tempdir().unwrap();
    let entries = outside.path().join("entries");
    fs::copy(&elsewhere, &entries).unwrap();
    fs::remove_file(&place).unwrap();
    symlink(&entries, &place).unwrap();
    assert!(!has_inlined(&chroot.lines(&addresses)));
    // A package beside the program is used first; one that is a link out of the root is not used.
    fs::remove_file(&place).unwrap();
    fs::rename(&elsewhere, &place).unwrap();
    let package = chroot.root.path().join("opt/program.dwp");
    let program = chroot.root.path().join("opt/program");
    let mut dwp = Command::new("dwp");
    let made = dwp
        .arg("-e")
        .arg(&program)
        .arg("-o")
        .arg(&package)
        .output()
        .is_ok_and(|output| output.status.success());
    fs::remove_file(&place).unwrap();
    if !made {
        skip("no dwp");
        return;
    }
    assert_eq!(chroot.lines(&addresses), expected);
    fs::rename(&package, outside.path().join("package")).unwrap();
    symlink(outside.path().join("package"), &package).unwrap();
    assert!(!has_inlined(&chroot.lines(&addresses)));
}

/// Makes every kind of query about bytes that may be a program.
fn exercise(bytes: Vec<u8>, addresses: &[u64]) {
    let Ok(object) = Object::from_source(Source::Memory(bytes.into())) else {
        return;
    };
    let files = debug_files(Path::new("/nowhere/program"));
    let Ok(Some(info)) = DebugInfo::read(&object, files, 1 << 30) else {
        return;
    };
    for addr in addresses {
        if let Some(table) = info.table_at(LinkAddr(*addr)) {
            assert!(frames(&table, *addr).len() <= 1000);
        }
    }
    let _ = info.build(&Extras::default(), 1);
}

#[test]
fn damaged_debug_information() {
    let directory = tempfile::tempdir().unwrap();
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let flags = ["-O2", version];
        let Some(path) = compile(directory.path(), "lines.c", "victim", &flags) else {
            return;
        };
        let addresses: Vec<u64> = addresses(&path).into_iter().step_by(16).collect();
        let bytes = fs::read(&path).unwrap();
        let object = object(&path);
        let sections: Vec<_> = object
            .sections()
            .iter()
            .filter(|section| object.section_name(section).starts_with(b".debug_"))
            .map(|section| (section.offset as usize, section.size as usize))
            .collect();
        let mut random = Random::new(0x5eed);
        for _ in 0..1000 {
            let mut bytes = bytes.clone();
            for _ in 0..=random.index(6) {
                let (start, size) = sections[random.index(sections.len())];
                let at = start + random.index(size);
                bytes[at] = match random.index(3) {
                    0 => random.index(256) as u8,
                    1 => bytes[at] ^ 1 << random.index(8),
                    _ => 0xff,
                };
            }
            exercise(bytes, &addresses);
        }
    }
}

#[test]
fn damaged_tables() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = compile(directory.path(), "lines.c", "program", &["-O2", "-g"]) else {
        return;
    };
    let addresses: Vec<u64> = addresses(&path).into_iter().step_by(8).collect();
    let good = debug_info(&path).build(&Extras::default(), 1).unwrap();
    let file = directory.path().join("table");
    let mut random = Random::new(7);
    for round in 0..1000 {
        let mut bytes = good.clone();
        let at = random.index(if round % 2 == 0 { 256 } else { bytes.len() });
        bytes[at] ^= 1 << random.index(8);
        // In memory no checksums are verified: every look-up must end all the same.
        if let Ok(table) = Table::from_bytes(bytes.clone()) {
            addresses.iter().for_each(|addr| _ = frames(&table, *addr));
        }
        // On disk every changed bit is found, and no answer is wrong.
        fs::write(&file, &bytes).unwrap();
        let Ok(table) = Table::from_file(fs::File::open(&file).unwrap()) else {
            continue;
        };
        let whole = Table::from_bytes(good.clone()).unwrap();
        for addr in &addresses {
            let found = frames(&table, *addr);
            assert!(table.is_damaged() || found == frames(&whole, *addr));
        }
        assert!(table.is_damaged(), "{at:#x}");
    }
}

#[test]
fn tables_cut_at_every_length() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = compile(directory.path(), "lines.c", "program", &["-O2", "-g"]) else {
        return;
    };
    let good = debug_info(&path).build(&Extras::default(), 1).unwrap();
    let file = directory.path().join("table");
    for len in (0..good.len()).step_by(good.len() / 200).chain(0..300) {
        fs::write(&file, &good[..len]).unwrap();
        assert!(Table::from_file(fs::File::open(&file).unwrap()).is_err());
    }
}

#[test]
fn units_that_were_forgotten_are_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = compile(directory.path(), "lines.c", "program", &["-O2", "-g"]) else {
        return;
    };
    let info = debug_info(&path);
    let addresses = addresses(&path);
    let answers = || -> Vec<Vec<Frame>> {
        let table = |addr: &u64| info.table_at(LinkAddr(*addr));
        let frames = |addr: &u64| table(addr).map_or_else(Vec::new, |table| frames(&table, *addr));
        addresses.iter().map(frames).collect()
    };
    let before = info.heap_bytes();
    let first = answers();
    assert!(first.iter().any(|frames| !frames.is_empty()));
    assert!(info.heap_bytes() > before);
    info.forget_units();
    assert_eq!(info.heap_bytes(), before);
    assert_eq!(answers(), first);
}

/// Reads debug information with memory limits from 0 to more than enough.
#[test]
fn no_more_than_allowed_is_held() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = compile(directory.path(), "lines.c", "program", &["-O2", "-g"]) else {
        return;
    };
    let addresses = addresses(&path);
    let read = |bytes_max| DebugInfo::read(&object(&path), debug_files(&path), bytes_max);
    let answers = |info: &DebugInfo| {
        let has_lines = |addr: &&u64| info.table_at(LinkAddr(**addr)).is_some();
        addresses.iter().filter(has_lines).count()
    };
    let whole = read(1 << 20).unwrap().expect("it has debug information");
    let all = answers(&whole);
    assert_ne!(all, 0);
    let [mut refused, mut left_out, mut answered] = [0; 3];
    for bytes_max in (0..2 * whole.bytes() as u64).step_by(256) {
        match read(bytes_max) {
            Err(error) => {
                assert!(matches!(error, OpenError::Refused(_)), "{error}");
                refused += 1;
            }
            Ok(None) => panic!("it has debug information"),
            Ok(Some(info)) => match answers(&info) {
                0 => left_out += 1,
                found if found == all => answered += 1,
                found => panic!("{found} of {all}"),
            },
        }
    }
    // For some limits the sections do not fit, for some they do but a unit beside them does not,
    // and for some everything fits.
    assert!(refused > 0 && left_out > 0 && answered > 0);
}

/// Units are read when they are needed: by then the file may have other contents.
#[test]
fn a_file_that_changes_while_it_is_read_is_not_believed() {
    let directory = tempfile::tempdir().unwrap();
    let Some(path) = compile(directory.path(), "lines.c", "program", &["-O2", "-g"]) else {
        return;
    };
    let address = addresses(&path)
        .into_iter()
        .find(|addr| !by_us(&path, &[*addr])[0].is_empty())
        .map(LinkAddr)
        .expect("there are lines");
    let bytes = fs::read(&path).unwrap();
    let reason = |info: &DebugInfo| {
        let built = info.build(&Extras::default(), 2);
        assert_eq!(built.is_ok(), info.table_at(address).is_some());
        built.err().map(|error| error.reason())
    };
    assert_eq!(reason(&debug_info(&path)), None);

    let shorter = debug_info(&path);
    fs::write(&path, b"").unwrap();
    assert_eq!(reason(&shorter), Some(Reason::ChangedOnDisk));

    fs::write(&path, &bytes).unwrap();
    let rewritten = debug_info(&path);
    let file = fs::File::options().write(true).open(&path).unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(10);
    file.set_modified(later).unwrap();
    assert_eq!(reason(&rewritten), Some(Reason::ChangedOnDisk));
}
