//! Where lines are read: standard input, or the terminal itself if standard input is a recording.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal as _, Read};

/// Maximum length of a line in bytes. Longer ones are not typed, but may be pasted.
const BYTES_MAX: u64 = 4096;

/// The result of reading: a line without its newline, a line that was skipped because it has more
/// than 4 KB, or the end of input.
pub enum Line {
    Text(String),
    TooLong,
    End,
}

/// The source of the user's lines.
pub struct Input {
    reader: BufReader<Box<dyn Read + Send>>,
    is_terminal: bool,
}

impl Input {
    /// Opens the terminal itself if standard input contains data, otherwise standard input. It is
    /// an error if there is no terminal to open.
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

    /// Whether the source is a terminal, and not a pipe or a file: only then a prompt is printed.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Waits for the next line and returns it. Invalid UTF-8 is replaced.
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
