//! *Orders* are what can be said in the palette with a word behind it: `pid 4121`.

/// One of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    pub kind: OrderKind,
    pub name: &'static str,
    /// What is said behind it.
    pub argument: &'static str,
    pub help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderKind {
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
    Syntax,
    Cost,
}

/// All of them, in the order of the palette.
pub const ORDERS: [Order; 14] = [
    order(OrderKind::Pid, "pid", "4121", "only this process"),
    order(
        OrderKind::Window,
        "window",
        "30s",
        "the last so long, or all",
    ),
    order(
        OrderKind::Filter,
        "filter",
        "EXPR",
        "count only what passes",
    ),
    order(
        OrderKind::Goto,
        "goto",
        "NAME",
        "to the function of that name",
    ),
    order(
        OrderKind::Write,
        "write",
        "FILE",
        "to a file; its end tells the format",
    ),
    order(
        OrderKind::Rate,
        "rate",
        "499",
        "so many samples a second and CPU",
    ),
    order(
        OrderKind::Unit,
        "unit",
        "samples",
        "or percent, machine, cpu-ms, cpus, usual",
    ),
    order(
        OrderKind::Metric,
        "metric",
        "NAME",
        "another of the things that a file counts",
    ),
    order(
        OrderKind::Sort,
        "sort",
        "total",
        "functions by self, total, name or module",
    ),
    order(OrderKind::View, "view", "flame", "the view of that name"),
    order(
        OrderKind::Theme,
        "theme",
        "light",
        "or dark, 16, mono, auto",
    ),
    order(
        OrderKind::Syntax,
        "asm",
        "intel",
        "or att: how instructions are written",
    ),
    order(OrderKind::Write, "export", "FILE", "the same as write"),
    order(
        OrderKind::Cost,
        "perf",
        "on",
        "or off: what drawing this screen costs",
    ),
];

const fn order(
    kind: OrderKind,
    name: &'static str,
    argument: &'static str,
    help: &'static str,
) -> Order {
    Order {
        kind,
        name,
        argument,
        help,
    }
}

/// What was said, if it is an order: which one, and the words behind it.
pub fn said(typed: &str) -> Option<(OrderKind, &str)> {
    let (name, words) = typed.trim_start().split_once(' ')?;
    let order = ORDERS.iter().find(|order| order.name == name)?;
    let words = words.trim();
    (!words.is_empty()).then_some((order.kind, words))
}

/// Those whose name begins so.
pub fn begun(typed: &str) -> impl Iterator<Item = &'static Order> {
    let typed = typed.trim_start();
    let word = typed.split(' ').next().unwrap_or_default().to_owned();
    let has_argument = typed.contains(' ');
    ORDERS.iter().filter(move |order| match has_argument {
        true => order.name == word,
        false => !word.is_empty() && order.name.starts_with(&word),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_a_word_behind_it() {
        assert_eq!(said("pid 4121"), Some((OrderKind::Pid, "4121")));
        assert_eq!(said(" goto  a b "), Some((OrderKind::Goto, "a b")));
        assert_eq!(said("pid"), None);
        assert_eq!(said("pid "), None);
        assert_eq!(
            said("window longer please"),
            Some((OrderKind::Window, "longer please"))
        );
        assert_eq!(said("longer window"), None);
        let names = |typed: &str| begun(typed).map(|order| order.name).collect::<Vec<_>>();
        assert_eq!(names("w"), ["window", "write"]);
        assert_eq!(names("pid 4"), ["pid"]);
        assert_eq!(said("export a.svg"), Some((OrderKind::Write, "a.svg")));
        assert_eq!(names(""), [""; 0]);
    }
}
