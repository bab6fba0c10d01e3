//! The *address* of a machine as a user types it: `ssh://[USER@]HOST[:PORT][/PATH]`. PATH is the
//! path of proftop on that machine.

use crate::failure::Failure;
use std::fmt;

/// The beginning of an address.
pub const SCHEME: &str = "ssh://";

/// A machine to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// None means the user that ssh chooses.
    pub user: Option<String>,
    /// A name that ssh knows: that of a machine, or of an entry in its configuration.
    pub host: String,
    /// None means the port that ssh chooses.
    pub port: Option<u16>,
    /// The path of proftop on the machine. None means to find it in PATH.
    pub program: Option<String>,
}

impl Address {
    /// Parses an address.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = |why: &str| {
            let shown = symbolize::sanitize(text.as_bytes());
            Failure::usage(format!("{shown} is no address of a machine: {why}")).detail(format!(
                "An address is {SCHEME}[USER@]HOST[:PORT][/PATH/TO/PROFTOP]"
            ))
        };
        let rest = text
            .strip_prefix(SCHEME)
            .ok_or_else(|| wrong("it is a file"))?;
        let (place, program) = match rest.find('/') {
            Some(at) => (&rest[..at], Some(rest[at..].to_owned())),
            None => (rest, None),
        };
        let (user, place) = match place.rsplit_once('@') {
            Some((user, place)) => (Some(user.to_owned()), place),
            None => (None, place),
        };
        let (host, port) = split_port(place);
        let port = match port.map(str::parse::<u16>) {
            None => None,
            Some(Ok(port)) if port > 0 => Some(port),
            Some(_) => return Err(wrong("the port is no number from 1 to 65535")),
        };
        // ssh would read a word that begins with `-` as an option, and its configuration may pass
        // others to a shell.
        let is_word = |word: &str| {
            let plain = |c: char| c.is_alphanumeric() || "._-:%\\".contains(c);
            !word.is_empty() && !word.starts_with('-') && word.chars().all(plain)
        };
        if !is_word(host) {
            return Err(wrong("a host has letters, digits, dots and hyphens"));
        }
        if user.as_deref().is_some_and(|user| !is_word(user)) {
            return Err(wrong("a user has letters, digits, dots and hyphens"));
        }
        if program.as_deref().is_some_and(|path| path.ends_with('/')) {
            return Err(wrong("the path is that of a folder, not of proftop there"));
        }
        Ok(Self {
            user,
            host: host.to_owned(),
            port,
            program,
        })
    }
}

/// Splits `host:port` and `[::1]:port`. An IPv6 address without brackets has no port.
fn split_port(place: &str) -> (&str, Option<&str>) {
    if let Some((host, rest)) = place
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        return (host, rest.strip_prefix(':'));
    }
    match place.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => (host, Some(port)),
        _ => (place, None),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self
            .user
            .as_ref()
            .map_or(String::new(), |user| format!("{user}@"));
        let port = self.port.map_or(String::new(), |port| format!(":{port}"));
        if self.host.contains(':') && !port.is_empty() {
            write!(f, "{user}[{}]{port}", self.host)
        } else {
            write!(f, "{user}{}{port}", self.host)
        }
    }
}

/// Returns the names of machines for the screen: their hosts, or their whole addresses if hosts
/// occur several times.
pub fn names(addresses: &[Address]) -> Result<Vec<String>, Failure> {
    let is_alone = |host: &str| addresses.iter().filter(|one| one.host == host).count() == 1;
    let mut names: Vec<String> = Vec::new();
    for address in addresses {
        let name = if is_alone(&address.host) {
            address.host.clone()
        } else {
            address.to_string()
        };
        if names.contains(&name) {
            return Err(Failure::usage(format!("{name} is named twice")));
        }
        names.push(name);
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        Address::parse(text).unwrap_or_else(|failure| panic!("{failure}"))
    }

    #[test]
    fn an_address_has_user_host_port_and_path() {
        let whole = address("ssh://ann@db-01.example:2222/opt/proftop");
        assert_eq!(
            whole,
            Address {
                user: Some("ann".into()),
                host: "db-01.example".into(),
                port: Some(2222),
                program: Some("/opt/proftop".into()),
            }
        );
        assert_eq!(whole.to_string(), "ann@db-01.example:2222");
        for (text, host, port) in [
            ("ssh://db", "db", None),
            ("ssh://[::1]:22", "::1", Some(22)),
            ("ssh://[fe80::1%eth0]", "fe80::1%eth0", None),
            ("ssh://fe80::1", "fe80::1", None),
        ] {
            let address = address(text);
            assert_eq!((&*address.host, address.port), (host, port), "{text}");
        }
    }

    #[test]
    fn what_ssh_would_take_for_something_else_is_refused() {
        for text in [
            "ssh://",
            "ssh://-oProxyCommand=x",
            "ssh://a -o",
            "ssh://-l@a",
            "ssh://a:0",
            "ssh://a:ssh",
            "ssh://a;b",
            "ssh://a/opt/",
            "ssh://$(id)",
            "a.pft",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn machines_are_called_by_what_tells_them_apart() {
        let called = |texts: &[&str]| {
            let addresses: Vec<Address> = texts.iter().map(|text| address(text)).collect();
            names(&addresses).map_err(|failure| failure.message)
        };
        assert_eq!(
            called(&["ssh://a", "ssh://u@b:2"]),
            Ok(vec!["a".into(), "b".into()])
        );
        assert_eq!(
            called(&["ssh://a:1", "ssh://a:2"]),
            Ok(vec!["a:1".into(), "a:2".into()])
        );
        assert_eq!(
            called(&["ssh://a", "ssh://a"]),
            Err("a is named twice".into())
        );
    }
}
