//! The facts about a process that are known before it is sampled: where its code is, and whether
//! that code will have names.

mod maps;
mod python;
mod sampled;

use super::elf::{ElfFacts, inspect_elf};
use crate::advice::{Advice, Adviser, Code, Means};
use crate::failure::Failure;
use crate::failure::rights::Invocation;
use crate::target::{process_name, sees_code, unseen_code};
use maps::{CodeMapping, read_code_mappings};
use probe::features::Finding;
use python::PythonFacts;
pub use sampled::{Sampled, SampledFacts, sample};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use symbolize::parser::SymbolTable;
use symbolize::{FileSource, Files, Reason, sanitize};

/// Maximum number of files that are examined. A process maps a few hundred at most; a hostile one
/// may map far more.
const MODULES_MAX: usize = 2_000;

/// The facts about a process.
#[derive(Debug)]
pub struct ProcessFacts {
    pub pid: u32,
    pub comm: String,
    /// The program. None for kernel threads, zombies, and if we have no right to read it.
    pub exe: Option<PathBuf>,
    /// Whether the program exists, but we have no right to see which one it is.
    pub exe_is_hidden: bool,
    pub is_64_bit: Option<bool>,
    pub shares_pid_namespace: Option<bool>,
    pub shares_mount_namespace: Option<bool>,
    /// The files whose code is mapped, or why they cannot be read.
    pub modules: Result<Vec<ModuleFacts>, String>,
    /// Whether the process has executable memory without a file, which is code made at run time.
    pub has_anonymous_code: bool,
    pub python: Option<PythonFacts>,
    /// The perf map, in which the runtime names such code. None if there is none.
    pub perf_map: Option<PathBuf>,
    /// How to make the runtime write a perf map.
    pub jit_advice: Advice,
    pub sampled: Sampled,
}

/// The facts about a file whose code the process has mapped.
#[derive(Debug)]
pub struct ModuleFacts {
    pub path: PathBuf,
    pub on_disk: OnDisk,
    /// The facts about the mapped file if it can be opened, else about the file on disk.
    pub elf: Result<ElfFacts, String>,
    /// Whether debug information was found in a separate file, or compressed in this one.
    pub has_debug_file: bool,
    /// What would give names to all of its functions. None if they have names, or do not matter.
    pub advice: Option<Advice>,
    /// Whether samples of the process hit code of this file that has no name.
    pub is_sampled: bool,
}

impl ModuleFacts {
    /// Whether functions have no names, in a file that matters.
    fn lacks_names(&self) -> bool {
        let lacks = |elf: &ElfFacts| elf.symbols != SymbolTable::Symtab && self.matters(elf);
        self.elf.as_ref().is_ok_and(lacks) && !self.has_debug_file
    }

    /// Whether the file has enough code to matter, or unnamed code that was sampled.
    fn matters(&self, elf: &ElfFacts) -> bool {
        self.is_sampled || !elf.is_tiny()
    }
}

/// The file at the path now, compared with the mapped one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDisk {
    Same,
    Deleted,
    Replaced,
    Unreadable,
}

/// Gathers all facts about a process. `sample` takes samples of it. It is an error if there is no
/// such process; whatever cannot be read becomes a fact that says so.
pub fn inspect(pid: u32, sample: impl FnOnce(u32) -> Sampled) -> Result<ProcessFacts, Failure> {
    let comm = process_name(pid)?;
    let way = probe::files::of_targets();
    let mappings = read_code_mappings(pid, &way);
    let files = mappings.as_deref().unwrap_or_default();
    let root = way.root_of(pid);
    let mut modules: Vec<_> = one_per_file(files)
        .map(|mapping| inspect_module(pid, &root, mapping, &way))
        .collect();
    let means = Means {
        invocation: Invocation::current().for_process(pid),
        ..Means::current()
    };
    let mut adviser = Adviser::new(way.clone(), means);
    let sampled = sample(pid);
    if let Ok(facts) = &sampled {
        for module in &mut modules {
            module.is_sampled = facts.unnamed_in(&module.path) > 0;
        }
    }
    advise(&mut adviser, pid, &comm, &mut modules);
    let runtime = Code {
        path: PathBuf::new(),
        reason: Reason::Jit,
        has_build_id: false,
        process: Some((pid, comm.clone())),
    };
    let jit_advice = adviser.advise(&[runtime]).pop().unwrap_or_default();
    let exe = fs::read_link(format!("/proc/{pid}/exe"));
    let exe_is_hidden = exe
        .as_ref()
        .is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
    let link = PathBuf::from(format!("/proc/{pid}/exe"));
    let exe_facts = way.open_program(pid).ok();
    // A process names its perf map by the pid that it sees itself.
    let inner_pid = probe::inner_tid(pid, pid).unwrap_or(pid);
    let perf_map = format!("/tmp/perf-{inner_pid}.map");
    Ok(ProcessFacts {
        pid,
        comm,
        sampled,
        is_64_bit: exe_facts
            .and_then(|file| inspect_elf(&file, &FileSource::new(&link)).ok())
            .map(|facts| facts.is_64_bit),
        exe: exe.ok(),
        exe_is_hidden,
        shares_pid_namespace: shares_namespace(pid, "pid"),
        shares_mount_namespace: shares_namespace(pid, "mnt"),
        jit_advice,
        has_anonymous_code: files.iter().any(|mapping| mapping.path.is_none()),
        python: python::inspect(pid, files, &way),
        perf_map: open_in(&root, Path::new(&perf_map), &way)
            .is_ok()
            .then(|| perf_map.into()),
        modules: match mappings {
            Ok(_) => Ok(modules),
            Err(error) => Err(unseen_code(pid, &error)),
        },
    })
}

/// Adds advice to each module that lacks names.
fn advise(adviser: &mut Adviser, pid: u32, comm: &str, modules: &mut [ModuleFacts]) {
    let lacking: Vec<usize> = modules
        .iter()
        .enumerate()
        .filter_map(|(at, module)| module.lacks_names().then_some(at))
        .collect();
    let code = |at: &usize| {
        let module = &modules[*at];
        Code {
            path: module.path.clone(),
            reason: Reason::Stripped,
            has_build_id: module.elf.as_ref().is_ok_and(|elf| elf.build_id.is_some()),
            process: Some((pid, comm.to_owned())),
        }
    };
    let codes: Vec<Code> = lacking.iter().map(code).collect();
    let advice = adviser.advise(&codes);
    for (at, advice) in lacking.into_iter().zip(advice) {
        modules[at].advice = Some(advice);
    }
}

/// Turns the facts into findings: what will work when this process is sampled, what will not, and
/// what helps.
pub fn findings(facts: &ProcessFacts) -> Vec<Finding> {
    let mut findings = vec![judge_identity(facts)];
    findings.extend(judge_namespaces(facts));
    match &facts.modules {
        Err(error) => findings.push(
            Finding::fail(
                "process-maps",
                format!("{error}: its functions have no names"),
            )
            .fix(sees_code()),
        ),
        Ok(modules) => {
            let judge = |module| judge_module(module, facts.sampled.as_ref().ok());
            findings.extend(modules.iter().map(judge));
        }
    }
    let judge = |python| python::judge(python, facts.sampled.as_ref().ok());
    findings.extend(facts.python.as_ref().map(judge));
    findings.extend(facts.python.as_ref().and_then(python::judge_without_bpf));
    findings.extend(judge_anonymous_code(facts));
    findings.push(sampled::judge(facts.pid, &facts.sampled));
    findings
}

/// Says which program the process runs, and whether its stacks can be walked at all.
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
        (None, _) if facts.exe_is_hidden => Finding::warn(
            "process",
            format!("{name}, whose program is not ours to see"),
        )
        .fix(sees_code()),
        (None, _) => Finding::ok(
            "process",
            format!("{name}, without a program file: a kernel thread or a zombie"),
        ),
    }
}

/// Says which namespaces the process does not share with proftop. None if it shares them, or if
/// that is not known.
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

/// Judges a mapped file: first its contents, then whether it is still the file at its path.
/// `sampled` are the results of sampling, if there are any.
fn judge_module(module: &ModuleFacts, sampled: Option<&SampledFacts>) -> Finding {
    let finding = match &module.elf {
        Err(error) => {
            let name = show(&module.path);
            Finding::warn("process-module", format!("{name}: cannot be read: {error}"))
        }
        Ok(elf) => judge_elf(module, elf, sampled),
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

/// Judges what a file contributes to stacks and names. The first case that holds decides:
///
/// 1. there is too little code to matter, and no sample in it: nothing is judged;
/// 2. there is too little unwind information, and samples have not shown that stacks are whole all
///    the same: a warning, because stacks end here;
/// 3. there are no symbols and no debug file: a warning;
/// 4. only exported functions have names: no warning, but a remedy for the others.
fn judge_elf(module: &ModuleFacts, elf: &ElfFacts, sampled: Option<&SampledFacts>) -> Finding {
    let name = show(&module.path);
    if !module.matters(elf) {
        let what = format!(
            "{name}: {} bytes of code: too few to matter",
            elf.code_bytes
        );
        return Finding::ok("process-module", what);
    }
    let has_few_rules = elf.walkable.as_ref().is_ok_and(|share| *share < WALKABLE);
    // A small program is mostly the C library's start code, which needs no rules.
    let all_whole = sampled.and_then(SampledFacts::all_whole);
    if has_few_rules && all_whole.is_none() {
        let unwinding = unwinding(elf);
        let what =
            format!("{name}: {unwinding}: a stack goes on only where there are frame pointers");
        return Finding::warn("process-module", what)
            .fix("build it with -fasynchronous-unwind-tables, or with -fno-omit-frame-pointer");
    }
    let symbols = match elf.symbols {
        _ if module.has_debug_file => "debug file found (all functions)",
        SymbolTable::Symtab => ".symtab (all functions)",
        SymbolTable::Dynsym => "stripped: only exported functions have names",
        SymbolTable::None => "stripped: functions have no names",
    };
    let mut words = vec![symbols.to_owned(), unwinding(elf)];
    if let Some(stacks) = all_whole.filter(|_| has_few_rules) {
        words.push(format!("which was enough for each of {stacks} stacks"));
    }
    words.push(match &elf.build_id {
        Some(id) => format!("build-id {id}"),
        None => "no build-id".into(),
    });
    let package = module
        .advice
        .as_ref()
        .and_then(|advice| advice.package.as_ref());
    words.extend(package.map(|package| format!("package {package}")));
    let unnamed = sampled.and_then(|sampled| sampled.words_of(&module.path));
    words.extend(unnamed.map(|share| format!("without a name: {share}")));
    let what = format!("{name}: {}", words.join(", "));
    let finding = if module.lacks_names() && elf.symbols == SymbolTable::None {
        Finding::warn("process-module", what)
    } else {
        Finding::ok("process-module", what)
    };
    match &module.advice {
        Some(advice) => finding.fix(advice.line()),
        None => finding,
    }
}

/// The minimum share of a file's code with unwind rules. Below it, stacks are likely to end in the
/// file. Compilers reach more than 0.9; hand-written assembly may be below.
const WALKABLE: f64 = 0.5;

/// Says for how much of the code there are unwind rules.
fn unwinding(elf: &ElfFacts) -> String {
    match &elf.walkable {
        Ok(0.0) => "no unwind information".into(),
        Ok(share) => format!("unwind rules for {:.0} % of its code", share * 100.0),
        Err(error) => format!("unwind information cannot be used: {error}"),
    }
}

/// Says whether code made at run time will have names. None if the process has no such code.
fn judge_anonymous_code(facts: &ProcessFacts) -> Option<Finding> {
    match (facts.has_anonymous_code, &facts.perf_map) {
        (false, _) => None,
        (true, Some(map)) => Some(Finding::ok(
            "process-jit",
            format!("code made at run time: named by {}", show(map)),
        )),
        (true, None) => Some(
            Finding::warn(
                "process-jit",
                "code made at run time, and no perf map: it has no names",
            )
            .fix(facts.jit_advice.line()),
        ),
    }
}

/// Gathers the facts about a mapped file. If it can be opened, the mapped file counts, else the
/// file that is at its path now.
fn inspect_module(
    pid: u32,
    root: &Result<OwnedFd, Reason>,
    mapping: &CodeMapping,
    way: &Files,
) -> ModuleFacts {
    let path = mapping.path.clone().unwrap_or_default();
    // This opens the mapped file even if it was renamed or deleted. It needs more rights than
    // opening the path.
    let mapped = way.open_mapping(pid, mapping.range);
    let named = open_in(root, &path, way);
    let identity = |file: &File| file.metadata().map(|m| (m.dev(), m.ino())).ok();
    let on_disk = match (&mapped, &named) {
        (_, Err(Reason::FileGone)) => OnDisk::Deleted,
        (_, Err(_)) => OnDisk::Unreadable,
        (Ok(mapped), Ok(named)) if identity(mapped) != identity(named) => OnDisk::Replaced,
        (Ok(_), Ok(_)) => OnDisk::Same,
        // Only the inode is compared, because the maps of a process show another device for
        // files of an overlay file system.
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
    let elf = file.and_then(|file| inspect_elf(&file, &source));
    let has_debug_file = elf.as_ref().is_ok_and(|elf| elf.has_debug_file);
    ModuleFacts {
        elf,
        path,
        on_disk,
        has_debug_file,
        advice: None,
        is_sampled: false,
    }
}

/// Returns the first mapping of each file, as [`CodeMapping::is_of_same_file`] tells files apart.
fn one_per_file(mappings: &[CodeMapping]) -> impl Iterator<Item = &CodeMapping> {
    let mut seen = std::collections::HashSet::new();
    mappings
        .iter()
        .filter(|mapping| mapping.path.is_some())
        .filter(move |mapping| seen.insert((&mapping.path, mapping.inode)))
        .take(MODULES_MAX)
}

/// Opens a regular file at a path that is relative to the root directory of the process.
fn open_in(root: &Result<OwnedFd, Reason>, path: &Path, way: &Files) -> Result<File, Reason> {
    way.open_beneath(root.as_ref().map_err(|reason| *reason)?, path)
}

/// Whether a process has the same namespace as proftop; `kind` is a name in `/proc/PID/ns`. None if
/// we have no right to see that.
fn shares_namespace(pid: u32, kind: &str) -> Option<bool> {
    let theirs = fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok()?;
    let ours = fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    Some(theirs == ours)
}

/// Returns a path that is safe to print.
fn show(path: &Path) -> String {
    sanitize(path.as_os_str().as_bytes()).into_owned()
}

#[cfg(test)]
mod tests;
