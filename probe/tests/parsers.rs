//! Parser processes are killed again and again while they work: names are the same as
//! otherwise, or there are none, with a reason. What readers tell of headers is the same as well.

#[path = "parsers/python.rs"]
mod python;

use probe::tables::{Content, Job, Limits, NoTable, TableMaps, Tables};
use probe::{ModuleId, files};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit};
use std::fmt::Write as _;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use symbolize::code::CodeQuestion;
use symbolize::code::assembly::BYTES_MAX;
use symbolize::files::READING_HEADERS;
use symbolize::object::Summary;
use symbolize::packages::Owner;
use symbolize::parser::CodeAnswer;
use symbolize::parser::names::{FileNames, PlaceName, PlaceNames, SourceLine};
use symbolize::parser::{archive_order, packages_order, python_order};
use symbolize::python::PythonFile;
use symbolize::revision::Revision;
use symbolize::sites::{Placed, Refusal, Wish};
use symbolize::{ElfSymbols, FileOffset, FileSource, Files, Reason, RemoteFiles, Symbolizer, Vdso};
use test_support::{Random, compile, run_tool, wait_for, wait_until, work_while_killed};

/// Number of processes that are killed, in each way.
const KILLS: usize = 100;

/// Number of functions in the file that is read.
const FUNCTIONS: usize = 3000;

/// Memory that is enough to start, and to read a small file.
const SHORT_OF_MEMORY: u64 = 40 << 20;

/// Size of the symbol table of a large file, which is more than that.
const LARGE_TABLE_BYTES: u64 = 24 * (4 << 20);

/// The options with which this test starts itself again.
const WITH_LITTLE_MEMORY: &str = "--with-little-memory";
const WITH_A_MISTAKE: &str = "--with-a-mistake";
const WITH_FETCHED_FILES: &str = "--with-fetched-files";

/// Number of files of this machine whose headers are compared.
const SYSTEM_FILES: usize = 300;

fn main() {
    let args: Vec<_> = std::env::args().skip(1).collect();
    // Tools that run single tests request a list first.
    if args.iter().any(|arg| arg == "--list") {
        println!("names_are_right_or_missing_whoever_is_ended: test");
        return;
    }
    if let [with_little_memory, small, large] = args.as_slice()
        && with_little_memory == WITH_LITTLE_MEMORY
    {
        let at_most = Rlimit {
            current: Some(SHORT_OF_MEMORY),
            maximum: Some(SHORT_OF_MEMORY),
        };
        setrlimit(Resource::As, at_most).expect("less is allowed");
        probe::start_readers(|_, _, _| Err(Reason::Refused)).expect("processes can be forked");
        out_of_memory_one_file_has_no_names_and_others_have(small.as_ref(), large.as_ref());
        files::end_readers();
        return;
    }
    probe::start_readers(|_, _, _| Err(Reason::Refused)).expect("processes can be forked");
    let own = std::env::current_exe().expect("this test");
    if args == [WITH_A_MISTAKE] {
        a_mistake_in_headers_costs_what_they_tell(&own);
        files::end_readers();
        return;
    }
    if let [with_fetched_files, stripped] = args.as_slice()
        && with_fetched_files == WITH_FETCHED_FILES
    {
        parsers_find_what_was_fetched(stripped.as_ref());
        files::end_readers();
        return;
    }
    headers_are_the_same_whoever_reads_them();
    images_while_they_are_killed();
    python_is_the_same_whoever_looks_for_it(&own);
    python::memory_is_read_by_parsers();
    a_reader_that_does_not_answer_costs_one_file(&own);
    let mut again = Command::new(&own);
    again.arg(WITH_A_MISTAKE);
    let status = again.env("PROFTOP_TEST_FAULTS", READING_HEADERS).status();
    assert!(status.is_ok_and(|status| status.success()));
    let folder = tempfile::tempdir().expect("a folder");
    if let Some(program) = program(folder.path()) {
        if let Some((stripped, cache)) = strip(&program) {
            assert!(parsed().lacks_debug_file(source(&stripped)));
            let mut again = Command::new(&own);
            again.arg(WITH_FETCHED_FILES).arg(&stripped);
            let status = again.env("DEBUGINFOD_CACHE_PATH", &cache).status();
            assert!(status.is_ok_and(|status| status.success()));
        }
        killed_at_any_moment(&program);
        lines_while_they_are_killed(&program);
        code_while_they_are_killed(&program);
        archives_while_they_are_killed(folder.path());
        packages_while_they_are_killed(folder.path());
        functions_to_probe_while_they_are_killed(&program);
        unwind_tables_while_they_are_killed(&program);
        let mut again = Command::new(own);
        let large = large(&program);
        let status = again.args([Path::new(WITH_LITTLE_MEMORY), &program, &large]);
        let status = status.status();
        assert!(status.is_ok_and(|status| status.success()));
    }
    files::end_readers();
    println!("test names_are_right_or_missing_whoever_is_ended ... ok");
}

/// Compiles a file with many functions; `None`, with a message, if that is not possible.
fn program(folder: &Path) -> Option<PathBuf> {
    let (source, program) = (folder.join("many.c"), folder.join("many"));
    let mut text = String::new();
    for number in 0..FUNCTIONS {
        let end = "{ return x + 1; }";
        writeln!(text, "int function_{number}(int x) {end}").expect("a String takes all");
    }
    text.push_str("int main(void) { return function_0(1) - 2; }");
    fs::write(&source, text).expect("a file");
    compile(&source, &program, ["-O0", "-g", "-Wl,--build-id=sha1"])?;
    Some(program)
}

/// Makes a stripped copy of the file, and the cache of debuginfod's client with its debug file;
/// `None`, with a message, if that is not possible.
fn strip(program: &Path) -> Option<(PathBuf, PathBuf)> {
    let (stripped, cache) = (
        program.with_extension("stripped"),
        program.with_extension("cache"),
    );
    let summary = Summary::read(&fs::File::open(program).expect("it is there"));
    let id = summary.expect("an ELF file").build_id.expect("a build-id");
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let fetched = cache.join(id).join("debuginfo");
    fs::create_dir_all(fetched.parent().expect("a folder")).expect("a folder");
    let mut copy = Command::new("objcopy");
    run_tool(copy.arg("--only-keep-debug").args([program, &fetched]))?;
    let mut copy = Command::new("strip");
    run_tool(copy.arg("-o").args([&stripped, program]))?;
    Some((stripped, cache))
}

/// A parser opens no file: neither the cache of debuginfod's client nor our root directory.
fn parsers_find_what_was_fetched(stripped: &Path) {
    let offsets = all_over(stripped);
    let plain = Symbolizer::new().with_files(RemoteFiles::Open);
    let right = names(&plain, stripped, &offsets).expect("its symbols were fetched");
    assert!(named(&right) >= FUNCTIONS / 2, "{}", named(&right));
    assert_eq!(names(&parsed(), stripped, &offsets), Ok(right));
    assert!(!parsed().lacks_debug_file(source(stripped)));
    all_are_confined();
}

/// Makes a copy of the file whose symbol table takes much memory.
fn large(program: &Path) -> PathBuf {
    let mut bytes = fs::read(program).expect("it is there");
    let word = |bytes: &[u8], at: usize, len: usize| {
        let word = bytes[at..at + len].iter().rev();
        word.fold(0, |word, byte| word << 8 | usize::from(*byte))
    };
    // e_shoff and e_shnum; sh_type, sh_offset and sh_size.
    let (sections, count) = (word(&bytes, 40, 8), word(&bytes, 60, 2));
    let mut sections = (0..count).map(|number| sections + 64 * number);
    let dynamic = sections
        .find(|at| word(&bytes, at + 4, 4) == 11)
        .expect("a program that is linked to a library");
    let end = word(&bytes, dynamic + 24, 8) as u64 + LARGE_TABLE_BYTES;
    bytes[dynamic + 32..dynamic + 40].copy_from_slice(&LARGE_TABLE_BYTES.to_le_bytes());
    let large = program.with_extension("large");
    fs::write(&large, bytes).expect("a file");
    let file = fs::File::options().write(true).open(&large);
    file.and_then(|file| file.set_len(end))
        .expect("a file with a hole");
    large
}

/// Compares what readers and this process find out about files of this machine.
fn headers_are_the_same_whoever_reads_them() {
    let folders = [
        "/usr/bin",
        "/usr/lib",
        "/usr/lib/x86_64-linux-gnu",
        "/lib64",
    ];
    let folders = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok());
    let found = folders.flat_map(|folder| folder.flatten().map(|entry| entry.path()));
    let mut with_id = 0;
    for path in found.filter(|path| path.is_file()).take(SYSTEM_FILES) {
        // Links are resolved, as what is mapped is a file.
        let path = fs::canonicalize(path).expect("it is there");
        let read = |way: &Files| {
            let (file, summary) = way.open_summarized(&source(&path))?;
            let revision = Revision::now(&file).expect("it is open");
            Ok::<_, Reason>((revision, summary))
        };
        let here = read(&Files::default());
        assert_eq!(read(&files::of_targets()), here, "{}", path.display());
        let id = here.ok().and_then(|(_, summary)| summary.ok()?.build_id);
        with_id += usize::from(id.is_some());
    }
    println!("{with_id} files with a build-id");
    assert!(with_id > 10 || !Path::new("/usr/bin").exists());
}

/// Compares what a parser and this process find of Python in a file: in the interpreter of this
/// machine, if there is one, and in a file that has none of it.
fn python_is_the_same_whoever_looks_for_it(own: &Path) {
    let find = |path: &Path, way: &Files| {
        let name = path.file_name().expect("a name").as_encoded_bytes();
        let file = fs::File::open(path).expect("it is there");
        python_order::ask(file, name, way).expect("an ELF file")
    };
    let same = |path: &Path| {
        let here = find(path, &Files::default());
        assert_eq!(find(path, &files::of_targets()), here, "{}", path.display());
        here
    };
    assert_eq!(same(own), PythonFile::default());
    match fs::canonicalize("/usr/bin/python3") {
        Ok(python) => {
            same(&python);
            all_are_confined();
        }
        Err(error) => test_support::skip(format_args!("/usr/bin/python3: {error}")),
    }
}

/// Stops the process that would answer: neither it nor the disk that it reads from is waited for.
fn a_reader_that_does_not_answer_costs_one_file(own: &Path) {
    let way = files::of_targets();
    let ask = || {
        way.open_summarized(&source(own))
            .map(|(_, summary)| summary)
    };
    let right = ask().expect("it is there");
    assert!(right.is_ok());
    let readers = processes("proftop-files");
    assert!(!readers.is_empty());
    for reader in &readers {
        let pid = Pid::from_raw(reader.cast_signed()).expect("a process");
        kill_process(pid, Signal::STOP).expect("it is idle");
    }
    for _ in &readers {
        assert_eq!(ask(), Err(Reason::Remote));
    }
    assert_eq!(ask(), Ok(right), "a new one answers");
}

/// The first header that a reader looks at makes it panic.
fn a_mistake_in_headers_costs_what_they_tell(own: &Path) {
    // Only builds with debug assertions make mistakes on demand.
    if !cfg!(debug_assertions) {
        return;
    }
    let way = files::of_targets();
    let ask = || way.open_summarized(&source(own)).expect("it is opened");
    let (file, summary) = ask();
    assert_eq!(summary, Err(Reason::Mistake));
    assert_eq!(Summary::read(&file).ok(), ask().1.ok(), "the next is right");
    let seen = faults::seen();
    let told = seen.iter().find(|fault| fault.work == READING_HEADERS);
    assert_eq!(told.map(|fault| fault.count), Some(1), "{seen:?}");
}

fn killed_at_any_moment(program: &Path) {
    let offsets = all_over(program);
    let plain = Symbolizer::new().with_files(RemoteFiles::Open);
    let right = names(&plain, program, &offsets).expect("it has symbols");
    assert!(named(&right) >= FUNCTIONS / 2, "{}", named(&right));

    // Without disturbance names are the same, and come from processes without rights.
    let begin = Instant::now();
    assert_eq!(names(&parsed(), program, &offsets).as_ref(), Ok(&right));
    let undisturbed = begin.elapsed();
    all_are_confined();

    let (mut symbolizer, mut parts) = (parsed(), (0..3).cycle());
    while_they_are_killed("names", KILLS, undisturbed, || {
        let part = parts.next().expect("they never end");
        // A new symbolizer has read nothing yet; a used one has read all.
        if part == 0 {
            symbolizer = parsed();
        }
        let some: Vec<_> = offsets.iter().copied().skip(part).step_by(3).collect();
        let right = right.places.iter().skip(part).step_by(3);
        match names(&symbolizer, program, &some) {
            Ok(names) => {
                assert!(names.places.iter().eq(right), "a wrong name");
                true
            }
            Err(reason) => {
                assert_eq!(reason, Reason::Refused);
                false
            }
        }
    });
    // No disturbance lasts.
    assert_eq!(names(&parsed(), program, &offsets), Ok(right));
}

/// Checks that lines are right or missing, and that parsers of lines run at the lowest priority.
fn lines_while_they_are_killed(program: &Path) {
    let offsets: Vec<_> = all_over(program).into_iter().step_by(40).collect();
    let plain = Symbolizer::new().with_files(RemoteFiles::Open);
    let right = lines(&plain, program, &offsets).expect("it has lines");
    assert!(right.iter().filter(|chain| !chain.is_empty()).count() > 20);
    right_or_refused("lines", &right, || lines(&parsed(), program, &offsets));
    // One that was killed before may be gone by now.
    let stat = |parser| fs::read_to_string(format!("/proc/{parser}/stat")).ok();
    let nice = parsers().into_iter().filter_map(stat).map(|stat| {
        let behind_name = stat.rsplit(") ").next().expect("fields");
        behind_name.split(' ').nth(16).expect("nice").to_owned()
    });
    assert!(nice.into_iter().any(|nice| nice == "19"));
}

/// Checks that the code of a function is whole, with its lines, or missing with a reason.
fn code_while_they_are_killed(program: &Path) {
    let symbols = ElfSymbols::read(&fs::File::open(program).expect("it is there"));
    let symbols = symbols.expect("it has symbols");
    let starts = symbols.functions().map(|symbol| symbol.start);
    let places = starts.filter_map(|start| symbols.segments().to_file(start));
    let places: Vec<_> = places.step_by(FUNCTIONS / 20).collect();
    let plain = Symbolizer::new().with_files(RemoteFiles::Open);
    let right = code(&plain, program, &places).expect("it has code");
    right_or_refused("code", &right, || code(&parsed(), program, &places));
}

/// Checks that functions to probe and their sites are right, or missing with a reason.
fn functions_to_probe_while_they_are_killed(program: &Path) {
    let plain = Symbolizer::new().with_files(RemoteFiles::Open);
    let right = sites(&plain, program).expect("it has functions");
    assert!(right.iter().flatten().count() > FUNCTIONS / 2);
    right_or_refused("sites", &right, || sites(&parsed(), program));
}

/// Checks that names in an image that was read from memory are right or missing, and that a hostile
/// image is harmless.
fn images_while_they_are_killed() {
    let image = Vdso::image().expect("this process has one");
    let offsets: Vec<_> = (0..image.len() as u64)
        .step_by(16)
        .map(FileOffset)
        .collect();
    let plain = Symbolizer::new();
    let right = plain.image_names(&image, &offsets).expect("an ELF file");
    assert!(named(&right) > 10, "{}", named(&right));
    let ask = || parsed().image_names(&image, &offsets);
    // A parser of images ends after each of them.
    let undisturbed = duration_of_right(&right, ask);
    right_or_refused_after(undisturbed, "names of an image", &right, ask);
    let mut random = Random::new(5);
    for _ in 0..50 {
        let mut hostile = image.to_vec();
        for _ in 0..20 {
            let at = random.below(hostile.len() as u64) as usize;
            hostile[at] = random.below(256) as u8;
        }
        hostile.truncate(random.below(2 * image.len() as u64) as usize);
        let names = plain.image_names(&hostile, &offsets);
        assert_eq!(parsed().image_names(&hostile, &offsets), names);
    }
}

/// Checks that texts in archives are right or missing, and that a hostile archive is harmless.
fn archives_while_they_are_killed(folder: &Path) {
    let archive = folder.join("app.pyz");
    let make = "import sys, zipfile\n\
                with zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED) as archive:\n    \
                for n in range(3000): archive.writestr(f'shop/cart_{n}.py', f'total = {n}\\n' * n)";
    let mut python = Command::new("python3");
    if run_tool(python.args(["-c", make]).arg(&archive)).is_none() {
        return;
    }
    let text = b"total = 2999\n".repeat(2999);
    let max = text.len() as u64;
    let find = |path: &Path, member: &str, max: u64, way: &Files| {
        let file = fs::File::open(path).expect("it is there");
        archive_order::ask(file, member.as_bytes(), max, way)
    };
    let parsed = files::of_targets();
    let ask = || find(&archive, "shop/cart_2999.py", max, &parsed);
    right_or_refused("a text", &Some(text.clone()), ask);
    assert_eq!(find(&archive, "shop/none.py", max, &parsed), Ok(None));
    let too_long = find(&archive, "shop/cart_2999.py", max - 1, &Files::default());
    assert!(too_long.is_err());
    assert_eq!(
        find(&archive, "shop/cart_2999.py", max - 1, &parsed),
        too_long
    );
    let bytes = fs::read(&archive).expect("it is there");
    let hostile = folder.join("bad.pyz");
    let mut random = Random::new(9);
    for _ in 0..50 {
        let mut bytes = bytes.clone();
        // The directory is at the end.
        let near_end = |random: &mut Random| bytes.len() - 1 - random.below(300_000) as usize;
        for at in [0; 20].map(|_| near_end(&mut random)) {
            bytes[at] = random.below(256) as u8;
        }
        fs::write(&hostile, &bytes).expect("a file");
        let here = find(&hostile, "shop/cart_2999.py", max, &Files::default());
        assert_eq!(find(&hostile, "shop/cart_2999.py", max, &parsed), here);
    }
}

/// Checks that packages of files are right or missing, and that a hostile database is harmless.
fn packages_while_they_are_killed(folder: &Path) {
    let (root, status) = (folder.join("root"), "var/lib/dpkg/status");
    fs::create_dir_all(root.join("var/lib/dpkg/info")).expect("a folder");
    let mut text = String::new();
    for number in 0..300 {
        let name = format!("package-{number}");
        let told = "Status: install ok installed\nArchitecture: amd64\n";
        writeln!(text, "Package: {name}\n{told}Version: 1.{number}\n").expect("a String takes all");
        let list = root.join(format!("var/lib/dpkg/info/{name}.list"));
        fs::write(
            list,
            format!("/.\n/usr\n/usr/bin\n/usr/bin/tool-{number}\n"),
        )
        .expect("a file");
    }
    fs::write(root.join(status), &text).expect("a file");
    let release = "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n";
    fs::create_dir_all(root.join("etc")).expect("a folder");
    fs::write(root.join("etc/os-release"), release).expect("a file");
    let opened = OwnedFd::from(fs::File::open(&root).expect("a folder"));
    let paths = ["/usr/bin/tool-298", "/bin/tool-7", "/usr/bin/none"].map(Path::new);
    let find = |way: &Files| packages_order::ask(&opened, &paths, way);
    let parsed = files::of_targets();
    let right = find(&Files::default()).expect("a database");
    let found = |owner: &Option<Owner>| owner.as_ref().map(|owner| owner.package.clone());
    let found: Vec<_> = right.owners.iter().map(found).collect();
    let package = |name: &str| Some(name.to_owned());
    assert_eq!(found, [package("package-298"), package("package-7"), None]);
    let system = right.distribution.as_ref().expect("a distribution");
    assert!(system.is_like("debian") && system.debug_archive().is_some());
    // On a busy machine the reader of a database may be too slow, which gives no answer.
    let answer = || wait_for("packages", || find(&parsed).ok());
    let begin = Instant::now();
    assert_eq!(answer(), right);
    while_they_are_killed("packages", KILLS / 4, begin.elapsed(), || {
        let found = find(&parsed);
        if let Ok(found) = &found {
            assert_eq!(*found, right, "wrong packages");
        }
        found.is_ok()
    });
    assert_eq!(answer(), right, "no disturbance lasts");
    let mut random = Random::new(13);
    for _ in 0..10 {
        let mut hostile = text.clone().into_bytes();
        for _ in 0..500 {
            let at = random.below(hostile.len() as u64) as usize;
            hostile[at] = random.below(256) as u8;
        }
        fs::write(root.join(status), &hostile).expect("a file");
        assert_eq!(Ok(answer()), find(&Files::default()));
    }
}

/// Checks answers as [`right_or_refused_after`] does, for work whose parser waits for more of it
/// afterwards: that parser has no rights.
fn right_or_refused<T: PartialEq + std::fmt::Debug>(
    what: &str,
    right: &T,
    ask: impl Fn() -> Result<T, Reason>,
) {
    let undisturbed = duration_of_right(right, &ask);
    all_are_confined();
    right_or_refused_after(undisturbed, what, right, ask);
}

/// Asks for an answer that is right; returns how long that took.
fn duration_of_right<T: PartialEq + std::fmt::Debug>(
    right: &T,
    ask: impl Fn() -> Result<T, Reason>,
) -> Duration {
    let begin = Instant::now();
    assert_eq!(ask().as_ref(), Ok(right));
    begin.elapsed()
}

/// Asks again and again while parsers are killed: each answer is right, or there is none. Without
/// that, an answer takes the time `undisturbed`.
fn right_or_refused_after<T: PartialEq + std::fmt::Debug>(
    undisturbed: Duration,
    what: &str,
    right: &T,
    ask: impl Fn() -> Result<T, Reason>,
) {
    while_they_are_killed(what, KILLS / 4, undisturbed, || match ask() {
        Ok(answer) => {
            assert_eq!(&answer, right, "wrong: {what}");
            true
        }
        Err(reason) => {
            assert_eq!(reason, Reason::Refused);
            false
        }
    });
    assert_eq!(ask().as_ref(), Ok(right), "no disturbance lasts");
}

/// Checks that every file has its table, or a reason for having none.
fn unwind_tables_while_they_are_killed(program: &Path) {
    // No table comes from the cache: a parser makes each of them.
    let limits = Limits {
        cache_base: None,
        ..Limits::default()
    };
    let mut tables = Tables::new(TableMaps::in_memory(), &limits).expect("threads");
    let file = fs::File::open(program).expect("it is there");
    let revision = Revision::now(&file).ok();
    let summary = Arc::new(Summary::read(&file).expect("an ELF file"));
    let file: Arc<OwnedFd> = Arc::new(file.into());
    let mut make = |number: u32| {
        let id = ModuleId(number);
        tables.want(Job {
            file: id,
            content: Content::File {
                file: file.clone(),
                revision: revision.clone(),
                summary: Ok(summary.clone()),
                path: program.to_owned(),
                root: None,
            },
            hotness: 1,
            user: 0,
            wanted_by: 0,
        });
        wait_until("the table is made", || {
            tables.poll(0);
            tables.table_of(id).is_some()
        });
        let rows = tables.stats().rows;
        (tables.table_of(id).expect("it was made"), rows)
    };
    let begin = Instant::now();
    let (first, rows) = make(0);
    let undisturbed = begin.elapsed();
    assert!(first.is_ok() && rows > FUNCTIONS, "{first:?} {rows}");
    all_are_confined();
    let (mut whole, mut number) = (1, 0);
    while_they_are_killed("tables", KILLS / 4, undisturbed, || {
        number += 1;
        let (made, all_rows) = make(number);
        let is_made = made.is_ok();
        if let Err(reason) = made {
            assert_eq!(reason, NoTable::TooLarge);
        }
        whole += usize::from(is_made);
        assert_eq!(all_rows, whole * rows, "a wrong table");
        is_made
    });
}

/// Checks that all parsers have given up their rights, of which there is at least one.
fn all_are_confined() {
    let status = |parser: u32| fs::read_to_string(format!("/proc/{parser}/status")).ok();
    let mut checked = 0;
    for status in parsers().into_iter().filter_map(status) {
        // One that was killed before may not have got that far.
        if status.contains("State:\tZ") {
            continue;
        }
        assert!(status.contains("CapPrm:\t0000000000000000"), "{status}");
        assert!(status.contains("Seccomp:\t2"), "{status}");
        checked += 1;
    }
    assert!(checked > 0, "a parser has read the file");
}

/// Does work again and again until this number of parsers was killed. `work` returns whether it was
/// done (true) or refused (false), and `undisturbed` is its duration otherwise: on any machine it
/// is sometimes done and sometimes not.
fn while_they_are_killed(
    what: &str,
    at_least: usize,
    undisturbed: Duration,
    work: impl FnMut() -> bool,
) {
    let result = work_while_killed(at_least, 3 * undisturbed, parsers, work);
    println!("{what}: {at_least} killed: {result:?}");
    assert!(result.whole > 0 && result.confined > 0, "{what}");
}

fn out_of_memory_one_file_has_no_names_and_others_have(small: &Path, large: &Path) {
    let offsets = all_over(small);
    let before = names(&parsed(), small, &offsets).expect("there is room for that");
    // Each request kills four parsers.
    for _ in 0..KILLS / 4 {
        let symbolizer = parsed();
        let refused = names(&symbolizer, large, &[FileOffset(0x1000)]);
        assert_eq!(refused, Err(Reason::Refused));
        // After that the file is not tried again, which takes no time.
        assert_eq!(names(&symbolizer, large, &[FileOffset(0x1000)]), refused);
        assert_eq!(names(&symbolizer, small, &offsets).as_ref(), Ok(&before));
    }
    let refused = sites(&parsed(), large);
    assert_eq!(refused, Err(Reason::Refused));
    // Other work on that file is still possible.
    let lines = lines(&parsed(), large, &all_over(small));
    assert!(lines.is_ok_and(|lines| lines.iter().any(|chain| !chain.is_empty())));
    let notes = files::notes();
    assert!(
        notes.iter().any(|note| note.starts_with("26 times")),
        "{notes:?}"
    );
}

fn parsed() -> Symbolizer {
    Symbolizer::new().with_files(files::of_targets())
}

/// Returns offsets all over the file, in code and elsewhere.
fn all_over(path: &Path) -> Vec<FileOffset> {
    let size = fs::metadata(path).expect("it is there").len();
    (0..size).step_by(13).map(FileOffset).collect()
}

fn names(
    symbolizer: &Symbolizer,
    path: &Path,
    offsets: &[FileOffset],
) -> Result<FileNames, Reason> {
    symbolizer.names(&source(path), offsets)
}

fn lines(
    symbolizer: &Symbolizer,
    path: &Path,
    offsets: &[FileOffset],
) -> Result<Vec<Vec<SourceLine>>, Reason> {
    let lines = symbolizer.file_lines(source(path))?;
    lines.expect("it has some").find_all(offsets)
}

fn code(
    symbolizer: &Symbolizer,
    path: &Path,
    places: &[FileOffset],
) -> Result<Vec<CodeAnswer>, Reason> {
    let code = symbolizer.file_code(source(path))?;
    let find = |place: &FileOffset| {
        let found = code.find(&CodeQuestion {
            function: "",
            module: "many",
            address: *place,
            is_inlined: false,
            bytes_max: BYTES_MAX,
        });
        let lines = found.as_ref().map(|found| found.no_lines);
        assert!(matches!(lines, Ok(None) | Err(_)), "it has lines");
        found
    };
    places.iter().map(find).collect()
}

/// Returns the sites of all functions whose names match.
fn sites(symbolizer: &Symbolizer, path: &Path) -> Result<Vec<Result<Placed, Refusal>>, Reason> {
    let file = symbolizer.file_sites(source(path))?;
    let functions = file.matching(".")?.told.into_iter();
    let wishes: Vec<_> = functions.map(|one| (one, Wish::default())).collect();
    file.place(&wishes)
}

fn source(path: &Path) -> FileSource<'_> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(path).expect("it is there");
    let device = metadata.dev();
    FileSource {
        device: (rustix::fs::major(device), rustix::fs::minor(device)),
        inode: metadata.ino(),
        ..FileSource::new(path)
    }
}

fn named(names: &FileNames) -> usize {
    let is_named = |place: &&PlaceNames| matches!(place.name, PlaceName::Named { .. });
    names.places.iter().filter(is_named).count()
}

/// Returns the parsers of this process.
fn parsers() -> Vec<u32> {
    processes("proftop-parser")
}

/// Returns the processes of this name that work for this one.
fn processes(of_name: &str) -> Vec<u32> {
    let children = |pid: u32| -> Vec<u32> {
        let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let listed = listed.unwrap_or_default();
        let listed = listed.split_whitespace();
        listed.filter_map(|pid| pid.parse().ok()).collect()
    };
    let is_it = |pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim() == of_name)
    };
    let spawners = children(std::process::id());
    let all = spawners.into_iter().flat_map(children);
    all.filter(is_it).collect()
}
