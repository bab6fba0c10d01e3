//! Debug files from servers: a good one, and all kinds of bad ones. The tests are the
//! servers; the client is that of elfutils.

use crate::common;

use common::mistakes::{VARIABLE, assert_told};
use common::{can_sample, proftop, reports_and_errors_until, reports_until, run, text};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use test_support::{Process, run_tool, skip};

/// What a server does when it is asked for a debug file.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Manner {
    Good,
    /// Sends the debug file of another build.
    Wrong,
    Empty,
    /// Never sends a byte.
    Silent,
    /// Sends bytes without end, and no length.
    Endless,
    /// Sends compressed zeros without end.
    Bomb,
    /// Redirects to itself, again and again.
    Redirect,
    NotFound,
}

/// A program without symbols, its debug file, and a cache of its own.
struct Fixture {
    directory: tempfile::TempDir,
    address: String,
}

const SOURCE: &str = "
#include <stdlib.h>
static __attribute__((noinline)) unsigned hidden_work(unsigned rounds) {
    volatile unsigned sum = 0;
    while (rounds--) sum += rounds;
    return sum;
}
int main(int argc, char **argv) {
    for (int n = argc > 1 ? atoi(argv[1]) : 0; n > 0; n--) hidden_work(4000000);
}
";

impl Fixture {
    fn new() -> Option<Fixture> {
        if Command::new("debuginfod-find")
            .arg("--help")
            .output()
            .is_err()
        {
            skip("debuginfod-find is not installed (package debuginfod)");
            return None;
        }
        Fixture::without_client()
    }

    fn without_client() -> Option<Fixture> {
        let mut fixture = Fixture {
            directory: tempfile::tempdir().unwrap(),
            address: String::new(),
        };
        let path = |name: &str| fixture.path(name).to_str().unwrap().to_owned();
        fs::write(path("work.c"), SOURCE).unwrap();
        let build = |command: &str, args: &[&str]| run_tool(Command::new(command).args(args));
        let (program, debug) = (path("work"), path("work.debug"));
        let flags = [
            "-O1",
            "-g",
            "-Wl,--build-id=sha1",
            "-o",
            &program,
            &path("work.c"),
        ];
        let listed = build("cc", &flags).and_then(|_| build("nm", &[&program]));
        let stripped = build("objcopy", &["--only-keep-debug", &program, &debug])
            .and_then(|_| build("strip", &[&program]));
        let (listed, _) = listed.zip(stripped)?;
        let listed = text(&listed.stdout);
        let line = listed.lines().find(|line| line.ends_with("hidden_work"));
        fixture.address = format!("0x{}", line.unwrap().split(' ').next().unwrap());
        Some(fixture)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn cache(&self) -> PathBuf {
        self.path("cache")
    }

    /// Returns the command of proftop with this server to ask.
    fn proftop(&self, server: &Server, args: &[&str]) -> Command {
        let mut command = proftop(args);
        command
            .env("DEBUGINFOD_URLS", &server.url)
            .env("DEBUGINFOD_CACHE_PATH", self.cache())
            .env("DEBUGINFOD_MAXSIZE", "4194304")
            .env("DEBUGINFOD_MAXTIME", "2")
            .env("PROFTOP_CACHE", self.path("tables"))
            .env_remove("http_proxy")
            .env("no_proxy", "127.0.0.1");
        command
    }

    /// Returns the files in the cache, without the client's own notes.
    fn kept(&self) -> Vec<String> {
        let entries = fs::read_dir(self.cache()).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }
}

struct Server {
    url: String,
    asked: Arc<AtomicUsize>,
}

impl Server {
    fn start(manner: Manner, fixture: &Fixture) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<AtomicUsize>::default();
        let file = match manner {
            Manner::Wrong => fs::read("/bin/sh").unwrap(),
            _ => fs::read(fixture.path("work.debug")).unwrap(),
        };
        let (counter, own) = (asked.clone(), url.clone());
        // The thread ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::Relaxed);
                let (file, own) = (file.clone(), own.clone());
                thread::spawn(move || serve(stream, manner, &file, &own));
            }
        });
        Server { url, asked }
    }
}

/// Serves one connection. A server closes it when the client does.
fn serve(mut stream: TcpStream, manner: Manner, file: &[u8], own: &str) -> Option<()> {
    let mut asked = String::new();
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    reader.read_line(&mut asked).ok()?;
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 2 {
        line.clear();
    }
    let path = asked.split(' ').nth(1)?.to_owned();
    let is_debug_file = path.starts_with("/buildid/") && path.ends_with("/debuginfo");
    let whole = |stream: &mut TcpStream, status: &str, body: &[u8]| {
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body).ok()
    };
    match manner {
        Manner::Good | Manner::Wrong if is_debug_file => whole(&mut stream, "200 OK", file),
        Manner::Empty => whole(&mut stream, "200 OK", b""),
        Manner::Silent => {
            // Waits until the client closes the connection.
            _ = reader.read_line(&mut line);
            None
        }
        Manner::Redirect => {
            let head = format!(
                "HTTP/1.1 302 Found\r\nLocation: {own}{path}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).ok()
        }
        Manner::Endless => endless(stream, "", &[0x55; 65536]),
        Manner::Bomb => {
            // A repeated stored block of gzip would not grow: this one is a run of zeros,
            // some thousand times smaller than what it unpacks to.
            let packed = bomb();
            endless(stream, "Content-Encoding: gzip\r\n", &packed)
        }
        _ => whole(&mut stream, "404 Not Found", b"no"),
    }
}

fn endless(mut stream: TcpStream, header: &str, piece: &[u8]) -> Option<()> {
    let head = format!("HTTP/1.1 200 OK\r\n{header}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    loop {
        stream.write_all(piece).ok()?;
    }
}

/// Returns 64 MiB of zeros, compressed by gzip itself.
fn bomb() -> Vec<u8> {
    let script = "head -c 67108864 /dev/zero | gzip -9";
    let packed = Command::new("sh").args(["-c", script]).output();
    packed.map_or_else(|_| Vec::new(), |output| output.stdout)
}

#[test]
fn a_command_asks_once_and_keeps_what_came() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let server = Server::start(Manner::Good, &fixture);
    let program = fixture.path("work");
    let args = ["symbolize", program.to_str().unwrap(), &fixture.address];
    let first = run(&mut fixture.proftop(&server, &args));
    assert!(
        text(&first.stdout).contains("hidden_work at "),
        "{}",
        text(&first.stdout)
    );
    assert!(text(&first.stderr).contains("asking debuginfod"));
    assert_eq!(fixture.kept().len(), 1);
    let asked = server.asked.load(Ordering::Relaxed);
    assert!(asked > 0);
    let second = run(&mut fixture.proftop(&server, &args));
    assert_eq!(second.stdout, first.stdout);
    assert_eq!(server.asked.load(Ordering::Relaxed), asked);
    // Without servers in the environment, no server is asked.
    let other = Fixture::new().unwrap();
    let mut alone = other.proftop(&server, &args);
    let alone = run(alone.env_remove("DEBUGINFOD_URLS"));
    assert!(!text(&alone.stdout).contains("hidden_work"));
    assert_eq!(server.asked.load(Ordering::Relaxed), asked);
}

#[test]
fn a_bad_server_does_no_harm_and_is_named() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let program = fixture.path("work");
    for (manner, why) in [
        (Manner::NotFound, "no server has it"),
        (Manner::Wrong, "is not the debug file of that build"),
        (Manner::Empty, ""),
        (Manner::Silent, ""),
        (Manner::Endless, ""),
        (Manner::Bomb, ""),
        (Manner::Redirect, ""),
    ] {
        let server = Server::start(manner, &fixture);
        let began = Instant::now();
        let args = ["symbolize", program.to_str().unwrap(), &fixture.address];
        let output = run(&mut fixture.proftop(&server, &args));
        assert!(output.status.success(), "{manner:?}");
        let said = text(&output.stderr);
        assert!(
            said.contains("no debug file of `work`"),
            "{manner:?}: {said}"
        );
        assert!(said.contains(why), "{manner:?}: {said}");
        assert!(!text(&output.stdout).contains("hidden_work"), "{manner:?}");
        assert_eq!(fixture.kept(), Vec::<String>::new(), "{manner:?}");
        assert!(server.asked.load(Ordering::Relaxed) > 0, "{manner:?}");
        println!("{manner:?}: {:?}", began.elapsed());
    }
}

/// Options of a run that goes on, with a report each second.
const LIVE: [&str; 7] = ["-b", "--format", "json", "-F", "499", "-d", "1"];

#[test]
fn what_is_hot_gets_its_name_while_we_look() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    if !can_sample() {
        return;
    }
    let server = Server::start(Manner::Good, &fixture);
    let mut command = fixture.proftop(&server, &LIVE);
    // The answer comes at once; how long that takes depends on the machine.
    command.env("DEBUGINFOD_MAXTIME", "60");
    command.args(["--", fixture.path("work").to_str().unwrap(), "40000"]);
    let names = |report: &serde_json::Value| {
        let functions = report["functions"].as_array().unwrap().iter();
        let names = functions.filter_map(|function| function["name"].as_str());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let has_name = |report: &serde_json::Value| names(report).iter().any(|n| n == "hidden_work");
    let reports = reports_until(&mut command, "the name", |reports| {
        reports.last().is_some_and(has_name)
    });
    let first = reports.iter().find(|report| has_name(report)).unwrap();
    let (found, notes) = (names(first), first["notes"].to_string());
    assert!(
        !found.iter().any(|name| name.starts_with("work+0x")),
        "what was seen before has the name as well: {found:?}"
    );
    assert!(notes.contains("debuginfod: 1 debug file came"), "{notes}");
}

/// The work that a mistake is made in.
pub const FETCHING: &str = "fetching a debug file";

#[test]
fn a_mistake_costs_one_debug_file() {
    // It is made before the client is started.
    let Some(fixture) = Fixture::without_client() else {
        return;
    };
    if !can_sample() {
        return;
    }
    let server = Server::start(Manner::Good, &fixture);
    let mut command = fixture.proftop(&server, &LIVE);
    let mut work = Command::new(fixture.path("work"));
    let work = Process::start_load(work.arg("40000"));
    command.env(VARIABLE, FETCHING);
    command.args(["-p", &work.pid().to_string()]);
    let awaited = "samples, and a note of the mistake";
    let (_, said) = reports_and_errors_until(&mut command, awaited, |reports| {
        let last = reports.last().unwrap();
        let notes = last["notes"].to_string();
        last["samples"].as_u64() > Some(0) && notes.contains("made a mistake while fetching")
    });
    assert_told(&said, FETCHING);
}

/// How long a client may take in tests that it has to outlast.
const CLIENT_TIME: Duration = Duration::from_secs(3600);

/// Nothing waits for a server, and the end of the run does not either.
#[test]
fn a_silent_server_holds_nobody_up() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    if !can_sample() {
        return;
    }
    let server = Server::start(Manner::Silent, &fixture);
    let mut command = fixture.proftop(&server, &LIVE);
    command.env("DEBUGINFOD_MAXTIME", CLIENT_TIME.as_secs().to_string());
    command.args(["--", fixture.path("work").to_str().unwrap(), "40000"]);
    let began = Instant::now();
    let is_asked = || server.asked.load(Ordering::Relaxed) > 0;
    let reports = reports_until(&mut command, "the server was asked", |reports| {
        reports.len() >= 3 && is_asked()
    });
    assert!(reports.len() >= 3, "{} reports", reports.len());
    // A run that waited for the server would take all the time that the client may take.
    assert!(began.elapsed() < CLIENT_TIME / 2);
    assert_eq!(fixture.kept(), Vec::<String>::new());
}
