//! Answers of a parser or reader process, which a hostile file may have taken over.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolize::parser::check_any_answer;

fuzz_target!(|bytes: &[u8]| check_any_answer(bytes));
