//! Clients that are scripts: a correct one, and clients of hostile servers.

use super::*;
use std::os::unix::fs::PermissionsExt as _;
use symbolize::object::Object;
use test_support::{Scratch, is_root_or_skip, skip};

struct Bench {
    directory: Scratch,
    build_id: Vec<u8>,
    program: PathBuf,
    rights: UserRights,
}

impl Bench {
    fn new() -> Option<Bench> {
        let program = std::env::current_exe().unwrap();
        let object = Object::read(&File::open(&program).unwrap()).unwrap();
        let Some(build_id) = object.build_id() else {
            skip("the linker wrote no build-id");
            return None;
        };
        Some(Bench {
            directory: Scratch::new(),
            build_id,
            program,
            rights: UserRights::own(),
        })
    }

    fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    fn place(&self) -> ClientCache {
        ClientCache {
            cache: self.cache(),
            rights: self.rights.clone(),
        }
    }

    /// Runs a client with this script.
    fn fetch(&self, script: &str, limits: Limits) -> Result<(), FetchError> {
        self.fetch_as(0o700, script, limits)
    }

    fn fetch_as(&self, mode: u32, script: &str, limits: Limits) -> Result<(), FetchError> {
        let client = self.directory.path().join("client");
        let place = "d=\"$DEBUGINFOD_CACHE_PATH/$2\"; mkdir -p \"$d\"; f=\"$d/debuginfo\"";
        fs::write(&client, format!("#!/bin/sh\n{place}\n{script}\n")).unwrap();
        fs::set_permissions(&client, fs::Permissions::from_mode(mode)).unwrap();
        let stop = AtomicBool::new(false);
        let client = client.to_str().unwrap();
        fetch_with(client, &self.place(), &self.build_id, limits, &stop)
    }

    /// Returns the files that are left in the cache.
    fn left(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.cache()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

const LIMITS: Limits = Limits {
    bytes: 1 << 30,
    time: Duration::from_secs(60),
};

#[test]
fn what_belongs_is_kept_where_all_look() {
    let Some(bench) = Bench::new() else { return };
    let program = bench.program.display();
    let script = format!("[ \"$1\" = debuginfo ] && cp '{program}' \"$f\"");
    bench.fetch(&script, LIMITS).unwrap();
    let kept = debuginfod::debug_file(&bench.cache(), &bench.build_id);
    assert_eq!(fs::read(kept).unwrap(), fs::read(&bench.program).unwrap());
    assert_eq!(bench.left().len(), 1);
}

#[test]
fn what_does_not_belong_leaves_nothing() {
    let Some(bench) = Bench::new() else { return };
    let small = Limits {
        bytes: 1 << 20,
        ..LIMITS
    };
    let quick = Limits {
        // Enough time for the script to make its folders: a folder that `mkdir` makes after the end
        // of the script would stay.
        time: Duration::from_secs(2),
        ..LIMITS
    };
    let program = bench.program.display();
    let hostile = [
        ("exit 1", LIMITS, "no server has it"),
        ("true", LIMITS, "not the debug file"),
        ("echo '<html>' > \"$f\"", LIMITS, "not the debug file"),
        ("cp /bin/sh \"$f\"", LIMITS, "not the debug file"),
        ("ln -s /etc/passwd \"$f\"", LIMITS, "not the debug file"),
        ("mkfifo \"$f\"", LIMITS, "not the debug file"),
        (
            "sleep 0.5; exec cat /dev/zero > \"$f\"",
            small,
            "larger than 1 MiB",
        ),
        ("exec sleep 1000", quick, "took longer than"),
    ];
    for (script, limits, why) in hostile {
        let error = bench.fetch(script, limits).unwrap_err().to_string();
        assert!(error.contains(why), "{script}: {error}");
        assert_eq!(bench.left(), <[PathBuf; 0]>::default(), "{script}");
    }
    let larger = format!("cp '{program}' \"$f\"");
    assert!(bench.fetch(&larger, small).is_err());
    assert_eq!(bench.left(), <[PathBuf; 0]>::default());
}

#[test]
fn whoever_leaves_does_not_wait() {
    let Some(bench) = Bench::new() else { return };
    let stop = AtomicBool::new(true);
    let error = fetch_with("/bin/cat", &bench.place(), &bench.build_id, LIMITS, &stop);
    // The client ends by itself because it has no such file, or it is killed.
    assert!(matches!(
        error,
        Err(FetchError::Stopped | FetchError::NotThere)
    ));
    let none = fetch_with("/nowhere", &bench.place(), &bench.build_id, LIMITS, &stop);
    assert!(matches!(none, Err(FetchError::NoClient)));
    assert_eq!(bench.left(), <[PathBuf; 0]>::default());
}

#[test]
fn under_sudo_it_is_done_with_the_users_rights() {
    if !is_root_or_skip("only root can be another user") {
        return;
    }
    let Some(mut bench) = Bench::new() else {
        return;
    };
    // No account has this number.
    let uid = 4_242_424;
    bench.rights = UserRights::of(InvokingUser {
        uid,
        gid: uid,
        groups: vec![uid],
        name: "ann".into(),
        home: bench.directory.path().into(),
    });
    let everybody = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    everybody(bench.directory.path(), 0o777).unwrap();
    let said = bench.directory.path().join("said");
    let program = bench.directory.path().join("program");
    fs::copy(&bench.program, &program).unwrap();
    everybody(&program, 0o755).unwrap();
    let script = format!(
        "id -u > '{}'; cp '{}' \"$f\"",
        said.display(),
        program.display()
    );
    let fetch = |bench: &Bench| bench.fetch_as(0o755, &script, LIMITS);
    fetch(&bench).unwrap();
    assert_eq!(fs::read_to_string(&said).unwrap().trim(), uid.to_string());
    let kept = debuginfod::debug_file(&bench.cache(), &bench.build_id);
    assert_eq!(
        std::os::unix::fs::MetadataExt::uid(&fs::metadata(kept).unwrap()),
        uid
    );

    // If the cache leads to a folder of root, the client cannot write there.
    let roots = bench.directory.path().join("roots");
    fs::create_dir(&roots).unwrap();
    fs::remove_dir_all(bench.cache()).unwrap();
    std::os::unix::fs::symlink(&roots, bench.cache()).unwrap();
    assert!(matches!(fetch(&bench), Err(FetchError::Failed { .. })));
    assert_eq!(fs::read_dir(&roots).unwrap().count(), 0);
}
