//! Makes a Debian package without Debian's tools: an `ar` archive of three members (deb(5)).

use super::contents::{CAPABILITIES, File, SUMMARY};
use super::service::{KEPT, RELOAD, RESTART, STOP};
use super::tar;
use anyhow::Result;

/// Returns the package.
pub fn of(files: &[File], version: &str, time: u64) -> Result<Vec<u8>> {
    let bytes: usize = files.iter().map(|file| file.bytes.len()).sum();
    let script = |name: &str, text: String| File {
        mode: 0o755,
        ..File::new(name, text)
    };
    let control = [
        File::new("control", control(version, bytes.div_ceil(1024))),
        script("postinst", after_install()),
        script("prerm", before_removal()),
        script("postrm", after_removal()),
    ];
    let mut out = b"!<arch>\n".to_vec();
    member(&mut out, "debian-binary", b"2.0\n", time);
    member(&mut out, "control.tar.gz", &tar::gz(&control, time)?, time);
    member(&mut out, "data.tar.gz", &tar::gz(files, time)?, time);
    Ok(out)
}

fn member(out: &mut Vec<u8>, name: &str, bytes: &[u8], time: u64) {
    let len = bytes.len();
    let head = format!(
        "{name:<16}{time:<12}{:<6}{:<6}{:<8}{len:<10}`\n",
        0, 0, 100_644
    );
    out.extend(head.into_bytes());
    out.extend(bytes);
    if len % 2 == 1 {
        out.push(b'\n');
    }
}

fn control(version: &str, kilobytes: usize) -> String {
    let (summary, description) = SUMMARY;
    let description = description.replace('\n', "\n ");
    format!(
        "Package: proftop\n\
         Version: {version}\n\
         Architecture: amd64\n\
         Maintainer: the maintainers of proftop <maintainers@proftop.invalid>\n\
         Installed-Size: {kilobytes}\n\
         Recommends: libcap2-bin\n\
         Suggests: debuginfod\n\
         Section: utils\n\
         Priority: optional\n\
         Description: {summary}\n {description}\n"
    )
}

/// Creates the group, and gives it the program with its capabilities. If these cannot be set (no
/// `setcap`, a file system without attributes), `sudo proftop` still works. A recorder that runs
/// goes on with the new program.
fn after_install() -> String {
    format!(
        "#!/bin/sh\n\
         set -e\n\
         [ \"$1\" = configure ] || exit 0\n\
         getent group proftop >/dev/null || groupadd --system proftop\n\
         chown root:proftop /usr/bin/proftop\n\
         chmod 0750 /usr/bin/proftop\n\
         if ! setcap {CAPABILITIES}=ep /usr/bin/proftop 2>/dev/null; then\n    \
             echo 'proftop: its rights could not be set (setcap is in libcap2-bin): use sudo' >&2\n\
         fi\n\
         {RELOAD}\
         {RESTART}"
    )
}

/// Ends the recorder when the package is removed, but not when another version replaces it.
fn before_removal() -> String {
    format!("#!/bin/sh\nset -e\n[ \"$1\" = remove ] || exit 0\n{STOP}")
}

/// Removes the group when the package is purged. What was recorded is kept: it may be all that is
/// known of an incident.
fn after_removal() -> String {
    format!(
        "#!/bin/sh\n\
         set -e\n\
         {RELOAD}\
         [ \"$1\" = purge ] || exit 0\n\
         ! getent group proftop >/dev/null || groupdel proftop || true\n\
         {KEPT}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    #[test]
    fn dpkg_reads_what_was_written() {
        let files = [File {
            mode: 0o755,
            ..File::new("usr/bin/proftop", "#!/bin/sh\n")
        }];
        let package = of(&files, "1.2.3", 1_000_000_000).unwrap();
        assert!(package.starts_with(b"!<arch>\ndebian-binary   1000000000"));
        assert_eq!(package.len() % 2, 0);
        let path = std::env::temp_dir().join(format!("proftop-{}.deb", std::process::id()));
        fs::write(&path, package).unwrap();
        let read = |option: &str| {
            let read = Command::new("dpkg-deb").arg(option).arg(&path).output();
            read.ok().map(|output| {
                assert!(output.status.success(), "{output:?}");
                String::from_utf8(output.stdout).unwrap()
            })
        };
        let (info, contents) = (read("--info"), read("--contents"));
        fs::remove_file(&path).unwrap();
        let (Some(info), Some(contents)) = (info, contents) else {
            test_support::skip("there is no dpkg-deb");
            return;
        };
        assert!(info.contains("Version: 1.2.3"), "{info}");
        assert!(contents.contains("./usr/bin/proftop"), "{contents}");
    }

    #[test]
    fn the_scripts_are_scripts() {
        for script in [after_install(), before_removal(), after_removal()] {
            let checked = Command::new("sh").args(["-n", "-c", &script]).status();
            assert!(checked.unwrap().success(), "{script}");
        }
    }
}
