//! The BPF objects, and which of them this kernel gets.
//!
//! They are built from `probe-ebpf/` by `cargo xtask ebpf`, and packed by this crate's `build.rs`: an
//! eighth of their size, in a program that is copied to servers.

use super::Settings;
use crate::error::Error;
use crate::machine::THIS;
use aya::programs::ProgramType;
use aya::sys::{BpfHelper, is_helper_supported};
use lzma_rust2::Lzma2Reader;
use std::io::Read as _;

/// As in `build.rs`.
const WINDOW: u32 = 1 << 20;

/// The object of this machine.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/object.lzma2"));

/// That for kernels without `bpf_loop`, as it differs from the other one. Empty where there is none.
static WITHOUT_LOOP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/without_loop.lzma2"));

/// A BPF object.
pub struct BpfObject {
    pub bytes: Vec<u8>,
    /// It is the one for kernels without `bpf_loop`: of the events it has the clock's alone.
    pub is_without_loop: bool,
}

impl BpfObject {
    /// Chooses the object by what the kernel has. Is an error if these settings ask for what only the
    /// other object has: perf can count waits.
    pub fn choose(settings: &Settings) -> Result<Self, Error> {
        if !settings.without_loop && has_loop() {
            return Ok(Self::usual());
        }
        if settings.waits || settings.happening.is_some() {
            return Err(Error::NoLoop);
        }
        Self::without_loop().ok_or(Error::NoLoop)
    }

    pub fn usual() -> Self {
        Self {
            bytes: unpack(OBJECT, None),
            is_without_loop: false,
        }
    }

    /// `None` on machines for which there is no such object yet.
    pub fn without_loop() -> Option<Self> {
        THIS.walks_without_loop.then(|| Self {
            bytes: unpack(WITHOUT_LOOP, Some(&unpack(OBJECT, None))),
            is_without_loop: true,
        })
    }
}

/// Whether the kernel has the helper that runs a loop. If it cannot be asked, loading the usual object
/// says why.
fn has_loop() -> bool {
    is_helper_supported(ProgramType::PerfEvent, BpfHelper::BPF_FUNC_loop).unwrap_or(true)
}

fn unpack(packed: &[u8], known: Option<&[u8]>) -> Vec<u8> {
    let mut object = Vec::new();
    Lzma2Reader::new(packed, WINDOW, known)
        .read_to_end(&mut object)
        .expect("what build.rs has packed can be unpacked");
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    #[test]
    fn what_was_packed_is_what_is_committed() {
        let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets");
        let (usual, without_loop) = if cfg!(target_arch = "aarch64") {
            ("proftop.aarch64.bpf.o", None)
        } else {
            ("proftop.bpf.o", Some("proftop.without-loop.bpf.o"))
        };
        let read = |name: &str| fs::read(assets.join(name)).unwrap();
        assert!(BpfObject::usual().bytes == read(usual));
        let unpacked = BpfObject::without_loop().map(|object| object.bytes);
        assert!(unpacked == without_loop.map(read));
    }
}
