//! proftop: top for code.

mod snapshot;

fn main() {}
