//! Encodes the code of functions. It may come from a process that a hostile file has taken over, so
//! nothing in it is trusted.
//!
//! ```text
//! answer about a file: why there are no lines, whether the table of lines is damaged;
//!     `NOWHERE`; or `MACHINE` and its number; or `CODE` and the code
//! code: its first offset, its length, bytes that are left out behind it;
//!     number of texts, and each; number of instructions, and each:
//!         bytes since the end of the one before, length, flags, number of each text;
//!         and as far as flags say so: offset that it jumps to, number of its file and line,
//!         number of the text of inlined functions, number of the name of its target
//!
//! Files, too, are among the texts. Each text is there once.
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use crate::code::{BodyLine, CodeFound, FunctionCode, Instruction, NoLines};
use crate::wire::{Taken, put_bytes, put_u32, put_u64};
use crate::{Reason, sanitize};

/// Maximum size of an answer. The longest function that is written out has a third of it if all of
/// its instructions are of one byte.
const BYTES_MAX: usize = 16 << 20;

/// Maximum length of a text; longer ones are cut.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// Maximum number of texts of one instruction: two dialects, file, inlined functions and target.
const TEXTS_OF_ONE: u32 = 5;

const HAS_LINES: u8 = 0;
const NO_DEBUG_INFO: u8 = 1;
const TOO_MUCH: u8 = 2;
const UNREADABLE: u8 = 3;

const NOWHERE: u8 = 0;
const MACHINE: u8 = 1;
const CODE: u8 = 2;

const IS_CALL: u8 = 1;
const HAS_JUMP: u8 = 2;
const HAS_PLACE: u8 = 4;
const HAS_INLINED: u8 = 8;
const HAS_TARGET: u8 = 16;

/// The code of a function, and what is known about the lines of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeAnswer {
    /// Why there are no lines; `None` if there are.
    pub no_lines: Option<NoLines>,
    /// Whether the table of lines turned out to differ from what was written.
    pub is_table_damaged: bool,
    /// The code.
    pub found: CodeFound,
}

impl CodeAnswer {
    /// Encodes an answer. Instructions that do not fit into a message are left out, and counted as
    /// bytes that are left out.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self.no_lines {
            None => out.push(HAS_LINES),
            Some(NoLines::NoDebugInfo) => out.push(NO_DEBUG_INFO),
            Some(NoLines::TooMuch) => out.push(TOO_MUCH),
            Some(NoLines::Unreadable(reason)) => out.extend([UNREADABLE, reason as u8]),
        }
        out.push(u8::from(self.is_table_damaged));
        match &self.found {
            CodeFound::Unknown => out.push(NOWHERE),
            CodeFound::Machine(machine) => {
                out.push(MACHINE);
                put_u32(&mut out, u32::from(*machine));
            }
            CodeFound::Function(code) => {
                out.push(CODE);
                write_code(&mut out, code);
            }
        }
        out
    }

    /// Decodes an answer to a question for at most `bytes_max` bytes of code. `None` if it is
    /// malformed, or has more than was asked for.
    pub fn read(bytes: &[u8], bytes_max: u64) -> Option<CodeAnswer> {
        let mut bytes = Taken(bytes);
        let no_lines = match bytes.u8()? {
            HAS_LINES => None,
            NO_DEBUG_INFO => Some(NoLines::NoDebugInfo),
            TOO_MUCH => Some(NoLines::TooMuch),
            UNREADABLE => {
                let reason = *Reason::ALL.get(usize::from(bytes.u8()?))?;
                Some(NoLines::Unreadable(reason))
            }
            _ => return None,
        };
        Some(CodeAnswer {
            no_lines,
            is_table_damaged: bytes.u8()? != 0,
            found: match bytes.u8()? {
                NOWHERE => CodeFound::Unknown,
                MACHINE => CodeFound::Machine(u16::try_from(bytes.u32()?).ok()?),
                CODE => CodeFound::Function(read_code(&mut bytes, bytes_max)?),
                _ => return None,
            },
        })
    }
}

/// Texts that are being encoded, each of them once.
#[derive(Debug, Default)]
struct Texts<'a> {
    numbers: HashMap<&'a str, u32>,
    bytes: Vec<u8>,
}

impl<'a> Texts<'a> {
    fn number(&mut self, text: &'a str) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(text).or_insert_with(|| {
            let end = text.floor_char_boundary(TEXT_BYTES_MAX);
            put_bytes(&mut self.bytes, &text.as_bytes()[..end]);
            next
        })
    }
}

/// Encodes the code of a function. Instructions that do not fit into a message are left out.
pub fn write_code(out: &mut Vec<u8>, code: &FunctionCode) {
    let (mut texts, mut instructions) = (Texts::default(), Vec::new());
    let mut count = 0u32;
    let (mut end, mut range_end) = (code.range.start, code.range.end);
    for instruction in &code.instructions {
        if texts.bytes.len() + instructions.len() > BYTES_MAX {
            range_end = end;
            break;
        }
        write_instruction(&mut instructions, instruction, end, &code.files, &mut texts);
        end = instruction.offset + u64::from(instruction.len);
        count += 1;
    }
    put_u64(out, code.range.start);
    put_u64(out, range_end - code.range.start);
    put_u64(out, code.cut.saturating_add(code.range.end - range_end));
    put_u32(out, texts.numbers.len() as u32);
    out.extend(texts.bytes);
    put_u32(out, count);
    out.extend(instructions);
}

/// Encodes an instruction. `end` is the end of the one before.
fn write_instruction<'a>(
    out: &mut Vec<u8>,
    instruction: &'a Instruction,
    end: u64,
    files: &'a [Arc<str>],
    texts: &mut Texts<'a>,
) {
    let Instruction {
        offset,
        len,
        is_call,
        jump,
        texts: [att, intel],
        place,
        inlined,
        target,
    } = instruction;
    let place = place.and_then(|place| Some((files.get(place.file as usize)?, place.line)));
    let flags = [
        (*is_call, IS_CALL),
        (jump.is_some(), HAS_JUMP),
        (place.is_some(), HAS_PLACE),
        (inlined.is_some(), HAS_INLINED),
        (target.is_some(), HAS_TARGET),
    ];
    let set = flags.into_iter().filter(|(is_set, _)| *is_set);
    let flags = set.fold(0, |all, (_, flag)| all | flag);
    // No function is longer than 4 GiB.
    put_u32(out, (offset - end) as u32);
    out.extend([*len, flags]);
    put_u32(out, texts.number(att));
    put_u32(out, texts.number(intel));
    if let Some(jump) = jump {
        put_u64(out, *jump);
    }
    if let Some((file, line)) = place {
        put_u32(out, texts.number(file));
        put_u32(out, line);
    }
    for text in [inlined, target].into_iter().flatten() {
        put_u32(out, texts.number(text));
    }
}

/// Decodes the code of a function, at most `bytes_max` bytes. `None` if it is malformed.
pub fn read_code(bytes: &mut Taken<'_>, bytes_max: u64) -> Option<FunctionCode> {
    let start = bytes.u64()?;
    let len = bytes.u64().filter(|len| *len <= bytes_max)?;
    let range = start..start.checked_add(len)?;
    let cut = bytes.u64()?;
    let count = bytes.u32()?;
    let texts: Vec<Arc<str>> = (0..count)
        .map(|_| read_text(bytes))
        .collect::<Option<_>>()?;
    let instructions_count = bytes.u32()?;
    // Each instruction has a byte of its own.
    if u64::from(instructions_count) > len
        || count > TEXTS_OF_ONE.saturating_mul(instructions_count)
    {
        return None;
    }
    let mut files = FileNumbers::default();
    let mut instructions = Vec::new();
    let mut end = start;
    for _ in 0..instructions_count {
        let instruction = read_instruction(bytes, end, &texts, &mut files)?;
        end = instruction.offset + u64::from(instruction.len);
        if end > range.end {
            return None;
        }
        instructions.push(instruction);
    }
    Some(FunctionCode {
        range,
        cut,
        instructions,
        files: files.files,
    })
}

/// Reads a text. The sender has made it safe to print; if it is not, the sender is not to be
/// trusted with anything.
fn read_text(bytes: &mut Taken<'_>) -> Option<Arc<str>> {
    let text = bytes.bytes().filter(|text| text.len() <= TEXT_BYTES_MAX)?;
    let safe = sanitize(text);
    (safe.as_bytes() == text).then(|| (*safe).into())
}

fn read_instruction(
    bytes: &mut Taken<'_>,
    end: u64,
    texts: &[Arc<str>],
    files: &mut FileNumbers,
) -> Option<Instruction> {
    let offset = end.checked_add(u64::from(bytes.u32()?))?;
    let len = bytes.u8().filter(|len| *len > 0)?;
    offset.checked_add(u64::from(len))?;
    let flags = bytes.u8()?;
    let has = |flag: u8| flags & flag != 0;
    let shared = |number: u32| texts.get(number as usize).cloned();
    let texts = [shared(bytes.u32()?)?, shared(bytes.u32()?)?];
    let jump = if has(HAS_JUMP) {
        Some(bytes.u64()?)
    } else {
        None
    };
    let place = if has(HAS_PLACE) {
        let number = bytes.u32()?;
        Some(BodyLine {
            file: files.number(number, || shared(number))?,
            line: bytes.u32()?,
        })
    } else {
        None
    };
    let mut optional = |flag: u8| {
        if has(flag) {
            Some(Some(shared(bytes.u32()?)?))
        } else {
            Some(None)
        }
    };
    Some(Instruction {
        offset,
        len,
        is_call: has(IS_CALL),
        jump,
        texts,
        place,
        inlined: optional(HAS_INLINED)?,
        target: optional(HAS_TARGET)?,
    })
}

/// The source files of an answer, numbered in the order in which lines name them.
#[derive(Debug, Default)]
struct FileNumbers {
    files: Vec<Arc<str>>,
    /// Key: number of the text that is the file.
    numbers: HashMap<u32, u32>,
}

impl FileNumbers {
    /// Returns the number of the file that is the text of that number. `None` if there is no such
    /// text.
    fn number(&mut self, text: u32, file: impl FnOnce() -> Option<Arc<str>>) -> Option<u32> {
        if let Some(known) = self.numbers.get(&text) {
            return Some(*known);
        }
        let next = self.files.len() as u32;
        self.files.push(file()?);
        self.numbers.insert(text, next);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::assembly::{self, Mode};
    use crate::code::{Dialect, Texts};
    use proptest::prelude::*;

    /// As many bytes as the tests ask for.
    const MAX: u64 = 1 << 20;

    fn function() -> FunctionCode {
        // call; jne back; nop, which has no line; ret, behind two bytes of another function.
        let bytes = [0xe8, 0, 0, 0, 0, 0x75, 0xf9, 0x90, 0xcc, 0xcc, 0xc3];
        let mut texts = Texts::default();
        let mut decoded = assembly::decode(Mode::Bits64, &bytes, 0x40, 0x1040);
        decoded[0].target = Some("memcpy".into());
        let written = decoded.into_iter().map(|one| one.write(&mut texts));
        let mut instructions: Vec<_> = written.collect();
        let place = |file, line| Some(BodyLine { file, line });
        instructions[0].place = place(0, 7);
        instructions[1].place = place(1, u32::MAX);
        instructions[1].inlined = Some("add (math.h:12)".into());
        instructions[5].place = place(0, 9);
        instructions.drain(3..5);
        FunctionCode {
            range: 0x40..0x4b,
            cut: 3,
            instructions,
            files: vec!["/src/a.c".into(), "/src/math.h".into()],
        }
    }

    fn answers() -> Vec<CodeAnswer> {
        let found = [
            (None, CodeFound::Function(function())),
            (Some(NoLines::NoDebugInfo), CodeFound::Unknown),
            (Some(NoLines::TooMuch), CodeFound::Machine(243)),
            (
                Some(NoLines::Unreadable(Reason::Damaged)),
                CodeFound::Function(FunctionCode {
                    range: u64::MAX..u64::MAX,
                    cut: u64::MAX,
                    instructions: Vec::new(),
                    files: Vec::new(),
                }),
            ),
        ];
        let answer = |(no_lines, found)| CodeAnswer {
            no_lines,
            is_table_damaged: no_lines.is_none(),
            found,
        };
        found.into_iter().map(answer).collect()
    }

    #[test]
    fn answers_arrive_as_they_were_given() {
        for answer in answers() {
            let bytes = answer.write();
            for len in 0..bytes.len() {
                assert_eq!(CodeAnswer::read(&bytes[..len], MAX), None, "{len}");
            }
            assert_eq!(CodeAnswer::read(&bytes, MAX), Some(answer));
        }
    }

    fn read_function(bytes: &[u8], bytes_max: u64) -> Option<FunctionCode> {
        match CodeAnswer::read(bytes, bytes_max)?.found {
            CodeFound::Function(code) => Some(code),
            CodeFound::Unknown | CodeFound::Machine(_) => None,
        }
    }

    fn write_function_of(code: FunctionCode) -> Vec<u8> {
        let answer = CodeAnswer {
            no_lines: None,
            is_table_damaged: false,
            found: CodeFound::Function(code),
        };
        answer.write()
    }

    #[test]
    fn an_answer_with_more_code_than_was_asked_for_is_none() {
        let bytes = write_function_of(function());
        assert!(read_function(&bytes, 0x4b - 0x40).is_some());
        assert_eq!(read_function(&bytes, 0x4a - 0x40), None);
        // Its last instruction ends behind the function.
        let mut longer = function();
        longer.range.end -= 1;
        assert_eq!(read_function(&write_function_of(longer), MAX), None);
        // The function does not end below the highest offset.
        let mut higher = function();
        let up = u64::MAX - 0x44;
        higher.range = up..up + 4;
        let up = up - 0x40;
        for instruction in &mut higher.instructions {
            instruction.offset += up;
        }
        higher.instructions.truncate(1);
        assert_eq!(read_function(&write_function_of(higher), MAX), None);
    }

    #[test]
    fn texts_that_are_not_safe_to_print_make_no_answer() {
        let mut hostile = function();
        hostile.instructions[0].target = Some("\u{1b}]0;title\u{7}".into());
        assert_eq!(read_function(&write_function_of(hostile), MAX), None);
    }

    #[test]
    fn what_does_not_fit_into_a_message_is_cut() {
        let mut texts = Texts::default();
        let nops = vec![0x90; 4000];
        let decoded = assembly::decode(Mode::Bits64, &nops, 0, 0);
        let written = decoded.into_iter().map(|one| one.write(&mut texts));
        let mut code = FunctionCode {
            range: 0..nops.len() as u64,
            cut: 5,
            instructions: written.collect(),
            files: Vec::new(),
        };
        for (number, instruction) in code.instructions.iter_mut().enumerate() {
            let long = format!("{number} {}", "x".repeat(2 * TEXT_BYTES_MAX));
            instruction.inlined = Some(long.into());
        }
        let bytes = write_function_of(code.clone());
        assert!(bytes.len() < BYTES_MAX + 2 * TEXT_BYTES_MAX);
        let read = read_function(&bytes, MAX).expect("an answer");
        let count = read.instructions.len();
        assert!((900..1100).contains(&count), "{count}");
        assert_eq!(
            (read.range.clone(), read.cut),
            (0..count as u64, 4005 - count as u64)
        );
        let text = read.instructions[0].inlined.as_deref().expect("a text");
        assert_eq!(text.len(), TEXT_BYTES_MAX);
        assert_eq!(read.instructions[0].text(Dialect::Att), "nop");
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            _ = CodeAnswer::read(&bytes, MAX);
        }

        #[test]
        fn any_damage_is_harmless(at in 0usize..400, byte: u8) {
            let mut bytes = write_function_of(function());
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Some(code) = read_function(&bytes, MAX) {
                let mut end = code.range.start;
                for instruction in &code.instructions {
                    prop_assert!(instruction.offset >= end);
                    end = instruction.offset + u64::from(instruction.len);
                    prop_assert!(instruction.place.is_none_or(|p| (p.file as usize) < code.files.len()));
                }
                prop_assert!(end <= code.range.end);
            }
        }
    }
}
