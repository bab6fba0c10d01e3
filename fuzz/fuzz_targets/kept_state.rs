//! The file of the kept state, and the name of a target before it, which ends at the first line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proftop::check_any_state;

fuzz_target!(|text: &str| {
    let (scope, text) = text.split_once('\n').unwrap_or(("", text));
    check_any_state(text, scope);
});
