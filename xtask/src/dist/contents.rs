//! The files of an installation and their places.

use super::gzip::packed;
use anyhow::{Context as _, Result, bail};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The capabilities of the program when a member of the group `proftop` starts it, so that `sudo`
/// is not needed: loading BPF programs and opening clocks, reading what other users' processes have
/// mapped, and the addresses of the kernel.
pub const CAPABILITIES: &str =
    "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_syslog,cap_checkpoint_restore";

/// How names of documents, pictures and examples in `docs/` end.
const DOCUMENTS: [&str; 3] = ["md", "svg", "c"];

/// The description in packages: a short line, and lines of at most 80 characters.
pub const SUMMARY: (&str, &str) = (
    "top for code",
    "Shows live which functions use the CPUs of a machine, and in which processes and\n\
     threads, with whole stacks and without restarting anything. Members of the group\n\
     proftop use it without sudo; all others cannot start it.",
);

/// A file in an archive.
#[derive(Debug, Clone)]
pub struct File {
    /// The path below the root, without a leading slash.
    pub path: String,
    pub mode: u32,
    pub bytes: Vec<u8>,
}

impl File {
    /// Makes a file that all users may read.
    pub fn new(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> File {
        File {
            path: path.into(),
            mode: 0o644,
            bytes: bytes.into(),
        }
    }
}

/// Returns the files of an installation. Manual and completions are printed by the program.
pub fn files(root: &Path, program: &Path, bom: &[u8]) -> Result<Vec<File>> {
    let printed = |words: &[&str]| -> Result<Vec<u8>> {
        let output = Command::new(program)
            .args(words)
            .output()
            .with_context(|| format!("cannot start {}", program.display()))?;
        if !output.status.success() || output.stdout.is_empty() {
            bail!("proftop {} prints nothing", words.join(" "));
        }
        Ok(output.stdout)
    };
    let kept =
        |name: &str| fs::read(root.join(name)).with_context(|| format!("there is no {name}"));
    let doc = "usr/share/doc/proftop";
    let mut files = vec![
        File {
            path: "usr/bin/proftop".into(),
            mode: 0o755,
            bytes: fs::read(program)?,
        },
        File::new(
            "usr/share/man/man1/proftop.1.gz",
            packed(&printed(&["man"])?)?,
        ),
        File::new(
            "usr/share/bash-completion/completions/proftop",
            printed(&["completions", "bash"])?,
        ),
        File::new(
            "usr/share/zsh/vendor-completions/_proftop",
            printed(&["completions", "zsh"])?,
        ),
        File::new(
            "usr/share/fish/vendor_completions.d/proftop.fish",
            printed(&["completions", "fish"])?,
        ),
        // The service is not enabled by default.
        File::new(
            "usr/lib/systemd/system/proftop-recorder.service",
            kept("packaging/proftop-recorder.service")?,
        ),
        File::new(format!("{doc}/README.md"), kept("README.md")?),
        File::new(
            format!("{doc}/changelog.gz"),
            packed(&kept("CHANGELOG.md")?)?,
        ),
        File::new(format!("{doc}/LICENSE-MIT"), kept("LICENSE-MIT")?),
        File::new(format!("{doc}/LICENSE-APACHE"), kept("LICENSE-APACHE")?),
        File::new(format!("{doc}/proftop.cdx.json"), bom),
    ];
    // At the same places beside README.md as in the sources, so that its links work.
    for name in documents(root)? {
        files.push(File::new(format!("{doc}/{name}"), kept(&name)?));
    }
    Ok(files)
}

/// Returns the paths of the documents that README.md leads to, and of their pictures and examples,
/// in order.
fn documents(root: &Path) -> Result<Vec<String>> {
    let mut names = vec!["assets/demo.svg".to_owned()];
    for folder in ["docs", "docs/tour"] {
        for entry in fs::read_dir(root.join(folder))? {
            let name = format!("{folder}/{}", entry?.file_name().display());
            let kind = Path::new(&name).extension().and_then(OsStr::to_str);
            if kind.is_some_and(|kind| DOCUMENTS.contains(&kind)) {
                names.push(name);
            }
        }
    }
    names.sort();
    Ok(names)
}

/// Returns the files in one folder, for unpacking by hand.
pub fn below(files: &[File], folder: &str) -> Vec<File> {
    let short = |path: &str| match path {
        "usr/bin/proftop" => "proftop".to_owned(),
        path => path.trim_start_matches("usr/").to_owned(),
    };
    let moved = |file: &File| File {
        path: format!("{folder}/{}", short(&file.path)),
        ..file.clone()
    };
    files.iter().map(moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_links_of_the_readme_lead_to_documents_of_the_package() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let documents = documents(root).unwrap();
        let readme = fs::read_to_string(root.join("README.md")).unwrap();
        let links = readme
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split([')', '#']).next());
        let kept: Vec<_> = links
            .filter(|link| link.starts_with("docs/") || link.starts_with("assets/"))
            .collect();
        assert!(kept.len() > 10, "{kept:?}");
        for link in kept {
            assert!(documents.iter().any(|name| name == link), "{link}");
        }
    }
}
