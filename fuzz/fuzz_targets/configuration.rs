//! Files of the configuration: those of users too, which root's proftop reads.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proftop::check_any_configuration;

fuzz_target!(|text: &str| check_any_configuration(text));
