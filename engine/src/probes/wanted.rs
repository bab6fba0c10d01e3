//! Parses the text with which the user specifies functions.

use regex::Regex;

/// A specification of functions: `malloc`, `libc.so.6!malloc`, `app+0x1a40`, `^pg_.*`,
/// `scan.c:120`, `usdt:postgresql:query__start`, `tracepoint:sched:sched_switch`.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The text as typed.
    pub text: String,
    /// Name of the file, or its beginning up to a dot.
    pub module: Option<String>,
    /// The functions of the file.
    pub what: What,
}

/// Which functions of a file are meant.
#[derive(Debug, Clone)]
pub enum What {
    /// A name and, if the text can be one, a pattern.
    Name(String, Option<Regex>),
    /// An offset in the file.
    Offset(u64),
    /// A marker, `provider:name` (USDT); a pattern, if it can be one.
    Marker(String, Option<Regex>),
    /// A tracepoint of the kernel: its subsystem, if that was typed, and its name; a pattern of
    /// names, if it can be one.
    Tracepoint(Option<String>, String, Option<Regex>),
    /// A line of source text.
    Line(String, u32),
}

/// Splits a list. Commas inside of brackets belong to C++ names.
pub fn split(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0i32, 0);
    for (at, character) in list.char_indices() {
        match character {
            '(' | '<' | '[' | '{' => depth += 1,
            ')' | '>' | ']' | '}' => depth -= 1,
            ',' if depth <= 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

impl Wanted {
    /// Parses one element. The error is a sentence.
    pub fn parse(text: &str) -> Result<Wanted, String> {
        let wanted = |module: Option<&str>, what| Wanted {
            text: text.to_string(),
            module: module.map(str::to_string),
            what,
        };
        // Tried in this order: an offset, a file before `!`, a line, a name.
        if let Some((module, digits)) = text.rsplit_once("+0x") {
            let offset = u64::from_str_radix(digits, 16)
                .map_err(|_| format!("`{digits}` is no offset in hexadecimal"))?;
            return Ok(wanted(
                Some(module.trim_end_matches('!')),
                What::Offset(offset),
            ));
        }
        let (module, name) = match text.split_once('!') {
            Some((module, name)) if !module.is_empty() => (Some(module), name),
            _ => (None, text),
        };
        if let (None, Some(point)) = (module, name.strip_prefix("tracepoint:")) {
            let (subsystem, name) = match point.split_once(':') {
                Some((subsystem, name)) => (Some(subsystem.to_string()), name),
                None => (None, point),
            };
            if name.is_empty() || subsystem.as_ref().is_some_and(String::is_empty) {
                return Err(format!(
                    "`{text}`: a tracepoint is tracepoint:SUBSYSTEM:NAME"
                ));
            }
            let what = What::Tracepoint(subsystem, name.to_string(), pattern(name));
            return Ok(wanted(None, what));
        }
        if let Some(marker) = name.strip_prefix("usdt:") {
            let is_whole = marker
                .split_once(':')
                .is_some_and(|(provider, name)| !provider.is_empty() && !name.is_empty());
            if !is_whole {
                return Err(format!("`{text}`: a marker is usdt:PROVIDER:NAME"));
            }
            let what = What::Marker(marker.replace('-', "__"), pattern(marker));
            return Ok(wanted(module, what));
        }
        if let Some((file, line)) = as_line(name) {
            return Ok(wanted(module, What::Line(file.to_string(), line)));
        }
        if name.is_empty() {
            return Err(format!("`{text}` names no function"));
        }
        Ok(wanted(module, What::Name(name.to_string(), pattern(name))))
    }

    /// Whether a file with this name matches. `libc` and `libc.so` match `libc.so.6`, but `libc`
    /// does not match `libcrypto.so`.
    pub fn fits_module(&self, name: &str) -> bool {
        self.module.as_ref().is_none_or(|wanted| {
            let behind = name.strip_prefix(wanted.as_str());
            behind.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
        })
    }
}

/// The pattern that a text may be.
fn pattern(text: &str) -> Option<Regex> {
    let can_be = text.contains(['*', '^', '$', '|', '[', '\\', '+', '?', '.']);
    can_be.then(|| Regex::new(text).ok()).flatten()
}

/// Parses `file.c:120`, but not `ns::name`, as a file and a line.
fn as_line(text: &str) -> Option<(&str, u32)> {
    let (file, line) = text.rsplit_once(':')?;
    let is_file = file.contains('.') && !file.ends_with(':');
    Some((file, is_file.then(|| line.parse().ok())??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_outside_of_brackets() {
        assert_eq!(split("a,b"), ["a", "b"]);
        let list = "f(int, char),std::map<int, int>::at,";
        assert_eq!(split(list), ["f(int, char)", "std::map<int, int>::at"]);
        assert!(split("").is_empty());
    }

    #[test]
    fn words_say_file_and_function() {
        let wanted = Wanted::parse("libc!malloc").unwrap();
        assert!(wanted.fits_module("libc.so.6") && wanted.fits_module("libc-2.36.so"));
        assert!(!wanted.fits_module("libcrypto.so.3"));
        assert!(matches!(wanted.what, What::Name(name, None) if name == "malloc"));
        let wanted = Wanted::parse("postgres+0x1a40").unwrap();
        assert!(matches!(wanted.what, What::Offset(0x1a40)));
        let wanted = Wanted::parse("scan.l:120").unwrap();
        assert!(matches!(wanted.what, What::Line(file, 120) if file == "scan.l"));
        let wanted = Wanted::parse("app!lib/scan.c:7").unwrap();
        assert!(wanted.fits_module("app"));
        assert!(matches!(wanted.what, What::Line(file, 7) if file == "lib/scan.c"));
        let wanted = Wanted::parse("ns::Class::method").unwrap();
        assert!(matches!(wanted.what, What::Name(_, None)));
        let wanted = Wanted::parse("^pg_.*").unwrap();
        assert!(matches!(wanted.what, What::Name(_, Some(_))));
        // A method of Go is not a pattern: its star has nothing to repeat.
        let wanted = Wanted::parse("main.(*T).Get").unwrap();
        assert!(matches!(wanted.what, What::Name(_, None)));
        let wanted = Wanted::parse("postgres!usdt:postgresql:query-start").unwrap();
        assert!(wanted.fits_module("postgres"));
        assert!(
            matches!(wanted.what, What::Marker(name, None) if name == "postgresql:query__start")
        );
        assert!(Wanted::parse("usdt:postgresql").is_err());
        let wanted = Wanted::parse("tracepoint:sched:sched_switch").unwrap();
        assert!(matches!(
            wanted.what,
            What::Tracepoint(Some(of), name, None) if of == "sched" && name == "sched_switch"
        ));
        let wanted = Wanted::parse("tracepoint:sched_.*").unwrap();
        assert!(matches!(wanted.what, What::Tracepoint(None, _, Some(_))));
        assert!(Wanted::parse("tracepoint:sched:").is_err());
        assert!(Wanted::parse("libc!").is_err());
        assert!(Wanted::parse("a+0xzz").is_err());
    }
}
