//! A filter of system calls refuses what kernels before 6.4 and before 5.11 lack: names and whole
//! stacks are found without it. Other differences of kernels are for `cargo xtask kernels`.

use crate::common::{self, can_sample, has_whole_stacks, proftop, reports_until, side_by_side};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt as _;
use test_support::Scratch;

/// From the first system call that Linux 5.10 does not have up to a number that no kernel has
/// reached. The numbers are the same on all machines.
const NEW_CALLS: std::ops::Range<i64> = 441..600;

/// The auxiliary vector by prctl(2), since Linux 6.4.
const PR_GET_AUXV: u64 = 0x4155_5856;

/// Returns a filter that answers these system calls with an error.
fn refusing(rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> BpfProgram {
    let machine = std::env::consts::ARCH.try_into().expect("a known machine");
    let refuse = SeccompAction::Errno(error.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, machine);
    let filter = filter.expect("two actions");
    filter.try_into().expect("not too long")
}

#[test]
fn names_and_stacks_are_whole_without_what_newer_kernels_have() {
    if !can_sample() {
        return;
    }
    let is_new = NEW_CALLS.map(|call| (call, Vec::new())).collect();
    let condition =
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, PR_GET_AUXV);
    let rule = SeccompRule::new(vec![condition.expect("an argument")]);
    let by_prctl = BTreeMap::from([(libc::SYS_prctl, vec![rule.expect("a condition")])]);
    let filters = [
        refusing(is_new, libc::ENOSYS),
        refusing(by_prctl, libc::EINVAL),
    ];
    let burn = common::burning(1);
    let pid = burn.pid().to_string();
    side_by_side(&["bpf", "perf"], |engine| {
        let mut command = proftop(&["-b", "--format", "json", "-d", "1"]);
        command.args(["--engine", engine, "-p", &pid]);
        // Nothing that was found before helps.
        let cache = Scratch::new();
        command.env("PROFTOP_CACHE", cache.path());
        let filters = filters.clone();
        // SAFETY: the closure makes system calls only, and allocates nothing.
        unsafe {
            command.pre_exec(move || {
                let refused = |_| io::Error::from(io::ErrorKind::PermissionDenied);
                let mut set = filters
                    .iter()
                    .map(|filter| seccompiler::apply_filter(filter));
                set.try_for_each(|set| set.map_err(refused))
            });
        }
        reports_until(&mut command, engine, has_whole_stacks);
    });
}
