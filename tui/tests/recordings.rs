//! `merge` and `resolve` as a user types them.

use crate::common;

use common::{proftop, run, text};
use profile::formats::pft;
use profile::{
    Ending, Frame, FrameKind, Host, Info, Limits, ModuleId, NameState, NewSample, ProcessId, Rates,
    Store,
};
use std::fs;
use std::path::Path;
use std::process::Command;
use symbolize::{ElfSymbols, FileOffset};
use test_support::skip;

/// Writes a recording of one process with one frame in a file that is only known by its
/// build-id.
fn recording(path: &Path, build_id: &[u8], place: u64, name: NameState) {
    let mut store = Store::new(Limits::default());
    store.set_info(Info {
        rates: Rates::always(99),
        host: Host {
            name: "db-01".into(),
            ..Host::default()
        },
        epoch_unix_ms: 1_700_000_000_000,
        ..Info::default()
    });
    store.add_module(ModuleId(1), "app", "/nowhere/app");
    store.set_build_id(ModuleId(1), build_id);
    store.add_process(ProcessId(1), 42, "app");
    let frames = [place, 8].map(|address| Frame {
        module: ModuleId(1),
        address,
        kind: FrameKind::User,
    });
    for n in 0..30 {
        assert!(store.add_sample(NewSample {
            time_ns: n * 10_000_000,
            cpu: 0,
            process: ProcessId(1),
            tid: 42,
            comm: "app",
            frames: &frames,
            kernel_frames: 0,
            ending: Ending::Root,
            weight: 1,
        }));
    }
    for id in store.frames_to_name(9) {
        store.set_name(id, name.clone());
    }
    let mut bytes = Vec::new();
    pft::write(&store.view(), &mut bytes).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Returns a function of this very program: where it is in the file, and its name.
fn function(symbols: &ElfSymbols) -> (u64, String) {
    let address = function as *const () as u64;
    let maps = fs::read_to_string("/proc/self/maps").expect("it is ours");
    let place = maps
        .lines()
        .find_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            let (start, end) = (number(start)?, number(end)?);
            let offset = number(rest.split(' ').nth(1)?)?;
            (start..end)
                .contains(&address)
                .then(|| offset + address - start)
        })
        .expect("it is mapped");
    let symbol = symbols.find(FileOffset(place)).expect("it has a name");
    let name = symbolize::demangle(symbol.name).short().into_owned();
    (place, name)
}

#[test]
fn names_are_found_by_build_id_where_the_file_is() {
    let folder = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    let symbols = ElfSymbols::read(&fs::File::open(&program).unwrap()).unwrap();
    let Some(build_id) = symbols.object().build_id() else {
        return skip("the linker here writes none");
    };
    let (place, name) = function(&symbols);
    let file = folder.path().join("a.pft");
    let stripped = NameState::UnnamedIn {
        reason: profile::NoName::Stripped,
        start: place,
    };
    recording(&file, &build_id, place, stripped);
    let file = file.to_str().unwrap();

    // The program is not here: names that were known stay.
    let output = run(&mut proftop(&["resolve", file]));
    assert!(output.status.success());
    let said = text(&output.stderr);
    assert!(
        said.contains("/nowhere/app: not here as it was recorded, 2 frames"),
        "{said}"
    );
    let report = text(&run(&mut proftop(&["report", file])).stdout);
    assert!(report.contains(&format!("app+{place:#x}")), "{report}");

    // Deep below a directory, under another name.
    let deep = folder.path().join("debug/x/y");
    fs::create_dir_all(&deep).unwrap();
    fs::copy(&program, deep.join("renamed")).unwrap();
    fs::write(deep.join("text"), "no program").unwrap();
    let directory = folder.path().join("debug");
    let other = folder.path().join("b.pft");
    let (directory, other) = (directory.to_str().unwrap(), other.to_str().unwrap());
    let output = run(&mut proftop(&[
        "resolve",
        file,
        "--debug-dir",
        directory,
        "-o",
        other,
    ]));
    assert!(output.status.success());
    assert!(
        text(&output.stderr).contains("found names for 1 of 2 frames"),
        "{output:?}"
    );
    let report = text(&run(&mut proftop(&["report", other, "--tree"])).stdout);
    assert!(report.contains(&name), "{name} is not in {report}");
    // The recording itself is overwritten, and only if that is asked for.
    let before = fs::read(file).unwrap();
    assert!(
        run(&mut proftop(&["resolve", file, "--debug-dir", directory]))
            .status
            .success()
    );
    assert_ne!(fs::read(file).unwrap(), before);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        3,
        "nothing is left over"
    );
    let again = run(&mut proftop(&[
        "resolve",
        file,
        "--debug-dir",
        directory,
        "-o",
        other,
    ]));
    assert!(text(&again.stderr).contains("exists already"), "{again:?}");
}

/// Only the debug information of the program is left; its build-id is the same.
#[test]
fn names_are_found_where_only_the_debug_file_is() {
    let keep = |program: &Path, folder: &Path| {
        let mut objcopy = Command::new("objcopy");
        objcopy.arg("--only-keep-debug").arg(program);
        objcopy.arg(folder.join("debug/app.debug"));
        objcopy
    };
    names_of_debug_file("objcopy of binutils", keep);
}

/// The debug file has the headers of the program, and the stripped program is there, too.
#[test]
fn names_are_found_in_debug_files_of_elfutils() {
    let strip = |program: &Path, folder: &Path| {
        let mut strip = Command::new("eu-strip");
        strip.arg("-f").arg(folder.join("debug/app.debug"));
        strip
            .arg("-o")
            .arg(folder.join("stripped/app"))
            .arg(program);
        strip
    };
    names_of_debug_file("eu-strip of elfutils", strip);
}

/// Finds names of a program that `tool` splits: into `debug`, and perhaps `stripped`.
fn names_of_debug_file(what: &str, tool: impl Fn(&Path, &Path) -> Command) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let program = std::env::current_exe().unwrap();
    let symbols = ElfSymbols::read(&fs::File::open(&program).unwrap()).unwrap();
    let Some(build_id) = symbols.object().build_id() else {
        return skip("the linker here writes none");
    };
    let (place, name) = function(&symbols);
    fs::create_dir(path("debug")).unwrap();
    fs::create_dir(path("stripped")).unwrap();
    match tool(&program, folder.path()).status() {
        Ok(status) if status.success() => {}
        _ => return skip(format_args!("needs {what}")),
    }
    let file = path("a.pft");
    recording(
        file.as_ref(),
        &build_id,
        place,
        NameState::Unnamed(profile::NoName::Stripped),
    );
    let directories = [path("stripped"), path("debug")];
    let mut resolve = proftop(&["resolve", &file]);
    for directory in &directories {
        resolve.args(["--debug-dir", directory]);
    }
    let said = text(&run(&mut resolve).stderr);
    assert!(said.contains("found names for 1 of 2 frames"), "{said}");
    let report = text(&run(&mut proftop(&["report", &file, "--tree"])).stdout);
    assert!(report.contains(&name), "{name} is not in {report}");
    // The line of that place is found, too.
    let json = text(&run(&mut proftop(&["report", &file, "--format", "json"])).stdout);
    assert!(json.contains("tui/tests/"), "{json}");
}

#[test]
fn recordings_are_put_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let named = NameState::Named("work".into());
    recording(&path("a.pft"), &[1; 20], 0x10, named.clone());
    recording(&path("b.pft"), &[1; 20], 0x20, named);
    fs::write(path("c.folded"), "other;main 40\n").unwrap();
    let all: Vec<String> = ["a.pft", "b.pft", "c.folded", "all.pft"]
        .map(|name| path(name).to_str().unwrap().to_string())
        .to_vec();
    let output = run(&mut proftop(&[
        "merge", &all[0], &all[1], &all[2], "-o", &all[3],
    ]));
    assert!(output.status.success(), "{output:?}");
    let said = text(&output.stderr);
    assert!(
        said.contains("100 samples of 3 recordings, ") && said.contains(&all[3]),
        "{said}"
    );
    let report = text(&run(&mut proftop(&["report", &all[3], "--format", "csv"])).stdout);
    let line = report
        .lines()
        .find(|line| line.contains("work"))
        .expect("it is there");
    assert!(line.contains("60"), "{report}");
    assert!(report.contains("main"), "{report}");
    // A report says nothing that its file does not contain, nor how much work it was to read it.
    let head = |name: &String| text(&run(&mut proftop(&["report", name])).stdout);
    let lines = head(&all[2]);
    let lines: Vec<&str> = lines.lines().take(2).map(str::trim_end).collect();
    assert!(lines[0].ends_with(" window -"), "{lines:?}");
    assert!(!lines[0].contains("host"), "{lines:?}");
    assert_eq!(lines[1], "# samples 40 lost 0 whole 100.0% symbols -");
    assert!(head(&all[0]).contains(" host db-01 "));
    assert!(head(&all[0]).contains(" rate 99 Hz\n"));
    let output = run(&mut proftop(&["merge", &all[0], &all[1], "-o", &all[3]]));
    assert_eq!(output.status.code(), Some(1), "an existing file stays");
    let said = text(&output.stderr);
    assert!(!said.contains(" of 2 recordings"), "{said}");
    let output = run(&mut proftop(&["merge", "-", "-", "-o", "-"]));
    assert_eq!(output.status.code(), Some(2));
    // The file's name decides the format, as elsewhere.
    let folded = path("all.folded").to_str().unwrap().to_string();
    let output = run(&mut proftop(&["merge", &all[2], &all[2], "-o", &folded]));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read_to_string(&folded).unwrap(), "other;main 80\n");
}

/// `/dev/full` takes no byte, as a disk without room.
#[test]
fn no_success_is_told_of_a_result_that_could_not_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let file = path("a.pft");
    let named = NameState::Named("work".into());
    recording(file.as_ref(), &[1; 20], 0x10, named);
    let nowhere = path("no-such-folder/out.pft");
    for words in [
        &["merge", &file, &file, "-o", "-"][..],
        &["merge", &file, &file, "-o", &nowhere],
        &["resolve", &file, "-o", &nowhere],
        &[
            "export",
            &file,
            &nowhere,
            "--format",
            "folded",
            "--filter",
            "fn~nothing",
        ],
    ] {
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = run(proftop(words).stdout(full));
        assert!(!output.status.success(), "{words:?}");
        let said = text(&output.stderr);
        for success in [" of 2 recordings", "found names", "what was written"] {
            assert!(!said.contains(success), "{words:?}: {said}");
        }
        assert!(said.starts_with("proftop: "), "{words:?}: {said}");
    }
}

#[test]
fn who_reads_a_broken_file_is_told_which_and_how() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (whole, cut, empty) = (path("whole.pft"), path("cut.pft"), path("empty.pft"));
    let named = NameState::Named("work".into());
    recording(whole.as_ref(), &[1; 20], 0x10, named);
    fs::write(&cut, &fs::read(&whole).unwrap()[..40]).unwrap();
    fs::write(&empty, "").unwrap();
    let (new, out) = (path("new.pft"), path("new.folded"));
    for file in [&cut, &empty] {
        for words in [
            &["diff", file, &whole][..],
            &["export", file, &out, "-f"],
            &["merge", file, "-o", &new, "-f"],
            &["resolve", file, "-o", &new, "-f"],
        ] {
            let output = run(&mut proftop(words));
            assert_eq!(output.status.code(), Some(5), "{words:?}");
            let said = text(&output.stderr);
            let expected = if file == &cut {
                format!("{file}: the recording was cut off before its first samples")
            } else {
                format!("{file} is empty")
            };
            assert!(said.contains(&expected), "{words:?}: {said}");
            let is_export_of_none = words[0] == "export" && file == &cut;
            assert_eq!(
                said.contains("the recording has none"),
                is_export_of_none,
                "{words:?}: {said}"
            );
        }
    }
}

/// A screen is not possible here either, but to say that would not help the user.
#[test]
fn the_screen_of_a_file_that_is_not_there_says_so() {
    let output = run(&mut proftop(&["open", "/nowhere/a.pft"]));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    assert!(
        said.starts_with("proftop: cannot read /nowhere/a.pft: No such file"),
        "{said}"
    );
}

#[test]
fn health_in_lines_names_modules_and_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pft");
    let lines = folder.path().join("lines");
    fs::write(&lines, "health\n").unwrap();
    let resolve = format!("proftop resolve {}", file.display());
    for (reason, expected) in [
        (profile::NoName::LeftOut, format!("type: {resolve}")),
        // The file itself has no such data: another file is needed.
        (
            profile::NoName::Stripped,
            format!("`{resolve} --debug-dir DIR`"),
        ),
    ] {
        recording(&file, &[7; 20], 0x10, NameState::Unnamed(reason));
        let mut command = proftop(&["open", file.to_str().unwrap(), "--plain"]);
        let output = run(command.stdin(fs::File::open(&lines).unwrap()));
        let said = text(&output.stdout);
        assert!(said.contains("app: app[42], build-id 0707"), "{said}");
        assert!(said.contains(&expected), "{said}");
    }
}
