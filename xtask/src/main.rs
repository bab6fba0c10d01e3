//! Chores of the workspace: `cargo xtask ebpf [--check]`, `cargo xtask layers`,
//! `cargo xtask demo`.

mod demo;
mod ebpf;
mod fingerprint;
mod layers;
mod picture;
mod strip;

use anyhow::{Result, bail};

const USAGE: &str = "usage: cargo xtask ebpf [--check] | layers | demo

  ebpf           build the BPF object and put it, with the hash of its sources
                 and the versions of its toolchain, under assets/
  ebpf --check   build it elsewhere and compare every byte with assets/
  layers         refuse circles between modules, and imports that go up the
                 layers that ARCHITECTURE.md lists
  demo           draw the picture of the README (takes tmux)";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ebpf"] => ebpf::build_into_assets(),
        ["ebpf", "--check"] => ebpf::check(),
        ["layers"] => layers::check(fingerprint::workspace()),
        ["demo"] => demo::draw(),
        _ => bail!("{USAGE}"),
    }
}
