//! The program `proftop-fleet`. It is a library as well for its examples alone, which need its encoder.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    proftop_fleet::main()
}
