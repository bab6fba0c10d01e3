//! The machines whose stacks can be walked. All of them are built on every host, so that tests
//! walk stacks of one machine on another.

mod aarch64;
mod x86_64;

pub use aarch64::Aarch64;
pub use x86_64::X86_64;

/// The machine that this crate is built for. For a BPF object the feature `aarch64` chooses it.
#[cfg(any(
    feature = "aarch64",
    all(target_arch = "aarch64", not(target_arch = "bpf"))
))]
pub type This = Aarch64;

/// The machine that this crate is built for. For a BPF object the feature `aarch64` chooses it.
#[cfg(not(any(
    feature = "aarch64",
    all(target_arch = "aarch64", not(target_arch = "bpf"))
)))]
pub type This = X86_64;
