//! Measures what lines cost: cold, from the cache, warm, and the table of a whole file.
//!
//! ```text
//! cargo run --release -p symbolize --example lines_bench -- FILE…
//! ```
//!
//! Times are medians of five. The first name and the first line are looked up by a hundred
//! new processes each, at places all over the file; printed are the median and the slowest but one.
//! Compare with `llvm-gsymutil --convert FILE -o X
//! --num-threads=2` under `time`, run in turn.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use symbolize::debug_file::DebugFiles;
use symbolize::object::Object;
use symbolize::table::Table;
use symbolize::{ElfSymbols, FileOffset, FileSource, Lines, LinkAddr, RemoteFiles, TableCache};

const ROUNDS: usize = 5;
const ADDRESSES: usize = 20_000;

/// Number of new processes for the first name, and for the first line.
const FRESH: usize = 100;

/// The options with which this program starts itself again.
const FIRST_LINE: &str = "--first-line";
const FIRST_NAME: &str = "--first-name";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [option, offset, path] = &args[..]
        && option == FIRST_LINE
    {
        return first_line(Path::new(path), offset.parse().unwrap());
    }
    if let [option, addr, path] = &args[..]
        && option == FIRST_NAME
    {
        return first_name(Path::new(path), LinkAddr(addr.parse().unwrap()));
    }
    println!(
        "file                 info MB | cold name: median p99, line: median p99 | table wall  CPU   MB/s/core | from cache | warm M/s | table MB"
    );
    for path in args {
        measure(Path::new(&path));
    }
}

/// Prints how long the first line takes in a process that has not read anything yet: later ones get
/// the memory that earlier ones have freed.
fn first_line(path: &Path, offset: u64) {
    let start = Instant::now();
    let object = Object::read(&File::open(path).unwrap()).unwrap();
    let files = DebugFiles::of(&FileSource::new(path), RemoteFiles::Open);
    let lines = Lines::open(&object, files, None, 8 << 30).unwrap().unwrap();
    assert!(lines.find(FileOffset(offset)).is_some());
    println!("{}", start.elapsed().as_nanos());
}

fn first_name(path: &Path, addr: LinkAddr) {
    let start = Instant::now();
    let object = Object::read(&File::open(path).unwrap()).unwrap();
    let files = DebugFiles::of(&FileSource::new(path), RemoteFiles::Open);
    let symbols = ElfSymbols::with_debug_files(object, &files).unwrap();
    assert!(symbols.find_link(addr).is_ok());
    println!("{}", start.elapsed().as_nanos());
}

/// Returns the median and the slowest but one of the times that new processes print.
fn elsewhere(option: &str, path: &Path, places: &[u64]) -> [Duration; 2] {
    let ask = |place: &u64| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([option, &place.to_string()]).arg(path);
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        Duration::from_nanos(said.trim().parse().unwrap())
    };
    let mut times: Vec<Duration> = places.iter().map(ask).collect();
    times.sort();
    [times[times.len() / 2], times[times.len() - 2]]
}

fn measure(path: &Path) {
    let path = path.canonicalize().expect("it is there");
    let open = || Object::read(&File::open(&path).unwrap()).unwrap();
    let files = || DebugFiles::of(&FileSource::new(&path), RemoteFiles::Open);
    let symbols = ElfSymbols::with_debug_files(open(), &files()).unwrap();
    let addresses = addresses(&symbols);
    let lines = |cache: Option<&TableCache>| {
        let lines = Lines::open(&open(), files(), cache, 8 << 30);
        lines.unwrap().expect("it has debug information")
    };
    let offset = first_with_lines(&symbols, &addresses, &lines(None));
    let known = lines(None);
    let step = addresses.len() / FRESH;
    let names: Vec<u64> = addresses.iter().step_by(step).map(|addr| addr.0).collect();
    let with_lines = names.iter().filter_map(|addr| {
        let offset = symbols.segments().to_file(LinkAddr(*addr))?;
        known.find(offset).map(|_| offset.0)
    });
    let with_lines: Vec<u64> = with_lines.collect();
    let cold_name = elsewhere(FIRST_NAME, &path, &names);
    let cold_line = elsewhere(FIRST_LINE, &path, &with_lines);
    let info_bytes = known.unread_bytes();
    drop(known);

    let directory = tempfile::tempdir().unwrap();
    let cache = TableCache::open(directory.path(), u64::MAX).unwrap();
    let (mut walls, mut cpus) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (wall, cpu) = (Instant::now(), cpu_time());
        let lines = lines(None);
        lines.finish(None, 2).unwrap();
        walls.push(wall.elapsed());
        cpus.push(cpu_time() - cpu);
    }
    walls.sort();
    cpus.sort();
    let (wall, cpu) = (walls[ROUNDS / 2], cpus[ROUNDS / 2]);

    lines(None).finish(Some(&cache), 2).unwrap();
    let object = open();
    let from_cache = median(|| {
        let lines = Lines::open(&object, files(), Some(&cache), 8 << 30)
            .unwrap()
            .unwrap();
        let (table, addr) = lines.find(offset).unwrap();
        assert!(table.find(addr).count() > 0);
    });

    let lines = lines(Some(&cache));
    let (table, _) = lines.find(offset).unwrap();
    walk(&table, &addresses);
    let warm = median(|| walk(&table, &addresses));
    let per_second = addresses.len() as f64 / warm.as_secs_f64() / 1e6;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{:20} {:7.1} | {:6.1} ms {:5.1}, {:5.1} ms {:5.1} | {:6.0} ms {:6.0} ms {:6.0} | {:7.0} us | {per_second:8.2} | {:.1}",
        path.file_name().unwrap().to_string_lossy(),
        info_bytes as f64 / 1e6,
        ms(cold_name[0]),
        ms(cold_name[1]),
        ms(cold_line[0]),
        ms(cold_line[1]),
        ms(wall),
        ms(cpu),
        info_bytes as f64 / 1e6 / cpu.as_secs_f64(),
        from_cache.as_secs_f64() * 1e6,
        table.heap_bytes() as f64 / 1e6,
    );
}

/// Returns the first place that has lines. Assembly, and what other compilers have added, often has
/// none.
fn first_with_lines(symbols: &ElfSymbols, addresses: &[LinkAddr], lines: &Lines) -> FileOffset {
    let (before, rest) = addresses.split_at(addresses.len() / 2);
    let has_lines = |offset: &FileOffset| {
        let found = lines.find(*offset);
        found.is_some_and(|(table, addr)| table.find(addr).count() > 0)
    };
    rest.iter()
        .chain(before)
        .filter_map(|addr| symbols.segments().to_file(*addr))
        .find(has_lines)
        .expect("it has lines")
}

/// Reads every name and line of every chain.
fn walk(table: &Table, addresses: &[LinkAddr]) {
    let mut sum = 0;
    for addr in addresses {
        for frame in table.find(*addr) {
            sum += frame.line as usize + frame.function.map_or(0, <[u8]>::len);
        }
    }
    std::hint::black_box(sum);
}

/// Returns addresses spread over all functions, in no particular order.
fn addresses(symbols: &ElfSymbols) -> Vec<LinkAddr> {
    let functions: Vec<_> = symbols.functions().filter(|f| f.size > 0).collect();
    let functions: Vec<_> = functions.iter().map(|f| (f.start.0, f.size)).collect();
    let pick = |n: usize| {
        let (start, size) = functions[n.wrapping_mul(0x9e37_79b9) % functions.len()];
        LinkAddr(start + n as u64 % size)
    };
    (0..ADDRESSES).map(pick).collect()
}

fn median(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
