//! `proftop doctor`: what works here, what does not, and what would help.
//!
//! ```text
//! ok    kernel 6.18.44, x86_64, 2 CPUs online
//! fail  rights: uid 1000 without CAP_BPF+CAP_PERFMON: cannot sample
//!       fix: sudo proftop
//! 1 problem, no warnings. Exit status 4
//! ```

mod elf;
mod json;
mod markdown;
mod process;
mod terminal;

use super::print;
use crate::choices::Format;
use crate::cli::DoctorConfig;
use crate::failure::{Exit, Failure};
use probe::features::{self, Finding, Level};
use probe::privilege::Rights;
use std::fmt::Write;

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Machine,
    Terminal,
    Process,
}

/// All findings, in the order in which they are shown.
#[derive(Debug)]
struct Diagnosis {
    findings: Vec<(Section, Finding)>,
    process: Option<process::ProcessFacts>,
}

/// Runs `doctor`: prints the findings. The exit status says whether something makes sampling
/// impossible.
pub fn run(config: &DoctorConfig) -> Result<Exit, Failure> {
    let diagnosis = Diagnosis::make(config.pid, process::sample)?;
    let text = match config.format {
        Format::Json => json::render(&diagnosis)?,
        Format::Md => markdown::render(&diagnosis, config.tokens_max),
        Format::Text | Format::Csv => diagnosis.to_text(),
    };
    print(&text)?;
    Ok(diagnosis.exit())
}

/// Returns the findings on this machine, and on a process if one is given, as a short text with
/// headings. Those on the terminal are left out: the text is for programs, which have none.
pub fn markdown(pid: Option<u32>, tokens_max: usize) -> Result<String, Failure> {
    let mut diagnosis = Diagnosis::make(pid, process::sample)?;
    let findings = &mut diagnosis.findings;
    findings.retain(|(section, _)| *section != Section::Terminal);
    Ok(markdown::render(&diagnosis, tokens_max))
}

impl Diagnosis {
    /// Examines everything; `sample` takes samples of the process. It is an error if the process
    /// does not exist or if our own rights cannot be read. Anything else that cannot be examined
    /// becomes a finding.
    fn make(
        pid: Option<u32>,
        sample: impl FnOnce(u32) -> process::Sampled,
    ) -> Result<Diagnosis, Failure> {
        let process = pid.map(|pid| process::inspect(pid, sample)).transpose()?;
        let rights = Rights::current()
            .map_err(|e| Failure::failed(format!("failed to read `/proc/self/status`: {e}")))?;
        let sections = [
            (Section::Machine, features::survey(&rights)),
            (Section::Terminal, terminal::findings()),
            (
                Section::Process,
                process.as_ref().map(process::findings).unwrap_or_default(),
            ),
        ];
        let findings = sections.into_iter().flat_map(|(section, findings)| {
            findings.into_iter().map(move |finding| (section, finding))
        });
        Ok(Diagnosis {
            findings: findings.collect(),
            process,
        })
    }

    fn count(&self, level: Level) -> usize {
        let same = |(_, finding): &&(Section, Finding)| finding.level == level;
        self.findings.iter().filter(same).count()
    }

    /// Returns the exit status. Only findings that make sampling impossible are failures; warnings
    /// are not.
    fn exit(&self) -> Exit {
        match self.count(Level::Fail) {
            0 => Exit::Done,
            _ => Exit::NotPossible,
        }
    }

    /// Returns the findings as lines, each with its remedy below it, and a last line that counts
    /// them. If a process was examined, all findings on it are listed, but only the problems of the
    /// machine and the terminal, because these affect the process as well.
    fn to_text(&self) -> String {
        let mut text = String::new();
        let is_left_out = |(section, finding): &&(Section, Finding)| {
            self.process.is_some() && *section != Section::Process && finding.level == Level::Ok
        };
        let left_out = self.findings.iter().filter(is_left_out).count();
        if left_out > 0 {
            let checks = counted(left_out, "check");
            let _ = writeln!(
                text,
                "ok    {checks} of this machine and terminal: proftop doctor lists them"
            );
        }
        let shown = self.findings.iter().filter(|found| !is_left_out(found));
        for (_, finding) in shown {
            let _ = writeln!(text, "{:<4}  {}", level_word(finding.level), finding.what);
            if let Some(fix) = &finding.fix {
                // If nothing is wrong, the remedy is an improvement.
                let label = match finding.level {
                    Level::Ok => "tip",
                    Level::Warn | Level::Fail => "fix",
                };
                let _ = writeln!(text, "      {label}: {fix}");
            }
        }
        let _ = writeln!(text, "{}. Exit status {}", self.sum(), self.exit().code());
        text
    }

    /// Returns the number of problems and warnings, as in `1 problem, no warnings`.
    fn sum(&self) -> String {
        format!(
            "{}, {}",
            counted(self.count(Level::Fail), "problem"),
            counted(self.count(Level::Warn), "warning")
        )
    }
}

fn level_word(level: Level) -> &'static str {
    match level {
        Level::Ok => "ok",
        Level::Warn => "warn",
        Level::Fail => "fail",
    }
}

fn counted(count: usize, thing: &str) -> String {
    match count {
        0 => format!("no {thing}s"),
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes the place of `process::sample`: the test program is not proftop and cannot record.
    fn unsampled(_: u32) -> process::Sampled {
        Err("this is a test".into())
    }

    fn diagnosis(findings: Vec<Finding>) -> Diagnosis {
        let machine = |finding| (Section::Machine, finding);
        Diagnosis {
            findings: findings.into_iter().map(machine).collect(),
            process: None,
        }
    }

    #[test]
    fn lines_are_aligned_and_counted() {
        let diagnosis = diagnosis(vec![
            Finding::ok("kernel", "kernel 6.18"),
            Finding::ok("libz", "no names").fix("apt install libz-dbg"),
            Finding::warn("a", "less"),
            Finding::fail("b", "nothing").fix("sudo proftop"),
        ]);
        assert_eq!(
            diagnosis.to_text(),
            "ok    kernel 6.18\n\
             ok    no names\n      \
                   tip: apt install libz-dbg\n\
             warn  less\n\
             fail  nothing\n      \
                   fix: sudo proftop\n\
             1 problem, 1 warning. Exit status 4\n"
        );
    }

    #[test]
    fn warnings_do_not_fail() {
        let diagnosis = diagnosis(vec![Finding::warn("a", "x"), Finding::warn("b", "y")]);
        let text = diagnosis.to_text();
        assert!(
            text.ends_with("no problems, 2 warnings. Exit status 0\n"),
            "{text}"
        );
        assert_eq!(diagnosis.exit(), Exit::Done);
    }

    #[test]
    fn this_machine_and_this_process_can_be_examined() {
        let diagnosis = Diagnosis::make(Some(std::process::id()), unsampled).unwrap();
        let text = diagnosis.to_text();
        // Findings on this machine that are ok are not listed for a process.
        assert!(!text.contains("ok    kernel "), "{text}");
        assert!(text.starts_with("ok    "), "{text}");
        let first = text.lines().next().unwrap_or_default();
        assert!(first.ends_with(": proftop doctor lists them"), "{text}");
        let process = format!("process {}: ", std::process::id());
        assert!(text.contains(&process), "{text}");
        let whole = Diagnosis::make(None, unsampled).unwrap().to_text();
        assert!(whole.starts_with("ok    kernel "), "{whole}");
        assert!(whole.contains("terminal"), "{whole}");
        let plain = |c: char| c == '\n' || !c.is_control();
        assert!(text.chars().all(plain), "{text:?}");
    }

    #[test]
    fn a_pid_that_does_not_exist_is_one_sentence() {
        let failure = Diagnosis::make(Some(4_194_305), unsampled).unwrap_err();
        assert_eq!(failure.to_string(), "proftop: no process 4194305\n");
        assert_eq!(failure.exit.code(), 1);
    }
}
