//! Structures that are values of BPF maps.

/// A value of a map in the form that aya requires. Code that stores a type declares, by `unsafe
/// impl aya::Pod`, that any bytes are a valid value of it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Plain<T>(pub T);
