//! The kernel, and its settings that affect sampling.

use super::{Finding, RATE_DEFAULT};
use crate::privilege::{Capability, Rights};
use std::fs;

/// The kernel's release, as `uname -r` prints it.
pub fn kernel_release() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}

/// Whether the kernel has this version or a newer one; false if its version has an unknown format.
pub fn kernel_is_at_least(wanted: (u32, u32)) -> bool {
    is_at_least(&kernel_release(), wanted)
}

fn is_at_least(release: &str, wanted: (u32, u32)) -> bool {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    match (number(), number()) {
        (Some(major), Some(minor)) => (major, minor) >= wanted,
        _ => false,
    }
}

/// `kernel.perf_event_max_sample_rate`: the kernel refuses faster clocks, and lowers it
/// automatically when sampling takes too long.
pub fn max_sample_rate() -> Option<u32> {
    read_number("kernel/perf_event_max_sample_rate").and_then(|rate| u32::try_from(rate).ok())
}

/// `kernel.perf_event_paranoid`, -1 to 2, or 4 on some distributions.
pub fn perf_event_paranoid() -> Option<i32> {
    read_number("kernel/perf_event_paranoid").and_then(|level| i32::try_from(level).ok())
}

/// Describes the kernel and the machine.
pub fn version() -> Finding {
    let machine = rustix::system::uname()
        .machine()
        .to_string_lossy()
        .into_owned();
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = match count_list(&online) {
        Some(1) => "1 CPU online".to_owned(),
        Some(count) => format!("{count} CPUs online"),
        None => "CPUs unknown".to_owned(),
    };
    Finding::ok(
        "kernel",
        format!("kernel {}, {machine}, {cpus}", kernel_release()),
    )
}

/// Checks all relevant settings of the kernel.
pub fn settings(rights: &Rights) -> Vec<Finding> {
    let kallsyms = fs::File::open("/proc/kallsyms")
        .map(read_start)
        .unwrap_or_default();
    let lockdown = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    vec![
        judge_paranoid(perf_event_paranoid(), rights),
        judge_unprivileged_bpf(read_number("kernel/unprivileged_bpf_disabled")),
        judge_rate(max_sample_rate()),
        judge_kernel_names(
            has_addresses(&kallsyms),
            read_number("kernel/kptr_restrict"),
            rights,
        ),
        judge_lockdown(&lockdown),
        judge_memlock(rights),
    ]
}

/// Whether a level of `kernel.perf_event_paranoid` is one that Debian or Ubuntu has added: those of
/// the kernel itself end at 2.
pub fn is_of_a_distribution(level: i32) -> bool {
    level > 2
}

fn judge_paranoid(level: Option<i32>, rights: &Rights) -> Finding {
    let text = match level {
        Some(level) => format!("kernel.perf_event_paranoid = {level}"),
        None => return Finding::warn("paranoid", "kernel.perf_event_paranoid: cannot be read"),
    };
    let ignores_perfmon = level.is_some_and(is_of_a_distribution);
    if rights.allow(Capability::SysAdmin) || rights.allow(Capability::Perfmon) && !ignores_perfmon {
        Finding::ok("paranoid", format!("{text}; CAP_PERFMON is above it"))
    } else if rights.allow(Capability::Perfmon) {
        Finding::warn(
            "paranoid",
            format!("{text}; above 2, CAP_PERFMON may not be enough"),
        )
        .fix("sudo sysctl kernel.perf_event_paranoid=2")
    } else {
        Finding::ok(
            "paranoid",
            format!("{text}; BPF needs CAP_PERFMON at any level"),
        )
    }
}

fn judge_unprivileged_bpf(value: Option<i64>) -> Finding {
    Finding::ok(
        "unprivileged-bpf",
        match value {
            Some(0) => {
                "kernel.unprivileged_bpf_disabled = 0; CPU clocks need CAP_BPF all the same".into()
            }
            Some(value) => format!("kernel.unprivileged_bpf_disabled = {value}; CAP_BPF is needed"),
            None => "kernel.unprivileged_bpf_disabled: not in this kernel".into(),
        },
    )
}

fn judge_rate(max: Option<u32>) -> Finding {
    match max {
        Some(max) if max < RATE_DEFAULT => Finding::fail(
            "sample-rate",
            format!(
                "kernel.perf_event_max_sample_rate = {max}: below the default of {RATE_DEFAULT}"
            ),
        )
        .fix(format!(
            "sudo sysctl kernel.perf_event_max_sample_rate=10000, or proftop -F {max}"
        )),
        Some(max) => Finding::ok(
            "sample-rate",
            format!("sampling up to {max} Hz (kernel.perf_event_max_sample_rate)"),
        ),
        None => Finding::warn(
            "sample-rate",
            "kernel.perf_event_max_sample_rate: cannot be read",
        ),
    }
}

/// Judges what is really readable, because `kptr_restrict` alone does not decide it.
fn judge_kernel_names(shown: bool, restrict: Option<i64>, rights: &Rights) -> Finding {
    if shown {
        return Finding::ok(
            "kernel-names",
            "kernel functions have names (/proc/kallsyms)",
        );
    }
    let finding = |why| {
        Finding::warn(
            "kernel-names",
            format!("kernel functions have no names: {why}"),
        )
    };
    match restrict {
        Some(2) => finding("kernel.kptr_restrict = 2 hides them from everybody")
            .fix("sudo sysctl kernel.kptr_restrict=1"),
        _ if !rights.allow(Capability::Syslog) => {
            finding("/proc/kallsyms shows them only with CAP_SYSLOG").fix("sudo proftop")
        }
        _ => finding("/proc/kallsyms shows no addresses"),
    }
}

/// Judges the mode in brackets: `none [integrity] confidentiality`.
fn judge_lockdown(modes: &str) -> Finding {
    let mode = modes
        .split_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    match mode {
        None => Finding::ok("lockdown", "lockdown: not in this kernel, or not shown"),
        Some("confidentiality") => Finding::warn(
            "lockdown",
            "lockdown: confidentiality: the kernel may refuse BPF a look at its memory",
        )
        .fix("boot with lockdown=integrity"),
        Some(mode) => Finding::ok("lockdown", format!("lockdown: {mode}")),
    }
}

/// Kernels before 5.11 count maps against this limit; newer ones against the memory control group.
/// A privileged process may raise it.
fn judge_memlock(rights: &Rights) -> Finding {
    let old = parse_release(&kernel_release()).is_some_and(|release| release < (5, 11));
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    match limit {
        None => Finding::ok("memlock", "locked memory: no limit"),
        Some(bytes) if !old => Finding::ok(
            "memlock",
            format!(
                "locked memory: limit of {} KiB, which BPF does not fall under",
                bytes / 1024
            ),
        ),
        Some(_) if rights.allow(Capability::SysResource) => {
            Finding::ok("memlock", "locked memory: a limit that we may lift")
        }
        Some(bytes) => Finding::warn(
            "memlock",
            format!(
                "locked memory: limit of {} KiB: maps may not fit",
                bytes / 1024
            ),
        )
        .fix("ulimit -l unlimited"),
    }
}

fn read_number(name: &str) -> Option<i64> {
    let text = fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
    text.trim().parse().ok()
}

fn read_start(mut file: fs::File) -> String {
    use std::io::Read;
    // Some thousand lines: enough to get past the per-CPU symbols, which are at low addresses even
    // when shown.
    let mut bytes = vec![0; 256 * 1024];
    let mut len = 0;
    while let Ok(read) = file.read(&mut bytes[len..]) {
        len += read;
        if read == 0 || len == bytes.len() {
            break;
        }
    }
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}

/// Whether any address is not zero, as hidden ones are.
fn has_addresses(kallsyms: &str) -> bool {
    kallsyms.lines().any(|line| {
        let mut fields = line.split(' ');
        let shown = fields
            .next()
            .is_some_and(|address| address.bytes().any(|b| b != b'0'));
        shown && matches!(fields.next(), Some("t" | "T"))
    })
}

/// Counts the numbers of a list: `0-3,8` gives five.
fn count_list(list: &str) -> Option<u32> {
    list.trim()
        .split(',')
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
            last.checked_sub(first)?.checked_add(1)
        })
        .sum()
}

fn parse_release(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;
    use crate::privilege::Capabilities;

    #[test]
    fn versions_are_compared_as_numbers() {
        for release in ["6.12.0", "6.12-rc1", "6.100", "10.1.2-generic"] {
            assert!(is_at_least(release, (6, 12)), "{release}");
        }
        for release in ["6.9.3", "5.15.0-91-generic", "", "vendor", "6"] {
            assert!(!is_at_least(release, (6, 12)), "{release}");
        }
    }

    #[test]
    fn levels_of_distributions_are_above_a_capability() {
        let with = |capability: Capability| Rights {
            euid: 1000,
            effective: Capabilities(1 << capability as u8),
            in_user_namespace: false,
        };
        let level = |level, capability| judge_paranoid(Some(level), &with(capability)).level;
        assert_eq!(level(2, Capability::Perfmon), Level::Ok);
        assert_eq!(level(3, Capability::Perfmon), Level::Warn);
        assert_eq!(level(4, Capability::SysAdmin), Level::Ok);
        let finding = judge_paranoid(Some(3), &with(Capability::Perfmon));
        assert!(finding.fix.is_some_and(|fix| fix.contains("sysctl")));
    }

    #[test]
    fn counts_cpu_lists() {
        assert_eq!(count_list("0-3,8\n"), Some(5));
        assert_eq!(count_list("0\n"), Some(1));
        assert_eq!(count_list(""), None);
        assert_eq!(count_list("3-1"), None);
    }

    #[test]
    fn reads_releases() {
        assert_eq!(parse_release("6.18.44-fc-v595"), Some((6, 18)));
        assert_eq!(parse_release("4.18.0-553.el8"), Some((4, 18)));
        assert_eq!(parse_release("weird"), None);
    }

    #[test]
    fn hidden_kernel_addresses_are_zeros() {
        assert!(has_addresses(
            "0000000000000000 A fixed\nffffffff81000000 T _stext\n"
        ));
        assert!(!has_addresses(
            "0000000000000000 A fixed\n0000000000000000 T _stext\n"
        ));
        assert!(!has_addresses("0000000000010000 A percpu\n"));
    }

    #[test]
    fn hidden_names_are_blamed_on_what_hides_them() {
        let mut rights = Rights {
            euid: 1000,
            effective: Default::default(),
            in_user_namespace: false,
        };
        let user = judge_kernel_names(false, Some(0), &rights);
        assert_eq!(user.level, Level::Warn);
        assert!(user.what.contains("CAP_SYSLOG"));
        rights.effective.0 = 1 << Capability::Syslog as u8;
        let root = judge_kernel_names(false, Some(2), &rights);
        assert!(root.fix.unwrap().contains("kptr_restrict=1"));
        assert_eq!(judge_kernel_names(true, Some(2), &rights).level, Level::Ok);
    }

    #[test]
    fn only_confidentiality_is_worth_a_warning() {
        assert_eq!(
            judge_lockdown("none [integrity] confidentiality\n").level,
            Level::Ok
        );
        assert_eq!(
            judge_lockdown("none integrity [confidentiality]\n").level,
            Level::Warn
        );
        assert_eq!(judge_lockdown("").level, Level::Ok);
    }

    #[test]
    fn a_rate_below_the_default_is_a_failure_with_a_command() {
        let low = judge_rate(Some(50));
        assert_eq!(low.level, Level::Fail);
        assert!(low.fix.unwrap().contains("proftop -F 50"));
        assert_eq!(judge_rate(Some(100_000)).level, Level::Ok);
    }

    #[test]
    fn this_kernel_has_a_version_and_settings() {
        assert!(version().what.starts_with("kernel "));
        assert!(perf_event_paranoid().is_some());
        assert!(max_sample_rate().is_some());
    }
}
