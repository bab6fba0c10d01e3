//! The names of users on this machine.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;
use symbolize::sanitize;

/// Most bytes read of `/etc/passwd`.
const BYTES_MAX: u64 = 16 << 20;

/// The names of users, by number.
#[derive(Debug, Default)]
pub struct Users(HashMap<u32, Arc<str>>);

impl Users {
    /// Reads `/etc/passwd`. Users that are not in it, such as those of a directory service, are
    /// displayed by their number.
    pub fn read() -> Self {
        let mut text = Vec::new();
        let file = File::open("/etc/passwd");
        let _ = file.and_then(|file| file.take(BYTES_MAX).read_to_end(&mut text));
        Self::parse(&text)
    }

    /// Parses lines `name:password:uid:…`; others are ignored.
    fn parse(text: &[u8]) -> Self {
        let mut users = HashMap::new();
        for line in text.split(|byte| *byte == b'\n') {
            let mut fields = line.split(|byte| *byte == b':');
            let (Some(name), Some(uid)) = (fields.next(), fields.nth(1)) else {
                continue;
            };
            let uid = std::str::from_utf8(uid)
                .ok()
                .and_then(|uid| uid.parse().ok());
            if let Some(uid) = uid {
                // As in the C library, the first line of a user counts.
                users.entry(uid).or_insert_with(|| sanitize(name).into());
            }
        }
        Self(users)
    }

    /// Name of a user, or the number if the name is unknown.
    pub fn name(&mut self, uid: u32) -> Arc<str> {
        let name = self.0.entry(uid);
        Arc::clone(name.or_insert_with(|| uid.to_string().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_first_line_and_numbers_else() {
        let mut users = Users::parse(b"root:x:0:0::/:/bin/sh\ntoor:x:0:0\nbad\nann:x:1000:");
        assert_eq!((&*users.name(0), &*users.name(1000)), ("root", "ann"));
        assert_eq!(&*users.name(7), "7");
    }
}
