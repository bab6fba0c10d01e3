//! What the kernel side and the user side of proftop share: the records in the
//! ring buffer, the limits, and the step from one stack frame to its caller.
//!
//! This crate builds for the host, where all of it is tested, and for BPF.
#![cfg_attr(target_arch = "bpf", no_std)]

pub mod record;

pub use record::Ending;
