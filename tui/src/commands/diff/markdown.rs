//! A difference as a short text with headings, for a language model, a ticket or a chat: what
//! surely changed, what may be chance, and what was compared.

use super::Compared;
use crate::words::markdown::{self, Lines, code, quoted};
use crate::words::{compared as words, names};
use profile::diff::DiffRow;

/// One part in this many of the text is the limit for the section on the sides.
const SIDES_PART: usize = 3;

/// Maximum number of changes that could be chance: they matter little, and the text has to be
/// short.
const CHANCE_MAX: usize = 10;

/// The smallest change that does not look like 0 when it is printed.
const VISIBLE_MIN: f64 = 0.05;

/// Returns the difference in at most `tokens_max` tokens. Lines that have no room are left out
/// whole, at the end of their section.
pub fn render(compared: &Compared<'_>, tokens_max: usize) -> String {
    let bytes = markdown::bytes(tokens_max);
    // This section is the last one, but is written first, so that it always has its room.
    let mut how = Lines::new(bytes / SIDES_PART);
    how_compared(compared, &mut how);
    let mut lines = Lines::new(bytes.saturating_sub(how.len()));
    lines.push(&title(compared));
    let (sure, rest): (Vec<&DiffRow>, Vec<&DiffRow>) = compared
        .diff
        .rows
        .iter()
        // A function that has no samples of its own only calls others.
        .filter(|row| row.a_self + row.b_self > 0)
        .partition(|row| row.sure);
    lines.push(&summary(compared, &sure));
    if let Some(limit) = compared.limit {
        lines.push(&verdict(compared, limit));
    }
    let count = sure.len();
    rows(compared, ("Surely changed", count), &sure, &mut lines);
    let count = rest.len();
    let visible = rest
        .into_iter()
        .filter(|row| change(compared, row).abs() >= VISIBLE_MIN)
        .take(CHANCE_MAX)
        .collect::<Vec<_>>();
    rows(compared, ("Could be chance", count), &visible, &mut lines);
    lines.into_text() + &how.into_text()
}

fn title(compared: &Compared<'_>) -> String {
    let [a, b] = &compared.names;
    let counted = if *compared.metric == profile::Metric::default() {
        String::new()
    } else {
        format!(" ({})", quoted(&compared.metric.name))
    };
    format!("# Difference{counted}: from {} to {}", quoted(a), quoted(b))
}

/// Returns the first sentence: whether anything surely changed, and which function grew most, or
/// else fell most.
fn summary(compared: &Compared<'_>, sure: &[&DiffRow]) -> String {
    let diff = compared.diff;
    if diff.a.samples == 0 || diff.b.samples == 0 {
        return "Nothing can be compared: a side has no samples.".to_owned();
    }
    if diff.sides().hide_samples() {
        return "Nothing can be told from chance: a file does not say how many samples it was \
            made of."
            .to_owned();
    }
    let Some(first) = sure.first() else {
        return "No difference: whatever changed could be chance.".to_owned();
    };
    let has_grown = diff.sides().change(first.a_self, first.b_self) > 0.0;
    let what = if has_grown { "Grew" } else { "Fell" };
    format!("{what} most: {}.", row(compared, first))
}

/// Says whether the limit is exceeded.
fn verdict(compared: &Compared<'_>, limit: f64) -> String {
    match compared.exceeding {
        Some(row) => format!(
            "Limit exceeded: the share of {} surely grew by over {limit} percentage points of all \
             samples.",
            code(&row.name)
        ),
        None => format!(
            "Within the limit: no function's share surely grew by over {limit} percentage points of \
             all samples."
        ),
    }
}

/// Writes a section of functions, as many as the user wants and there is room for, and the number
/// of those that are left out.
fn rows(
    compared: &Compared<'_>,
    (head, count): (&str, usize),
    rows: &[&DiffRow],
    lines: &mut Lines,
) {
    if rows.is_empty() || !lines.head(head) {
        return;
    }
    let shown = &rows[..rows.len().min(compared.rows_max)];
    let numbered = shown.iter().enumerate();
    let rows = numbered.map(|(at, function)| format!("{}. {}", at + 1, row(compared, function)));
    lines.list(rows, count - shown.len(), |left| {
        format!("- {left} more are left out")
    });
}

/// Returns by how much the own share or time of a function changed.
fn change(compared: &Compared<'_>, row: &DiffRow) -> f64 {
    compared.diff.sides().change(row.a_self, row.b_self)
}

/// Describes how much a function took before and takes now.
fn row(compared: &Compared<'_>, row: &DiffRow) -> String {
    let diff = compared.diff;
    let sides = diff.sides();
    let change = change(compared, row);
    let (a, b) = (
        sides.amount(&diff.a, row.a_self),
        sides.amount(&diff.b, row.b_self),
    );
    let unit = if diff.tests_time() {
        " ms of CPU a second"
    } else {
        "% of all"
    };
    let mark = match (row.is_new(), row.is_gone()) {
        (true, _) => ", new in B",
        (_, true) => ", gone in B",
        _ => "",
    };
    let module = names::module(&row.module);
    let module = if module.is_empty() {
        String::new()
    } else {
        format!(" ({})", quoted(module))
    };
    format!(
        "{}{module} {change:+.1}: {a:.1} -> {b:.1}{unit}{mark}",
        code(&row.name)
    )
}

/// Writes what both sides are, and how their functions were matched.
fn how_compared(compared: &Compared<'_>, lines: &mut Lines) {
    let diff = compared.diff;
    lines.head("What was compared");
    for (letter, side, name) in [
        ("A", &diff.a, &compared.names[0]),
        ("B", &diff.b, &compared.names[1]),
    ] {
        lines.push(&format!(
            "- {letter} {}: {}",
            quoted(name),
            compared.side(side)
        ));
    }
    if let Some([a, b]) = compared.all() {
        lines.push(&format!("- all: {a:.1} -> {b:.1} ms of CPU a second"));
    }
    for sentence in compared.beside() {
        lines.push(&format!("- {sentence}"));
    }
    lines.push(&format!(
        "- numbers are of the function itself, without what it calls; the same function by \
         build-id {}, by module and name {}",
        diff.same_by_build_id, diff.same_by_module
    ));
    for renamed in &diff.renamed {
        lines.push(&format!("- {}", quoted(&words::renamed(renamed))));
    }
    lines.push("- of the changes called sure, one in twenty may be chance");
}

#[cfg(test)]
mod tests {
    use super::super::tests::{compared, equal, same};
    use super::*;

    #[test]
    fn it_says_what_surely_changed_first() {
        let text = compared(|compared| render(compared, 1500));
        let mut lines = text.lines();
        assert_eq!(
            lines.next(),
            Some("# Difference: from `before.pft` to `after.pft`")
        );
        let first = lines.next().unwrap();
        assert!(first.starts_with("Grew most: `work<…>`"), "{first}");
        assert!(
            first.contains("+303.0: 101.0 -> 404.0 ms of CPU a second"),
            "{first}"
        );
        let verdict = lines.next().unwrap();
        assert!(
            verdict.starts_with("Limit exceeded: the share of `work<…>`"),
            "{verdict}"
        );
        assert!(text.contains("gone in B"), "{text}");
        assert!(text.contains("- A `before.pft`: "), "{text}");
        for line in text.lines() {
            assert_eq!(line.matches('`').count() % 2, 0, "{line}");
        }
    }

    #[test]
    fn no_difference_is_said_at_once() {
        let text = same(|compared| render(compared, 1500));
        let first = text.lines().nth(1).unwrap();
        assert_eq!(first, "No difference: whatever changed could be chance.");
        assert!(text.contains("Within the limit"), "{text}");
        assert!(text.contains("## Could be chance"), "{text}");
    }

    #[test]
    fn a_change_that_is_none_is_not_listed() {
        let text = equal(|compared| render(compared, 1500));
        assert!(text.contains("No difference"), "{text}");
        assert!(!text.contains("Could be chance"), "{text}");
        assert!(text.contains("What was compared"), "{text}");
    }

    #[test]
    fn it_is_no_longer_than_it_may_be() {
        for tokens in [200, 300, 1500] {
            let text = compared(|compared| render(compared, tokens));
            assert!(text.len() <= markdown::bytes(tokens), "{}", text.len());
            assert!(text.starts_with("# Difference"), "{text}");
        }
    }
}
