//! The *control socket* of a flight recorder: through it other programs request a save or the
//! status. One connection has one request, which is a line of words, and one answer, which is a
//! line of JSON:
//!
//! ```text
//! save slow request /cart      {"saved":"/var/lib/proftop/ring.20261121T140312Z.pft", …}
//! status                       {"version":1,"pid":4121, …}
//! anything else                {"error":"…"}
//! ```
//!
//! The recorder answers root, its own user and the user who started it by sudo, but no others: the
//! mode of the socket keeps most of them away, and the kernel tells the user of each connection. A
//! client that connects and sends nothing occupies one of a few connections, for a few seconds.
//!
//! A thread without any rights accepts connections and reads requests. So the time of a request is
//! right even if the main thread is writing a file to a slow disk at that time.

/// Creating and removing the socket in its folder.
mod place;

use crate::failure::Failure;
use place::OwnSocket;
use probe::confine::{self, Duty};
use probe::privilege::UserRights;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{sleep, timeout};

/// Maximum number of open connections. Further ones wait in the kernel.
const CONNECTIONS_MAX: usize = 8;

/// Maximum length of a request in bytes. Longer ones are refused.
const LINE_BYTES_MAX: u64 = 1024;

/// How long receiving a request may take, and sending an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the main thread may take to answer: it makes a report, or writes a file.
const WORK_MAX: Duration = Duration::from_secs(60);

/// The pause after a connection could not be accepted, for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(200);

/// The kind of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Wish {
    /// Save the samples so far, with this note, which may be empty.
    Save(String),
    /// Return the status.
    Status,
}

/// A request of a client.
pub struct Request {
    pub wish: Wish,
    pub uid: u32,
    /// When the request arrived, on the clock of samples.
    pub at_ns: u64,
    pub reply: Reply,
}

/// The way to answer a request.
pub struct Reply(oneshot::Sender<String>);

impl Reply {
    /// Sends the answer. If the client has closed its connection, nothing happens.
    pub fn send(self, answer: &impl Serialize) {
        let line = serde_json::to_string(answer).unwrap_or_else(|error| failed(&error.to_string()));
        _ = self.0.send(line);
    }
}

/// An open control socket. Dropping it removes the socket.
pub struct Control {
    requests: mpsc::Receiver<Request>,
    _place: OwnSocket,
}

impl Control {
    /// Creates the socket, and starts to listen.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let (place, listener) = OwnSocket::take(path)?;
        let failed = |error| Failure::failed(format!("cannot listen at {}: {error}", place.name()));
        listener.set_nonblocking(true).map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let listener = {
            let _inside = runtime.enter();
            UnixListener::from_std(listener).map_err(failed)?
        };
        let (tell, requests) = mpsc::channel(1);
        // The thread listens for as long as the process lives.
        thread::Builder::new()
            .name("control".into())
            .spawn(move || {
                confine::thread(Duty::Waiting);
                _ = faults::catch("listening at the control socket", || {
                    runtime.block_on(accept(listener, tell));
                });
            })
            .map_err(failed)?;
        Ok(Self {
            requests,
            _place: place,
        })
    }

    /// Waits for the next request.
    pub async fn next(&mut self) -> Request {
        match self.requests.recv().await {
            Some(request) => request,
            None => std::future::pending().await,
        }
    }
}

async fn accept(listener: UnixListener, tell: mpsc::Sender<Request>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(free) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let at_ns = probe::now_ns();
        let tell = tell.clone();
        tokio::spawn(async move {
            serve(stream, at_ns, tell).await;
            drop(free);
        });
    }
}

/// Reads one request, waits for its answer, and closes the connection.
async fn serve(mut stream: UnixStream, at_ns: u64, tell: mpsc::Sender<Request>) {
    let Ok(peer) = stream.peer_cred() else { return };
    // Refused requests are read, too: if a connection is closed before its request is read, the
    // kernel resets it, and the client does not get the answer.
    let mut answer = match timeout(PATIENCE, read(&mut stream)).await {
        Ok(_) if !is_allowed(peer.uid()) => {
            failed("only root and the recorder's own user are answered")
        }
        Ok(Ok(wish)) => ask(wish, peer.uid(), at_ns, tell).await,
        Ok(Err(why)) => failed(why),
        Err(_) => failed("no request came in time"),
    };
    answer.push('\n');
    // A client that does not read the answer is not waited for.
    _ = timeout(PATIENCE, stream.write_all(answer.as_bytes())).await;
}

async fn read(stream: &mut UnixStream) -> Result<Wish, &'static str> {
    let mut line = Vec::new();
    let mut reader = BufReader::new(stream.take(LINE_BYTES_MAX));
    let read = reader.read_until(b'\n', &mut line).await;
    read.map_err(|_| "the request cannot be read")?;
    match line.pop() {
        Some(b'\n') => wish(&line),
        _ => Err("a request is one line of 1023 bytes at most"),
    }
}

async fn ask(wish: Wish, uid: u32, at_ns: u64, tell: mpsc::Sender<Request>) -> String {
    let (reply, answer) = oneshot::channel();
    let reply = Reply(reply);
    let asked = async {
        let request = Request {
            wish,
            uid,
            at_ns,
            reply,
        };
        tell.send(request).await.ok()?;
        answer.await.ok()
    };
    match timeout(WORK_MAX, asked).await {
        Ok(Some(answer)) => answer,
        Ok(None) => failed("the recorder has ended"),
        Err(_) => failed("the recorder did not come to it in time"),
    }
}

/// Parses a request, without its newline.
fn wish(line: &[u8]) -> Result<Wish, &'static str> {
    let line = line.trim_ascii();
    if line == b"status" {
        return Ok(Wish::Status);
    }
    match line.strip_prefix(b"save") {
        Some([]) => Ok(Wish::Save(String::new())),
        Some([b' ' | b'\t', note @ ..]) => {
            let note = symbolize::sanitize(note.trim_ascii());
            Ok(Wish::Save(note.into_owned()))
        }
        _ => Err("expected save, save NOTE or status"),
    }
}

fn is_allowed(uid: u32) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let user = UserRights::current().user().map(|user| user.uid);
    uid == 0 || uid == own || Some(uid) == user
}

fn failed(why: &str) -> String {
    serde_json::json!({ "error": why }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream as Stream;

    #[test]
    fn requests_are_read() {
        let save = |note: &str| Ok(Wish::Save(note.into()));
        assert_eq!(wish(b"status"), Ok(Wish::Status));
        assert_eq!(wish(b"save"), save(""));
        assert_eq!(wish(b"save  slow request "), save("slow request"));
        // Control characters must not reach a terminal later.
        let Ok(Wish::Save(note)) = wish(b"save \x1b[31mred\xff") else {
            panic!("it is a save");
        };
        assert!(!note.chars().any(char::is_control), "{note:?}");
        for line in ["", "saves", "status now", "SAVE", "{}"] {
            assert!(wish(line.as_bytes()).is_err(), "{line:?}");
        }
    }

    /// Answers requests at a socket until `clients` returns.
    fn with_control(clients: impl FnOnce(&Path) + Send) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        thread::scope(|scope| {
            let mut control = Control::open(&path).unwrap();
            let work = scope.spawn(|| clients(&path));
            runtime.block_on(async {
                while !work.is_finished() {
                    let next = timeout(Duration::from_millis(10), control.next()).await;
                    if let Ok(request) = next {
                        let wish = format!("{:?}", request.wish);
                        request.reply.send(&wish);
                    }
                }
            });
            work.join().unwrap();
        });
        assert!(
            path.symlink_metadata().is_err(),
            "the socket is still there"
        );
    }

    fn answer(mut stream: Stream) -> String {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn each_request_has_its_answer() {
        with_control(|path| {
            for (line, expected) in [
                ("status\n", "\"Status\"\n"),
                ("save a b\n", "\"Save(\\\"a b\\\")\"\n"),
                (
                    "help\n",
                    "{\"error\":\"expected save, save NOTE or status\"}\n",
                ),
            ] {
                let mut stream = Stream::connect(path).unwrap();
                stream.write_all(line.as_bytes()).unwrap();
                assert_eq!(answer(stream), expected);
            }
        });
    }

    #[test]
    fn neither_the_long_nor_the_silent_keep_others_waiting() {
        with_control(|path| {
            let mut silent: Vec<Stream> = (1..CONNECTIONS_MAX)
                .map(|_| Stream::connect(path).unwrap())
                .collect();
            let mut long = Stream::connect(path).unwrap();
            long.write_all(&[b'x'; LINE_BYTES_MAX as usize]).unwrap();
            assert!(answer(long).contains("1023 bytes at most"));
            // The request ends in the middle of a line.
            let mut cut = silent.pop().unwrap();
            cut.write_all(b"sav").unwrap();
            cut.shutdown(std::net::Shutdown::Write).unwrap();
            assert!(answer(cut).contains("one line"));
            let mut stream = Stream::connect(path).unwrap();
            stream.write_all(b"status\n").unwrap();
            assert_eq!(answer(stream), "\"Status\"\n");
        });
    }
}
