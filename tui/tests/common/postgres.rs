//! A database server for one test, without rights, with two clients or without any.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use test_support::{Process, skip, wait_until};

pub struct Postgres {
    _clients: Option<Process>,
    server: Process,
    programs: PathBuf,
    /// Dropped last, after the processes that use it.
    folder: tempfile::TempDir,
}

const DATABASE: [&str; 3] = ["-U", "test", "postgres"];

impl Postgres {
    /// Starts a server with two clients that read all the time. Returns None where it is not
    /// installed, or rights cannot be given away.
    pub fn start() -> Option<Self> {
        let mut server = Self::start_idle()?;
        server.load(&[]);
        Some(server)
    }

    /// Starts a server with two clients that make this many queries in a second.
    pub fn start_at(per_second: u32) -> Option<Self> {
        let mut server = Self::start_idle()?;
        server.load(&["-R", &per_second.to_string()]);
        Some(server)
    }

    fn load(&mut self, options: &[&str]) {
        let load = ["-n", "-S", "-c", "2", "-j", "2", "-T", "300"];
        let mut clients = self.command("pgbench");
        clients.args(load).args(options).args(DATABASE);
        self._clients = Some(Process::start_load(&mut clients));
    }

    /// Starts a server without clients, which does nothing by itself.
    pub fn start_idle() -> Option<Self> {
        let Some(programs) = programs() else {
            skip("PostgreSQL is not installed");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        rustix::fs::chown(folder.path(), Some(rustix::fs::Uid::from_raw(65534)), None).ok()?;
        let data = folder.path().join("data");
        let mut init = command(&programs, folder.path(), "initdb");
        let made = init
            .arg("-D")
            .arg(&data)
            .args(["-A", "trust", "-U", "test"]);
        if !made.status().is_ok_and(|status| status.success()) {
            skip("PostgreSQL's initdb cannot be run as nobody");
            return None;
        }
        let mut server = command(&programs, folder.path(), "postgres");
        server.arg("-D").arg(&data).arg("-k").arg(folder.path());
        for setting in ["listen_addresses=", "fsync=off", "autovacuum=off"] {
            server.args(["-c", setting]);
        }
        let started = Self {
            _clients: None,
            server: Process::start_load(&mut server),
            programs,
            folder,
        };
        wait_until("it takes clients", || {
            let ready = started
                .command("pg_isready")
                .args(["-q", "-U", "test"])
                .status();
            ready.is_ok_and(|status| status.success())
        });
        let mut fill = started.command("pgbench");
        let filled = fill.args(["-i", "-q", "-s", "2"]).args(DATABASE).status();
        assert!(filled.expect("pgbench starts").success());
        Some(started)
    }

    /// Returns the pid of the server. Its sessions are child processes.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Has one client make this many queries, at this rate, and nothing else.
    pub fn query(&self, queries: u64, per_second: u32) {
        let script = self.folder.path().join("query.sql");
        let query = "\\set aid random(1, 200000)\n\
                     SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n";
        fs::write(&script, query).expect("a file");
        let mut client = self.command("pgbench");
        client.args(["-n", "-c", "1", "-f"]).arg(&script);
        client.args(["-t", &queries.to_string(), "-R", &per_second.to_string()]);
        let status = client.args(DATABASE).status().expect("pgbench starts");
        assert!(status.success(), "{status}");
    }

    /// Has two clients ask for a checksum of the same rows again and again, and stop at the first
    /// wrong one.
    pub fn start_checked_work(&self) -> CheckedWork {
        let sum = "md5(string_agg(aid::text || abalance, ',' ORDER BY bid, filler, aid DESC))";
        let rows = "pgbench_accounts WHERE aid BETWEEN 100 AND 600";
        let mut ask = self.command("psql");
        let ask = ask.args(["-At", "-c", &format!("SELECT {sum} FROM {rows}")]);
        let answer = ask.args(DATABASE).stdout(Stdio::piped()).output();
        let right = String::from_utf8(answer.expect("psql starts").stdout).expect("a text");
        let right = right.trim();
        assert_eq!(right.len(), 32, "{right}");
        let script = self.folder.path().join("checked.sql");
        // A wrong checksum divides by zero.
        let query = format!("SELECT 1 / ({sum} = '{right}')::int FROM {rows};\n");
        fs::write(&script, query).expect("a file");
        let mut clients = self.command("pgbench");
        clients.args(["-n", "-c", "2", "-j", "2", "-T", "3600", "-P", "1", "-f"]);
        let log = self.folder.path().join("clients");
        let file = fs::File::create(&log).expect("a file");
        clients.arg(script).args(DATABASE).stderr(file);
        let clients = Process::start_load(&mut clients);
        CheckedWork { clients, log }
    }

    fn command(&self, name: &str) -> Command {
        command(&self.programs, self.folder.path(), name)
    }
}

/// Clients that stop when an answer is wrong, or their session is lost.
pub struct CheckedWork {
    clients: Process,
    /// The output of the clients.
    log: PathBuf,
}

impl CheckedWork {
    /// Fails if an answer was wrong, or a client has stopped.
    pub fn check(&mut self) {
        let said = || fs::read_to_string(&self.log).expect("what they say");
        let rounds = || said().matches("progress: ").count();
        let before = rounds();
        wait_until("clients go on", || {
            let ended = self.clients.try_wait().expect("ours");
            assert!(ended.is_none(), "{ended:?}: {}", said());
            rounds() > before + 1
        });
        // One of two clients goes on without the other.
        assert!(!said().contains("aborted"), "{}", said());
    }
}

/// Returns the command of one of PostgreSQL's programs, run as nobody: the server refuses root.
fn command(programs: &Path, folder: &Path, name: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(programs.join(name));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.env("PGHOST", folder).current_dir(folder);
    command
}

/// Returns the folder with the programs of the newest installed version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    folders.filter(|bin| bin.join("pgbench").exists()).max()
}
