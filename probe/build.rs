//! Deflates the BPF object of the machine that is built for: see `src/loader.rs`.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let object = match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "aarch64" => "../assets/proftop.aarch64.bpf.o",
        // Other machines than these two are refused where the program is compiled.
        _ => "../assets/proftop.bpf.o",
    };
    println!("cargo::rerun-if-changed={object}");
    println!("cargo::rerun-if-changed=build.rs");
    let into = PathBuf::from(env::var("OUT_DIR")?).join("object.deflate");
    let mut deflated = DeflateEncoder::new(fs::File::create(into)?, Compression::best());
    std::io::copy(&mut fs::File::open(object)?, &mut deflated)?;
    deflated.finish()?;
    Ok(())
}
