//! Compiles the program so that every build gives the same bytes: no path of this machine and no
//! time gets into it.

use crate::fingerprint;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The GNU target, linked statically: not every toolchain has the standard library of a musl
/// target, and glibc's allocator is faster. proftop uses nothing that does not work in static
/// programs: it loads no libraries, queries no name servers, and looks users up in /etc/passwd or
/// through `getent`.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds the program, and returns its path.
pub fn build(root: &Path, folder: &Path) -> Result<PathBuf> {
    let home = cargo_home()?;
    let flags = [
        "-Ctarget-feature=+crt-static".to_owned(),
        // This reduces half a million bytes of relocations to a few thousand.
        "-Clink-arg=-Wl,-z,pack-relative-relocs".to_owned(),
        // Functions with identical code are merged.
        "-Clink-arg=-Wl,--icf=all".to_owned(),
        // So are constants, and the tables by which unwinding finds what to drop: nothing here
        // tells two of them apart by their addresses.
        "-Clink-arg=-Wl,--ignore-data-address-equality".to_owned(),
        // Functions that ask to be inlined are so only if they are about as small as others that the
        // compiler inlines unasked, and these are a little smaller than usual: some 150 kB less.
        "-Cllvm-args=-inlinehint-threshold=130 -inlinedefault-threshold=178".to_owned(),
        format!("--remap-path-prefix={}=/proftop", root.display()),
        format!("--remap-path-prefix={}=/build", folder.display()),
        format!("--remap-path-prefix={}=/cargo", home.display()),
    ];
    let status = cargo()
        .current_dir(root)
        .args([
            "build",
            "--locked",
            "--package",
            "proftop",
            "--bin",
            "proftop",
        ])
        .args(["--profile", "dist", "--target", TARGET, "--target-dir"])
        .arg(folder)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env_remove("RUSTFLAGS")
        .env("CARGO_INCREMENTAL", "0")
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("the program was not built");
    }
    Ok(folder.join(TARGET).join("dist/proftop"))
}

/// Returns the command of the cargo that runs this program.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
}

/// Returns the version of the workspace.
pub fn version(root: &Path) -> Result<String> {
    let text = fs::read_to_string(root.join("Cargo.toml"))?;
    let manifest: toml::Table = text.parse().context("cannot read Cargo.toml")?;
    let version = manifest["workspace"]["package"]["version"].as_str();
    version
        .map(str::to_owned)
        .context("Cargo.toml has no version")
}

/// Returns the time of files in archives, in seconds since 1970: SOURCE_DATE_EPOCH, else the time
/// of the last commit.
pub fn time_of_sources(root: &Path) -> Result<u64> {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return time.parse().context("SOURCE_DATE_EPOCH is no number");
    }
    let stamp = root.join(STAMP);
    let text = match fs::read_to_string(&stamp) {
        Ok(text) => text,
        Err(_) => time_of_commit(root)?,
    };
    text.trim()
        .parse()
        .context("git names no time of the last commit")
}

fn time_of_commit(root: &Path) -> Result<String> {
    let mut git = Command::new("git");
    let asked = git
        .current_dir(root)
        .args(["log", "-1", "--format=%ct"])
        .output();
    Ok(String::from_utf8(
        asked.context("cannot start git")?.stdout,
    )?)
}

/// Returns the folder into which cargo builds.
pub fn target_folder() -> Result<PathBuf> {
    let mut command = cargo();
    command.current_dir(fingerprint::workspace());
    command.args([
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--locked",
        "--offline",
    ]);
    let found: serde_json::Value = serde_json::from_slice(&command.output()?.stdout)?;
    let folder = found["target_directory"].as_str();
    folder
        .map(PathBuf::from)
        .context("cargo names no target folder")
}

fn cargo_home() -> Result<PathBuf> {
    let own = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let usual = || std::env::home_dir().map(|home| home.join(".cargo"));
    own.or_else(usual).context("there is no home of cargo")
}

/// The name of the file next to copied sources with the time of their commit.
const STAMP: &str = ".time-of-commit";

/// A copy of the last commit in a temporary folder, which is removed when this is dropped.
pub struct Copy(PathBuf);

impl Copy {
    /// Makes a copy. With names of different lengths, paths in the built files are detected.
    pub fn of_last_commit(name: &str) -> Result<Copy> {
        let folder = target_folder()?.join(format!("dist-check-{name}"));
        // It may be left over from a run that was killed.
        _ = fs::remove_dir_all(&folder);
        let copy = Copy(folder);
        let sources = copy.0.join("sources");
        fs::create_dir_all(&sources)?;
        let archive = copy.0.join("sources.tar");
        let made = Command::new("git")
            .current_dir(fingerprint::workspace())
            .args(["archive", "--format=tar", "HEAD", "--output"])
            .arg(&archive)
            .status()?;
        let taken = Command::new("tar")
            .arg("-xf")
            .arg(&archive)
            .arg("-C")
            .arg(&sources)
            .status()?;
        if !made.success() || !taken.success() {
            bail!("the last commit cannot be copied");
        }
        fs::write(
            sources.join(STAMP),
            time_of_commit(fingerprint::workspace())?,
        )?;
        Ok(copy)
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}
