//! *Features*: what this machine offers a profiler, and what is lost where it does not, in words.
//! Every check tries the feature itself where that is cheap and harmless; versions are not
//! compared, since distributions backport.

mod bpf;
mod confinement;
mod event;
mod kernel;
mod place;

pub(crate) use bpf::USUAL_HELPERS;

use crate::privilege::{Capability, Rights};

pub use event::level_that_keeps_clocks;
pub use kernel::{kernel_is_at_least, kernel_release, max_sample_rate, perf_event_paranoid};
pub use place::{in_host_cgroup_namespace, in_host_pid_namespace};

/// The default rate of `-F`, the same as in other profilers. No rate is in step with a program,
/// because the clocks tick at random moments.
pub const RATE_DEFAULT: u32 = 99;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It is as it should be.
    Ok,
    /// Sampling works; something is missing or less exact.
    Warn,
    /// Sampling does not work.
    Fail,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Stable identifier, for scripts.
    pub id: &'static str,
    /// Severity.
    pub level: Level,
    /// One line: what is available or, if it is missing, what is lost.
    pub what: String,
    /// One line: a command, or what to change.
    pub fix: Option<String>,
}

impl Finding {
    /// Something that is as it should be.
    pub fn ok(id: &'static str, what: impl Into<String>) -> Finding {
        Finding::new(id, Level::Ok, what)
    }

    /// Something that is missing, and that sampling can do without.
    pub fn warn(id: &'static str, what: impl Into<String>) -> Finding {
        Finding::new(id, Level::Warn, what)
    }

    /// Something without which there are no samples.
    pub fn fail(id: &'static str, what: impl Into<String>) -> Finding {
        Finding::new(id, Level::Fail, what)
    }

    /// Adds how to fix it.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Finding {
        self.fix = Some(fix.into());
        self
    }

    fn new(id: &'static str, level: Level, what: impl Into<String>) -> Finding {
        Finding {
            id,
            level,
            what: what.into(),
            fix: None,
        }
    }
}

/// Checks the kernel, our rights and our surroundings. Takes some milliseconds, loads no program of
/// ours and leaves nothing open.
pub fn survey(rights: &Rights) -> Vec<Finding> {
    let mut findings = vec![kernel::version()];
    findings.extend(judge_rights(rights));
    findings.push(confinement::of_readers());
    // Without rights every check would fail for that one reason, which is reported above.
    let may_try = rights.can_sample().is_ok();
    findings.push(bpf::type_information());
    findings.extend(bpf::programs(may_try));
    findings.extend(event::clocks(may_try));
    findings.extend(kernel::settings(rights));
    findings.extend(place::surroundings());
    findings
}

fn judge_rights(rights: &Rights) -> Vec<Finding> {
    if let Err(missing) = rights.can_sample() {
        let fix = if missing.in_user_namespace {
            "run proftop on the host, as root"
        } else if missing.euid == 0 {
            "give the container more: --pid=host --cap-add=BPF --cap-add=PERFMON --cap-add=SYS_PTRACE"
        } else {
            "sudo proftop"
        };
        let what = format!(
            "rights: {missing}: cannot sample the machine, only your own programs \
             (proftop -- COMMAND, or -p PID)"
        );
        return vec![Finding::fail("rights", what).fix(fix)];
    }
    let held = rights.effective.names();
    let mut findings = vec![Finding::ok(
        "rights",
        format!("rights: uid {}, {}", rights.euid, held.join(" ")),
    )];
    for (capability, id, loss) in USEFUL {
        if !rights.allow(capability) {
            let lower = capability.name().to_lowercase();
            let what = format!("rights: no {}: {loss}", capability.name());
            findings.push(Finding::warn(id, what).fix(format!(
                "run as root, or add {lower} to the file's capabilities"
            )));
        }
    }
    findings
}

/// Capabilities that sampling can do without, with what is lost.
const USEFUL: [(Capability, &str, &str); 4] = [
    (
        Capability::SysPtrace,
        "rights-ptrace",
        "other users' processes have no file names, so no function names",
    ),
    (
        Capability::DacReadSearch,
        "rights-files",
        "binaries that only their owner may read have no function names",
    ),
    (
        Capability::CheckpointRestore,
        "rights-mapped",
        "libraries that were replaced or deleted while programs have them mapped have no function names",
    ),
    (
        Capability::Syslog,
        "rights-syslog",
        "kernel functions may have no names",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privilege::Capabilities;

    fn rights(euid: u32, mask: u64) -> Rights {
        Rights {
            euid,
            effective: Capabilities(mask),
            in_user_namespace: false,
        }
    }

    #[test]
    fn an_ordinary_user_gets_one_failure_and_a_fix() {
        let findings = judge_rights(&rights(1000, 0));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].level, Level::Fail);
        assert!(
            findings[0]
                .what
                .contains("uid 1000 without CAP_BPF+CAP_PERFMON")
        );
        assert_eq!(findings[0].fix.as_deref(), Some("sudo proftop"));
    }

    #[test]
    fn the_two_capabilities_alone_warn_about_the_rest() {
        let findings = judge_rights(&rights(1000, 1 << 38 | 1 << 39));
        let ids: Vec<_> = findings.iter().map(|f| (f.id, f.level)).collect();
        assert_eq!(
            ids,
            [
                ("rights", Level::Ok),
                ("rights-ptrace", Level::Warn),
                ("rights-files", Level::Warn),
                ("rights-mapped", Level::Warn),
                ("rights-syslog", Level::Warn)
            ]
        );
    }

    #[test]
    fn root_of_a_container_is_told_what_to_add() {
        let findings = judge_rights(&rights(0, 1 << 19));
        assert!(
            findings[0]
                .fix
                .as_ref()
                .unwrap()
                .contains("--cap-add=PERFMON")
        );
    }

    #[test]
    fn every_finding_is_one_line_with_an_id_of_its_own() {
        let findings = survey(&Rights::current().unwrap());
        let mut ids: Vec<_> = findings.iter().map(|f| f.id).collect();
        ids.sort_unstable();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count, "{ids:?}");
        for finding in &findings {
            assert!(!finding.what.contains('\n'), "{finding:?}");
            assert!(
                finding.level != Level::Fail || finding.fix.is_some(),
                "{finding:?}"
            );
        }
    }
}
