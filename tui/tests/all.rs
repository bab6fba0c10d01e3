//! The end-to-end tests, one file for each subject. They are one program, because Cargo runs test
//! programs one after the other: tests that wait fill each other's time only within one.
//! `cargo test -p proftop --test all ends::` runs the tests of a single file.

mod common;

mod agent;
mod batch;
mod changing_files;
mod churn;
mod code;
mod confined;
mod containers;
mod copies;
mod costly_names;
mod crowds;
mod debuginfod;
mod demo;
mod documented;
mod documented_pages;
mod ends;
mod ends_at_once;
mod faults;
mod faults_of_orders;
mod few_files;
mod filters;
mod fleet;
mod forged;
mod full_disk;
mod happenings;
mod hostile_names;
mod hotspot;
mod hung;
mod killed;
mod little_memory;
mod machines;
mod many_mappings;
mod mcp;
mod namespaces;
mod newcomer;
mod older_kernel;
mod parsers;
mod plain;
mod probe_rounds;
mod probes;
mod python;
mod read_only_home;
mod record;
mod recorder;
mod recordings;
mod screen;
mod streams;
mod symbolize;
mod ten_tasks;
mod trace;
mod tracepoints;
mod twenty_functions;
mod typed_values;
mod unpacking;
mod user_files;
mod waits;
mod waits_without_bpf;
mod without_root;

#[test]
fn every_file_is_in_the_list() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    test_support::assert_all_listed(&folder, &folder.join("all.rs"));
}
