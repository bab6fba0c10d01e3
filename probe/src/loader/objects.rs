//! The BPF objects, and the choice of the one for this kernel.
//!
//! They are built from `probe-ebpf/` by `cargo xtask ebpf`, and compressed by this crate's
//! `build.rs` to an eighth of their size, as the program is copied to servers.

use super::Settings;
use crate::error::Error;
use crate::features::USUAL_HELPERS;
use crate::machine::THIS;
use aya::programs::ProgramType;
use aya::sys::is_helper_supported;
use lzma_rust2::Lzma2Reader;
use std::io::Read as _;

/// Size of the dictionary, as in `build.rs`.
const WINDOW: u32 = 1 << 20;

/// The object for this machine, compressed.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/object.lzma2"));

/// The object for kernels without `bpf_loop`, stored as the difference to the other one. Empty on
/// machines without such an object.
static WITHOUT_LOOP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/without_loop.lzma2"));

/// A BPF object.
pub struct BpfObject {
    /// The ELF file.
    pub bytes: Vec<u8>,
    /// Whether it is the object for kernels that lack `bpf_loop` or other things that came until
    /// Linux 6.1. Its only event is the clock.
    pub is_without_loop: bool,
}

impl BpfObject {
    /// Chooses the object by the helpers that the kernel has. Returns an error if these settings
    /// require something that only the usual object has: then perf can count waits.
    pub fn choose(settings: &Settings) -> Result<Self, Error> {
        if !settings.without_loop && has_enough() {
            return Ok(Self::usual());
        }
        if settings.waits || settings.happening.is_some() {
            return Err(Error::OldKernel);
        }
        Self::without_loop().ok_or(Error::OldKernel)
    }

    /// Returns the object for kernels that have enough for it.
    pub fn usual() -> Self {
        Self {
            bytes: unpack(OBJECT, None),
            is_without_loop: false,
        }
    }

    /// Returns the object for kernels without `bpf_loop`; `None` on machines for which there is
    /// none yet.
    pub fn without_loop() -> Option<Self> {
        THIS.walks_without_loop.then(|| Self {
            bytes: unpack(WITHOUT_LOOP, Some(&unpack(OBJECT, None))),
            is_without_loop: true,
        })
    }
}

/// Whether the kernel has what the usual object needs. If that cannot be found out, loading that
/// object reports the reason.
fn has_enough() -> bool {
    let has = |helper| is_helper_supported(ProgramType::PerfEvent, helper);
    USUAL_HELPERS
        .into_iter()
        .all(|helper| has(helper).unwrap_or(true))
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
