//! The binary with the BPF programs; all of their code is in `bpf` and its modules.
#![cfg_attr(target_arch = "bpf", no_std, no_main)]

#[cfg(target_arch = "bpf")]
mod bpf;

#[cfg(not(target_arch = "bpf"))]
fn main() {
    eprintln!("this binary is for bpfel-unknown-none: build it with `cargo xtask ebpf`");
}
