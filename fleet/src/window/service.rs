//! Finds the service of a process. A .pft has the name and the control group of each process, and
//! only those are used: first the unit of systemd, then the name of the process.

/// Number of characters of a container's id, as shown by tools.
const CONTAINER_DIGITS: usize = 12;

/// Length of a container's id in the name of a control group.
const ID_DIGITS: usize = 64;

/// The service and container of a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Belonging {
    pub service: String,
    /// Empty if it runs in no container.
    pub container: String,
}

/// Finds the service and container of a process.
pub fn belonging(comm: &str, cgroup: Option<&str>) -> Belonging {
    let parts = cgroup.unwrap_or_default().split('/');
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    let container = parts.iter().rev().find_map(|part| container(part));
    // The unit that runs the containers of a machine is not the service in one of them, and the
    // unit of a session is not a service.
    let is_session = parts.first().is_some_and(|part| *part == "user.slice");
    let unit = parts
        .iter()
        .rev()
        .find_map(|part| part.strip_suffix(".service"))
        .filter(|_| container.is_none() && !is_session);
    let service = match unit {
        Some(unit) => unit.to_string(),
        None => name(comm),
    };
    Belonging {
        service,
        container: container.unwrap_or_default().to_string(),
    }
}

/// Returns the id of a container in a part of a control group's path: alone, or as in
/// `docker-ID.scope`.
fn container(part: &str) -> Option<&str> {
    let part = part.strip_suffix(".scope").unwrap_or(part);
    let id = part.rsplit(['-', ':']).next()?;
    let is_hex = |it: u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
    (id.len() == ID_DIGITS && id.bytes().all(is_hex)).then(|| &id[..CONTAINER_DIGITS])
}

/// Returns the name of a service from that of a process. Threads of the kernel have a name for each
/// CPU and each kind of work: the text from the first `/` or `:` on is left out.
fn name(comm: &str) -> String {
    let short = comm.split(['/', ':']).next().unwrap_or_default();
    match short {
        "" if comm.is_empty() => "unknown".into(),
        "" => comm.into(),
        short => short.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_a_unit_or_a_name() {
        let id = "0123456789abcdef".repeat(4);
        for (comm, cgroup, service, container) in [
            ("nginx", "/system.slice/nginx.service", "nginx", ""),
            (
                "postgres",
                "/system.slice/system-postgresql.slice/postgresql@15-main.service",
                "postgresql@15-main",
                "",
            ),
            (
                "bash",
                "/user.slice/user-0.slice/user@0.service/app.slice/x.scope",
                "bash",
                "",
            ),
            (
                "redis-server",
                &format!("/system.slice/docker-{id}.scope"),
                "redis-server",
                "0123456789ab",
            ),
            (
                "redis-server",
                &format!("/docker/{id}"),
                "redis-server",
                "0123456789ab",
            ),
            (
                "api",
                &format!("/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
                "api",
                "0123456789ab",
            ),
            (
                "api",
                &format!("/system.slice/containerd.service/kubepods:cri-containerd:{id}"),
                "api",
                "0123456789ab",
            ),
            ("kworker/3:1-events", "/", "kworker", ""),
            ("", "", "unknown", ""),
            ("/sbin", "", "/sbin", ""),
        ] {
            let found = belonging(comm, Some(cgroup));
            assert_eq!(
                (&*found.service, &*found.container),
                (service, container),
                "{cgroup}"
            );
        }
        assert_eq!(belonging("cat", None).service, "cat");
    }
}
