//! Who owns a process, and how it was started.

use profile::ProcessRow;

/// Letters of a container's number that tell it from others, as container tools show it.
const CONTAINER_LETTERS: usize = 12;

/// The command line, or the name where that is not known. The kernel's own threads have
/// none: their names stand in brackets, as in other tools.
pub fn command(row: &ProcessRow) -> &str {
    row.details.command_line.as_deref().unwrap_or(&row.comm)
}

/// The command line without the folder of the program: `postgres -D /srv/pg`. Where a
/// column ends soon, the arguments say more than the folder.
pub fn short_command(row: &ProcessRow) -> &str {
    let whole = command(row);
    let end = whole.find(' ').unwrap_or(whole.len());
    let (program, _) = whole.split_at(end);
    match program.starts_with('/') {
        true => &whole[program.rfind('/').map_or(0, |slash| slash + 1)..],
        false => whole,
    }
}

/// The unit of systemd or the container that a control group is of: `pg.service`,
/// `docker 0123456789ab`.
pub fn group(path: &str) -> Option<String> {
    let parts = || path.rsplit('/').filter(|part| !part.is_empty());
    if let Some((runtime, number)) = parts().find_map(container) {
        let short: String = number.chars().take(CONTAINER_LETTERS).collect();
        return Some(match runtime {
            "" => short,
            runtime => format!("{runtime} {short}"),
        });
    }
    let is_unit = |part: &&str| part.ends_with(".service") || part.ends_with(".scope");
    parts().find(is_unit).or(parts().next()).map(str::to_owned)
}

/// `docker-<64 digits>.scope`, `cri-containerd-…`, or the digits alone.
fn container(part: &str) -> Option<(&str, &str)> {
    let part = part.strip_suffix(".scope").unwrap_or(part);
    let (runtime, number) = part.rsplit_once('-').unwrap_or(("", part));
    let is_number = number.len() == 64 && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then_some((runtime, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_containers_by_their_names() {
        let number = "0123456789abcdef".repeat(4);
        let of = |path: &str| group(path);
        assert_eq!(
            of("/system.slice/pg.service").as_deref(),
            Some("pg.service")
        );
        assert_eq!(
            of("/user.slice/user-0.slice/user@0.service/app.slice").as_deref(),
            Some("user@0.service")
        );
        assert_eq!(of("/init.scope").as_deref(), Some("init.scope"));
        assert_eq!(of("/").as_deref(), None);
        let docker = of(&format!("/system.slice/docker-{number}.scope"));
        assert_eq!(docker.as_deref(), Some("docker 0123456789ab"));
        assert_eq!(
            of(&format!("/docker/{number}")).as_deref(),
            Some("0123456789ab")
        );
    }
}
