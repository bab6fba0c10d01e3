//! The words for the command line of a process, and its unit or container.

use crate::words::{text, units};
use profile::ProcessRow;

/// Number of digits of a container's id that are shown, as in container tools.
const CONTAINER_LETTERS: usize = 12;

/// Returns the command line, or the name if the command line is not known. Threads of the kernel
/// have no command line: their names are in brackets, as in other tools.
pub fn command(row: &ProcessRow) -> &str {
    row.details.command_line.as_deref().unwrap_or(&row.comm)
}

/// Returns the command line without the folder of the program: `postgres -D /srv/pg`. In a narrow
/// column the arguments say more than the folder.
pub fn short_command(row: &ProcessRow) -> &str {
    let whole = command(row);
    let end = whole.find(' ').unwrap_or(whole.len());
    let (program, _) = whole.split_at(end);
    if program.starts_with('/') {
        &whole[program.rfind('/').map_or(0, |slash| slash + 1)..]
    } else {
        whole
    }
}

/// Returns the mark before the command of a process that is proftop itself or has ended. Empty for
/// all others.
pub fn mark(row: &ProcessRow, own_pid: Option<u32>) -> &'static str {
    match row {
        // proftop is in the table of processes, because it uses CPU time as well.
        row if own_pid == Some(row.pid) => "(us) ",
        row if row.exited => "(ended) ",
        _ => "",
    }
}

/// Returns a name with the number of rows that have it, in `room` cells: `worker ×300`. The name is
/// cut if necessary, never the number. For one row, it is the name alone.
pub fn counted(name: &str, count: usize, room: usize) -> String {
    if count < 2 {
        return name.to_owned();
    }
    let times = format!(" ×{}", units::count(count as u64));
    let left = room.saturating_sub(text::width(&times));
    format!("{}{times}", text::cut_middle(name, left))
}

/// Returns the systemd unit or the container of a control group: `pg.service`, `docker
/// 0123456789ab`.
pub fn group(path: &str) -> Option<String> {
    unit(path).map(|(_, name)| name)
}

/// Returns the path of a control group up to the unit or container that [`group`] returns. Two
/// units may have the same name, for example in two containers.
pub fn group_path(path: &str) -> &str {
    unit(path).map_or("/", |(path, _)| path)
}

/// Returns the unit or container of a control group: its path and its name. None if the group has
/// neither, as the root.
fn unit(path: &str) -> Option<(&str, String)> {
    let paths = || {
        let slashes = path.match_indices('/').rev();
        let above = slashes.map(|(slash, _)| &path[..slash]);
        let all = std::iter::once(path).chain(above);
        all.filter(|path| !last(path).is_empty())
    };
    if let Some((path, (runtime, number))) = paths().find_map(|path| {
        let container = container(last(path))?;
        Some((path, container))
    }) {
        let short: String = number.chars().take(CONTAINER_LETTERS).collect();
        let name = match runtime {
            "" => short,
            runtime => format!("{runtime} {short}"),
        };
        return Some((path, name));
    }
    let is_unit = |path: &&str| last(path).ends_with(".service") || last(path).ends_with(".scope");
    let path = paths().find(is_unit).or(paths().next())?;
    Some((path, last(path).to_owned()))
}

/// Returns the last part of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the runtime and the id in `docker-<64 digits>.scope`, `cri-containerd-…`, or in the
/// digits alone, whose runtime is empty.
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
    fn the_number_of_those_with_a_name_is_never_cut() {
        assert_eq!(counted("worker", 1, 4), "worker");
        assert_eq!(counted("worker", 300, 16), "worker ×300");
        assert_eq!(counted("tokio-runtime-w", 1_300, 16), "tokio…e-w ×1,300");
        assert_eq!(counted("worker", 300, 8), "w…r ×300");
        assert_eq!(counted("worker", 300, 5), " ×300");
    }

    #[test]
    fn units_of_one_name_are_told_apart_by_their_paths() {
        let number = "0123456789abcdef".repeat(4);
        assert_eq!(
            group_path("/system.slice/pg.service/worker"),
            "/system.slice/pg.service"
        );
        let container = format!("/system.slice/docker-{number}.scope");
        assert_eq!(
            group_path(&format!("{container}/system.slice/pg.service")),
            container
        );
        assert_eq!(group_path("/user.slice"), "/user.slice");
        assert_eq!(
            (group_path("/"), group_path(""), group_path("//")),
            ("/", "/", "/")
        );
        for path in ["/a.slice/b.service/c//", &container, "x.scope", "/"] {
            let whole = group_path(path);
            assert_eq!(
                (group_path(whole), group(whole)),
                (whole, group(path)),
                "{path}"
            );
        }
    }

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
