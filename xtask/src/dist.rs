//! `cargo xtask dist`: builds the files of a release, below `target/package/`.
//!
//! | file | what it is |
//! |---|---|
//! | `proftop` | the program, static: it needs no library of the machine |
//! | `proftop-VERSION-TARGET.tar.gz` | program, manual, completions, documents, licenses |
//! | `proftop_VERSION_amd64.deb` | the same for Debian and its kin, with rights for a group |
//! | `proftop-VERSION-1.x86_64.rpm` | the same for Fedora, RHEL, SUSE and their kin |
//! | `proftop.cdx.json` | which crates are in it (CycloneDX) |
//! | `SHA256SUMS` | checksums of these |
//!
//! | module | holds |
//! |---|---|
//! | `build` | compiling, so that every build gives the same bytes |
//! | `contents` | which files are installed where |
//! | `tar`, `gzip`, `deb`, `rpm` | the archives; no tool of a distribution is needed |
//! | `sbom` | the list of crates |
//! | `measure` | what the program must not exceed |

mod build;
mod contents;
mod deb;
mod gzip;
mod measure;
mod rpm;
mod sbom;
mod service;
mod tar;

pub use build::target_folder;

use crate::fingerprint;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Builds everything from the files of this workspace.
pub fn make() -> Result<()> {
    let root = fingerprint::workspace();
    let out = build::target_folder()?.join("package");
    make_into(root, &compilers_folder()?, &out)?;
    measure::check(&out.join("proftop"))
}

/// Returns the folder of the compiler's files.
fn compilers_folder() -> Result<PathBuf> {
    Ok(build::target_folder()?.join("package-build"))
}

/// Builds the program alone, and returns its bytes.
pub fn program() -> Result<Vec<u8>> {
    let built = build::build(fingerprint::workspace(), &compilers_folder()?)?;
    fs::read(&built).with_context(|| built.display().to_string())
}

/// Builds the last commit twice, in two folders, and compares every byte.
pub fn check() -> Result<()> {
    let folders = [
        build::Copy::of_last_commit("a")?,
        build::Copy::of_last_commit("another")?,
    ];
    let mut sums = Vec::new();
    for folder in &folders {
        let out = folder.path().join("package");
        make_into(
            &folder.path().join("sources"),
            &folder.path().join("build"),
            &out,
        )?;
        sums.push(fs::read_to_string(out.join("SHA256SUMS"))?);
    }
    if sums[0] != sums[1] {
        bail!(
            "two folders give different bytes:\n{}\n{}",
            sums[0],
            sums[1]
        );
    }
    println!("the same bytes in two folders:\n{}", sums[0]);
    Ok(())
}

/// Builds the sources at `root` into `out`; `build` is the directory for the compiler's files.
fn make_into(root: &Path, build: &Path, out: &Path) -> Result<()> {
    let built = build::build(root, build)?;
    if out.exists() {
        fs::remove_dir_all(out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    fs::create_dir_all(out)?;
    let version = build::version(root)?;
    let time = build::time_of_sources(root)?;
    let program = out.join("proftop");
    fs::copy(&built, &program).with_context(|| format!("cannot copy {}", built.display()))?;
    let bom = sbom::of(root, &version, time)?;
    let files = contents::files(root, &program, bom.as_bytes())?;
    let folder = format!("proftop-{version}-{}", build::TARGET);
    let write = |name: String, bytes: Vec<u8>| fs::write(out.join(name), bytes);
    write(
        format!("{folder}.tar.gz"),
        tar::gz(&contents::below(&files, &folder), time)?,
    )?;
    write(
        format!("proftop_{version}_amd64.deb"),
        deb::of(&files, &version, time)?,
    )?;
    write(
        format!("proftop-{version}-1.x86_64.rpm"),
        rpm::of(&files, &version, time)?,
    )?;
    write("proftop.cdx.json".to_owned(), bom.into_bytes())?;
    let mut sums = String::new();
    let mut names: Vec<_> = fs::read_dir(out)?.collect::<std::io::Result<_>>()?;
    names.sort_by_key(std::fs::DirEntry::file_name);
    for name in names {
        let bytes = fs::read(name.path())?;
        let sum = fingerprint::of_bytes(&bytes);
        let name = name.file_name();
        sums += &format!("{sum}  {}\n", name.display());
        println!("{:>10} {}", bytes.len(), out.join(name).display());
    }
    fs::write(out.join("SHA256SUMS"), sums)?;
    Ok(())
}
