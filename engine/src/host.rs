//! Describes the machine that we run on, as the header shows it.

use profile::Host;

/// Reads the machine's name, kernel and architecture. `sampled` are the sampled CPUs; empty if all
/// are.
pub fn read(sampled: &[u32]) -> Host {
    let system = rustix::system::uname();
    let text = |field: &std::ffi::CStr| symbolize::sanitize(field.to_bytes()).into_owned();
    let release = text(system.release());
    Host {
        name: text(system.nodename()),
        // `6.18.44-fc-v595`: the suffix is of no use at a glance.
        kernel: release.split('-').next().unwrap_or(&release).to_string(),
        arch: text(system.machine()).replace('_', "-"),
        cpus: cpus(),
        sampled_cpus: sampled
            .iter()
            .filter_map(|cpu| (*cpu).try_into().ok())
            .collect(),
    }
}

/// Number of CPUs of the machine; if that is unknown, of those that this process may run on.
fn cpus() -> u32 {
    match probe::cpus::online() {
        Ok(online) => online.len() as u32,
        Err(_) => std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_machine_has_a_kernel_and_cpus() {
        let host = super::read(&[]);
        assert!(
            host.kernel
                .starts_with(|first: char| first.is_ascii_digit())
        );
        assert!(host.cpus > 0);
    }
}
