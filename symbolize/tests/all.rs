//! The tests of names from outside the crate, one file for each subject. They are one program: each
//! separate program would link the whole crate once more, and would run after the one before.
//! `cargo test -p symbolize --test all types::` runs the tests of a single file.

mod support;

mod code;
mod debug_files;
mod foreign;
mod headers;
mod hostile;
mod jit;
mod lines;
mod narrow;
mod parser;
mod prepared;
mod sites;
mod symbols;
mod tables;
mod types;

#[test]
fn every_file_is_in_the_list() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    test_support::assert_all_listed(&folder, &folder.join("all.rs"));
}
