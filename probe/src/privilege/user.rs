//! The *invoking user*: the user who typed `sudo proftop`. The command to be watched runs as this
//! user, and files are written with this user's rights.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The user and the group that own nothing.
const NOBODY: u32 = 65_534;

/// A user as described by the account files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvokingUser {
    /// The user's number.
    pub uid: u32,
    /// The number of the primary group.
    pub gid: u32,
    /// `gid` and every other group the user is in.
    pub groups: Vec<u32>,
    /// The name in the account files.
    pub name: String,
    /// The home directory.
    pub home: PathBuf,
}

impl InvokingUser {
    /// Returns the user who had proftop started as root; `None` if it was not started for another
    /// user.
    ///
    /// 1. A set-user-id binary: the real user of this process, which the kernel knows.
    ///    The environment comes from the caller, and is ignored.
    /// 2. `SUDO_UID` (sudo, run0), `PKEXEC_UID` or `DOAS_USER`: these are trusted because a process
    ///    whose real user is root was started by root, and its environment was set by root. For any
    ///    other process they are just text. Each of these programs sets its own variable, and may
    ///    let the others through as its caller has set them. So one that names root does not hide
    ///    another that names a user, and if two name different users, neither is believed.
    ///
    /// The login uid of the audit system is not used: it stays the same in a root shell of `su`,
    /// where files are meant to be root's.
    pub fn current() -> Option<InvokingUser> {
        let real = rustix::process::getuid().as_raw();
        let is_root = rustix::process::geteuid().is_root();
        if is_root && real != 0 {
            return Some(
                Self::find(real, None).unwrap_or_else(|| Self::without_account(real, None)),
            );
        }
        Self::named_by(is_root, |name| std::env::var(name).ok())
    }

    fn named_by(is_root: bool, env: impl Fn(&str) -> Option<String>) -> Option<InvokingUser> {
        if !is_root {
            return None;
        }
        let env = |name| env(name).filter(|value| !value.is_empty());
        let sudo = env("SUDO_UID").map(|text| parse_uid(&text));
        let others = [
            env("PKEXEC_UID").map(|text| parse_uid(&text)),
            env("DOAS_USER").map(|name| uid_of(&name)),
        ];
        let is_sudo_alone = others.iter().all(Option::is_none);
        let named = others.into_iter().chain([sudo]).flatten();
        // There is an invoking user, but it is unknown which.
        let mut users = named
            .map(|uid| uid.unwrap_or(NOBODY))
            .filter(|&uid| uid != 0);
        let first = users.next()?;
        let is_agreed = users.all(|uid| uid == first);
        let uid = if is_agreed { first } else { NOBODY };
        let gid = env("SUDO_GID").filter(|_| is_sudo_alone);
        let gid = gid.and_then(|text| parse_uid(&text));
        let name = env("SUDO_USER").or_else(|| env("DOAS_USER"));
        let Some(mut user) = Self::find(uid, name.as_deref()) else {
            return Some(Self::without_account(uid, gid));
        };
        // `newgrp` may have changed it before sudo.
        if let Some(gid) = gid {
            user.gid = gid;
        }
        Some(user)
    }

    /// Returns a user whose account no longer exists, or is in a directory service that does not
    /// answer. Less is known then, which is no reason to act as root.
    fn without_account(uid: u32, gid: Option<u32>) -> InvokingUser {
        let gid = gid.unwrap_or(NOBODY);
        InvokingUser {
            uid,
            gid,
            groups: vec![gid],
            name: format!("uid {uid}"),
            home: PathBuf::from("/nonexistent"),
        }
    }

    /// Returns the account with this uid; if there are several, the one with this name.
    pub fn find(uid: u32, name: Option<&str>) -> Option<InvokingUser> {
        let local = std::fs::read("/etc/passwd").unwrap_or_default();
        let mut user = find_account(&local, uid, name).or_else(|| {
            // Accounts of a directory service are in no file. Running the system's own tool works
            // from a static binary too, in which libc could not look them up.
            let listed = output_of("/usr/bin/getent", &["passwd", &uid.to_string()])?;
            find_account(&listed, uid, name)
        })?;
        user.groups = find_groups(&user);
        Some(user)
    }
}

/// Returns the number of the user with this name.
pub fn uid_of(name: &str) -> Option<u32> {
    // Rejects everything that `getent` would take for an option, or that would match another part
    // of a line.
    if name.is_empty() || name.starts_with('-') || name.contains([':', '\n']) {
        return None;
    }
    let local = std::fs::read("/etc/passwd").unwrap_or_default();
    find_named(&local, name).or_else(|| {
        let listed = output_of("/usr/bin/getent", &["passwd", name])?;
        find_named(&listed, name)
    })
}

fn find_named(passwd: &[u8], name: &str) -> Option<u32> {
    let mut accounts = passwd.split(|&b| b == b'\n').filter_map(parse_account);
    let found = accounts.find(|account| account.name == name);
    found.map(|account| account.uid)
}

fn find_account(passwd: &[u8], uid: u32, name: Option<&str>) -> Option<InvokingUser> {
    let accounts = || {
        passwd
            .split(|&b| b == b'\n')
            .filter_map(parse_account)
            .filter(move |account| account.uid == uid)
    };
    accounts()
        .find(|account| Some(account.name.as_str()) == name)
        .or_else(|| accounts().next())
}

/// Parses `name:password:uid:gid:comment:home:shell`, see passwd(5).
fn parse_account(line: &[u8]) -> Option<InvokingUser> {
    let fields: Vec<&[u8]> = line.split(|&b| b == b':').collect();
    let [name, _, uid, gid, _, home, ..] = fields[..] else {
        return None;
    };
    let gid = parse_id(gid)?;
    Some(InvokingUser {
        uid: parse_id(uid)?,
        gid,
        groups: vec![gid],
        name: String::from_utf8(name.to_vec()).ok()?,
        home: PathBuf::from(OsString::from_vec(home.to_vec())),
    })
}

fn find_groups(user: &InvokingUser) -> Vec<u32> {
    let listed = output_of("/usr/bin/id", &["-G", "--", &user.name])
        .and_then(|text| parse_id_list(&text))
        .unwrap_or_else(|| {
            let group = std::fs::read("/etc/group").unwrap_or_default();
            groups_with_member(&group, &user.name)
        });
    let mut groups = vec![user.gid];
    groups.extend(listed.into_iter().filter(|&gid| gid != user.gid));
    groups
}

/// Parses `name:password:gid:member,member`, see group(5).
fn groups_with_member(group: &[u8], user: &str) -> Vec<u32> {
    group
        .split(|&b| b == b'\n')
        .filter_map(|line| {
            let fields: Vec<&[u8]> = line.split(|&b| b == b':').collect();
            let [_, _, gid, members] = fields[..] else {
                return None;
            };
            let member = members
                .split(|&b| b == b',')
                .any(|member| member == user.as_bytes());
            parse_id(gid).filter(|_| member)
        })
        .collect()
}

fn parse_id_list(text: &[u8]) -> Option<Vec<u32>> {
    let ids: Option<Vec<u32>> = text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .map(parse_id)
        .collect();
    ids.filter(|ids| !ids.is_empty())
}

/// The highest number is refused: for calls that change ids it means "leave it as it is".
fn parse_uid(text: &str) -> Option<u32> {
    text.parse::<u32>().ok().filter(|&id| id != u32::MAX)
}

fn parse_id(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Runs a program by its absolute path: this process is root, and PATH comes from the caller.
fn output_of(program: &str, args: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then_some(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &[u8] = b"root:x:0:0:root:/root:/bin/bash\n\
        ann:x:1000:1000:Ann,,,:/home/ann:/bin/zsh\n\
        +::::::\n\
        build:x:1000:100::/srv/build:/bin/sh\n\
        short:x:1001\n";

    #[test]
    fn a_user_is_found_by_its_name() {
        let passwd = b"root:x:0:0::/:/bin/sh\nann:x:1000:1000::/:/bin/sh\n";
        assert_eq!(find_named(passwd, "ann"), Some(1000));
        assert_eq!(find_named(passwd, "an"), None);
        for name in ["", "-s", "root:x", "a\nb", "no-such-user-here"] {
            assert_eq!(uid_of(name), None, "{name}");
        }
        assert_eq!(uid_of("root"), Some(0));
    }

    #[test]
    fn takes_the_account_with_the_right_name() {
        let ann = find_account(PASSWD, 1000, Some("ann")).unwrap();
        assert_eq!((ann.uid, ann.gid), (1000, 1000));
        assert_eq!(ann.home, PathBuf::from("/home/ann"));
        let build = find_account(PASSWD, 1000, Some("build")).unwrap();
        assert_eq!(build.home, PathBuf::from("/srv/build"));
    }

    #[test]
    fn an_unknown_name_gives_the_first_account_of_the_uid() {
        assert_eq!(find_account(PASSWD, 1000, None).unwrap().name, "ann");
        assert_eq!(find_account(PASSWD, 1000, Some("x")).unwrap().name, "ann");
        assert_eq!(find_account(PASSWD, 1001, None), None);
        assert_eq!(find_account(b"", 0, None), None);
    }

    #[test]
    fn sudo_is_believed_by_root_only() {
        let vars = |uid: &'static str| {
            move |name: &str| match name {
                "SUDO_UID" => Some(uid.to_owned()),
                "SUDO_GID" => Some("7".to_owned()),
                _ => None,
            }
        };
        assert_eq!(InvokingUser::named_by(false, vars("65534")), None);
        assert_eq!(
            InvokingUser::named_by(true, vars("0")),
            None,
            "root called it"
        );
        for unknown in ["-1", "4294967295", "ann"] {
            let user = InvokingUser::named_by(true, vars(unknown)).unwrap();
            assert_eq!(user.uid, NOBODY, "{unknown}");
        }
        let gone = InvokingUser::named_by(true, vars("4242424")).unwrap();
        assert_eq!(
            (gone.uid, gone.gid, &*gone.groups),
            (4_242_424, 7, &[7][..])
        );
        assert_eq!(InvokingUser::named_by(true, |_| None), None);
        if InvokingUser::find(65534, None).is_none() {
            test_support::skip("no account with uid 65534 on this machine");
            return;
        }
        let user = InvokingUser::named_by(true, vars("65534")).unwrap();
        assert_eq!((user.uid, user.gid), (65534, 7));
    }

    #[test]
    fn others_than_sudo_name_the_user_as_well() {
        let only = |key: &'static str, value: &'static str| {
            InvokingUser::named_by(true, move |name| (name == key).then(|| value.to_owned()))
        };
        let gone = only("PKEXEC_UID", "4242424").unwrap();
        assert_eq!((gone.uid, gone.gid), (4_242_424, NOBODY));
        assert_eq!(only("PKEXEC_UID", "0"), None);
        assert_eq!(only("DOAS_USER", "root"), None);
        assert_eq!(only("DOAS_USER", "no-such-user-here").unwrap().uid, NOBODY);
        if let Some(uid) = uid_of("nobody") {
            assert_eq!(only("DOAS_USER", "nobody").unwrap().uid, uid);
        }
    }

    #[test]
    fn no_variable_of_the_callers_hides_who_called() {
        let named = |vars: &'static [(&str, &str)]| {
            let find = |name: &str| vars.iter().find(|(key, _)| *key == name);
            InvokingUser::named_by(true, move |name| Some(find(name)?.1.to_owned()))
        };
        let behind_root = named(&[
            ("SUDO_UID", "0"),
            ("SUDO_GID", "0"),
            ("PKEXEC_UID", "4242424"),
        ])
        .expect("a user");
        assert_eq!((behind_root.uid, behind_root.gid), (4_242_424, NOBODY));
        let two = named(&[("SUDO_UID", "4242423"), ("PKEXEC_UID", "4242424")]);
        assert_eq!(two.expect("a user").uid, NOBODY);
        let unknown = named(&[("SUDO_UID", "0"), ("DOAS_USER", "no-such-user-here")]);
        assert_eq!(unknown.expect("a user").uid, NOBODY);
        assert_eq!(named(&[("SUDO_UID", "0"), ("DOAS_USER", "root")]), None);
    }

    #[test]
    fn reads_groups_from_both_places() {
        let group = b"root:x:0:\nsudo:x:27:ann,bob\nannex:x:28:annex\ndocker:x:998:ann\n";
        assert_eq!(groups_with_member(group, "ann"), [27, 998]);
        assert_eq!(parse_id_list(b"1000 27 998\n"), Some(vec![1000, 27, 998]));
        assert_eq!(parse_id_list(b"id: no such user\n"), None);
        assert_eq!(parse_id_list(b""), None);
    }

    #[test]
    fn nobody_is_known_here() {
        let Some(nobody) = InvokingUser::find(65534, Some("nobody")) else {
            test_support::skip("no account with uid 65534 on this machine");
            return;
        };
        assert_eq!(nobody.uid, 65534);
        assert_eq!(nobody.groups[0], nobody.gid);
    }
}
