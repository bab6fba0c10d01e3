//! `cargo xtask kernels FOLDER [RELEASE…] [--cpus N] [--kvm]`: checks whether sampling is correct
//! on other kernels. Boots each kernel below a folder in a virtual machine whose only programs are
//! `probe/examples/selftest` and proftop as it is given to others, and prints a table of results.
//!
//! | module | holds |
//! |---|---|
//! | `boot` | finds kernels, and runs the virtual machine |
//! | `cpio` | makes the file system with which a kernel starts |

mod boot;
mod cpio;

use crate::{dist, fingerprint};
use anyhow::{Context as _, Result, bail};
use boot::{Machine, Outcome};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";
const CPUS: u32 = 2;

/// The parsed arguments.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    folder: PathBuf,
    /// Prefixes of releases; empty for all releases.
    releases: Vec<String>,
    cpus: u32,
    by_hardware: bool,
}

/// Boots the kernels that these arguments select. Returns an error if the self-test failed on one
/// of them.
pub fn check(arguments: &[&str]) -> Result<()> {
    let wanted = Wanted::of(arguments)?;
    let mut kernels = boot::kernels_below(&wanted.folder)?;
    kernels.retain(|(release, _)| wanted.has(release));
    if kernels.is_empty() {
        bail!("no vmlinuz is below {}", wanted.folder.display());
    }
    let scratch = dist::target_folder()?.join("kernels");
    fs::create_dir_all(&scratch)?;
    let files = scratch.join("files.cpio");
    let (first, program) = (self_test(&scratch)?, dist::program()?);
    fs::write(&files, cpio::with_programs(&first, "proftop", &program))?;
    let mut rows = Vec::new();
    let mut failed = Vec::new();
    for (release, kernel) in kernels {
        let machine = Machine {
            kernel: &kernel,
            files: &files,
            cpus: wanted.cpus,
            by_hardware: wanted.by_hardware,
        };
        let console = scratch.join(format!("{release}.txt"));
        let outcome = machine.run(&console).with_context(|| release.clone())?;
        if !outcome.is_right {
            println!(
                "{}\n(all of it: {})",
                outcome.lines.join("\n"),
                console.display()
            );
            failed.push(release.clone());
        }
        rows.push(row(&release, &outcome));
    }
    println!(
        "\n| kernel | whole by BPF | whole waits | whole by perf | proftop by BPF | by perf | |\n\
         | --- | --- | --- | --- | --- | --- | --- |"
    );
    rows.iter().for_each(|row| println!("{row}"));
    if !failed.is_empty() {
        bail!("the self-test failed on {}", failed.join(", "));
    }
    Ok(())
}

impl Wanted {
    fn of(arguments: &[&str]) -> Result<Self> {
        let mut wanted = Self {
            folder: PathBuf::new(),
            releases: Vec::new(),
            cpus: CPUS,
            by_hardware: false,
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            if *argument == "--cpus" {
                let count = arguments.next().and_then(|count| count.parse().ok());
                wanted.cpus = count.context("--cpus wants a number")?;
            } else if *argument == "--kvm" {
                wanted.by_hardware = true;
            } else if wanted.folder.as_os_str().is_empty() {
                wanted.folder = PathBuf::from(argument);
            } else {
                wanted.releases.push((*argument).to_owned());
            }
        }
        if wanted.folder.as_os_str().is_empty() {
            bail!("kernels wants a folder with kernels, such as /boot");
        }
        Ok(wanted)
    }

    /// Returns whether a release was selected; `6.1` is not a prefix of `6.12.9`.
    fn has(&self, release: &str) -> bool {
        let begins = |with: &String| {
            let rest = release.strip_prefix(&**with);
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
        };
        self.releases.is_empty() || self.releases.iter().any(begins)
    }
}

fn row(release: &str, outcome: &Outcome) -> String {
    let parts = ["bpf", "waits", "perf", "program-bpf", "program-perf"];
    let cells = parts.map(|of| outcome.result(of).unwrap_or("–"));
    let ended = if outcome.is_right { "ok" } else { "FAILED" };
    format!("| {release} | {} | {ended} |", cells.join(" | "))
}

/// Builds the self-test, static and without debug information, which would be most of the archive.
/// It keeps its symbols: proftop names its functions.
fn self_test(scratch: &Path) -> Result<Vec<u8>> {
    let built = Command::new(env!("CARGO"))
        .current_dir(fingerprint::workspace())
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--package",
            "probe",
        ])
        .args(["--example", "selftest", "--target", TARGET, "--target-dir"])
        .arg(scratch)
        .env(
            "RUSTFLAGS",
            "-C target-feature=+crt-static -C strip=debuginfo",
        )
        .status()?;
    if !built.success() {
        bail!("the self-test does not build");
    }
    let program = scratch.join(TARGET).join("release/examples/selftest");
    fs::read(&program).with_context(|| program.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_a_folder_and_releases() {
        let wanted = Wanted::of(&["/boot", "6.1", "--cpus", "16"]).unwrap();
        assert_eq!(wanted.folder, Path::new("/boot"));
        assert_eq!((wanted.cpus, wanted.by_hardware), (16, false));
        assert!(wanted.has("6.1.0-amd64") && wanted.has("6.1"));
        assert!(!wanted.has("6.12.9-amd64") && !wanted.has("16.1"));
        assert!(Wanted::of(&["--cpus", "many", "/boot"]).is_err());
        assert!(Wanted::of(&[]).is_err());
    }
}
