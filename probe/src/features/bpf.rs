//! What the kernel's BPF offers, checked by loading programs of two instructions and creating maps
//! of one page.

use super::Finding;
use crate::machine::THIS;
use aya::maps::MapType;
use aya::programs::{ProgramError, ProgramType};
use aya::sys::{
    BpfHelper, SyscallError, is_helper_supported, is_map_supported, is_program_supported,
};
use std::io;
use std::path::Path;

const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";
const NEWER_KERNEL: &str = "use kernel 6.1 or newer, or one with this backported";

/// Checks for the kernel's BTF, to which the programs are adapted.
pub fn type_information() -> Finding {
    if Path::new(KERNEL_BTF).exists() {
        return Finding::ok("btf", "BTF: the kernel describes its types");
    }
    Finding::fail(
        "btf",
        format!("BTF: no {KERNEL_BTF}: programs cannot be fitted to this kernel"),
    )
    .fix("use a kernel built with CONFIG_DEBUG_INFO_BTF=y")
}

/// Checks the system call first: if that fails, the others would fail for the same reason.
pub fn programs(may_try: bool) -> Vec<Finding> {
    if !may_try {
        return vec![Finding::warn("bpf", "BPF: not tried without rights")];
    }
    let system_call = judge_syscall(&is_map_supported(MapType::Array).map_err(cause_of_map));
    let works = system_call.level == super::Level::Ok;
    let mut findings = vec![system_call];
    if works {
        findings.push(judge(
            "ring-buffer",
            "BPF ring buffer",
            "no way for samples to reach us",
            &is_map_supported(MapType::RingBuf).map_err(cause_of_map),
        ));
        findings.push(judge(
            "perf-event-program",
            "BPF programs on CPU clocks",
            "nothing can take samples",
            &is_program_supported(ProgramType::PerfEvent).map_err(cause_of_program),
        ));
        let asked = |helper| {
            let answer = is_helper_supported(ProgramType::PerfEvent, helper);
            answer.map_err(cause_of_program)
        };
        let usual = USUAL_HELPERS.map(asked);
        findings.push(judge_usual(&usual, THIS.walks_without_loop));
        // The programs for older kernels do not need these either.
        if !is_old(&usual) || !THIS.walks_without_loop {
            for (id, name, loss, helper) in HELPERS {
                findings.push(judge(id, name, loss, &asked(helper)));
            }
        }
    }
    findings
}

/// The helpers that show whether the kernel has enough for the usual BPF object: the one that runs
/// a loop, and one that came with Linux 6.1, as did maps whose memory grows, for programs of the
/// clock, and values of maps that are larger than 4 MiB. A distribution that has given its kernel
/// the BPF of a later one has given it this helper, too.
pub const USUAL_HELPERS: [BpfHelper; 2] = [
    BpfHelper::BPF_FUNC_loop,
    BpfHelper::BPF_FUNC_ktime_get_tai_ns,
];

const HELPERS: [(&str, &str, &str, BpfHelper); 2] = [
    (
        "task",
        "bpf_get_current_task_btf",
        "threads cannot be told apart",
        BpfHelper::BPF_FUNC_get_current_task_btf,
    ),
    (
        "task-registers",
        "bpf_task_pt_regs",
        "no user stack while a thread is in the kernel",
        BpfHelper::BPF_FUNC_task_pt_regs,
    ),
];

/// Whether the kernel lacks one of [`USUAL_HELPERS`].
fn is_old(answers: &[Result<bool, io::Error>; 2]) -> bool {
    answers.iter().any(|answer| matches!(answer, Ok(false)))
}

/// Judges whether the kernel has [`USUAL_HELPERS`]. `walks_without` is whether there are programs
/// that do not need what these stand for.
fn judge_usual(answers: &[Result<bool, io::Error>; 2], walks_without: bool) -> Finding {
    if is_old(answers) && walks_without {
        let what = "this kernel lacks bpf_loop, or BPF maps that grow (Linux 6.1 has both): BPF samples the \
                    time on CPUs, but sees no waits (perf does), no calls and no other events";
        return Finding::warn("bpf-loop", what).fix(NEWER_KERNEL);
    }
    let loss = "user stacks cannot be walked in the kernel";
    match answers {
        [Ok(true), of_maps] => judge("bpf-loop", "bpf_loop and BPF maps that grow", loss, of_maps),
        [of_loops, _] => judge("bpf-loop", "bpf_loop", loss, of_loops),
    }
}

fn judge_syscall(answer: &Result<bool, io::Error>) -> Finding {
    match answer {
        Ok(true) => Finding::ok("bpf", "BPF: maps can be made"),
        Ok(false) => Finding::fail("bpf", "BPF: the kernel makes no maps").fix(NEWER_KERNEL),
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            Finding::fail("bpf", "BPF: this kernel has no bpf system call")
                .fix("use a kernel built with CONFIG_BPF_SYSCALL=y")
        }
        Err(error) => Finding::fail(
            "bpf",
            format!("BPF: refused in spite of our rights: {error}"),
        )
        .fix("look for a seccomp filter, lockdown or an LSM; in a container: --cap-add=BPF"),
    }
}

fn judge(id: &'static str, name: &str, loss: &str, answer: &Result<bool, io::Error>) -> Finding {
    match answer {
        Ok(true) => Finding::ok(id, name),
        Ok(false) => {
            Finding::fail(id, format!("{name}: not in this kernel: {loss}")).fix(NEWER_KERNEL)
        }
        Err(error) => Finding::warn(id, format!("{name}: cannot tell: {error}")),
    }
}

fn cause_of_map(error: SyscallError) -> io::Error {
    error.io_error
}

fn cause_of_program(error: ProgramError) -> io::Error {
    match error {
        ProgramError::SyscallError(error) => error.io_error,
        other => io::Error::other(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn tells_a_kernel_without_bpf_from_one_that_refuses() {
        let errno = |n| Err(io::Error::from_raw_os_error(n));
        assert!(
            judge_syscall(&errno(libc::ENOSYS))
                .what
                .contains("no bpf system call")
        );
        let refused = judge_syscall(&errno(libc::EPERM));
        assert_eq!(refused.level, Level::Fail);
        assert!(refused.fix.unwrap().contains("seccomp"));
    }

    #[test]
    fn a_missing_helper_says_what_is_lost() {
        let finding = judge("x", "bpf_task", "no stacks", &Ok(false));
        assert_eq!(finding.what, "bpf_task: not in this kernel: no stacks");
        assert_eq!(finding.level, Level::Fail);
        let unknown = judge("x", "bpf_task", "no stacks", &Err(io::Error::other("?")));
        assert_eq!(unknown.level, Level::Warn);
    }

    #[test]
    fn without_loops_there_are_samples_where_there_are_programs_for_that() {
        let unknown = || Err(io::Error::other("?"));
        for answers in [[Ok(false), Ok(false)], [Ok(true), Ok(false)]] {
            let older = judge_usual(&answers, true);
            assert_eq!(older.level, Level::Warn);
            assert!(older.what.contains("samples the time on CPUs"));
            assert!(older.fix.unwrap().contains("6.1"));
            assert_eq!(judge_usual(&answers, false).level, Level::Fail);
        }
        assert_eq!(judge_usual(&[Ok(true), Ok(true)], true).level, Level::Ok);
        assert_eq!(
            judge_usual(&[unknown(), unknown()], true).level,
            Level::Warn
        );
        assert_eq!(judge_usual(&[Ok(true), unknown()], true).level, Level::Warn);
    }

    #[test]
    fn nothing_is_tried_without_rights() {
        assert_eq!(programs(false).len(), 1);
    }

    #[test]
    fn this_kernel_answers() {
        if crate::privilege::Rights::current()
            .unwrap()
            .can_sample()
            .is_err()
        {
            test_support::skip("needs root");
            return;
        }
        let findings = programs(true);
        assert_eq!(findings.len(), 6, "{findings:?}");
    }
}
