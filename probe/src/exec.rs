//! Recognizes that a task is in exec.
//!
//! After the point of no return the old program's memory is gone, while the registers with which
//! the task entered the kernel are still those of the old program: there is no user stack to walk.
//! The side band reports the new program slightly later, after the old one's data has been removed.

use crate::kernel_symbols;
use std::cell::OnceCell;
use std::ops::Range;

/// The kernel's code for exec, looked up on first use.
#[derive(Debug, Default)]
pub struct ExecCode(OnceCell<Option<Range<u64>>>);

impl ExecCode {
    /// Whether a task with this kernel stack is in exec. Always false if the kernel hides its
    /// addresses.
    pub fn is_in(&self, kernel_stack: &[u64]) -> bool {
        if kernel_stack.is_empty() {
            return false;
        }
        let Some(code) = self.0.get_or_init(kernel_symbols::exec) else {
            return false;
        };
        // Callers appear with the address after their call.
        kernel_stack
            .iter()
            .any(|address| code.contains(&address.wrapping_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_known_by_the_address_behind_their_call() {
        let code = ExecCode(OnceCell::from(Some(0x100..0x180)));
        assert!(code.is_in(&[7, 0x101]) && code.is_in(&[0x180]));
        assert!(!code.is_in(&[0x100]) && !code.is_in(&[0x181]) && !code.is_in(&[]));
        assert!(!ExecCode(OnceCell::from(None)).is_in(&[0x101]));
    }
}
