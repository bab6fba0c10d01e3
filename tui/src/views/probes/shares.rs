//! Shares of callers, values and threads, cut to the available lines.

use crate::words::units;
use engine::probes::{Latency, ProbeValue, Seen, Shares};

/// A heading, and rows that are shares of one whole, the largest first.
#[derive(Debug)]
pub struct Section {
    pub title: String,
    rows: Vec<(u64, String)>,
    /// The part of the whole that has no row.
    others: u64,
    /// The whole.
    all: u64,
    /// A sentence below the rows.
    note: Option<String>,
}

impl Section {
    /// Returns the number of lines of the section, including its heading.
    fn height(&self) -> usize {
        let rows = self.rows.len() + usize::from(self.others > 0);
        1 + rows + usize::from(self.note.is_some())
    }

    /// Removes the last row and adds it to the others.
    fn shrink(&mut self) {
        if let Some((count, _)) = self.rows.pop() {
            self.others += count;
        }
    }

    /// Returns the lines below the heading.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let others = (self.others > 0).then(|| (self.others, "others".to_owned()));
        let rows = self
            .rows
            .iter()
            .cloned()
            .chain(others)
            .map(|(count, what)| format!("{:>5}%  {what}", units::percent(count, self.all)));
        rows.chain(self.note.clone())
    }
}

/// Returns the sections beside the histogram, in at most `lines` lines.
pub fn sections(seen: &Seen, lines: usize) -> Vec<Section> {
    let mut all: Vec<Section> = seen.values.iter().map(value).collect();
    all.extend(shares("FROM WHERE", &seen.callers, " < "));
    all.extend(shares("THREADS", &seen.threads, ""));
    let needed = |all: &[Section]| all.iter().map(Section::height).sum::<usize>();
    // The loop ends, because each turn removes a row or a section, and 0 sections need 0 lines.
    while needed(&all) > lines {
        // The section with most rows loses one. Once each section has only one row, the last
        // section is removed.
        let longest = all.iter_mut().max_by_key(|section| section.rows.len());
        match longest {
            Some(section) if section.rows.len() > 1 => section.shrink(),
            _ => _ = all.pop(),
        }
    }
    all
}

/// Returns the section of a value that is read at each call: how often the value occurred. Calls at
/// which it could not be read do not belong to the whole, and are mentioned in a note.
fn value(value: &ProbeValue) -> Section {
    let top: u64 = value.top.iter().map(|(_, count)| count).sum();
    let rows = value.top.iter();
    let note = match value.unreadable {
        0 if top == 0 => Some("none was read yet".to_owned()),
        0 => None,
        count => Some(format!("{} could not be read", units::count(count))),
    };
    Section {
        title: format!("{} ({})", value.expression, value.register),
        rows: rows
            .map(|(shown, count)| (*count, shown.to_string()))
            .collect(),
        others: value.others,
        all: top + value.others,
        note,
    }
}

/// Returns the section of callers or threads, or `None` if no stack was taken. `joint` is put
/// between the names of a row.
fn shares(title: &str, shares: &Shares, joint: &str) -> Option<Section> {
    if shares.rows.is_empty() {
        return None;
    }
    let rows = shares.rows.iter().map(|(names, count)| {
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let whole = if names.is_empty() {
            "no caller".into()
        } else {
            names.join(joint)
        };
        (*count, whole)
    });
    let shown: u64 = shares.rows.iter().map(|(_, count)| count).sum();
    Some(Section {
        title: format!("{title}, of {}", units::counted(shares.all, "stack")),
        rows: rows.collect(),
        others: shares.all.saturating_sub(shown),
        all: shares.all,
        note: None,
    })
}

/// One line of the histogram.
#[derive(Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The shortest duration of the line, in words.
    pub from: String,
    pub calls: u64,
}

/// Returns the histogram of how long calls took: one line for each power of two nanoseconds, or for
/// several powers if `lines` is too small for that. Empty without calls.
pub fn histogram(latency: &Latency, lines: usize) -> Vec<Bucket> {
    let power = |ns: u64| ns.max(1).ilog2();
    let (Some(first), Some(last)) = (latency.buckets.first(), latency.buckets.last()) else {
        return Vec::new();
    };
    let (first, last) = (power(first.0), power(last.0));
    let span = (last - first + 1) as usize;
    // The smallest number of powers per line with which all of them fit.
    let step = span.div_ceil(lines.max(1)).max(1) as u32;
    let mut all: Vec<Bucket> = (first..=last)
        .step_by(step as usize)
        .map(|at| Bucket {
            from: units::nanoseconds(1u64 << at),
            calls: 0,
        })
        .collect();
    for (low, _, calls) in &latency.buckets {
        let at = (power(*low) - first) / step;
        if let Some(bucket) = all.get_mut(at as usize) {
            bucket.calls += calls;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_lost_whatever_the_room() {
        let latency = Latency {
            buckets: vec![
                (1_000, 1_200, 7),
                (1_400, 1_600, 2),
                (900_000, 1_000_000, 1),
            ],
            ..Latency::default()
        };
        for lines in 0..20 {
            let all = histogram(&latency, lines);
            assert!(all.len() <= lines.max(1), "{all:?}");
            assert_eq!(all.iter().map(|bucket| bucket.calls).sum::<u64>(), 10);
        }
        let fine = histogram(&latency, 20);
        assert_eq!(
            fine[0],
            Bucket {
                from: "512ns".into(),
                calls: 7
            }
        );
        assert_eq!(
            fine[1],
            Bucket {
                from: "1.02us".into(),
                calls: 2
            }
        );
        assert!(histogram(&Latency::default(), 9).is_empty());
    }
}
