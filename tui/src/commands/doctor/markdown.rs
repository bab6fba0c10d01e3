//! The findings of `doctor` as a short text with headings, for a language model, a ticket or a
//! chat: first what is impossible, with the remedies, then what works in part, then what works.

use super::Diagnosis;
use crate::words::markdown::{self, Lines};
use crate::words::plain::plain;
use probe::features::{Finding, Level};

/// Returns the findings in at most `tokens_max` tokens. Lines that have no room are left out whole,
/// at the end of their section.
pub fn render(diagnosis: &Diagnosis, tokens_max: usize) -> String {
    let mut lines = Lines::new(markdown::bytes(tokens_max));
    let of = match &diagnosis.process {
        Some(process) => format!(" of process {}", process.pid),
        None => String::new(),
    };
    lines.push(&format!("# Doctor{of}: {}", diagnosis.sum()));
    let sections = [
        (Level::Fail, "Impossible here"),
        (Level::Warn, "Works in part"),
        (Level::Ok, "Works"),
    ];
    for (level, head) in sections {
        let findings = diagnosis.findings.iter().map(|(_, finding)| finding);
        let findings: Vec<&Finding> = findings.filter(|found| found.level == level).collect();
        if findings.is_empty() || !lines.head(head) {
            continue;
        }
        let rows = findings.iter().map(|found| line(found));
        lines.list(rows, 0, |left| format!("- {left} more are left out"));
    }
    lines.into_text()
}

/// Returns the line of a finding, with its remedy if there is one.
fn line(finding: &Finding) -> String {
    // Findings contain names of files and processes, which may have any characters.
    let what = plain(&finding.what).replace('`', "'");
    match &finding.fix {
        Some(fix) => format!("- {what}. What helps: {}", plain(fix).replace('`', "'")),
        None => format!("- {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::Section;

    fn diagnosis() -> Diagnosis {
        let findings = [
            Finding::ok("kernel", "kernel 6.18"),
            Finding::warn("libz", "`libz`\n# has no names").fix("apt install libz-dbg"),
            Finding::fail("rights", "no rights").fix("sudo proftop"),
        ];
        Diagnosis {
            findings: findings.map(|found| (Section::Machine, found)).into(),
            process: None,
        }
    }

    #[test]
    fn what_is_impossible_comes_first() {
        assert_eq!(
            render(&diagnosis(), 1500),
            "\
# Doctor: 1 problem, 1 warning

## Impossible here

- no rights. What helps: sudo proftop

## Works in part

- 'libz'\\x0a# has no names. What helps: apt install libz-dbg

## Works

- kernel 6.18
"
        );
    }

    #[test]
    fn it_is_no_longer_than_it_may_be() {
        let mut many = diagnosis();
        let one = || (Section::Machine, Finding::ok("x", "a".repeat(70)));
        many.findings.extend((0..500).map(|_| one()));
        for tokens in [200, 1500] {
            let text = render(&many, tokens);
            assert!(text.len() <= markdown::bytes(tokens), "{}", text.len());
            assert!(text.starts_with("# Doctor"), "{text}");
        }
    }
}
