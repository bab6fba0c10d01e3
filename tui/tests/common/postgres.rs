//! A database server with two clients, of its own and of no rights.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use test_support::{Process, skip, wait_until};

pub struct Postgres {
    _clients: Process,
    _server: Process,
    /// Goes last.
    _folder: tempfile::TempDir,
}

impl Postgres {
    /// `None` where it is not installed, or no rights can be given away.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            skip("PostgreSQL is not installed");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().to_str().expect("UTF-8").to_owned();
        rustix::fs::chown(folder.path(), Some(rustix::fs::Uid::from_raw(65534)), None).ok()?;
        let run = |name: &str, args: &[&str]| {
            // It refuses to run as root.
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            command.arg(programs.join(name)).args(args);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command.env("PGHOST", &path).current_dir(&path);
            command
        };
        let data = format!("{path}/data");
        let made = run("initdb", &["-D", &data, "-A", "trust", "-U", "test"]).status();
        if !made.is_ok_and(|status| status.success()) {
            skip("PostgreSQL's initdb cannot be run as nobody");
            return None;
        }
        let settings = ["-k", &path, "-c", "listen_addresses=", "-c", "fsync=off"];
        let server = Process::start(run("postgres", &["-D", &data]).args(settings));
        let database = ["-U", "test", "postgres"];
        wait_until("it takes clients", || {
            let ready = run("pg_isready", &["-q", "-U", "test"]).status();
            ready.is_ok_and(|status| status.success())
        });
        let filled = run("pgbench", &["-i", "-q", "-s", "2"])
            .args(database)
            .status();
        assert!(filled.expect("pgbench starts").success());
        let load = ["-n", "-S", "-c", "2", "-j", "2", "-T", "300"];
        let clients = Process::start(run("pgbench", &load).args(database));
        Some(Self {
            _clients: clients,
            _server: server,
            _folder: folder,
        })
    }
}

/// The newest of them.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    folders.filter(|bin| bin.join("pgbench").exists()).max()
}
