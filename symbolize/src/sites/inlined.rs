//! Functions whose code exists only inside of others, because the compiler inlined all of it.

use std::collections::BTreeMap;

use super::is_meant;
use crate::table::Table;
use crate::{ElfSymbols, LinkAddr, demangle, sanitize};

/// Maximum number of functions that are named as containing the code.
pub const HOSTS_MAX: usize = 3;

/// A function whose code is only inside of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inlined {
    /// The functions that contain most pieces of its code, at most [`HOSTS_MAX`], those with most
    /// pieces first.
    pub hosts: Vec<String>,
    /// Number of the other functions that contain its code.
    pub more: u64,
    /// Its first line that has code, with its file.
    pub line: Option<(u32, String)>,
}

impl Inlined {
    /// Finds the code of a function in the lines of a file. `None` if the file has none.
    pub fn find(symbols: &ElfSymbols, table: &Table, name: &str) -> Option<Inlined> {
        let is_go = |addr: LinkAddr| symbols.go().is_some_and(|go| go.extent(addr).is_some());
        // The functions that contain its code, each with the number of pieces.
        let mut hosts: BTreeMap<String, u64> = BTreeMap::new();
        let mut first: Option<(u32, String)> = None;
        for addr in table.starts() {
            let mut frames = table.find(addr);
            let is_it = |function: Option<&[u8]>| {
                function.is_some_and(|raw| is_meant(raw, name, is_go(addr)))
            };
            let Some(own) = frames.find(|frame| is_it(frame.function)) else {
                continue;
            };
            // The outermost function gives the code its name.
            let Some(host) = frames.last().and_then(|frame| frame.function) else {
                continue;
            };
            let host = if is_go(addr) {
                sanitize(host).into_owned()
            } else {
                demangle(host).short().into_owned()
            };
            *hosts.entry(host).or_default() += 1;
            let line = (own.line, sanitize(own.file).into_owned());
            if own.line > 0 && first.as_ref().is_none_or(|first| line < *first) {
                first = Some(line);
            }
        }
        Inlined::of(hosts, first)
    }

    /// `None` if no function contains its code.
    fn of(hosts: BTreeMap<String, u64>, line: Option<(u32, String)>) -> Option<Inlined> {
        let mut hosts: Vec<(String, u64)> = hosts.into_iter().collect();
        hosts.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let more = hosts.len().saturating_sub(HOSTS_MAX) as u64;
        hosts.truncate(HOSTS_MAX);
        (!hosts.is_empty()).then(|| Inlined {
            hosts: hosts.into_iter().map(|(host, _)| host).collect(),
            more,
            line,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_with_most_pieces_are_named_and_the_others_counted() {
        let names = ["main", "draw", "read_all", "step", "tick"];
        let hosts = names.iter().zip([9, 1, 3, 2, 1]);
        let hosts = hosts.map(|(host, pieces)| (host.to_string(), pieces));
        let inlined = Inlined::of(hosts.collect(), None).unwrap();
        assert_eq!(inlined.hosts, ["main", "read_all", "step"]);
        assert_eq!(inlined.more, 2);
        assert_eq!(Inlined::of(BTreeMap::new(), None), None);
    }
}
