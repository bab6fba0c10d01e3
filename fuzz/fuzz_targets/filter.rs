//! Filters: what is written is read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use profile::Filter;

fuzz_target!(|text: &str| {
    match text.parse::<Filter>() {
        Ok(filter) => {
            let written = filter.to_string();
            let again: Filter = written.parse().expect("we wrote it");
            assert_eq!(again, filter, "{written}");
        }
        Err(error) => assert!(error.column <= text.chars().count() + 1),
    }
});
