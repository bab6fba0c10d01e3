//! Measures the cost of naming functions of files, and of finding their lines, in this process and
//! by processes without rights:
//!
//! ```text
//! naming_cost here|parsers names|lines OFFSETS FILE…
//! ```
//!
//! Prints the CPU time in microseconds, including that of the other processes, and how many places
//! have a name, or lines. Each file is queried twice, as for the frames of many threads.

use probe::files;
use rustix::fs::{major, minor};
use rustix::time::{ClockId, clock_gettime};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use symbolize::files::{Proxy, Reply, Request};
use symbolize::parser::names::PlaceName;
use symbolize::{FileOffset, FileSource, Files, Reason, RemoteFiles, Symbolizer};

/// Files are opened by other processes, and read in this one.
#[derive(Debug)]
struct ReadHere(Files);

impl Proxy for ReadHere {
    fn perform(&self, request: &Request<'_>, _: RemoteFiles) -> Result<Reply, Reason> {
        self.0.perform(request)
    }
}

fn main() {
    probe::start_readers(|_, _, _| Err(Reason::Refused)).expect("processes can be forked");
    let args: Vec<_> = std::env::args().skip(1).collect();
    let [mode, wanted, count, paths @ ..] = args.as_slice() else {
        panic!("naming_cost here|parsers names|lines OFFSETS FILE…");
    };
    let find = match wanted.as_str() {
        "lines" => count_lines,
        _ => count_names,
    };
    let count: u64 = count.parse().expect("a number");
    let way = match mode.as_str() {
        "here" => Files::by(Arc::new(ReadHere(files::of_targets()))),
        _ => files::of_targets(),
    };
    let symbolizer = Symbolizer::new().with_files(way);
    let begun = cpu_time();
    let mut named = 0;
    for round in 0..2 {
        for path in paths {
            named += ask(&symbolizer, Path::new(path), count, round, find);
        }
    }
    println!("{} {named}", (cpu_time() - begun).as_micros());
    files::end_readers();
}

/// Looks up places of a file, and returns how many were found.
type Find = fn(&Symbolizer, &FileSource<'_>, &[FileOffset]) -> usize;

/// Queries places all over the file, others in each round.
fn ask(symbolizer: &Symbolizer, path: &Path, count: u64, round: u64, find: Find) -> usize {
    let metadata = std::fs::metadata(path).expect("a file");
    let source = FileSource {
        device: (major(metadata.dev()), minor(metadata.dev())),
        inode: metadata.ino(),
        ..FileSource::new(path)
    };
    let step = (metadata.len() / count).max(1);
    let offsets = (0..metadata.len()).step_by(step as usize);
    let offsets: Vec<_> = offsets
        .map(|at| FileOffset(at + round * step / 2))
        .collect();
    find(symbolizer, &source, &offsets)
}

fn count_lines(symbolizer: &Symbolizer, source: &FileSource<'_>, offsets: &[FileOffset]) -> usize {
    let lines = symbolizer.file_lines(*source).expect("an ELF file");
    let Some(lines) = lines else { return 0 };
    let found = lines.find_all(offsets).expect("whole debug information");
    found.iter().filter(|chain| !chain.is_empty()).count()
}

fn count_names(symbolizer: &Symbolizer, source: &FileSource<'_>, offsets: &[FileOffset]) -> usize {
    let names = symbolizer.names(source, offsets).expect("an ELF file");
    let is_named = |name: &PlaceName| matches!(name, PlaceName::Named { .. });
    let places = names.places.iter();
    places.filter(|place| is_named(&place.name)).count()
}

fn cpu_time() -> Duration {
    let own = clock_gettime(ClockId::ProcessCPUTime);
    let own = Duration::new(own.tv_sec as u64, own.tv_nsec as u32);
    own + files::cpu_time()
}
