//! `agent save` and `agent status`: sends the request to a running flight recorder at its control
//! socket (`record/control.rs`), and prints the answer.

use super::print;
use crate::calendar;
use crate::cli::{AskAgent, CONTROL, Question};
use crate::failure::{Exit, Failure};
use crate::words::units::{bytes, clock, count, counted};
use probe::privilege::UserRights;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde_json::Value;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long the recorder may take to accept a connection.
const CONNECT_WAIT: Duration = Duration::from_secs(10);

/// How long the recorder may take to answer: it makes a report, or writes a file.
const ANSWER_WAIT: Duration = Duration::from_secs(70);

/// The maximum length of an answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Runs `agent save` or `agent status`.
pub fn run(ask: &AskAgent) -> Result<Exit, Failure> {
    let line = match &ask.question {
        Question::Save { note } => format!("save {note}"),
        Question::Status { .. } => "status".into(),
    };
    // If the user names the path, it is opened with the user's own rights: under sudo it must not
    // lead to files of others.
    let own = UserRights::own();
    let (path, rights) = match &ask.control {
        Some(path) => (path.as_path(), UserRights::current()),
        None => (Path::new(CONTROL), &own),
    };
    let answer = rights
        .run(|| exchange(path, &line))
        .map_err(|error| unreachable(path, &error))?;
    let answer: Value = serde_json::from_str(&answer)
        .map_err(|_| Failure::failed(format!("what answers at {} is no agent", shown(path))))?;
    if let Some(why) = answer["error"].as_str() {
        return Err(Failure::failed(format!("the agent refuses: {}", safe(why))));
    }
    match ask.question {
        Question::Save { .. } => saved(&answer),
        Question::Status { as_json: true } => print(&format!("{answer}\n")),
        Question::Status { as_json: false } => print(&status(&answer)),
    }
}

/// Sends a line, and returns the answer, which is a line.
fn exchange(path: &Path, line: &str) -> io::Result<String> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The send timeout also limits connecting (unix_stream_connect in Linux).
    set_socket_timeout(&socket, Timeout::Send, Some(CONNECT_WAIT))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_WAIT))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    let mut stream = UnixStream::from(socket);
    stream.write_all(line.as_bytes())?;
    stream.write_all(b"\n")?;
    let mut answer = String::new();
    BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_line(&mut answer)?;
    if answer.is_empty() {
        Err(io::ErrorKind::UnexpectedEof.into())
    } else {
        Ok(answer)
    }
}

/// Adds to a failure how to start an agent.
pub fn with_ways_to_start(failure: Failure) -> Failure {
    failure
        .remedy(
            "sudo systemctl start proftop-recorder",
            "the service of the package",
        )
        .remedy(
            "sudo proftop agent -o ring.pft --control ./control",
            "with places of your own",
        )
}

fn unreachable(path: &Path, error: &io::Error) -> Failure {
    let name = shown(path);
    let failure = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            with_ways_to_start(Failure::failed(format!("no agent answers at {name}")))
        }
        io::ErrorKind::PermissionDenied => Failure::new(
            Exit::NotPossible,
            format!("{name} is for root and the agent's own user: use sudo"),
        ),
        io::ErrorKind::WouldBlock => {
            Failure::failed(format!("the agent at {name} does not answer in time"))
        }
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => {
            Failure::failed(format!("the agent at {name} ended before it answered"))
        }
        _ => Failure::failed(format!("cannot ask the agent at {name}: {error}")),
    };
    match error.kind() {
        io::ErrorKind::NotFound => failure.more("With --control PATH it is asked elsewhere."),
        _ => failure,
    }
}

/// Prints the path of the saved file.
fn saved(answer: &Value) -> Result<Exit, Failure> {
    match answer["saved"].as_str() {
        Some(path) => print(&format!("{}\n", safe(path))),
        None => Err(Failure::failed(format!(
            "nothing was saved: {}",
            safe(answer["words"].as_str().unwrap_or_default())
        ))),
    }
}

/// Formats the status of the agent in a few lines.
fn status(answer: &Value) -> String {
    let text = |value: &Value| safe(value.as_str().unwrap_or_default());
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let time = |value: &Value| {
        let seconds = value.as_f64().unwrap_or_default();
        clock(Duration::try_from_secs_f64(seconds).unwrap_or_default())
    };
    let (ring, saves) = (&answer["ring"], &answer["saves"]);
    let mut lines = vec![
        format!(
            "records {} at {} Hz since {} ({}): {}, {} lost",
            text(&answer["scope"]),
            number(&answer["rate_hz"]),
            calendar::words(number(&answer["since_unix"])),
            time(&answer["seconds"]),
            counted(number(&answer["samples"]), "sample"),
            count(number(&answer["lost"])),
        ),
        format!(
            "ring   {}: the last {}, {} of {}",
            text(&ring["file"]),
            time(&ring["seconds"]),
            bytes(number(&ring["bytes"])),
            bytes(number(&ring["bytes_max"])),
        ),
    ];
    if let Some(error) = ring["error"].as_str() {
        lines.push(format!("       it cannot be written: {}", safe(error)));
    }
    lines.push(match saves["last"].as_str() {
        Some(last) => format!(
            "saves  {}, the last one is {}",
            count(number(&saves["written"])),
            safe(last)
        ),
        None => "saves  none yet".into(),
    });
    let spool = &answer["spool"];
    if spool.is_object() {
        lines.push(format!(
            "spool  {}: {} of {}, {} of {}; {} removed as it was full, {} unwritten",
            text(&spool["folder"]),
            counted(number(&spool["windows"]), "window"),
            time(&spool["window_seconds"]),
            bytes(number(&spool["bytes"])),
            bytes(number(&spool["bytes_max"])),
            count(number(&spool["removed"])),
            count(number(&spool["unwritten"])),
        ));
        if let Some(error) = spool["error"].as_str() {
            lines.push(format!("       it cannot be written: {}", safe(error)));
        }
    }
    lines.push(format!(
        "takes  {:.1}% of a CPU, {}",
        answer["cpu_percent"].as_f64().unwrap_or_default(),
        bytes(number(&answer["memory_bytes"])),
    ));
    lines.join("\n") + "\n"
}

fn safe(text: &str) -> String {
    symbolize::sanitize(text.as_bytes()).into_owned()
}

fn shown(path: &Path) -> String {
    symbolize::sanitize(path.as_os_str().as_encoded_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_answers_no_control_character_is_printed() {
        let hostile = r#"{"scope":"\u001b[31m","saves":{"last":"\u0007"},"ring":{"error":"\n","bytes":-1},"spool":{"folder":"\u001b","error":"\r"},"since_unix":1e300}"#;
        let text = status(&serde_json::from_str(hostile).unwrap());
        assert!(
            !text.replace('\n', "").contains(char::is_control),
            "{text:?}"
        );
        assert_eq!(text.lines().count(), 7, "{text}");
    }
}
