//! The shipper against doubles of servers, and its files against other readers: `doubles/test_ship.py`;
//! what a server keeps, opened: `doubles/test_open.py`; object storage: `doubles/test_store.py`. In Python, so that nothing of it is shared with the encoders.

use std::path::Path;
use std::process::Command;
use test_support::skip;

/// The Python that has the packages which the doubles need; `.ci/fleet` makes one.
const PYTHON: &str = "PROFTOP_FLEET_PYTHON";

#[test]
fn the_shipper_against_doubles_of_servers_and_other_readers() {
    let python = std::env::var(PYTHON).unwrap_or("python3".into());
    let has = |module: &str| {
        let asked = Command::new(&python)
            .args(["-c", &format!("import {module}")])
            .output();
        asked.is_ok_and(|output| output.status.success())
    };
    for module in ["google.protobuf", "opentelemetry.proto.profiles"] {
        if !has(module) {
            skip(format!(
                "the shipper against doubles of servers: {python} has no {module}; .ci/fleet has it"
            ));
            return;
        }
    }
    let program = Path::new(env!("CARGO_BIN_EXE_proftop-fleet"));
    let make_spool = program.with_file_name("examples").join("make_spool");
    let doubles = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doubles");
    let output = Command::new(&python)
        .args([
            "-B",
            "-m",
            "unittest",
            "test_ship",
            "test_open",
            "test_store",
        ])
        .current_dir(doubles)
        .env("PROFTOP_FLEET", program)
        .env("MAKE_SPOOL", make_spool)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success(), "{said}");
}
