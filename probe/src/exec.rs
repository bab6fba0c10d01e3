//! Where the kernel makes a task another program.
//!
//! From the point of no return on the old program's memory is gone, while the registers
//! with which the task entered the kernel are still those of the old program: there is
//! no user stack to walk. The side band tells of the new program only a little later,
//! after what was the old one's has been taken down.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;

/// The function that everything of it is called from, since Linux 5.9.
const FUNCTION: &str = "bprm_execve";

/// The kernel's code for exec. It is looked for when it is first asked for: reading
/// the kernel's symbols takes some milliseconds.
#[derive(Debug, Default)]
pub struct ExecCode(OnceCell<Option<Range<u64>>>);

impl ExecCode {
    /// Whether a task with this kernel stack is in the midst of exec. Always false
    /// where the kernel keeps its addresses to itself.
    pub fn is_in(&self, kernel_stack: &[u64]) -> bool {
        if kernel_stack.is_empty() {
            return false;
        }
        let code = self.0.get_or_init(|| {
            let symbols = File::open("/proc/kallsyms").ok()?;
            extent(BufReader::new(symbols), FUNCTION)
        });
        let Some(code) = code else {
            return false;
        };
        // Callers are known by the address behind their call.
        kernel_stack
            .iter()
            .any(|address| code.contains(&address.wrapping_sub(1)))
    }
}

/// From where to where a function goes by a list of symbols like `/proc/kallsyms`,
/// which is in the order of addresses.
fn extent(symbols: impl BufRead, function: &str) -> Option<Range<u64>> {
    let mut start = None;
    for line in symbols.lines() {
        let line = line.ok()?;
        let mut words = line.split(' ');
        let (Some(address), Some(_), Some(name)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let address = u64::from_str_radix(address, 16).ok()?;
        match start {
            Some(start) if address > start => return Some(start..address),
            None if name == function && address != 0 => start = Some(address),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &[u8] = b"ffffffff81000000 T _text\n\
        ffffffff81000100 t bprm_execve\n\
        ffffffff81000100 t also_here\n\
        ffffffff81000180 T kernel_execve\n";

    #[test]
    fn a_function_goes_up_to_the_next() {
        let found = extent(SYMBOLS, FUNCTION);
        assert_eq!(found, Some(0xffff_ffff_8100_0100..0xffff_ffff_8100_0180));
        assert_eq!(
            extent(SYMBOLS, "kernel_execve"),
            None,
            "its end is not known"
        );
        assert_eq!(extent(SYMBOLS, "nothing"), None);
        let hidden = &b"0000000000000000 t bprm_execve\n0000000000000000 t next\n"[..];
        assert_eq!(extent(hidden, FUNCTION), None);
    }

    #[test]
    fn callers_are_known_by_the_address_behind_their_call() {
        let code = ExecCode(OnceCell::from(Some(0x100..0x180)));
        assert!(code.is_in(&[7, 0x101]) && code.is_in(&[0x180]));
        assert!(!code.is_in(&[0x100]) && !code.is_in(&[0x181]) && !code.is_in(&[]));
        assert!(!ExecCode(OnceCell::from(None)).is_in(&[0x101]));
    }
}
