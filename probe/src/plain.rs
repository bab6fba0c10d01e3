//! Structures that are values of BPF maps.

/// A value of a map as aya wants it. Who stores one says that any bytes are a value of it,
/// by `unsafe impl aya::Pod`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Plain<T>(pub T);
