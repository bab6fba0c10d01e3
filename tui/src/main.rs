//! proftop: top for code.

mod batch;
mod snapshot;

fn main() {}
