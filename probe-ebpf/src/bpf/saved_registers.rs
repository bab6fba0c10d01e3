//! What the kernel has saved of the registers of user code (`pt_regs`), for each machine.

#[cfg(feature = "aarch64")]
mod aarch64;
#[cfg(not(feature = "aarch64"))]
mod x86_64;

#[cfg(feature = "aarch64")]
pub use aarch64::{interrupted, is_user, pc, sp};
#[cfg(not(feature = "aarch64"))]
pub use x86_64::{interrupted, is_user, pc, read_entry, sp};
