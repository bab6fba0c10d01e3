//! What a breakpoint must not do on this machine, because it would kill some process.
//!
//! | module | holds |
//! |---|---|
//! | `trial` | whether seccomp filters kill a process at the kernel's return address |
//! | `shadow_stacks` | whether a process has a second stack of return addresses |

mod shadow_stacks;
mod trial;

/// What is avoided, for any probed function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caution {
    /// Whether return addresses are left unchanged: ends of calls are then detected at each `ret`.
    pub keeps_return_addresses: bool,
    /// Whether no breakpoint is placed on a call: the kernel emulates it by pushing a return
    /// address on the stack, but not on the shadow stack, so the process would be killed at that
    /// return.
    pub spares_calls: bool,
}

impl Caution {
    /// A sentence for users, if something is avoided.
    pub fn explain(self) -> Option<&'static str> {
        match (self.keeps_return_addresses, self.spares_calls) {
            (false, false) => None,
            (true, false) => Some(
                "this kernel would end processes that filter system calls if their return \
                 addresses were replaced: ends of calls are seen at each `ret`, which costs more",
            ),
            (_, true) => Some(
                "a process here has a shadow stack, which a replaced return address would end: \
                 ends of calls are seen at each `ret`, which costs more",
            ),
        }
    }

    /// Determines what has to be avoided with the current kernel and processes. Reads the status of
    /// each process in /proc if the CPU has shadow stacks.
    pub fn now() -> Caution {
        let has_shadow_stacks = shadow_stacks::are_used();
        Caution {
            keeps_return_addresses: has_shadow_stacks || !may_replace_return_addresses(),
            spares_calls: has_shadow_stacks,
        }
    }
}

/// Whether no seccomp filter kills a process whose return address was replaced. Tried once, in a
/// process of our own.
pub(super) fn may_replace_return_addresses() -> bool {
    use std::sync::OnceLock;
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(trial::may_replace_return_addresses)
}
