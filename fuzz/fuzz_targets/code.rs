//! The code of functions of a file, and of bytes as code of every processor: each instruction within
//! its function, and behind the one before.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolize::code::assembly::{self, Mode};
use symbolize::code::{self, CodeFound, CodeLines, CodeQuestion, Dialect, NoLines, Texts};
use symbolize::object::Object;
use symbolize::source::Source;
use symbolize::ElfSymbols;

const BYTES_MAX: u64 = 4 << 10;

fuzz_target!(|bytes: &[u8]| {
    for mode in [Mode::Bits32, Mode::Bits64, Mode::Aarch64] {
        let mut texts = Texts::default();
        for decoded in assembly::decode(mode, bytes, 0x40, u64::MAX - 20) {
            assert!(!decoded.write(&mut texts).text(Dialect::Intel).is_empty());
        }
    }
    let Ok(object) = Object::from_source(Source::Memory(bytes.into())) else {
        return;
    };
    let Ok(symbols) = ElfSymbols::from_object(object) else {
        return;
    };
    let lines = CodeLines::None(NoLines::NoDebugInfo);
    let starts = symbols.functions().map(|function| function.start);
    let starts: Vec<_> = starts.take(64).collect();
    for start in starts {
        let Some(address) = symbols.segments().to_file(start) else {
            continue;
        };
        let question = CodeQuestion {
            function: "f",
            module: "m",
            address,
            is_inlined: false,
            bytes_max: BYTES_MAX,
        };
        let CodeFound::Function(code) = code::find(&symbols, &lines, &question) else {
            continue;
        };
        assert!(code.range.end - code.range.start <= BYTES_MAX);
        let mut end = code.range.start;
        for instruction in &code.instructions {
            assert!(instruction.offset >= end && instruction.contains(instruction.offset));
            end = instruction.offset + 1;
        }
        assert!(end <= code.range.end);
    }
});
