//! Starts a kernel in QEMU, with the programs in an archive, and reads the output on its console.

use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum time of a run: without hardware support for virtual machines one with 16 CPUs takes
/// minutes.
const DEADLINE: Duration = Duration::from_secs(900);

/// The line in which the self-test reports its result.
const ENDED: &str = "selftest ended with ";

/// What the kernel writes when one CPU executes a breakpoint by which another one, which changes the
/// kernel's code, keeps it out for a moment, although that breakpoint has been removed. The emulator
/// of QEMU 7.2 does that: with 16 CPUs, Linux 6.12 ended so in 6 of 6 runs in which a program of 40
/// lines switched the tracepoint of `__sysvec_irq_work` on and off by tracefs beside events of perf,
/// and in none of 2 in which one thread emulated all CPUs; once it ended in `sched_clock_cpu` before
/// it started its first program. Linux 6.19 with 2 CPUs ended so once, in `__schedule`.
const STALE_BREAKPOINT: &str = "Oops: int3";

/// Maximum number of runs of an emulated machine that ends so.
const RUNS_MAX: u32 = 5;

/// A virtual machine.
pub struct Machine<'a> {
    pub kernel: &'a Path,
    /// An archive with the kernel's first program, and others.
    pub files: &'a Path,
    pub cpus: u32,
    /// Whether to use the hardware's support for virtual machines. If this machine is virtual
    /// itself, the support may exist and not work.
    pub by_hardware: bool,
}

/// The output of the self-test, and whether all of it was correct.
pub struct Outcome {
    pub lines: Vec<String>,
    pub is_right: bool,
}

impl Machine<'_> {
    /// Runs the machine, again if the emulator ends it. Its output is written to the file `console`.
    pub fn run(&self, console: &Path) -> Result<Outcome> {
        for run in 1..RUNS_MAX {
            let written = self.run_once(console)?;
            if self.by_hardware || !written.contains(STALE_BREAKPOINT) {
                return Ok(Outcome::of(&written));
            }
            let place = written.lines().find_map(|line| line.split("RIP: ").nth(1));
            println!(
                "run {run}: the emulator executed a breakpoint that was gone, at {}; once more",
                place.unwrap_or("an unknown place")
            );
        }
        Ok(Outcome::of(&self.run_once(console)?))
    }

    /// Starts the machine, waits for its end, and returns its output.
    fn run_once(&self, console: &Path) -> Result<String> {
        let mut qemu = Command::new("qemu-system-x86_64");
        if self.by_hardware {
            qemu.args(["-accel", "kvm", "-cpu", "host"]);
        } else {
            // Without five levels of page tables and 16-byte compare-and-exchange, which are slow
            // if every instruction is emulated.
            qemu.args(["-accel", "tcg", "-cpu", "max,la57=off,cx16=off"]);
        }
        qemu.args(["-smp", &self.cpus.to_string(), "-m", "2048"])
            .args(["-nodefaults", "-no-user-config", "-no-reboot"])
            .args(["-display", "none", "-monitor", "none"])
            .arg("-serial")
            .arg(format!("file:{}", console.display()))
            .arg("-kernel")
            .arg(self.kernel)
            .arg("-initrd")
            .arg(self.files)
            // The check waits for ticks while other programs may use the CPUs.
            .args([
                "-append",
                "console=ttyS0 quiet loglevel=3 panic=-1 no_timer_check",
            ])
            .stdin(Stdio::null());
        let mut running = qemu
            .spawn()
            .context("cannot start qemu-system-x86_64 (Debian: qemu-system-x86)")?;
        let begun = Instant::now();
        while running.try_wait()?.is_none() {
            if begun.elapsed() > DEADLINE {
                running.kill()?;
                running.wait()?;
                bail!("the machine has not ended after {} s", DEADLINE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let written = fs::read(console).context("what it wrote on its console")?;
        Ok(String::from_utf8_lossy(&written).into_owned())
    }
}

impl Outcome {
    /// Parses the output. Lines before the self-test's first one are from the kernel and the
    /// firmware.
    fn of(written: &str) -> Self {
        let lines = written.lines().map(|line| line.trim_end().to_owned());
        let lines: Vec<_> = lines
            .skip_while(|line| !line.starts_with("selftest runs on "))
            .collect();
        let code = lines.iter().find_map(|line| line.strip_prefix(ENDED));
        Self {
            is_right: code == Some("0"),
            lines,
        }
    }

    /// Returns the result of one part of the test, for example `1203 of 1203, 0 lost` for `bpf`.
    pub fn result(&self, of: &str) -> Option<&str> {
        let mut lines = self.lines.iter();
        lines.find_map(|line| {
            line.strip_prefix("result: ")?
                .strip_prefix(of)?
                .strip_prefix(' ')
        })
    }
}

/// Returns the kernels below a folder, with their releases, oldest first.
pub fn kernels_below(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let (entry, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
            let name = name.to_string_lossy();
            if fs::symlink_metadata(&entry)?.is_dir() {
                left.push(entry);
            } else if let Some(release) = name.strip_prefix("vmlinuz-") {
                found.push((release.to_owned(), entry));
            } else if name == "vmlinuz" {
                // The path is `/usr/lib/modules/RELEASE/vmlinuz`.
                let release = folder.file_name().unwrap_or_default().to_string_lossy();
                found.push((release.into_owned(), entry));
            }
        }
    }
    found.sort_by_key(|(release, _)| version(release));
    Ok(found)
}

/// Parses a release: `6.12.9+deb13-cloud-amd64` is 6, 12, 9.
fn version(release: &str) -> Vec<u32> {
    let end = release.find(|digit: char| digit != '.' && !digit.is_ascii_digit());
    let numbers = release[..end.unwrap_or(release.len())].split('.');
    numbers.filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_and_in_order() {
        let scratch = test_support::Scratch::new();
        let boot = [
            "boot/vmlinuz-6.12.9-amd64",
            "boot/vmlinuz-6.1.2+deb12-amd64",
        ];
        for path in boot
            .iter()
            .chain(&["modules/7.2.0/vmlinuz", "boot/config-6.1"])
        {
            scratch.write(path, "");
        }
        let found = kernels_below(scratch.path()).unwrap();
        let releases = found.iter().map(|(release, _)| &**release);
        assert_eq!(
            releases.collect::<Vec<_>>(),
            ["6.1.2+deb12-amd64", "6.12.9-amd64", "7.2.0"]
        );
    }

    #[test]
    fn what_was_written_is_read_from_the_first_line_of_the_test_on() {
        let written = "SeaBIOS\r\nselftest ended with 0\r\nselftest runs on 6.1\r\n\
                       result: bpf 7 of 8, 0 lost\r\nselftest ended with 1\r\n";
        let outcome = Outcome::of(written);
        assert!(!outcome.is_right);
        assert_eq!(outcome.result("bpf"), Some("7 of 8, 0 lost"));
        assert_eq!(outcome.result("perf"), None);
        assert!(!Outcome::of("selftest runs on 6.1\n").is_right);
    }
}
