//! Explains why a name from a profile or from source text has no code of its own: inlined
//! functions, and functions of Python. Says what to probe instead.

use super::modules::Module;
use super::wanted::{Wanted, What};
use symbolize::sites::Inlined;

/// Explains why there is no code with that name in these files, and what can be probed: a sentence
/// without its full stop. `None` if the reason is unknown. The debug information of whole files is
/// read for it, which takes a while for large ones.
pub fn explain(modules: &[Module], wanted: &Wanted) -> Option<String> {
    let What::Name(name, _) = &wanted.what else {
        return None;
    };
    let meant = modules
        .iter()
        .filter(|module| wanted.fits_module(&module.name()));
    let inlined = meant.into_iter().find_map(|module| {
        let inlined = module.sites.inlined(name).ok()??;
        Some(of_inlined(&inlined, name))
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

/// Explains which functions have the code of another one.
fn of_inlined(inlined: &Inlined, name: &str) -> String {
    let more = match inlined.more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let line = match &inlined.line {
        Some((line, file)) => format!(", or a line of it: {file}:{line}"),
        None => String::new(),
    };
    format!(
        "the compiler put `{name}` into its callers, so that there are no calls of it: probe \
         {}{more}{line}",
        inlined.hosts.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_have_the_code_are_named_and_counted() {
        let inlined = Inlined {
            hosts: ["main", "read_all", "step"].map(String::from).to_vec(),
            more: 2,
            line: Some((12, "clamp.c".into())),
        };
        let text = of_inlined(&inlined, "clamp");
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
