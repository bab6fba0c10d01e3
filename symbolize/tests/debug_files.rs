//! Names from debug files, wherever they are, and never from a wrong one.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{compile, nm};
use symbolize::debug_file::DebugFiles;
use symbolize::object::Object;
use symbolize::sites::{self, Wanted};
use symbolize::{ElfSymbols, LinkAddr, Reason, RemoteFiles};
use test_support::{run_tool, skip};

/// A stripped program and its debug file, in a root directory of their own.
struct Installed {
    root: tempfile::TempDir,
    program: PathBuf,
    debug: PathBuf,
    /// The address of a function that only the debug file names.
    local: u64,
}

fn run(program: &str, args: &[&str], files: &[&Path]) -> Option<()> {
    run_tool(Command::new(program).args(args).args(files)).map(|_| ())
}

impl Installed {
    fn new(flags: &[&str]) -> Option<Installed> {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("opt")).unwrap();
        let flags = [&["-g", "-rdynamic"], flags].concat();
        let program = compile(&root.path().join("opt"), "names.c", "program", &flags)?;
        let listed = nm(&program, &[])?;
        let local = listed.iter().find(|f| f.name == "local_one").unwrap().addr;
        let debug = root.path().join("opt/program.debug");
        run("objcopy", &["--only-keep-debug"], &[&program, &debug])?;
        run("strip", &["-s"], &[&program])?;
        Some(Installed {
            root,
            program,
            debug,
            local,
        })
    }

    fn link(&self) -> Option<()> {
        let link = format!("--add-gnu-debuglink={}", self.debug.display());
        run("objcopy", &[&link], &[&self.program])
    }

    fn name(&self) -> Result<Vec<u8>, Reason> {
        let object = Object::read(&File::open(&self.program).unwrap()).unwrap();
        let root = OwnedFd::from(File::open(self.root.path()).unwrap());
        let files = DebugFiles::below(root, Path::new("/opt/program"), RemoteFiles::Open);
        let symbols = ElfSymbols::with_debug_files(object, &files).unwrap();
        let symbol = symbols.find_link(LinkAddr(self.local))?;
        Ok(symbol.name.to_vec())
    }

    fn move_debug_to(&mut self, place: &str) {
        let place = self.root.path().join(place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::rename(&self.debug, &place).unwrap();
        self.debug = place;
    }
}

#[test]
fn by_link_in_each_directory() {
    for flags in ["-Wl,--build-id=sha1", "-Wl,--build-id=none"] {
        let Some(mut installed) = Installed::new(&[flags]) else {
            return;
        };
        assert_eq!(installed.name(), Err(Reason::Stripped), "no link yet");
        if installed.link().is_none() {
            return;
        }
        for place in [
            "opt/.debug/program.debug",
            "usr/lib/debug/opt/program.debug",
            "opt/program.debug",
        ] {
            installed.move_debug_to(place);
            assert_eq!(installed.name().unwrap(), b"local_one", "{place}");
        }
        fs::write(&installed.debug, fs::read(&installed.program).unwrap()).unwrap();
        assert_eq!(installed.name(), Err(Reason::Stripped), "a link to itself");
    }
}

#[test]
fn a_function_that_program_and_debug_file_name_is_one_site() {
    let Some(installed) = Installed::new(&["-Wl,--build-id=sha1"]) else {
        return;
    };
    if installed.link().is_none() {
        return;
    }
    let object = Object::read(&File::open(&installed.program).unwrap()).unwrap();
    let root = OwnedFd::from(File::open(installed.root.path()).unwrap());
    let files = DebugFiles::below(root, Path::new("/opt/program"), RemoteFiles::Open);
    let symbols = ElfSymbols::with_debug_files(object, &files).unwrap();
    let named = |symbol: &symbolize::Symbol<'_>| symbol.name == b"main";
    assert_eq!(symbols.functions().filter(named).count(), 2, "one of each");
    let is_meant = |name: &str| name == "main";
    for wanted in [Wanted::Named("main"), Wanted::Matching(&is_meant)] {
        assert_eq!(sites::functions(&symbols, wanted).unwrap().len(), 1);
    }
}

/// `calloc` of the C library is also called `__libc_calloc`; one of both names is displayed.
#[test]
fn a_function_is_found_by_each_of_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile(folder.path(), "names.c", "program", &[]) else {
        return;
    };
    let symbols = ElfSymbols::read(&File::open(program).unwrap()).unwrap();
    let find = |name: &str| sites::functions(&symbols, Wanted::Named(name)).unwrap();
    let (shown, other) = (find("exported_alias"), find("exported_one"));
    assert_eq!((shown.len(), other.len()), (1, 1));
    assert_eq!(shown[0].start, other[0].start);
    assert_eq!(
        (&*shown[0].name, &*other[0].name),
        ("exported_alias", "exported_one")
    );
    assert!(find("exported_on").is_empty());
}

#[test]
fn another_builds_file_is_not_believed() {
    let Some(installed) = Installed::new(&["-Wl,--build-id=none"]) else {
        return;
    };
    if installed.link().is_none() {
        return;
    }
    let mut bytes = fs::read(&installed.debug).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&installed.debug, bytes).unwrap();
    assert_eq!(installed.name(), Err(Reason::Stripped));
}

#[test]
fn by_build_id() {
    let Some(mut installed) = Installed::new(&["-Wl,--build-id=0x1234567890abcdef"]) else {
        return;
    };
    installed.move_debug_to("usr/lib/debug/.build-id/12/34567890abcdef.debug");
    assert_eq!(installed.name().unwrap(), b"local_one");
    installed.move_debug_to("usr/lib/debug/.build-id/12/00000000000000.debug");
    assert_eq!(installed.name(), Err(Reason::Stripped));
}

/// Any user can write a file with that build-id, and put it where it is looked for.
#[test]
fn what_another_user_wrote_is_not_believed() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    if !rustix::process::geteuid().is_root() {
        return skip("only root can give a file to another user");
    }
    let Some(mut installed) = Installed::new(&["-Wl,--build-id=0x1234567890abcdef"]) else {
        return;
    };
    installed.move_debug_to("usr/lib/debug/.build-id/12/34567890abcdef.debug");
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    let (anna, ben) = (Some(60_001), Some(60_002));
    for (program_of, debug_of, debug_mode, is_believed) in [
        (None, anna, 0o644, false),
        (None, None, 0o666, false),
        (anna, ben, 0o644, false),
        (anna, anna, 0o644, true),
        (anna, None, 0o644, true),
        (None, None, 0o644, true),
    ] {
        chown(&installed.program, program_of.or(Some(0)), None).unwrap();
        chown(&installed.debug, debug_of.or(Some(0)), None).unwrap();
        mode(&installed.debug, debug_mode).unwrap();
        let case = format!("{program_of:?} {debug_of:?} {debug_mode:o}");
        assert_eq!(installed.name().is_ok(), is_believed, "{case}");
    }
}

/// Fedora's packages have such a section.
#[test]
fn inside_and_compressed() {
    let Some(installed) = Installed::new(&["-Wl,--build-id=sha1"]) else {
        return;
    };
    let mini = installed.root.path().join("mini");
    let packed = installed.root.path().join("mini.xz");
    let add = format!("--add-section=.gnu_debugdata={}", packed.display());
    let done = run(
        "objcopy",
        &["-S", "-K", "local_one"],
        &[&installed.debug, &mini],
    )
    .and_then(|()| run("xz", &["-k"], &[&mini]))
    .and_then(|()| run("objcopy", &[&add], &[&installed.program]));
    if done.is_some() {
        assert_eq!(installed.name().unwrap(), b"local_one");
    }
}
