//! The integration tests of the crate, one file for each subject. They are one program: each
//! separate program would link the whole crate once more, and would run after the one before.
//! `cargo test -p profile --test all waits::` runs the tests of a single file.

mod common;

mod anonymous;
mod bare;
mod firefox;
mod importers;
mod inferno;
mod machines;
mod merge;
mod pairs;
mod perf;
mod perf_packed;
mod pft;
mod pft_probes;
mod pprof;
mod probe_formats;
mod properties;
mod queries;
mod rates;
mod reports;
mod same_runs;
mod viewers;
mod waits;

#[test]
fn every_file_is_in_the_list() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    test_support::assert_all_listed(&folder, &folder.join("all.rs"));
}
