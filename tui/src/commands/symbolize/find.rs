//! Finds what the table in [`super::log`] lists, in one line of text.
//!
//! Each function here does what the expression in the tests beside it does, which says exactly what
//! is found. These expressions are not run: with what they have to remember of each match they take
//! longer than everything else about an address.

use std::ops::Range;

/// An address in a line.
#[derive(Debug, PartialEq, Eq)]
pub struct Address<'l> {
    /// Index behind the address and its file: the answer belongs here.
    pub end: usize,
    /// The digits of the address, without `0x`.
    pub digits: &'l [u8],
    /// The file that the address is in; None for a number alone.
    pub file: Option<&'l [u8]>,
    /// The digits of the build-id behind it.
    pub build: Option<&'l [u8]>,
}

/// Iterates over the addresses of a line.
pub struct Addresses<'l> {
    line: &'l [u8],
    at: usize,
    /// Before this index, no text that could be a file is followed by an address.
    without_file: usize,
}

impl<'l> Addresses<'l> {
    /// Starts at the beginning of a line.
    pub fn of(line: &'l [u8]) -> Addresses<'l> {
        Addresses {
            line,
            at: 0,
            without_file: 0,
        }
    }
}

impl<'l> Iterator for Addresses<'l> {
    type Item = Address<'l>;

    fn next(&mut self) -> Option<Address<'l>> {
        let line = self.line;
        let mut at = self.at;
        while let Some(byte) = line.get(at) {
            if may_be_in_file(byte) {
                let mut found = None;
                if at >= self.without_file {
                    let end = at + run(&line[at..], may_be_in_file);
                    found = in_file(line, at..end);
                    // Behind an address in a file there may be another one.
                    self.without_file = found.as_ref().map_or(end, |(_, behind)| *behind);
                }
                if found.is_none() && !ends_in_word(&line[..at]) {
                    found = after_pc(line, at).or_else(|| alone(line, at));
                }
                if let Some((address, behind)) = found {
                    self.at = behind;
                    return Some(address);
                }
            }
            at += 1;
        }
        self.at = at;
        None
    }
}

/// An address, and the index behind all that belongs to it.
type Found<'l> = Option<(Address<'l>, usize)>;

/// Finds `FILE+0x12`, `FILE(+0x12)` and `FILE + 0x12`, where the file begins with this range: the
/// longest file that an address follows.
fn in_file(line: &[u8], range: Range<usize>) -> Found<'_> {
    let spaced = || {
        let behind = range.end + usize::from(line.get(range.end).is_some_and(is_space));
        let rest = &line[behind..];
        let signed = rest.strip_prefix(b"(+");
        let signed = signed.or_else(|| Some(without_space(rest.strip_prefix(b"+")?)));
        marked_digits(signed?).map(|digits| (range.end, digits))
    };
    let signs = || {
        let mut ends = (range.start + 1..range.end).rev();
        ends.find_map(|end| {
            let digits = line[end..].strip_prefix(b"+")?;
            Some((end, marked_digits(without_space(digits))?))
        })
    };
    let (file_end, digits) = spaced().or_else(signs)?;
    let digits = index_in(line, digits)..index_in(line, digits) + digits.len();
    let end = digits.end + usize::from(line.get(digits.end) == Some(&b')'));
    Some(with_build(line, &line[range.start..file_end], digits, end))
}

/// Finds `pc 00001234  FILE` at an index.
fn after_pc(line: &[u8], at: usize) -> Found<'_> {
    let rest = line[at..].strip_prefix(b"pc ")?;
    let len = run(rest, is_low_hex);
    (8..=16).contains(&len).then_some(())?;
    let digits = at + 3..at + 3 + len;
    let spaces = run(&line[digits.end..], is_space);
    let file = digits.end + spaces;
    let len = run(&line[file..], |byte| {
        !is_space(byte) && !b"()".contains(byte)
    });
    let is_there = spaces > 0 && len > 1 && line[file] == b'/';
    let end = file + len;
    is_there.then(|| with_build(line, &line[file..end], digits, end))
}

/// Finds a number alone at an index.
fn alone(line: &[u8], at: usize) -> Found<'_> {
    let rest = &line[at..];
    let (from, digits_min) = match rest.strip_prefix(b"0x") {
        Some(_) => (at + 2, 3),
        None => (at, 12),
    };
    let digits = digits(&line[from..])?;
    let end = from + digits.len();
    (digits.len() >= digits_min).then_some((
        Address {
            end,
            digits,
            file: None,
            build: None,
        },
        end,
    ))
}

/// Adds what may follow an address in a file: text in parentheses, and a build-id.
fn with_build<'l>(
    line: &'l [u8],
    file: &'l [u8],
    digits: Range<usize>,
    end: usize,
) -> (Address<'l>, usize) {
    let parenthesized = |from: usize| {
        let open = from + run(&line[from..], is_space);
        let inside = line[open..].strip_prefix(b"(")?;
        let len = run(inside, |byte| !is_space(byte) && !b"()".contains(byte));
        (inside.get(len) == Some(&b')')).then_some(open + 1 + len + 1)
    };
    let behind = parenthesized(end).unwrap_or(end);
    let build = || {
        let rest = &line[behind + run(&line[behind..], is_space)..];
        let rest = rest.strip_prefix(b"(BuildId:")?;
        let rest = &rest[run(rest, is_space)..];
        let build = &rest[..run(rest, u8::is_ascii_hexdigit)];
        let is_closed = rest.get(build.len()) == Some(&b')');
        (is_closed && !build.is_empty()).then_some(build)
    };
    let build = build();
    let behind = build.map_or(behind, |build| index_in(line, build) + build.len() + 1);
    let address = Address {
        end,
        digits: &line[digits],
        file: Some(file),
        build,
    };
    (address, behind)
}

/// Returns a file that a line has a build-id for, and the build-id: a line of `perf buildid-list`,
/// of either kind.
pub fn build(line: &[u8]) -> Option<(&[u8], &[u8])> {
    listed_build(line).or_else(|| {
        let mut starts = (0..line.len()).filter(|at| line[*at] == b'M');
        starts.find_map(|at| module_build(line, at))
    })
}

fn listed_build(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (id, rest) = line.split_at(run(line, is_low_hex));
    let path = rest.strip_prefix(b" ")?;
    let is_listed = (16..=64).contains(&id.len()) && path.starts_with(b"/") && path.len() > 1;
    (is_listed && !path.contains(&b'\n')).then_some((path, id))
}

fn module_build(line: &[u8], at: usize) -> Option<(&[u8], &[u8])> {
    let rest = line[at..].strip_prefix(b"Module ")?;
    let (module, rest) = rest.split_at(run(rest, |byte| !is_space(byte)));
    let rest = rest.strip_prefix(b" with build-id ")?;
    let (id, rest) = rest.split_at(run(rest, is_low_hex));
    let is_whole = !ends_in_word(&line[..at]) && !rest.first().is_some_and(is_word);
    (is_whole && !module.is_empty() && (8..=64).contains(&id.len())).then_some((module, id))
}

/// Returns what follows the address of a frame as perf prints it: a name and a file in parentheses.
/// None if the line is no such frame.
pub fn perf_frame(line: &[u8]) -> Option<&[u8]> {
    let rest = &line[run(line, is_space)..];
    let rest = (rest.len() < line.len()).then_some(rest)?;
    let len = run(rest, is_low_hex);
    let frame = rest[len..].strip_prefix(b" ").filter(|_| len > 0)?;
    let inside = frame.strip_suffix(b")")?;
    let has_file = inside.windows(2).any(|pair| pair == b"(/");
    (has_file && !frame.contains(&b'\n')).then_some(frame)
}

/// The function of a frame that perf has printed without the offset in the file.
#[derive(Debug, PartialEq, Eq)]
pub struct PerfFunction<'l> {
    /// Name of the function.
    pub name: &'l [u8],
    /// The digits of the offset in it, without `0x`.
    pub offset: &'l [u8],
    /// The file.
    pub file: &'l [u8],
}

/// Returns the function of such a frame, as [`perf_frame`] returns it; None if there is an offset in
/// the file.
pub fn perf_function(frame: &[u8]) -> Option<PerfFunction<'_>> {
    let inside = frame.strip_suffix(b")")?;
    let open = inside.iter().rposition(|byte| *byte == b'(')?;
    let file = &inside[open + 1..];
    let is_file =
        file.starts_with(b"/") && file.len() > 1 && !file.iter().any(|b| b")+".contains(b));
    let before = inside[..open].strip_suffix(b" ").filter(|_| is_file)?;
    let offset = before.iter().rev().take_while(|byte| is_low_hex(byte));
    let (before, offset) = before.split_at(before.len() - offset.count());
    let name = before.strip_suffix(b"+0x")?;
    let is_whole = !name.is_empty() && (1..=8).contains(&offset.len());
    is_whole.then_some(PerfFunction { name, offset, file })
}

/// Returns the number of digits that were found.
pub fn number(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Returns the hexadecimal digits behind `0x` at the start of a text, 16 at most.
fn marked_digits(text: &[u8]) -> Option<&[u8]> {
    digits(text.strip_prefix(b"0x")?)
}

/// Returns the hexadecimal digits at the start of a text, 16 at most, which no letter follows.
fn digits(text: &[u8]) -> Option<&[u8]> {
    let (digits, rest) = text.split_at(run(text, u8::is_ascii_hexdigit));
    let is_number = (1..=16).contains(&digits.len()) && !rest.first().is_some_and(is_word);
    is_number.then_some(digits)
}

fn without_space(text: &[u8]) -> &[u8] {
    &text[usize::from(text.first().is_some_and(is_space))..]
}

/// Returns the index at which a part of a line begins.
fn index_in(line: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - line.as_ptr().addr()
}

/// Number of bytes at the start of a text that are all of one kind.
fn run(text: &[u8], is_one: impl Fn(&u8) -> bool) -> usize {
    let end = text.iter().position(|byte| !is_one(byte));
    end.unwrap_or(text.len())
}

/// Whether a byte may be part of the name of a file.
fn may_be_in_file(byte: &u8) -> bool {
    !is_space(byte) && !b"()[]".contains(byte)
}

fn is_space(byte: &u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

fn is_low_hex(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn ends_in_word(text: &[u8]) -> bool {
    text.last().is_some_and(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex::bytes::Regex;
    use test_support::Random;

    /// A file with an address in it, or an address alone.
    const ADDRESS: &str = r"(?x-u)
        (?P<there>
            (?P<file>[^\s()\[\]]+)\s?(?:\(\+|\+\s?)0x(?P<offset>[0-9a-fA-F]{1,16})\b\)?
          | \bpc\ (?P<pc>[0-9a-f]{8,16})\s+(?P<pc_file>/[^\s()]+)
        )
        (?:\s*\([^()\s]*\))?
        (?:\s*\(BuildId:\s*(?P<build>[0-9a-fA-F]+)\))?
      | \b0x(?P<marked>[0-9a-fA-F]{3,16})\b
      | \b(?P<bare>[0-9a-fA-F]{12,16})\b";

    /// A file with its build-id.
    const BUILD: &str = r"(?x-u)
        \bModule\ (?P<module>\S+)\ with\ build-id\ (?P<id>[0-9a-f]{8,64})\b
      | ^(?P<listed>[0-9a-f]{16,64})\ (?P<path>/.+)$";

    /// A frame as perf prints it: `    7f1c2a3b name+0x10 (/lib/libc.so.6+0x123)`.
    const PERF_FRAME: &str = r"(?-u)^\s+[0-9a-f]+ (?P<frame>.*\(/.*\))$";

    /// A frame without the offset in the file: `    7f1c2a3b name+0x10 (/lib/libc.so.6)`.
    const PERF_FUNCTION: &str =
        r"(?-u)^\s+[0-9a-f]+ (?P<name>.+)\+0x(?P<offset>[0-9a-f]{1,8}) \((?P<file>/[^()+]+)\)$";

    /// Pieces of which lines are made: those of the expressions, and what is nearly one.
    const PIECES: [&str; 48] = [
        "0x",
        "0x",
        "+",
        "+",
        "(+",
        "(",
        ")",
        ")",
        "[",
        " ",
        " ",
        "  ",
        "\t",
        "\n",
        "pc ",
        "pc",
        "/lib/libc.so.6",
        "/",
        "/a",
        "a",
        "f_",
        "g",
        "B",
        "7",
        "1234",
        "00001234",
        "deadbeefcafe",
        "0123456789abcdef",
        "0123456789abcdef0",
        "ABCDEF",
        "Module ",
        " with build-id ",
        "(BuildId: ",
        "(BuildId:",
        "ab12cd34",
        "#0 ",
        ":",
        "_",
        "é",
        "\u{7f}",
        " 7f1c2 f+0x1 (/b)",
        "    7f1c ",
        "/bin/x+0x",
        "f+0x1",
        ",0x123",
        "(/",
        " (/b)",
        ".",
    ];

    /// The index behind an address, its digits, its file and its build-id.
    type Said = (usize, Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>);

    fn all_by(regex: &Regex, line: &[u8]) -> Vec<Said> {
        let found = regex.captures_iter(line).map(|found| {
            let any = |names: &[&str]| {
                let group = names.iter().find_map(|name| found.name(name));
                group.map(|group| group.as_bytes().to_vec())
            };
            let there = found.name("there").or_else(|| found.get(0)).unwrap();
            let digits = any(&["offset", "pc", "marked", "bare"]).unwrap();
            (
                there.end(),
                digits,
                any(&["file", "pc_file"]),
                any(&["build"]),
            )
        });
        found.collect()
    }

    fn all(line: &[u8]) -> Vec<Said> {
        let found = Addresses::of(line).map(|found| {
            let [file, build] = [found.file, found.build].map(|part| part.map(<[u8]>::to_vec));
            (found.end, found.digits.to_vec(), file, build)
        });
        found.collect()
    }

    #[test]
    fn what_is_found_is_what_the_expressions_match() {
        let [address, build_id, frame, function] =
            [ADDRESS, BUILD, PERF_FRAME, PERF_FUNCTION].map(|text| Regex::new(text).unwrap());
        let mut random = Random::new(3);
        let mut matches = [0; 4];
        for _ in 0..test_support::cases(60_000) {
            let mut line = Vec::new();
            for _ in 0..=random.below(12) {
                let piece = PIECES[random.index(PIECES.len())];
                line.extend_from_slice(piece.as_bytes());
            }
            let shown = line.escape_ascii();
            assert_eq!(all(&line), all_by(&address, &line), "{shown}");
            let captures = build_id.captures(&line);
            let expected = captures.as_ref().map(|found| {
                let pair = found.name("module").zip(found.name("id"));
                let pair = pair.or_else(|| found.name("path").zip(found.name("listed")));
                pair.map(|(file, id)| (file.as_bytes(), id.as_bytes()))
                    .unwrap()
            });
            assert_eq!(build(&line), expected, "{shown}");
            let captures = frame.captures(&line);
            let expected = captures
                .as_ref()
                .map(|found| found.name("frame").unwrap().as_bytes());
            assert_eq!(perf_frame(&line), expected, "{shown}");
            matches[0] += all(&line).len();
            matches[1] += usize::from(build(&line).is_some());
            matches[2] += usize::from(expected.is_some());
            let captures = function.captures(&line);
            let expected = captures.as_ref().map(|found| PerfFunction {
                name: found.name("name").unwrap().as_bytes(),
                offset: found.name("offset").unwrap().as_bytes(),
                file: found.name("file").unwrap().as_bytes(),
            });
            matches[3] += usize::from(expected.is_some());
            assert_eq!(
                perf_frame(&line).and_then(perf_function),
                expected,
                "{shown}"
            );
        }
        assert!(matches.iter().all(|count| *count > 0), "{matches:?}");
    }
}
