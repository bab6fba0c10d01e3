//! Clients that are scripts: the right one, and what hostile servers make of it.

use super::*;
use std::os::unix::fs::PermissionsExt as _;

struct Bench {
    directory: tempfile::TempDir,
    build_id: Vec<u8>,
    program: PathBuf,
}

impl Bench {
    fn new() -> Option<Bench> {
        let program = std::env::current_exe().unwrap();
        let object = Object::read(&File::open(&program).unwrap()).unwrap();
        let Some(build_id) = object.build_id() else {
            println!("skipped: the linker wrote no build-id");
            return None;
        };
        Some(Bench {
            directory: tempfile::tempdir().unwrap(),
            build_id,
            program,
        })
    }

    fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    /// Runs a client that does this.
    fn fetch(&self, script: &str, limits: Limits) -> Result<(), FetchError> {
        let client = self.directory.path().join("client");
        let place = "d=\"$DEBUGINFOD_CACHE_PATH/$2\"; mkdir -p \"$d\"; f=\"$d/debuginfo\"";
        fs::write(&client, format!("#!/bin/sh\n{place}\n{script}\n")).unwrap();
        fs::set_permissions(&client, fs::Permissions::from_mode(0o700)).unwrap();
        let stop = AtomicBool::new(false);
        let client = client.to_str().unwrap();
        fetch_with(client, &self.cache(), &self.build_id, limits, &stop)
    }

    /// What is left in the cache.
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
        time: Duration::from_millis(200),
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
    let error = fetch_with("/bin/cat", &bench.cache(), &bench.build_id, LIMITS, &stop);
    // It ends by itself, for want of such a file, or is ended.
    assert!(matches!(
        error,
        Err(FetchError::Stopped | FetchError::NotThere)
    ));
    let none = fetch_with("/nowhere", &bench.cache(), &bench.build_id, LIMITS, &stop);
    assert!(matches!(none, Err(FetchError::NoClient)));
    assert_eq!(bench.left(), <[PathBuf; 0]>::default());
}
