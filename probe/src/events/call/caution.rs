//! What a breakpoint must not do here, because some process would be ended by it.
//!
//! | module | holds |
//! |---|---|
//! | `trial` | whether filters of system calls end a process at the kernel's return address |
//! | `shadow_stacks` | whether a process has a second stack of return addresses |

mod shadow_stacks;
mod trial;

/// What is not done, whatever function gets the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caution {
    /// Return addresses stay as they are: ends of calls are seen at each `ret`.
    pub keeps_return_addresses: bool,
    /// No breakpoint goes to a call: what the kernel does in its place puts a return address
    /// on the stack, and not on the shadow stack. The process would end at that return.
    pub spares_calls: bool,
}

impl Caution {
    /// A sentence for users, if something is not done.
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

    /// What the kernel and the processes of this machine ask for now. Reads what /proc says
    /// of each process where the CPU has shadow stacks.
    pub fn now() -> Caution {
        let has_shadow_stacks = shadow_stacks::are_used();
        Caution {
            keeps_return_addresses: has_shadow_stacks || !may_replace_return_addresses(),
            spares_calls: has_shadow_stacks,
        }
    }
}

/// Whether no filter of system calls ends a process whose return address was replaced. It is
/// tried once, in a process of our own.
pub(super) fn may_replace_return_addresses() -> bool {
    use std::sync::OnceLock;
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(trial::may_replace_return_addresses)
}
