//! Tests that really take on another user's rights, which needs root.

use super::*;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

/// A number that no account has.
const UID: u32 = 4_242_424;

fn made_up() -> Option<UserRights> {
    if !test_support::is_root_or_skip("only root can be another user") {
        return None;
    }
    Some(UserRights::of(InvokingUser {
        uid: UID,
        gid: UID + 1,
        groups: vec![UID + 1, UID + 2],
        name: "ann".into(),
        home: "/home/ann".into(),
    }))
}

/// Makes a directory that everybody may enter and write to.
fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

#[test]
fn own_rights_need_no_thread() {
    let here = thread::current().id();
    let there = UserRights::own().run(|| Ok(thread::current().id()));
    assert_eq!(there.unwrap(), here);
}

#[test]
fn work_has_the_users_rights_and_no_others() {
    let Some(rights) = made_up() else { return };
    let folder = open_folder();
    let (own, roots) = (folder.path().join("own"), folder.path().join("roots"));
    fs::write(&roots, "root's").unwrap();
    fs::set_permissions(&roots, fs::Permissions::from_mode(0o600)).unwrap();
    let (sets, read) = rights
        .run(|| {
            File::create(&own)?;
            Ok((rustix::thread::capabilities(None)?, fs::read(&roots)))
        })
        .unwrap();
    assert!(
        sets.effective.is_empty() && sets.permitted.is_empty(),
        "{sets:?}"
    );
    assert_eq!(read.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    let metadata = fs::metadata(&own).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (UID, UID + 1));
    // This thread is still root.
    assert!(rustix::process::geteuid().is_root());
    assert_eq!(fs::read(&roots).unwrap(), b"root's");
}

/// The kernel checks the effective user at each access to these, not the user for files.
#[test]
fn settings_of_the_kernel_are_out_of_reach() {
    let Some(rights) = made_up() else { return };
    let opened = rights.run(|| {
        File::options()
            .write(true)
            .open("/proc/sys/kernel/core_pattern")
    });
    let kind = opened.unwrap_err().kind();
    assert!(
        matches!(
            kind,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
        ),
        "{kind}"
    );
}

#[test]
fn the_thread_cannot_be_reached_by_the_user() {
    let Some(rights) = made_up() else { return };
    let status = rights
        .run(|| {
            fs::read_to_string(format!(
                "/proc/self/task/{}/status",
                rustix::thread::gettid()
            ))
        })
        .unwrap();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let uids: Vec<&str> = uids.unwrap().split_whitespace().collect();
    // Real, effective, saved, for files.
    let uid = UID.to_string();
    assert_eq!(uids, ["0", &uid, "0", &uid]);
}

#[test]
fn a_command_is_the_user_for_good() {
    let Some(rights) = made_up() else { return };
    let mut command = Command::new("/bin/sh");
    command.args([
        "-c",
        "grep -E '^(Uid|Gid|Groups|CapPrm)' /proc/self/status; echo $HOME",
    ]);
    rights.apply_to(&mut command);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    let (uid, gid, other) = (
        UID.to_string(),
        (UID + 1).to_string(),
        (UID + 2).to_string(),
    );
    let expected = [
        "Uid:",
        &uid,
        &uid,
        &uid,
        &uid,
        "Gid:",
        &gid,
        &gid,
        &gid,
        &gid,
        "Groups:",
        &gid,
        &other,
        "CapPrm:",
        "0000000000000000",
        "/home/ann",
    ];
    assert_eq!(words, expected, "{text}");
}

#[test]
fn a_panic_is_an_error() {
    let Some(rights) = made_up() else { return };
    let result: io::Result<()> = rights.run(|| panic!("on purpose"));
    assert!(result.unwrap_err().to_string().contains("on purpose"));
}
