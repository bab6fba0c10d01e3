use super::*;
use probe::features::Level;
use std::process::{Command, Stdio};
use test_support::{Process, copy_program, wait_until};

/// Takes the place of `sample`: the test program is not proftop and cannot record.
fn unsampled(_: u32) -> Sampled {
    Err("this is a test".into())
}

fn elf(symbols: SymbolTable) -> ElfFacts {
    ElfFacts {
        is_64_bit: true,
        build_id: Some("9f31".into()),
        symbols,
        has_eh_frame: true,
        walkable: Ok(0.99),
        code_bytes: 1 << 20,
        has_debug_file: false,
    }
}

fn module(on_disk: OnDisk, elf: Result<ElfFacts, String>) -> ModuleFacts {
    ModuleFacts {
        path: "/lib/x.so".into(),
        on_disk,
        elf,
        has_debug_file: false,
        advice: None,
        is_sampled: false,
    }
}

/// A long-running process whose binary the test may delete.
struct Sleeper {
    dir: tempfile::TempDir,
    process: Process,
}

impl Sleeper {
    fn start() -> Sleeper {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("sleeper");
        copy_program("/bin/sleep", &program);
        let mut command = Command::new(&program);
        command.arg("600").stdin(Stdio::null());
        let process = Process::start(&mut command);
        let sleeper = Sleeper { dir, process };
        // Spawn returns when exec begins; the file is mapped a moment later.
        wait_until("the file is mapped", || sleeper.find_own_module().is_some());
        sleeper
    }

    fn program(&self) -> PathBuf {
        self.dir.path().join("sleeper")
    }

    fn own_module(&self) -> ModuleFacts {
        self.find_own_module().unwrap()
    }

    fn find_own_module(&self) -> Option<ModuleFacts> {
        let modules = inspect(self.process.pid(), unsampled)
            .unwrap()
            .modules
            .unwrap();
        modules.into_iter().find(|m| m.path == self.program())
    }
}

#[test]
fn sees_what_became_of_a_binary() {
    let sleeper = Sleeper::start();
    assert_eq!(sleeper.own_module().on_disk, OnDisk::Same);

    fs::remove_file(sleeper.program()).unwrap();
    assert_eq!(sleeper.own_module().on_disk, OnDisk::Deleted);

    fs::copy("/bin/true", sleeper.program()).unwrap();
    assert_eq!(sleeper.own_module().on_disk, OnDisk::Replaced);
    assert!(sleeper.own_module().elf.is_ok());
}

#[test]
fn knows_itself() {
    let facts = inspect(std::process::id(), unsampled).unwrap();
    assert_eq!(facts.is_64_bit, Some(cfg!(target_pointer_width = "64")));
    assert_eq!(facts.shares_pid_namespace, Some(true));
    assert_eq!(facts.shares_mount_namespace, Some(true));
    assert!(!facts.has_anonymous_code);
    let modules = facts.modules.as_ref().unwrap();
    let libc = modules
        .iter()
        .any(|m| m.path.to_string_lossy().contains("libc"));
    assert!(libc, "{modules:?}");
}

#[test]
fn a_link_cannot_lead_out_of_the_root() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
    let root = Ok(OwnedFd::from(File::open(dir.path()).unwrap()));
    let way = Files::default();
    let error = open_in(&root, Path::new("/link"), &way).unwrap_err();
    assert_eq!(error, Reason::FileGone);
    assert!(open_in(&root, Path::new("/../../etc/passwd"), &way).is_err());
}

#[test]
fn a_pipe_in_the_place_of_a_file_does_not_hold_us_up() {
    let dir = tempfile::tempdir().unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("pipe"), kind, mode, 0).unwrap();
    let root = Ok(OwnedFd::from(File::open(dir.path()).unwrap()));
    let way = Files::default();
    assert!(open_in(&root, Path::new("pipe"), &way).is_err());
}

#[test]
fn modules_are_judged_by_what_is_lost() {
    let fine = judge_module(&module(OnDisk::Same, Ok(elf(SymbolTable::Symtab))), None);
    assert_eq!(fine.level, Level::Ok);
    assert_eq!(
        fine.what,
        "/lib/x.so: .symtab (all functions), unwind rules for 99 % of its code, build-id 9f31"
    );
    let bare = judge_module(
        &module(
            OnDisk::Same,
            Ok(ElfFacts {
                walkable: Ok(0.0),
                ..elf(SymbolTable::Symtab)
            }),
        ),
        None,
    );
    assert_eq!(bare.level, Level::Warn);
    assert!(bare.what.contains("no unwind information"), "{}", bare.what);
    let stripped = judge_module(&module(OnDisk::Same, Ok(elf(SymbolTable::None))), None);
    assert_eq!(stripped.level, Level::Warn);
    assert!(stripped.what.contains("stripped"));
    let empty = ElfFacts {
        walkable: Ok(0.0),
        code_bytes: 300,
        ..elf(SymbolTable::None)
    };
    let mut empty = module(OnDisk::Same, Ok(empty));
    let finding = judge_module(&empty, None);
    assert_eq!(finding.level, Level::Ok, "nothing is lost with it");
    empty.is_sampled = true;
    let finding = judge_module(&empty, None);
    assert_eq!(finding.level, Level::Warn, "time is spent in it");
    let mut sampled = SampledFacts::example();
    if let Ok(elf) = &mut empty.elf {
        elf.symbols = SymbolTable::Symtab;
        elf.walkable = Ok(0.4);
    }
    let finding = judge_module(&empty, Some(&sampled));
    assert_eq!(finding.level, Level::Ok, "{}", finding.what);
    assert!(
        { finding.what }.contains("which was enough for each of 190 stacks"),
        "its stacks are whole"
    );
    sampled.whole -= 1;
    let finding = judge_module(&empty, Some(&sampled));
    assert_eq!(finding.level, Level::Warn, "{}", finding.what);
    let sampled = SampledFacts::example();
    let path = sampled.files[0].path.to_string();
    let frames = judge_module(
        &ModuleFacts {
            path: path.into(),
            ..module(OnDisk::Same, Ok(elf(SymbolTable::None)))
        },
        Some(&sampled),
    );
    assert!(
        frames.what.ends_with("without a name: 1.0 % of all frames"),
        "{frames:?}"
    );
    let with_debug_file = judge_module(
        &ModuleFacts {
            has_debug_file: true,
            ..module(OnDisk::Same, Ok(elf(SymbolTable::None)))
        },
        None,
    );
    assert_eq!(with_debug_file.level, Level::Ok);
    let replaced = judge_module(
        &module(OnDisk::Replaced, Ok(elf(SymbolTable::Dynsym))),
        None,
    );
    assert!(
        replaced
            .what
            .ends_with("replaced on disk since it was started")
    );
    let unreadable = judge_module(
        &module(OnDisk::Unreadable, Err("Permission denied".into())),
        None,
    );
    assert_eq!(unreadable.level, Level::Warn);
}

#[test]
fn kernel_threads_have_no_program() {
    let facts = ProcessFacts {
        pid: 2,
        comm: "kthreadd".into(),
        exe: None,
        exe_is_hidden: false,
        is_64_bit: None,
        shares_pid_namespace: None,
        shares_mount_namespace: Some(false),
        modules: Ok(Vec::new()),
        has_anonymous_code: true,
        python: None,
        perf_map: None,
        jit_advice: Advice::default(),
        sampled: Err("it has no code of its own".into()),
    };
    let findings = findings(&facts);
    let ids: Vec<_> = findings.iter().map(|f| (f.id, f.level)).collect();
    assert_eq!(
        ids,
        [
            ("process", Level::Ok),
            ("process-namespaces", Level::Ok),
            ("process-jit", Level::Warn),
            ("process-samples", Level::Ok)
        ]
    );
    // If the program is only hidden from us, the finding does not say that there is none.
    let hidden = ProcessFacts {
        exe_is_hidden: true,
        ..facts
    };
    let finding = judge_identity(&hidden);
    assert_eq!(finding.level, Level::Warn);
    assert!(finding.what.contains("not ours to see"), "{}", finding.what);
}
