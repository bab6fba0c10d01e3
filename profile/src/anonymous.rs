//! A view *without the names of people and machines*, so that a recording can be given away: it
//! shows which code ran, but not on whose machine or for which user.
//!
//! Commands, users, control groups, machines and directories are replaced by numbers. Each distinct
//! name gets its own number, so that everything grouped by it adds up as before. The machine's
//! name, the scope and the notes are removed. Code is kept: names of functions and files, process
//! numbers, build-ids.

use crate::{Host, Info, ProcessDetails, View};
use std::collections::HashMap;
use std::sync::Arc;

/// Directories that exist on every machine: a path below one of them reveals nothing about this
/// machine.
const COMMON: [&str; 14] = [
    "/bin/",
    "/sbin/",
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/usr/bin/",
    "/usr/sbin/",
    "/usr/lib/",
    "/usr/lib32/",
    "/usr/lib64/",
    "/usr/libexec/",
    "/usr/include/",
    "/usr/src/debug/",
    "/rustc/",
];

impl View {
    /// Returns a view with the same samples in which the names of people and machines are replaced
    /// by numbers.
    pub fn anonymous(&self) -> View {
        let tables = &*self.tables;
        let mut commands = Aliases::new("command-");
        let mut users = Aliases::new("user-");
        let mut cgroups = Aliases::new("/group-");
        let mut hosts = Aliases::new("host-");
        let mut directories = Aliases::new("/dir-");
        let processes = tables.processes.renamed(
            |comm| commands.of(comm),
            |details| ProcessDetails {
                host: details.host.as_ref().map(|name| hosts.of(name)),
                cgroup: details.cgroup.as_ref().map(|path| cgroups.of(path)),
                user: details.user.as_ref().map(|name| users.of(name)),
                ..ProcessDetails::default()
            },
        );
        let modules = tables.modules.moved(|path| directories.of_path(path));
        let sources = tables.sources.moved(|path| directories.of_path(path));
        let probes = Arc::new(tables.probes.anonymous(|comm| commands.of(comm)));
        let states = Arc::new(tables.states.renamed(|comm| commands.of(comm)));
        View {
            tables: Arc::new(crate::tables::Tables {
                probes,
                states,
                sources,
                modules,
                processes,
                info: Arc::new(anonymous(&tables.info)),
                ..tables.clone()
            }),
        }
    }
}

/// Returns the description of the recording without the machine's name, the scope and the notes.
fn anonymous(info: &Info) -> Info {
    let mut notes = vec!["names of processes, users, machines and directories were hidden; those of files with code \
         and of functions were not"
            .into()];
    if !info.notes.is_empty() {
        // Notes may contain such a name in the middle of a sentence, so only their number is kept.
        notes.push(match info.notes.len() {
            1 => "a note of the recording was left out".into(),
            count => format!("{count} notes of the recording were left out"),
        });
    }
    Info {
        host: Host {
            name: String::new(),
            ..info.host.clone()
        },
        scope: String::new(),
        notes,
        ..info.clone()
    }
}

/// The replacement of each name, numbered in the order in which the names are met.
struct Aliases {
    stem: &'static str,
    known: HashMap<Arc<str>, Arc<str>>,
}

impl Aliases {
    fn new(stem: &'static str) -> Self {
        Self {
            stem,
            known: HashMap::new(),
        }
    }

    /// Returns the replacement of `name`; an empty name stays empty.
    fn of(&mut self, name: &Arc<str>) -> Arc<str> {
        if name.is_empty() {
            return Arc::clone(name);
        }
        let next = self.known.len() + 1;
        let alias = || format!("{}{next}", self.stem).into();
        Arc::clone(self.known.entry(Arc::clone(name)).or_insert_with(alias))
    }

    /// Replaces the directory of a path and keeps the file's own name. What is not a path on this
    /// machine is kept whole: `[kernel]`, `src/main.rs`.
    fn of_path(&mut self, path: &Arc<str>) -> Arc<str> {
        let is_common = COMMON.iter().any(|start| path.starts_with(start));
        // `..` can lead from such a directory to anywhere.
        let is_common = is_common && !path.contains("/../");
        match path.rsplit_once('/') {
            Some((directory, name)) if path.starts_with('/') && !is_common => {
                let directory = self.of(&format!("{directory}/").into());
                format!("{directory}/{name}").into()
            }
            _ => Arc::clone(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_keep_their_last_part_and_what_every_machine_has() {
        let mut directories = Aliases::new("/dir-");
        let mut of = |path: &str| directories.of_path(&path.into()).to_string();
        assert_eq!(of("/home/ann/bin/ledger"), "/dir-1/ledger");
        assert_eq!(of("/srv/acme/ledger"), "/dir-2/ledger");
        assert_eq!(of("/home/ann/bin/tool (deleted)"), "/dir-1/tool (deleted)");
        assert_eq!(of("/usr/lib/libc.so.6"), "/usr/lib/libc.so.6");
        assert_eq!(of("/usr/lib/../../home/ann/x"), "/dir-3/x");
        assert_eq!(of("/root"), "/dir-4/root");
        for path in ["[kernel]", "src/main.rs", ""] {
            assert_eq!(of(path), path);
        }
    }
}
