//! Walks every stack twice and compares: as usual in BPF, with caches and windows
//! of memory, and from a copy of the stack without any of them. Meanwhile this
//! process recurses, runs code that it makes at run time and discards, loads
//! and unloads libraries, and starts processes; a command may run as well.
//! Ends with 1 if any frame differs.
//!
//! ```text
//! cargo run --release -p probe --example walk_check -- 10 COMMAND [ARGUMENT]...
//! ```

use probe::child::{Streams, hold_command};
use probe::{BpfSource, Config, Source, Target, WalkCheck};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The rate is below the number of stacks that one CPU sends in a second.
const RATE_HZ: u32 = 249;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let seconds = arguments.next().unwrap_or("5".into());
    let seconds: u64 = seconds.to_string_lossy().parse()?;
    let mut pids = vec![std::process::id()];
    let held = match arguments.next() {
        Some(program) => Some(hold_command(
            program,
            arguments.collect(),
            None,
            Streams::OutputToStderr,
        )?),
        None => None,
    };
    pids.extend(held.as_ref().map(|held| held.pid()));
    let config = Config {
        target: Target {
            pids,
            children: true,
            ..Target::default()
        },
        rate_hz: RATE_HZ,
        check_walks: true,
        ..Config::default()
    };
    let mut source = BpfSource::start(&config)?;
    let running = held.map(|held| held.release()).transpose()?;
    for work in [recurse, run_made_code, load_libraries, start_processes] {
        std::thread::spawn(move || {
            loop {
                work();
            }
        });
    }
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut walks = WalkCheck::default();
    while Instant::now() < end {
        walks = source.poll(Duration::from_millis(50))?.walks;
    }
    println!("verified: {:?}", source.verified_instructions());
    println!(
        "walked twice: {} the same, {} as far as the copy goes, {} different",
        walks.same, walks.same_as_far, walks.different
    );
    for example in &walks.examples {
        println!("{example}");
    }
    if let Some(mut running) = running {
        running.terminate()?;
    }
    // The process exits at once, because threads are still in the libraries that they load.
    let is_right = walks.different == 0 && walks.same > 0;
    println!("{}", if is_right { "ok" } else { "FAILED" });
    std::process::exit(i32::from(!is_right))
}

fn recurse() {
    black_box(descend(60));
}

#[inline(never)]
fn descend(depth: u32) -> u64 {
    let words = black_box([u64::from(depth); 16]);
    match depth {
        0 => (0..2000).fold(words[0], |sum, n| black_box(sum ^ n)),
        _ => black_box(descend(depth - 1) + words[3]),
    }
}

/// ```text
/// push %rbp; mov %rsp,%rbp; 1: dec %edi; jnz 1b; pop %rbp; ret
/// ```
const CODE: [u8; 10] = [0x55, 0x48, 0x89, 0xe5, 0xff, 0xcf, 0x75, 0xfc, 0x5d, 0xc3];

fn run_made_code() {
    let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, which contains a function of that type when it is
    // called and which no other code knows.
    unsafe {
        let page = libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0);
        if page == libc::MAP_FAILED {
            return;
        }
        CODE.as_ptr()
            .copy_to_nonoverlapping(page.cast(), CODE.len());
        let spin: extern "C" fn(u32) = std::mem::transmute(page);
        spin(10_000_000);
        libc::munmap(page, 4096);
    }
}

/// Loads and unloads libraries, each with a function that computes a number from memory.
#[cfg(not(target_feature = "crt-static"))]
fn load_libraries() {
    for (library, function) in [
        (c"libz.so.1", c"crc32"),
        (c"liblzma.so.5", c"lzma_crc32"),
        (c"libbz2.so.1.0", c"BZ2_bzlibVersion"),
    ] {
        let bytes = vec![7u8; 1 << 20];
        // SAFETY: the functions are called as the libraries document; zlib and liblzma differ in
        // the order of arguments, so that both get arguments that either accepts.
        unsafe {
            let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW);
            if handle.is_null() {
                continue;
            }
            let found = libc::dlsym(handle, function.as_ptr());
            if !found.is_null() && library == c"libz.so.1" {
                let crc: extern "C" fn(u64, *const u8, u32) -> u64 = std::mem::transmute(found);
                black_box(crc(0, bytes.as_ptr(), bytes.len() as u32));
            }
            if !found.is_null() && library == c"liblzma.so.5" {
                let crc: extern "C" fn(*const u8, usize, u32) -> u32 = std::mem::transmute(found);
                black_box(crc(bytes.as_ptr(), bytes.len(), 0));
            }
            libc::dlclose(handle);
        }
    }
}

/// A static program cannot load any libraries.
#[cfg(target_feature = "crt-static")]
fn load_libraries() {
    recurse();
}

fn start_processes() {
    let ls = std::process::Command::new("ls").arg("/").output();
    black_box(ls.is_ok());
}
