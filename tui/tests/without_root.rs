//! A user other than root with the capabilities of docs/security.md, and with one of them missing:
//! `doctor`, reports and the Health view say what is lost without each.

use crate::common;

use common::dialog::Dialog;
use common::{PROFTOP, can_sample, reports_until, run, side_by_side, text};
use rustix::thread::CapabilitySet;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use test_support::{
    Process, become_other_user, compile, copy_program, is_root_or_skip, skip, wait_until,
};

/// The capabilities to sample everything, and to name all of it.
const ALL: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::CHECKPOINT_RESTORE);

/// Capabilities that root has and that are of no use here: CAP_SYS_RESOURCE is needed below Linux
/// 5.11 only, for memory of BPF, and CAP_SYS_ADMIN only where CAP_BPF and CAP_PERFMON do not exist
/// (below 5.8).
const NOT_NEEDED: [CapabilitySet; 3] = [
    CapabilitySet::SYS_RESOURCE,
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_RESOURCE.union(CapabilitySet::SYS_ADMIN),
];

/// What a user sees without a capability.
struct Loss {
    missing: CapabilitySet,
    /// The engine that takes the samples.
    engine: &'static str,
    /// What `doctor` finds that it does not find with all capabilities.
    findings: &'static [&'static str],
    /// Words of a note in the header and in Health.
    note: Option<&'static str>,
    /// The reason why frames have no name that otherwise have one.
    reason: Option<&'static str>,
}

const LOSSES: [Loss; 7] = [
    Loss {
        missing: CapabilitySet::empty(),
        engine: "bpf",
        findings: &[],
        note: None,
        reason: None,
    },
    Loss {
        missing: CapabilitySet::BPF,
        engine: "perf",
        findings: &["rights", "bpf", "cpu-clock"],
        note: Some("without CAP_BPF"),
        reason: None,
    },
    Loss {
        missing: CapabilitySet::PERFMON,
        engine: "perf",
        findings: &["rights", "bpf", "cpu-clock"],
        note: Some("without CAP_PERFMON"),
        reason: None,
    },
    Loss {
        missing: CapabilitySet::SYS_PTRACE,
        engine: "bpf",
        findings: &["rights-ptrace"],
        note: Some("without CAP_SYS_PTRACE programs whose memory may not be read have no names"),
        reason: Some("unmapped"),
    },
    Loss {
        missing: CapabilitySet::DAC_READ_SEARCH,
        engine: "bpf",
        findings: &["rights-files"],
        note: None,
        reason: Some("no_permission"),
    },
    Loss {
        missing: CapabilitySet::SYSLOG,
        engine: "bpf",
        findings: &["rights-syslog", "kernel-names"],
        note: None,
        reason: Some("kernel_hidden"),
    },
    Loss {
        missing: CapabilitySet::CHECKPOINT_RESTORE,
        engine: "bpf",
        findings: &["rights-mapped"],
        note: None,
        reason: Some("no_permission"),
    },
];

/// A program that calls a function of a library, and the kernel.
const SOURCE: &str = r"
#include <fcntl.h>
#include <unistd.h>
void in_library(void);
void in_program(void) { for (volatile long i = 0; i < 10000000; i++); }
int main(void) {
    int zero = open(ZERO, O_RDONLY);
    static char bytes[1 << 20];
    for (;;) { in_program(); in_library(); for (int i = 0; i < 64; i++) read(zero, bytes, sizeof bytes); }
}
";

/// Programs of root, and a copy of proftop that another user may start.
struct Scene {
    proftop: PathBuf,
    /// A process whose library only root may read.
    of_root: Process,
    /// A process whose library is deleted.
    with_deleted: Process,
    _folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Option<Scene> {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let may = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        may(folder.path(), 0o755).unwrap();
        let proftop = path("proftop");
        copy_program(PROFTOP, &proftop);
        may(&proftop, 0o755).unwrap();
        let (library, source) = (path("library.c"), path("main.c"));
        let code = "void in_library(void) { for (volatile long i = 0; i < 10000000; i++); }";
        fs::write(&library, code).unwrap();
        fs::write(&source, SOURCE.replace("ZERO", "\"/dev/zero\"")).unwrap();
        let start = |name: &str| {
            let (shared, program) = (path(&format!("lib{name}.so")), path(name));
            compile(&library, &shared, ["-shared", "-fPIC"])?;
            let flags = [shared.as_os_str(), "-Wl,-rpath,$ORIGIN".as_ref()];
            compile(&source, &program, flags)?;
            let started = Process::start_load(&mut Command::new(&program));
            let is_mapped = || {
                let maps = fs::read_to_string(format!("/proc/{}/maps", started.pid()));
                maps.is_ok_and(|maps| maps.contains(&format!("lib{name}.so")))
            };
            wait_until("it has its library", is_mapped);
            Some((started, shared))
        };
        let (of_root, library) = start("private")?;
        may(&library, 0o600).unwrap();
        let (with_deleted, library) = start("deleted")?;
        fs::remove_file(library).unwrap();
        Some(Scene {
            proftop,
            of_root,
            with_deleted,
            _folder: folder,
        })
    }

    /// Returns the command of proftop, as a service manager starts it with these capabilities.
    fn proftop(&self, args: &[&str], capabilities: CapabilitySet) -> Command {
        let mut command = Command::new(&self.proftop);
        command.args(args);
        for variable in ["PROFTOP_CONFIG", "XDG_STATE_HOME", "PROFTOP_CACHE"] {
            command.env(variable, "/dev/null");
        }
        // SAFETY: between fork and exec there are system calls only.
        unsafe { command.pre_exec(move || become_other_user(capabilities)) };
        command
    }

    /// Returns both pids: some losses show in one of the processes only.
    fn pids(&self) -> String {
        format!("{},{}", self.of_root.pid(), self.with_deleted.pid())
    }
}

/// Returns the findings of `doctor` that are not good, without those about the terminal.
fn findings(scene: &Scene, capabilities: CapabilitySet) -> Vec<String> {
    let output = run(&mut scene.proftop(&["doctor", "--format", "json"], capabilities));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let all = found["findings"].as_array().expect("a list");
    let is_bad = |finding: &&Value| finding["level"] != "ok" && finding["section"] == "machine";
    let id = |finding: &Value| finding["id"].as_str().expect("text").to_owned();
    all.iter().filter(is_bad).map(id).collect()
}

#[test]
fn what_is_lost_without_each_capability_is_said() {
    if !is_root_or_skip("only root can give capabilities to another user") {
        return;
    }
    if !can_sample() {
        return;
    }
    let Some(scene) = Scene::new() else {
        return;
    };
    let with_all = findings(&scene, ALL);
    side_by_side(&LOSSES, |loss| check(&scene, loss, &with_all));
}

#[test]
fn other_capabilities_change_nothing() {
    if !is_root_or_skip("only root can give capabilities to another user") {
        return;
    }
    if !can_sample() {
        return;
    }
    let Some(scene) = Scene::new() else {
        return;
    };
    let without = said(&scene, ALL);
    assert_eq!(without.engine, "bpf");
    // A container may have taken them from root.
    let held = rustix::thread::capabilities(None).expect("our own");
    side_by_side(&NOT_NEEDED, |more| {
        if !held.permitted.contains(*more) {
            return skip(format_args!("nobody here can have {more:?}"));
        }
        assert_eq!(said(&scene, ALL | *more), without, "with {more:?}");
    });
}

/// What proftop says about its rights.
#[derive(Debug, PartialEq)]
struct Said {
    doctor: Vec<String>,
    engine: String,
    notes: Vec<String>,
    reasons: Vec<String>,
    health: Vec<String>,
}

/// Returns what is said with these capabilities, when both programs have their names.
fn said(scene: &Scene, held: CapabilitySet) -> Said {
    let args = ["-b", "-d", "0.5", "--format", "json", "-p", &scene.pids()];
    let is_enough = |reports: &[Value]| {
        let last = reports.last();
        last.is_some_and(|last| is_named(last, "in_program") && is_named(last, "in_library"))
    };
    let reports = reports_until(&mut scene.proftop(&args, held), "both names", is_enough);
    let last = reports.last().expect("one is enough");
    let unnamed = last["unnamed"].as_object().expect("counts by reason");
    // How often depends on chance.
    let reasons = unnamed.iter().filter(|(_, count)| count.as_u64() > Some(0));

    let mut command = scene.proftop(&["--plain", "-p", &scene.pids()], held);
    command.stderr(Stdio::null());
    let mut dialog = Dialog::of(command);
    dialog.ask_until("top", &["in_program", "in_library"]);
    let health = dialog.ask("health");
    dialog.finish();
    // The other rows have numbers that are never the same.
    let is_about_rights = |line: &&str| line.contains("  note ") || line.contains("CAP_");
    let about_rights = health.lines().filter(is_about_rights).map(|line| {
        let (_, row) = line
            .trim_start()
            .split_once(' ')
            .expect("a number, and the row");
        row.trim_start().to_owned()
    });
    Said {
        doctor: findings(scene, held),
        engine: last["engine"].as_str().expect("text").to_owned(),
        notes: notes(last),
        reasons: reasons.map(|(reason, _)| reason.clone()).collect(),
        health: about_rights.collect(),
    }
}

fn notes(report: &Value) -> Vec<String> {
    let notes = report["notes"].as_array().expect("a list").iter();
    notes
        .map(|note| note.as_str().expect("text").to_owned())
        .collect()
}

fn is_named(report: &Value, name: &str) -> bool {
    let functions = report["functions"].as_array().expect("a list");
    functions.iter().any(|function| function["name"] == name)
}

fn check(scene: &Scene, loss: &Loss, with_all: &[String]) {
    let held = ALL.difference(loss.missing);
    let mut found = findings(scene, held);
    found.retain(|id| !with_all.contains(id));
    assert_eq!(found, loss.findings, "without {:?}", loss.missing);

    let args = ["-b", "-d", "0.5", "--format", "json", "-p", &scene.pids()];
    let is_enough = |reports: &[Value]| {
        let Some(last) = reports.last() else {
            return false;
        };
        match loss.reason {
            Some(reason) => last["unnamed"][reason].as_u64() > Some(0),
            None => is_named(last, "in_program") && is_named(last, "in_library"),
        }
    };
    let what = format!("reports without {:?}", loss.missing);
    let reports = reports_until(&mut scene.proftop(&args, held), &what, is_enough);
    let last = reports.last().expect("one is enough");
    assert_eq!(last["engine"], loss.engine, "{what}");
    let is_noted = |note: &str| notes(last).iter().any(|told| told.contains(note));
    match loss.note {
        Some(note) => assert!(is_noted(note), "{what}: {:?}", notes(last)),
        None => assert!(!is_noted("without CAP_"), "{what}: {:?}", notes(last)),
    }

    let mut command = scene.proftop(&["--plain", "-p", &scene.pids()], held);
    command.stderr(Stdio::null());
    let mut dialog = Dialog::of(command);
    let wanted = loss.note.unwrap_or(match loss.reason {
        Some("unmapped") => "No mapping",
        Some("no_permission") => "No right to read the file",
        Some("kernel_hidden") => "The kernel hides",
        _ => "samples",
    });
    let mut health = String::new();
    wait_until("Health says it", || {
        health = dialog.ask("health");
        health.replace('\n', " ").contains(wanted)
    });
    dialog.finish();
}

#[test]
fn a_command_of_the_user_has_the_rights_that_the_user_gave() {
    if !is_root_or_skip("only root can give capabilities to another user") {
        return;
    }
    if !can_sample() {
        return;
    }
    let Some(scene) = Scene::new() else {
        return;
    };
    // A capability that proftop does not need, but its command has.
    let held = ALL | CapabilitySet::NET_BIND_SERVICE;
    let script = "grep -E '^Cap(Eff|Prm)|^NoNewPrivs' /proc/self/status >&2";
    let args = [
        "record",
        "-d",
        "1",
        "-o",
        "/dev/null",
        "-f",
        "--",
        "sh",
        "-c",
        script,
    ];
    let output = run(&mut scene.proftop(&args, held));
    let said = text(&output.stderr);
    let mask = format!("{:016x}", held.bits());
    for line in ["CapEff", "CapPrm"] {
        assert!(
            said.contains(&format!("{line}:\t{mask}")),
            "{line} of {mask}: {said}"
        );
    }
    assert!(said.contains("NoNewPrivs:\t0"), "{said}");
}
