//! Comparing derived rules with those that compilers wrote for the same code.

use std::path::{Path, PathBuf};
use std::process::Command;
use test_support::{Scratch, run_tool};

/// Number of differences that are described.
const DESCRIBED: usize = 20;

/// Counts of the instructions of `.text` that `.eh_frame` describes.
#[derive(Debug, Default)]
pub struct Compared {
    pub same: u64,
    /// Instructions for which the code gives no rule.
    pub holes: u64,
    pub different: u64,
    first: Vec<String>,
}

impl Compared {
    /// Counts an instruction with another rule, and describes the first of them.
    pub fn differs(&mut self, description: impl FnOnce() -> String) {
        self.different += 1;
        if self.first.len() < DESCRIBED {
            self.first.push(description());
        }
    }

    /// Prints the counts, and checks that at least this share of the rules is the same.
    pub fn check(&self, path: &Path, percent_min: u64) {
        let all = self.same + self.holes + self.different;
        println!("{}: {self:#?} of {all}", path.display());
        assert!(all > 10_000);
        assert!(self.same * 100 > all * percent_min);
    }
}

/// Returns the files that an environment variable lists, or else a static program that this compiler
/// made in `scratch`: nearly all of it is the C library. None if there is no such compiler.
pub fn files(variable: &str, compiler: &str, scratch: &Scratch) -> Option<Vec<PathBuf>> {
    if let Some(list) = std::env::var_os(variable) {
        return Some(std::env::split_paths(&list).collect());
    }
    let source = scratch.write("main.c", "int main(void) { return 0; }");
    let program = scratch.join("program");
    let mut compiler = Command::new(compiler);
    compiler.args(["-O2", "-static", "-o"]);
    run_tool(compiler.arg(&program).arg(source))?;
    Some(vec![program])
}
