//! Compresses the BPF objects of the target machine: see `src/loader/objects.rs`.
//!
//! The object for kernels without `bpf_loop` is compressed with the other one as a dictionary: both
//! are made from the same sources and have much in common.

use lzma_rust2::{Lzma2Options, Lzma2Writer};
use std::io::Write as _;
use std::path::PathBuf;
use std::{env, fs};

/// Size of the compressor's window: both objects fit.
const WINDOW: u32 = 1 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (object, without_loop) = match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "aarch64" => ("../assets/proftop.aarch64.bpf.o", None),
        // For other machines than these two, compiling the program fails with a message.
        _ => (
            "../assets/proftop.bpf.o",
            Some("../assets/proftop.without-loop.bpf.o"),
        ),
    };
    println!("cargo::rerun-if-changed=build.rs");
    let object = read(object)?;
    write("object.lzma2", pack(&object, None)?)?;
    let without_loop = match without_loop {
        Some(path) => pack(&read(path)?, Some(object))?,
        None => Vec::new(),
    };
    write("without_loop.lzma2", without_loop)
}

fn read(path: &str) -> std::io::Result<Vec<u8>> {
    println!("cargo::rerun-if-changed={path}");
    fs::read(path)
}

fn write(name: &str, packed: Vec<u8>) -> Result<(), Box<dyn std::error::Error>> {
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join(name), packed)?;
    Ok(())
}

fn pack(object: &[u8], known: Option<Vec<u8>>) -> std::io::Result<Vec<u8>> {
    let mut options = Lzma2Options::with_preset(9);
    options.lzma_options.dict_size = WINDOW;
    options.lzma_options.nice_len = 273;
    options.lzma_options.preset_dict = known;
    let mut writer = Lzma2Writer::new(Vec::new(), options);
    writer.write_all(object)?;
    writer.finish()
}
