//! Reads a perf map, prints how long that took, and names addresses.
//!
//!     cargo run --release --example perf_map -- /tmp/perf-1234.map [ADDRESS...]

use std::fs::File;
use std::time::Instant;

use symbolize::jit::PerfMap;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which map?")?;
    let started = Instant::now();
    let mut map = PerfMap::new(File::open(&path)?);
    map.update()?;
    let taken = started.elapsed();
    let bytes = map.heap_bytes();
    println!("{} pieces of code, {bytes} bytes, {taken:.1?}", map.len());
    for arg in args {
        let addr = u64::from_str_radix(arg.trim_start_matches("0x"), 16)?;
        let name = map.find(addr).unwrap_or_else(|| b"??".to_vec());
        println!("{addr:#x} {}", symbolize::sanitize(&name));
    }
    Ok(())
}
