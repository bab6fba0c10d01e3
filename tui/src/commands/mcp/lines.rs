//! The *lines* of standard input, one message each.

use std::io::{self, BufRead, BufReader};
use std::thread;
use tokio::sync::mpsc;

/// Maximum length of a message in bytes: a thousand times the length of a usual request.
pub const LENGTH_MAX: usize = 1 << 20;
/// How many messages may wait to be handled. Beyond it, the client's writes block.
const WAITING_MAX: usize = 16;

/// A message as it was received.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// The message without its newline.
    Whole(Vec<u8>),
    /// The message had more than [`LENGTH_MAX`] bytes, and was skipped.
    TooLong,
}

/// Starts the thread that reads lines. The channel closes at the end of the input.
pub fn read() -> io::Result<mpsc::Receiver<Line>> {
    let (send, lines) = mpsc::channel(WAITING_MAX);
    thread::Builder::new()
        .name("reader".into())
        .spawn(move || {
            let mut input = BufReader::new(io::stdin());
            while let Ok(Some(line)) = next(&mut input) {
                if send.blocking_send(line).is_err() {
                    break;
                }
            }
        })?;
    Ok(lines)
}

/// Reads the next line that is not empty. The last line needs no newline. None at the end.
fn next(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let bytes = match input.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let is_over = bytes.is_empty();
        let newline = bytes.iter().position(|&byte| byte == b'\n');
        let part = &bytes[..newline.unwrap_or(bytes.len())];
        if line.len() + part.len() > LENGTH_MAX {
            is_too_long = true;
            line = Vec::new();
        } else if !is_too_long {
            line.extend_from_slice(part);
        }
        let used = newline.map_or(bytes.len(), |at| at + 1);
        input.consume(used);
        if newline.is_none() && !is_over {
            continue;
        }
        if is_too_long {
            return Ok(Some(Line::TooLong));
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(Line::Whole(line)));
        }
        if is_over {
            return Ok(None);
        }
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<Line> {
        // The buffer is small, so that lines are read in parts.
        let mut input = BufReader::with_capacity(7, bytes);
        std::iter::from_fn(|| next(&mut input).unwrap()).collect()
    }

    #[test]
    fn lines_come_one_by_one_and_the_last_needs_no_newline() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(
            all(b"{\"a\": 1}\n\r\n   \nsecond\nthird"),
            [whole("{\"a\": 1}"), whole("second"), whole("third")]
        );
        assert_eq!(all(b""), []);
        assert_eq!(all(b"\n\n"), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_read() {
        let mut bytes = vec![b'x'; LENGTH_MAX + 1];
        bytes.extend_from_slice(b"\nnext\n");
        assert_eq!(all(&bytes), [Line::TooLong, Line::Whole(b"next".to_vec())]);
        let mut bytes = vec![b'x'; LENGTH_MAX];
        bytes.push(b'\n');
        assert_eq!(all(&bytes), [Line::Whole(vec![b'x'; LENGTH_MAX])]);
        assert_eq!(all(&vec![b'x'; 3 * LENGTH_MAX]), [Line::TooLong]);
    }
}
