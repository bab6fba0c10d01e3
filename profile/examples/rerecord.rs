//! Writes recordings again as they were recorded, block by block, and says how
//! many bytes each sample takes, and how long packing took.

use profile::Store;
use profile::formats::pft;
use std::time::{Duration, Instant};

fn main() {
    for path in std::env::args_os().skip(1) {
        let file = std::fs::read(&path).expect("a file");
        let limits = profile::Limits {
            keep: Duration::MAX,
            memory_bytes: 1 << 30,
        };
        let mut store = Store::new(limits);
        let mut reader = pft::Reader::new(&file[..]).expect("a recording");
        let mut again = Vec::new();
        let mut writer = pft::Writer::new(&mut again).expect("memory");
        let mut took = Duration::ZERO;
        while reader.read_block(&mut store).expect("a recording") {
            let view = store.view();
            let start = Instant::now();
            writer.append(&view, None).expect("memory");
            took += start.elapsed();
        }
        writer.finish(&store.view()).expect("memory");
        let samples = writer.samples() as f64;
        let mut whole = Vec::new();
        pft::write(&store.view(), &mut whole).unwrap();
        println!(
            "{:20} {samples:6} {:6.2} -> {:6.2} whole {:.2}  {:5.2} us a sample",
            std::path::Path::new(&path).file_name().unwrap().display(),
            file.len() as f64 / samples,
            again.len() as f64 / samples,
            whole.len() as f64 / samples,
            took.as_secs_f64() * 1e6 / samples,
        );
        if let Some(folder) = std::env::var_os("OUT") {
            let name = std::path::Path::new(&path).file_name().unwrap();
            std::fs::write(std::path::Path::new(&folder).join(name), again).unwrap();
        }
    }
}
