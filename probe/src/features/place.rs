//! Where proftop runs: namespaces, containers, mounted file systems.

use super::Finding;
use crate::cgroup::Hierarchy;
use std::fs;
use std::path::Path;

/// Inode numbers of the initial pid and cgroup namespaces: `PROC_PID_INIT_INO` and
/// `PROC_CGROUP_INIT_INO` in `include/linux/proc_ns.h`.
const HOST_PID_NAMESPACE: u64 = 4_026_531_836;
const HOST_CGROUP_NAMESPACE: u64 = 4_026_531_835;

/// Whether this is the host's pid namespace: BPF uses the host's pids, which differ from those in
/// our `/proc` otherwise.
pub fn in_host_pid_namespace() -> bool {
    namespace_id("pid").is_none_or(|id| id == HOST_PID_NAMESPACE)
}

/// Whether this is the host's cgroup namespace: the depth of a cgroup is counted from the host's
/// root.
pub fn in_host_cgroup_namespace() -> bool {
    namespace_id("cgroup").is_none_or(|id| id == HOST_CGROUP_NAMESPACE)
}

/// Checks for containers, namespaces and virtual machines.
pub fn surroundings() -> Vec<Finding> {
    let container = find_container(|path| Path::new(path).exists(), environment_of_init());
    vec![
        judge_pid_namespace(in_host_pid_namespace()),
        judge_container(container),
        judge_cgroups(
            Hierarchy::mounted().ok().as_ref(),
            in_host_cgroup_namespace(),
        ),
        judge_tracefs(&fs::read_to_string("/proc/self/mounts").unwrap_or_default()),
    ]
}

fn judge_pid_namespace(host: bool) -> Finding {
    if host {
        return Finding::ok("pid-namespace", "pid namespace: the host's");
    }
    Finding::fail(
        "pid-namespace",
        "pid namespace: a container's: pids differ from those the kernel reports",
    )
    .fix("start the container with --pid=host")
}

fn judge_container(container: Option<String>) -> Finding {
    match container {
        None => Finding::ok("container", "container: no sign of one"),
        Some(name) => Finding::ok("container", format!("container: {name}")),
    }
}

fn judge_cgroups(hierarchy: Option<&Hierarchy>, host_namespace: bool) -> Finding {
    let Some(hierarchy) = hierarchy else {
        return Finding::warn(
            "cgroup2",
            "cgroup2: not mounted: -g has nothing to choose from",
        )
        .fix("sudo mount -t cgroup2 none /sys/fs/cgroup/unified");
    };
    let root = hierarchy.root().display();
    if host_namespace {
        return Finding::ok("cgroup2", format!("cgroup2: mounted at {root}"));
    }
    Finding::warn(
        "cgroup2",
        format!("cgroup2: {root} shows only this container's groups to -g"),
    )
    .fix("start the container with --cgroupns=host")
}

/// Nothing needs tracefs today; tracepoints by name would.
fn judge_tracefs(mounts: &str) -> Finding {
    let point = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (point, kind) = (fields.nth(1)?, fields.next()?);
        (kind == "tracefs").then_some(point)
    });
    match point {
        Some(point) => Finding::ok("tracefs", format!("tracefs: mounted at {point}")),
        None => Finding::ok("tracefs", "tracefs: not mounted; not needed"),
    }
}

/// Looks for the marks that container managers leave.
fn find_container(exists: impl Fn(&str) -> bool, init_environment: Vec<u8>) -> Option<String> {
    if exists("/.dockerenv") {
        return Some("docker (/.dockerenv)".into());
    }
    if exists("/run/.containerenv") {
        return Some("podman (/run/.containerenv)".into());
    }
    if exists("/var/run/secrets/kubernetes.io") {
        return Some("kubernetes (/var/run/secrets/kubernetes.io)".into());
    }
    let name = init_environment
        .split(|&b| b == 0)
        .find_map(|entry| entry.strip_prefix(b"container="))?;
    let name: String = String::from_utf8_lossy(name).escape_default().to_string();
    Some(format!("{name} (environment of pid 1)"))
}

fn namespace_id(kind: &str) -> Option<u64> {
    let link = fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    parse_namespace(link.to_str()?)
}

/// Parses a link such as `pid:[4026531836]`.
fn parse_namespace(link: &str) -> Option<u64> {
    let (_, rest) = link.split_once(":[")?;
    rest.strip_suffix(']')?.parse().ok()
}

/// Reads the environment of process 1. In a container that process may belong to any user.
fn environment_of_init() -> Vec<u8> {
    crate::files::of_targets()
        .environment(1)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn knows_the_marks_of_containers() {
        let none = |_: &str| false;
        assert_eq!(find_container(none, b"PATH=/bin\0HOME=/\0".to_vec()), None);
        let lxc = find_container(none, b"PATH=/bin\0container=lxc\0".to_vec());
        assert_eq!(lxc.unwrap(), "lxc (environment of pid 1)");
        let docker = find_container(|path| path == "/.dockerenv", Vec::new());
        assert!(docker.unwrap().starts_with("docker"));
    }

    #[test]
    fn a_strange_name_cannot_write_to_the_terminal() {
        let hostile = find_container(|_| false, b"container=\x1b[2J\0".to_vec());
        assert!(!hostile.unwrap().contains('\x1b'));
    }

    #[test]
    fn reads_namespace_links() {
        assert_eq!(
            parse_namespace("pid:[4026531836]"),
            Some(HOST_PID_NAMESPACE)
        );
        assert_eq!(parse_namespace("pid"), None);
        assert!(namespace_id("pid").is_some());
    }

    #[test]
    fn finds_tracefs_in_the_mount_table() {
        let mounts = "proc /proc proc rw 0 0\ntracefs /sys/kernel/tracing tracefs rw 0 0\n";
        assert!(judge_tracefs(mounts).what.ends_with("/sys/kernel/tracing"));
        assert_eq!(judge_tracefs("").level, Level::Ok);
    }

    #[test]
    fn a_missing_hierarchy_is_only_a_warning() {
        assert_eq!(judge_cgroups(None, true).level, Level::Warn);
    }

    #[test]
    fn foreign_pids_make_sampling_impossible() {
        assert_eq!(judge_pid_namespace(false).level, Level::Fail);
    }
}
