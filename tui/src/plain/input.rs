//! Where lines come from: standard input, or the terminal itself while a
//! recording comes in there.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal as _, Read};

/// The longest line that is accepted, in bytes. Nobody types longer ones, but some are
/// pasted.
const BYTES_MAX: u64 = 4096;

/// What was read: a line without its end, the news that a line was longer than 4 KB and was
/// skipped, or the end of input.
pub enum Line {
    Text(String),
    TooLong,
    End,
}

/// Where the lines of the user come from.
pub struct Input {
    reader: BufReader<Box<dyn Read + Send>>,
    is_terminal: bool,
}

impl Input {
    /// Opens the terminal itself if standard input is taken by data, otherwise standard
    /// input. An error if there is no terminal to open.
    pub fn open(stdin_is_data: bool) -> io::Result<Self> {
        let (source, is_terminal): (Box<dyn Read + Send>, bool) = if stdin_is_data {
            (Box::new(File::open("/dev/tty")?), true)
        } else {
            (Box::new(io::stdin()), io::stdin().is_terminal())
        };
        Ok(Input {
            reader: BufReader::new(source),
            is_terminal,
        })
    }

    /// Whether a terminal is read, and not a pipe or a file: only then a prompt is printed.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Reads the next line, and waits for it. Bytes that are no UTF-8 are replaced.
    pub fn read(&mut self) -> io::Result<Line> {
        read(&mut self.reader)
    }
}

fn read(reader: &mut impl BufRead) -> io::Result<Line> {
    let mut bytes = Vec::new();
    reader.take(BYTES_MAX).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(Line::End);
    }
    if bytes.len() as u64 == BYTES_MAX && !bytes.ends_with(b"\n") {
        skip_line(reader)?;
        return Ok(Line::TooLong);
    }
    Ok(Line::Text(
        String::from_utf8_lossy(&bytes).trim().to_owned(),
    ))
}

fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |at| at + 1);
        let is_over = end.is_some() || buffer.is_empty();
        reader.consume(used);
        if is_over {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_skipped_whole() {
        let mut bytes = b"top 3\r\n".to_vec();
        bytes.extend(vec![b'a'; 10_000]);
        bytes.extend(b"\n\xff\xfe\nlast");
        let mut reader = BufReader::with_capacity(16, &bytes[..]);
        let mut next = || read(&mut reader).expect("memory");
        assert!(matches!(next(), Line::Text(text) if text == "top 3"));
        assert!(matches!(next(), Line::TooLong));
        assert!(matches!(next(), Line::Text(text) if text == "\u{fffd}\u{fffd}"));
        assert!(matches!(next(), Line::Text(text) if text == "last"));
        assert!(matches!(next(), Line::End));
    }
}
