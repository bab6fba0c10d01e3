//! Which CPUs exist, and which of them are online.

pub mod presence;

use probe_ebpf::limits::CPUS_MAX;
use std::collections::BTreeSet;
use std::{fs, io};

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// The numbers of the CPUs that are online now.
pub fn online() -> io::Result<BTreeSet<u32>> {
    let text = fs::read_to_string(ONLINE)?;
    parse_list(text.trim()).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{ONLINE} says {:?}", text.trim()),
        )
    })
}

/// Maximum number of CPUs that can ever exist; they are numbered from 0.
pub fn possible() -> u32 {
    let list = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = parse_list(list.trim()).and_then(|cpus| cpus.last().copied());
    last.map_or(CPUS_MAX, |last| (last + 1).min(CPUS_MAX))
}

/// Whether a CPU exists, online or not.
pub fn is_present(cpu: u32) -> bool {
    let list = fs::read_to_string("/sys/devices/system/cpu/present").unwrap_or_default();
    parse_list(list.trim()).is_some_and(|present| present.contains(&cpu))
}

/// Parses a list in the kernel's format: `0-3,5,8-9`.
pub fn parse_list(text: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        // More CPUs than any kernel supports: not such a list.
        if last < first || last - first > 1 << 16 {
            return None;
        }
        cpus.extend(first..=last);
    }
    (!cpus.is_empty()).then_some(cpus)
}

/// Formats rising numbers as the kernel does: `0-3,5`.
pub fn list(cpus: impl IntoIterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(cpu) => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let words = ranges.into_iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    words.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&[u32]>) {
        let expected = expected.map(|cpus| cpus.iter().copied().collect());
        assert_eq!(parse_list(text), expected, "{text}");
    }

    #[test]
    fn lists_of_the_kernel() {
        check("0", Some(&[0]));
        check("0-3", Some(&[0, 1, 2, 3]));
        check("0,2-3,8", Some(&[0, 2, 3, 8]));
    }

    #[test]
    fn a_list_is_written_as_it_is_read() {
        for text in ["0", "0-3", "0,2-3,8", "5,7"] {
            assert_eq!(list(parse_list(text).unwrap()), text);
        }
        assert_eq!(list([]), "");
    }

    #[test]
    fn what_is_no_list() {
        check("", None);
        check("a", None);
        check("3-1", None);
        check("0-4294967295", None);
    }

    #[test]
    fn this_machine_has_one() {
        if !std::path::Path::new(ONLINE).exists() {
            test_support::skip(format_args!("{ONLINE} does not exist: /sys is not mounted"));
            return;
        }
        assert!(!online().unwrap().is_empty());
    }
}
