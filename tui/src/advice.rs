//! *Advice* on code without names: the package of a file, the source of its symbols, and a line to
//! type that gets them.

use crate::failure::rights::Invocation;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use symbolize::packages::{Distribution, Manager, Owner};
use symbolize::parser::packages_order;
use symbolize::{Files, Reason};

/// Code whose functions have no names.
#[derive(Debug, Clone)]
pub struct Code {
    /// The path of its file, as its process sees it.
    pub path: PathBuf,
    pub reason: Reason,
    pub has_build_id: bool,
    /// The pid and the name of a process that runs this code.
    pub process: Option<(u32, String)>,
}

/// The known facts about a file, and what would bring names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advice {
    /// The name and version of the package that contains the file.
    pub package: Option<String>,
    /// The package that contains its symbols.
    pub symbols: Option<String>,
    /// The line to type. None if no command helps.
    pub command: Option<String>,
    /// A sentence on the command, or on what to do if no command helps.
    pub note: String,
}

impl Advice {
    /// Returns the command, or the sentence if no command helps.
    pub fn line(&self) -> &str {
        self.command.as_deref().unwrap_or(&self.note)
    }
}

/// What is available on this machine and to this run of proftop.
#[derive(Debug, Clone)]
pub struct Means {
    /// The command line of this run.
    pub invocation: Invocation,
    /// Whether the user is root. False under `sudo`, because then suggested commands need `sudo`.
    pub is_root: bool,
    /// Whether this run was started with `sudo`.
    pub is_under_sudo: bool,
    /// Whether `debuginfod-find`, the client of elfutils, is installed.
    pub has_client: bool,
    /// Whether servers for debug files are configured already. If so, they are not suggested,
    /// because they were asked and did not have the file.
    pub has_servers: bool,
}

impl Means {
    /// Determines the means from the environment and PATH.
    pub fn current() -> Means {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&paths);
        let is_under_sudo = std::env::var_os("SUDO_UID").is_some();
        Means {
            invocation: Invocation::current(),
            is_root: rustix::process::geteuid().is_root() && !is_under_sudo,
            is_under_sudo,
            has_client: places.any(|place| place.join("debuginfod-find").is_file()),
            has_servers: engine::debuginfod::client::is_wanted(),
        }
    }

    /// Returns the command that installs a package, with `sudo` unless the user is root.
    fn install(&self, command: &str) -> String {
        if self.is_root {
            command.to_owned()
        } else {
            format!("sudo {command}")
        }
    }

    /// Returns the command that repeats this run with the debug server of a distribution.
    fn with_server(&self, server: &str) -> String {
        let again = self.invocation.with_variable("DEBUGINFOD_URLS", server);
        if self.is_under_sudo {
            format!("sudo {again}")
        } else {
            again
        }
    }
}

/// Gives advice. It remembers the packages of files, because package databases are large.
#[derive(Debug)]
pub struct Adviser {
    files: Files,
    means: Means,
    owners: HashMap<(Root, PathBuf), Option<Owner>>,
    distributions: HashMap<Root, Option<Distribution>>,
}

/// The system to which a file belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Root {
    /// The system with this root directory, by device and inode.
    Known(u64, u64),
    Own,
}

/// Maximum number of remembered files. Beyond it, all are forgotten and looked up again.
const REMEMBERED_MAX: usize = 4_096;

impl Adviser {
    /// Creates an adviser that reads package databases with `files`, and suggests commands by
    /// `means`.
    pub fn new(files: Files, means: Means) -> Adviser {
        Adviser {
            files,
            means,
            owners: HashMap::new(),
            distributions: HashMap::new(),
        }
    }

    /// Returns advice for each code, in the same order.
    pub fn advise(&mut self, codes: &[Code]) -> Vec<Advice> {
        if self.owners.len() > REMEMBERED_MAX {
            self.owners.clear();
        }
        let roots: Vec<_> = codes.iter().map(|code| self.root_of(code)).collect();
        self.find_owners(codes, &roots);
        let told = codes.iter().zip(&roots).map(|(code, (root, directory))| {
            let known = self.owners.get(&(*root, code.path.clone()));
            if known.is_none() && directory.is_some() && may_be_packaged(code) {
                return of_unread_databases();
            }
            let owner = known.and_then(Option::as_ref);
            let distribution = self.distributions.get(root).and_then(Option::as_ref);
            advise(code, owner, distribution, &self.means)
        });
        told.collect()
    }

    /// Returns the system to which a file belongs: that of its process, or ours if the process is
    /// gone.
    fn root_of(&self, code: &Code) -> (Root, Option<OwnedFd>) {
        let process = code.process.as_ref();
        let of_process = process.and_then(|(pid, _)| self.files.root_of(*pid).ok());
        let known = of_process.and_then(|root| {
            let status = rustix::fs::fstat(&root).ok()?;
            Some((Root::Known(status.st_dev, status.st_ino), Some(root)))
        });
        known.unwrap_or_else(|| (Root::Own, symbolize::opener::our_root()))
    }

    /// Looks up the packages of all files of a system at once, except those that are known already.
    fn find_owners(&mut self, codes: &[Code], roots: &[(Root, Option<OwnedFd>)]) {
        let mut wanted: HashMap<Root, (&OwnedFd, Vec<&Path>)> = HashMap::new();
        for (code, (id, root)) in codes.iter().zip(roots) {
            let Some(root) = root.as_ref().filter(|_| may_be_packaged(code)) else {
                continue;
            };
            if !self.owners.contains_key(&(*id, code.path.clone())) {
                let (_, paths) = wanted.entry(*id).or_insert((root, Vec::new()));
                paths.push(&code.path);
            }
        }
        for (id, (root, paths)) in wanted {
            // Of databases that could not be read, nothing is remembered.
            let Ok(found) = packages_order::ask(root, &paths, &self.files) else {
                continue;
            };
            self.distributions.insert(id, found.distribution);
            for (path, owner) in paths.into_iter().zip(found.owners) {
                self.owners.insert((id, path.to_owned()), owner);
            }
        }
    }
}

/// Whether a package with the names of this code may exist.
fn may_be_packaged(code: &Code) -> bool {
    let lacks_symbols = matches!(code.reason, Reason::Stripped | Reason::NotCovered);
    lacks_symbols && code.path.is_absolute()
}

/// Returns the advice on one file. The reason why its functions have no names decides:
///
/// | reason | advice |
/// | --- | --- |
///  no symbols, or none of this code | the package or server that has them, if any |
///  made at run time | the option with which its runtime writes names |
///  no right to read it | this run again, with `sudo` |
///  any other | the remedy of the reason itself |
fn advise(
    code: &Code,
    owner: Option<&Owner>,
    distribution: Option<&Distribution>,
    means: &Means,
) -> Advice {
    match code.reason {
        Reason::Stripped | Reason::NotCovered => match owner {
            Some(owner) => of_package(code, owner, distribution, means),
            None => of_nobody(code, means),
        },
        Reason::Jit | Reason::JitNotCovered => made_at_run_time(code),
        Reason::NoPermission | Reason::KernelHidden if !means.is_root && !means.is_under_sudo => {
            Advice {
                command: Some(format!("sudo {}", means.invocation)),
                note: code.reason.remedy().into(),
                ..Advice::default()
            }
        }
        reason => Advice {
            note: reason.remedy().into(),
            ..Advice::default()
        },
    }
}

/// Returns advice on a file whose package is unknown, because databases of packages were not read.
fn of_unread_databases() -> Advice {
    Advice {
        note:
            "which package has this file is unknown: the databases of packages could not be read, \
               or took too long"
                .into(),
        ..Advice::default()
    }
}

/// Returns advice on a file of a package: its debug symbols are in another package, or on a server.
fn of_package(
    code: &Code,
    owner: &Owner,
    distribution: Option<&Distribution>,
    means: &Means,
) -> Advice {
    let symbols = owner.symbols();
    if let Some(client) = lacking_client(code, owner.manager, distribution, means) {
        return Advice {
            package: Some(format!("{} {}", owner.package, owner.version)),
            symbols: Some(symbols),
            command: Some(means.install(&client)),
            note: CLIENT_IS_MISSING.into(),
        };
    }
    // dnf alone finds the package of symbols by the name of the file's own package.
    let install = means.install(&match owner.manager {
        Manager::Dpkg => format!("apt install {symbols}"),
        Manager::Apk => format!("apk add {symbols}"),
        Manager::Rpm if distribution.is_some_and(|it| it.is_like("suse")) => {
            format!("zypper install {symbols}")
        }
        Manager::Rpm => format!("dnf debuginfo-install {}", owner.package),
    });
    // Packages that debhelper makes are in an archive that few machines have in their lists.
    let is_apart = owner.manager == Manager::Dpkg && symbols.ends_with("-dbgsym");
    let server = distribution.map(Distribution::debuginfod_server);
    let fetches = server.filter(|_| code.has_build_id && !means.has_servers);
    // The choice, in this order: (1) a server, if its client is installed and apt needs the archive
    // of debug symbols or there is another package manager; (2) the archive of debug symbols; (3)
    // the package manager alone.
    let (command, note) = match fetches {
        Some(server) if means.has_client && (is_apart || owner.manager != Manager::Dpkg) => {
            let again = means.with_server(server);
            let note = format!("Or install {symbols}. The server learns which builds run here.");
            (again, note)
        }
        _ if is_apart => {
            let (command, from) = from_archive(install, distribution, means);
            let or = server
                .filter(|_| fetches.is_some())
                .map(|server| format!("; or install debuginfod and set DEBUGINFOD_URLS={server}"));
            (command, format!("{from}{}.", or.unwrap_or_default()))
        }
        _ => (install, "Then start proftop again.".into()),
    };
    Advice {
        package: Some(format!("{} {}", owner.package, owner.version)),
        symbols: Some(symbols),
        command: Some(command),
        note,
    }
}

/// Returns the command that installs a package from the archive of debug symbols, and a note on its
/// origin. If apt does not know the archive, the command first adds it.
fn from_archive(
    install: String,
    distribution: Option<&Distribution>,
    means: &Means,
) -> (String, &'static str) {
    const FROM: &str = "From the archive of debug symbols";
    let is_known = distribution.is_some_and(Distribution::has_debug_archive);
    if is_known {
        return (install, FROM);
    }
    let Some((archive, keys)) = distribution.and_then(Distribution::debug_archive) else {
        return (
            install,
            "From the archive of debug symbols, which apt has to know first",
        );
    };
    let tee = means.install("tee /etc/apt/sources.list.d/debug.list");
    let update = means.install("apt update");
    let keys = keys
        .map(|keys| format!("{} && ", means.install(&format!("apt install {keys}"))))
        .unwrap_or_default();
    (
        format!("{keys}echo '{archive}' | {tee} && {update} && {install}"),
        "From the archive of debug symbols, which apt does not know yet",
    )
}

/// This note comes first, because the user has configured servers already.
const CLIENT_IS_MISSING: &str =
    "DEBUGINFOD_URLS is set, but no server is asked: debuginfod-find is not installed.";

/// Returns the command that installs the client, if servers are configured and it is missing.
fn lacking_client(
    code: &Code,
    manager: Manager,
    distribution: Option<&Distribution>,
    means: &Means,
) -> Option<String> {
    if !means.has_servers || means.has_client || !code.has_build_id {
        return None;
    }
    let is_suse = distribution.is_some_and(|it| it.is_like("suse"));
    match manager {
        Manager::Dpkg => Some("apt install debuginfod".into()),
        Manager::Rpm if is_suse => Some("zypper install debuginfod-client".into()),
        Manager::Rpm => Some("dnf install elfutils-debuginfod-client".into()),
        Manager::Apk => None,
    }
}

/// The advice on a file that its user has built.
const NOT_STRIPPED: &str = "No package has this file. Build it without `-s` and do not strip it; \
                            or, if the unstripped file is in some DIR: `w`, and `proftop resolve \
                            FILE.pft --debug-dir DIR`.";

/// Returns advice on a file without a package: only the person who built it has its symbols.
fn of_nobody(code: &Code, means: &Means) -> Advice {
    let note = match code.reason {
        _ if means.has_servers && !means.has_client && code.has_build_id => CLIENT_IS_MISSING,
        Reason::NotCovered => Reason::NotCovered.remedy(),
        _ => NOT_STRIPPED,
    };
    Advice {
        note: note.into(),
        ..Advice::default()
    }
}

/// Returns advice on code of a JIT compiler: its runtime has to write the names.
fn made_at_run_time(code: &Code) -> Advice {
    let program = code.path.file_name().and_then(|name| name.to_str());
    let comm = code.process.as_ref().map(|(_, comm)| &**comm);
    // The name of the program may be in the name of its file or of its thread only.
    let names = || [program, comm].into_iter().flatten();
    let is = |runtime: &str| names().any(|name| name.starts_with(runtime));
    let (command, note) = if is("java") {
        match &code.process {
            Some((pid, _)) => (
                format!("jcmd {pid} Compiler.perfmap"),
                "From JDK 17 on, again whenever more was compiled; \
                 for whole stacks start java with -XX:+PreserveFramePointer.",
            ),
            None => (
                "java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit …".into(),
                "From JDK 17 on.",
            ),
        }
    } else if is("node") && code.reason == Reason::JitNotCovered {
        (
            "node --perf-basic-prof --interpreted-frames-native-stack …".into(),
            "Its interpreter is then named, too.",
        )
    } else if is("node") || is("MainThread") {
        (
            "node --perf-basic-prof …".into(),
            "Start it again with this option.",
        )
    } else if is("dotnet") {
        (
            "DOTNET_PerfMapEnabled=1 dotnet …".into(),
            "Start it again with this variable.",
        )
    } else if is("python") {
        ("python3 -X perf …".into(), "From Python 3.12 on.")
    } else if is("ruby") {
        ("ruby --yjit --yjit-perf …".into(), "From Ruby 3.3 on.")
    } else if is("php") {
        (
            "php -d opcache.jit_debug=0x10 …".into(),
            "Start it again with this option.",
        )
    } else if is("julia") {
        (
            "ENABLE_JITPROFILING=1 julia …".into(),
            "Start it again with this variable.",
        )
    } else if is("beam") || is("erl") {
        ("erl +JPperf true …".into(), "From Erlang/OTP 24 on.")
    } else {
        return Advice {
            note: "Its runtime has to write /tmp/perf-PID.map; most have an option for perf."
                .into(),
            ..Advice::default()
        };
    };
    Advice {
        command: Some(command),
        note: note.into(),
        ..Advice::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use symbolize::packages::Packages;

    fn means(has_client: bool) -> Means {
        Means {
            invocation: Invocation::typed("proftop", "-p 12"),
            is_root: false,
            is_under_sudo: true,
            has_client,
            has_servers: false,
        }
    }

    fn code(path: &str, reason: Reason) -> Code {
        Code {
            path: path.into(),
            reason,
            has_build_id: true,
            process: Some((12, "main".into())),
        }
    }

    fn owner(manager: Manager, package: &str) -> Owner {
        Owner {
            manager,
            package: package.into(),
            version: "1".into(),
        }
    }

    fn of(package: &str, distribution: &str, means: &Means) -> Advice {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("etc")).unwrap();
        let release = directory.path().join("etc/os-release");
        std::fs::write(release, format!("ID={}\n", distribution.replace(' ', "\n"))).unwrap();
        let root = std::fs::File::open(directory.path()).unwrap().into();
        let files = Files::from(symbolize::RemoteFiles::Skip);
        let found = Packages::find(&root, &[], &files);
        let distribution = found.distribution.unwrap();
        let manager = if distribution.is_like("fedora") {
            Manager::Rpm
        } else {
            Manager::Dpkg
        };
        let code = code("/usr/lib/libx.so.1", Reason::Stripped);
        advise(
            &code,
            Some(&owner(manager, package)),
            Some(&distribution),
            means,
        )
    }

    #[test]
    fn a_package_leads_to_the_one_with_its_symbols() {
        let command = |package, distribution, client| {
            of(package, distribution, &means(client)).command.unwrap()
        };
        assert_eq!(
            command("libc6", "debian", true),
            "sudo apt install libc6-dbg"
        );
        assert_eq!(
            command("libssl3", "debian", true),
            "sudo DEBUGINFOD_URLS=https://debuginfod.debian.net proftop -p 12"
        );
        let without = "sudo apt install libssl3-dbgsym";
        assert_eq!(command("libssl3", "debian", false), without);
        let installed = "sudo dnf debuginfo-install openssl-libs";
        assert_eq!(command("openssl-libs", "fedora", false), installed);
        // If apt does not know the archive of debug symbols, the command adds it first.
        assert_eq!(
            command("libssl3", "debian VERSION_CODENAME=bookworm", false),
            "echo 'deb http://deb.debian.org/debian-debug/ bookworm-debug main' \
             | sudo tee /etc/apt/sources.list.d/debug.list && sudo apt update \
             && sudo apt install libssl3-dbgsym"
        );
        assert!(
            command(
                "libssl3",
                "ubuntu ID_LIKE=debian VERSION_CODENAME=noble",
                false
            )
            .starts_with("sudo apt install ubuntu-dbgsym-keyring && echo 'deb http://ddebs.")
        );
        let deaf = Means {
            has_servers: true,
            ..means(false)
        };
        let advice = of("libssl3", "debian", &deaf);
        assert_eq!(
            advice.command.as_deref(),
            Some("sudo apt install debuginfod")
        );
        assert!(advice.note.contains("debuginfod-find"), "{}", advice.note);
        let silent = Means {
            has_servers: true,
            ..means(true)
        };
        let advice = of("libssl3", "debian", &silent);
        assert_eq!(
            advice.command.as_deref(),
            Some(without),
            "the servers did not have it"
        );
        assert_eq!(advice.package.as_deref(), Some("libssl3 1"));
        assert_eq!(advice.symbols.as_deref(), Some("libssl3-dbgsym"));
    }

    #[test]
    fn every_reason_has_a_command_or_a_sentence() {
        for reason in Reason::ALL {
            let advice = advise(&code("/usr/bin/x", reason), None, None, &means(true));
            assert!(advice.note.ends_with('.'), "{reason:?}: {advice:?}");
        }
        let node = Code {
            process: Some((7, "node".into())),
            ..code("[JIT]", Reason::Jit)
        };
        let advice = advise(&node, None, None, &means(true));
        assert_eq!(advice.command.as_deref(), Some("node --perf-basic-prof …"));
        let java = Code {
            process: Some((7, "java".into())),
            ..node.clone()
        };
        let advice = advise(&java, None, None, &means(true));
        assert_eq!(advice.command.as_deref(), Some("jcmd 7 Compiler.perfmap"));
        assert!(advice.note.contains("-XX:+PreserveFramePointer"));
    }

    #[test]
    fn files_of_this_machine_have_owners() {
        if !Path::new("/var/lib/dpkg/status").exists() {
            return test_support::skip("no dpkg here");
        }
        let mut adviser = Adviser::new(probe::files::of_targets(), means(false));
        let program = std::fs::canonicalize("/bin/ls").unwrap();
        let codes = [Code {
            path: program,
            process: Some((std::process::id(), "test".into())),
            ..code("", Reason::Stripped)
        }];
        for _ in 0..2 {
            let advice = &adviser.advise(&codes)[0];
            assert_eq!(advice.symbols.as_deref(), Some("coreutils-dbgsym"));
        }
    }
}
