//! Builds the BPF objects so that every build gives the same bytes.
//!
//! This requires a compiler that has a `core` for bpfel-unknown-none and accepts unstable flags,
//! and bpf-linker. Users of proftop need neither: the objects are committed.

use crate::{fingerprint, strip};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A BPF object. There is one for each machine whose registers and stacks its programs read, and
/// one for kernels without `bpf_loop`.
pub struct Object {
    /// The machine's name in aya and in the sources.
    machine: &'static str,
    pub path: &'static str,
    /// The file that records the sources and tools of the object.
    pub receipt: &'static str,
    features: &'static str,
}

pub const OBJECTS: [Object; 3] = [
    Object {
        machine: "x86_64",
        path: "assets/proftop.bpf.o",
        receipt: "assets/proftop.bpf.receipt",
        features: "bpf",
    },
    Object {
        machine: "aarch64",
        path: "assets/proftop.aarch64.bpf.o",
        receipt: "assets/proftop.aarch64.bpf.receipt",
        features: "bpf,aarch64",
    },
    Object {
        machine: "x86_64",
        path: "assets/proftop.without-loop.bpf.o",
        receipt: "assets/proftop.without-loop.bpf.receipt",
        features: "bpf,without_loop",
    },
];

const TARGET: &str = "bpfel-unknown-none";
/// v3 has 32-bit compare instructions: without them the verifier sees a checked index as another
/// value.
const RUSTFLAGS: &str = "-C linker=bpf-linker -C link-arg=--btf -C target-cpu=v3";

pub fn build_into_assets() -> Result<()> {
    OBJECTS.iter().try_for_each(Object::build_into_assets)
}

pub fn check() -> Result<()> {
    OBJECTS.iter().try_for_each(Object::check)
}

impl Object {
    fn build_into_assets(&self) -> Result<()> {
        let object = self.build()?;
        let path = self.path;
        let receipt = format!(
            "# What {path} was made of and with; written by `cargo xtask ebpf`.\n\
             sources_sha256 = {}\nobject_sha256 = {}\nrustc = {}\nlinker = {}\n",
            fingerprint::of_sources()?,
            fingerprint::of_bytes(&object),
            version_of(&compiler(), "--version")?,
            version_of("bpf-linker", "--version")?,
        );
        let root = fingerprint::workspace();
        fs::create_dir_all(root.join("assets"))?;
        fs::write(root.join(path), &object)?;
        fs::write(root.join(self.receipt), receipt)?;
        println!("{path}: {} bytes", object.len());
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let path = self.path;
        let committed = fs::read(fingerprint::workspace().join(path))
            .with_context(|| format!("cannot read {path}"))?;
        let built = self.build()?;
        if built != committed {
            let receipt = fs::read_to_string(fingerprint::workspace().join(self.receipt))?;
            bail!(
                "{path} is not what its sources give: {} bytes committed, {} built\n\
                 committed with: {} / {}\nbuilt with:     {} / {}",
                committed.len(),
                built.len(),
                receipt_field(&receipt, "rustc").unwrap_or("?"),
                receipt_field(&receipt, "linker").unwrap_or("?"),
                version_of(&compiler(), "--version")?,
                version_of("bpf-linker", "--version")?,
            );
        }
        println!("{path}: the same {} bytes", built.len());
        Ok(())
    }

    fn build(&self) -> Result<Vec<u8>> {
        let root = fingerprint::workspace();
        let output = build_folder(root);
        // Starts from scratch: cargo compares times, and would use the result of another checkout
        // in a shared target folder.
        if output.exists() {
            fs::remove_dir_all(&output)
                .with_context(|| format!("cannot empty {}", output.display()))?;
        }
        let mut command = Command::new(cargo());
        command
            .current_dir(root)
            .args(["build", "--locked", "--quiet", "--package", "probe-ebpf"])
            .args(["--bin", "proftop-ebpf", "--features", self.features])
            .args(["--profile", "bpf", "--target", TARGET])
            .args([
                "-Z",
                "trim-paths",
                "--config",
                "profile.bpf.trim-paths=\"all\"",
            ])
            .arg("--target-dir")
            .arg(&output)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTC", compiler())
            // The environment may have flags and a toolchain for other builds; an incremental build
            // gives other bytes.
            .env("CARGO_INCREMENTAL", "0")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTC_WRAPPER")
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("CARGO")
            // The machine for whose registers aya is built.
            .env("AYA_BPF_TARGET_ARCH", self.machine)
            .env("RUSTFLAGS", RUSTFLAGS);
        if !has_core(&compiler()) {
            command.args(["-Z", "build-std=core"]);
        }
        let status = command.status().with_context(|| {
            format!(
                "cannot run {}: it takes a cargo and rustc that can build for {TARGET}",
                cargo()
            )
        })?;
        if !status.success() {
            bail!("the BPF build failed ({status})");
        }
        let linked = output.join(TARGET).join("bpf/proftop-ebpf");
        let linked =
            fs::read(&linked).with_context(|| format!("cannot read {}", linked.display()))?;
        strip::debug_sections(&linked)
    }
}

/// Returns the value of `name = value` in a receipt.
pub fn receipt_field<'a>(receipt: &'a str, name: &str) -> Option<&'a str> {
    receipt.lines().find_map(|line| {
        let (key, value) = line.split_once(" = ")?;
        (key == name).then_some(value)
    })
}

/// Returns the compiler that can build for BPF: `PROFTOP_BPF_RUSTC`, or the system's.
fn compiler() -> String {
    std::env::var("PROFTOP_BPF_RUSTC").unwrap_or_else(|_| "/usr/bin/rustc".into())
}

fn cargo() -> String {
    std::env::var("PROFTOP_BPF_CARGO").unwrap_or_else(|_| "/usr/bin/cargo".into())
}

fn build_folder(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), PathBuf::from)
        .join("ebpf")
}

/// Returns whether the compiler comes with a ready-made `core` for BPF.
fn has_core(compiler: &str) -> bool {
    let Ok(output) = Command::new(compiler).args(["--print", "sysroot"]).output() else {
        return false;
    };
    let sysroot = String::from_utf8_lossy(&output.stdout);
    Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(TARGET)
        .join("lib")
        .is_dir()
}

fn version_of(program: &str, flag: &str) -> Result<String> {
    let output = Command::new(program)
        .arg(flag)
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}
