//! The orders that are typed as a name with an argument: `pid 4121`.

/// A row of the table, as the palette lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Described {
    pub kind: Kind,
    pub name: &'static str,
    /// An example of the argument, which is typed after the name.
    pub argument: &'static str,
    pub help: &'static str,
}

/// The kind of an order, without its argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Pid,
    Window,
    Filter,
    Goto,
    Write,
    Rate,
    Unit,
    Metric,
    Sort,
    View,
    Theme,
    /// The order named `asm`.
    Syntax,
    /// The order named `perf`.
    Cost,
    /// The order named `debuginfod`.
    Fetch,
    Probe,
    Unprobe,
    Renew,
    /// Reads a value at each call of a probe.
    Value,
}

/// All orders with a name, in the order of the palette.
pub const ORDERS: [Described; 19] = [
    order(Kind::Pid, "pid", "4121", "only this process"),
    order(Kind::Window, "window", "30s", "the last so long, or all"),
    order(Kind::Filter, "filter", "EXPR", "count only what passes"),
    order(Kind::Goto, "goto", "NAME", "to the function of that name"),
    order(
        Kind::Write,
        "write",
        "FILE",
        "to a file; its end tells the format",
    ),
    order(
        Kind::Rate,
        "rate",
        "499",
        "so many samples a second and CPU",
    ),
    order(
        Kind::Unit,
        "unit",
        "samples",
        "or percent, machine, cpu-ms, cpus, usual",
    ),
    order(
        Kind::Metric,
        "metric",
        "NAME",
        "on-cpu, off-cpu, wall, kept-waiting, or one of a file",
    ),
    order(
        Kind::Sort,
        "sort",
        "total",
        "functions by self, total, name or module",
    ),
    order(Kind::View, "view", "flame", "the view of that name"),
    order(Kind::Theme, "theme", "light", "or dark, 16, mono, auto"),
    order(
        Kind::Syntax,
        "asm",
        "intel",
        "or att: how instructions are written",
    ),
    order(Kind::Write, "export", "FILE", "the same as write"),
    order(
        Kind::Cost,
        "perf",
        "on",
        "or off: what drawing this screen costs",
    ),
    order(
        Kind::Fetch,
        "debuginfod",
        "on",
        "or off: fetch debug files, for names",
    ),
    order(
        Kind::Probe,
        "probe",
        "NAME",
        "count and time calls of that function",
    ),
    order(Kind::Unprobe, "unprobe", "all", "or this: take probes away"),
    order(
        Kind::Renew,
        "renew",
        "all",
        "or this: probes live 60 s more",
    ),
    order(
        Kind::Value,
        "value",
        "arg1",
        "read it at each call; none: read none",
    ),
];

/// Makes a row of the table.
const fn order(
    kind: Kind,
    name: &'static str,
    argument: &'static str,
    help: &'static str,
) -> Described {
    Described {
        kind,
        name,
        argument,
        help,
    }
}

/// Splits a typed text into the kind of an order and its argument. Returns `None` if the text does
/// not begin with the name of an order, or if the argument is missing.
pub fn said(typed: &str) -> Option<(Kind, &str)> {
    let (name, words) = typed.trim_start().split_once(' ')?;
    let order = ORDERS.iter().find(|order| order.name == name)?;
    let words = words.trim();
    (!words.is_empty()).then_some((order.kind, words))
}

/// Returns the orders whose name begins with the typed text.
pub fn begun(typed: &str) -> impl Iterator<Item = &'static Described> {
    let typed = typed.trim_start();
    let word = typed.split(' ').next().unwrap_or_default().to_owned();
    // After a blank the name is complete, so that only this order can be meant.
    let has_argument = typed.contains(' ');
    ORDERS.iter().filter(move |order| {
        if has_argument {
            order.name == word
        } else {
            !word.is_empty() && order.name.starts_with(&word)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_a_word_behind_it() {
        assert_eq!(said("pid 4121"), Some((Kind::Pid, "4121")));
        assert_eq!(said(" goto  a b "), Some((Kind::Goto, "a b")));
        assert_eq!(said("pid"), None);
        assert_eq!(said("pid "), None);
        assert_eq!(
            said("window longer please"),
            Some((Kind::Window, "longer please"))
        );
        assert_eq!(said("longer window"), None);
        let names = |typed: &str| begun(typed).map(|order| order.name).collect::<Vec<_>>();
        assert_eq!(names("w"), ["window", "write"]);
        assert_eq!(names("pid 4"), ["pid"]);
        assert_eq!(said("export a.svg"), Some((Kind::Write, "a.svg")));
        assert_eq!(names(""), [""; 0]);
    }
}
