//! The words for CPUs.

use profile::Host;

/// Returns the CPUs that are sampled: `2 CPUs`, `CPU 1 of 2`, `CPUs 0-3,7 of 16`.
pub fn sampled(host: &Host) -> String {
    let list = probe::cpus::list(host.sampled_cpus.iter().map(|cpu| u32::from(*cpu)));
    match host.sampled_cpus.len() {
        0 if host.cpus == 1 => "1 CPU".into(),
        0 => format!("{} CPUs", host.cpus),
        1 => format!("CPU {list} of {}", host.cpus),
        _ => format!("CPUs {list} of {}", host.cpus),
    }
}
