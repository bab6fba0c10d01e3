//! *Skid*: a timer cannot interrupt while interrupts are off. Its samples of that time are taken
//! where interrupts are enabled again.

use crate::words::names;
use profile::{FrameKind, FunctionRow};

/// The beginnings of names of kernel functions that enable interrupts, or behind which they are
/// enabled.
const LET_IN: [&str; 11] = [
    "_raw_spin_unlock_irq",
    "_raw_read_unlock_irq",
    "_raw_write_unlock_irq",
    "raw_spin_rq_unlock_irq",
    "finish_task_switch",
    "__do_softirq",
    "handle_softirqs",
    "pv_native_irq_enable",
    // On the way back to a program, pending work, such as that of a breakpoint, is done with
    // interrupts on. They were off since the exception.
    "irqentry_exit_to_user_mode",
    "exit_to_user_mode_loop",
    "exit_to_user_mode_prepare",
];

/// Whether self samples of a function may belong to work that was done before.
pub fn is_likely(row: &FunctionRow) -> bool {
    let is_in_kernel = row.kind == FrameKind::Kernel;
    is_in_kernel && LET_IN.iter().any(|begin| row.name.starts_with(begin))
}

/// Explains such a row. `samples` is the number of samples in words, `key` the key that shows the
/// callers.
pub fn explain(samples: &str, name: &str, key: Option<&str>) -> String {
    let callers = match key {
        Some(key) => format!("; {key} shows its callers, whose work that is"),
        None => "; it is its callers' work".into(),
    };
    let name = names::brief(name);
    format!(
        "{samples} in {name}: interrupts come on again here, and the clock counts what \
         ran while they were off{callers}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::postgres;

    #[test]
    fn only_the_kernels_own_functions_are_meant() {
        let snapshot = postgres();
        let mut row = snapshot.report.functions[0].clone();
        row.name = "_raw_spin_unlock_irqrestore".into();
        row.kind = FrameKind::User;
        assert!(!is_likely(&row));
        row.kind = FrameKind::Kernel;
        assert!(is_likely(&row));
        row.name = "finish_task_switch.isra.0".into();
        assert!(is_likely(&row));
        row.name = "irqentry_exit_to_user_mode".into();
        assert!(is_likely(&row));
        row.name = "syscall_exit_to_user_mode".into();
        assert!(!is_likely(&row), "it does not let them in by itself");
        row.name = "copy_user_generic".into();
        assert!(!is_likely(&row));
    }
}
