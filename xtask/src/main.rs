//! Chores of the workspace: `cargo xtask ebpf [--check]`, `cargo xtask layers`,
//! `cargo xtask demo`, `cargo xtask tour`, `cargo xtask dist [--check]`, `cargo xtask kernels FOLDER`.

mod demo;
#[cfg(test)]
mod dependencies;
mod dist;
mod ebpf;
mod fingerprint;
mod kernels;
mod layers;
mod picture;
mod strip;
mod terminal;
mod tour;

use anyhow::{Result, bail};

const USAGE: &str =
    "usage: cargo xtask ebpf [--check] | layers | demo | tour | dist [--check] | kernels FOLDER

  ebpf           build the BPF object and put it, with the hash of its sources
                 and the versions of its toolchain, under assets/
  ebpf --check   build it elsewhere and compare every byte with assets/
  layers         refuse circles between modules, and imports that go up the
                 layers that ARCHITECTURE.md lists
  demo           draw the picture of the README (takes tmux)
  tour           draw the pictures of docs/tour.md (takes root, tmux and a C compiler)
  dist           build what is given to others into target/package/: a static
                 program, archives, a list of the crates in it, checksums
  dist --check   build the last commit in two folders and compare every byte
  kernels FOLDER [RELEASE…] [--cpus N] [--kvm]
                 boot the kernels below a folder in QEMU, and sample on them";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ebpf"] => ebpf::build_into_assets(),
        ["ebpf", "--check"] => ebpf::check(),
        ["layers"] => layers::check(fingerprint::workspace()),
        ["demo"] => demo::draw(),
        ["tour"] => tour::draw(),
        ["dist"] => dist::make(),
        ["dist", "--check"] => dist::check(),
        ["kernels", ref rest @ ..] => kernels::check(rest),
        _ => bail!("{USAGE}"),
    }
}
