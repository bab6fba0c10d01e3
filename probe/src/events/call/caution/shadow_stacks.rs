//! *Shadow stacks* (CET): a second stack of return addresses, which only calls, returns and the
//! kernel can write to. A `ret` to an address that differs from the one there kills the process.
//!
//! A process uses them if its program requested them at its start. It is unknown in advance which
//! process will hit a breakpoint, so one such process on this machine is enough to be careful.

use std::fs;

/// Maximum number of processes that are checked.
const PROCESSES_MAX: usize = 10_000;

/// Whether any process of this machine uses them.
pub fn are_used() -> bool {
    can_be_used() && {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.take(PROCESSES_MAX).any(|pid| {
            // If it cannot be read, the process has ended.
            let status = fs::read_to_string(format!("/proc/{pid}/status"));
            status.is_ok_and(|status| has_shadow_stack(&status))
        }) || is_asked_for()
    }
}

/// Whether the CPU has them, and the kernel lets programs use them.
fn can_be_used() -> bool {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut flags = cpus.lines().filter(|line| line.starts_with("flags"));
    flags.any(|line| {
        line.split_ascii_whitespace()
            .any(|flag| flag == "user_shstk")
    })
}

/// Whether a command that we start may use them: a variable for its C library requests it.
fn is_asked_for() -> bool {
    let tunables = std::env::var_os("GLIBC_TUNABLES").unwrap_or_default();
    tunables.to_string_lossy().contains("x86_shstk")
}

/// Whether a process uses them, according to its `/proc/PID/status`.
fn has_shadow_stack(status: &str) -> bool {
    let mut lines = status.lines();
    let features = lines.find_map(|line| line.strip_prefix("x86_Thread_features:"));
    features.is_some_and(|features| features.split_ascii_whitespace().any(|it| it == "shstk"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_says_whether_it_has_one() {
        let with = "Name:\tcat\nx86_Thread_features:\tshstk wrss \nx86_Thread_features_locked:\t\n";
        assert!(has_shadow_stack(with));
        // The process can no longer get a shadow stack.
        let locked = "Name:\tcat\nx86_Thread_features:\t\nx86_Thread_features_locked:\tshstk \n";
        assert!(!has_shadow_stack(locked));
        // Before Linux 6.6, and a program with such a name.
        assert!(!has_shadow_stack(
            "Name:\tx86_Thread_features: shstk\nSeccomp:\t0\n"
        ));
        assert!(!has_shadow_stack(""));
    }
}
