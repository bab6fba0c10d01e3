//! A *connection* to a machine: the user's ssh, which starts a proftop there that records to its
//! standard output.
//!
//! ssh must not prompt: several machines would do so at the same time, below the screen. So a key,
//! an agent or an open connection has to authenticate the user.

use crate::address::Address;
use crate::commands::complaints::Complaints;
use crate::failure::rights::quote;
use probe::privilege::UserRights;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The environment variable that names a program to use instead of ssh.
pub const PROGRAM_VARIABLE: &str = "PROFTOP_SSH";

/// The first word of the line with which the remote script begins.
const BEGAN: &str = "proftop-began";

/// The script that a shell runs on the machine, with the path of proftop and its arguments. Its
/// first line of output has the time of the machine: seconds and, if its `date` supports it,
/// nanoseconds.
const SCRIPT: &str = r#"p=$1; shift
command -v "$p" >/dev/null 2>&1 || exit 127
echo "proftop-began $(date +%s.%N)"
if [ "$(id -u)" != 0 ] && sudo -n -l -- "$p" "$@" >/dev/null 2>&1; then exec sudo -n -- "$p" "$@"; fi
exec "$p" "$@""#;

/// Maximum number of bytes before that line: the greetings of login shells.
const GREETING_MAX: u64 = 64 << 10;

/// The difference between two clocks, in ms, that is not reported. Clocks under NTP are this close.
const CLOCK_SLACK_MS: i64 = 100;

/// How long to wait for the end of ssh after the end of its output, and the time between two
/// checks.
const END_WAIT: Duration = Duration::from_secs(5);
const NAP: Duration = Duration::from_millis(20);

/// The process of ssh. Its reader waits for it; the end of the run kills it.
#[derive(Debug)]
struct Ssh(Mutex<Child>);

impl Ssh {
    /// Kills the process. It does not wait for the end of the process: if the kill is not
    /// permitted, that would be forever.
    fn end(&self) {
        // The process may have ended already.
        let _ = lock(&self.0).kill();
    }

    /// Waits a few seconds for the end of the process, and returns its status; None if it goes on.
    fn status(&self) -> io::Result<Option<ExitStatus>> {
        let until = Instant::now() + END_WAIT;
        loop {
            // The lock is free between two checks: the main thread needs it to kill the process
            // when the user leaves the screen.
            let status = lock(&self.0).try_wait()?;
            if status.is_some() || Instant::now() > until {
                return Ok(status);
            }
            thread::sleep(NAP);
        }
    }
}

/// All connections of a run. Dropping it kills their processes.
#[derive(Debug, Default)]
pub struct Connected(Vec<Arc<Ssh>>);

impl Connected {
    /// Adds a connection that was started.
    pub fn add(&mut self, connection: &Connection) {
        self.0.push(Arc::clone(&connection.ssh));
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.iter().for_each(|ssh| ssh.end());
    }
}

/// A connection that was started.
#[derive(Debug)]
pub struct Connection {
    ssh: Arc<Ssh>,
    output: BufReader<ChildStdout>,
    began_ms: i64,
    complaints: Complaints,
}

impl Connection {
    /// Starts ssh, and returns without waiting for the connection.
    pub fn begin(address: &Address, arguments: &[String]) -> Result<Self, String> {
        let wanted = std::env::var(PROGRAM_VARIABLE)
            .ok()
            .filter(|ssh| !ssh.trim().is_empty());
        let mut words = wanted.as_deref().unwrap_or("ssh").split_whitespace();
        let program = words.next().unwrap_or("ssh");
        let mut command = Command::new(program);
        command.args(words).args(ssh_arguments(address, arguments));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Under sudo ssh runs as the user, whose keys and known hosts it needs.
        UserRights::current().apply_to(&mut command);
        let began_ms = unix_ms();
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                format!("{program} is not installed (package openssh-client)")
            }
            _ => format!("{program} does not start: {error}"),
        })?;
        let pipes = (child.stdout.take(), child.stderr.take());
        let ssh = Arc::new(Ssh(Mutex::new(child)));
        let (Some(output), Some(errors)) = pipes else {
            return Err(format!("{program} has no output"));
        };
        let complaints = Complaints::read(errors, "proftop: ")
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Self {
            ssh,
            output: BufReader::with_capacity(1 << 16, output),
            began_ms,
            complaints,
        })
    }

    /// Waits until proftop is started on the machine, and returns by how many ms the clock of the
    /// machine is ahead of ours. The error says why it was not started.
    pub fn wait_for_beginning(&mut self) -> Result<i64, String> {
        let mut greeting = (&mut self.output).take(GREETING_MAX);
        let mut line = Vec::new();
        loop {
            line.clear();
            match greeting.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return Err(self.why_it_ended()),
                Ok(_) => {}
            }
            let text = String::from_utf8_lossy(&line);
            if let Some(time) = text.trim_end().strip_prefix(BEGAN) {
                return Ok(ahead_ms(time.trim(), self.began_ms, unix_ms()));
            }
        }
    }

    /// Returns the output of the remote proftop, which follows the first line.
    pub fn output(&mut self) -> &mut impl Read {
        &mut self.output
    }

    /// Returns why ssh ended, as a sentence. To be called after the end of its output.
    pub fn why_it_ended(&self) -> String {
        let status = self.ssh.status();
        let complaints = self.complaints.all();
        let status = match status {
            Ok(Some(status)) => status,
            Ok(None) => return "it sends no more, and the connection is still there".into(),
            Err(error) => return format!("ssh is lost: {error}"),
        };
        match status.code() {
            Some(127) => "no proftop in the PATH there: copy this program to that machine, or \
                name where it is, as in ssh://host/path/to/proftop"
                .into(),
            // ssh's own complaint is its last line; proftop's is its first.
            Some(255) => {
                let last = complaints.into_iter().next_back();
                with_advice(last.unwrap_or_else(|| "the connection ended".into()))
            }
            Some(0) => "proftop there ended".into(),
            Some(code) => {
                let first = complaints.into_iter().next();
                first.unwrap_or_else(|| format!("proftop there ended with status {code}"))
            }
            None => "ssh was killed".into(),
        }
    }
}

/// Adds advice to a complaint of ssh in cases where ssh would have prompted the user.
fn with_advice(complaint: String) -> String {
    let advice = match &complaint {
        text if text.contains("Permission denied") => {
            "; ssh may ask for nothing here: let a key or an agent in"
        }
        text if text.contains("Host key verification failed") => {
            "; connect once by hand, so that ssh knows the machine"
        }
        _ => "",
    };
    complaint + advice
}

/// Returns the arguments of ssh. The address cannot be read as an option: see [`Address::parse`].
fn ssh_arguments(address: &Address, arguments: &[String]) -> Vec<String> {
    let mut words: Vec<String> = [
        "-T",
        "-oBatchMode=yes",
        "-oConnectTimeout=15",
        // A machine that no longer answers is noticed after fifteen seconds.
        "-oServerAliveInterval=5",
        "-oServerAliveCountMax=3",
    ]
    .map(String::from)
    .to_vec();
    if let Some(port) = address.port {
        words.extend(["-p".to_owned(), port.to_string()]);
    }
    if let Some(user) = &address.user {
        words.extend(["-l".to_owned(), user.clone()]);
    }
    words.extend(["--".to_owned(), address.host.clone()]);
    // The remote shell joins all words and splits them again.
    let program = address.program.as_deref().unwrap_or("proftop");
    let told = ["sh", "-c", SCRIPT, "sh", program]
        .into_iter()
        .chain(arguments.iter().map(String::as_str));
    words.extend(told.map(quote_lines));
    words
}

/// Quotes a word for the remote shell. Unlike words that are shown to the user, it may have several
/// lines.
fn quote_lines(word: &str) -> String {
    let lines: Vec<String> = word
        .split('\n')
        .map(|line| line.replace('\'', r"'\''"))
        .collect();
    match lines.len() {
        1 => quote(word),
        _ => format!("'{}'", lines.join("\n")),
    }
}

/// Returns by how many ms a remote clock is ahead of ours. `told` is its time in seconds, with or
/// without a fraction, which it had between `from_ms` and `until_ms` of our clock. Returns 0 if
/// that time may be right.
fn ahead_ms(told: &str, from_ms: i64, until_ms: i64) -> i64 {
    let (seconds, fraction) = told.split_once('.').unwrap_or((told, ""));
    let Ok(seconds) = seconds.parse::<i64>() else {
        return 0;
    };
    let digits: String = fraction
        .chars()
        .take_while(char::is_ascii_digit)
        .take(3)
        .collect();
    let (first_ms, last_ms) = match digits.parse::<i64>() {
        Ok(ms) if digits.len() == 3 => (ms, ms),
        // A `date` without fractions: any time within that second is possible.
        _ => (0, 999),
    };
    let start_ms = seconds.saturating_mul(1000);
    let (first_ms, last_ms) = (start_ms + first_ms, start_ms + last_ms);
    let may_be_right = last_ms >= from_ms - CLOCK_SLACK_MS && first_ms <= until_ms + CLOCK_SLACK_MS;
    if may_be_right {
        0
    } else {
        // The remote time was printed shortly before it arrived.
        (first_ms + last_ms) / 2 - until_ms
    }
}

/// Returns the milliseconds since 1970 by our wall clock.
pub fn unix_ms() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// Locks a mutex, even if another thread panicked while it held the lock: the process is valid at
/// any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_may_be_right_is_right() {
        // The request was sent at 1000.000 s, and answered at 1002.000 s.
        for (told, ahead) in [
            ("1001.5", 0),
            ("1001.500000000", 0),
            ("1002.050000000", 0),
            ("1002.N", 0),
            ("1062.000000000", 60_000),
            ("940.000000000", -62_000),
            ("999", 0),
            ("1100", 98_499),
            ("", 0),
            ("soon", 0),
        ] {
            assert_eq!(ahead_ms(told, 1_000_000, 1_002_000), ahead, "{told}");
        }
    }

    #[test]
    fn words_reach_the_other_end_as_they_are() {
        let address = Address::parse("ssh://ann@a:22/opt/it's here/proftop").unwrap();
        let arguments = ["record".to_owned(), "-g".to_owned(), "a b$(id)".to_owned()];
        let words = ssh_arguments(&address, &arguments);
        let at = words.iter().position(|word| word == "--").unwrap();
        assert_eq!(words[at + 1], "a");
        // The remote shell splits what ssh joins with blanks.
        let line = words[at + 2..]
            .join(" ")
            .replacen("sh -c", "printf '%s|' sh -c", 1);
        let printed = Command::new("sh").args(["-c", &line]).output().unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap();
        let parts: Vec<&str> = printed.split('|').collect();
        assert!(printed.contains("exec \"$p\" \"$@\""), "{printed}");
        assert_eq!(
            parts[parts.len() - 6..],
            [
                "sh",
                "/opt/it's here/proftop",
                "record",
                "-g",
                "a b$(id)",
                ""
            ]
        );
    }
}
