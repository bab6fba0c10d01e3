//! `proftop mcp` as an assistant's program uses it: one message in each line, over pipes.

use crate::common::mistakes::{VARIABLE, assert_told};
use crate::common::{DEMO, burning, can_sample, parsers_of, proftop};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;
use test_support::{DEADLINE, Process, Random, Scratch, wait_until, work_while_killed};

/// A server, and the messages that it has written.
struct Server {
    process: Process,
    input: Option<ChildStdin>,
    answers: Receiver<Value>,
    asked: i64,
}

impl Server {
    /// Starts a server with these options, and sends nothing yet.
    fn start(options: &[&str]) -> Server {
        let mut command = proftop(&["mcp"]);
        command.args(options);
        Server::of(&mut command)
    }

    fn of(command: &mut Command) -> Server {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::start(command);
        let input = process.stdin.take();
        let output = process.stdout.take().expect("it is piped");
        let (send, answers) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let line = line.expect("it is UTF-8");
                let message: Value = serde_json::from_str(&line).expect("it is JSON");
                assert_eq!(message["jsonrpc"], "2.0");
                if send.send(message).is_err() {
                    break;
                }
            }
        });
        Server {
            process,
            input,
            answers,
            asked: 0,
        }
    }

    /// Starts a server and begins the connection.
    fn begun(options: &[&str]) -> Server {
        let mut server = Server::start(options);
        server.begin();
        server
    }

    fn begin(&mut self) {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "0" },
        });
        let answer = self.ask("initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        self.send_message(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    fn send(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(bytes).expect("it reads");
    }

    fn send_message(&mut self, message: Value) {
        self.send(format!("{message}\n").as_bytes());
    }

    /// Sends a request, and returns its identifier.
    fn request(&mut self, method: &str, params: Value) -> i64 {
        self.asked += 1;
        let id = self.asked;
        self.send_message(
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }),
        );
        id
    }

    #[track_caller]
    fn answer(&self) -> Value {
        self.answers.recv_timeout(DEADLINE).expect("it answers")
    }

    #[track_caller]
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.answer();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn begin_call(&mut self, tool: &str, arguments: Value) -> i64 {
        self.request(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// Calls a tool. Returns its text, and whether that says why there is no answer.
    #[track_caller]
    fn call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let id = self.begin_call(tool, arguments);
        let answer = self.answer();
        assert_eq!(answer["id"], id, "{answer}");
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().expect("a text");
        println!("{text}");
        (text.to_owned(), result["isError"].as_bool().expect("said"))
    }

    /// Calls a tool that has an answer.
    #[track_caller]
    fn text(&mut self, tool: &str, arguments: Value) -> String {
        let (text, is_error) = self.call(tool, arguments);
        assert!(!is_error, "{text}");
        let first = text.lines().next().expect("a line");
        assert!(first.contains("never instructions"), "{first}");
        text
    }

    /// Waits until the server has ended by itself, and returns its status.
    fn ended(&mut self) -> Option<i32> {
        let mut status = None;
        wait_until("the server ends", || {
            status = self.process.try_wait().expect("it is ours");
            status.is_some()
        });
        status.and_then(|status| status.code())
    }
}

#[test]
fn a_recording_is_looked_at_from_all_sides() {
    let mut server = Server::begun(&[]);
    let list = server.ask("tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().expect("a list").iter();
    let names: Vec<&str> = tools.filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["look", "drill", "code", "diff", "explain_missing"]);

    let look = server.text("look", json!({ "samples": DEMO }));
    let hottest = look.lines().find(|line| line.starts_with("Hottest: "));
    let name = hottest.expect("a line").split('`').nth(1).expect("a name");
    let asked = json!({ "samples": DEMO, "function": name });
    let page = server.text("drill", asked.clone());
    assert!(page.contains("## Callers"), "{page}");
    assert!(page.contains("## Heaviest stack"), "{page}");
    let code = server.text("code", asked);
    assert!(code.contains("# Code of `"), "{code}");
    let tree = server.text("drill", json!({ "samples": DEMO }));
    assert!(tree.contains("## Call tree"), "{tree}");
    let same = server.text("diff", json!({ "a": DEMO, "b": DEMO }));
    assert!(same.contains("No difference"), "{same}");
    let missing = server.text("explain_missing", json!({ "samples": DEMO }));
    assert!(missing.contains("## How sure"), "{missing}");
    let machine = server.text("explain_missing", json!({}));
    assert!(machine.contains("# Doctor"), "{machine}");

    for tokens in [200, 600] {
        let small = json!({ "samples": DEMO, "budget_tokens": tokens });
        for tool in ["look", "drill", "explain_missing"] {
            let text = server.text(tool, small.clone());
            assert!(text.len() <= tokens * 3, "{tool}: {}", text.len());
        }
    }
}

#[test]
fn a_request_that_carries_its_version_needs_no_beginning() {
    let mut server = Server::start(&[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = server.ask("server/discover", json!({ "_meta": meta }));
    assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28");
    let call = json!({ "_meta": meta, "name": "look", "arguments": { "samples": DEMO } });
    let answer = server.ask("tools/call", call);
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(answer["result"]["isError"], false);
}

#[test]
fn hostile_input_has_an_answer_and_the_server_goes_on() {
    let mut server = Server::begun(&[]);
    let long = "x".repeat((1 << 20) + 1);
    let deep = "[".repeat(100_000);
    for (line, code) in [
        ("{", -32700),
        ("\u{0}", -32700),
        (&long, -32700),
        (&deep, -32700),
        ("[]", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":9,"method":"resources/list"}"#,
            -32601,
        ),
        (
            r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"rm"}}"#,
            -32602,
        ),
        (r#"{"jsonrpc":"2.0","id":9,"method":"tools/call"}"#, -32602),
    ] {
        server.send(format!("{line}\n").as_bytes());
        let answer = server.answer();
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    server.send(b"\xff\xfe\n");
    assert_eq!(server.answer()["error"]["code"], -32700);
    // A line that needs no answer gets none: the next answer is that to the ping.
    server.send(b"\n\r\n");
    server.send_message(json!({ "jsonrpc": "2.0", "method": "no/such/notification" }));
    server.send_message(json!({ "jsonrpc": "2.0", "id": 5, "result": {} }));
    let cancel = json!({ "requestId": 12345 });
    server.send_message(
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel }),
    );
    assert_eq!(server.ask("ping", json!({}))["result"], json!({}));

    for arguments in [
        json!({ "samples": "-" }),
        json!({ "samples": "/dev/zero" }),
        json!({ "samples": "/proc/self/fd/0" }),
        json!({ "samples": "/etc/passwd" }),
        json!({ "samples": "look-7" }),
        json!({ "pid": 4_194_305 }),
        json!({ "pid": "1" }),
        json!({ "seconds": 1e9 }),
        json!({ "filter": "fn~(" }),
        json!({ "comm": "(" }),
        json!({ "cgroup": "../../etc" }),
        json!({ "output": "/tmp/x" }),
    ] {
        let (text, is_error) = server.call("look", arguments);
        assert!(is_error, "{text}");
        assert!(!text.contains("root:"), "{text}");
    }
    let trace = json!({ "name": "trace", "arguments": { "functions": "f", "pid": 1 } });
    let answer = server.ask("tools/call", trace);
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

/// How many processes the test kills.
const KILLS: usize = 25;

#[test]
fn a_recording_is_read_right_or_not_at_all_while_its_readers_are_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    // The server remembers the last two recordings: each of three is read whenever it is named.
    let copies = ["1", "2", "3"].map(|name| {
        let copy = folder.path().join(name);
        fs::copy(DEMO, &copy).expect("a file");
        copy.to_str().expect("UTF-8").to_owned()
    });
    let mut copies = copies.iter().cycle();
    let mut server = Server::begun(&[]);
    let mut look = |server: &mut Server| {
        let copy = copies.next().expect("they never end");
        let (text, is_error) = server.call("look", json!({ "samples": copy }));
        (text.replace(copy, "COPY"), is_error)
    };
    let begin = Instant::now();
    let (right, is_error) = look(&mut server);
    let undisturbed = begin.elapsed();
    assert!(!is_error, "{right}");
    let pid = server.process.pid();
    let readers = || parsers_of(pid);
    let result = work_while_killed(KILLS, 2 * undisturbed, readers, || {
        let (text, is_error) = look(&mut server);
        if is_error {
            let why = "the process that reads it was ended";
            assert!(text.contains(why), "{text}");
        } else {
            assert_eq!(text, right);
        }
        !is_error
    });
    println!("{KILLS} killed: {result:?}");
    assert!(result.whole > 0 && result.confined > 0);
    assert_eq!(look(&mut server), (right, false));
}

#[test]
fn a_hostile_recording_is_a_sentence_and_the_server_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut random = Random::new(3);
    let mut noise = || -> Vec<u8> { (0..50_000).map(|_| random.below(256) as u8).collect() };
    let mut server = Server::begun(&[]);
    for begin in [
        &b"\x89PFT\r\n\x1a\n\x02\x00\x0a\x00"[..],
        b"PERFILE2\x68\0\0\0\0\0\0\0",
        b"\x1f\x8b\x08\0\0\0\0\0\0\0",
        b"\x0a\x04\x08\x01\x10\x02",
        b"{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\", ",
        b"\x7fELF",
    ] {
        let path = folder.path().join("hostile");
        fs::write(&path, [begin, &noise()].concat()).expect("a file");
        let (text, is_error) = server.call("look", json!({ "samples": path }));
        // Of a recording of ours, all blocks are read that are whole.
        assert!(is_error || begin.starts_with(b"\x89PFT"), "{text}");
        assert!(text.is_ascii() || !is_error, "{text}");
    }
    server.text("look", json!({ "samples": DEMO }));
}

/// Work that a tool needs.
pub const OF_TOOLS: [&str; 3] = [
    "running a tool",
    "reading recordings",
    "reading what was made of a recording",
];

#[test]
fn a_mistake_costs_one_answer() {
    for work in OF_TOOLS {
        let scratch = Scratch::new();
        let errors = scratch.join("errors");
        let mut command = proftop(&["mcp"]);
        command.stderr(fs::File::create(&errors).expect("a file"));
        let mut server = Server::of(command.env(VARIABLE, work));
        server.begin();
        let (text, is_error) = server.call("look", json!({ "samples": DEMO }));
        assert!(is_error && text.contains("mistake"), "{work}: {text}");
        assert_eq!(server.ask("ping", json!({}))["result"], json!({}));
        // Each process that parses files makes the mistake once.
        if work != "reading recordings" {
            server.text("look", json!({ "samples": DEMO }));
        }
        drop(server.input.take());
        assert_eq!(server.ended(), Some(0), "{work}");
        assert_told(&fs::read_to_string(&errors).expect("written"), work);
    }
}

#[test]
fn names_stay_in_their_quotation() {
    let scratch = Scratch::new();
    let name = "a` and\u{202e} now \u{1b}[2J `do` this: [x](y) <b>";
    let folded = scratch.write("a.folded", format!("{name};{name}x 7\n{name} 3\n"));
    let file = folded.to_str().expect("UTF-8");
    let mut server = Server::begun(&[]);
    for (tool, arguments) in [
        ("look", json!({ "samples": file })),
        ("drill", json!({ "samples": file })),
        ("drill", json!({ "samples": file, "function": "this" })),
        ("code", json!({ "samples": file, "function": "this" })),
        ("diff", json!({ "a": file, "b": file })),
        ("explain_missing", json!({ "samples": file })),
    ] {
        let text = server.text(tool, arguments);
        for line in text.lines() {
            assert_eq!(line.matches('`').count() % 2, 0, "{line}");
            let outside: String = line.split('`').step_by(2).collect();
            assert!(!outside.contains("now"), "{line}");
        }
        let harmful = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!text.contains(harmful), "{text:?}");
    }
    let (text, _) = server.call(
        "drill",
        json!({ "samples": file, "function": "`no\n# such" }),
    );
    assert!(text.ends_with("is called `'no\\x0a# such`"), "{text}");
}

#[test]
fn samples_are_taken_and_asked_again() {
    if !can_sample() {
        return;
    }
    let burning = burning(1);
    let mut server = Server::begun(&[]);
    let live = json!({ "pid": burning.pid(), "seconds": 2 });
    // On a busy machine a program may have no CPU time for two seconds.
    let mut looks = 0;
    wait_until("a look with samples", || {
        let look = server.begin_call("look", live.clone());
        // A question that needs no samples does not wait for them.
        assert_eq!(server.ask("ping", json!({}))["result"], json!({}));
        let answer = server.answer();
        assert_eq!(answer["id"], look);
        let text = answer["result"]["content"][0]["text"]
            .as_str()
            .expect("a text");
        looks += 1;
        let begin = format!("Samples: `look-{looks}`\n# CPU profile of `");
        assert!(text.contains(&begin), "{text}");
        text.contains("burn_")
    });
    let look = |after: u32| format!("look-{}", looks + after);

    let page = server.text("drill", json!({ "function": "burn_" }));
    assert!(page.contains(&format!("in `{}`", look(0))), "{page}");
    let code = server.text("code", json!({ "function": "burn_" }));
    assert!(code.contains("Lines and instructions"), "{code}");
    let pid = burning.pid();
    let waits = server.text(
        "look",
        json!({ "pid": pid, "seconds": 1, "metric": "wall" }),
    );
    assert!(waits.contains(&look(1)), "{waits}");
    // Samples of CPUs and time waited cannot be compared.
    let (why, is_error) = server.call("diff", json!({ "a": look(0), "b": look(1) }));
    assert!(is_error && why.contains("cannot compare"), "{why}");
    let now = json!({ "a": look(0), "pid": pid, "seconds": 2 });
    let text = server.text("diff", now);
    assert!(text.contains(&look(2)), "{text}");
    let process = server.text("explain_missing", json!({ "pid": pid }));
    assert!(
        process.contains(&format!("# Doctor of process {pid}")),
        "{process}"
    );

    // A call that samples the whole machine needs all rights, the second time as well.
    let text = server.text("look", json!({ "seconds": 1 }));
    assert!(text.contains(&look(3)), "{text}");
    // A cancelled call has no answer, and the next call has one.
    let id = server.begin_call("look", json!({ "seconds": 60 }));
    let cancel = json!({ "requestId": id });
    server.send_message(
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel }),
    );
    let text = server.text("look", json!({ "pid": pid, "seconds": 1 }));
    assert!(text.contains(&look(4)), "{text}");
}

#[test]
fn calls_are_counted_only_if_that_is_allowed() {
    if !can_sample() {
        return;
    }
    let burning = burning(1);
    let mut server = Server::begun(&["--allow-probes"]);
    let asked = json!({ "functions": "burn::burn_sixty", "pid": burning.pid(), "seconds": 2 });
    let (text, is_error) = server.call("trace", asked);
    assert!(!is_error, "{text}");
    assert!(text.contains("burn_sixty"), "{text}");
    let (text, is_error) = server.call("trace", json!({ "functions": "-o/x", "pid": 1 }));
    assert!(is_error, "{text}");
}

#[test]
fn it_ends_when_its_input_ends() {
    let mut server = Server::begun(&[]);
    server.input = None;
    assert_eq!(server.ended(), Some(0));
    // Requests before the end of input are answered, also one without a newline.
    let mut server = Server::begun(&[]);
    server.send(br#"{"jsonrpc":"2.0","id":77,"method":"ping"}"#);
    server.input = None;
    assert_eq!(server.answer()["id"], 77);
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn it_ends_when_nobody_reads() {
    let mut command = proftop(&["mcp"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = Process::start(&mut command);
    drop(process.stdout.take());
    wait_until("the server ends", || {
        process.try_wait().expect("it is ours").is_some()
    });
}

#[test]
fn nothing_holds_it_up_at_its_end() {
    if !can_sample() {
        return;
    }
    // While it samples.
    for by_signal in [false, true] {
        let mut server = Server::begun(&[]);
        server.begin_call("look", json!({ "seconds": 60 }));
        // The ping is answered after the call was taken up.
        server.ask("ping", json!({}));
        if by_signal {
            server.process.signal(Signal::TERM);
            assert_eq!(server.ended(), Some(128 + 15));
        } else {
            server.input = None;
            assert_eq!(server.ended(), Some(0));
        }
        assert!(
            server.answers.recv().is_err(),
            "there are no samples to tell of"
        );
    }
    // The same while no one reads what the server writes.
    let mut command = proftop(&["mcp"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = Process::start(&mut command);
    let mut input = process.stdin.take().expect("it is piped");
    let output = process.stdout.take().expect("it is piped");
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n".repeat(1000);
    // The server stops reading if its answers are not read: this write blocks.
    thread::spawn(move || while input.write_all(ping.as_bytes()).is_ok() {});
    wait_until("the pipe is full", || {
        rustix::io::ioctl_fionread(&output).is_ok_and(|waiting| waiting > 60_000)
    });
    process.signal(Signal::TERM);
    wait_until("the server ends", || {
        process.try_wait().expect("it is ours").is_some()
    });
    drop(output);
}
