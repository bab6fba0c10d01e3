//! Explains why a name from a profile or from source text has no code of its own: inlined
//! functions, and functions of Python. Says what to probe instead.

use super::modules::Module;
use super::wanted::{Wanted, What};
use profile::few;
use std::collections::BTreeMap;
use symbolize::sites::is_meant;
use symbolize::{LinkAddr, Symbolizer, demangle, sanitize};

/// Maximum number of functions that are named as containing the code.
const HOSTS_MAX: usize = 3;

/// Explains why there is no code with that name in these files, and what can be probed: a sentence
/// without its full stop. `None` if the reason is unknown. `symbolizer` reads the debug information
/// of whole files, which takes a while for large ones.
pub fn explain(modules: &[Module], wanted: &Wanted, symbolizer: &Symbolizer) -> Option<String> {
    let What::Name(name, _) = &wanted.what else {
        return None;
    };
    let meant = modules
        .iter()
        .filter(|module| wanted.fits_module(&module.name()));
    let inlined = meant.into_iter().find_map(|module| {
        let found = Inlined::find(module, name, symbolizer)?;
        Some(found.explain(name))
    });
    inlined.or_else(|| {
        let runs_python = modules.iter().any(|module| is_python(&module.name()));
        runs_python.then(|| of_python(name))
    })
}

/// Functions of Python have no machine code for a breakpoint.
fn of_python(name: &str) -> String {
    format!(
        "if `{name}` is a function of Python: probes are for native code, which such functions \
         have none of. What can be probed are functions of the interpreter and of extensions"
    )
}

/// Whether a file of this name is CPython.
fn is_python(name: &str) -> bool {
    let name = name.strip_prefix("lib").unwrap_or(name);
    name.starts_with("python3") || name.starts_with("python2")
}

/// A function whose code is only inside of others.
#[derive(Debug, Default)]
struct Inlined {
    /// The functions that contain its code, each with the number of pieces.
    hosts: BTreeMap<String, usize>,
    /// Its first line that has code, with its file.
    line: Option<(u32, String)>,
}

impl Inlined {
    fn find(module: &Module, name: &str, symbolizer: &Symbolizer) -> Option<Inlined> {
        let table = module.lines(symbolizer)?;
        let symbols = &module.symbols;
        let is_go = |addr: LinkAddr| symbols.go().is_some_and(|go| go.extent(addr).is_some());
        let mut found = Inlined::default();
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
            *found.hosts.entry(host).or_default() += 1;
            let file = sanitize(own.file).into_owned();
            let line = (own.line, file);
            if own.line > 0 && found.line.as_ref().is_none_or(|first| line < *first) {
                found.line = Some(line);
            }
        }
        (!found.hosts.is_empty()).then_some(found)
    }

    fn explain(&self, name: &str) -> String {
        let mut hosts: Vec<(&String, &usize)> = self.hosts.iter().collect();
        few::sort_by_key(&mut hosts, |(_, pieces)| std::cmp::Reverse(**pieces));
        let named: Vec<&str> = hosts
            .iter()
            .take(HOSTS_MAX)
            .map(|(host, _)| host.as_str())
            .collect();
        let more = match hosts.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let line = match &self.line {
            Some((line, file)) => format!(", or a line of it: {file}:{line}"),
            None => String::new(),
        };
        format!(
            "the compiler put `{name}` into its callers, so that there are no calls of it: probe \
             {}{more}{line}",
            named.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_have_the_code_are_named_and_counted() {
        let hosts = ["main", "draw", "read_all", "step", "tick"];
        let inlined = Inlined {
            hosts: hosts
                .iter()
                .zip([9, 1, 3, 2, 1])
                .map(|(host, pieces)| (host.to_string(), pieces))
                .collect(),
            line: Some((12, "clamp.c".into())),
        };
        let text = inlined.explain("clamp");
        assert!(
            text.ends_with("probe main, read_all, step and 2 more, or a line of it: clamp.c:12"),
            "{text}"
        );
    }

    #[test]
    fn interpreters_of_python_are_known_by_their_files() {
        let known = [
            "python3.12",
            "libpython3.11.so.1.0",
            "pythonic",
            "libc.so.6",
        ];
        assert_eq!(known.map(is_python), [true, true, false, false]);
    }
}
