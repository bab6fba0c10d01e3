//! Maps the addresses of one program to places in its source text.

use super::{BpfPlace, BpfProgramInfo};
use crate::bytes::u32_in;
use crate::kernel::btf::Btf;

/// Maximum number of lines: no program has more instructions (BPF_COMPLEXITY_LIMIT_INSNS).
const LINES_MAX: usize = 1_000_000;

/// The functions and lines of one program.
#[derive(Debug)]
pub struct BpfProgram {
    /// Functions by address.
    functions: Vec<Function>,
    /// Lines by address.
    lines: Vec<Line>,
    /// Names and paths.
    strings: Vec<u8>,
}

#[derive(Debug)]
struct Function {
    start: u64,
    end: u64,
    name: Text,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    start: u64,
    file: Text,
    /// Line and column as the kernel packs them: the line, then ten bits for the column.
    position: u32,
}

/// Position of a string in `strings`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Text {
    start: u32,
    len: u32,
}

impl BpfProgram {
    /// Functions or lines that are damaged or missing in `info` have no name or no line.
    pub fn new(info: &BpfProgramInfo) -> BpfProgram {
        let btf = Btf::parse(&info.btf);
        let mut strings = Strings::default();
        let mut functions = functions(info, btf.as_ref(), &mut strings);
        functions.retain(|function| function.start < function.end);
        functions.sort_unstable_by_key(|function| function.start);
        let mut lines = btf.map_or_else(Vec::new, |btf| lines(info, &btf, &mut strings));
        // The sort is stable: of several lines at one address the last one counts.
        lines.sort_by_key(|line| line.start);
        lines.dedup_by(|later, earlier| {
            let same = later.start == earlier.start;
            if same {
                *earlier = *later;
            }
            same
        });
        lines.shrink_to_fit();
        BpfProgram {
            functions,
            lines,
            strings: strings.bytes,
        }
    }

    /// Returns the place of an address, if it belongs to this program.
    pub fn find(&self, addr: u64) -> Option<BpfPlace> {
        let behind = self.functions.partition_point(|f| f.start <= addr);
        let function = &self.functions[behind.checked_sub(1)?];
        if addr >= function.end {
            return None;
        }
        let behind = self.lines.partition_point(|line| line.start <= addr);
        // A line of another function does not apply.
        let line = self.lines[..behind].last();
        let line = line.filter(|line| line.start >= function.start && line.file.len > 0);
        Some(BpfPlace {
            function: self.text(function.name).to_vec(),
            file: line.map_or_else(Vec::new, |line| self.text(line.file).to_vec()),
            line: line.map_or(0, |line| line.position >> 10),
            column: line.map_or(0, |line| line.position & 0x3ff),
        })
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        self.functions.capacity() * size_of::<Function>()
            + self.lines.capacity() * size_of::<Line>()
            + self.strings.capacity()
    }

    fn text(&self, text: Text) -> &[u8] {
        let start = text.start as usize;
        &self.strings[start..start + text.len as usize]
    }
}

/// Returns the functions, each named by its type if there is one type for each function.
fn functions(info: &BpfProgramInfo, btf: Option<&Btf<'_>>, strings: &mut Strings) -> Vec<Function> {
    let size = info.function_bytes as usize;
    let types: Vec<u32> = match size {
        0..8 => Vec::new(),
        _ => info
            .functions
            .chunks_exact(size)
            .filter_map(|record| u32_in(record, 4))
            .collect(),
    };
    let names: Vec<u32> = btf.map_or_else(Vec::new, |btf| btf.types().map(|t| t.name).collect());
    let name_of = |index: usize| -> Option<u32> {
        let number = types
            .get(index)
            .filter(|_| types.len() == info.extents.len())?;
        names.get((*number as usize).checked_sub(1)?).copied()
    };
    let extents = info.extents.iter().enumerate();
    let function = |(index, extent): (usize, &super::BpfExtent)| {
        let name = name_of(index).zip(btf);
        Function {
            start: extent.start,
            end: extent.start.saturating_add(extent.len.into()),
            name: name.map_or_else(Text::default, |(name, btf)| strings.intern(btf, name)),
        }
    };
    extents.map(function).collect()
}

fn lines(info: &BpfProgramInfo, btf: &Btf<'_>, strings: &mut Strings) -> Vec<Line> {
    let size = info.line_bytes as usize;
    if size < 16 {
        return Vec::new();
    }
    let records = info.lines.chunks_exact(size).zip(&info.line_addrs);
    let line = |(record, addr): (&[u8], &u64)| {
        Some(Line {
            start: Some(*addr).filter(|addr| *addr != 0)?,
            file: strings.intern(btf, u32_in(record, 4)?),
            position: u32_in(record, 12)?,
        })
    };
    records.take(LINES_MAX).filter_map(line).collect()
}

/// Strings from BTF, each stored once.
#[derive(Debug, Default)]
struct Strings {
    bytes: Vec<u8>,
    known: std::collections::HashMap<u32, Text>,
}

impl Strings {
    fn intern(&mut self, btf: &Btf<'_>, at: u32) -> Text {
        /// Maximum length of a string: longer than any path.
        const TEXT_BYTES_MAX: usize = 4096;
        /// Maximum length of all strings. BTF strings may overlap, so their total can exceed the
        /// size of the BTF.
        const BYTES_MAX: usize = 16 << 20;
        if let Some(known) = self.known.get(&at) {
            return *known;
        }
        let string = btf.string(at).unwrap_or_default();
        let string = &string[..string.len().min(TEXT_BYTES_MAX)];
        if self.bytes.len() + string.len() > BYTES_MAX {
            return Text::default();
        }
        let text = Text {
            start: self.bytes.len() as u32,
            len: string.len() as u32,
        };
        self.bytes.extend_from_slice(string);
        self.known.insert(at, text);
        text
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::BpfExtent;
    use super::*;
    use crate::kernel::btf::{kind, tests::btf};
    use proptest::prelude::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Two functions, `main` above `helper`, and two lines in each.
    pub fn two_functions(base: u64) -> BpfProgramInfo {
        let strings = b"\0main\0helper\0/src/a.c\0b.h\0";
        let (a, b) = (13, 22);
        let position = |line: u32, column: u32| line << 10 | column;
        BpfProgramInfo {
            extents: vec![
                BpfExtent {
                    start: base + 0x1000,
                    len: 0x100,
                },
                BpfExtent {
                    start: base,
                    len: 0x80,
                },
            ],
            functions: words(&[0, 1, 9, 2]),
            function_bytes: 8,
            lines: [
                words(&[0, a, 0, position(10, 3)]),
                words(&[4, b, 0, position(77, 0)]),
                words(&[5, a, 0, position(11, 1023)]),
                words(&[9, a, 0, position(30, 1)]),
            ]
            .concat(),
            line_bytes: 16,
            line_addrs: [0x1000, 0x1040, 0x1040, 0x20].map(|a| base + a).to_vec(),
            btf: btf(&[1, kind::FUNC << 24, 0, 6, kind::FUNC << 24, 0], strings),
        }
    }

    #[track_caller]
    fn check(program: &BpfProgram, addr: u64, expected: Option<(&str, &str, u32, u32)>) {
        let found = program.find(addr);
        let found = found.as_ref().map(|place| {
            let text = |bytes| std::str::from_utf8(bytes).unwrap();
            let (function, file) = (text(&place.function), text(&place.file));
            (function, file, place.line, place.column)
        });
        assert_eq!(found, expected, "{addr:#x}");
    }

    #[test]
    fn each_address_has_the_line_before_it() {
        let program = BpfProgram::new(&two_functions(0));
        check(&program, 0x1000, Some(("main", "/src/a.c", 10, 3)));
        check(&program, 0x103f, Some(("main", "/src/a.c", 10, 3)));
        // Two lines at one address: the later one.
        check(&program, 0x1040, Some(("main", "/src/a.c", 11, 1023)));
        check(&program, 0x10ff, Some(("main", "/src/a.c", 11, 1023)));
        check(&program, 0x1100, None);
        check(&program, 0x20, Some(("helper", "/src/a.c", 30, 1)));
        check(&program, 0x7f, Some(("helper", "/src/a.c", 30, 1)));
        check(&program, 0x80, None);
    }

    #[test]
    fn before_the_first_line_of_a_function_there_is_none() {
        let program = BpfProgram::new(&two_functions(0));
        check(&program, 0x1f, Some(("helper", "", 0, 0)));
    }

    #[test]
    fn without_btf_or_lines_there_are_functions_all_the_same() {
        let mut info = two_functions(0);
        info.line_addrs = vec![0; 4];
        check(&BpfProgram::new(&info), 0x1040, Some(("main", "", 0, 0)));
        info.btf.clear();
        check(&BpfProgram::new(&info), 0x1040, Some(("", "", 0, 0)));
        // If there is not one name for each function, names could be assigned to the wrong
        // function.
        let mut info = two_functions(0);
        info.functions.truncate(8);
        let found = BpfProgram::new(&info).find(0x1000).unwrap();
        assert_eq!((found.function, found.line), (Vec::new(), 10));
    }

    proptest! {
        #[test]
        fn any_answer_is_survived(
            extents in proptest::collection::vec((any::<u64>(), any::<u32>()), 0..5),
            functions in proptest::collection::vec(any::<u8>(), 0..40),
            lines in proptest::collection::vec(any::<u8>(), 0..80),
            sizes in (0u32..24, 0u32..24),
            line_addrs in proptest::collection::vec(any::<u64>(), 0..6),
            damage in proptest::collection::vec((0usize..90, any::<u8>()), 0..4),
        ) {
            let mut info = two_functions(0);
            for (at, value) in damage {
                let at = at % info.btf.len();
                info.btf[at] = value;
            }
            let extents: Vec<BpfExtent> = extents.into_iter()
                .map(|(start, len)| BpfExtent { start, len }).collect();
            let addrs: Vec<u64> = extents.iter()
                .flat_map(|e| [e.start, e.start.wrapping_add(1), e.start.saturating_add(e.len.into())])
                .chain(line_addrs.iter().copied())
                .collect();
            let (function_bytes, line_bytes) = sizes;
            let info = BpfProgramInfo {
                extents, functions, function_bytes, lines, line_bytes, line_addrs, ..info
            };
            let program = BpfProgram::new(&info);
            for addr in addrs {
                _ = program.find(addr);
            }
            prop_assert!(program.heap_bytes() < 64 << 10);
        }
    }
}
