//! Compresses with gzip, always with the same result.

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use std::io::Write as _;

/// Compresses bytes without a name or a time.
pub fn packed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut packer = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    packer.write_all(bytes)?;
    Ok(packer.finish()?)
}
