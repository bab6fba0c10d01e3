//! Probes at tracepoints of the kernel.
//!
//! The kernel's BTF contains the tracepoints and their arguments. The subsystem of a tracepoint is
//! only in the kernel's tracefs, if that is mounted; the name is unique without it.

use super::{Found, Refused, Search};
use crate::probes::expression::Values;
use regex::Regex;
use std::fs;
use std::ops::Range;
use std::path::Path;
use symbolize::kernel::{KernelSymbols, Tracepoint, Tracepoints};
use symbolize::sites::Language;

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// Where tracefs is mounted, if it is.
const TRACEFS: [&str; 2] = [
    "/sys/kernel/tracing/events",
    "/sys/kernel/debug/tracing/events",
];

/// Maximum number of functions between a tracepoint and its programs.
const RUNNERS_MAX: u32 = 12;

/// A tracepoint: a place in the kernel, marked by its authors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// The kernel's name for it.
    pub name: String,
    /// Names of its arguments, in their order; empty for one without a name.
    pub arguments: Vec<String>,
    /// Kernel code that only runs programs at tracepoints, by address: frames of it are on every
    /// stack, and are not informative.
    pub runners: Vec<Range<u64>>,
    /// Whether its stacks can be taken.
    pub has_stacks: bool,
}

/// Functions and refusals, or a sentence why there is no such place.
type Answer = Result<(Vec<Found>, Vec<Refused>), String>;

/// Finds the matching tracepoints: the one with this name, else all whose names match the pattern.
pub fn find(
    subsystem: Option<&str>,
    name: &str,
    pattern: Option<&Regex>,
    search: &Search,
) -> Answer {
    let bytes = fs::read(VMLINUX).map_err(|error| {
        format!("tracepoints of the kernel are known by its types: cannot read {VMLINUX}: {error}")
    })?;
    let types = Tracepoints::parse(&bytes).ok_or_else(|| format!("{VMLINUX} has no types"))?;
    let symbols = KernelSymbols::load();
    let mut meant: Vec<Tracepoint> = types.find(name).into_iter().collect();
    if let (true, Some(pattern)) = (meant.is_empty(), pattern) {
        let mut names: Vec<&str> = types
            .names()
            .filter(|name| pattern.find(name).is_some_and(|it| it.len() == name.len()))
            .collect();
        names.sort_unstable();
        meant = names
            .into_iter()
            .filter_map(|name| types.find(name))
            .collect();
    }
    if let Some(subsystem) = subsystem {
        if let (true, "syscalls", Some(call)) = (meant.is_empty(), subsystem, system_call(name)) {
            return Err(format!(
                "{name} is no place of its own in the kernel, but one of all system calls: \
                 tracepoint:raw_syscalls:{call} has them, with their number as a value"
            ));
        }
        check_subsystem(subsystem, &meant)?;
    }
    if meant.is_empty() {
        return Err(format!("this kernel has no tracepoint `{name}`"));
    }
    let found = meant.into_iter().map(|point| {
        let values = search
            .values
            .iter()
            .map(|value| {
                value
                    .at_point(&types, &point)
                    .map_err(|why| format!("`{}` of tracepoint {}: {why}", value.text, point.name))
            })
            .collect::<Result<Vec<_>, _>>()
            .and_then(Values::new)?;
        Ok(at(&point, subsystem, values, &symbols))
    });
    Ok((found.collect::<Result<_, String>>()?, Vec::new()))
}

/// Checks whether this kernel has a tracepoint that can be counted with stacks; the error is a
/// sentence.
pub fn check_point(subsystem: Option<&str>, name: &str) -> Result<(), String> {
    find(subsystem, name, None, &Search::default())?;
    if is_of_locks(name) {
        Err(format!(
            "{name} is passed where the kernel takes locks: taking a stack there would pass it again"
        ))
    } else {
        Ok(())
    }
}

/// Returns the kernel code that runs the programs of the tracepoint `name`, by address. Empty if
/// the names of the kernel's functions cannot be read.
pub fn runner_code(name: &str) -> Vec<Range<u64>> {
    runners(name, &KernelSymbols::load())
}

/// The names of all tracepoints of this kernel; empty if its types cannot be read.
pub fn names() -> Vec<String> {
    let bytes = fs::read(VMLINUX).unwrap_or_default();
    let types = Tracepoints::parse(&bytes);
    types.map_or_else(Vec::new, |types| {
        types.names().map(str::to_string).collect()
    })
}

/// Returns the tracepoint of all system calls from which the one for a single call is made.
fn system_call(name: &str) -> Option<&'static str> {
    if name.starts_with("sys_enter_") {
        Some("sys_enter")
    } else if name.starts_with("sys_exit_") {
        Some("sys_exit")
    } else {
        None
    }
}

/// Checks whether the kernel has the tracepoints in this subsystem, as far as that is known.
fn check_subsystem(subsystem: &str, meant: &[Tracepoint]) -> Result<(), String> {
    // The name becomes a part of a path.
    if !subsystem
        .bytes()
        .all(|it| it.is_ascii_alphanumeric() || it == b'_')
    {
        return Err(format!("`{subsystem}` is no subsystem of the kernel"));
    }
    let Some(root) = TRACEFS
        .iter()
        .map(Path::new)
        .find(|root| root.join("sched").exists())
    else {
        return Ok(());
    };
    match meant
        .iter()
        .find(|point| !root.join(subsystem).join(&point.name).exists())
    {
        Some(point) => Err(format!("tracepoint {} is not of {subsystem}", point.name)),
        None => Ok(()),
    }
}

fn at(
    point: &Tracepoint,
    subsystem: Option<&str>,
    values: Values,
    symbols: &KernelSymbols,
) -> Found {
    let name = match subsystem {
        Some(subsystem) => format!("tracepoint:{subsystem}:{}", point.name),
        None => format!("tracepoint:{}", point.name),
    };
    Found {
        name,
        module: "kernel".into(),
        address: 0,
        language: Language::C,
        sites: Vec::new(),
        return_sites: 0,
        plans: Vec::new(),
        sees_ends: false,
        is_program: false,
        extents: Vec::new(),
        values,
        types: None,
        point: Some(Point {
            name: point.name.clone(),
            arguments: point.parameters.iter().map(|it| it.name.clone()).collect(),
            runners: runners(&point.name, symbols),
            has_stacks: !is_of_locks(&point.name),
        }),
    }
}

/// Whether the tracepoint is hit when locks of the kernel are waited for, or taken. A program that
/// takes one of these to write a stack would wait for itself.
fn is_of_locks(name: &str) -> bool {
    name.starts_with("contention_") || name.starts_with("lock_")
}

/// The functions of the kernel that run the programs of a tracepoint.
fn runners(name: &str, symbols: &KernelSymbols) -> Vec<Range<u64>> {
    let run = (1..=RUNNERS_MAX).map(|arguments| format!("bpf_trace_run{arguments}"));
    let own = ["__traceiter_", "__bpf_trace_", "__probestub_"].map(|it| format!("{it}{name}"));
    let starts = run.chain(own).filter_map(|name| symbols.start_of(&name));
    starts.filter_map(|start| symbols.extent(start)).collect()
}
