//! Writes a folder of Parquet files as the sink `parquet` does, of hosts that do not exist.
//!
//!     make_fleet DIR HOSTS WINDOWS SERVICES STACKS SAMPLES [VERSIONS [PLANTED [SEED]]]
//!
//! Each host has WINDOWS minutes, in each of which a service has SAMPLES samples in up to STACKS stacks.
//! PLANTED is the part of the last version's samples that are in its function `planted` more.

use proftop_fleet::generate::Fleet;
use std::path::Path;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize, default: &str| words.get(at).cloned().unwrap_or(default.into());
    let number = |at: usize, default: &str| word(at, default).parse().expect("a number");
    let fleet = Fleet {
        hosts: number(1, "4"),
        windows: number(2, "5"),
        services: number(3, "2"),
        stacks: number(4, "50"),
        samples: number(5, "500"),
        versions: number(6, "1"),
        planted: word(7, "0").parse().expect("a number"),
        seed: number(8, "7").into(),
    };
    let rows = fleet
        .write(Path::new(&word(0, "fleet")))
        .expect("it is written");
    println!("{rows} rows of samples");
}
