//! The program `proftop-fleet`. It is also a library, only for its examples, which need its
//! encoder.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    proftop_fleet::main()
}
