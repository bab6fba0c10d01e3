//! Makes a package for Fedora, RHEL, SUSE and similar distributions, with the crate `rpm`: none of
//! their tools is needed.

use super::contents::{CAPABILITIES, File, SUMMARY};
use super::service::{KEPT, RELOAD, RESTART, STOP};
use anyhow::{Context as _, Result};
use rpm::{BuildConfig, CompressionType, Dependency, FileOptions, PackageBuilder, Scriptlet};

/// Files that have another path in these distributions than in Debian.
const MOVED: [(&str, &str); 1] = [(
    "usr/share/zsh/vendor-completions/",
    "usr/share/zsh/site-functions/",
)];

/// Creates the group before the files are installed, as one of them belongs to it.
const BEFORE_INSTALL: &str = "getent group proftop >/dev/null || groupadd --system proftop\n";

/// Ends the recorder with the last version of the package.
fn before_removal() -> String {
    format!("[ \"$1\" = 0 ] || exit 0\n{STOP}")
}

/// Removes the group with the last version of the package. What was recorded is kept: it may be all
/// that is known of an incident.
fn after_removal() -> String {
    format!(
        "{RELOAD}\
         [ \"$1\" = 0 ] || exit 0\n\
         ! getent group proftop >/dev/null || groupdel proftop || :\n\
         {KEPT}"
    )
}

/// Returns the package.
pub fn of(files: &[File], version: &str, time: u64) -> Result<Vec<u8>> {
    let time = u32::try_from(time).context("a time after 2106")?;
    let config = BuildConfig::v4()
        .compression(CompressionType::Gzip)
        .source_date(time)
        .reserved_space(None);
    let (summary, description) = SUMMARY;
    let mut package =
        PackageBuilder::new("proftop", version, "MIT OR Apache-2.0", "x86_64", summary);
    package
        .using_config(config)
        .release("1")
        .description(description)
        // The name of the building machine is private, and would change the bytes.
        .build_host("localhost")
        .pre_install_script(Scriptlet::new(BEFORE_INSTALL))
        .post_install_script(Scriptlet::new(RELOAD))
        .pre_uninstall_script(Scriptlet::new(before_removal()))
        .post_uninstall_script(Scriptlet::new(after_removal()))
        // After the files of the old version are gone. A recorder that runs goes on with the new program.
        .post_trans_script(Scriptlet::new(RESTART))
        .requires(Dependency::script_pre("/usr/sbin/groupadd"));
    for file in files {
        let moved = MOVED.iter().find_map(|(from, to)| {
            let rest = file.path.strip_prefix(from)?;
            Some(format!("/{to}{rest}"))
        });
        let path = moved.unwrap_or_else(|| format!("/{}", file.path));
        let mut options = FileOptions::new(path.as_str());
        options = match file.path.as_str() {
            // Members of the group do not need sudo for it; other users cannot start it.
            "usr/bin/proftop" => options
                .permissions(0o750)
                .group("proftop")
                .caps(format!("{CAPABILITIES}=ep"))?,
            _ => options.permissions(u16::try_from(file.mode)?),
        };
        if path.contains("/doc/") || path.contains("/man/") {
            options = options.doc();
        }
        package.with_file_contents(file.bytes.clone(), options)?;
    }
    let mut bytes = Vec::new();
    package.build()?.write(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    fn package() -> Vec<u8> {
        let files = [
            File {
                mode: 0o755,
                ..File::new("usr/bin/proftop", "#!/bin/sh\n")
            },
            File::new("usr/share/zsh/vendor-completions/_proftop", "#compdef\n"),
        ];
        of(&files, "1.2.3", 1_000_000_000).unwrap()
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        assert_eq!(package(), package());
    }

    #[test]
    fn rpm_reads_what_was_written() {
        let path = std::env::temp_dir().join(format!("proftop-{}.rpm", std::process::id()));
        fs::write(&path, package()).unwrap();
        let query = "%{NAME} %{VERSION}-%{RELEASE} %{ARCH} %{BUILDTIME}\n\
                     [%{FILENAMES} %{FILEMODES:perms} %{FILEGROUPNAME} %{FILECAPS}\n]";
        let read = Command::new("rpm")
            .args(["-qp", "--nosignature", "--qf", query])
            .arg(&path)
            .output();
        fs::remove_file(&path).unwrap();
        let Ok(read) = read else {
            test_support::skip("there is no rpm");
            return;
        };
        assert!(read.status.success(), "{read:?}");
        let text = String::from_utf8(read.stdout).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "proftop 1.2.3-1 x86_64 1000000000");
        let program = "/usr/bin/proftop -rwxr-x--- proftop ";
        assert!(lines[1].starts_with(program), "{text}");
        assert!(
            lines[1].contains("cap_bpf") && lines[1].ends_with("=ep"),
            "{text}"
        );
        assert!(lines[2].starts_with("/usr/share/zsh/site-functions/_proftop -rw-r--r-- root"));
    }

    #[test]
    fn the_scripts_are_scripts() {
        let fixed = [BEFORE_INSTALL, RELOAD, RESTART].map(String::from);
        for script in fixed.into_iter().chain([before_removal(), after_removal()]) {
            let checked = Command::new("sh").args(["-n", "-c", &script]).status();
            assert!(checked.unwrap().success(), "{script}");
        }
    }
}
