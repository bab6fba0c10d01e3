//! The same SQL in other engines, and the same numbers by other SQL: `engines/test_engines.py`, in Python.

use std::path::Path;
use std::process::Command;
use test_support::skip;

/// The Python that has the packages of other engines; `.ci/fleet` makes one.
const PYTHON: &str = "PROFTOP_FLEET_PYTHON";

#[test]
fn other_engines_answer_with_the_same_rows() {
    let python = std::env::var(PYTHON).unwrap_or("python3".into());
    let asked = Command::new(&python).args(["-c", "import duckdb"]).output();
    if !asked.is_ok_and(|output| output.status.success()) {
        skip(format!(
            "the same SQL in other engines: {python} has no duckdb; .ci/fleet has it"
        ));
        return;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_proftop-fleet"));
    let example = |name: &str| program.with_file_name("examples").join(name);
    let engines = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engines");
    let output = Command::new(&python)
        .args(["-B", "-m", "unittest", "-v", "test_engines"])
        .current_dir(engines)
        .env("PROFTOP_FLEET", program)
        .env("MAKE_FLEET", example("make_fleet"))
        .env("MAKE_SPOOL", example("make_spool"))
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success(), "{said}");
}
