//! Files that proftop, as root, writes for the user who called it: whatever that user,
//! or another, left at the place, proftop changes no file that the user could not
//! change alone.

use crate::common;

use common::{can_sample, proftop, run, side_by_side, text};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use test_support::{OTHER_USER, cases, is_root_or_skip, skip};

const OTHER_UID: u32 = 4_242_500;

/// A user's folder, and one of root's beside it.
struct World {
    _all: tempfile::TempDir,
    own: PathBuf,
    roots: PathBuf,
    /// A file in root's folder: any user may read it, and only root may write to it.
    secret: PathBuf,
    recording: PathBuf,
}

impl World {
    fn new() -> Option<World> {
        if !is_root_or_skip("only root can be called by another user") {
            return None;
        }
        let all = tempfile::tempdir().unwrap();
        let path = |name| all.path().join(name);
        let (own, roots) = (path("own"), path("roots"));
        fs::set_permissions(all.path(), Permissions::from_mode(0o755)).unwrap();
        for folder in [&own, &roots] {
            fs::create_dir(folder).unwrap();
        }
        chown(&own, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
        let secret = roots.join("secret");
        fs::write(&secret, "root's").unwrap();
        fs::set_permissions(&secret, Permissions::from_mode(0o644)).unwrap();
        let recording = path("demo.pft");
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/demo.pft");
        fs::copy(demo, &recording).unwrap();
        Some(World {
            own,
            roots,
            secret,
            recording,
            _all: all,
        })
    }

    /// Returns the command of proftop as sudo starts it.
    fn proftop(&self, args: &[&str]) -> Command {
        let mut command = proftop(args);
        command.env("SUDO_UID", OTHER_USER.to_string());
        command.env("SUDO_GID", OTHER_USER.to_string());
        command
    }

    /// Runs `export -f` to that path, which does not sample.
    fn export(&self, to: &Path) -> Output {
        let (from, to) = (self.recording.to_str().unwrap(), to.to_str().unwrap());
        run(&mut self.proftop(&["export", from, "--format", "folded", "-f", to]))
    }

    /// Returns the state of all files of root's. A file that only looks the same has another inode.
    fn roots(&self) -> Vec<String> {
        let mut all: Vec<String> = fs::read_dir(&self.roots)
            .unwrap()
            .map(|entry| state(&entry.unwrap().path()))
            .collect();
        all.sort();
        all
    }

    /// Fails unless each command refuses the path with these words, and changes no file of root's.
    fn refuses(&self, to: &Path, words: &str) {
        let before = self.roots();
        for command in ["export", "record", "batch"] {
            let output = match command {
                "export" => self.export(to),
                "record" => {
                    let to = to.to_str().unwrap();
                    run(&mut self.proftop(&["record", "-d", "1", "-f", "-o", to]))
                }
                _ => {
                    let to = to.to_str().unwrap();
                    run(&mut self.proftop(&["-b", "-n", "1", "-d", "0.1", "-f", "-o", to]))
                }
            };
            let said = text(&output.stderr);
            if said.contains("cannot sample") {
                skip("no rights to sample: record and -b are left out");
                continue;
            }
            assert_eq!(output.status.code(), Some(1), "{command}");
            assert!(said.contains(words), "{command}: {said}");
        }
        assert_eq!(self.roots(), before);
    }
}

/// Returns everything about a file that could have been changed.
fn state(path: &Path) -> String {
    let about = fs::symlink_metadata(path).unwrap();
    let content = about.is_file().then(|| fs::read(path).unwrap());
    format!(
        "{} inode {} uid {} gid {} mode {:o} links {} changed {} {:?}",
        path.display(),
        about.ino(),
        about.uid(),
        about.gid(),
        about.mode(),
        about.nlink(),
        about.ctime_nsec(),
        content,
    )
}

#[test]
fn a_link_to_roots_file_is_not_followed() {
    let Some(world) = World::new() else { return };
    let link = world.own.join("out");
    symlink(&world.secret, &link).unwrap();
    world.refuses(&link, "it is a symbolic link");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn a_link_to_nowhere_makes_no_file() {
    let Some(world) = World::new() else { return };
    let link = world.own.join("out");
    symlink(world.roots.join("new"), &link).unwrap();
    world.refuses(&link, "it is a symbolic link");
}

#[test]
fn a_folder_that_is_a_link_lends_no_rights() {
    let Some(world) = World::new() else { return };
    let link = world.own.join("folder");
    symlink(&world.roots, &link).unwrap();
    world.refuses(&link.join("new"), "ermission denied");
    world.refuses(&link.join("secret"), "a file of uid 0 is there");
}

#[test]
fn roots_file_under_another_name_is_not_written() {
    let Some(world) = World::new() else { return };
    let hard = world.own.join("out");
    fs::hard_link(&world.secret, &hard).unwrap();
    world.refuses(&hard, "a file of uid 0 is there");
    assert_eq!(fs::metadata(&hard).unwrap().nlink(), 2);
}

#[test]
fn roots_file_in_the_users_folder_stays() {
    let Some(world) = World::new() else { return };
    for mode in [0o644, 0o600] {
        let path = world.own.join("out");
        fs::write(&path, "root's").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let before = state(&path);
        world.refuses(&path, "a file of uid 0 is there");
        assert_eq!(state(&path), before);
    }
}

#[test]
fn roots_folder_takes_nothing() {
    let Some(world) = World::new() else { return };
    world.refuses(&world.roots.join("new"), "the rights of uid 4242424");
    world.refuses(&world.secret, "a file of uid 0 is there");
}

#[test]
fn settings_of_the_kernel_and_memory_are_no_place() {
    let Some(world) = World::new() else { return };
    let setting = Path::new("/proc/sys/kernel/core_pattern");
    let before = fs::read(setting).unwrap();
    world.refuses(setting, "cannot write");
    assert_eq!(fs::read(setting).unwrap(), before);
    world.refuses(Path::new("/proc/self/mem"), "cannot write");
    world.refuses(Path::new("/proc/thread-self/mem"), "cannot write");
}

#[test]
fn another_users_pipe_is_no_place_for_a_new_file() {
    let Some(world) = World::new() else { return };
    let folder = world.own.parent().unwrap().join("shared");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o1777)).unwrap();
    let pipe = folder.join("out");
    let made = Command::new("mkfifo")
        .args(["-m", "666"])
        .arg(&pipe)
        .status();
    assert!(made.unwrap().success());
    chown(&pipe, Some(OTHER_UID), None).unwrap();
    let (from, to) = (world.recording.to_str().unwrap(), pipe.to_str().unwrap());
    let args = ["export", from, "--format", "folded", to];
    let output = run(&mut world.proftop(&args));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("it is a pipe of uid 4242500"));
}

/// A command that writes a file of the user's. It gets the folder to write to and the number of the
/// round.
struct Writer {
    name: &'static str,
    samples: bool,
    command: fn(&World, &Path, usize) -> Command,
}

/// All that writes files for the user, but for the state that the screen keeps, which has a test
/// beside its source. The file is one of root's, or a new one.
const WRITERS: [Writer; 10] = [
    Writer {
        name: "export",
        samples: false,
        command: |world, at, round| {
            let from = world.recording.to_str().unwrap();
            let mut command = world.proftop(&["export", from, "--format", "folded", "-f"]);
            command.arg(at.join(target(round)));
            command
        },
    },
    Writer {
        name: "merge",
        samples: false,
        command: |world, at, round| {
            let from = world.recording.to_str().unwrap();
            let mut command = world.proftop(&["merge", from, "-f", "-o"]);
            command.arg(at.join(format!("{}.pft", target(round))));
            command
        },
    },
    Writer {
        name: "resolve",
        samples: false,
        command: |world, at, round| {
            let from = world.recording.to_str().unwrap();
            let mut command = world.proftop(&["resolve", from, "-f", "-o"]);
            command.arg(at.join(target(round)));
            command
        },
    },
    Writer {
        name: "config init",
        samples: false,
        command: |world, at, round| {
            let mut command = world.proftop(&["config", "init"]);
            command.env(
                "PROFTOP_CONFIG",
                at.join(format!("folder{round}/config.toml")),
            );
            command
        },
    },
    Writer {
        name: "symbolize --build-cache",
        samples: false,
        command: |world, at, round| {
            let mut command = world.proftop(&["symbolize", "--build-cache"]);
            command
                .arg(at.join(["", "folder"][round % 2]))
                .arg("/bin/sh");
            command
        },
    },
    Writer {
        name: "-b",
        samples: true,
        command: |world, at, round| {
            let mut command = world.proftop(&["-b", "-n", "1", "-d", "0.1", "-f", "-o"]);
            command.arg(at.join(target(round)));
            command
        },
    },
    Writer {
        name: "record",
        samples: true,
        command: |world, at, round| {
            let mut command = world.proftop(&["record", "-d", "1", "-f", "-o"]);
            command.arg(at.join(target(round)));
            command
        },
    },
    Writer {
        name: "record --format",
        samples: true,
        command: |world, at, round| {
            let words = ["record", "-d", "1", "--format", "folded", "-f", "-o"];
            let mut command = world.proftop(&words);
            command.arg(at.join(target(round)));
            command
        },
    },
    Writer {
        name: "record --ring",
        samples: true,
        command: |world, at, round| {
            let words = ["record", "--ring", "10s", "-d", "1", "-o"];
            let mut command = world.proftop(&words);
            command.arg(at.join(target(round)));
            command
        },
    },
    Writer {
        name: "a cache of tables",
        samples: true,
        command: |world, at, round| {
            let mut command = world.proftop(&["-b", "-n", "1", "-d", "0.1"]);
            command.env("PROFTOP_CACHE", at.join(["", "folder"][round % 2]));
            command
        },
    },
];

/// Returns the name of a file: one that root has, and one that is new.
fn target(round: usize) -> &'static str {
    ["secret", "new"][round % 2]
}

/// Runs `work` while another user changes where a path leads, all the time: to a folder of theirs,
/// and to root's.
fn while_swapped(world: &World, name: &str, work: impl FnOnce(&Path)) {
    let path = |kind: &str| world.own.join(format!("{kind} {name}"));
    let (at, link) = (path("at"), path("link"));
    fs::create_dir(&at).unwrap();
    chown(&at, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    symlink(&world.roots, &link).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let mut swaps = 0;
            while !done.load(Ordering::Relaxed) {
                use rustix::fs::{CWD, RenameFlags, renameat_with};
                renameat_with(CWD, &at, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        });
        // The other thread has to end as well if the work panics: the scope waits for it.
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&at)));
        done.store(true, Ordering::Relaxed);
        let swaps = swapper.join().unwrap();
        println!("{name}: {swaps} swaps");
        if let Err(why) = worked {
            std::panic::resume_unwind(why);
        }
    });
}

#[test]
fn a_folder_that_is_swapped_lends_no_rights() {
    let Some(world) = World::new() else { return };
    let before = world.roots();
    side_by_side(&WRITERS, |writer| {
        if writer.samples && !can_sample() {
            return;
        }
        // Each round of a writer that samples takes a second.
        let rounds = cases(if writer.samples { 2 } else { 8 }) as usize;
        while_swapped(&world, writer.name, |at| {
            for round in 0..rounds {
                let output = run(&mut (writer.command)(&world, at, round));
                let said = text(&output.stderr);
                let name = writer.name;
                if output.status.code() == Some(1) {
                    let words = [
                        "cannot write",
                        "cannot make",
                        "exists already",
                        "ermission",
                        // The ring looks at a file that is there: root's, which everybody may read,
                        // or one that is not there any more.
                        "cannot read",
                        "is no recording, and stays as it is",
                    ];
                    let is_refused = words.iter().any(|word| said.contains(word));
                    assert!(is_refused, "{name}: {said}");
                } else {
                    assert!(
                        matches!(output.status.code(), Some(0 | 5)),
                        "{name}: {said}"
                    );
                }
            }
        });
        assert_eq!(world.roots(), before, "{}", writer.name);
    });
}

#[test]
fn names_are_put_into_roots_recording_by_root_only() {
    let Some(world) = World::new() else { return };
    let before = state(&world.recording);
    let output = run(&mut world.proftop(&["resolve", world.recording.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("a file of uid 0 is there"));
    assert_eq!(state(&world.recording), before);
}

#[test]
fn a_configuration_is_read_and_made_with_the_users_rights() {
    let Some(world) = World::new() else { return };
    let hidden = world.roots.join("hidden.toml");
    fs::write(&hidden, "hunter2 = 1").unwrap();
    fs::set_permissions(&hidden, Permissions::from_mode(0o600)).unwrap();
    let link = world.own.join("config.toml");
    symlink(&hidden, &link).unwrap();
    let before = world.roots();
    let mut show = world.proftop(&["config", "show"]);
    let output = run(show.env("PROFTOP_CONFIG", &link));
    let said = text(&output.stderr);
    assert!(
        said.contains("Permission denied") && !said.contains("hunter2"),
        "{said}"
    );
    for place in [link, world.own.join("folder/new.toml")] {
        let mut init = world.proftop(&["config", "init"]);
        let is_new = !place.exists();
        let output = run(init.env("PROFTOP_CONFIG", &place));
        assert_eq!(output.status.success(), is_new);
        if is_new {
            assert_eq!(fs::metadata(&place).unwrap().uid(), OTHER_USER);
        }
    }
    assert_eq!(world.roots(), before);
}

#[test]
fn what_is_the_users_own_works_as_ever() {
    let Some(world) = World::new() else { return };
    let path = world.own.join("out");
    assert!(world.export(&path).status.success());
    let about = fs::metadata(&path).unwrap();
    assert_eq!((about.uid(), about.gid()), (OTHER_USER, OTHER_USER));
    assert!(about.len() > 0);

    // The file's other name keeps its content, and its permissions stay.
    let other = world.own.join("other");
    fs::hard_link(&path, &other).unwrap();
    fs::write(&path, "before").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    assert!(world.export(&path).status.success());
    assert_eq!(fs::read(&other).unwrap(), b"before");
    let about = fs::metadata(&path).unwrap();
    assert_eq!(
        (about.uid(), about.mode() & 0o777, about.nlink()),
        (OTHER_USER, 0o640, 1)
    );
    assert_eq!(fs::read_dir(&world.own).unwrap().count(), 2, "nothing else");

    // A file of another user that they may write to is replaced by their own.
    fs::write(&path, "before").unwrap();
    chown(&path, Some(OTHER_UID), None).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    assert!(world.export(&path).status.success());
    assert_eq!(fs::metadata(&path).unwrap().uid(), OTHER_USER);
}

#[test]
fn pipes_and_terminals_are_written_to() {
    let Some(world) = World::new() else { return };
    let from = world.recording.to_str().unwrap();
    let expected = {
        let args = ["export", from, "--format", "folded", "-"];
        run(&mut world.proftop(&args)).stdout
    };
    assert!(!expected.is_empty());
    for place in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let args = ["export", from, "--format", "folded", place];
        assert_eq!(run(&mut world.proftop(&args)).stdout, expected, "{place}");
    }
    let null = world.export(Path::new("/dev/null"));
    assert!(null.status.success());

    let pipe = world.own.join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    chown(&pipe, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    // The reader waits for a writer.
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    let args = ["export", from, "--format", "folded", pipe.to_str().unwrap()];
    assert!(run(&mut world.proftop(&args)).status.success());
    assert_eq!(reader.join().unwrap(), expected);
}

#[test]
fn what_only_root_may_read_is_a_recording_or_is_not_shown() {
    let Some(world) = World::new() else { return };
    // A file of root that would be taken for folded stacks.
    let folded = world.roots.join("lines");
    fs::write(&folded, "main;a_secret_of_root 42\n").unwrap();
    let report = |file: &Path| {
        let args = ["report", file.to_str().unwrap()];
        run(&mut world.proftop(&args))
    };
    // As any user may read it, the user may.
    let shown = report(&folded);
    assert!(text(&shown.stdout).contains("a_secret_of_root"));
    fs::set_permissions(&folded, Permissions::from_mode(0o600)).unwrap();
    let refused = report(&folded);
    assert!(text(&refused.stderr).contains("Permission denied"));
    assert!(!text(&refused.stdout).contains("a_secret_of_root"));
    assert_eq!(refused.status.code(), Some(1));
    // Also through a link of the user's own.
    let link = world.own.join("mine");
    symlink(&folded, &link).unwrap();
    assert_eq!(report(&link).status.code(), Some(1));

    // A recording that proftop has written as root can be opened.
    fs::set_permissions(&world.recording, Permissions::from_mode(0o600)).unwrap();
    assert!(report(&world.recording).status.success());
}
