//! Lists the functions of a Mach-O or PE file, or names addresses in it.
//!
//!     cargo run --release -p symbolize --example foreign -- app.exe [ADDRESS...]

use std::fs::File;
use std::path::{Path, PathBuf};

use symbolize::foreign::{ForeignSymbols, dsym_of};
use symbolize::{LinkAddr, demangle};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = PathBuf::from(args.next().ok_or("which file?")?);
    let path = dsym_of(Path::new(&path)).unwrap_or(path);
    let symbols = ForeignSymbols::read(&File::open(&path)?, None)?;
    println!("{}: base {:#x}", path.display(), symbols.base().0);
    let mut is_list = true;
    for arg in args {
        is_list = false;
        let addr = u64::from_str_radix(arg.trim_start_matches("0x"), 16)?;
        match symbols.find(LinkAddr(addr)) {
            Ok(symbol) => println!("{addr:x} {}", demangle(symbol.name).full()),
            Err(reason) => println!("{addr:x} ?? {}", reason.label()),
        }
    }
    for symbol in symbols.functions().filter(|_| is_list) {
        println!("{:x} {}", symbol.start.0, demangle(symbol.name).full());
    }
    Ok(())
}
