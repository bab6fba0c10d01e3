//! What can be known of one process before it is sampled: where its code is,
//! and whether that code will have names.

mod maps;

use super::elf::{ElfFacts, Symbols, inspect_elf};
use crate::failure::Failure;
use crate::target::process_name;
use maps::{CodeMapping, read_code_mappings};
use probe::features::Finding;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use symbolize::debug_file::{self, DebugFiles};
use symbolize::object::Object;
use symbolize::{FileSource, Files, Reason};

/// A process maps some hundred files at most; this only bounds the hostile.
const MODULES_MAX: usize = 2_000;

#[derive(Debug)]
pub struct ProcessFacts {
    pub pid: u32,
    pub comm: String,
    /// `None` for kernel threads, zombies, and where we may not look.
    pub exe: Option<PathBuf>,
    pub is_64_bit: Option<bool>,
    pub shares_pid_namespace: Option<bool>,
    pub shares_mount_namespace: Option<bool>,
    /// The files whose code is mapped, or why they cannot be told.
    pub modules: Result<Vec<ModuleFacts>, String>,
    /// Code without a file: made at run time.
    pub has_anonymous_code: bool,
    /// The file by which a runtime names that code.
    pub perf_map: Option<PathBuf>,
}

#[derive(Debug)]
pub struct ModuleFacts {
    pub path: PathBuf,
    pub on_disk: OnDisk,
    /// Of the mapped file if it can be had, else of the one on disk.
    pub elf: Result<ElfFacts, String>,
    /// Its debug information is there, in a file of its own or inside.
    pub has_debug_file: bool,
}

/// What is at the path now, compared with what is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDisk {
    Same,
    Deleted,
    Replaced,
    Unreadable,
}

pub fn inspect(pid: u32) -> Result<ProcessFacts, Failure> {
    let comm = process_name(pid)?;
    let way = probe::files::of_targets();
    let mappings = read_code_mappings(pid, &way);
    let files = mappings.as_deref().unwrap_or_default();
    let root = way.root_of(pid);
    let modules = one_per_file(files)
        .map(|mapping| inspect_module(pid, &root, mapping, &way))
        .collect();
    let exe = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let link = PathBuf::from(format!("/proc/{pid}/exe"));
    let exe_facts = way.open_program(pid).ok();
    let perf_map = format!("/tmp/perf-{}.map", inner_pid(pid).unwrap_or(pid));
    Ok(ProcessFacts {
        pid,
        comm,
        is_64_bit: exe_facts
            .and_then(|file| inspect_elf(&file, &FileSource::new(&link)).ok())
            .map(|facts| facts.is_64_bit),
        exe,
        shares_pid_namespace: shares_namespace(pid, "pid"),
        shares_mount_namespace: shares_namespace(pid, "mnt"),
        has_anonymous_code: files.iter().any(|mapping| mapping.path.is_none()),
        perf_map: open_in(&root, Path::new(&perf_map), &way)
            .is_ok()
            .then(|| perf_map.into()),
        modules: match mappings {
            Ok(_) => Ok(modules),
            Err(error) => Err(format!("failed to read `/proc/{pid}/maps`: {error}")),
        },
    })
}

pub fn findings(facts: &ProcessFacts) -> Vec<Finding> {
    let mut findings = vec![judge_identity(facts)];
    findings.extend(judge_namespaces(facts));
    match &facts.modules {
        Err(error) => findings.push(
            Finding::fail(
                "process-maps",
                format!("{error}: its functions have no names"),
            )
            .fix("run as root, or give proftop cap_sys_ptrace"),
        ),
        Ok(modules) => findings.extend(modules.iter().map(judge_module)),
    }
    findings.extend(judge_anonymous_code(facts));
    findings
}

fn judge_identity(facts: &ProcessFacts) -> Finding {
    let name = format!("process {}: {}", facts.pid, facts.comm);
    match (&facts.exe, facts.is_64_bit) {
        (Some(exe), Some(false)) => Finding::warn(
            "process",
            format!(
                "{name}, {}, 32-bit: its user stacks cannot be walked, only the function that runs is known",
                show(exe)
            ),
        ),
        (Some(exe), _) => Finding::ok("process", format!("{name}, {}", show(exe))),
        (None, _) => Finding::ok(
            "process",
            format!("{name}, without a program file: kernel thread, zombie or not ours to see"),
        ),
    }
}

fn judge_namespaces(facts: &ProcessFacts) -> Option<Finding> {
    let own = [
        (facts.shares_pid_namespace, "pid"),
        (facts.shares_mount_namespace, "mount"),
    ];
    let differ: Vec<_> = own
        .iter()
        .filter(|(shared, _)| *shared == Some(false))
        .map(|(_, name)| *name)
        .collect();
    if differ.is_empty() {
        return None;
    }
    Some(Finding::ok(
        "process-namespaces",
        format!(
            "{} namespace of its own (a container): files are read through its root",
            differ.join(" and ")
        ),
    ))
}

fn judge_module(module: &ModuleFacts) -> Finding {
    let name = show(&module.path);
    let finding = match &module.elf {
        Err(error) => Finding::warn("process-module", format!("{name}: cannot be read: {error}")),
        Ok(elf) if elf.walkable.as_ref().is_ok_and(|share| *share < WALKABLE) => Finding::warn(
            "process-module",
            format!(
                "{name}: {}: a stack goes on only where there are frame pointers",
                unwinding(elf)
            ),
        )
        .fix("build it with -fasynchronous-unwind-tables, or with -fno-omit-frame-pointer"),
        Ok(elf) if elf.symbols == Symbols::None && !module.has_debug_file => Finding::warn(
            "process-module",
            format!(
                "{name}: stripped: functions have no names; {}",
                unwinding(elf)
            ),
        )
        .fix("install its debug symbols (-dbgsym, -debuginfo), or a build that is not stripped"),
        Ok(elf) => {
            let symbols = match elf.symbols {
                _ if module.has_debug_file => "debug file found (all functions)",
                Symbols::Symtab => ".symtab (all functions)",
                _ => ".dynsym (exported functions)",
            };
            let build_id = elf.build_id.as_ref().map_or("no build-id", |_| "build-id");
            Finding::ok(
                "process-module",
                format!("{name}: {build_id}, {symbols}, {}", unwinding(elf)),
            )
        }
    };
    match module.on_disk {
        OnDisk::Same | OnDisk::Unreadable => finding,
        OnDisk::Deleted => Finding::warn(
            "process-module",
            format!("{}; deleted on disk", finding.what),
        )
        .fix("restart the process"),
        OnDisk::Replaced => Finding::warn(
            "process-module",
            format!("{}; replaced on disk since it was started", finding.what),
        )
        .fix("restart the process"),
    }
}

/// Below, stacks are likely to end in this file. What compilers make is above
/// nine tenths, but for hand-written code.
const WALKABLE: f64 = 0.5;

fn unwinding(elf: &ElfFacts) -> String {
    match &elf.walkable {
        Ok(0.0) => "no unwind information".into(),
        Ok(share) => format!("unwind rules for {:.0} % of its code", share * 100.0),
        Err(error) => format!("unwind information cannot be used: {error}"),
    }
}

fn judge_anonymous_code(facts: &ProcessFacts) -> Option<Finding> {
    match (facts.has_anonymous_code, &facts.perf_map) {
        (false, _) => None,
        (true, Some(map)) => Some(Finding::ok(
            "process-jit",
            format!("code made at run time: named by {}", show(map)),
        )),
        (true, None) => Some(
            Finding::warn("process-jit", "code made at run time, and no perf map: it has no names")
                .fix("node --perf-basic-prof, python -X perf, or a JVM agent that writes /tmp/perf-PID.map"),
        ),
    }
}

fn inspect_module(
    pid: u32,
    root: &Result<OwnedFd, Reason>,
    mapping: &CodeMapping,
    way: &Files,
) -> ModuleFacts {
    let path = mapping.path.clone().unwrap_or_default();
    // The mapped file itself, whatever has become of its name; needs more rights
    // than the path does.
    let mapped = way.open_mapping(pid, mapping.range);
    let named = open_in(root, &path, way);
    let identity = |file: &File| file.metadata().map(|m| (m.dev(), m.ino())).ok();
    let on_disk = match (&mapped, &named) {
        (_, Err(Reason::FileGone)) => OnDisk::Deleted,
        (_, Err(_)) => OnDisk::Unreadable,
        (Ok(mapped), Ok(named)) if identity(mapped) != identity(named) => OnDisk::Replaced,
        (Ok(_), Ok(_)) => OnDisk::Same,
        // Not the device: overlay file systems show another one in the maps.
        (Err(_), Ok(named)) => match identity(named) {
            Some((_, inode)) if inode == mapping.inode && !mapping.deleted => OnDisk::Same,
            _ => OnDisk::Replaced,
        },
    };
    let why = |reason: Reason| reason.explain().trim_end_matches('.').to_string();
    let file = mapped.or(named).map_err(why);
    let source = FileSource {
        pid: Some(pid),
        ..FileSource::new(&path)
    };
    let has_debug_file = file
        .as_ref()
        .is_ok_and(|file| has_debug_file(&source, file));
    ModuleFacts {
        elf: file.and_then(|file| inspect_elf(&file, &source)),
        path,
        on_disk,
        has_debug_file,
    }
}

fn has_debug_file(source: &FileSource<'_>, file: &File) -> bool {
    let Ok(object) = Object::read(file) else {
        return false;
    };
    let found = DebugFiles::of(source, probe::files::of_targets()).separate(&object);
    found.is_some() || matches!(debug_file::mini(&object), Ok(Some(_)))
}

fn one_per_file(mappings: &[CodeMapping]) -> impl Iterator<Item = &CodeMapping> {
    let mut seen = std::collections::HashSet::new();
    mappings
        .iter()
        .filter(|mapping| mapping.path.is_some())
        .filter(move |mapping| seen.insert((&mapping.path, mapping.inode)))
        .take(MODULES_MAX)
}

/// A regular file below the process's root.
fn open_in(root: &Result<OwnedFd, Reason>, path: &Path, way: &Files) -> Result<File, Reason> {
    way.open_beneath(root.as_ref().map_err(|reason| *reason)?, path)
}

/// Its pid as it knows it, which is what it names its perf map by.
fn inner_pid(pid: u32) -> Option<u32> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let line = status.lines().find_map(|l| l.strip_prefix("NSpid:"))?;
    line.split_whitespace().last()?.parse().ok()
}

fn shares_namespace(pid: u32, kind: &str) -> Option<bool> {
    let theirs = fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok()?;
    let ours = fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    Some(theirs == ours)
}

/// Paths are strangers' text.
fn show(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests;
