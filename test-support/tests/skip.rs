//! Checks what the test harness prints for a test that passes.

use std::process::Command;

/// Not a real test: the test below runs it.
#[test]
#[ignore = "skips, to be looked at by the other test"]
fn skipping() {
    println!("this is kept");
    test_support::skip("there is no such thing");
}

#[test]
fn a_reason_cannot_be_swallowed() {
    for threads in ["1", "2"] {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "skipping", "--ignored"])
            .args(["--test-threads", threads])
            .output()
            .unwrap();
        assert!(output.status.success());
        let printed = String::from_utf8(output.stderr).unwrap();
        let what = printed
            .strip_prefix("skipped: ")
            .expect("it is printed")
            .strip_suffix(": there is no such thing\n")
            .unwrap();
        // With one thread the name of the test is unknown.
        assert!(["skipping", file!()].contains(&what), "{what}");
        let kept = String::from_utf8(output.stdout).unwrap();
        assert!(!kept.contains("this is kept"), "{kept}");
    }
}
